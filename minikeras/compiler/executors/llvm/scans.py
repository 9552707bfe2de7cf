"""Loops over a recorded step as kernels: the runner repeats the kernels of the step, and Python calls it once for all steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ....core import Tensor
from ....errors import InvalidArgumentError
from ....nn_ops.loop_body import LoopBody, replay
from ....types import Array
from ...ir import Program, Slot
from ...passes import optimized
from ...planning import address_of
from ...recorder import recorded
from ..numpy.blocks import copied, put
from ..numpy.builder import Builder, Drop
from ..numpy.lowering import Bind, Call, LoweredOp
from ..numpy.memory_plan import MemoryPlan, RunMemory
from .calls import KernelCall
from .segment import Around, Placed, Segment, copy_to


def scan_of(
    encode: Callable[[Program], tuple[Program, Sequence[LoweredOp]]], flushes: bool, body: LoopBody, length: int, reverse: bool
) -> KernelScan | None:
    """The loop as kernels; None if there are none for a part of its step.

    Args:
        encode: encodes a program as one segment: the program, perhaps with other slots, and its calls.
        flushes: as of `Segment`.
        body: the step.
        length: the number of steps.
        reverse: whether to begin with the last slice.
    """
    program = _program_of(body)
    if not length or program is None:
        return None
    program, calls = encode(optimized(program, native=True))
    plan = MemoryPlan(program, calls)
    step = _Step.of(program, Builder(plan, calls), len(body.carried))
    return None if step is None else KernelScan(step, plan, len(body.carried), len(body.sliced), (length, reverse, flushes))


def _program_of(body: LoopBody) -> Program | None:
    """The step as a program, recorded on zeros; None if it refuses values, or one is no array of NumPy without gaps."""
    if any(one.primitive.effect for one in body.instructions):
        return None
    given = [Tensor(np.zeros(one.shape or (), one.dtype)) for one in (body.values[place] for place in body.operands)]

    def step(given: Sequence[Tensor]) -> list[Tensor]:
        values = replay(body.instructions, body.filled(given))
        return [values[place] for place in body.results]

    try:
        return recorded(step, given)
    except InvalidArgumentError:  # zeros are a singular matrix
        return None


class _Step(NamedTuple):
    """The kernels of one step, and the places of their operands and results.

    Attributes:
        calls: the kernels.
        given: the operands that they read.
        results: the carried values for the next step, then the outputs of the step.
        order: the numbers of carried values that a step changes, in the order in which they must be copied.
        arguments: the positions of operands, by key.
        movable: keys of results whose address may change: no kernel reads them through a view.
    """

    calls: list[KernelCall]
    given: list[Placed]
    results: list[Slot]
    order: list[int]
    arguments: dict[int, int]
    movable: set[int]

    @classmethod
    def of(cls, program: Program, builder: Builder, carried: int) -> _Step | None:
        """The step of a program; None if Python has a part in it."""
        arguments, plan = {slot.key: number for number, slot in enumerate(program.arguments)}, builder.plan
        calls: list[KernelCall] = []
        given: list[Placed] = []
        for call, closure in builder.steps():
            if closure is None:
                calls.append(call)
            elif isinstance(closure, Drop):
                continue  # an argument, which the caller holds
            elif isinstance(call, Bind) or (isinstance(call, Call) and call.function in (copied, put)):
                (source,), (to,) = call.operands, call.results
                number = arguments.get(source.key)
                if number is None or (number < carried and source.dtype != to.dtype):
                    return None
                given.append(Placed(plan.address(to), to, number))
            else:
                return None
        made = {y.key for call in calls for y in call.results}
        sources = [None if x.key in made else arguments.get(x.key, carried) for x in program.results]
        order = _order(sources[:carried])
        if order is None or any(source is not None and source >= carried for source in sources):
            return None  # swapped values, a constant, or a slice as it is
        for call in calls:
            call.places(plan.address)
        viewed = {plan.root(key) for key in plan.addressed if plan.root(key) != key}
        if any(one.slot.key in viewed for one in given):
            return None
        return cls(calls, given, list(program.results), order, arguments, made - viewed)


def _order(sources: Sequence[int | None]) -> list[int] | None:
    """The numbers of carried values that a step changes, each after those that take its old value; None if two are swapped."""
    order: list[int] = []
    pending = {number: source for number, source in enumerate(sources) if source != number}
    while pending:
        ready = [number for number in pending if number not in pending.values()]
        if not ready:
            return None
        order += ready
        pending = {number: source for number, source in pending.items() if number not in ready}
    return order


class KernelScan:
    """A loop: a function of its operands and of memory for its results.

    Args:
        step: its kernels.
        plan: knows the places of values.
        carried, sliced: the numbers of such operands; those behind them are the same in each step.
        how: the number of steps, whether they go backwards, and whether subnormal numbers count as 0.
    """

    def __init__(self, step: _Step, plan: MemoryPlan, carried: int, sliced: int, how: tuple[int, bool, bool]) -> None:
        self._step, self._carried, self._sliced = step, carried, sliced
        self._length, self._reverse, flushes = how
        self._segment, self._plan = Segment(step.calls, plan, flushes=flushes), plan
        self._idle: list[RunMemory] = []
        self._rows: dict[int, int] = {}
        """By the position of a result, the place that moves over its rows; the others are copied there."""
        for number, slot in enumerate(step.results[carried:], carried):
            if slot.key in step.movable and plan.address(slot) not in self._rows.values():
                self._rows[number] = plan.address(slot)
        moved = {step.results[number].key for number in self._rows}
        own = {y.key: y for y in step.results if y.key in plan.given_out and y.key not in moved}
        self._own = [(plan.address(y), y) for y in own.values()]
        """Large values that are carried, for which the plan has no memory, by their places."""
        self._places = len(plan.addressed)

    def __call__(self, *arrays: Array) -> None:
        """Carry out all steps. The arrays are the operands, then those for the results."""
        count = len(self._step.arguments)
        operands, results = arrays[:count], arrays[count:]
        memory = self._idle.pop() if self._idle else RunMemory(self._plan)
        try:
            memory.begin()
            job = self._segment.job(memory, self, self._around, self._length)
            addresses, known = job.addresses, self._places
            addresses[:known] = memory.addresses
            held = list(self._addressed(operands, results, addresses))
            job.steps = self._length
            self._segment.carry_out(job)
            del held
        finally:
            self._idle.append(memory)

    def _addressed(self, operands: Sequence[Array], results: Sequence[Array], addresses: Array) -> Iterator[Array]:
        """Write the addresses of operands, results and further memory; the arrays that have to live until the loop ends."""
        for place, slot in self._own:
            array = np.empty(slot.shape, slot.dtype)
            addresses[place] = address_of(array)
            yield array
        for number, home in enumerate(results[: self._carried]):
            np.copyto(home, operands[number])
            addresses[self._places + number] = address_of(home)
        for place, slot, source in self._step.given:
            array = results[source] if source < self._carried else np.ascontiguousarray(operands[source], slot.dtype)
            addresses[place] = self._first(array) if self._is_sliced(source) else address_of(array)
            yield array
        for number, rows in enumerate(results[self._carried :], self._carried):
            addresses[self._rows.get(number, self._places + number)] = self._first(rows)

    def _is_sliced(self, operand: int) -> bool:
        return self._carried <= operand < self._carried + self._sliced

    def _first(self, rows: Array) -> int:
        """The address of the row that the first step reads or writes."""
        return address_of(rows[-1 if self._reverse else 0, ...])

    def _around(self, threads: int) -> Around:
        """The copies after a step: of rows that no kernel has written in place, then of the carried values."""
        step, moves, last = self._step, [], []
        direction = -1 if self._reverse else 1
        homes = {key: self._places + number for key, number in step.arguments.items() if number < self._carried}
        places = self._plan.addressed | homes
        for place, slot, source in step.given:
            if self._is_sliced(source):
                moves.append((place, direction * slot.bytes))
        for number, slot in enumerate(step.results[self._carried :], self._carried):
            to = self._rows.get(number)
            if to is None:
                to = self._places + number
                last.append(copy_to(Placed(places[slot.key], slot), to))
            moves.append((to, direction * slot.bytes))
        last += [copy_to(Placed(places[step.results[i].key], step.results[i]), self._places + i) for i in step.order]
        return Around([], last, moves, len(step.results))
