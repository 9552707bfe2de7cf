"""A model as plain data, and back: of a functional model its graph, of a subclass the arguments that it was made with."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from ..layers.weight_discovery import set_trainable_alone
from ..saving.objects import deserialize_keras_object, serialize_keras_object


def _functional(inputs: Any, outputs: Any, name: str | None = None, trainable: bool | None = None, dtype: Any = None) -> None:
    """The arguments of a functional model."""


def is_functional(arguments: tuple[Any, ...], options: Mapping[str, Any]) -> bool:
    """Whether inputs and outputs were given."""
    return len(arguments) >= 2 or (len(arguments) == 1 and "outputs" in options) or {"inputs", "outputs"} <= set(options)


def functional(arguments: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a functional model by name, those that are None left out."""
    given = inspect.signature(_functional).bind(*arguments, **options).arguments
    return {key: value for key, value in given.items() if value is not None}


def config_of(model: Any, functional: bool) -> dict[str, Any]:
    """What `model_of` needs."""
    if not functional:
        return _subclass_config(model)
    from .graph_config import written

    return {"name": model.name, "trainable": model._trainable, **written(model._graph)}


def model_of(cls: Any, config: dict[str, Any], custom_objects: Mapping[str, Any] | None) -> Any:
    """A new model of a class, with new weights, from its configuration."""
    if {"layers", "input_layers", "output_layers"} <= set(config):
        from .graph_config import read

        inputs, outputs = read(config, custom_objects)
        made = cls(inputs=inputs, outputs=outputs, name=config.get("name"))
    else:
        made = cls(**deserialize_keras_object(dict(config), custom_objects))
    set_trainable_alone(made, config.get("trainable") is not False)  # each layer has its own in its configuration
    return made


def _subclass_config(model: Any) -> dict[str, Any]:
    """Name, dtype and the like, as far as the class takes them, and the arguments that it was made with, as plain data.

    Raises:
        NotImplementedError: if that cannot be.
    """
    kind = type(model)
    accepted = inspect.signature(kind.__init__).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values())
    base = {"name": model.name, "trainable": model._trainable, "dtype": model.dtype_policy.name}
    config = {key: value for key, value in base.items() if key in accepted or open_ended}
    try:
        return config | serialize_keras_object(_by_name(kind, *model._given))
    except (TypeError, ValueError) as error:
        if model._overrides("get_config"):  # which adds them
            return config
        raise NotImplementedError(
            f"Object {kind.__name__} was created by passing non-serializable argument values in `__init__()`, and "
            f"therefore the object must override `get_config()` in order to be serializable: {error}"
        ) from error


def _by_name(kind: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """The arguments that an object was made with, by name."""
    signature = inspect.signature(kind.__init__)
    found: dict[str, Any] = {}
    for name, value in list(signature.bind(None, *arguments, **options).arguments.items())[1:]:
        parameter = signature.parameters[name].kind
        if parameter is inspect.Parameter.VAR_POSITIONAL:
            raise TypeError(f"positional arguments {value!r:.80} have no names")
        found |= value if parameter is inspect.Parameter.VAR_KEYWORD else {name: value}
    return found
