# mypy: implicit-reexport
"""`keras.ops.nn`: activations, layers as functions, losses of each element, normalization, attention."""

from ....absent import late as _late
from .layers import *  # noqa: F403
from .losses import *  # noqa: F403
from .sliding import *  # noqa: F403

__getattr__, __dir__ = _late(__name__, {})
__all__ = [name for name in __dir__() if not name.startswith("_")]
