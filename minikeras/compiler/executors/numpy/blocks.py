"""Loops over long arrays in NumPy: all steps for one block of elements, then for the next.

Intermediate values stay in the cache. Each step is the function that an eager run calls, so the bits are the same.
"""

from __future__ import annotations

import functools
import math
import operator
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ....core.ops.arithmetic import choose, extreme
from ....parallel import CALL, WORTHWHILE, in_parallel
from ....types import Array
from ...loops import Body, on_arrays
from ...planning import ALIGNMENT, Interval, allocate, memory_of

BLOCK = 1 << 16
"""Elements of a block in one thread: Adam over 235,146 takes 490 us, 520 in blocks of 2^15, 570 of 2^14, 610 as one."""

PAYS, LATER = 0.5, 0.05
"""Seconds that all loops take before the first is compiled, about what LLVM needs to begin; and that each takes by itself."""
_scratch = threading.local()


def _registers(count: int, size: int, dtype: np.dtype[Any]) -> Array:
    """Memory of this thread for intermediate values."""
    known: dict[Any, Array] = _scratch.__dict__
    found = known.get(dtype.str)
    if found is None or found.shape[0] < count or found.shape[1] < size:
        # Each row begins at a cache line: 440 instead of 580 us for Adam.
        per_line = max(ALIGNMENT // dtype.itemsize, 1)
        width = -(-max(size, BLOCK) // per_line) * per_line
        found = known[dtype.str] = memory_of(count * width * dtype.itemsize).view(dtype).reshape(count, width)
    return found


class Uses:
    """All uses of a body for some shapes, until it pays to compile it.

    Args:
        body: the operations on each element.
        shape, operands: as of `BlockLoop`.

    Attributes:
        seconds: their time.
        compiled: the machine code, `compiled(*operands, *outputs)`, which returns False for arrays with gaps.
    """

    compiler: Any = None
    has_compiler: Callable[[], bool]
    """`compiler(body, shape, operands)` makes machine code or gives None, where there is LLVM; `executors` sets both."""
    total = 0.0

    def __init__(self, body: Body, shape: tuple[int, ...], operands: tuple[tuple[int, ...] | None, ...]) -> None:
        self._loop, self.seconds, self._tried = (body, shape, operands), 0.0, False
        self.compiled: Callable[..., bool] | None = None

    def add(self, seconds: float) -> None:
        """Note one use."""
        self.seconds += seconds
        Uses.total += seconds
        if not self._tried and self.seconds > LATER and Uses.total > PAYS and Uses.has_compiler():
            self._tried, self.compiled = True, Uses.compiler(*self._loop)


_uses: WeakValueDictionary[Any, Uses] = WeakValueDictionary()
"""The uses of bodies for shapes, as long as a loop has them."""


class BlockLoop:
    """A body as a function of arrays: `loop(*operands, *outputs)` writes the outputs.

    Operands are arrays of the outputs' shape, such as broadcast to it, and Python numbers.

    Args:
        body: the operations on each element.
        shape: of the outputs.
        operands: their shapes; None for Python numbers. Steps of operands without axes alone are taken once.
    """

    __slots__ = ("_buffers", "_early", "_last", "_later", "_plan", "_sizes", "_uses", "body")

    def __init__(self, body: Body, shape: tuple[int, ...], operands: Sequence[tuple[int, ...] | None]) -> None:
        self.body = body
        key = body, shape, tuple(operands)
        self._uses = _uses.setdefault(key, Uses(*key))
        self._early = body.early([number for number, one in enumerate(operands) if one == ()])
        self._later = later = body._replace(steps=tuple([step for step in body.steps if step not in self._early]))
        self._last = _last_uses(later)
        self._buffers, self._sizes = _buffers_of(later, self._last)
        """For each register between steps its dtype and number among those of that dtype; how many there are of each dtype."""
        self._plan = [(writing(step.function), step.operands, step.register) for step in later.steps]

    def may_alias(self, output: int) -> list[int]:
        """The operands whose memory an output may be written into: those that no step reads after it."""
        register = self.body.outputs[output]
        made = {step.register: (position, step) for position, step in enumerate(self._later.steps)}
        if register not in made:
            return []
        position, step = made[register]
        return [
            operand
            for operand, dtype in enumerate(self.body.inputs)
            if dtype is not float
            and (self._last[operand] < position or (self._last[operand] == position and step.function != "where"))
        ]

    def __call__(self, *arrays: Any) -> None:
        if self._uses.compiled is not None and self._uses.compiled(*arrays):
            return
        begun, count = time.perf_counter(), len(self.body.inputs)
        self._in_blocks(*_flattened(arrays[:count], arrays[count:]))
        self._uses.add(time.perf_counter() - begun)

    def _in_blocks(self, operands: Sequence[Any], outputs: Sequence[Array]) -> None:
        body, count = self.body, len(operands)
        rows = len(outputs[0])
        shape = outputs[0].shape[1:]
        width = max(math.prod(shape), 1)
        align = max(ALIGNMENT // width, 1)
        known = self._numbers(operands)
        cut = (outputs[0].ndim, (rows,)) if rows != 1 else None  # operands that are cut along their first axis with the outputs
        moving = [
            *((number, x) for number, x in enumerate(operands) if type(x) not in (float, int) and cut == (x.ndim, x.shape[:1])),
            *((register, y) for register, y in zip(body.outputs, outputs, strict=True) if register >= count),
        ]

        at_work: list[int] = []

        def work(start: int, stop: int) -> None:
            at_work.append(start)
            values, last = known.copy(), 0
            while start < stop:
                # Another thread may begin its part late, or never, where a BLAS library keeps the processors busy.
                most = BLOCK if len(at_work) == 1 else LONG_BLOCK
                number = -(-(stop - start) * width // most)
                size = min(-(-(stop - start) // (number * align)) * align, stop - start)
                if size != last:
                    self._lay_out(values, size, shape)
                    last = size
                part = slice(start, start + size)
                start += size
                for register, x in moving:
                    values[register] = x[part]
                for function, read, register in self._plan:
                    if len(read) == 2:
                        function(values[read[0]], values[read[1]], values[register])
                    else:
                        function(*[values[one] for one in read], values[register])
            at_work.pop()

        in_parallel(work, rows, max(LEAST // width, 1), align)
        self._copy(operands, outputs)

    def _numbers(self, operands: Sequence[Any]) -> list[Any]:
        """The registers before the first block: operands, literals, results of steps on numbers and on single elements."""
        body = self.body
        registers = [*self._last, *[step.register for step in self._early], *[register for register, _ in body.literals]]
        values: list[Any] = [None] * (1 + max([len(operands), *registers]))
        values[: len(operands)] = operands
        for register, number in body.literals:
            values[register] = number
        for step in body.numbers:
            values[step.register] = getattr(operator, step.function)(*[values[register] for register in step.operands])
        for step in self._early:
            values[step.register] = on_arrays(step, np)(*[values[register] for register in step.operands])
        return values

    def _lay_out(self, values: list[Any], size: int, shape: tuple[int, ...]) -> None:
        """Memory for a block between two steps."""
        count, found = size * math.prod(shape), dict[Any, list[Array]]()
        for dtype, number in self._sizes.items():
            rows = _registers(number, count, dtype)[:number, :count]
            found[dtype] = list(rows.reshape(number, size, *shape) if shape else rows)
        for register, (dtype, number) in self._buffers.items():
            values[register] = found[dtype][number]

    def _copy(self, operands: Sequence[Any], outputs: Sequence[Array]) -> None:
        """Copy results that are operands, or that repeat another result."""
        written = dict(zip(self.body.outputs, outputs, strict=True))
        for register, y in zip(self.body.outputs, outputs, strict=True):
            if register < len(operands):
                y[...] = operands[register]
            elif written[register] is not y:
                y[...] = written[register]


LONG_BLOCK = CALL
"""Elements of a block where several threads work: they pass Python's lock at every call, so calls must be long."""
LEAST = WORTHWHILE
"""Elements for each thread."""


def _buffers_of(body: Body, last: dict[int, int]) -> tuple[dict[int, tuple[Any, int]], dict[Any, int]]:
    """For each step that is no output the dtype and number of its buffer; the number of buffers of each dtype."""
    intervals: dict[Any, list[Interval]] = {}
    for position, step in enumerate(body.steps):
        if step.register not in body.outputs:
            donors = () if step.function == "where" else step.operands  # it writes while it still reads
            found = Interval(step.register, ALIGNMENT, position, last[step.register], donors)
            intervals.setdefault(step.dtype, []).append(found)
    arenas = {dtype: allocate(found) for dtype, found in intervals.items()}
    numbers = {
        register: (dtype, start // ALIGNMENT) for dtype, arena in arenas.items() for register, start in arena.offsets.items()
    }
    return numbers, {dtype: arena.size // ALIGNMENT for dtype, arena in arenas.items()}


def _last_uses(body: Body) -> dict[int, int]:
    """For each register the position of the last step that reads it; -1 if none does, the end for outputs."""
    last = dict.fromkeys(range(len(body.inputs)), -1)
    for position, step in enumerate(body.steps):
        last[step.register] = position
        last.update(dict.fromkeys(step.operands, position))
    last.update({register: len(body.steps) for register in body.outputs})
    return last


def writing(name: str) -> Callable[..., Any]:
    """The function of a step that writes into its last argument."""
    if name == "astype":
        return copied
    if name == "where":
        return functools.partial(choose, np)
    function: Callable[..., Any] = getattr(np, name)
    if name in ("maximum", "minimum"):  # NumPy needs `out` by name
        return functools.partial(extreme, function)
    return function


def put(number: Any, out: Array) -> None:
    """A number into an array without axes."""
    out[()] = number


def copied(x: Array, out: Array) -> None:
    """The same values in another dtype."""
    np.copyto(out, x, casting="unsafe")


def _flattened(operands: Sequence[Any], outputs: Sequence[Array]) -> tuple[Sequence[Any], Sequence[Array]]:
    """The arrays flattened, if all are contiguous; else as they are, to be cut along their first axis."""
    shape = outputs[0].shape
    if len(shape) == 1:
        return operands, outputs
    arrays = [x for x in operands if type(x) not in (float, int)]
    if all(x.flags.c_contiguous and (x.shape == shape or x.size == 1) for x in (*arrays, *outputs)):
        flat = [x if type(x) in (float, int) else x.reshape(-1) if x.shape == shape else x.reshape(()) for x in operands]
        return flat, [y.reshape(-1) for y in outputs]
    return operands, outputs
