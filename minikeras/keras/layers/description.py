"""A layer as plain values: what `get_config` returns, so that the layer can be made again.

Key idea: a constructor's argument is kept in an attribute of the same name, so the configuration follows from the signature.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from ...core.operand import Operand
from ..saving.objects import serialize_keras_object
from ..saving.registry import place_of


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


def options(layer: Any, base: type) -> dict[str, Any]:
    """The arguments of a layer's constructor that `base` does not have, from the attributes of their names.

    Raises:
        NotImplementedError: if an argument is no attribute and the class has no `get_config` of its own.
    """
    found = {}
    for name in _arguments(type(layer), base):  # type: ignore[arg-type]  # a class is hashable
        if isinstance(getattr(type(layer), name, None), property):  # said of the layer, not by the caller: Embedding's weights
            continue
        if hasattr(layer, name):
            found[name] = described(getattr(layer, name))
        elif type(layer).get_config is base.get_config:  # type: ignore[attr-defined]
            raise NotImplementedError(
                f"{type(layer).__name__}.get_config: the constructor takes '{name}', but '{layer.name}' has no attribute of "
                f"that name. Keep it in self.{name}, or override `get_config`."
            )
    return found


@functools.cache
def _arguments(cls: type, base: type) -> tuple[str, ...]:
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
    taken = inspect.signature(base.__init__).parameters  # type: ignore[misc]
    return tuple(name for name in dict.fromkeys(names) if name not in taken)
