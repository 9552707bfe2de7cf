"""A layer or operation as plain values: the arguments of its constructor, kept in attributes of the same names, or written down
when it is made.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.tensor import Operand
from .objects import deserialize_keras_object, serialize_keras_object
from .registry import place_of


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
    if hasattr(value, "__name__") and place_of(value) is not None:
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
    taken = _constructor(base).parameters
    return tuple(name for name in dict.fromkeys(names) if name not in taken)
