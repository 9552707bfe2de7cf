"""From an object to its configuration in Keras's layout, and back.

Whatever has `get_config` becomes {module, class_name, config, registered_name}, nested to any depth; what JSON lacks (bytes,
slices, arrays) has a name of its own. Classes may add a `build_config` and a `compile_config`.
"""

from __future__ import annotations

import contextvars
import types
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...core.arrays import to_numpy
from ...core.tensor import Operand
from ...errors import LoadError, UnknownObjectError
from ...files import limits
from ...types import DType, TensorShape, as_dtype
from . import registry

_PLAIN = (str, int, float, bool, type(None))

FOREIGN = dict.fromkeys(("quantization_config", "lora_rank", "lora_alpha", "gptq_unpacked_column_size"))
"""Options that Keras writes into configurations and that have no meaning here, with the only value that is let pass."""


class _Shared:
    """The objects of a scope: configurations by the id of their object, and objects by the id in the file."""

    def __init__(self) -> None:
        self.written: dict[int, tuple[Any, dict[str, Any], int]] = {}
        self.read: dict[Any, Any] = {}


_shared: contextvars.ContextVar[_Shared | None] = contextvars.ContextVar("shared_objects", default=None)


class ObjectSharingScope:
    """A context in which an object that occurs several times is written with one id, and read as one object.

    >>> layer = tf.keras.layers.Flatten()
    >>> with ObjectSharingScope():
    ...     first, second = serialize_keras_object([layer, layer])
    >>> first["shared_object_id"] == second["shared_object_id"]
    True
    """

    def __init__(self) -> None:
        self._tokens: list[contextvars.Token[_Shared | None]] = []

    def __enter__(self) -> ObjectSharingScope:
        self._tokens.append(_shared.set(_Shared()))
        return self

    def __exit__(self, *error: Any) -> None:
        _shared.reset(self._tokens.pop())


# Writing --------------------------------------------------------------------------------------------------------------


def serialize_keras_object(obj: Any) -> Any:
    """The configuration of an object as plain data, in Keras's layout.

    Args:
        obj: a layer, model, optimizer, loss, initializer ..., a function, plain data, or nests of these.

    Returns:
        What `json.dumps` takes and `deserialize_keras_object` reads.

    Raises:
        TypeError: for an object without `get_config`.

    In the place of a lambda, which could not be read back without running code, only a mark is written, with a warning.

    >>> tf.keras.saving.serialize_keras_object(tf.keras.initializers.Zeros())
    {'module': 'keras.initializers', 'class_name': 'Zeros', 'config': {}, 'registered_name': None}
    """
    if type(obj) in _PLAIN:
        return obj
    if isinstance(obj, Mapping) and not hasattr(obj, "get_config"):
        if obj.keys() >= {"class_name", "config", "registered_name"}:  # written by a `get_config`; it may get a number yet
            return obj
        return {key: serialize_keras_object(value) for key, value in obj.items()}
    if isinstance(obj, TensorShape):
        return list(obj)
    if isinstance(obj, (list, tuple)):
        return [serialize_keras_object(value) for value in obj]
    if isinstance(obj, DType):
        return obj.name
    if isinstance(obj, types.FunctionType):
        return _function(obj)
    if hasattr(obj, "get_config"):
        return _configured(obj)
    return _special(obj)


def _special(obj: Any) -> Any:
    """The serialized form of a value that is neither plain nor has `get_config`."""
    if isinstance(obj, bytes):
        return {"class_name": "__bytes__", "config": {"value": obj.decode("utf-8")}}
    if isinstance(obj, slice):
        parts = {name: serialize_keras_object(getattr(obj, name)) for name in ("start", "stop", "step")}
        return {"class_name": "__slice__", "config": parts}
    if obj is Ellipsis:
        return {"class_name": "__ellipsis__", "config": {}}
    if isinstance(obj, np.generic):
        return obj.item()
    if isinstance(obj, np.ndarray):
        return {"class_name": "__numpy__", "config": {"value": obj.tolist(), "dtype": obj.dtype.name}}
    if isinstance(obj, Operand):
        return {"class_name": "__tensor__", "config": {"value": to_numpy(obj.array).tolist(), "dtype": obj.dtype.name}}
    if isinstance(obj, _PLAIN):  # a subclass of str or int, such as an enumeration's member
        return obj
    raise TypeError(
        f"Cannot serialize object {obj!r:.80} of type {type(obj)}. To be serializable, a class must implement `get_config()`."
    )


