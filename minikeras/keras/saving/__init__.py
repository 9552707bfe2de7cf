# mypy: implicit-reexport
"""Configurations of objects, and files of models. What lies above layers and models (the files) is loaded at its first use."""

from ...absent import facade as _facade
from .objects import ObjectSharingScope, deserialize_keras_object, serialize_keras_object
from .registry import *  # noqa: F403

_LATE = dict.fromkeys(("load_model", "load_weights", "save_model", "save_weights"), "model_files")

__getattr__, __dir__, __all__ = _facade(__name__, _LATE)
