"""`keras.ops.nn`: activations, layers as functions, losses of each element, normalization, attention."""

from ....absent import facade as _facade
from . import layers, losses, sliding

__getattr__, __dir__, __all__ = _facade(__name__, {}, (layers, losses, sliding), "add_up elements for_each places read")
