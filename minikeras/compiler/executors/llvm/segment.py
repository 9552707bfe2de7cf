"""Segments: kernels that follow one another, as one call.

What they are never changes; what differs from run to run are addresses, which are written where memory is chosen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from ....arrays.threads import thread_count
from ....core import Variable
from ....core.state import restore, snapshot
from ....errors import InvalidArgumentError
from ...planning.flat_variables import flats_of, variables_of
from ..numpy.builder import Builder, Step
from ..numpy.calls import AssignFlat, Lowered
from ..numpy.closures import Closure, copy_of, exporting
from . import blas, jit
from .encode import SHARED, KernelCall
from .kernels import ProductKernel
from .phases import is_counted
from .runner import Job

WAKING = 100e-6
"""Seconds that the shared instructions of a segment take at least for other threads to be woken, which takes 20 to 50 us."""
HOLDING = 2e-3
"""Seconds that kernels take at most for Python's other threads to wait until all have ended: they wait 5 ms for their turn.

What writes in place has to be waited for, so that no thread sees a value change; in longer steps it is a call of its own.
"""


def link(steps: Sequence[Step], builder: Builder) -> Iterator[tuple[Lowered, Closure]]:
    """The steps of a program, kernels that follow one another as one segment, and what writes in place as a commit."""
    joined = list(_in_segments(steps, builder))
    if not any(isinstance(call, AssignFlat) and call.in_place for call, _ in steps):
        yield from ((calls[0], closure) for calls, closure in joined)
        return
    at = next(number for number, (calls, _) in enumerate(joined) if isinstance(calls[0], KernelCall))
    first = next(number for number in range(at + 1) if all(is_counted(calls[0]) for calls, _ in joined[number:at]))
    yield from ((calls[0], closure) for calls, closure in joined[:first])
    (calls, _), flats = joined[at], _written(steps)
    long = sum(call.seconds for call in calls) > HOLDING
    computing = [call for call in calls if long and not {y.key for y in call.results} <= flats]
    if computing:
        yield computing[0], _closure(computing, builder)
    writing = Segment([call for call in calls if call not in computing], builder, holds=True)
    exported = [register for call in calls if call not in computing for register in builder.exported(call)]
    counting, assigning = [closure for _, closure in joined[first:at]], [closure for _, closure in joined[at + 1 :]]
    optimizers = [calls[0].record.params["optimizer"] for calls, _ in joined[first:at]]
    held = {variable.key for call, _ in steps if isinstance(call, AssignFlat) for variable in variables_of(call.record)}
    counters = [one for optimizer in optimizers for one in optimizer.variables if one.key not in held]
    yield calls[0], Commit(counting, writing, exported, assigning, counters)


def _written(steps: Sequence[Step]) -> set[int]:
    return {x.key for call, _ in steps if isinstance(call, AssignFlat) for x in flats_of(call.record)}


def _in_segments(steps: Sequence[Step], builder: Builder) -> Iterator[tuple[Sequence[Any], Closure]]:
    """Closures with the calls that they carry out."""
    waiting: list[KernelCall] = []
    for call, closure in steps:
        if closure is None:
            waiting.append(call)
            continue
        if waiting:
            yield waiting, _closure(waiting, builder)
            waiting = []
        yield [call], closure
    if waiting:
        yield waiting, _closure(waiting, builder)


def _closure(calls: Sequence[KernelCall], builder: Builder) -> Closure:
    exported = [register for call in calls for register in builder.exported(call)]
    return exporting(Segment(calls, builder), exported)


class Segment:
    """Kernels that follow one another; each list of addresses has a job of its own for them.

    Args:
        calls: the kernels.
        builder: knows the places of slots.
        holds: whether Python's other threads wait.
    """

    __slots__ = ("_holds", "_instructions", "_one_thread", "_seconds")

    def __init__(self, calls: Sequence[KernelCall], builder: Builder, holds: bool = False) -> None:
        functions = jit.addresses([call.kernel for call in calls])
        operands = [call.places(builder.address) for call in calls]
        self._seconds, self._holds = [call.seconds for call in calls], holds
        self._instructions = list(zip(functions, operands, strict=True))
        products = any(isinstance(call.kernel, ProductKernel) and call.seconds >= SHARED for call in calls)
        self._one_thread = (blas.on_one_thread() if products else None) or contextlib.nullcontext()

    def job(self, turn: Any) -> Job:
        """The kernels over the addresses of a turn, those that pay in as many parts as there are threads."""
        threads = thread_count()
        job: Job | None = turn.jobs.get((self, threads))
        if job is None:
            pays = [seconds >= SHARED for seconds in self._seconds]
            if sum(seconds for seconds, one in zip(self._seconds, pays, strict=True) if one) < WAKING:
                pays = [False] * len(pays)
            parts = [threads if one else 1 for one in pays]
            instructions = [(*one, count) for one, count in zip(self._instructions, parts, strict=True)]
            job = turn.jobs[self, threads] = Job(instructions, turn.addresses, self._holds)
        return job

    def __call__(self, registers: list[Any]) -> None:
        """Carry the kernels out."""
        self.carry_out(self.job(registers[0].turn))

    def carry_out(self, job: Job) -> None:
        """Carry a job out."""
        with self._one_thread:
            stopped = job()
        if stopped:
            raise InvalidArgumentError(
                "a label or an index is outside its row: labels are in [0, classes), indices in [0, size)."
            )


class Commit:
    """The end of a step that writes in place: counters, kernels, assignments. It happens whole or not at all.

    Args:
        counting: effects that change counters.
        writing: the kernels, in one call.
        exported: registers of results that leave the program as copies.
        assigning: lets Variables hold what is there by then; done twice it is done once.
        counters: the Variables that `counting` changes.
    """

    __slots__ = ("_assigning", "_counters", "_counting", "_exported", "_writing")

    def __init__(
        self,
        counting: Sequence[Closure],
        writing: Segment,
        exported: Sequence[int],
        assigning: Sequence[Closure],
        counters: Sequence[Variable],
    ) -> None:
        self._counting, self._writing, self._exported = counting, writing, exported
        self._assigning, self._counters = assigning, counters

    def __call__(self, registers: list[Any]) -> None:
        """Take the step. An interrupt before the kernels have written changes nothing; after it, all is assigned."""
        memory = registers[0]
        job, before = self._writing.job(memory.turn), snapshot(self._counters)
        job.forget()
        try:
            for count in self._counting:
                count(registers)
            for flat in memory.flat:
                flat.begin(memory.turn)
            self._writing.carry_out(job)
            self._assign(registers)
        except BaseException:
            if job.done:
                self._assign(registers)
            else:
                restore(before)
            raise

    def _assign(self, registers: list[Any]) -> None:
        copies = registers.copy()
        for register in self._exported:
            copies[register] = copy_of(copies[register])
        for assign in self._assigning:
            assign(copies)
        registers[0].committed = True
        registers[:] = copies
