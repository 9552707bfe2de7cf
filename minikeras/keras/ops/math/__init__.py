"""`keras.ops.math`: segments, order, distances, special functions, Fourier transforms."""

from ....absent import facade as _facade
from .functions import *  # noqa: F403

__getattr__, __dir__, __all__ = _facade(__name__, {})
