"""Composite instructions are replaced by the operations that they are made of, which then share results, memory and loops.

No formula is written down twice: a kernel runs once on `TracedArray`s, which write an instruction for each operation. The file
that defines a composite instruction registers its rule in `EXPANSIONS`.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...core import Primitive, Record, is_short, operations
from ...types import Array
from ..ir import Program, Slot, instruction, outputs_of, slots_in
from ..loops import KINDS, Code, Untraceable, loop, traced
from .forward_state import changes_variables


@instruction()
def take_at(xp: ModuleType, x: Array, columns: Array) -> Array:
    """The element at one column in each row of a matrix."""
    return x[xp.arange(len(x)), columns]


@instruction()
def add_at(xp: ModuleType, x: Array, columns: Array, number: float) -> Array:
    """A matrix with a number added at one column in each row."""
    result = x.copy()
    result[xp.arange(len(x)), columns] += number
    return result


class TracedArray(NDArrayOperatorsMixin):
    """Stands for an array in a kernel: operations on it are written as instructions.

    Args:
        writer: the `Writer` of the program.
        slot: the value.
    """

    __slots__ = ("_writer", "slot")

    def __init__(self, writer: Any, slot: Slot) -> None:
        self._writer, self.slot = writer, slot

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(self.slot.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.slot.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def max(self, axis: int, keepdims: bool) -> TracedArray:
        """The largest along an axis."""
        return self._reduced(operations.reduce_max, axis, keepdims)

    def sum(self, axis: int | None = None, keepdims: bool = False) -> TracedArray:
        """The sum along an axis, or of all elements."""
        return self._reduced(operations.reduce_sum, axis, keepdims)

    def mean(self, axis: int | None = None, keepdims: bool = False) -> TracedArray:
        """The mean along an axis, or of all elements."""
        return self._reduced(operations.reduce_mean, axis, keepdims)

    def astype(self, dtype: np.dtype[Any], copy: bool = True) -> TracedArray:
        """The elements in another dtype."""
        return self if self.dtype == np.dtype(dtype) else _element_by_element(lambda x: x.astype(dtype), [self])

    def reshape(self, *shape: Any) -> TracedArray:
        """The same elements in another shape; one size may be -1."""
        sizes = shape[0] if type(shape[0]) is tuple else shape
        known = -math.prod(sizes)
        sizes = tuple([math.prod(self.shape) // known if size == -1 else size for size in sizes])
        if sizes == self.shape:
            return self
        return self._write(operations.reshape, [self], sizes, {"shape": sizes, "rank": self.ndim})

    def __getitem__(self, key: Any) -> Any:
        if any(one is None for one in key):
            return self.reshape(self._with_new_axes(key))
        rows, columns = key
        if self.ndim != 2 or columns.shape != self.shape[:1] or not np.array_equal(rows, np.arange(self.shape[0])):
            raise Untraceable("another index than one column for each row")
        return _Elements(self, columns)

    def _with_new_axes(self, key: Sequence[Any]) -> tuple[int, ...]:
        """The shape after an index of None, `...` and `:` alone."""
        if list(key).count(Ellipsis) != 1 or any(one not in (None, Ellipsis) and one != slice(None) for one in key):
            raise Untraceable("a part of an array")
        middle = self.ndim - sum(one == slice(None) for one in key)
        sizes = iter(self.shape)
        found = [[1] if one is None else [next(sizes) for _ in range(middle if one is Ellipsis else 1)] for one in key]
        return tuple(itertools.chain.from_iterable(found))

    def __setitem__(self, key: Any, value: _Elements) -> None:
        self.slot = value.added().slot

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> TracedArray:
        primitive = getattr(operations, ufunc.__name__, None)
        in_place = options.pop("out", operands[:1])[0] is operands[0]
        if method == "__call__" and not options and in_place:
            if ufunc is np.matmul:
                return self._product(*operands)
            if any(isinstance(x, TracedNumber) for x in operands):
                return _element_by_element(ufunc, operands)
        if method != "__call__" or options or not in_place or primitive is None or not primitive.elementwise:
            raise Untraceable(f"{ufunc.__name__} of arrays")
        operands = tuple([x.read() if isinstance(x, _Elements) else x for x in operands])
        arrays = [x for x in operands if isinstance(x, TracedArray)]
        kinds = [x.dtype if isinstance(x, TracedArray) else type(x) for x in operands]
        shape = np.broadcast_shapes(*[x.shape for x in arrays])
        return self._write(primitive, operands, shape, {}, ufunc.resolve_dtypes((*kinds, None))[-1])

    def __array_function__(self, function: Callable[..., Any], types: Any, operands: Any, options: Any) -> TracedArray | int:
        if function is np.broadcast_to and operands[1] == operands[0].shape:
            return operands[0]
        if function is np.where and len(operands) == 3:
            return _element_by_element(np.where, operands)
        if function is np.zeros_like or function is np.ones_like:
            return int(function is np.ones_like)  # it takes the dtype of what it meets
        if function is np.swapaxes and self.ndim == 2 and sorted(axis % 2 for axis in operands[1:]) == [0, 1]:
            return self._write(operations.transpose, [self], self.shape[::-1], {"perm": (-1, -2)})
        raise Untraceable(f"{function.__name__} of arrays")

    def _product(self, a: Any, b: Any) -> TracedArray:
        if not all(isinstance(x, TracedArray) and x.ndim == 2 for x in (a, b)):
            raise Untraceable("a product of other arrays than matrices")
        return self._write(operations.matrix_product, [a, b], (a.shape[0], b.shape[1]), {})

    def _reduced(self, primitive: Primitive, axis: int | None, keepdims: bool) -> TracedArray:
        if axis is None:
            axes = tuple(range(-self.ndim, 0))
            return self._write(primitive, [self], (), {"axes": axes, "keepdims": False}) if self.ndim else self
        axis -= self.ndim if axis >= 0 else 0
        shape = list(self.shape)
        shape[axis : self.ndim + axis + 1] = [1] if keepdims else []
        return self._write(primitive, [self], tuple(shape), {"axes": (axis,), "keepdims": keepdims})

    def _write(
        self,
        primitive: Primitive,
        operands: Any,
        shape: tuple[int, ...],
        params: dict[str, Any],
        dtype: np.dtype[Any] | None = None,
    ) -> TracedArray:
        inputs = [x.slot if isinstance(x, TracedArray) else x for x in operands]
        return TracedArray(self._writer, self._writer.write_once(primitive, inputs, params, shape, dtype or self.dtype))


class TracedNumber(NDArrayOperatorsMixin):
    """Stands for a Python number that differs from run to run, or for a number computed from such numbers.

    Args:
        slots: the numbers.
        build: computes it from the elements that stand for these in a loop.
    """

    __slots__ = ("build", "slots")

    def __init__(self, slots: Sequence[Slot], build: Callable[..., Any] = lambda number: number) -> None:
        self.slots, self.build = tuple(slots), build

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        if method != "__call__" or options.pop("out", operands[:1])[0] is not operands[0] or options:
            raise Untraceable(f"{ufunc.__name__} of numbers")
        if any(isinstance(x, TracedArray) for x in operands):
            return _element_by_element(ufunc, operands)
        slots = _slots_of(operands)
        return TracedNumber(slots, lambda *elements: _on_elements(ufunc, operands, slots, elements))


def _slots_of(operands: Sequence[Any]) -> list[Slot]:
    """The slots that operands are computed from, each once."""
    found = {x.slot.key: x.slot for x in operands if isinstance(x, TracedArray)}
    return [*(found | {slot.key: slot for x in operands if isinstance(x, TracedNumber) for slot in x.slots}).values()]


def _on_elements(function: Callable[..., Any], operands: Sequence[Any], slots: Sequence[Slot], elements: Sequence[Any]) -> Any:
    """A function of operands, given the elements of the slots that they are computed from."""
    known = dict(zip([slot.key for slot in slots], elements, strict=True))

    def element(x: Any) -> Any:
        if isinstance(x, TracedNumber):
            return x.build(*[known[slot.key] for slot in x.slots])
        return known[x.slot.key] if isinstance(x, TracedArray) else x

    return function(*map(element, operands))


def _element_by_element(function: Callable[..., Any], operands: Sequence[Any]) -> TracedArray:
    """An elementwise function as a loop, where no operation is that function: of numbers, `where`, another dtype."""
    slots = _slots_of(operands)
    body = traced(lambda *elements: _on_elements(function, operands, slots, elements), [slot.dtype for slot in slots])
    if body is None:
        raise Untraceable("a function of arrays that is no loop")
    first, *rest = [x for x in operands if isinstance(x, TracedArray)]
    shape = np.broadcast_shapes(first.shape, *[x.shape for x in rest])
    y = first._writer.slot(shape, body.dtypes[body.outputs[0]])
    first._writer.write(loop, slots, {"body": body}, (y,))
    return TracedArray(first._writer, y)


class _Elements(NamedTuple):
    """`x[rows, columns]` and the number added to it: `x[rows, columns] -= 1` reads nothing; an operand is read.

    In graphs each element compares its column, so that it can join a group.
    """

    x: TracedArray
    columns: TracedArray
    number: float = 0

    def __sub__(self, number: float) -> _Elements:
        return self._replace(number=self.number - number)

    def read(self) -> TracedArray:
        if self.x._writer.graphs:
            return self._compared(lambda hit, x: np.where(hit, x, 0)).sum(-1)
        return self.x._write(take_at, [self.x, self.columns], self.columns.shape, {})

    def added(self) -> TracedArray:
        if self.x._writer.graphs:
            return self._compared(lambda hit, x: np.where(hit, x + self.number, x))
        return self.x._write(add_at, [self.x, self.columns], self.x.shape, {"number": self.number})

    def _compared(self, chosen: Callable[[Any, Any], Any]) -> TracedArray:
        writer, count = self.x._writer, self.x.shape[1]

        def each(x: Any, column: Any, place: Any) -> Any:
            at = column.astype(place.dtype)
            return chosen(np.where(at < 0, at + count, at) == place, x)

        return _element_by_element(each, [self.x, self.columns.reshape(-1, 1), TracedArray(writer, writer.numbered(count))])


def inline(writer: Any, record: Record) -> bool:
    """Write the operations of an instruction's kernel in its place, unless it works with 16-bit floats."""
    slots = [*record.inputs, record.outputs]
    if any(not isinstance(x, Slot) or x.order is not None or 0 in x.shape or x.dtype.itemsize < 4 for x in slots):
        return False

    def write() -> None:
        result: TracedArray = record.primitive.kernel(np)(*[TracedArray(writer, x) for x in record.inputs], **record.params)
        writer.renamed[record.outputs.key] = result.slot

    return writer.attempt(write)


