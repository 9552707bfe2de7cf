"""From the instructions of a program to kernels over places in a list of addresses; the rest stays calls of NumPy.

Places are known once all calls are, so a call keeps a function that gives its operands when it is told them.
"""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....arrays.philox4x32 import threshold
from ....core import Record
from ....core.effects import only_checks
from ....core.registry import operations
from ....types import Array
from ...ir import Program, Slot, outputs_of, slots_in, slots_of
from ...loops import Body, Step, body_of, elementwise_body
from ...passes.inlining import add_at, take_at
from ...planning.flat_variables import part
from ..numpy.blocks import copied, put
from ..numpy.calls import Bind, Call, Flatten, Lowered, ReadFlat, View
from ..numpy.lowering import Lowering
from . import blas
from .draws import DrawKernel, NextKeyKernel
from .functions import LIBRARY, is_known
from .kernels import ArgmaxKernel, IndexKernel, Kind, LoopKernel, Output, ProductKernel, Result, supports_body
from .phases import in_phases

Address = Callable[[Slot], int]
"""The place of a slot in the list of addresses."""
Operands = Callable[[Address], list[int]]
"""The operands of a kernel, once places are known."""

BOUND = 1 << 12
"""Bytes from which an argument is read where it lies: to copy fewer takes no longer than to ask for their address."""
SHARED = 10e-6
"""Seconds that an instruction takes at least for its parts to be shared among threads, which costs up to 1 us."""


class KernelCall(Call):
    """A kernel.

    Its operands and results lie in memory whose address is known; results that leave the program are copied.

    Attributes:
        kernel: writes it.
        places: its operands, from the places of slots.
        seconds: what it takes one thread, roughly; 0 for one that cannot be shared.
    """

    addressed = True
    __slots__ = ("kernel", "places", "seconds")

    def __init__(
        self,
        kernel: Any,
        places: Operands,
        operands: Sequence[Any],
        results: Sequence[Slot],
        record: Record,
        may_alias: Sequence[Sequence[int]] = (),
        seconds: float = 0.0,
    ) -> None:
        super().__init__(_never, operands, results, record, may_alias)
        self.kernel, self.places, self.seconds = kernel, places, seconds


def _never(*arrays: Any) -> None:
    raise AssertionError("a kernel carries it out, within a segment")


def bits(number: float) -> int:
    """The bits of a float64, as an integer."""
    return int(np.float64(number).view(np.int64))


def encode(program: Program) -> list[Lowered]:
    """The calls that carry out a program, as kernels where there are any."""
    encoder = Encoder(program, Lowering(program))
    for record in _checks_first(program):
        encoder.encode(record)
    return in_phases(list(encoder.calls()))


def supports(record: Record) -> bool:
    """Whether there may be a kernel for an instruction; shapes and dtypes decide."""
    slots = slots_of(record)
    return all(x.xp is np for x in slots) and (record.primitive in _encoders() or elementwise_body(record)[1] is not None)


