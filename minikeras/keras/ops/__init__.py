"""`keras.ops`: Keras's functions of tensors, over those of this package. All take KerasTensors too and are then steps of a
functional model, which has the same form in Keras's files.
"""

from ...absent import facade as _facade
from . import core, einops, image, linalg, math, nn, numpy

_LATE: dict[str, str | None] = {"image": None, "linalg": None, "math": None, "nn": None, "numpy": None}
__getattr__, __dir__, __all__ = _facade(__name__, _LATE, (core, einops, linalg, math, nn, numpy))
