"""`keras.ops.numpy`: what NumPy has under the same names."""

from . import creation, elementwise, indexing, products, reductions, shaping, statistics
from .creation import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .indexing import *  # noqa: F403
from .products import *  # noqa: F403
from .reductions import *  # noqa: F403
from .shaping import *  # noqa: F403
from .statistics import *  # noqa: F403

__all__ = sorted(
    {name for module in (creation, elementwise, indexing, products, reductions, shaping, statistics) for name in module.__all__}
)
