"""`keras.ops.linalg`: linear algebra over stacks of matrices."""

from ....absent import facade as _facade
from . import matrices

__getattr__, __dir__, __all__ = _facade(__name__, {}, (matrices,), "identities")
