"""Segments: kernels that follow one another, as one call.

What they are never changes; what differs from run to run are addresses, which are written where memory is chosen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from ....arrays.threads import thread_count
from ....errors import InvalidArgumentError
from ..numpy.builder import Builder, Step
from ..numpy.calls import Lowered
from ..numpy.closures import Closure, exporting
from . import blas, jit
from .encode import SHARED, KernelCall
from .kernels import ProductKernel
from .runner import Job

WAKING = 100e-6
"""Seconds that the shared instructions of a segment take at least for other threads to be woken, which takes 20 to 50 us."""


def link(steps: Sequence[Step], builder: Builder) -> Iterator[tuple[Lowered, Closure]]:
    """The steps of a program, kernels that follow one another as one segment."""
    waiting: list[KernelCall] = []
    for call, closure in steps:
        if closure is None:
            waiting.append(call)
            continue
        if waiting:
            yield waiting[0], _closure(waiting, builder)
            waiting = []
        yield call, closure
    if waiting:
        yield waiting[0], _closure(waiting, builder)


def _closure(calls: Sequence[KernelCall], builder: Builder) -> Closure:
    segment = Segment(calls, builder)
    exported = [register for call in calls for register in builder.exported(call)]
    return exporting(segment, exported)


class Segment:
    """Kernels that follow one another; each memory of a run has a job of its own for them.

    Args:
        calls: the kernels.
        builder: knows the places of slots.
    """

    __slots__ = ("_instructions", "_one_thread", "_seconds", "_threads")

    def __init__(self, calls: Sequence[KernelCall], builder: Builder) -> None:
        functions = jit.addresses([call.kernel for call in calls])
        operands = [call.places(builder.address) for call in calls]
        self._seconds = [call.seconds for call in calls]
        self._instructions = list(zip(functions, operands, strict=True))
        products = any(isinstance(call.kernel, ProductKernel) and call.seconds >= SHARED for call in calls)
        self._one_thread = (blas.on_one_thread() if products else None) or contextlib.nullcontext()

    def __call__(self, registers: list[Any]) -> None:
        """Carry the kernels out."""
        turn, threads = registers[0].turn, thread_count()
        job = turn.jobs.get((self, threads))
        if job is None:
            job = turn.jobs[self, threads] = self._job(turn.addresses, threads)
        with self._one_thread:
            stopped = job()
        if stopped:
            raise InvalidArgumentError(
                "a label or an index is outside its row: labels are in [0, classes), indices in [0, size)."
            )

    def _job(self, addresses: Any, threads: int) -> Job:
        """The kernels over these addresses, those that pay in as many parts as there are threads."""
        pays = [seconds >= SHARED for seconds in self._seconds]
        if sum(seconds for seconds, one in zip(self._seconds, pays, strict=True) if one) < WAKING:
            pays = [False] * len(pays)
        parts = [threads if one else 1 for one in pays]
        return Job([(*one, count) for one, count in zip(self._instructions, parts, strict=True)], addresses)
