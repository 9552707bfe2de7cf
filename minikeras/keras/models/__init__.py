# mypy: implicit-reexport
"""Models. What copies, reads and writes them is loaded at its first use."""

from ...absent import facade as _facade
from .model import Functional, Model
from .sequential import Sequential

_LATE = dict.fromkeys(("clone_model", "model_from_config", "model_from_json"), "cloning")
_LATE |= dict.fromkeys(("load_model", "save_model"), ".saving.model_files")

__getattr__, __dir__, __all__ = _facade(__name__, _LATE)
