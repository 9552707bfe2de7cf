"""`keras.ops.linalg`: linear algebra over stacks of matrices."""

from ....absent import facade as _facade
from .matrices import *  # noqa: F403

__getattr__, __dir__, __all__ = _facade(__name__, {})
