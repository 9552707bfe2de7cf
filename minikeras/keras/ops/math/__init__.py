# mypy: implicit-reexport
"""`keras.ops.math`: segments, order, distances, special functions, Fourier transforms."""

from ....absent import late as _late
from .functions import *  # noqa: F403

__getattr__, __dir__ = _late(__name__, {})
__all__ = [name for name in __dir__() if not name.startswith("_")]
