"""`keras.ops.nn`: activations, layers as functions, losses of each element, normalization, attention."""

from ....absent import facade as _facade
from .layers import *  # noqa: F403
from .losses import *  # noqa: F403
from .sliding import *  # noqa: F403

__getattr__, __dir__, __all__ = _facade(__name__, {})
