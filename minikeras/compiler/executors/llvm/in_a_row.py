"""Many steps of training as one call: arguments are gathered, numbers and draws prepared for all, kernels do the rest.

Each step has memory of its own for its arguments; the values of Variables stay in place for the kernels of the next step.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....core import Variable, assigned, only_checks, read_variable, restore, snapshot
from ....core.arrays import quiet_context
from ....parallel import thread_count
from ....types import Array
from ...ir import Program, Slot
from ...loop_ir import indexed
from ...loop_ir.nest import SHORT
from ...planning import address_of
from ...render.llvm import NestKernel
from ...variable_storage import flats_of, part, variables_of
from ..numpy.blocks import copied, put
from ..numpy.builder import Drop, Step
from ..numpy.lowering import AssignFlat, Bind, Call, Kernel, LoweredOp, ReadFlat, View
from ..numpy.memory_plan import MemoryPlan, RunMemory
from ..numpy.replay import Closure, Rollback, copy_of, exporting
from . import jit
from .calls import KernelCall
from .encode import BOUND
from .phases import does, is_counted
from .runner import Instruction, Job
from .segment import Around, Commit, Placed, Segment, copy_to

if TYPE_CHECKING:
    from ....data.table import RowBatches


SECONDS = 4e-3
"""Target duration of one call in seconds; other Python threads wait that long, and 5 ms for their turn in any case."""
BYTES = 1 << 23
"""The most bytes of arguments of the steps of one call."""
TRIED = 64
"""Of so many calls one is carried out by one thread if threads share the others, or the other way round."""
SHARED_BYTES = 1 << 17
"""Bytes of a batch from which threads share the gathering of its rows, which takes one thread 20 us."""


class StepLayout(NamedTuple):
    """The inputs and outputs of each step.

    Attributes:
        arguments, made: the inputs: rows of columns, and results of Python's closures.
        closures: these, each with its call.
        tests: numbers of arguments, and the checks that may refuse them.
        reads: the Variables that are read, each with the place among the addresses to which its value is copied.
        assigned: Variables, each with its new value.
        results: the values that a call returns, in order; others are the same in each run.
    """

    arguments: list[Placed]
    made: list[Placed]
    closures: list[tuple[LoweredOp, Closure]]
    tests: list[tuple[int, Any]]
    reads: list[tuple[Variable, int]]
    assigned: list[tuple[Variable, Placed]]
    results: list[Placed]


def layout_of(
    program: Program, early: Sequence[tuple[LoweredOp, Closure]], late: Sequence[LoweredOp], plan: MemoryPlan
) -> StepLayout | None:
    """The layout of a program's steps; None if Python has more to do between two of them."""
    numbers = {slot.key: number for number, slot in enumerate(program.arguments)}
    native = plan.exported & plan.addressed.keys()
    values = {call.operands[1].key: call for call in late if does(call, assigned) and isinstance(call.operands[1], Slot)}
    results = [x for x in program.results if isinstance(x, Slot)]
    plain = all(isinstance(call, AssignFlat) or (does(call, assigned) and call.operands[1].key in native) for call in late)
    if not plain or len(values) < sum([does(call, assigned) for call in late]) or any(x.key not in native for x in results):
        return None
    found = StepLayout([], [], [], [], [], [], [])
    held: dict[int, Variable] = {}
    bound: set[int] = set()
    for call, closure in early:
        operands = [x for x in call.operands if isinstance(x, Slot)]
        if _is_bound(call):
            bound.update(y.key for y in call.results)
        if _is_bound(call) or isinstance(closure, Drop):
            continue
        if does(call, read_variable):
            held[call.results[0].key] = call.operands[0]
        elif isinstance(call, Kernel) and only_checks(call.record.primitive) and operands[0].key in numbers:
            found.tests.append((numbers[operands[0].key], call.record.params["test"]))
        elif isinstance(call, Bind) or (isinstance(call, Call) and call.function in (copied, put)):
            # a scalar weight, which each step changes, would have to be copied between two steps
            if operands[0].key in bound or not _bring(found, operands[0], call.results[0], numbers, held, plan):
                return None
        elif any(x.key in numbers or x.key in held for x in operands):
            return None
        else:
            found.closures.append((call, closure))
            seen = [y for y in call.results if y.key in plan.addressed]
            found.made.extend(Placed(plan.address(y), y, plan.registers[y.key]) for y in seen)
    found.assigned.extend((call.operands[0], _value(call.operands[1], plan)) for call in values.values())
    found.results.extend(_value(slot, plan) for slot in results)
    return found


