"""Segments: kernels that follow one another, as one call.

What they are never changes; what differs from run to run are addresses, which are written where memory is chosen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....core import Variable
from ....core.state import restore, snapshot
from ....errors import InvalidArgumentError
from ....threads import thread_count
from ...ir import Program
from ...planning.flat_variables import flats_of, variables_of
from ..numpy.builder import Builder, Linked, Step, is_quiet
from ..numpy.calls import AssignFlat
from ..numpy.closures import Closure, copy_of, exporting
from ..numpy.run_memory import RunMemory, Turn
from . import blas, jit
from .calls import SHARED, KernelCall
from .in_a_row import Around, InARow, layout_of
from .kernels import EachKernel
from .phases import is_counted
from .products import ProductKernel
from .runner import Instruction, Job

WAKING = 100e-6
"""Seconds that the shared instructions of a segment take at least for other threads to be woken, which takes 20 to 50 us."""
HOLDING = 4e-3
"""Seconds that kernels take at most for Python's other threads to wait until all have ended: they wait 5 ms for their turn.

What writes in place has to be waited for, so that no thread sees a value change; in longer steps it is a call of its own.
"""


def link(program: Program, steps: Sequence[Step], builder: Builder) -> Linked:
    """The steps of a program, kernels that follow one another as one segment, and what writes in place as a commit."""
    trains = any("optimizer" in record.params for record in program.records)
    joined = list(_in_segments(steps, builder, trains))
    segments = [number for number, (calls, _) in enumerate(joined) if isinstance(calls[0], KernelCall)]
    flat = [call for call, _ in steps if isinstance(call, AssignFlat)]
    if len(segments) != 1:  # a view of an empty array is made by Python, between kernels
        for call in flat:
            call.in_place = False
    if not any(call.in_place for call in flat):
        return Linked([(calls[0], closure) for calls, closure in joined])
    (at,) = segments
    first = next(number for number in range(at + 1) if all(is_counted(calls[0]) for calls, _ in joined[number:at]))
    before = [(calls[0], closure) for calls, closure in joined[:first]]
    (calls, _), flats = joined[at], {x.key for call in flat for x in flats_of(call.record)}
    long = sum(call.seconds for call in calls) > HOLDING
    computing = [call for call in calls if long and not {y.key for y in call.results} <= flats]
    writing = Segment([call for call in calls if call not in computing], builder, holds=True, flushes=True)
    exported = [register for call in calls if call not in computing for register in builder.exported(call)]
    counting, assigning = [closure for _, closure in joined[first:at]], [closure for _, closure in joined[at + 1 :]]
    optimizers = [one[0].record.params["optimizer"] for one, _ in joined[first:at]]
    held = {variable.key for call in flat for variable in variables_of(call.record)}
    counters = [one for optimizer in optimizers for one in optimizer.variables if one.key not in held]
    commit = Commit(counting, writing, exported, assigning, counters)
    if computing:
        return Linked([*before, (computing[0], _closure(computing, builder, trains)), (calls[0], commit)])
    late = [one[0] for one, _ in joined[at + 1 :]]
    layout = layout_of(program, [(call, closure, bool(is_quiet(call))) for call, closure in before], late, builder)
    in_a_row = None if layout is None else InARow(program, layout, commit)
    return Linked([*before, (calls[0], commit)], in_a_row)


def _in_segments(steps: Sequence[Step], builder: Builder, trains: bool) -> Iterator[tuple[Sequence[Any], Closure]]:
    """Closures with the calls that they carry out."""
    waiting: list[KernelCall] = []
    for call, closure in steps:
        if closure is None:
            waiting.append(call)
            continue
        if waiting:
            yield waiting, _closure(waiting, builder, trains)
            waiting = []
        yield [call], closure
    if waiting:
        yield waiting, _closure(waiting, builder, trains)


def _closure(calls: Sequence[KernelCall], builder: Builder, trains: bool) -> Closure:
    exported = [register for call in calls for register in builder.exported(call)]
    return exporting(Segment(calls, builder, flushes=trains), exported)


def _multiplies(kernel: Any) -> bool:
    return isinstance(kernel.kernel if isinstance(kernel, EachKernel) else kernel, ProductKernel)


class Segment:
    """Kernels that follow one another; each list of addresses has a job of its own for them.

    Args:
        calls: the kernels.
        builder: knows the places of slots.
        holds: whether Python's other threads wait.
        flushes: whether subnormal numbers count as 0, as for a step of training: what is left of a mean that decays would cost
            0.1 us for each element in every step.
    """

    __slots__ = ("_flushes", "_holds", "_instructions", "_one_thread", "_seconds")

    def __init__(self, calls: Sequence[KernelCall], builder: Builder, holds: bool = False, flushes: bool = False) -> None:
        functions = jit.addresses([call.kernel for call in calls])
        operands = [call.places(builder.address) for call in calls]
        self._seconds, self._holds, self._flushes = [call.seconds for call in calls], holds, flushes
        self._instructions = list(zip(functions, operands, strict=True))
        products = any(_multiplies(call.kernel) and call.seconds >= SHARED for call in calls)
        self._one_thread = (blas.on_one_thread() if products else None) or contextlib.nullcontext()

    def job(self, turn: Any) -> Job:
        """The kernels over the addresses of a turn, those that pay in as many parts as there are threads."""
        threads = thread_count()
        job: Job | None = turn.jobs.get((self, threads))
        if job is None:
            job = turn.jobs[self, threads] = Job(self._in_parts(threads), turn.addresses, self._holds, flushes=self._flushes)
        return job

    def _in_parts(self, threads: int) -> list[Instruction]:
        pays = [seconds >= SHARED for seconds in self._seconds]
        if sum(seconds for seconds, one in zip(self._seconds, pays, strict=True) if one) < WAKING:
            pays = [False] * len(pays)
        return [(*one, threads if pay else 1) for one, pay in zip(self._instructions, pays, strict=True)]

    def job_of(self, turn: Turn, key: Any, around: Callable[[int], Around]) -> Job:
        """For many steps in a row, a job over a list of addresses of its own, made once for each key.

        Args:
            turn: what a run begins with.
            key: tells jobs apart.
            around: gives, for a number of threads, what each step begins and ends with.
        """
        threads = thread_count()
        job: Job | None = turn.jobs.get((self, threads, key))
        if job is None:
            given = around(threads)
            addresses = np.zeros(len(turn.addresses) + given.places, np.int64)
            instructions = [*given.first, *self._in_parts(threads), *given.last]
            job = turn.jobs[self, threads, key] = Job(instructions, addresses, self._holds, given.moves, self._flushes)
        return job

    @property
    def seconds(self) -> float:
        """What a run takes one thread, roughly."""
        return sum(self._seconds)

    def __call__(self, registers: list[Any]) -> None:
        """Carry the kernels out."""
        self.carry_out(self.job(registers[0].turn))

    def carry_out(self, job: Job) -> bool:
        """Carry a job out; False, and nothing was done, if something refers to what it is to write alone."""
        with self._one_thread:
            stopped = job()
        if stopped > 0:
            raise InvalidArgumentError(
                "a label or an index is outside its row: labels are in [0, classes), indices in [0, size)."
            )
        return stopped == 0


class Commit:
    """The end of a step that writes in place: counters, kernels, assignments. It happens whole or not at all.

    Args:
        counting: effects that change counters.
        writing: the kernels, in one call.
        exported: registers of results that leave the program as copies.
        assigning: lets Variables hold what is there by then; done twice it is done once.
        counters: the Variables that `counting` changes.
    """

    __slots__ = ("_assigning", "_exported", "counters", "counting", "writing")

    def __init__(
        self,
        counting: Sequence[Closure],
        writing: Segment,
        exported: Sequence[int],
        assigning: Sequence[Closure],
        counters: Sequence[Variable],
    ) -> None:
        self.counting, self.writing, self._exported = counting, writing, exported
        self._assigning, self.counters = assigning, counters

    def __call__(self, registers: list[Any]) -> None:
        """Take the step. An interrupt before the kernels have written changes nothing; after it, all is assigned."""
        memory = registers[0]
        job, before = self.writing.job(memory.turn), snapshot(self.counters)
        job.forget()
        try:
            for count in self.counting:
                count(registers)
            self._write(job, memory)
            self._assign(registers)
        except BaseException:
            if job.done:
                self._assign(registers)
            else:
                restore(before)
            raise

    def _write(self, job: Job, memory: RunMemory) -> None:
        """Carry the kernels out, in other memory if another thread looks at the weights until they begin."""
        done = False
        while not done:
            for flat in memory.flat:
                flat.begin(memory.turn)
            job.alone = [flat.held for flat in memory.flat if flat.writes_in_place]
            done = self.writing.carry_out(job)

    def _assign(self, registers: list[Any]) -> None:
        copies = registers.copy()
        for register in self._exported:
            copies[register] = copy_of(copies[register])
        for assign in self._assigning:
            assign(copies)
        registers[0].committed = True
        registers[:] = copies