class Encoder:
    """Turns instructions into kernels where there are any.

    Args:
        program: where they come from.
        lowering: takes the others.
    """

    def __init__(self, program: Program, lowering: Lowering) -> None:
        self._numpy = lowering
        self.temporary, self._found = self._numpy.temporary, self._numpy.found
        self._addressed: set[int] = {slot.key for slot in program.slots() if _is_constant(slot)}
        """Slots that lie without gaps in memory whose address is known before the run."""
        self._transposed: dict[int, Slot] = {}
        """Matrices that are transposes of others."""
        self._copies: dict[tuple[int, Any], Slot] = {}
        self._loops: dict[int, LoopCall] = {}
        """The loops that make slots."""
        self._readers = collections.Counter(x.key for record in program.records for x in slots_in(record.inputs))
        self._readers.update(x.key for x in slots_in(program.results))
        self._wanted = {x.key for x in slots_in(program.results)}
        self._is_step = any("optimizer" in record.params for record in program.records)
        """Whether all is to be one segment, numbers included: what a training step changes is then written in one call."""
        self._staged: dict[int, list[Lowered]] = {}
        """What brings operands to a known address, by the key of what it brings."""

    def encode(self, record: Record) -> None:
        """Write the calls of one instruction."""
        encode = _encoders().get(record.primitive)
        slots = slots_of(record)
        if all(x.xp is np for x in slots) and (
            (encode is not None and encode(self, record)) or (encode is None and self._elementwise(record))
        ):
            return
        first = len(self._found)
        self._numpy.lower(record)
        for call in self._found[first:]:
            self._note(call)

    def _note(self, call: Lowered) -> None:
        """Remember where results lie."""
        if isinstance(call, View):
            (x,), (y,) = call.operands, call.results
            if call.record.primitive is operations.transpose:
                if len(x.shape) == 2 and x.order is None:
                    self._transposed[y.key] = x
            elif call.record.primitive in (operations.reshape, part) and self._has_views(x) and y.shape != ():
                self._addressed.add(y.key)
        elif isinstance(call, Call):
            self._addressed.update(y.key for y in call.results if y.shape not in ((), None) and y.order is None)
        elif isinstance(call, (Flatten, ReadFlat)):
            self._addressed.update(y.key for y in call.results)

    def _has_views(self, x: Slot) -> bool:
        """Whether the plan knows where views of a slot lie: it knows no memory of constants."""
        return x.key in self._addressed and x.array is None

    def operand(self, x: Slot, record: Record, dtype: Any = None) -> Slot:
        """The slot, or another with its values that lie without gaps, in a dtype if one is wanted."""
        wanted = x.dtype if x.dtype is not float else np.dtype(np.float64)
        wanted = dtype or wanted
        if x.key in self._addressed and x.dtype == wanted:
            return x
        found = self._copies.get((x.key, wanted))
        if found is None and x.array is not None:
            found = self.constant(np.ascontiguousarray(x.array, wanted).reshape(x.shape))
        elif found is None:
            found = self.temporary(x.shape or (), wanted)
            self._addressed.add(found.key)
            self._staged.setdefault(x.key, []).append(_brought(x, found, record))
        self._copies[x.key, wanted] = found
        return found

    def constant(self, array: Array) -> Slot:
        """A slot with the same values in each run."""
        slot = self.temporary(array.shape, array.dtype)
        slot.array = array
        self._addressed.add(slot.key)
        return slot

    def matrix(self, x: Slot, record: Record, dtype: Any) -> tuple[Slot, int]:
        """A matrix as a product takes it: a slot, and 1 if that holds it transposed."""
        base = self._transposed.get(x.key)
        if base is None or (x.key in self._addressed and x.dtype == dtype):
            return self.operand(x, record, dtype), 0
        found, turned = self.matrix(base, record, dtype)
        return found, 1 - turned

    def calls(self) -> Iterator[Lowered]:
        """All calls but views that nothing reads; operands are brought early, where they cut no segment in two."""
        waiting = dict(self._staged)
        made = {y.key for call in self._found for y in call.results}
        read = self._wanted | {x.key for call in self._found for x in slots_in(call.operands)}
        read |= {x.key for calls in waiting.values() for call in calls for x in slots_in(call.operands)}
        for key in [key for key in waiting if key not in made]:
            yield from waiting.pop(key)
        for call in self._found:
            if not isinstance(call, View) or call.results[0].key in read:
                yield call
            for y in call.results:
                yield from waiting.pop(y.key, ())

    def add(self, call: KernelCall) -> None:
        """Write a call, whose results then lie at a known address."""
        self._found.append(call)
        self._addressed.update(y.key for y in call.results)

    # Loops -----------------------------------------------------------------------------------------------------------------

    def _elementwise(self, record: Record) -> bool:
        shape, body = elementwise_body(record)
        if body is None or not body.steps:
            return False
        slots = slots_in(record.inputs)
        if not any(x.key in self._addressed for x in slots) and (len(body.steps) == 1 or shape == ()) and not self._is_step:
            return False  # nothing would be saved
        if not can_loop(body, math.prod(shape)) or any(y.order is not None for y in outputs_of(record)):
            return False
        split = split_of(shape, [x.shape or () for x in slots])
        if split is None:
            return False
        self.add_loop(LoopCall(body, split, [self.operand(x, record) for x in slots], record))
        return True

    def add_loop(self, call: LoopCall) -> None:
        """Write a loop, which may then also add up what it makes."""
        self.add(call)
        self._loops |= {y.key: call for y in call.results}

    def reduce(self, record: Record, x: Slot, result: Slot, largest: bool = False) -> bool:
        """A sum or maximum along neighbouring axes, at the end of the loop that makes its operand, if there is one."""
        split = sum_split(x.shape, sorted(axis % len(x.shape) for axis in record.params["axes"]))
        if x.dtype.kind != "f" or x.dtype.itemsize < 4 or split is None or x.order is not None:
            return False
        if largest:
            rows, columns, how = split
            if how is Result.OVER_ROWS or not columns:
                return False
            split = rows, columns, Result.LARGEST_OF_ROW
        loop = self._loops.get(x.key)
        if loop is not None and loop.add_reduction(x, result, split, self._readers[x.key] == 1):
            self._addressed.add(result.key)
        else:
            self.add(_reduction(split, self.operand(x, record), result, record))
        return True


