# mypy: implicit-reexport
"""`keras.config`: Keras's global settings. Names only; definitions are in `settings.py` and `mixed_precision.py`."""

from ..absent import facade as _facade
from .mixed_precision import dtype_policy, set_dtype_policy
from .settings import *  # noqa: F403

__getattr__, __dir__, __all__ = _facade(__name__, {})
