"""`keras.ops`: Keras's functions of tensors, over those of this package. All take KerasTensors too and are then steps of a
functional model, which has the same form in Keras's files.
"""

from ...absent import facade as _facade
from ...facades import load as _load
from . import core, einops

_LATE: dict[str, str | None] = {"image": None, "linalg": None, "math": None, "nn": None, "numpy": None}
image, *_flat = [_load(f"{__name__}.{name}") for name in _LATE]
__getattr__, __dir__, __all__ = _facade(__name__, _LATE, (core, einops, *_flat))