def _is_constant(slot: Slot) -> bool:
    array = slot.array
    return isinstance(array, np.ndarray) and array.flags.c_contiguous and array.shape != ()


def _checks_first(program: Program) -> list[Record]:
    """Checks of arguments come first, so that they cut no segment in two."""
    given = {slot.key for slot in program.arguments}
    return sorted(program.records, key=lambda one: not (only_checks(one.primitive) and one.inputs[0].key in given))


def _brought(x: Slot, found: Slot, record: Record) -> Lowered:
    """What brings values to a known address."""
    if x.shape and x.bytes >= BOUND and x.dtype == found.dtype:
        return Bind(x, found, record)
    return Call(copied if x.shape else put, [x], [found], record)


# Rows: by primitive -------------------------------------------------------------------------------------------------------


def _product(encoder: Encoder, record: Record) -> bool:
    a, b = record.inputs
    y = record.outputs
    if not (isinstance(a, Slot) and isinstance(b, Slot)) or not len(a.shape) == len(b.shape) == 2 or y.order is not None:
        return False
    (m, k), n = a.shape, b.shape[1]
    if y.dtype not in (np.float32, np.float64) or max(m, n, k) >= 1 << 31:
        return False
    (one, turned_a), (other, turned_b) = [encoder.matrix(x, record, y.dtype) for x in (a, b)]
    # Each thread packs what all threads need: the smaller one of the two.
    numbers = [m, n, k, turned_a, turned_b, blas.gemm(y.dtype), int(m > n)]

    def places(address: Address) -> list[int]:
        return [address(y), address(one), address(other), *numbers]

    seconds = 2.0 * m * n * k / (1e11 if y.dtype == np.float32 else 5e10) if blas.on_one_thread() is not None else 0.0
    encoder.add(KernelCall(ProductKernel(y.dtype), places, [one, other], [y], record, seconds=seconds))
    return True


def _sum(encoder: Encoder, record: Record) -> bool:
    return encoder.reduce(record, record.inputs[0], record.outputs)


def _max(encoder: Encoder, record: Record) -> bool:
    return encoder.reduce(record, record.inputs[0], record.outputs, largest=True)


def _mean(encoder: Encoder, record: Record) -> bool:
    x, y = record.inputs[0], record.outputs
    count = math.prod(x.shape[axis] for axis in record.params["axes"])
    total = encoder.temporary(y.shape, y.dtype)
    if not count or not encoder.reduce(record, x, total):
        return False

    division = body_of(operations.divide, [total.dtype, count], {})
    assert division is not None
    encoder.add(LoopCall(division, (1, math.prod(y.shape), [Kind.FULL]), [total], record))
    return True


def _at_columns(adds: bool) -> Callable[[Encoder, Record], bool]:
    """An element of each row, read or added to."""

    def encode(encoder: Encoder, record: Record) -> bool:
        x, columns = record.inputs
        y = record.outputs
        if x.dtype not in (np.float32, np.float64) or columns.dtype.kind not in "iu" or y.order is not None:
            return False
        index = columns.dtype if columns.dtype in (np.int32, np.int64) else np.dtype(np.int64)
        operands = [encoder.operand(x, record), encoder.operand(columns, record, index)]
        number = bits(record.params["number"]) if adds else 0

        def places(address: Address) -> list[int]:
            return [address(y), *map(address, operands), *x.shape, number]

        kernel = IndexKernel(x.dtype, index, adds)
        encoder.add(KernelCall(kernel, places, operands, [y], record, [(0,)] if adds else ()))
        return True

    return encode


def _argmax(encoder: Encoder, record: Record) -> bool:
    x, y = record.inputs[0], record.outputs
    axis, dtype = record.params["axis"], np.dtype(record.params["dtype"])
    last = isinstance(axis, int) and axis % max(len(x.shape), 1) == len(x.shape) - 1
    if not last or 0 in x.shape or not is_known(x.dtype) or x.dtype.kind == "b" or dtype not in (np.int32, np.int64):
        return False
    if y.shape == () or y.order is not None:
        return False
    source, shape = encoder.operand(x, record), (math.prod(x.shape[:-1]), x.shape[-1])
    kernel = ArgmaxKernel(x.dtype, dtype)
    encoder.add(KernelCall(kernel, lambda address: [address(y), address(source), *shape], [source], [y], record))
    return True