def _function(function: Callable[..., Any]) -> dict[str, Any]:
    if function.__name__ == "<lambda>":
        warnings.warn(
            "A lambda is not written: reading it back would mean running code from a file. What is written can be loaded with "
            "custom_objects={'__lambda__': function}. Better write a named function and decorate it with "
            "`@keras.saving.register_keras_serializable()`.",
            stacklevel=2,
        )
        return {"class_name": "__lambda__", "config": {}}
    name = registry.get_registered_name(function)
    own = registry.place_of(function) is not None
    module = "builtins" if own else _module(function.__module__)
    return {"module": module, "class_name": "function", "config": name, "registered_name": name}


def _configured(obj: Any) -> dict[str, Any]:
    config = obj.get_config()
    if not isinstance(config, Mapping):
        raise TypeError(f"The `get_config()` method of {obj!r:.80} should return a dict. It returned: {config!r:.80}.")
    kind = type(obj)
    registered_name: str | None = registry.get_registered_name(kind)
    place = registry.place_of(kind) if registered_name == kind.__name__ else None
    if place is None:
        module, name = _module(kind.__module__), kind.__name__
    else:
        module, name = place
        registered_name = name if ".src." in module else None
    written = {"module": module, "class_name": name, "config": serialize_keras_object(config)}
    written["registered_name"] = registered_name
    for key in ("build_config", "compile_config"):
        extra = getattr(obj, f"get_{key}", lambda: None)()
        if extra is not None:
            written[key] = serialize_keras_object(extra)
    if (shared := _shared.get()) is not None:
        _, first, number = shared.written.setdefault(id(obj), (obj, written, len(shared.written) + 1))
        if first is not written:
            first["shared_object_id"] = written["shared_object_id"] = number
    return written


def _module(name: str) -> str | None:
    """A module that a reader can know: the one that was run as a program has no name of its own."""
    return None if name == "__main__" else name


# Reading --------------------------------------------------------------------------------------------------------------


def deserialize_keras_object(
    config: Any,
    custom_objects: Mapping[str, Any] | None = None,
    safe_mode: bool = True,
    module_objects: Mapping[str, Any] | None = None,
) -> Any:
    """The object that a configuration describes.

    Args:
        config: as `serialize_keras_object` and Keras write it; plain data is returned as it is.
        custom_objects: further classes and functions by name.
        safe_mode: accepted for compatibility; True is the only way here.
        module_objects: a table to look in where a configuration names no module, before the package's own.

    Raises:
        UnknownObjectError: if a class or function is not known; nothing is imported.
        LoadError: if the configuration is not of the expected form.
        ValueError: with `safe_mode=False`.

    >>> config = {"module": "keras.layers", "class_name": "Flatten", "config": {"name": "flat"}}
    >>> tf.keras.saving.deserialize_keras_object(config)
    <Flatten name=flat, built=True>
    """
    if not safe_mode:
        raise ValueError("safe_mode=False is not available: nothing in a configuration is ever run. Register classes instead.")
    with registry.CustomObjectScope(custom_objects):
        named = registry.get_registered_object(config) if isinstance(config, str) else None
        return _read(config, module_objects or {}) if named is None else named


