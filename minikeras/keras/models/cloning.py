"""Copies of models with new weights, and models from JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ... import nest
from ...boundary import explaining
from ...errors import LoadError
from .. import tree
from ..layers.core import InputLayer, entrance
from ..saving.objects import deserialize_keras_object
from ..symbolic import KerasTensor
from .model import Model
from .sequential import Sequential


@explaining
def clone_model(
    model: Any,
    input_tensors: Any = None,
    clone_function: Callable[[Any], Any] | None = None,
    call_function: Callable[..., Any] | None = None,
    recursive: bool = False,
) -> Any:
    """A model of the same structure with new layers and new weights, compiled alike; a subclass is not compiled.

    Args:
        model: Sequential, functional, or a subclass with a configuration.
        input_tensors: KerasTensors to build on instead of new inputs; not for a subclass.
        clone_function: makes the new layer from the old one; from its configuration if None. One that returns its argument
            shares the layers.
        call_function: `call_function(layer, *args, **kwargs)` makes the calls of a functional model.
        recursive: whether `clone_function` also gets the layers of models within.

    Raises:
        ValueError: if a subclass is to be cloned on tensors or by a function.

    >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(3)])
    >>> copy = tf.keras.models.clone_model(model)
    >>> copy.layers[0].kernel is model.layers[0].kernel, copy.count_params()
    (False, 9)
    """
    make = clone_function or (lambda layer: type(layer).from_config(layer.get_config()))

    def cloned(layer: Any) -> Any:
        if recursive and (isinstance(layer, Sequential) or getattr(layer, "_layers", None) is not None):
            return clone_model(layer, None, clone_function, call_function, True)
        return make(layer)

    if isinstance(model, Sequential):
        return _compiled_alike(model, model._clone_chain(input_tensors, cloned))
    if isinstance(model, Model) and model.layer_graph is not None and type(model).__init__ is Model.__init__:
        call = call_function or (lambda layer, *a, **k: layer(*a, **k))
        return _compiled_alike(model, _cloned_graph(model, input_tensors, cloned, call))
    if input_tensors is not None or clone_function is not None:
        raise ValueError(
            f"clone_model: {type(model).__name__} is a subclass with a `call` of its own, so it cannot be built on "
            "`input_tensors` nor cloned layer by layer. Leave both out."
        )
    return type(model).from_config(model.get_config())


def _compiled_alike(model: Any, copy: Any) -> Any:
    """The copy, compiled as the model was: with an optimizer, loss and metrics of its own that have the same options."""
    if model.compiled and (config := model.get_compile_config()) is not None:
        copy.compile_from_config(config)
    return copy


def _cloned_graph(model: Any, input_tensors: Any, cloned: Callable[[Any], Any], call: Callable[..., Any]) -> Any:
    graph = model.layer_graph
    layers = {operation: cloned(operation) for operation in graph.operations if not isinstance(operation, InputLayer)}
    if input_tensors is None:
        inputs = [entrance(InputLayer(**one.node.operation.get_config())) for one in nest.flatten(graph.inputs)]
    else:
        inputs = nest.flatten(input_tensors)
        if nest.is_nested(input_tensors) and nest.is_nested(graph.inputs):
            tree.assert_same_structure(input_tensors, graph.inputs)
        if len(inputs) != len(graph.begins) or not all(isinstance(one, KerasTensor) for one in inputs):
            raise ValueError(
                f"clone_model: the model has {len(graph.begins)} inputs; found input_tensors={input_tensors!r:.200}."
            )
    new = {old.key: x for old, x in zip(graph.begins, inputs, strict=True)}

    def moved(leaf: Any) -> Any:
        return new[leaf.key] if isinstance(leaf, KerasTensor) else leaf

    for node in graph.nodes:
        args, kwargs = nest.map_structure(moved, [node.args, node.kwargs])
        results = call(layers[node.operation], *args, **kwargs)
        new.update(((node.number, position), result) for position, result in enumerate(nest.flatten(results)))
    return type(model)(nest.pack(graph.inputs, inputs), nest.map_structure(moved, graph.outputs), name=model.name)


def model_from_config(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The model that a configuration describes, with new weights.

    Args:
        config: as `serialize_keras_object(model)` gives it.
        custom_objects: further classes and functions by name.

    Raises:
        LoadError: if it describes no model.

    >>> config = tf.keras.saving.serialize_keras_object(tf.keras.Sequential([tf.keras.layers.Dense(3)], name="net"))
    >>> tf.keras.models.model_from_config(config)
    <Sequential name=net, built=False>
    """
    try:
        made = deserialize_keras_object(dict(config), custom_objects)
    except RecursionError:
        raise LoadError("Could not parse config: it is nested too deeply to be that of a model.") from None
    if not isinstance(made, Model):
        raise LoadError(f"Could not parse config: it describes {made!r:.80}, not a model.")
    return made


def model_from_json(json_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The model that `model.to_json()` describes, with new weights. Nothing in the text is imported or run.

    Args:
        json_string: JSON text.
        custom_objects: further classes and functions by name.

    Raises:
        LoadError: if the text is no JSON, or describes no model.
        UnknownObjectError: if it names a class that is not known.

    >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(3)])
    >>> tf.keras.models.model_from_json(model.to_json()).output_shape
    (None, 3)
    """
    try:
        config = json.loads(json_string)
    except (ValueError, TypeError, RecursionError) as error:
        raise LoadError(f"model_from_json: the text is no JSON: {error}.") from None
    if not isinstance(config, Mapping):
        raise LoadError(f"model_from_json: expected a JSON object, found {config!r:.80}.")
    return model_from_config(config, custom_objects)