def _one_hot(encoder: Encoder, record: Record) -> bool:
    """Each index compared with 0, 1, 2 and so on."""
    (indices,), y = record.inputs, record.outputs
    depth, on, off = [record.params[name] for name in ("depth", "on", "off")]
    if not is_known(indices.dtype) or indices.dtype.kind != "i" or not is_known(y.dtype) or y.order is not None or 0 in y.shape:
        return False
    places = encoder.constant(np.arange(depth, dtype=indices.dtype))
    steps = Step(4, "equal", (0, 1), np.dtype(bool)), Step(5, "where", (4, 2, 3), y.dtype)
    body = Body((indices.dtype, indices.dtype), ((2, on), (3, off)), (), steps, (5,))
    if not _known(body):
        return False
    split = math.prod(y.shape[:-1]), depth, [Kind.COLUMN, Kind.ROW]
    encoder.add_loop(LoopCall(body, split, [encoder.operand(indices, record), places], record))
    return True


def _next_key(encoder: Encoder, record: Record) -> bool:
    y, key, count = record.outputs, encoder.operand(record.inputs[0], record), math.prod(record.outputs.shape[:-1])
    encoder.add(KernelCall(NextKeyKernel(y.dtype), lambda address: [address(y), address(key), count], [key], [y], record))
    return True


def _drawn(is_mask: bool) -> Callable[[Encoder, Record], bool]:
    """A mask of dropout, or uniform numbers."""

    def encode(encoder: Encoder, record: Record) -> bool:
        (given,), y = record.inputs, record.outputs
        if y.dtype not in (np.float32, np.float64) or record.params["xp"] is not np or given.shape != (2,) or y.shape == ():
            return False
        key, numbers = encoder.operand(given, record), [math.prod(y.shape)]
        if is_mask:
            rate = record.params["rate"]
            numbers += [threshold(rate), bits(1.0 / (1.0 - rate))]
        kernel = DrawKernel(key.dtype, y.dtype, is_mask)
        seconds = y.bytes / y.dtype.itemsize / 1.5e9
        encoder.add(KernelCall(kernel, lambda address: [address(y), address(key), *numbers], [key], [y], record, (), seconds))
        return True

    return encode


@functools.cache
def _encoders() -> dict[Any, Callable[[Encoder, Record], bool]]:
    return {
        operations.matrix_product: _product,
        operations.reduce_sum: _sum,
        operations.reduce_max: _max,
        operations.reduce_mean: _mean,
        operations.argmax: _argmax,
        operations.one_hot: _one_hot,
        take_at: _at_columns(False),
        add_at: _at_columns(True),
        operations.next_key: _next_key,
        operations.dropout_mask: _drawn(True),
        operations.random_uniform: _drawn(False),
    }


# Loops and sums ----------------------------------------------------------------------------------------------------------

LARGEST_LIBRARY = 1 << 12
"""Elements of the largest loop with a function that NumPy has in vectorized form and kernels have not."""
LARGEST_TOTAL = 1 << 17
"""Elements of the largest loop that also adds all up, which one thread carries out; other sums are shared."""

Split = tuple[int, int, list[Kind]]
"""Rows, columns, and how each operand lies in them."""


