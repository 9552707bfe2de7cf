"""A model as plain data, and back: of a functional model its graph, of a subclass the arguments that it was made with.

In a graph, a tensor is written as the name of its layer, which of its calls made it, and which of the results it is. Reading
repeats the calls, each as soon as the tensors it needs are there.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ... import nest
from ...errors import LoadError
from ..layers.core import InputLayer, entrance
from ..layers.layer_weights import set_trainable_alone
from ..saving.objects import deserialize_keras_object, serialize_keras_object
from ..saving.registry import CustomObjectScope
from ..symbolic import KerasTensor
from .graph import LayerGraph


def is_functional(arguments: tuple[Any, ...], options: Mapping[str, Any]) -> bool:
    """True if inputs and outputs were given."""
    return len(arguments) >= 2 or (len(arguments) == 1 and "outputs" in options) or {"inputs", "outputs"} <= set(options)


def functional(arguments: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a functional model by name, those that are None left out."""
    signature = inspect.signature(lambda inputs, outputs, name=None, trainable=None, dtype=None: ...)
    given = signature.bind(*arguments, **options).arguments
    return {key: value for key, value in given.items() if value is not None}


def model_of(cls: Any, config: dict[str, Any], custom_objects: Mapping[str, Any] | None) -> Any:
    """A new model of a class, with new weights, from its configuration."""
    if {"layers", "input_layers", "output_layers"} <= set(config):
        inputs, outputs = _read(config, custom_objects)
        made = cls(inputs=inputs, outputs=outputs, name=config.get("name"))
    else:
        made = cls(**deserialize_keras_object(dict(config), custom_objects))
    set_trainable_alone(made, config.get("trainable") is not False)  # each layer has its own in its configuration
    return made


def subclass_config(model: Any) -> dict[str, Any]:
    """Name, dtype and the like, as far as the class takes them, and the arguments that it was made with, as plain data."""
    kind = type(model)
    accepted = inspect.signature(kind.__init__).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values())
    base = {"name": model.name, "trainable": model._trainable, "dtype": model.dtype_policy.name}
    config = {key: value for key, value in base.items() if key in accepted or open_ended}
    if model.is_overridden("get_config"):  # which adds its own
        return config
    try:
        return config | serialize_keras_object(_by_name(kind, *model._given))
    except (TypeError, ValueError) as error:
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


# Graphs ---------------------------------------------------------------------------------------------------------------


def graph_config(graph: LayerGraph) -> dict[str, Any]:
    """`layers` with their calls, `input_layers` and `output_layers`."""
    layers = []
    for operation in graph.operations:
        calls = [] if isinstance(operation, InputLayer) else graph.calls_of(operation)
        nodes = [{"args": _plain(graph, list(node.args)), "kwargs": _plain(graph, node.kwargs)} for node in calls]
        layers.append(serialize_keras_object(operation))
        layers[-1].update(name=operation.name, inbound_nodes=nodes)  # in its place: what is shared may get a number yet
    return {
        "layers": layers,
        "input_layers": nest.map_structure(lambda x: _end(graph, x), graph.inputs),
        "output_layers": nest.map_structure(lambda x: _end(graph, x), graph.outputs),
    }


def _end(graph: LayerGraph, x: KerasTensor) -> Any:
    """An input or output; Keras counts the calls of a functional model from 1 here."""
    if isinstance(x.node.operation, InputLayer):
        return [x.node.operation.name, 0, 0]
    operation, call, position = graph.place(x)
    return [operation.name, call + _offset(operation), position]


def _offset(operation: Any) -> int:
    return int(getattr(operation, "_layers", None) is not None)


def _plain(graph: LayerGraph, value: Any) -> Any:
    """Arguments of a call, with KerasTensors as plain data."""

    def described(leaf: Any) -> Any:
        if not isinstance(leaf, KerasTensor):
            return leaf
        operation, call, position = graph.place(leaf)
        config = {"shape": list(leaf.shape), "dtype": leaf.dtype.name, "keras_history": [operation.name, call, position]}
        return {"class_name": "__keras_tensor__", "config": config}

    return serialize_keras_object(nest.map_structure(described, value))


