# mypy: implicit-reexport
"""Configurations of objects, and files of models. What lies above layers and models (the files) is loaded at its first use."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ...absent import facade as _facade
from .objects import ObjectSharingScope, deserialize_keras_object, serialize_keras_object
from .registry import *  # noqa: F403

if _TYPE_CHECKING:
    from .keras_file import load_model, save_model
    from .weights import load_weights, save_weights

_LATE = {"load_model": "keras_file", "load_weights": "weights", "save_model": "keras_file", "save_weights": "weights"}

__getattr__, __dir__, __all__ = _facade(__name__, _LATE)
