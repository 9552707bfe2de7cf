"""`keras.ops.numpy`: what NumPy has under the same names."""

from . import elementwise, indexing, products
from .elementwise import *  # noqa: F403
from .indexing import *  # noqa: F403
from .products import *  # noqa: F403

__all__ = sorted({*elementwise.__all__, *indexing.__all__, *products.__all__})
