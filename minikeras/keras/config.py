# mypy: implicit-reexport
"""`keras.config`: Keras's global settings. Names only; definitions are in `settings.py`, `mixed_precision.py` and `logs.py`."""

from ..absent import late as _late
from .logs import disable_interactive_logging, enable_interactive_logging, is_interactive_logging_enabled
from .mixed_precision import dtype_policy, set_dtype_policy
from .settings import *  # noqa: F403

__path__: list[str] = []  # a package without modules: Python asks finders for names that it lacks, and one explains them
__getattr__, __dir__ = _late(__name__, {})
__all__ = [name for name in __dir__() if not name.startswith("_")]
