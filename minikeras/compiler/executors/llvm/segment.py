"""Segments: consecutive kernels as one call.

The kernels never change; only addresses differ from run to run, and are written when memory is chosen.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core import Variable, restore
from ....parallel import thread_count
from ...ir import Slot
from ...loop_ir.elements import elements_nest
from ...loop_ir.reductions import copy_body
from ...render.llvm import NestKernel
from ..numpy.memory_plan import MemoryPlan, RunMemory
from ..numpy.replay import Closure, copy_of
from . import jit
from .calls import SHARED, KernelCall
from .products import on_one_thread
from .runner import Instruction, Job

WAKING = 100e-6
"""The least seconds of a segment's shared instructions for which other threads are woken, which takes 20 to 50 us."""


class Placed(NamedTuple):
    """A value of each step.

    Attributes:
        place: among the addresses.
        slot: shape and dtype.
        source: of an input the register in which Python puts it, or the number of an argument.
    """

    place: int
    slot: Slot
    source: int = -1


class Around(NamedTuple):
    """The instructions around each of several steps.

    Attributes:
        first, last: instructions.
        moves: places among the addresses, and the bytes by which each advances in a step.
        places: the number of addresses beside those of a single step.
    """

    first: list[Instruction]
    last: list[Instruction]
    moves: list[tuple[int, int]]
    places: int


def copy_to(value: Placed, to: int) -> Instruction:
    """Copies a value to a place."""
    return _copying(value.slot.dtype), [value.place, to, math.prod(value.slot.shape or ()), 0, 0], 1


@functools.cache
def _copying(dtype: np.dtype[Any]) -> int:
    if dtype.kind == "u":  # of which a copy is that of other integers
        dtype = np.dtype(f"i{dtype.itemsize}")
    return jit.addresses([NestKernel(elements_nest(copy_body(dtype, dtype), (1,), ((0, False, 1),), 0, 0))])[0]


class Segment:
    """Consecutive kernels; each list of addresses has a job of its own for them.

    Args:
        calls: the kernels.
        plan: knows the places of slots.
        holds: whether Python's other threads wait.
        flushes: whether subnormal numbers count as 0, as for a step of training: what is left of a mean that decays would cost
            0.1 us for each element in every step.
    """

    __slots__ = ("_flushes", "_holds", "_instructions", "_one_thread", "_seconds")

    def __init__(self, calls: Sequence[KernelCall], plan: MemoryPlan, holds: bool = False, flushes: bool = False) -> None:
        functions = jit.addresses([call.function for call in calls])
        operands = [call.places(plan.address) for call in calls]
        self._seconds, self._holds, self._flushes = [call.seconds for call in calls], holds, flushes
        self._instructions = list(zip(functions, operands, strict=True))
        products = any(call.function.multiplies and call.seconds >= SHARED for call in calls)
        self._one_thread = on_one_thread() if products else None

    def job(
        self,
        memory: RunMemory,
        key: Any = None,
        around: Callable[[int], Around] | None = None,
        steps: int = 1,
        threads: int | None = None,
    ) -> Job:
        """The kernels over the addresses of a run, made once for each key; those that pay in a part for each thread.

        Args:
            memory: of a run.
            key: tells jobs apart.
            around: for many steps in a row, over a list of addresses of their own, from a number of threads to the instructions
                around each step.
            steps: at least so many, for which threads are woken once.
            threads: by default as many as there may be.
        """
        threads = threads or thread_count()
        job: Job | None = memory.jobs.get((self, threads, key))
        if job is None:
            given, addresses = Around([], [], [], 0), memory.addresses
            if around is not None:
                given = around(threads)
                addresses = np.zeros(len(memory.addresses) + given.places, np.int64)
            instructions = [*given.first, *self._in_parts(threads, steps), *given.last]
            job = memory.jobs[self, threads, key] = Job(instructions, addresses, self._holds, given.moves, self._flushes)
        return job

    def _in_parts(self, threads: int, steps: int) -> list[Instruction]:
        pays = [seconds >= SHARED for seconds in self._seconds]
        if steps * sum(seconds for seconds, one in zip(self._seconds, pays, strict=True) if one) < WAKING:
            pays = [False] * len(pays)
        return [(*one, threads if pay else 1) for one, pay in zip(self._instructions, pays, strict=True)]

    @property
    def shares_blas(self) -> bool:
        """True if threads share products by BLAS, whose bits depend on the number of parts."""
        return self._one_thread is not None

    @property
    def seconds(self) -> float:
        """The time of a run on one thread, roughly."""
        return sum(self._seconds)

    def __call__(self, registers: list[Any]) -> None:
        """Carry the kernels out."""
        self.carry_out(self.job(registers[0]))

    def carry_out(self, job: Job) -> bool:
        """Carry a job out; False, and nothing was done, if something else refers to arrays that it must write alone."""
        if self._one_thread is None:
            return job()
        with self._one_thread:
            return job()


class Commit:
    """The end of a step that writes in place: counters, kernels, assignments. It happens whole or not at all.

    Args:
        counting: effects that change counters.
        writing: the kernels, in one call.
        exported: registers of results that leave the program as copies.
        assigning: lets Variables that are not flattened hold the new values; doing so twice does no harm.
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
        job, before = self.writing.job(memory), [(one, one.array) for one in self.counters]
        job.forget()
        try:
            for count in self.counting:
                count(registers)
            while True:  # in other memory if something else refers to the weights when the kernels begin
                job.alone = [flat.alone for flat in memory.flat if flat.alone]
                if self.writing.carry_out(job):
                    break
                for flat in memory.flat:
                    if not flat.is_held_alone:
                        flat.bind_written(memory)
            self._assign(registers)
        except BaseException:
            if job.done:
                self._assign(registers)
            else:
                restore(before)
            raise

    def _assign(self, registers: list[Any]) -> None:
        for register in self._exported:
            registers[register] = copy_of(registers[register])
        for flat in registers[0].flat:
            flat.assign()
        for assign in self._assigning:
            assign(registers)
        registers[0].committed = True
