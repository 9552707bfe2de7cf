# mypy: implicit-reexport
"""Configurations of objects, and files of models. What lies above layers and models (the files) is loaded at its first use."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ...absent import facade as _facade
from .objects import ObjectSharingScope, deserialize_keras_object, serialize_keras_object
from .registry import *  # noqa: F403

if _TYPE_CHECKING:
    from .model_files import load_model, load_weights, save_model, save_weights

_LATE = dict.fromkeys(("load_model", "load_weights", "save_model", "save_weights"), "model_files")

__getattr__, __dir__, __all__ = _facade(__name__, _LATE)