def _read(config: Any, nearby: Mapping[str, Any]) -> Any:
    if isinstance(config, _PLAIN):
        return config
    if isinstance(config, (list, tuple)):
        return [_read(value, {}) for value in config]
    if not isinstance(config, Mapping):
        raise LoadError(f"Could not parse config: {config!r:.200} is neither plain data nor a dict.")
    if "class_name" not in config or "config" not in config:
        return {key: _read(value, {}) for key, value in config.items()}
    name, inner = config["class_name"], config["config"]
    if not isinstance(name, str):
        raise LoadError(f"Could not parse config: class_name must be a string, found {name!r:.80}.")
    if len(name) > registry.LONGEST_NAME:
        raise LoadError(f"Could not parse config: the name of a class has {len(name)} characters: {name:.80}...")
    if name in _SPECIAL:
        return _special_read(name, inner)
    module, registered_name = config.get("module"), config.get("registered_name") or None
    if name == "function":
        if not isinstance(inner, str):
            raise LoadError(f"Could not parse config: a function is named by a string, found {inner!r:.80}.")
        known = nearby.get(inner)
        registered_name = None if registered_name == "function" else registered_name  # as Keras 3.6 has it
        return known if known is not None else registry.find(inner, module, registered_name or inner, "function")
    if inner is not None and not isinstance(inner, Mapping):
        raise LoadError(f"Could not parse config: the config of '{name}' must be a dict, found {inner!r:.80}.")
    return _instance(config, _class(name, module, registered_name, nearby), dict(inner or {}))


def _class(name: str, module: Any, registered_name: Any, nearby: Mapping[str, Any]) -> Any:
    custom = any(registry.get_registered_object(key) is not None for key in (registered_name, name) if key)
    found = nearby.get(name) if module is None and not custom else None
    return found if found is not None else registry.find(name, module, registered_name)


def _instance(config: Mapping[str, Any], kind: Any, inner: dict[str, Any]) -> Any:
    """A new object of a class that is known, or the one that this scope made for the same id."""
    shared, number = _shared.get(), config.get("shared_object_id")
    if shared is not None and number in shared.read:
        return shared.read[number]
    if isinstance(kind, types.FunctionType):
        return kind
    if not hasattr(kind, "from_config"):
        raise UnknownObjectError(f"'{kind.__name__}' has no from_config() method, so no object of it can be made.")
    limits.spend_work(limits.OBJECT, f"objects such as {kind.__name__}")
    if registry.place_of(kind) is not None:
        inner = {key: value for key, value in inner.items() if key not in FOREIGN or value != FOREIGN[key]}
    try:
        made = kind.from_config(inner)
    except UnknownObjectError:  # a TypeError as well
        raise
    except TypeError as error:
        raise LoadError(
            f"{kind.__name__} could not be made from its configuration {inner!r:.200}: {error}. Objects within a configuration "
            "(layers, functions) have to be read by `from_config`; and `get_config` must hold every argument of `__init__`."
        ) from error
    if config.get("build_config") and hasattr(made, "build_from_config") and not getattr(made, "_built", made.built):
        made.build_from_config(_read(config["build_config"], {}))
    if config.get("compile_config") and hasattr(made, "compile_from_config"):
        made.compile_from_config(config["compile_config"])
    if shared is not None and number is not None:
        shared.read[number] = made
    return made


def _tensor(inner: Any) -> Any:
    from ...core import convert_to_tensor

    return convert_to_tensor(_array(inner))


def _array(inner: Any) -> Any:
    return np.array(inner["value"], dtype=as_dtype(inner["dtype"]).numpy)


_SPECIAL: dict[str, Callable[[Any], Any]] = {
    "__bytes__": lambda inner: str(inner["value"]).encode("utf-8"),
    "__slice__": lambda inner: slice(*(_read(inner[name], {}) for name in ("start", "stop", "step"))),
    "__ellipsis__": lambda inner: Ellipsis,
    "__numpy__": _array,
    "__tensor__": _tensor,
    "__tuple__": lambda inner: tuple(_read(inner["value"] if isinstance(inner, Mapping) else inner, {})),
    "__lambda__": lambda inner: registry.find("__lambda__", None, "__lambda__", "function"),
}


def _special_read(name: str, inner: Any) -> Any:
    try:
        return _SPECIAL[name](inner)
    except LoadError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LoadError(f"Could not parse config: {name} holds {inner!r:.80} ({type(error).__name__}: {error}).") from error