class _Reading:
    """The layers that were made so far, and what their calls gave."""

    def __init__(self) -> None:
        self.layers: dict[str, Any] = {}
        self._results: dict[str, list[list[KerasTensor]]] = {}

    def add(self, described: Mapping[str, Any]) -> None:
        name = described["name"]
        if name in self.layers:
            raise LoadError(f"Could not parse config: two layers are called '{name}'.")
        bare = {key: value for key, value in described.items() if key not in ("name", "inbound_nodes")}
        layer = deserialize_keras_object(bare)
        if not hasattr(layer, "get_config") or not callable(layer):
            raise LoadError(f"Could not parse config: '{name}' must be a layer, found {layer!r:.80}.")
        self.layers[name] = layer
        self._results[name] = [[entrance(layer)]] if isinstance(layer, InputLayer) else []

    def call(self, name: str, described: Any) -> None:
        if isinstance(described, Mapping):
            args, kwargs = self._revived(described["args"]), self._revived(described["kwargs"])
        else:  # the layout of the older HDF5 files: [[layer, call, result, kwargs], ...]
            tensors = [self.tensor(*entry[:3]) for entry in described]
            args = [tensors[0] if len(tensors) == 1 else tensors]
            kwargs = self._revived(described[0][3]) if described and len(described[0]) > 3 else {}
        self._results[name].append(nest.flatten(self.layers[name](*args, **kwargs)))

    def has(self, name: Any, call: Any) -> bool:
        """True if a call has been repeated; True as well for what is no call at all, which `tensor` refuses."""
        sound = isinstance(name, str) and type(call) is int and name in self.layers
        return not sound or call < len(self._results[name])

    def tensor(self, name: Any, call: Any, position: Any) -> KerasTensor:
        if not isinstance(name, str) or name not in self.layers:
            raise LoadError(f"Could not parse config: a call refers to layer {name!r}, which is not there.")
        if not isinstance(call, int) or not isinstance(position, int) or call < 0 or position < 0:
            raise LoadError(f"Could not parse config: {[name, call, position]} is no place of a tensor.")
        results = self._results[name]
        if call >= len(results):
            raise LoadError(f"Could not parse config: there is no call {call} of '{name}'.")
        if position >= len(results[call]):
            raise LoadError(
                f"Could not parse config: call {call} of '{name}' has {len(results[call])} results, not {position + 1}."
            )
        return results[call][position]

    def _revived(self, value: Any) -> Any:
        """Arguments of a call, with KerasTensors in the place of their descriptions."""
        if isinstance(value, Mapping):
            if value.get("class_name") == "__keras_tensor__":
                return self.tensor(*value["config"]["keras_history"])
            if "class_name" in value:
                return deserialize_keras_object(value)
            return {key: self._revived(element) for key, element in value.items()}
        return [self._revived(element) for element in value] if isinstance(value, (list, tuple)) else value

    def ends(self, structure: Any) -> Any:
        if isinstance(structure, Mapping):
            return {key: self.ends(element) for key, element in structure.items()}
        if isinstance(structure, (list, tuple)) and len(structure) == 3 and isinstance(structure[0], str):
            name, call, position = structure
            return self.tensor(name, call - _offset(self.layers.get(name)), position)
        if isinstance(structure, (list, tuple)):
            return type(structure)(self.ends(element) for element in structure)
        raise LoadError(f"Could not parse config: {structure!r:.80} is no place of a tensor.")


def _read(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> tuple[Any, Any]:
    """The inputs and outputs that a configuration describes, between new layers."""
    reading = _Reading()
    with CustomObjectScope(custom_objects):
        try:
            for described in config["layers"]:
                reading.add(described)
            _repeat_calls(reading, {described["name"]: list(described["inbound_nodes"]) for described in config["layers"]})
            return reading.ends(config["input_layers"]), reading.ends(config["output_layers"])
        except (KeyError, IndexError) as error:
            raise LoadError(f"Could not parse config: the description of a functional model lacks {error}.") from error


def _repeat_calls(reading: _Reading, calls: Mapping[str, list[Any]]) -> None:
    """Repeat all calls, each layer's in order, and each after those that make what it is called with."""
    done = dict.fromkeys(calls, 0)
    waiting: dict[tuple[str, int], list[str]] = {}
    missing: Counter[str] = Counter()
    ready = list(calls)[::-1]
    while ready:
        name = ready.pop()
        if done[name] == len(calls[name]):
            continue
        described = calls[name][done[name]]
        needed = [place for place in dict.fromkeys(_mentioned(described)) if not reading.has(*place)]
        if needed:
            missing[name] = len(needed)
            for place in needed:
                waiting.setdefault(place, []).append(name)
            continue
        reading.call(name, described)
        ready.append(name)
        done[name] += 1
        for other in waiting.pop((name, done[name] - 1), ()):
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    left = [name for name in calls if done[name] < len(calls[name])]
    if left:
        raise LoadError(
            "Invalid Functional model configuration. The graph has loops or disconnected nodes: the calls of "
            f"{left[:8]} wait for one another, or for calls that are not there."
        )


def _mentioned(described: Any) -> Iterator[tuple[Any, Any]]:
    """Layer and number of each call that the description of a call refers to."""
    if not isinstance(described, Mapping):  # the layout of the older HDF5 files
        yield from ((entry[0], entry[1]) for entry in described)
        described = [entry[3] for entry in described[:1] if len(entry) > 3]
    waiting = [described]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            if value.get("class_name") == "__keras_tensor__":
                name, call, _ = value["config"]["keras_history"]
                yield name, call
            else:
                waiting.extend(value.values())
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)
