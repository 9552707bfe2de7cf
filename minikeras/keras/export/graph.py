"""A program as an ONNX graph: names, nodes, constants, and sizes that are known only when the model runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...types import Array
from .inference import BATCH, OpenProgram, Size, TracedCall, TracedValue, refused

Rule = Callable[["Site"], "str | list[str]"]


class Graph:
    """Nodes and constants of an OpenProgram, as they are added, and the names of its inputs."""

    def __init__(self, program: OpenProgram, names: Sequence[str]) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}
        self.values: dict[int, str] = {}
        self.symbols: dict[Size, str] = {}
        self._sizes: dict[Size, tuple[str, int]] = {}
        self._transposes: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._shared_constants: dict[Any, str] = {}
        self._name_counts: dict[str, int] = {}
        self._prefix = ""
        for value, name in zip(program.inputs, names, strict=True):
            self._name_counts[name] = 1
            self.register(value, name)
            for axis, size in enumerate(value.shape):
                if isinstance(size, Size):
                    self.symbols.setdefault(size, "batch" if size == BATCH else f"{name}_{axis}")

    def translate(self, call: TracedCall, rules: dict[str, Rule]) -> None:
        """Add the nodes of one call; ExportError if there is no rule for it, or none for these options."""
        rule = rules.get(call.name)
        self._prefix = call.layer
        names = rule and rule(Site(self, call))
        if not names or (isinstance(names, str) and len(call.outputs) != 1):
            raise refused(f"computes {call.name}, for which there is no translation to ONNX", call.layer)
        for value, name in zip(call.outputs, [names] if isinstance(names, str) else names, strict=True):
            self.register(value, name)

    def register(self, value: TracedValue, name: str) -> None:
        """Enter a value under its name; open sizes can be read from its shape."""
        self.values[id(value)] = name
        for axis, size in enumerate(value.shape):
            if isinstance(size, Size):
                self._sizes.setdefault(size, (name, axis))

    def name(self, value: TracedValue) -> str:
        """The name of a value; constants get one when they are first read."""
        if id(value) not in self.values:
            if value.array is not None:
                name = self.constant(value.array, value.name)
            else:
                number = self.constant(np.asarray(value.fill, value.dtype))
                name = self.add("Expand", number, self.sizes(value.shape))
            self.register(value, name)
        return self.values[id(value)]

    def unique(self, name: str) -> str:
        """The name, with a number if it is taken."""
        count = self._name_counts[name] = self._name_counts.get(name, 0) + 1
        return name if count == 1 else self.unique(f"{name}_{count}")

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The name of the result of a new node."""
        return self.add_all(operator, 1, *inputs, **attributes)[0]

    def add_all(self, operator: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """The names of all results of a new node."""
        from onnx import helper

        outputs = [self.unique(f"{self._prefix}/{operator}") for _ in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=outputs[0], **attributes))
        return outputs

    def result(self, value: TracedValue, name: str) -> str:
        """The name of an output of the model: the one that is wanted, if it is not taken."""
        from onnx import helper

        name = self.unique(name)
        self.nodes.append(helper.make_node("Identity", [self.name(value)], [name], name=name))
        return name

    def constant(self, array: Array, name: str = "") -> str:
        """The name of a constant; small ones that are equal have one name."""
        equal = None if name or array.size > 16 else (array.dtype.str, array.shape, array.tobytes())
        if equal in self._shared_constants:
            return self._shared_constants[equal]
        unique = self.unique(name or f"{self._prefix}/constant")
        self.constants[unique] = array
        if equal is not None:
            self._shared_constants[equal] = unique
        return unique

    def transposed(self, name: str, order: Sequence[int]) -> str:
        """A value with its axes in another order."""
        order = tuple(int(axis) for axis in order)
        if name in self.constants:
            moved = np.ascontiguousarray(self.constants[name].transpose(order))
            key = (name, order)
            if key not in self._shared_constants:
                self._shared_constants[key] = self.constant(moved, f"{name}_transposed")
            return self._shared_constants[key]
        if name in self._transposes:
            source, earlier = self._transposes[name]
            name, order = source, tuple(earlier[axis] for axis in order)
        if order == tuple(range(len(order))):
            return name
        transposed = self.add("Transpose", name, perm=list(order))
        self._transposes[transposed] = (name, order)
        return transposed

    # Sizes ------------------------------------------------------------------------------------------------------------

    def sizes(self, shape: Sequence[Any]) -> str:
        """A vector of sizes: a constant, or put together when the model runs."""
        if not any(isinstance(size, Size) for size in shape):
            return self.constant(np.asarray(shape, "int64"))
        return self.add("Concat", *[self._size(size) for size in shape], axis=0)

    def _size(self, size: Any) -> str:
        if not isinstance(size, Size):
            return self.constant(np.asarray([size], "int64"))
        if not self.knows(size):
            raise refused("makes a tensor of a size that is not fixed and that no other tensor has", self._prefix)
        name, axis = self._sizes[size]
        return self.add("Shape", name, start=axis, end=axis + 1)

    def number(self, size: Size) -> str:
        """A size as a value without axes."""
        return self.add("Squeeze", self._size(size))

    def knows(self, size: Any) -> bool:
        """True if some value has an axis of that size."""
        return size in self._sizes


class Site:
    """One call that is being translated, and its options."""

    def __init__(self, graph: Graph, call: TracedCall) -> None:
        self.graph, self.call, self.params = graph, call, call.params

    @property
    def result(self) -> TracedValue:
        """The TracedValue that the call gives."""
        return self.call.outputs[0]

    @property
    def tensors(self) -> list[TracedValue]:
        """The inputs that are no Python numbers."""
        return [x for x in self.call.inputs if isinstance(x, TracedValue)]

    @property
    def x(self) -> TracedValue:
        """The first tensor among the inputs."""
        return self.tensors[0]

    @property
    def dtype(self) -> Any:
        """The dtype in which it computes: that of the numbers that go in, not of conditions."""
        return next((x.dtype for x in self.tensors if x.dtype.kind != "b"), self.result.dtype)

    @property
    def names(self) -> list[str]:
        """The names of the inputs; Python numbers become constants."""
        return [self._name(x) for x in self.call.inputs]

    def _name(self, x: Any) -> str:
        if isinstance(x, Size):
            return self.cast(self.graph.number(x), self.dtype)
        return self.graph.name(x) if isinstance(x, TracedValue) else self.number(x)

    def number(self, value: Any, dtype: Any = None) -> str:
        """A constant without axes, of the dtype of the inputs."""
        return self.graph.constant(np.asarray(value).astype(self.dtype if dtype is None else dtype))

    def integers(self, values: Any) -> str:
        """A constant vector of integers."""
        return self.graph.constant(np.asarray(self.fixed(values), "int64").reshape(-1))

    def fixed(self, values: Any) -> Any:
        """Options that have to be the same in every run; ExportError if one depends on a size that is not fixed."""
        for value in values if isinstance(values, (tuple, list)) else (values,):
            if isinstance(value, tuple):
                self.fixed(value)
            elif isinstance(value, Size):
                raise self.refused("with options that depend on a size that is not fixed; give the axis a size")
        return values

    def refused(self, why: str) -> Exception:
        """The error about this call."""
        return refused(f"computes {self.call.name} {why}", self.call.layer)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The name of the result of a new node."""
        return self.graph.add(operator, *inputs, **attributes)

    def cast(self, name: str, dtype: Any) -> str:
        """A value in another dtype."""
        from onnx import helper

        return self.add("Cast", name, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
