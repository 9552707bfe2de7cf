"""Function: what lies between KerasTensors, as a step of models that is no layer."""

from __future__ import annotations

from typing import Any

from ... import nest
from ...core import convert_to_tensor
from ..symbolic.operation import Operation
from .graph import LayerGraph


class Function(Operation):
    """The computation from some KerasTensors to others, to be done again with new values.

    Args:
        inputs: a KerasTensor, or a nest of them.
        outputs: what was computed from them, a KerasTensor or a nest of them.
        name: made up if None.

    Raises:
        ValueError: if an output needs an input that is not given.

    >>> x = tf.keras.Input((2,))
    >>> print(tf.keras.Function(x, 2.0 * x)(tf.constant([[1.0, 3.0]])).numpy())
    [[2. 6.]]
    """

    def __init__(self, inputs: Any, outputs: Any, name: str | None = None) -> None:
        super().__init__(name)
        for role, structure in (("inputs", inputs), ("outputs", outputs)):
            if not nest.flatten(structure):
                raise ValueError(f"Function: `{role}` cannot be empty.")
        self._graph = LayerGraph(inputs, outputs)

    @property
    def operations(self) -> list[Any]:
        """The layers and operations, entrances included."""
        return list(self._graph.operations)

    @property
    def inputs(self) -> list[Any]:
        """The KerasTensors that it begins with."""
        return nest.flatten(self._graph.inputs)

    @property
    def outputs(self) -> list[Any]:
        """The KerasTensors that it leads to."""
        return nest.flatten(self._graph.outputs)

    def call(self, inputs: Any) -> Any:
        """The outputs for values that are nested like the inputs."""
        results = self._graph.run(nest.map_structure(convert_to_tensor, inputs))
        return nest.pack(self._graph.outputs, nest.flatten(results))
