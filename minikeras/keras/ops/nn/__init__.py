"""`keras.ops.nn`: activations, layers as functions, losses of each element, normalization, attention."""

from . import activations, alignment, attention, losses, normalization, sliding
from .activations import *  # noqa: F403
from .alignment import *  # noqa: F403
from .attention import *  # noqa: F403
from .losses import *  # noqa: F403
from .normalization import *  # noqa: F403
from .sliding import *  # noqa: F403

_PARTS = (activations, alignment, attention, losses, normalization, sliding)
__all__ = sorted({name for part in _PARTS for name in part.__all__})
