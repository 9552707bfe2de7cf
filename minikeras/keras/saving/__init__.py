"""Configurations of objects, and files of models. `registry.py` may be imported from anywhere in `keras`; read it first.

What lies above layers and models (the files) is imported when it is first asked for.
"""

from typing import Any

from .objects import ObjectSharingScope, deserialize_keras_object, serialize_keras_object
from .registry import (
    CustomObjectScope,
    custom_object_scope,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
)

__all__ = [
    "CustomObjectScope",
    "ObjectSharingScope",
    "custom_object_scope",
    "deserialize_keras_object",
    "get_custom_objects",
    "get_registered_name",
    "get_registered_object",
    "load_model",
    "load_weights",
    "register_keras_serializable",
    "save_model",
    "save_weights",
    "serialize_keras_object",
]

_FILES = {"load_model": "archives", "load_weights": "weights", "save_model": "archives", "save_weights": "weights"}


def __getattr__(name: str) -> Any:
    """What reads and writes files."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.")
    import importlib

    return getattr(importlib.import_module(f".{_FILES[name]}", __name__), name)
