"""One run of a model in inference mode as a list of calls of primitives, with the sizes that may vary left open.

Key idea: the model runs twice, on inputs of two sizes and other values. What comes out the same both times is a constant; a
number that differs between the runs is a size that is not fixed. So neither layers nor operations state anything for an
export, and what depends on values where a graph cannot follow is noticed. Next: `graph.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ... import nest
from ...arrays import creation_namespace, to_device, to_numpy
from ...core import Tensor
from ...core.dispatch import decided, drawn, left
from ...core.variable import assigned, read_variable
from ...diagnostics.trace import variable_name
from ...errors import ExportError
from ...types import Array
from ..calls import context
from ..layers.symbolic import Trial

_SHAPE_ONLY = {"zeros_like", "ones_like", "identity_like"}
"""Primitives that look only at the shape of their input."""


@dataclass(frozen=True, slots=True)
class Size:
    """A number that was one thing in the first run and another in the second: the size of an axis that is not fixed."""

    first: int
    second: int


BATCH = Size(2, 3)


def open_size(axis: int) -> Size:
    """The sizes in both runs of an open axis: of each axis others, and far apart, so that what follows from them differs."""
    return BATCH if axis == 0 else Size(128 * axis - 63, 184 * axis - 67)


class Value:
    """A tensor of both runs.

    Attributes:
        shape: its sizes, a Size where they differ.
        dtype: NumPy's.
        array: its elements if they are the same in every run, else None.
        fill: the number that all its elements are, if only the shape differs, else None.
        name: what to call it; the path of a weight.
    """

    __slots__ = ("array", "dtype", "fill", "name", "shape")

    def __init__(self, shape: tuple[Any, ...], dtype: Any, array: Array = None, fill: Any = None, name: str = "") -> None:
        self.shape, self.dtype, self.array, self.fill, self.name = shape, dtype, array, fill, name


class Call(NamedTuple):
    """One primitive that was carried out: in a Recording on Tensors, in a Program on Values; and in which layer."""

    name: str
    inputs: tuple[Any, ...]
    params: dict[str, Any]
    outputs: tuple[Any, ...]
    layer: str


class Program(NamedTuple):
    """What a model computes.

    Attributes:
        inputs: Values that are given.
        calls: in order; their inputs are Values and Python numbers.
        outputs: a nest of Values.
    """

    inputs: list[Value]
    calls: list[Call]
    outputs: Any


class Recording(Trial):
    """A call of a layer or model that leaves no trace but the list of what it computed. An interpreter."""

    sees_all = True

    def __init__(self, operation: Any) -> None:
        super().__init__(operation)
        self.calls: list[Call] = []
        self.paths: dict[int, str] = {}
        self._varying: set[int] = set()
        self._keys: dict[int, int] = {}

    def record(self, inputs: list[Tensor], structure: Any) -> Any:
        """The outputs for a nest of inputs."""
        self._varying.update(x.key for x in inputs)
        self._keys.update((id(x._array), x.key) for x in inputs)
        return self.run(lambda: self._operation(nest.pack(structure, inputs)))

    def key(self, x: Tensor) -> int:
        """The key under which a tensor was computed; it may have been wrapped anew since, around the same array."""
        return self._keys.get(id(x._array), x.key)

    def varies(self, x: Any) -> bool:
        """Whether a value depends on those of the inputs."""
        return isinstance(x, Tensor) and self.key(x) in self._varying

    def process(self, primitive: Any, inputs: Any, params: Any, below: Any) -> Any:
        """Let the level below compute, and note it."""
        if primitive is drawn:
            raise refused("draws random numbers, which an exported graph cannot")
        outputs = super().process(primitive, inputs, params, below)
        results = outputs if type(outputs) is tuple else (outputs,)
        if primitive is read_variable:
            self.paths[results[0].key] = variable_name(inputs[0])
        for y in results:
            if isinstance(y._array, np.ndarray):  # NumPy's True and False are one object for all
                self._keys.setdefault(id(y._array), y.key)
        if primitive.name not in _SHAPE_ONLY and any(map(self.varies, inputs)):
            self._varying.update(y.key for y in results)
        self.calls.append(Call(primitive.name, tuple(inputs), params, results, _layer()))
        return outputs

    def observe(self, primitive: Any, inputs: Any, params: Any, outputs: Any, below: Any) -> None:
        """Refuse what a graph cannot do. A custom gradient is noted by what it computed."""
        super().observe(primitive, inputs, params, outputs, below)
        if primitive in (left, decided) and any(map(self.varies, inputs)):
            how = params.get("conversion", "its values")
            raise refused(f"reads the numbers of a tensor in Python ({how}); what it does with them cannot be exported")
        if primitive is assigned and params["conversion"] != "an initial value":
            raise refused(
                f"assigns the variable '{variable_name(outputs)}' during inference, and an exported graph has no state"
            )


def _layer() -> str:
    return context.caller.path if context.caller is not None else "model"


def refused(why: str, layer: str | None = None) -> ExportError:
    """The error about something that a layer does."""
    return ExportError(f"export: layer '{_layer() if layer is None else layer}' {why}.")


# Two runs ------------------------------------------------------------------------------------------------------------


def program(operation: Any, structure: Any, specs: Sequence[tuple[tuple[int | None, ...], Any]]) -> Program:
    """What a layer or model computes in inference mode.

    Args:
        operation: the layer or model.
        structure: a nest with as many leaves as there are inputs.
        specs: shape (None for an axis of any size) and dtype of each input.

    Raises:
        ExportError: if it does something that a graph cannot do, or another thing for another batch size.
    """
    shapes = [tuple(open_size(axis) if size is None else size for axis, size in enumerate(shape)) for shape, _ in specs]
    runs = []
    for run, seed in enumerate((5, 8)):
        given = [_sample(shape, dtype, run, seed) for shape, (_, dtype) in zip(shapes, specs, strict=True)]
        recording = Recording(operation)
        runs.append((recording, given, recording.record(given, structure)))
    return _Comparison(runs[0][0], runs[1][0]).program(shapes, *((given, outputs) for _, given, outputs in runs))


def _sample(shape: tuple[Any, ...], dtype: Any, run: int, seed: int) -> Tensor:
    """An input: numbers between 0 and 1, which are fit to be looked up when they are cast to integers; zeros of integers."""
    sizes = tuple((size.first, size.second)[run] if isinstance(size, Size) else size for size in shape)
    if dtype.kind not in "biuf":
        raise ExportError(f"export: inputs of dtype {dtype.name} are not available in ONNX models made here.")
    values = np.zeros(sizes) if dtype.kind in "biu" else np.random.Generator(np.random.PCG64(seed)).random(sizes)
    return Tensor(to_device(values.astype(dtype.numpy), creation_namespace()))


class _Comparison:
    """Two recordings of the same operation, read side by side."""

    def __init__(self, first: Recording, second: Recording) -> None:
        self._first, self._second = first, second
        self._values: dict[int, Value] = {}

    def program(self, shapes: Any, first: Any, second: Any) -> Program:
        """What both have in common."""
        (given, results), (_, others) = first, second
        inputs = [Value(shape, x._array.dtype) for shape, x in zip(shapes, given, strict=True)]
        self._values.update((x.key, value) for x, value in zip(given, inputs, strict=True))
        calls = list(self._calls(nest.flatten(results)))
        leaves = [self._value(a, b, "model") for a, b in zip(nest.flatten(results), nest.flatten(others), strict=True)]
        return Program(inputs, calls, nest.pack(results, leaves))

    def _calls(self, results: list[Tensor]) -> Iterator[Call]:
        """The calls that results depend on; losses, for example, are not exported."""
        if [a.name for a in self._first.calls] != [b.name for b in self._second.calls]:
            pairs = itertools.zip_longest(self._first.calls, self._second.calls)
            layer = next((a or b).layer for a, b in pairs if a is None or b is None or a.name != b.name)
            raise refused("computes in another way for another batch size or other values", layer)
        needed = {self._first.key(x) for x in results}
        kept = []
        for a, b in zip(reversed(self._first.calls), reversed(self._second.calls), strict=True):
            if needed.intersection(y.key for y in a.outputs):
                needed.update(self._first.key(x) for x in a.inputs if isinstance(x, Tensor))
                kept.append((a, b))
        for a, b in reversed(kept):
            if not any(map(self._first.varies, a.outputs)) and all(map(_same, a.outputs, b.outputs)):
                for y in a.outputs:
                    self._values[y.key] = _constant(y, self._first.paths.get(y.key, ""))
            else:
                yield self._call(a, b)

    def _call(self, a: Call, b: Call) -> Call:
        inputs = tuple(self._value(x, y, a.layer) for x, y in zip(a.inputs, b.inputs, strict=True))
        outputs = tuple(_open(x, y, a.layer) for x, y in zip(a.outputs, b.outputs, strict=True))
        params = {name: _merged(value, b.params[name], a.layer) for name, value in a.params.items()}
        self._values.update((x.key, value) for x, value in zip(a.outputs, outputs, strict=True))
        return Call(a.name, inputs, params, outputs, a.layer)

    def _value(self, a: Any, b: Any, layer: str) -> Any:
        """An input of a call."""
        if not isinstance(a, Tensor):
            return _merged(a, b, layer)
        known = self._values.get(self._first.key(a))
        if known is not None:
            return known
        if _same(a, b):
            value = _constant(a)
        else:
            value = _open(a, b, layer)
            value.fill = _only_number(a, b)
            if value.fill is None:
                raise refused(
                    f"makes a tensor of shape {tuple(a.shape)} in a way that was not seen, from a size or values", layer
                )
        self._values[a.key] = value
        return value


def _constant(x: Tensor, name: str = "") -> Value:
    array = np.asarray(to_numpy(x._array))
    return Value(tuple(array.shape), array.dtype, array, name=name)


def _open(a: Tensor, b: Tensor, layer: str) -> Value:
    return Value(_merged(tuple(a.shape), tuple(b.shape), layer), a._array.dtype)


def _same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors agree in shape, dtype and every element."""
    x, y = np.asarray(to_numpy(a._array)), np.asarray(to_numpy(b._array))
    return x.dtype == y.dtype and x.shape == y.shape and np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")


def _only_number(a: Tensor, b: Tensor) -> Any:
    """The number that all elements of both are, or None."""
    elements = np.concatenate([np.ravel(to_numpy(x._array)) for x in (a, b)])
    return elements[0] if elements.size and (elements == elements[0]).all() else None


def _merged(a: Any, b: Any, layer: str) -> Any:
    """What two runs have in common: the same, or Sizes where integers differ."""
    if isinstance(a, tuple) and type(a) is type(b) and len(a) == len(b):
        return type(a)(_merged(x, y, layer) for x, y in zip(a, b, strict=True))
    if isinstance(a, slice) and isinstance(b, slice):
        return slice(*(_merged(getattr(a, part), getattr(b, part), layer) for part in ("start", "stop", "step")))
    if type(a) is int and type(b) is int and a != b:
        return Size(a, b)
    if a is b or a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)):
        return a
    raise refused(f"computes with what depends on the batch size or on values: {a!r:.60}, then {b!r:.60}", layer)
