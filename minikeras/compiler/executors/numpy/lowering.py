"""Instructions as calls of NumPy functions that write into given memory, so that it can be planned before the first run.

An instruction without a row here makes its own arrays, as in an eager run.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ....core import Primitive, Record, State, is_short, operations
from ....core.ops.contractions import LONG
from ....parallel import WORTHWHILE, product
from ...ir import Program, Slot, outputs_of, slots_in, slots_of
from ...loops import Body, Step, loop_of
from ...passes.inlining import add_at, take_at
from ...variable_storage import assign_flat, flats_of, flatten, part, read_flat, variables_of
from .blocks import BlockLoop, Uses, copied, put, writing

# What instructions are lowered to: calls, each with operands, results and the instruction that it comes from.


class LoweredOp:
    """An instruction, or a part of one.

    Attributes:
        operands: slots, Variables and Python numbers.
        results: slots.
        record: the instruction that it comes from.
        quiet: whether it runs without NumPy's warnings, as kernels do and effects do not; None if NumPy cannot warn.
    """

    quiet: bool | None = None

    def __init__(self, operands: Sequence[Any], results: Sequence[Slot], record: Record) -> None:
        self.operands, self.results, self.record = operands, results, record


class Call(LoweredOp):
    """`function(*operands, *results)`: it writes its results into memory that it is given.

    Attributes:
        function: of arrays and Python numbers.
        may_alias: for each result the positions of operands whose memory it may be written into.
        addressed: whether operands and results must lie in memory whose address is known before the run.
    """

    addressed = False

    def __init__(
        self,
        function: Callable[..., Any],
        operands: Sequence[Any],
        results: Sequence[Slot],
        record: Record,
        may_alias: Sequence[Sequence[int]] = (),
    ) -> None:
        super().__init__(operands, results, record)
        self.function, self.may_alias = function, may_alias or [()] * len(results)
        self.quiet = None if self.addressed or function is put else True


class View(LoweredOp):
    """`function(operand)` shares the operand's memory, so it need not run, or makes an array."""

    def __init__(self, function: Callable[[Any], Any], operand: Slot, result: Slot, record: Record) -> None:
        super().__init__((operand,), (result,), record)
        self.function = function


class Bind(LoweredOp):
    """Reads an array of the caller in place; one with gaps is copied. The address is that of the result."""

    def __init__(self, operand: Slot, result: Slot, record: Record) -> None:
        super().__init__((operand,), (result,), record)


