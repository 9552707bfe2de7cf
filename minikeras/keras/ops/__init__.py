"""`keras.ops`: Keras's functions of tensors, over those of this package. All take KerasTensors too and are then steps of a
functional model, which has the same form in Keras's files.
"""

from . import core, einops, linalg, math, nn, numpy
from . import image as image
from .core import *  # noqa: F403
from .einops import *  # noqa: F403
from .linalg import *  # noqa: F403
from .math import *  # noqa: F403
from .nn import *  # noqa: F403
from .numpy import *  # noqa: F403

_PARTS = (core, einops, linalg, math, nn, numpy)
__all__ = sorted({"image", "linalg", "math", "nn", "numpy"}.union(*(part.__all__ for part in _PARTS)))
