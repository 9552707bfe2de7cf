"""`keras.ops.numpy`: what NumPy has under the same names."""

from ....absent import facade as _facade
from .creation import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .products import *  # noqa: F403
from .reductions import *  # noqa: F403
from .shaping import *  # noqa: F403

__getattr__, __dir__, __all__ = _facade(__name__, {})
