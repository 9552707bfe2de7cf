# mypy: implicit-reexport
"""`keras.ops.numpy`: what NumPy has under the same names."""

from ....absent import late as _late
from .creation import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .products import *  # noqa: F403
from .reductions import *  # noqa: F403
from .shaping import *  # noqa: F403

__getattr__, __dir__ = _late(__name__, {})
__all__ = [name for name in __dir__() if not name.startswith("_")]
