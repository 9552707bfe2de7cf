"""`keras.ops.math`: segments, order, distances, special functions, Fourier transforms."""

from ....absent import facade as _facade
from . import functions

__getattr__, __dir__, __all__ = _facade(__name__, {}, (functions,))
