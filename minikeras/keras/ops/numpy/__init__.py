"""`keras.ops.numpy`: what NumPy has under the same names."""

from . import creation, elementwise, indexing, products, reductions, shaping, statistics, vectorizing
from .creation import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .indexing import *  # noqa: F403
from .products import *  # noqa: F403
from .reductions import *  # noqa: F403
from .shaping import *  # noqa: F403
from .statistics import *  # noqa: F403
from .vectorizing import *  # noqa: F403

__all__ = sorted(
    {
        *(*creation.__all__, *elementwise.__all__, *indexing.__all__, *products.__all__, *reductions.__all__),
        *(*shaping.__all__, *statistics.__all__, *vectorizing.__all__),
    }
)