class Kernel(LoweredOp):
    """An instruction as it is: it makes its results, and may do more."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.inputs, outputs_of(record), record)
        if State.OPERANDS not in (*record.primitive.reads, *record.primitive.writes):
            self.quiet = False if record.primitive.effect else record.primitive.may_warn or None

    @property
    def escapes(self) -> bool:
        """True if an operand may be held after it: by a Variable, by Python, or by a result that is a view of it."""
        primitive = self.record.primitive
        return primitive.escapes if primitive.effect else any(y.shares for y in self.results)


class ReadFlat(Kernel):
    """Flattened Variables are read: the results are views of their buffer."""


class AssignFlat(Kernel):
    """Flattened Variables are assigned: the values already lie in their next buffer.

    Attributes:
        in_place: whether new values may be written where the present ones lie, if nothing but the Variables refers to them; the
            call that writes finds out.
    """

    in_place = False


class FlattenKernel(Kernel):
    """A flat array of the operands, which may be written directly into it."""

    escapes = False

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.quiet = None


KINDS: dict[Primitive, type[Kernel]] = {read_flat: ReadFlat, assign_flat: AssignFlat, flatten: FlattenKernel}
"""Instructions that the memory plan treats specially."""


def kernel_call(record: Record) -> Kernel:
    """An instruction as it is."""
    return KINDS.get(record.primitive, Kernel)(record)


LARGE_LOOP = 1 << 16
"""Loops over at least so many elements run in blocks; the intermediate values of smaller ones stay in the cache anyway."""
SMALL_LOOP, MANY_STEPS = 1 << 12, 8
"""Loops of so many steps over fewer elements run in blocks too where LLVM may compile them: Adam over 9,000 in 8 us, not 25."""
FEW_STEPS = 3
"""Loops of no more steps run in blocks only where threads share them: 180 instead of 250 us for 2^19 divisions. For bias and
ReLU of 2^18 elements blocks take 130 us, two calls 90."""


class CallLowering:
    """Turns the instructions of a program into calls, and keeps those that it cannot as they are.

    Args:
        program: of the instructions; its keys are taken.

    Attributes:
        found: the calls, in order.
    """

    def __init__(self, program: Program) -> None:
        self._keys = program.unused_keys()
        self.held = _held_keys(program)
        """Keys of what may be held after its last use."""
        self.found: list[LoweredOp] = []
        self._places: dict[Any, Slot] = {}
        self.contiguous: set[int] = set()
        """Keys of values that surely lie in the usual order without gaps."""
        self.transposed: set[int] = set()
        """Keys of transposed matrices of such values, or of themselves."""

    def temporary(self, shape: Any, dtype: Any, like: Slot | None = None) -> Slot:
        """A slot for an intermediate value of one instruction, its axes in the order of those of `like`."""
        slot = Slot(next(self._keys), shape, np.dtype(dtype))
        slot.order = like.order if like is not None and like.shape == shape else None
        return slot

    def places(self, x: Slot, columns: Slot, record: Record) -> Slot:
        """The flat position of one element of each row, for checked columns: indexing by it takes 0.13 us, by two axes 0.59."""
        key = columns.key, x.shape
        if key not in self._places:
            starts = np.arange(x.shape[0]) * x.shape[1]
            to = self._places[key] = self.temporary(starts.shape, np.int64)
            cast = np.can_cast(columns.dtype, starts.dtype)
            add = functools.partial(np.add, starts) if cast else lambda at, out: np.add(starts, at, out, casting="unsafe")
            self.call(add, [columns], to, record)
        return self._places[key]

    def lower(self, record: Record) -> None:
        """Write the calls of one instruction."""
        slots = slots_of(record)
        row = _rows().get(record.primitive)
        if any(x.xp is not np for x in slots):
            self.found.append(kernel_call(record))
        elif row is not None and row(self, record):
            pass
        elif (body := loop_of(record)[1]) is not None:
            self._loop(record, body)
        else:
            self.found.append(kernel_call(record))

    def call(
        self, function: Callable[..., Any], operands: Sequence[Any], result: Slot, record: Record, may_alias: Any = ()
    ) -> Slot:
        """Write one call; its result."""
        self.found.append(Call(function, operands, [result], record, [may_alias]))
        if result.order is None:
            self.contiguous.add(result.key)
        return result

    # Loops -----------------------------------------------------------------------------------------------------------------

    def _loop(self, record: Record, body: Body) -> None:
        operands = slots_in(record.inputs)
        results = outputs_of(record)
        size = np.prod(results[0].shape)
        long = size >= LARGE_LOOP or (size >= SMALL_LOOP and len(body.steps) >= MANY_STEPS and Uses.has_compiler())
        if body.numbers or size >= 2 * WORTHWHILE or (long and len(body.steps) > FEW_STEPS):
            block = BlockLoop(body, results[0].shape, [x.shape for x in operands])
            self.found.append(Call(block, operands, results, record, [block.may_alias(i) for i in range(len(results))]))
            return
        values: dict[int, Any] = dict(enumerate(operands)) | dict(body.literals)
        wanted = dict(zip(body.outputs, results, strict=True))
        for step in body.steps:
            values[step.register] = self._step(step, values, wanted.get(step.register), results[0], record)
        for register, result in zip(body.outputs, results, strict=True):
            if values[register] is not result:  # an operand, or a repeated result
                self.call(copied, [values[register]], result, record)

    def _step(self, step: Step, values: dict[int, Any], result: Slot | None, final: Slot, record: Record) -> Slot:
        operands = [values[register] for register in step.operands]
        if result is None:
            shapes = [x.shape for x in slots_in(operands) if x.shape is not None]
            result = self.temporary(np.broadcast_shapes(*shapes), step.dtype, final)
        if step.function == "where" and _keeps(operands, result):
            return self._kept(operands[0], operands[1], result, record)
        if step.function in ("astype", "where"):
            return self.call(writing(step.function), operands, result, record)
        return self.call(writing(step.function), _as_arrays(operands), result, record, range(len(operands)))

    def _kept(self, condition: Slot, x: Slot, result: Slot, record: Record) -> Slot:
        """The elements where a condition holds, a true zero elsewhere, also for infinity and NaN: their bits times 1 or 0."""
        bits = np.dtype(f"i{x.dtype.itemsize}")
        given, kept = self.temporary(x.shape, bits, x), self.temporary(x.shape, bits, result)
        self.found.append(View(lambda array: array.view(bits), x, given, record))
        self.call(np.multiply, [given, condition], kept, record)
        self.found.append(View(lambda array: array.view(result.dtype), kept, result, record))
        return result


def _keeps(operands: Sequence[Any], result: Slot) -> bool:
    """True if a select is between elements of an array and the number 0."""
    condition, x, other = operands
    return (
        type(other) is int
        and other == 0
        and isinstance(x, Slot)
        and (x.shape, x.dtype, x.order) == (result.shape, result.dtype, result.order)
        and x.shape != ()
        and x.dtype.kind == "f"
        and condition.dtype == np.bool_
    )


def _as_arrays(operands: Sequence[Any]) -> list[Any]:
    """Numbers beside floats as arrays of their dtype, as NumPy would convert them at each call: 0.29 instead of 0.48 us."""
    dtypes = {x.dtype for x in slots_in(operands)}
    dtype = dtypes.pop()
    if dtypes or not _adds_up(dtype) or dtype.itemsize not in (4, 8):
        return list(operands)
    small = float(np.finfo(dtype).max)
    exact = [type(x) in (int, float) and (x != x or abs(x) <= small or math.isinf(x)) for x in operands]
    return [np.asarray(x, dtype) if fits else x for x, fits in zip(operands, exact, strict=True)]


def _held_keys(program: Program) -> set[int]:
    """The keys of values that may be held after their last use: results, those that escape, are viewed or assigned twice."""
    assigned = Counter(x.key for record in program.records if record.primitive is assign_flat for x in flats_of(record))
    held = {key for key, times in assigned.items() if times > 1} | {x.key for x in slots_in(program.results)}
    for record in program.records:
        viewed = _rows().get(record.primitive) is _view or any(y.shares for y in outputs_of(record))
        if viewed or (record.primitive.escapes and record.primitive is not assign_flat):
            held |= {x.key for x in slots_in(record.inputs)}
    return held


def lowered(program: Program) -> list[LoweredOp]:
    """The calls that carry out a program."""
    lowering = CallLowering(program)
    for record in program.records:
        lowering.lower(record)
    return lowering.found


def kernel_of(record: Record, xp: ModuleType) -> Callable[..., Any]:
    """The function of arrays that carries out an instruction and makes its results, parameters included."""
    sums = xp is np and record.primitive in (operations.reduce_sum, operations.reduce_mean)
    if sums and isinstance(x := record.inputs[0], Slot) and _adds_up(x.dtype):  # faster than the kernel's, through a method
        add, count = _reducing(np.add, record.params), math.prod(x.shape[axis] for axis in record.params["axes"])
        if record.primitive is operations.reduce_sum:
            return add
        if count:
            return lambda array: add(array) / count
    own = record.primitive.kernel(np) if xp is np else record.primitive.on(xp)  # a replay is quiet as a whole
    return functools.partial(own, **record.params) if record.params else own


def multiplications(record: Record) -> int:
    """The number of multiplications in a matrix product; 0 for other instructions."""
    if _rows().get(record.primitive) is not _product or not record.inputs[0].shape:
        return 0
    return math.prod(record.outputs.shape) * int(record.inputs[0].shape[-1])


def _adds_up(dtype: np.dtype[Any]) -> bool:
    """True for floats that are added up as they are; those of 16 bits are widened by their kernels."""
    return dtype.kind == "f" and not is_short(dtype)


# Rows: from an instruction to calls; False where its kernel must decide in each run -------------------------------------------


def _view(lowering: CallLowering, record: Record) -> bool:
    function = functools.partial(record.primitive.kernel(np), **record.params)
    x, y = record.inputs[0], record.outputs
    lowering.found.append(View(function, x, y, record))
    if record.primitive is part or (record.primitive is operations.reshape and x.key in lowering.contiguous):
        lowering.contiguous.add(y.key)
    if record.primitive is operations.transpose and len(y.shape) == 2 and x.key in lowering.contiguous:
        lowering.transposed.add(y.key)
    return True


def _product(lowering: CallLowering, record: Record) -> bool:
    (a, b), y = record.inputs[:2], record.outputs
    if not (isinstance(a, Slot) and isinstance(b, Slot)) or min(len(a.shape), len(b.shape)) < 2:
        return False
    if a.dtype.kind != "c" and not _adds_up(a.dtype):
        return False
    function: Any = np.multiply if a.shape[-1] == 1 == b.shape[-2] else np.matmul
    if function is np.matmul and math.prod(a.shape) * b.shape[-1] >= LONG:
        function = product
    elif function is np.matmul and len(a.shape) == len(b.shape) == 2:
        whole = lowering.contiguous | lowering.transposed
        if a.dtype == b.dtype == y.dtype and y.order is None and a.key in whole and b.key in whole:
            function = np.dot  # the same call of BLAS, 0.3 us sooner; it needs memory without gaps
    lowering.call(function, [a, b], y, record)
    return True


def _reduction(ufunc: np.ufunc) -> Callable[[CallLowering, Record], bool]:
    def lower(lowering: CallLowering, record: Record) -> bool:
        (x,) = record.inputs
        if not _adds_up(x.dtype) or record.outputs.shape == () or 0 in x.shape:
            return False
        lowering.call(_reducing(ufunc, record.params), [x], record.outputs, record)
        return True

    return lower


def _reducing(ufunc: np.ufunc, params: dict[str, Any]) -> Callable[..., Any]:
    """A reduction of an array, with the memory for its result if there is some; by names NumPy takes 0.4 us more."""
    reduce: Any = ufunc.reduce
    keepdims = params["keepdims"]
    axes = params["axes"][0] if len(params["axes"]) == 1 else params["axes"]
    return lambda x, out=None: reduce(x, axes, None, out, keepdims)


def _mean(lowering: CallLowering, record: Record) -> bool:
    x, y = record.inputs[0], record.outputs
    count = int(np.prod([x.shape[axis] for axis in record.params["axes"]]))
    if not _adds_up(x.dtype) or y.shape == () or not count:
        return False
    total = lowering.temporary(y.shape, y.dtype, y)
    lowering.call(_reducing(np.add, record.params), [x], total, record)
    lowering.call(np.divide, [total, count], y, record, (0,))
    return True


def _take_at(lowering: CallLowering, record: Record) -> bool:
    x, columns = record.inputs
    places = lowering.places(x, columns, record)

    def take(x: Any, at: Any, out: Any) -> None:
        x.reshape(-1).take(at, None, out, "clip")

    lowering.call(take, [x, places], record.outputs, record)
    return True


def _add_at(lowering: CallLowering, record: Record) -> bool:
    x, columns = record.inputs
    if record.outputs.order is not None:
        return False
    places, number = lowering.places(x, columns, record), np.asarray(record.params["number"], x.dtype)

    def add(x: Any, at: Any, out: Any) -> None:
        if out is not x:
            np.copyto(out, x)
        flat = out.reshape(-1)
        flat[at] = flat[at] + number

    lowering.call(add, [x, places], record.outputs, record, (0,))
    return True


def _flatten(lowering: CallLowering, record: Record) -> bool:
    """A flat array has a place in the arena, unless that would be read after its last use."""
    lowering.found.append((Kernel if record.outputs.key in lowering.held else FlattenKernel)(record))
    return True


def _assign_flat(lowering: CallLowering, record: Record) -> bool:
    """Assigned values lie in the Variables' next buffer; one that no call writes there, or is held elsewhere, is copied."""
    written = {y.key for call in lowering.found if isinstance(call, Call) for y in call.results} - lowering.held
    flats = [
        x if x.key in written else lowering.call(copied, [x], lowering.temporary(x.shape, x.dtype), record)
        for x in flats_of(record)
    ]
    lowering.found.append(kernel_call(Record(assign_flat, [*variables_of(record), *flats], record.params, record.outputs)))
    return True


@functools.cache
def _rows() -> dict[Any, Callable[[CallLowering, Record], bool]]:
    """The rows by primitive."""
    return {
        **dict.fromkeys((operations.reshape, operations.transpose, operations.broadcast_to, part), _view),
        operations.strided_slice: _view,
        flatten: _flatten,
        assign_flat: _assign_flat,
        operations.matrix_product: _product,
        operations.reduce_sum: _reduction(np.add),
        operations.reduce_max: _reduction(np.maximum),
        operations.reduce_mean: _mean,
        take_at: _take_at,
        add_at: _add_at,
    }
