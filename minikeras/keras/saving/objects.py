"""From an object to its configuration in Keras's layout, and back.

Whatever has `get_config` becomes {module, class_name, config, registered_name}, nested to any depth; what JSON lacks (bytes,
slices, arrays) has a name of its own. Classes may add a `build_config` and a `compile_config`. The configuration of a layer or
operation are the arguments of its constructor, kept in attributes of the same names, or written down when it is made.
"""

from __future__ import annotations

import contextvars
import copy
import inspect
import types
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from ...core import Operand, convert_to_tensor, to_numpy, warn_caller
from ...errors import LoadError, UnknownObjectError
from ...files import limits
from ...types import DType, TensorShape, as_dtype
from . import registry

_PLAIN = (str, int, float, bool, type(None))

FOREIGN = dict.fromkeys(("quantization_config", "lora_rank", "lora_alpha", "gptq_unpacked_column_size"))
"""Options that Keras writes into configurations and that have no meaning here, with the only value that is let pass."""


class _Shared:
    """The objects of a scope: configurations by the id of their object, and objects by the id in the file.

    One that `reads` gives no ids: layers that copy a layer while they are made would find objects of the file by them.
    """

    def __init__(self) -> None:
        self.written: dict[int, tuple[Any, dict[str, Any], int]] = {}
        self.read: dict[Any, Any] = {}
        self.reads = False


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
        warn_caller(
            "A lambda is not written: reading it back would mean running code from a file. What is written can be loaded with "
            "custom_objects={'__lambda__': function}. Better write a named function and decorate it with "
            "`@keras.saving.register_keras_serializable()`."
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
    if (shared := _shared.get()) is not None and not shared.reads:
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
        try:
            return _SPECIAL[name](inner)
        except LoadError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LoadError(f"Could not parse config: {name} holds {inner!r:.80} ({type(error).__name__}: {error}).") from error
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
    shared, number = _shared.get() or _Shared(), config.get("shared_object_id")
    if not isinstance(number, Hashable):
        raise LoadError(f"Could not parse config: shared_object_id must be an integer, found {number!r:.80}.")
    shared.reads = True
    if number in shared.read:
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
    if number is not None:
        shared.read[number] = made
    return made


def _array(inner: Any) -> Any:
    return np.array(inner["value"], dtype=as_dtype(inner["dtype"]).numpy)


_SPECIAL: dict[str, Callable[[Any], Any]] = {
    "__bytes__": lambda inner: str(inner["value"]).encode("utf-8"),
    "__slice__": lambda inner: slice(*(_read(inner[name], {}) for name in ("start", "stop", "step"))),
    "__ellipsis__": lambda inner: Ellipsis,
    "__numpy__": _array,
    "__tensor__": lambda inner: convert_to_tensor(_array(inner)),
    "__tuple__": lambda inner: tuple(_read(inner["value"] if isinstance(inner, Mapping) else inner, {})),
    "__lambda__": lambda inner: registry.find("__lambda__", None, "__lambda__", "function"),
}


# Layers and operations -------------------------------------------------------------------------------------------------


def described(value: Any) -> Any:
    """An argument as plain values: objects by class name and configuration, functions by name, arrays as lists."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(described(part) for part in value)
    if isinstance(value, dict):
        return {key: described(part) for key, part in value.items()}
    if isinstance(value, (np.ndarray, np.generic, Operand)):
        return (value.numpy() if isinstance(value, Operand) else value).tolist()
    if hasattr(value, "__name__") and registry.place_of(value) is not None:
        return value.__name__
    return serialize_keras_object(value)


def options(layer: Any, base: type[Any]) -> dict[str, Any]:
    """The arguments of a constructor that `base` does not have: as recorded, else from the attributes of their names.

    A user's `get_config` adds those of the user's classes itself.

    Raises:
        NotImplementedError: if an argument is neither, and the class has no `get_config` of its own.
    """
    own = type(layer).get_config is base.get_config
    given, reason = layer.__dict__.get("_given", ({}, "")) if own else ({}, "")
    if reason:
        raise NotImplementedError(f"Object {type(layer).__name__} was created by passing {reason}")
    found = dict(given)
    names = constructor_arguments(type(layer), base)
    known_kind = described_kind(type(layer))
    if type(layer).get_config is not known_kind.get_config:
        known = constructor_arguments(known_kind, base)
        names = tuple(name for name in names if name in known)
    for name in names:
        if name in found or isinstance(getattr(type(layer), name, None), property):  # Embedding's weights are said of the layer
            continue
        if hasattr(layer, name):
            found[name] = described(getattr(layer, name))
        elif own:
            raise NotImplementedError(
                f"Object {type(layer).__name__} was created by passing non-serializable argument values in `__init__()`, and "
                f"therefore the object must override `get_config()` in order to be serializable: the constructor takes "
                f"'{name}', but '{layer.name}' has no attribute of that name. Keep it in self.{name}, or override `get_config`."
            )
    return found


def serialize(layer: Any) -> dict[str, Any]:
    """The configuration of a layer, as plain data that `deserialize` reads.

    >>> tf.keras.layers.serialize(tf.keras.layers.Flatten())["class_name"]
    'Flatten'
    """
    return dict(serialize_keras_object(layer))


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The layer for a configuration.

    Args:
        config: what `serialize` gives.
        custom_objects: further classes and functions by name.

    Raises:
        ValueError: if the configuration is not that of a layer.

    >>> tf.keras.layers.deserialize({"class_name": "Dense", "config": {"units": 3, "name": "d"}})
    <Dense name=d, built=False>
    """
    found = deserialize_keras_object(config, custom_objects)
    if not getattr(type(found), "_is_layer", False):
        raise ValueError(f"layers.deserialize: {config!r:.200} is no configuration of a layer.")
    return found


# Classes of the user that do not describe themselves ------------------------------------------------------------------


def is_described(cls: type[Any]) -> bool:
    """True if a class itself is declared as described; its subclasses do not inherit that."""
    return bool(vars(cls).get("is_described"))


def described_kind(cls: type[Any]) -> type[Any]:
    """The nearest of a class and its bases that is described; `object` if none is.

    A described layer has an attribute of the name of each argument, its configuration says all that it is, a rule of shapes is
    right without a trial, and NumPy's numbers are as good as Python's: `class Dense(Layer, described=True)`.
    """
    return next(filter(is_described, cls.__mro__), object)


def record(made: Any, base: Any, arguments: tuple[Any, ...], given: dict[str, Any]) -> None:
    """Write down what the constructor of a user's class is given, if the class does not describe itself."""
    if type(made).get_config is base.get_config and not is_described(type(made)):
        object.__setattr__(made, "_given", _recorded(type(made), base, arguments, given))


def _recorded(cls: type, base: type, arguments: tuple[Any, ...], given: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The plain values among a constructor's arguments, defaults included, by name; or why they cannot be given by name."""
    signature = _constructor(cls)
    parameters = list(signature.parameters.values())[1:]
    try:
        bound = signature.bind(None, *arguments, **given)
    except TypeError:  # the constructor says so itself
        return {}, ""
    bound.apply_defaults()
    values = dict(list(bound.arguments.items())[1:])
    for one in parameters:
        if one.kind is one.POSITIONAL_ONLY or (one.kind is one.VAR_POSITIONAL and values.pop(one.name)):
            return {}, (
                "positional only or variadic positional arguments to `__init__()`, which have no names. Take them by name, or "
                "override `get_config()` and `from_config()`."
            )
        if one.kind is one.VAR_KEYWORD:
            values |= values.pop(one.name)
    common = _constructor(base).parameters
    plain = {name: copy.deepcopy(value) for name, value in values.items() if name not in common and _is_plain(value)}
    return {name: value for name, value in plain.items() if name not in ("input_shape", "input_dim")}, ""


def _constructor(cls: Any) -> inspect.Signature:
    return inspect.signature(cls.__init__)


def _is_plain(value: Any) -> bool:
    """True if a value is a number, text or None, or lists, tuples and dicts of them."""
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(isinstance(key, str) and _is_plain(part) for key, part in value.items())
    return value is None or isinstance(value, (str, int, float, bool))


def made_of(cls: type, base: type, config: dict[str, Any]) -> Any:
    """A layer or an operation from its configuration, objects within it revived.

    What all have is left out where the constructor does not take it.
    """
    parameters = _constructor(cls).parameters
    is_open = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    common = _constructor(base).parameters
    taken = {name: value for name, value in config.items() if is_open or name in parameters or name not in common}
    objects = {name for name, value in taken.items() if isinstance(value, dict) and {"class_name", "config"} <= set(value)}
    revived = {name: deserialize_keras_object(value) if name in objects else value for name, value in taken.items()}
    made = cls(**revived)
    if "trainable" not in taken and config.get("trainable") is False:
        made.trainable = False
    return made


def constructor_arguments(cls: type, base: type) -> tuple[str, ...]:
    """Names of the arguments that the constructors of a class take, up to those of `base`."""
    names: list[str] = []
    for owner in cls.__mro__:
        if owner is base:
            break
        if "__init__" not in owner.__dict__:
            continue
        parameters = list(inspect.signature(owner.__dict__["__init__"]).parameters.values())[1:]
        names += [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
        if not any(one.kind is one.VAR_KEYWORD for one in parameters):
            break
    common = _constructor(base).parameters
    return tuple(name for name in dict.fromkeys(names) if name not in common)
