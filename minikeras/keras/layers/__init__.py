"""Layers. May import the rest of the package below `keras` and keras's tables of activations, initializers and the like.

Read `layer.py` first.
"""

from .core import Activation, Dense, Flatten, Input, InputLayer
from .layer import Layer
from .normalization import BatchNormalization
from .regularization import Dropout

__all__ = ["Activation", "BatchNormalization", "Dense", "Dropout", "Flatten", "Input", "InputLayer", "Layer"]