class LoopCall(KernelCall):
    """A body for rows times columns elements, with sums and maxima of what it makes.

    Args:
        body: what is done.
        split: how the operands lie.
        operands: slots.
        record: the instruction.
    """

    __slots__ = ("_body", "_kinds", "_outputs", "_shape")

    def __init__(self, body: Body, split: Split, operands: Sequence[Slot], record: Record) -> None:
        self._body, (rows, columns, self._kinds) = body, split
        self._shape = rows, columns
        results = list(outputs_of(record))
        self._outputs = [(y, Output(register, Result.STORE)) for y, register in zip(results, body.outputs, strict=True)]
        whole = [number for number, kind in enumerate(self._kinds) if kind is Kind.FULL]
        super().__init__(None, self._places, operands, results, record, [whole] * len(results))
        self._settle()

    def add_reduction(self, x: Slot, result: Slot, split: tuple[int, int, Result], alone: bool) -> bool:
        """Reduce a result too, if the loop can; with `alone` no other instruction reads it, and it is not even stored."""
        rows, columns, how = split
        if how is Result.OVER_ALL and rows * columns >= LARGEST_TOTAL:
            return False
        if not (self._is_flat or how is Result.OVER_ALL or (rows, columns) == self._shape):
            return False
        if self._is_flat and how is not Result.OVER_ALL:
            self._shape = rows, columns
        number = next(number for number, (y, _) in enumerate(self._outputs) if y is x)
        output = result, Output(self._outputs[number][1].register, how)
        if alone:
            self._outputs[number], self.results[number], self.may_alias[number] = output, result, ()  # type: ignore[index]
        else:
            self._outputs.append(output)
            self.results.append(result)  # type: ignore[attr-defined]
            self.may_alias.append(())  # type: ignore[attr-defined]
        self._settle()
        return True

    @property
    def _hows(self) -> set[Result]:
        return {output.how for _, output in self._outputs}

    @property
    def _is_flat(self) -> bool:
        """Whether rows and columns do not matter."""
        return not ({Kind.ROW, Kind.COLUMN} & set(self._kinds)) and self._hows <= {Result.STORE, Result.OVER_ALL}

    def _settle(self) -> None:
        """Choose the kernel for the outputs by now, and whether its parts are rows, columns or one."""
        along_rows = self._hows & {Result.OVER_COLUMNS, Result.LARGEST_OF_ROW}
        across = Result.OVER_ROWS in self._hows
        by_rows = not self._is_flat and not across
        self.kernel = LoopKernel(self._body, self._kinds, [output for _, output in self._outputs], by_rows)
        size = math.prod(self._shape)
        traffic = size * sum(x.dtype.itemsize for x in (*self.operands, *self.results))
        whole = (along_rows and across) or Result.OVER_ALL in self._hows
        self.seconds = 0.0 if whole else traffic / 4e10 + size * len(self._body.steps) / 4e10

    def _places(self, address: Address) -> list[int]:
        shape = (1, math.prod(self._shape)) if self._is_flat else self._shape
        results = [address(y) for y, _ in self._outputs]
        return [*shape, *map(address, self.operands), *results, *[bits(value) for _, value in self._body.literals]]


def _reduction(split: tuple[int, int, Result], x: Slot, result: Slot, record: Record) -> KernelCall:
    """A sum or maximum along neighbouring axes: a loop without steps."""
    rows, columns, how = split
    kernel = LoopKernel(Body((x.dtype,), (), (), (), (0,)), [Kind.FULL], [Output(0, how)], how is not Result.OVER_ROWS)
    seconds = 0.0 if how is Result.OVER_ALL else x.bytes / 4e10
    return KernelCall(kernel, lambda address: [rows, columns, address(x), address(result)], [x], [result], record, (), seconds)


@functools.lru_cache(4096)
def _known(body: Body) -> bool:
    dtypes = [*[dtype for dtype in body.inputs if dtype is not float], *[step.dtype for step in body.steps]]
    return all(map(is_known, dtypes)) and supports_body(body)


def can_loop(body: Body, size: int) -> bool:
    """Whether there is a kernel for a body."""
    if size > LARGEST_LIBRARY and any(step.function in LIBRARY for step in body.steps):
        return False
    return _known(body)


def split_of(shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> Split | None:
    """Rows, columns, and how each operand lies in them; None if two axes cannot say it."""
    for at in range(len(shape) + 1):
        kinds = [_kind(shape, (1,) * (len(shape) - len(one)) + one, at) for one in operands]
        if all(kind is not None for kind in kinds):
            return math.prod(shape[:at]), math.prod(shape[at:]), [kind for kind in kinds if kind is not None]
    return None


def _kind(shape: tuple[int, ...], own: tuple[int, ...], at: int) -> Kind | None:
    if own == shape:
        return Kind.FULL
    if math.prod(own) == 1:
        return Kind.SCALAR
    if math.prod(own[:at]) == 1 and own[at:] == shape[at:]:
        return Kind.ROW
    if math.prod(own[at:]) == 1 and own[:at] == shape[:at]:
        return Kind.COLUMN
    return None


def sum_split(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, int, Result] | None:
    """Rows, columns and the kind of a sum along these axes."""
    count = len(shape)
    if list(axes) == list(range(count)):
        return 1, math.prod(shape), Result.OVER_ALL
    if list(axes) == list(range(len(axes))):
        return math.prod(shape[: len(axes)]), math.prod(shape[len(axes) :]), Result.OVER_ROWS
    if list(axes) == list(range(count - len(axes), count)):
        return math.prod(shape[: count - len(axes)]), math.prod(shape[count - len(axes) :]), Result.OVER_COLUMNS
    return None
