"""`keras.ops.math`: segments, order, distances, special functions, Fourier transforms."""

from . import fourier, functions
from .fourier import *  # noqa: F403
from .functions import *  # noqa: F403

__all__ = sorted({*fourier.__all__, *functions.__all__})
