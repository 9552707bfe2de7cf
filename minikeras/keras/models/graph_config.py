"""A graph as plain data in Keras's layout, and back.

Key idea: a tensor is written as the name of its layer, which of its calls made it, and which of the results it is. Reading
repeats the calls, each as soon as the tensors it needs are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import nest
from ...errors import LoadError
from ..layers.input_layer import InputLayer, entrance
from ..layers.keras_tensor import KerasTensor
from ..saving.objects import deserialize_keras_object, serialize_keras_object
from ..saving.registry import CustomObjectScope
from .graph import Graph


def written(graph: Graph) -> dict[str, Any]:
    """`layers` with their calls, `input_layers` and `output_layers`."""
    layers = []
    for operation in graph.operations:
        calls = [] if isinstance(operation, InputLayer) else graph.calls_of(operation)
        nodes = [{"args": _plain(graph, list(node.args)), "kwargs": _plain(graph, node.kwargs)} for node in calls]
        layers.append({**serialize_keras_object(operation), "name": operation.name, "inbound_nodes": nodes})
    return {
        "layers": layers,
        "input_layers": nest.map_structure(lambda x: _end(graph, x), graph.inputs),
        "output_layers": nest.map_structure(lambda x: _end(graph, x), graph.outputs),
    }


def _end(graph: Graph, x: KerasTensor) -> Any:
    """An input or output; Keras counts the calls of a functional model from 1 here."""
    if isinstance(x.node.operation, InputLayer):
        return [x.node.operation.name, 0, 0]
    operation, call, position = graph.place(x)
    return [operation.name, call + _offset(operation), position]


def _offset(operation: Any) -> int:
    return int(getattr(operation, "_layers", None) is not None)


def _plain(graph: Graph, value: Any) -> Any:
    """Arguments of a call, with KerasTensors as plain data."""

    def described(leaf: Any) -> Any:
        if not isinstance(leaf, KerasTensor):
            return leaf
        operation, call, position = graph.place(leaf)
        config = {"shape": list(leaf.shape), "dtype": leaf.dtype.name, "keras_history": [operation.name, call, position]}
        return {"class_name": "__keras_tensor__", "config": config}

    return serialize_keras_object(nest.map_structure(described, value))


class _NotYet(Exception):
    """A tensor is asked for whose call has not been repeated yet."""


class _Reading:
    """The layers that were made so far, and what their calls gave."""

    def __init__(self) -> None:
        self.layers: dict[str, Any] = {}
        self._results: dict[str, list[list[KerasTensor]]] = {}

    def add(self, described: Mapping[str, Any]) -> None:
        """Make a layer."""
        name = described["name"]
        if name in self.layers:
            raise LoadError(f"Could not parse config: two layers are called '{name}'.")
        layer = deserialize_keras_object(
            {key: value for key, value in described.items() if key not in ("name", "inbound_nodes")}
        )
        if not hasattr(layer, "get_config") or not callable(layer):
            raise LoadError(f"Could not parse config: '{name}' must be a layer, found {layer!r:.80}.")
        self.layers[name] = layer
        self._results[name] = [[entrance(layer)]] if isinstance(layer, InputLayer) else []

    def call(self, name: str, described: Any) -> None:
        """Repeat one call."""
        if isinstance(described, Mapping):
            args, kwargs = self._revived(described["args"]), self._revived(described["kwargs"])
        else:  # the layout of the older HDF5 files: [[layer, call, result, kwargs], ...]
            tensors = [self.tensor(*entry[:3]) for entry in described]
            args = [tensors[0] if len(tensors) == 1 else tensors]
            kwargs = self._revived(described[0][3]) if described and len(described[0]) > 3 else {}
        results = self.layers[name](*args, **kwargs)
        self._results[name].append(nest.flatten(results))

    def tensor(self, name: Any, call: Any, position: Any) -> KerasTensor:
        """A tensor by its place."""
        if name not in self.layers:
            raise LoadError(f"Could not parse config: a call refers to layer {name!r}, which is not there.")
        if not isinstance(call, int) or not isinstance(position, int) or call < 0 or position < 0:
            raise LoadError(f"Could not parse config: {[name, call, position]} is no place of a tensor.")
        results = self._results[name]
        if call >= len(results):
            raise _NotYet
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
        """The inputs or outputs of the model."""
        if isinstance(structure, Mapping):
            return {key: self.ends(element) for key, element in structure.items()}
        if isinstance(structure, (list, tuple)) and len(structure) == 3 and isinstance(structure[0], str):
            name, call, position = structure
            try:
                return self.tensor(name, call - _offset(self.layers.get(name)), position)
            except _NotYet:
                raise LoadError(f"Could not parse config: there is no call {call} of '{name}'.") from None
        if isinstance(structure, (list, tuple)):
            return type(structure)(self.ends(element) for element in structure)
        raise LoadError(f"Could not parse config: {structure!r:.80} is no place of a tensor.")


def read(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> tuple[Any, Any]:
    """The inputs and outputs that a configuration describes, between new layers.

    Raises:
        LoadError: if calls refer to what is not there, or to one another in a circle.
    """
    reading = _Reading()
    with CustomObjectScope(custom_objects):
        try:
            for described in config["layers"]:
                reading.add(described)
            waiting = [(described["name"], list(described["inbound_nodes"])) for described in config["layers"]]
            while waiting:
                left = [(name, remaining) for name, calls in waiting if (remaining := _called(reading, name, calls))]
                if left and sum(len(calls) for _, calls in left) == sum(len(calls) for _, calls in waiting):
                    raise LoadError(
                        "Invalid Functional model configuration. The graph has loops or disconnected nodes: the calls of "
                        f"{[name for name, _ in left]} wait for one another."
                    )
                waiting = left
            return reading.ends(config["input_layers"]), reading.ends(config["output_layers"])
        except (KeyError, IndexError) as error:
            raise LoadError(f"Could not parse config: the description of a functional model lacks {error}.") from error


def _called(reading: _Reading, name: str, calls: list[Any]) -> list[Any]:
    """The calls that cannot be repeated yet, after repeating those that can."""
    for position, call in enumerate(calls):
        try:
            reading.call(name, call)
        except _NotYet:
            return calls[position:]
    return []
