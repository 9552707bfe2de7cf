"""`keras.ops`: Keras's functions of tensors, over those of this package. All take KerasTensors too and are then steps of a
functional model, which has the same form in Keras's files.
"""

from . import core, numpy
from .core import *  # noqa: F403
from .numpy import *  # noqa: F403

__all__ = sorted({*core.__all__, *numpy.__all__})
