"""Models. May import all of keras below, and the registry of classes. Read `model.py` first, then `graph.py`."""

from typing import Any

from .cloning import clone_model, model_from_config, model_from_json
from .functional import Functional
from .model import Model
from .sequential import Sequential

__all__ = [
    "Functional",
    "Model",
    "Sequential",
    "clone_model",
    "load_model",
    "model_from_config",
    "model_from_json",
    "save_model",
]


def __getattr__(name: str) -> Any:
    """What reads and writes files, imported when it is first asked for."""
    if name in ("load_model", "save_model"):
        from .. import saving

        return getattr(saving, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}.")
