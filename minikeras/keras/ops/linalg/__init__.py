# mypy: implicit-reexport
"""`keras.ops.linalg`: linear algebra over stacks of matrices."""

from ....absent import late as _late
from .matrices import *  # noqa: F403

__getattr__, __dir__ = _late(__name__, {})
__all__ = [name for name in __dir__() if not name.startswith("_")]
