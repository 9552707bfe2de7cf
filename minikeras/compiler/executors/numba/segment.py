"""Segments: instructions that follow one another, as one call of the interpreter.

Their bytecode never changes; what differs from run to run are addresses, which are written where memory is chosen.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....arrays.threads import in_parallel
from ....core.warnings import logger
from ....errors import InvalidArgumentError
from ....types import Array
from ...ir import Slot
from ..numpy.builder import Builder, Step
from ..numpy.calls import Lowered
from ..numpy.closures import Closure, exporting
from .encode import SHARED, BytecodeCall, can_be_shared
from .interpreter import BLOCK, COLUMN, FULL, REGISTERS_MAX, ROW, run, warm

_scratch = threading.local()


def scratch(dtype: Any) -> Array:
    """The working memory of this thread."""
    known: dict[str, Array] = _scratch.__dict__
    if dtype.str not in known:
        known[dtype.str] = np.empty(REGISTERS_MAX * BLOCK, dtype)
    return known[dtype.str]


@functools.cache
def make_ready(dtype: str) -> None:
    """Load the interpreter for a dtype, or compile it and say how long that took."""
    start = time.perf_counter()
    if not warm(dtype):
        seconds = time.perf_counter() - start
        logger.warning(
            "Numba compiled the bytecode interpreter of compiled steps in %s: %.1f s, once on this computer.", dtype, seconds
        )


def link(steps: Sequence[Step], builder: Builder) -> Iterator[tuple[Lowered, Closure]]:
    """The steps of a program, each run of bytecode calls as one segment."""
    waiting: list[BytecodeCall] = []
    for call, closure in steps:
        if waiting and (closure is not None or not _extends(waiting, call)):
            yield waiting[0], _closure(waiting, builder)
            waiting = []
        if closure is None:
            waiting.append(call)
        else:
            yield call, closure
    if waiting:
        yield waiting[0], _closure(waiting, builder)


def _extends(calls: Sequence[BytecodeCall], call: BytecodeCall) -> bool:
    """Whether a call can be part of one segment with those before it."""
    return call.dtype == calls[0].dtype and not can_be_shared([call]) and not can_be_shared(calls)


def _closure(calls: Sequence[BytecodeCall], builder: Builder) -> Closure:
    segment = Segment(calls, builder.address)

    def run_segment(registers: list[Any]) -> None:
        segment(registers[0].addresses)

    exported = [register for call in calls for register in builder.exported(call)]
    return exporting(run_segment, exported)


class Segment:
    """Bytecode calls that follow one another.

    Args:
        calls: of one dtype.
        address: gives each slot its place in the list of addresses.
    """

    __slots__ = ("_code", "_dtype", "_literals", "_loop")

    def __init__(self, calls: Sequence[BytecodeCall], address: Callable[[Slot], int]) -> None:
        literals: dict[str, float] = {}  # by their text, which tells -0.0 from 0.0

        def literal(number: float) -> int:
            literals[repr(number)] = number
            return list(literals).index(repr(number))

        self._code = np.array([one for call in calls for one in call.bytecode(address, literal)], np.int64)
        self._literals = np.array(list(literals.values()), np.float64)
        self._dtype = np.dtype(calls[0].dtype)
        self._loop = _Shared(self._code, self._dtype.itemsize) if can_be_shared(calls) else None
        make_ready(self._dtype.name)

    def __call__(self, addresses: Array) -> None:
        """Carry the calls out."""
        if self._loop is not None:
            self._loop(addresses, self._literals, self._dtype)
            return
        stopped = run(self._code, addresses, self._literals, scratch(self._dtype))
        if stopped >= 0:
            raise InvalidArgumentError(
                "a label or an index is outside its row: labels are in [0, classes), indices in [0, size)."
            )


class _Shared:
    """One loop, its rows (or the elements of its only row) shared among threads.

    Args:
        code: its bytecode.
        itemsize: bytes of an element.
    """

    __slots__ = ("_code", "_flat", "_moves", "_rows", "_width")

    def __init__(self, code: Array, itemsize: int) -> None:
        rows, columns, inputs, outputs = code[2:6].tolist()
        read = code[7 : 7 + 2 * inputs].reshape(-1, 2).tolist()
        written = code[7 + 2 * inputs : 7 + 2 * inputs + 3 * outputs : 3].tolist()
        self._flat = not any(kind in (ROW, COLUMN) for _, kind in read)
        self._width = 1 if self._flat else columns
        self._rows, self._code = rows * columns // self._width, code
        steps = {place: self._width * itemsize for place in written}
        steps |= {place: self._width * itemsize for place, kind in read if kind == FULL}
        steps |= {place: itemsize for place, kind in read if kind == COLUMN}
        self._moves = np.array(list(steps), np.int64), np.array(list(steps.values()), np.int64)
        """Places in the list of addresses, and by how much each moves with a row."""

    def __call__(self, addresses: Array, literals: Array, dtype: np.dtype[Any]) -> None:
        places, steps = self._moves

        def work(start: int, stop: int) -> None:
            code, moved = self._code.copy(), addresses.copy()
            code[2], code[3] = (1, stop - start) if self._flat else (stop - start, self._width)
            moved[places] += steps * start
            run(code, moved, literals, scratch(dtype))

        in_parallel(work, self._rows, max(SHARED // self._width, 1))