Expansion = Callable[["Writer", Record], bool]
"""Writes other instructions instead of one, or returns False."""

EXPANSIONS: dict[Primitive, Expansion] = {}
FOR_GRAPHS: dict[Primitive, Expansion] = {}
"""Expansions that come first where Python code within a step would end a graph; their results are the same to rounding."""


class Writer:
    """Writes the `records` of a program, and its `guards`: functions that say before each run whether they still hold.

    `renamed` holds, by the key of a slot, the one that takes its place; `written` the results of `write_once`. `graphs` says
    whether it is for a graph, whose kernels may sum over each of several flattened arrays; `kernels`, whether loops become
    kernels at all, in which a select costs nothing.
    """

    def __init__(self, program: Program, graphs: bool = False, native: bool = False) -> None:
        self.graphs, self.kernels = graphs, graphs or native
        self.records: list[Record] = []
        self.renamed: dict[int, Slot] = {}
        self.written: dict[Hashable, Slot] = {}
        self.guards: list[Callable[[], bool]] = list(program.guards)
        self._keys = program.unused_keys()
        self._begun = 0
        """The number of instructions in front that `begin` has written."""

    def attempt(self, write: Callable[[], None]) -> bool:
        """Write what a function writes; nothing, and False, if it finds something untraceable."""
        before = {name: copy.copy(held) for name, held in vars(self).items() if name != "_keys"}
        try:
            write()
        except Untraceable:
            vars(self).update(before)
            return False
        return True

    def include(self, program: Program, operands: Sequence[Slot]) -> list[Slot]:
        """Write the instructions of a program, given its arguments; the slots of its results."""
        slots = {mine.key: theirs for mine, theirs in zip(program.arguments, operands, strict=True)}

        def placed(x: Any) -> Any:
            if isinstance(x, Slot) and x.key not in slots:
                slot = slots[x.key] = self.slot(x.shape, x.dtype)
                slot.array, slot.fixed, slot.shares, slot.order = x.array, x.fixed, x.shares, x.order
            return slots[x.key] if isinstance(x, Slot) else x

        for record in program.records:
            outputs = tuple([placed(y) for y in outputs_of(record)])
            results = outputs if type(record.outputs) is tuple else outputs[0]
            self.write(record.primitive, [placed(x) for x in record.inputs], record.params, results)
        return [placed(one) for one in program.results]

    def slot(self, shape: tuple[int, ...] | None, dtype: Any) -> Slot:
        """The slot of a new result; shape None for a Python number."""
        return Slot(next(self._keys), shape, dtype)

    def numbered(self, count: int) -> Slot:
        """The numbers below a count."""
        if count not in self.written:
            self.written[count] = self.slot((count,), np.dtype(np.int64))
            self.written[count].array = np.arange(count)
        return self.written[count]

    def write(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any = ()) -> Any:
        """Write a new instruction; its outputs."""
        self.records.append(Record(primitive, list(inputs), params, outputs))
        return outputs

    def write_once(
        self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Slot:
        """The result of a new instruction, or of an equal one that was written in this way before."""
        operands = [x.key if isinstance(x, Slot) else (type(x), repr(x)) for x in inputs]
        key = primitive, tuple(operands), tuple(sorted(params.items()))
        if key not in self.written:
            self.written[key] = self.write(primitive, inputs, params, self.slot(shape, dtype))
        return self.written[key]

    def begin(self, primitive: Primitive, params: dict[str, Any], outputs: Any) -> None:
        """Write an instruction that reads state alone; it comes before all others if these change none."""
        if self.is_at_beginning:
            self.records.insert(self._begun, Record(primitive, [], params, outputs))
            self._begun += 1
        else:
            self.write(primitive, [], params, outputs)

    @property
    def is_at_beginning(self) -> bool:
        """True if what `begin` writes now comes before all others."""
        return not any(changes_variables(record.primitive) for record in self.records[self._begun :])


def inline_composites(program: Program, graphs: bool = False, native: bool = False) -> Program:
    """The program without composite instructions, where they are on NumPy's arrays."""
    writer = Writer(program, graphs, native)
    EXPANSIONS.setdefault(operations.affine, _taken_apart)
    EXPANSIONS.setdefault(operations.one_hot, _compared)
    for made_of_others in (
        *(operations.softmax, operations.log_softmax, operations.softmax_cross_entropy),
        *(operations.sparse_softmax_cross_entropy, operations.sparse_softmax_cross_entropy_grad),
    ):
        EXPANSIONS.setdefault(made_of_others, inline)
    rules = EXPANSIONS | FOR_GRAPHS if graphs else EXPANSIONS
    for record in program.records:
        rule = rules.get(record.primitive)
        if rule is None or not _on_host(record) or not rule(writer, record):
            writer.records.append(record)
    return program.with_records(writer.records, writer.renamed, guards=writer.guards)


def _taken_apart(writer: Writer, record: Record) -> bool:
    """Write a layer's product and its sum with the bias, which then can fuse with its readers; 16-bit floats round between."""
    x, kernel, bias = record.inputs
    y = record.outputs
    plain = writer.graphs if is_short(y.dtype) else y.dtype.kind in "fc"
    if not plain or not all(isinstance(one, Slot) for one in record.inputs) or min(len(x.shape), len(kernel.shape)) < 2:
        return False
    product = writer.write(operations.matrix_product, [x, kernel], {}, writer.slot(y.shape, y.dtype))
    writer.write(operations.add, [product, bias], {}, y)
    return True


def _compared(writer: Writer, record: Record) -> bool:
    """Write one-hot rows as a loop, where loops become kernels: each index is compared with 0, 1, 2 and so on."""
    (indices,), y, params = record.inputs, record.outputs, record.params
    usual = indices.dtype in (np.int32, np.int64) and y.dtype in (np.float32, np.float64, np.int32, np.int64, np.bool_)
    if not (writer.graphs or (writer.kernels and usual)) or indices.dtype.kind not in "iuf" or y.dtype.kind not in KINDS + "V":
        return False
    index = np.dtype(np.float64 if indices.dtype.kind == "f" else np.int64)
    each = TracedArray(writer, indices).reshape(*indices.shape, 1)
    code = Code([indices.dtype, np.dtype(np.int64)])
    at, place = [x.astype(index) for x in code.elements()]
    numbers = [int(x) if isinstance(x, bool) else x for x in (params["on"], params["off"])]
    chosen = code.step("where", [at == place, *numbers], np.result_type(*numbers)).astype(y.dtype)  # as NumPy chooses of two
    writer.write(loop, [each.slot, writer.numbered(params["depth"])], {"body": code.body([chosen])}, (y,))
    return True


def _on_host(record: Record) -> bool:
    return all(x.xp is np for x in slots_in(record.inputs))
