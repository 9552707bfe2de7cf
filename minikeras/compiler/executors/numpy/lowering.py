"""Instructions as calls of NumPy functions that write where they are told, so that memory can be planned before the first run.

What has no row here makes its own arrays, as in an eager run.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....arrays.threads import WORTHWHILE
from ....core import Record
from ....core.precision import is_short
from ....core.registry import operations
from ...ir import Program, Slot, outputs_of, slots_in, slots_of
from ...loops import Body, Step, loop_of
from ...passes.inlining import add_at, take_at
from ...planning.flat_variables import part
from .blocks import BlockLoop, copied, writing
from .calls import Call, Lowered, View, kernel_call

LARGE_LOOP = 1 << 16
"""Loops over at least so many elements run in blocks; in smaller ones all that lies between stays in the cache anyway.

One step alone runs in blocks only where threads share it: 180 instead of 250 us for 2^19 divisions.
"""


class Lowering:
    """Turns the instructions of a program into calls, and keeps those that it cannot as they are.

    Args:
        program: where the instructions come from; its keys are taken.

    Attributes:
        found: the calls, in order.
    """

    def __init__(self, program: Program) -> None:
        self._keys = program.unused_keys()
        self.found: list[Lowered] = []

    def temporary(self, shape: Any, dtype: Any, like: Slot | None = None) -> Slot:
        """A slot for what lies between two calls of one instruction, its axes in the order of those of `like`."""
        slot = Slot(next(self._keys), shape, np.dtype(dtype))
        slot.order = like.order if like is not None and like.shape == shape else None
        return slot

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
        return result

    # Loops -----------------------------------------------------------------------------------------------------------------

    def _loop(self, record: Record, body: Body) -> None:
        operands = slots_in(record.inputs)
        results = outputs_of(record)
        size = np.prod(results[0].shape)
        if body.numbers or size >= 2 * WORTHWHILE or (size >= LARGE_LOOP and len(body.steps) > 1):
            block = BlockLoop(body)
            self.found.append(Call(block, operands, results, record, [block.may_alias(i) for i in range(len(results))]))
            return
        values: dict[int, Any] = dict(enumerate(operands)) | dict(body.literals)
        wanted = dict(zip(body.outputs, results, strict=True))
        for step in body.steps:
            values[step.register] = self._step(step, values, wanted.get(step.register), results[0], record)
        for register, result in zip(body.outputs, results, strict=True):
            if values[register] is not result:  # an operand, or a result that is given twice
                self.call(copied, [values[register]], result, record)

    def _step(self, step: Step, values: dict[int, Any], result: Slot | None, final: Slot, record: Record) -> Slot:
        operands = [values[register] for register in step.operands]
        if result is None:
            shapes = [x.shape for x in slots_in(operands) if x.shape is not None]
            result = self.temporary(np.broadcast_shapes(*shapes), step.dtype, final)
        may_alias = () if step.function in ("astype", "where") else range(len(operands))
        return self.call(writing(step.function, operands), operands, result, record, may_alias)


def lowered(program: Program) -> list[Lowered]:
    """The calls that carry out a program."""
    lowering = Lowering(program)
    for record in program.records:
        lowering.lower(record)
    return lowering.found


def kernel_of(record: Record, xp: Any) -> Callable[..., Any]:
    """The function of arrays that carries out an instruction and makes its results, parameters included."""
    direct = _direct().get(record.primitive) if xp is np else None
    if direct is not None and isinstance(x := record.inputs[0], Slot) and _adds_up(x.dtype):
        return direct(x, record.params)
    own = record.primitive.kernel(np) if xp is np else record.primitive.on(xp)  # a replay is quiet as a whole
    return functools.partial(own, **record.params) if record.params else own


def _direct_sum(x: Slot, params: dict[str, Any]) -> Callable[..., Any]:
    """The same sum, without the way through a method."""
    return functools.partial(np.add.reduce, **_along(params))


def _direct_mean(x: Slot, params: dict[str, Any]) -> Callable[..., Any]:
    count, add, along = math.prod(x.shape[axis] for axis in params["axes"]), np.add.reduce, _along(params)
    if not count:
        return functools.partial(operations.reduce_mean.kernel(np), **params)
    return lambda array: add(array, **along) / count


def multiplications(record: Record) -> int:
    """How many numbers are multiplied in a product of matrices; 0 for other instructions."""
    if _rows().get(record.primitive) is not _product or not record.inputs[0].shape:
        return 0
    return math.prod(record.outputs.shape) * int(record.inputs[0].shape[-1])


def _adds_up(dtype: np.dtype[Any]) -> bool:
    """True for floats that are added up as they are; those of 16 bits are widened by their kernels."""
    return dtype.kind == "f" and not is_short(dtype)


# Rows: from an instruction to calls; False where its kernel must decide in each run -------------------------------------------


def _view(lowering: Lowering, record: Record) -> bool:
    function = functools.partial(record.primitive.kernel(np), **record.params)
    lowering.found.append(View(function, record.inputs[0], record.outputs, record))
    return True


def _product(lowering: Lowering, record: Record) -> bool:
    a, b = record.inputs[:2]
    if not (isinstance(a, Slot) and isinstance(b, Slot)) or min(len(a.shape), len(b.shape)) < 2:
        return False
    if a.dtype.kind != "c" and not _adds_up(a.dtype):
        return False
    function = np.multiply if a.shape[-1] == 1 == b.shape[-2] else np.matmul
    lowering.call(function, [a, b], record.outputs, record)
    return True


def _reduction(ufunc: np.ufunc) -> Callable[[Lowering, Record], bool]:
    def lower(lowering: Lowering, record: Record) -> bool:
        (x,) = record.inputs
        if not _adds_up(x.dtype) or record.outputs.shape == () or 0 in x.shape:
            return False
        lowering.call(_into(functools.partial(ufunc.reduce, **_along(record.params))), [x], record.outputs, record)
        return True

    return lower


def _along(params: dict[str, Any]) -> dict[str, Any]:
    return {"axis": params["axes"], "keepdims": params["keepdims"]}


def _into(reduction: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """A reduction with its memory as the last argument."""
    return lambda x, out: reduction(x, out=out)


def _mean(lowering: Lowering, record: Record) -> bool:
    x, y = record.inputs[0], record.outputs
    count = int(np.prod([x.shape[axis] for axis in record.params["axes"]]))
    if not _adds_up(x.dtype) or y.shape == () or not count:
        return False
    total = lowering.temporary(y.shape, y.dtype, y)
    lowering.call(_into(functools.partial(np.add.reduce, **_along(record.params))), [x], total, record)
    lowering.call(np.divide, [total, count], y, record, (0,))
    return True


def _take_at(lowering: Lowering, record: Record) -> bool:
    x, columns = record.inputs
    rows = np.arange(x.shape[0])
    lowering.call(lambda x, at, out: np.copyto(out, x[rows, at]), [x, columns], record.outputs, record)
    return True


def _add_at(lowering: Lowering, record: Record) -> bool:
    x, columns = record.inputs
    rows, number = np.arange(x.shape[0]), record.params["number"]

    def add(x: Any, at: Any, out: Any) -> None:
        if out is not x:
            np.copyto(out, x)
        out[rows, at] += number

    lowering.call(add, [x, columns], record.outputs, record, (0,))
    return True


@functools.cache
def _rows() -> dict[Any, Callable[[Lowering, Record], bool]]:
    """By primitive."""
    return {
        **dict.fromkeys((operations.reshape, operations.transpose, operations.broadcast_to, part), _view),
        operations.strided_slice: _view,
        operations.matrix_product: _product,
        operations.reduce_sum: _reduction(np.add),
        operations.reduce_max: _reduction(np.maximum),
        operations.reduce_mean: _mean,
        take_at: _take_at,
        add_at: _add_at,
    }


@functools.cache
def _direct() -> dict[Any, Callable[[Slot, dict[str, Any]], Callable[..., Any]]]:
    """Kernels that make their result, faster than the primitive's own."""
    return {operations.reduce_sum: _direct_sum, operations.reduce_mean: _direct_mean}
