"""`keras.ops`: Keras's functions of tensors, over those of this package. All take KerasTensors too and are then steps of a
functional model, which has the same form in Keras's files.
"""

from ...absent import facade as _facade
from . import image, linalg, math, nn, numpy
from .core import *  # noqa: F403
from .einops import *  # noqa: F403
from .linalg import *  # noqa: F403
from .math import *  # noqa: F403
from .nn import *  # noqa: F403
from .numpy import *  # noqa: F403

__getattr__, __dir__, __all__ = _facade(__name__, {"image": None, "linalg": None, "math": None, "nn": None, "numpy": None})
