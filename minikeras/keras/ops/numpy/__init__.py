"""`keras.ops.numpy`: what NumPy has under the same names."""

from ....absent import facade as _facade
from . import creation, elementwise, products, reductions, shaping

__getattr__, __dir__, __all__ = _facade(__name__, {}, (creation, elementwise, products, reductions, shaping))
