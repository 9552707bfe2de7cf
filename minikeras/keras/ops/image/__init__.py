"""`keras.ops.image`: colors, sizes, filters and transforms of images, one or a batch, the channels last or first."""

from ....absent import facade as _facade
from . import filters, sampling

__getattr__, __dir__, __all__ = _facade(__name__, {}, (filters, sampling), "as_batch blurred sampled")
