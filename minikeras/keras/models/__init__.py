# mypy: implicit-reexport
"""Models. What copies, reads and writes them is loaded at its first use."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ...absent import facade as _facade
from .model import Functional, Model
from .sequential import Sequential

if _TYPE_CHECKING:
    from ..saving.model_files import load_model, save_model
    from .cloning import clone_model, model_from_config, model_from_json

_LATE = dict.fromkeys(("clone_model", "model_from_config", "model_from_json"), "cloning")
_LATE |= dict.fromkeys(("load_model", "save_model"), ".saving.model_files")

__getattr__, __dir__, __all__ = _facade(__name__, _LATE)