def _is_bound(call: LoweredOp) -> bool:
    """True if a call returns memory of flattened Variables."""
    return isinstance(call, ReadFlat) or (isinstance(call, View) and call.record.primitive is part)


def _value(slot: Slot, plan: MemoryPlan) -> Placed:
    return Placed(plan.address(slot), slot)


def _bring(found: StepLayout, x: Slot, to: Slot, numbers: Any, held: Any, plan: MemoryPlan) -> bool:
    """Note the source of a value at a known address; False for a Variable in another dtype, or a value for Python alone."""
    if to.key not in plan.addressed:
        return False
    place = plan.address(to)
    if x.key in held:
        found.reads.append((held[x.key], place))
        return x.dtype == to.dtype
    elif x.key in numbers:
        found.arguments.append(Placed(place, to, numbers[x.key]))
    else:
        found.made.append(Placed(place, to, plan.registers[x.key]))
    return True


class InARow:
    """Carries out steps in a row, with the memory of one run at a time.

    Args:
        layout: the inputs and outputs of each step.
        commit: the end of a single step.
        part: what makes and counts all that Python does, for any number of steps, by `in_a_row`; None if there is none.
    """

    def __init__(self, layout: StepLayout, commit: Commit, part: Any = None) -> None:
        self._layout, self._commit, self._part, self._calls = layout, commit, part, TRIED // 2
        self._seconds = {True: commit.writing.seconds, False: math.inf}
        """Of a step, as the last call took, by whether threads shared it."""

    def most(self, batches: RowBatches) -> int:
        """The number of steps that one call should carry out."""
        columns, rows = batches.columns, batches.rows
        tested = {number for number, _ in self._layout.tests}
        given = [one for one in self._layout.arguments if not _can_gather(columns[one.source], rows, one.slot)]
        each = sum(one.slot.bytes for one in given) + sum(columns[number][:1].nbytes for number in tested) * rows[:1].size
        return max(1, min(int(SECONDS / max(min(self._seconds.values()), 1e-7)), BYTES // max(each, 1)))

    def _shares(self) -> bool:
        """True if threads are to share a call, as was faster lately: other programs may want the processors. Bits are the same,
        but for products by BLAS, which threads always share.
        """
        if self._commit.writing.shares_blas:
            return True
        self._calls += 1
        return (self._seconds[True] <= self._seconds[False]) is not (self._calls % TRIED == 0)

    def __call__(
        self, memory: RunMemory, batches: RowBatches, start: int, count: int, stacked: bool, rollback: Rollback
    ) -> list[Array] | None:
        """Carry out the steps of some batches; the arrays of the results, stacked or of the last step.

        Returns:
            None, and nothing was done, if Variables are not to be written in place, or if a step is going to fail before its
            kernels begin: one by one they tell which.
        """
        run = _Run(self._layout, memory, count)
        if not (run.bind() and run.give_arguments(batches, start, start + count)):
            return None
        put_back, counters = rollback(), snapshot(self._commit.counters)
        try:
            if not (self._prepare(run, range(count)) and run.bind()):  # something else may refer to an array by now
                put_back()
                restore(counters)
                return None
            shares = self._shares()
            job = run.job(self._commit.writing, stacked, thread_count() if shares else 1)
            began = time.perf_counter()
            if not self._commit.writing.carry_out(job):
                put_back()
                restore(counters)
                return None
            self._seconds[shares] = (time.perf_counter() - began) / count
        except BaseException:
            put_back()
            restore(counters)
            self._prepare(run, range(run.done))  # these steps are done: Python's preparation for them stays
            if run.done:
                run.assign()
            raise
        run.assign()
        return run.results(stacked)

    def _prepare(self, run: _Run, steps: range) -> bool:
        """Let Python compute the inputs of steps, and count them; False if it fails: one by one, the failing step raises."""
        try:
            if self._part is not None and steps:
                run.take_made(self._part.in_a_row(len(steps)))
                return True
            for step in steps:
                run.make(step)
                for closure in self._commit.counting:
                    closure(run.registers)
        except Exception:
            return False
        return True


class _Run:
    """The memory of some steps in a row.

    Args:
        layout: their inputs and outputs.
        memory: of a run.
        count: their number.
    """

    def __init__(self, layout: StepLayout, memory: RunMemory, count: int) -> None:
        self._layout, self._memory, self._count = layout, memory, count
        self.registers = memory.begin()
        self._arguments: list[Array] = []
        """Values for all steps, as those that Python makes; or memory for one step, if kernels gather its rows."""
        self._gathers: dict[int, tuple[Array, Array]] = {}
        """By the position of an argument, the column and the row numbers of all steps."""
        self._made = [np.empty((count, *(one.slot.shape or ())), one.slot.dtype) for one in layout.made]
        self._homes: dict[int, Array] = {}
        """The arrays that hold the values of Variables between two steps, by their keys."""
        self._outputs: list[Array] = []
        self._job: Job | None = None

    def give_arguments(self, batches: RowBatches, start: int, stop: int) -> bool:
        """Gather the rows of all steps; False if a test refuses any."""
        columns, rows = batches.columns, batches.rows[start:stop]
        numbers = rows.reshape(-1)
        neighbours = bool(numbers.size and numbers[-1] - numbers[0] == numbers.size - 1 and (np.diff(numbers) == 1).all())
        found = {number: _rows_of(batches, columns[number], rows, neighbours) for number, _ in self._layout.tests}
        try:
            for number, test in self._layout.tests:
                test(found[number])
        except Exception:
            return False  # run one by one, the failing step raises
        for position, given in enumerate(self._layout.arguments):
            column = columns[given.source]
            if given.source not in found and not neighbours and _can_gather(column, rows, given.slot):
                self._gathers[position] = column, np.ascontiguousarray(rows)
                self._arguments.append(np.empty(given.slot.shape, given.slot.dtype))
                continue
            if given.source not in found:
                found[given.source] = _rows_of(batches, column, rows, neighbours)
            self._arguments.append(np.ascontiguousarray(found[given.source], given.slot.dtype))
        return True

    def make(self, step: int) -> None:
        """Let Python compute its inputs for a step."""
        for call, closure in self._layout.closures:
            if call.quiet:
                quiet_context().run(closure, self.registers)
            else:
                closure(self.registers)
        for given, stack in zip(self._layout.made, self._made, strict=True):
            stack[step] = self.registers[given.source]

    def take_made(self, columns: Sequence[Any]) -> None:
        """Take what Python has computed for the first steps: for each of its inputs a value for each step."""
        for stack, values in zip(self._made, columns, strict=True):
            stack[: len(values)] = values

    def bind(self) -> bool:
        """Look up the memory of Variables; False if they must not be written there."""
        for flat in self._memory.flat:
            flat.bind_read(self.registers, self._memory)
        return all(flat.is_held_alone for flat in self._memory.flat)

    def job(self, writing: Segment, stacked: bool, threads: int) -> Job:
        """The kernels of all steps, shared by threads, over addresses that advance from step to step."""
        layout, memory = self._layout, self._memory
        given = [*self._arguments, *self._made]
        variables = [variable for variable, _ in (*layout.assigned, *layout.reads)]
        homes = self._homes = {variable.key: np.array(variable.array) for variable in variables}
        shape = (self._count if stacked else 1,)
        self._outputs = [np.empty((*shape, *(one.slot.shape or ())), one.slot.dtype) for one in layout.results]
        around = functools.partial(self._around, stacked)
        job = writing.job(memory, (stacked, *self._gathers), around, threads=threads)
        addresses, known = job.addresses, len(memory.addresses)
        addresses[:known] = memory.addresses
        addresses[[one.place for one in (*layout.arguments, *layout.made)]] = list(map(address_of, given))
        addresses[[place for _, place in layout.reads]] = [address_of(homes[variable.key]) for variable, _ in layout.reads]
        kept = [homes[variable.key] for variable, _ in layout.assigned]
        gathered = [array for pair in self._gathers.values() for array in pair]
        addresses[known:] = list(map(address_of, (*kept, *self._outputs, *gathered)))
        job.steps, job.alone = self._count, [flat.alone for flat in self._memory.flat if flat.alone]
        job.forget()
        self._job = job
        return job

    def _around(self, stacked: bool, threads: int) -> Around:
        """The instructions around a step: gather rows before it; copy values for the next step, or for Python, after it."""
        layout, known = self._layout, len(self._memory.addresses)
        stored = [*(value for _, value in layout.assigned), *layout.results]
        given = [*layout.arguments, *layout.made]
        moves = [(one.place, one.slot.bytes) for position, one in enumerate(given) if position not in self._gathers]
        if stacked:
            first = known + len(layout.assigned)
            moves += [(first + number, one.slot.bytes) for number, one in enumerate(layout.results)]
        gathers: list[Instruction] = []
        for place, position in zip(itertools.count(known + len(stored), 2), self._gathers, strict=False):
            one = layout.arguments[position]
            rows = self._gathers[position][1][0].size
            moves.append((place + 1, 8 * rows))
            parts = threads if one.slot.bytes >= SHARED_BYTES else 1
            width, itemsize = one.slot.bytes // rows, 8 if one.slot.bytes // rows % 8 == 0 else 1
            sizes = [rows, len(self._gathers[position][0]), width // itemsize]
            short = sizes[2] if sizes[2] < SHORT else None
            gathers.append((_gathering(itemsize, short), [place, place + 1, one.place, *sizes], parts))
        last = [copy_to(one, known + number) for number, one in enumerate(stored)]
        return Around(gathers, last, moves, len(stored) + 2 * len(gathers))

    @property
    def done(self) -> int:
        """The number of steps that the kernels have carried out."""
        return 0 if self._job is None else self._job.done

    def assign(self) -> None:
        """Let Variables hold their new values."""
        for flat in self._memory.flat:
            flat.assign()
        for variable, _ in self._layout.assigned:
            variable.array = copy_of(self._homes[variable.key])

    def results(self, stacked: bool) -> list[Array]:
        """The arrays of the result."""
        return [output if stacked else copy_of(output[0]) for output in self._outputs]


def _rows_of(batches: RowBatches, column: Array, rows: Array, neighbours: bool) -> Array:
    """The rows of all steps, one by one; neighbours are not copied."""
    numbers = rows.reshape(-1)
    return batches.converted(column[numbers[0] : numbers[-1] + 1] if neighbours else column.take(numbers, axis=0))


def _can_gather(column: Array, rows: Array, slot: Slot) -> bool:
    """True if kernels can gather rows of a column as they are, and the rows are large enough for that to pay."""
    plain = isinstance(column, np.ndarray) and column.flags.c_contiguous and column.dtype == slot.dtype
    return plain and rows.ndim > 1 and slot.bytes >= BOUND and rows.size > 0


@functools.cache
def _gathering(itemsize: int, width: int | None) -> int:
    """Gathers rows of integers of this size, so many in each if that is known."""
    sizes = indexed.COUNT, indexed.ROWS, indexed.WIDTH
    nest = indexed.gather_nest((1, *sizes[:2], width or indexed.WIDTH), f"i{itemsize}", np.int64, sizes)
    return jit.addresses([NestKernel(nest)])[0]


# From the steps of a program to segments: consecutive kernels become one call, those that write in place a commit.

HOLDING = 4e-3
"""The most seconds of kernels for which Python's other threads wait until all have ended: they wait 5 ms for their turn.

Threads must wait for kernels that write in place, so that none sees a value change; in longer steps these are a call.
"""


def link(program: Program, steps: Sequence[Step], plan: MemoryPlan) -> tuple[list[tuple[Any, Closure]], InARow | None]:
    """The steps of a program, consecutive kernels as one segment, and those that write in place as a commit."""
    trains = any("optimizer" in record.params for record in program.records)
    joined = list(_in_segments(steps, plan, trains))
    segments = [number for number, (calls, _) in enumerate(joined) if isinstance(calls[0], KernelCall)]
    flat = [call for call, _ in steps if isinstance(call, AssignFlat)]
    if len(segments) != 1:  # a view of an empty array is made by Python, between kernels
        for call in flat:
            call.in_place = False
    if not any(call.in_place for call in flat):
        return [(calls[0], closure) for calls, closure in joined], None
    (at,) = segments
    first = next(number for number in range(at + 1) if all(is_counted(calls[0]) for calls, _ in joined[number:at]))
    before = [(calls[0], closure) for calls, closure in joined[:first]]
    (calls, _), flats = joined[at], {x.key for call in flat for x in flats_of(call.record)}
    long = sum(call.seconds for call in calls) > HOLDING
    computing = [call for call in calls if long and not {y.key for y in call.results} <= flats]
    writing = Segment([call for call in calls if call not in computing], plan, holds=True, flushes=True)
    exported = [register for call in calls if call not in computing for register in plan.copied_out(call)]
    counting = [closure for _, closure in joined[first:at]]
    after = [closure for calls, closure in joined[at + 1 :] if not isinstance(calls[0], AssignFlat)]
    assigning = [closure for closure in after if type(closure) is not Drop]  # an interrupted assignment is done again
    optimizers = [one[0].record.params["optimizer"] for one, _ in joined[first:at]]
    held = {variable.key for call in flat for variable in variables_of(call.record)}
    counters = [one for optimizer in optimizers for one in optimizer.variables if one.key not in held]
    commit = Commit(counting, writing, exported, assigning, counters)
    if computing:
        return [*before, (computing[0], _closure(computing, plan, trains)), (calls[0], commit)], None
    late = [one[0] for one, _ in joined[at + 1 :]]
    layout = layout_of(program, before, late, plan)
    counted = {variable.key for variable in counters}
    if layout is None or any(variable.key in counted for variable, _ in layout.reads):  # each step reads another count
        return [*before, (calls[0], commit)], None
    made = [call for call, _ in layout.closures]
    parts = [call.record.params.get("part") for call in (*made, *(one[0] for one, _ in joined[first:at]))]
    whole = len(parts) == 2 and parts[0] is parts[1] and len(layout.made) == len(made[0].results)
    return [*before, (calls[0], commit)], InARow(layout, commit, parts[0] if whole else None)


def _in_segments(steps: Sequence[Step], plan: MemoryPlan, trains: bool) -> Iterator[tuple[Sequence[Any], Closure]]:
    """Closures with the calls that they carry out."""
    waiting: list[KernelCall] = []
    for call, closure in steps:
        if closure is None:
            waiting.append(call)
            continue
        if waiting:
            yield waiting, _closure(waiting, plan, trains)
            waiting = []
        yield [call], closure
    if waiting:
        yield waiting, _closure(waiting, plan, trains)


def _closure(calls: Sequence[KernelCall], plan: MemoryPlan, trains: bool) -> Closure:
    exported = [register for call in calls for register in plan.copied_out(call)]
    given_out = {y.key: y for call in calls for y in call.results if y.key in plan.given_out}
    closure = exporting(Segment(calls, plan, flushes=trains), exported)
    made = [(plan.registers[key], plan.address(y), y) for key, y in given_out.items()]
    return _into_new_memory(closure, made) if made else closure


def _into_new_memory(closure: Closure, made: Sequence[tuple[int, int, Slot]]) -> Closure:
    """Kernels of which some results are new arrays in each run: these are put into registers and addresses."""

    def call(registers: list[Any]) -> None:
        addresses = registers[0].addresses
        for register, place, slot in made:
            if registers[register] is None:  # an earlier segment may have written a part of it
                registers[register] = np.empty(slot.shape, slot.dtype)
            addresses[place] = address_of(registers[register])
        closure(registers)

    return call
