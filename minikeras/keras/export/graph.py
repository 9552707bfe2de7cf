"""The computation of a model in inference mode, as a program with the sizes that may vary left open, and as an ONNX graph:
names, nodes, constants, and sizes that are known only when the model runs.

It is recorded twice, on inputs with different sizes and values: an integer that differs is a size, all else is constant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ... import nest
from ...compiler import Program
from ...compiler.ir import Slot, outputs_of
from ...compiler.passes.simplification import eliminate_dead_code, fold_constants
from ...compiler.recorder import Recorder
from ...core import BOTTOM, Frame, Record, State, Tensor, Variable, Write, creation_namespace, to_device, to_numpy
from ...diagnostics import variable_name
from ...errors import ExportError
from ...nn_ops.draws import next_key
from ...types import Array
from ..calls import context
from ..symbolic.trial import Trial


@dataclass(frozen=True, slots=True)
class Size:
    """A number that differs between the two runs: the size of an axis that is not fixed."""

    first: int
    second: int


BATCH = Size(2, 3)


def open_size(axis: int) -> Size:
    """The sizes of an open axis in both runs: different for each axis and far apart, so that results differ, too."""
    return BATCH if axis == 0 else Size(128 * axis - 63, 184 * axis - 67)


@dataclass(slots=True, eq=False)
class TracedValue:
    """A tensor of both runs.

    Attributes:
        shape: its sizes, a Size where they differ.
        dtype: NumPy's.
        array: its elements if they are the same in every run, else None.
        fill: the number that all its elements are, if only the shape differs, else None.
        name: what to call it; the path of a weight.
    """

    shape: tuple[Any, ...]
    dtype: Any
    array: Array = None
    fill: Any = None
    name: str = ""


class TracedCall(NamedTuple):
    """One primitive that was carried out on Values, and in which layer."""

    name: str
    inputs: tuple[Any, ...]
    params: dict[str, Any]
    outputs: tuple[Any, ...]
    layer: str


class OpenProgram(NamedTuple):
    """The program of a model: the input Values, calls on Values and Python numbers in order, and a nest of output Values."""

    inputs: list[TracedValue]
    calls: list[TracedCall]
    outputs: Any


class Inference(Trial):
    """A call of a layer or model in inference mode that leaves no trace but a recorded program.

    An interpreter above the recorder: it notes the layers, and refuses what a graph cannot do.

    Attributes:
        program: the instructions that the outputs depend on. Weights are constants.
        constants: by key of a slot, the values of what was not computed from those of the inputs.
        layers: by key of a result, the path of the layer that computed it.
        names: paths of Variables by the identity of their arrays.
    """

    sees_all = unrolls_loops = True
    only_shapes = False

    def __init__(self, operation: Any, inputs: list[Tensor], structure: Any) -> None:
        super().__init__(operation)
        self.layers: dict[int, str] = {}
        self.names: dict[int, str] = {}
        recorder = self._recorder = Recorder(inputs, strict=False, frozen=True)
        outputs = self.run(lambda: self._operation(nest.pack(structure, inputs)), Frame(recorder, BOTTOM))
        results = [recorder.slot(leaf) for leaf in nest.flatten(outputs)]
        records = [record for record in recorder.records if not record.primitive.effect]
        whole = Program(recorder.arguments, records, results, nest.map_structure(lambda leaf: None, outputs))
        self.program = eliminate_dead_code(whole)
        folded = fold_constants(self.program, math.inf)
        slots = (*self.program.slots(), *folded.slots())
        self.constants = {slot.key: slot.array for slot in slots if slot.array is not None}

    def process(self, primitive: Any, inputs: Sequence[Any], params: dict[str, Any], below: Any) -> Any:
        """Let the level below compute, and note the layer."""
        if State.STREAM in primitive.reads or primitive is next_key:
            raise refused("draws random numbers, which an exported graph cannot")
        outputs = super().process(primitive, inputs, params, below)
        for x in inputs:
            if isinstance(x, Variable):
                self.names[id(x.array)] = variable_name(x)
        for y in outputs if type(outputs) is tuple else (outputs,):
            self.layers[self._recorder.slot(y).key] = _layer()
        return outputs

    def observe(self, primitive: Any, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Any) -> None:
        """Refuse what a graph cannot do. A custom gradient is noted by what it computed."""
        super().observe(primitive, inputs, params, outputs, below)
        if not primitive.repeatable and self._recorder.refusal is not None:
            how = params.get("conversion", "its values")
            raise refused(f"reads the numbers of a tensor in Python ({how}); what it does with them cannot be exported")
        if State.OPERANDS in primitive.writes and params["conversion"] is not Write.INITIAL:
            raise refused(
                f"assigns the variable '{variable_name(outputs)}' during inference, and an exported graph has no state"
            )


def _layer() -> str:
    return context.caller.path if context.caller is not None else "model"


def refused(why: str, layer: str | None = None) -> ExportError:
    """The error about something that a layer does."""
    return ExportError(f"export: layer '{_layer() if layer is None else layer}' {why}.")


# Two runs ------------------------------------------------------------------------------------------------------------


def program(operation: Any, structure: Any, specs: Sequence[tuple[tuple[int | None, ...], Any]]) -> OpenProgram:
    """The program of a layer or model in inference mode, on inputs with these shapes (None for an axis of any size) and dtypes.

    Raises:
        ExportError: if it does something that a graph cannot do, or another computation for another batch size.
    """
    shapes = [tuple(open_size(axis) if size is None else size for axis, size in enumerate(shape)) for shape, _ in specs]
    runs = []
    for run, seed in enumerate((5, 8)):
        given = [_sample(shape, dtype, run, seed) for shape, (_, dtype) in zip(shapes, specs, strict=True)]
        runs.append(Inference(operation, given, structure))
    return _Comparison(*runs).program(shapes)


def _sample(shape: tuple[Any, ...], dtype: Any, run: int, seed: int) -> Tensor:
    """An input: numbers between 0 and 1, which are fit to be looked up when they are cast to integers; zeros of integers."""
    sizes = tuple((size.first, size.second)[run] if isinstance(size, Size) else size for size in shape)
    if dtype.kind not in "biuf":
        raise ExportError(f"export: inputs of dtype {dtype.name} are not available in ONNX models made here.")
    values = np.zeros(sizes) if dtype.kind in "biu" else np.random.Generator(np.random.PCG64(seed)).random(sizes)
    return Tensor(to_device(values.astype(dtype.numpy), creation_namespace()))


class _Comparison:
    """Two runs of the same operation, read side by side."""

    def __init__(self, first: Inference, second: Inference) -> None:
        self._first, self._second = first, second
        self._values: dict[int, TracedValue] = {}

    def program(self, shapes: Sequence[tuple[Any, ...]]) -> OpenProgram:
        """The program that both recordings share, for inputs of these shapes."""
        first, second = self._first.program, self._second.program
        inputs = [TracedValue(shape, slot.dtype) for shape, slot in zip(shapes, first.arguments, strict=True)]
        self._values.update((slot.key, value) for slot, value in zip(first.arguments, inputs, strict=True))
        calls = list(self._calls())
        results = zip(first.results, second.results, strict=True)
        return OpenProgram(inputs, calls, nest.pack(first.structure, [self._value(a, b, "model") for a, b in results]))

    def _calls(self) -> Iterator[TracedCall]:
        """The instructions of both, as one; without those whose results are the same constants."""
        pairs = list(itertools.zip_longest(self._first.program.records, self._second.program.records))
        for a, b in pairs:
            if a is None or b is None or a.primitive is not b.primitive:
                layer = _layer_of(b, self._second) if a is None else _layer_of(a, self._first)
                raise refused("computes in another way for another batch size or other values", layer)
        for a, b in pairs:
            constants = [self._common_constant(x, y) for x, y in zip(outputs_of(a), outputs_of(b), strict=True)]
            if None in constants:
                yield self._call(a, b, _layer_of(a, self._first))
            else:
                self._values.update((x.key, value) for x, value in zip(outputs_of(a), constants, strict=True) if value)

    def _call(self, a: Record, b: Record, layer: str) -> TracedCall:
        inputs = tuple(self._value(x, y, layer) for x, y in zip(a.inputs, b.inputs, strict=True))
        outputs = tuple(_open(x, y, layer) for x, y in zip(outputs_of(a), outputs_of(b), strict=True))
        params = {name: _merged(value, b.params[name], layer) for name, value in a.params.items()}
        self._values.update((x.key, value) for x, value in zip(outputs_of(a), outputs, strict=True))
        return TracedCall(a.primitive.name, inputs, params, outputs, layer)

    def _value(self, a: Any, b: Any, layer: str) -> Any:
        """An operand, or a result of the model."""
        if not isinstance(a, Slot):
            return _merged(a, b, layer)
        if a.key not in self._values:
            self._values[a.key] = self._common_constant(a, b) or self._repeated_number(a, b, layer)
        return self._values[a.key]

    def _common_constant(self, a: Slot, b: Slot) -> TracedValue | None:
        """The constant that two slots hold, or None if they hold different ones."""
        if a.key not in self._first.constants or b.key not in self._second.constants:
            return None
        x, y = self._arrays(a, b)
        same = x.dtype == y.dtype and x.shape == y.shape and np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")
        return TracedValue(tuple(x.shape), x.dtype, x, name=self._first.names.get(id(a.array), "")) if same else None

    def _repeated_number(self, a: Slot, b: Slot, layer: str) -> TracedValue:
        """A tensor that Python made by repeating one number."""
        elements = np.concatenate([np.ravel(array) for array in self._arrays(a, b)])
        if not elements.size or (elements != elements[0]).any():
            raise refused(f"makes a tensor of shape {a.shape} in a way that was not seen, from a size or values", layer)
        value = _open(a, b, layer)
        value.fill = elements[0]
        return value

    def _arrays(self, a: Slot, b: Slot) -> tuple[Array, Array]:
        first, second = self._first.constants[a.key], self._second.constants[b.key]
        return np.asarray(to_numpy(first)), np.asarray(to_numpy(second))


def _layer_of(record: Record, run: Inference) -> str:
    return run.layers.get(outputs_of(record)[0].key, "model")


def _open(a: Slot, b: Slot, layer: str) -> TracedValue:
    return TracedValue(_merged(a.shape, b.shape, layer), a.dtype)


def _merged(a: Any, b: Any, layer: str) -> Any:
    """The value that two runs share, with Sizes where integers differ."""
    if isinstance(a, tuple) and type(a) is type(b) and len(a) == len(b):
        return type(a)(_merged(x, y, layer) for x, y in zip(a, b, strict=True))
    if isinstance(a, slice) and isinstance(b, slice):
        return slice(*(_merged(getattr(a, part), getattr(b, part), layer) for part in ("start", "stop", "step")))
    if type(a) is int and type(b) is int and a != b:
        return Size(a, b)
    if a is b or a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)):
        return a
    raise refused(f"computes with what depends on the batch size or on values: {a!r:.60}, then {b!r:.60}", layer)


# The graph of ONNX -------------------------------------------------------------------------------------------------------

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

    dtype = property(lambda self: next((x.dtype for x in self.tensors if x.dtype.kind != "b"), self.result.dtype))
    """The dtype in which it computes: that of the numbers that go in, not of conditions."""

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
