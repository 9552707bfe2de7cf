"""Execution of a program: a plain loop over closures, without Tensors, dispatch or tapes. `builder.py` makes them."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core import HeldLocks, State, Tensor, UpdateLock, UpdateLocks, Variable, clock, explained, restore, snapshot
from ....core.arrays import namespace, quiet_context
from ....core.ops.contractions import LONG
from ....errors import MinikerasError
from ....parallel import quiet_blas
from ....types import Array
from ...ir import Program, Slot, slots_of
from .lowering import LoweredOp, multiplications
from .memory_plan import MemoryPlan, RunMemory, arranged

if TYPE_CHECKING:
    from ....data.table import RowBatches
    from ....nn_ops.streams import Stream


# The changes of a run before its commit, to be undone if it fails: of random streams, and of the state of optimizers.
#
# Nothing here refers to arrays of weights and slots, so a commit can write these in place.


Rollback = Callable[[], Callable[[], None]]
"""Keeps the state that a run of a program may change before its commit; the function returned restores it."""


def rollback_of(program: Program) -> Rollback | None:
    """The rollback of a program's changes before its commit; None if a user's code may change anything else."""
    from ....nn_ops.streams import Stream  # it loads hashlib

    streams: dict[int, Stream] = {}
    variables: dict[int, Variable] = {}
    holders: dict[int, Any] = {}
    for record in program.records:
        writes = record.primitive.writes
        if State.STREAM in writes:
            owner = getattr(record.params["source"], "__self__", None)
            if isinstance(owner, Stream):
                streams[id(owner)] = owner
            elif isinstance(state := getattr(owner, "state", None), Variable):
                variables[id(state)] = state
            else:
                return None
        elif State.VARIABLES in writes:
            optimizer = record.params.get("optimizer")
            if optimizer is None or not (optimizer.is_own and optimizer.rate_is_own):  # code of the user
                return None
            holders |= {id(one): one for one in (optimizer, optimizer.state)}

    def begin() -> Callable[[], None]:
        drawn = [(stream, stream.state) for stream in streams.values()]
        states = snapshot(list(variables.values()))
        attributes = [(holder, vars(holder).copy()) for holder in holders.values()]

        def put_back() -> None:
            for stream, state in drawn:
                stream.state = state
            restore(states)
            for holder, before in attributes:
                vars(holder).clear()
                vars(holder).update(before)
            clock.tick()

        return put_back

    return begin


# Calls as functions of registers, the list of arrays that a run works on; register 0 is the memory of the run.
#
# All lookups are done before the first run. The usual numbers of operands are spelt out: unpacking a list costs as much as the
# rest.

Closure = Callable[[list[Any]], None]


def copy_of(array: Array) -> Array:
    """A copy of an array; a number as it is."""
    return array.copy() if array.shape else array[()]


def exporting(closure: Closure, exported: list[int]) -> Closure:
    """A call whose results leave the program: copies take the place of arrays in the arena."""
    if not exported:
        return closure

    def call(registers: list[Any]) -> None:
        closure(registers)
        for register in exported:
            registers[register] = copy_of(registers[register])

    return call


def writing_into(function: Callable[..., Any], numbers: list[int]) -> Closure:
    """A call that writes into the last of its arrays."""
    if len(numbers) == 2:
        a, to = numbers

        def one(registers: list[Any]) -> None:
            function(registers[a], registers[to])

        return one
    if len(numbers) == 3:
        a, b, to = numbers

        def two(registers: list[Any]) -> None:
            function(registers[a], registers[b], registers[to])

        return two

    def any_number(registers: list[Any]) -> None:
        function(*[registers[i] for i in numbers])

    return any_number


def with_memory(closure: Closure, made: list[tuple[int, Slot]]) -> Closure:
    """A call that writes into new memory."""
    empty = np.empty
    if len(made) == 1 and made[0][1].order is None:
        ((to, slot),) = made
        shape, dtype = slot.shape, slot.dtype

        def one(registers: list[Any]) -> None:
            registers[to] = empty(shape, dtype)
            closure(registers)

        return one

    def several(registers: list[Any]) -> None:
        for to, slot in made:
            registers[to] = arranged(empty(math.prod(slot.shape), slot.dtype), slot)
        closure(registers)

    return several


def giving_one(function: Callable[..., Any], inputs: list[int], to: int) -> Closure:
    """A call with one result, which it makes."""
    if len(inputs) == 1:
        (a,) = inputs

        def one(registers: list[Any]) -> None:
            registers[to] = function(registers[a])

        return one
    if len(inputs) == 2:
        a, b = inputs

        def two(registers: list[Any]) -> None:
            registers[to] = function(registers[a], registers[b])

        return two

    def any_number(registers: list[Any]) -> None:
        registers[to] = function(*[registers[i] for i in inputs])

    return any_number


def giving_several(function: Callable[..., Any], inputs: list[int], outputs: list[int]) -> Closure:
    """A call that makes its results: several in a tuple, one in it, or none."""
    if not outputs:

        def none(registers: list[Any]) -> None:
            function(*[registers[i] for i in inputs] if inputs else ())

        return none
    if len(outputs) == 1:
        (to,) = outputs

        def one(registers: list[Any]) -> None:
            (registers[to],) = function(*[registers[i] for i in inputs] if inputs else ())

        return one

    def call(registers: list[Any]) -> None:
        for register, result in zip(outputs, function(*[registers[i] for i in inputs]), strict=True):
            registers[register] = result

    return call


class Replay:
    """A program, ready to run any number of times, also in several threads at once: each run has memory of its own.

    Args:
        program: the program.
        steps: closures over registers, each with its call.
        plan: of the memory of a run.
        exact: whether it gives the bits of an eager run.
        in_a_row: `in_a_row(memory, batches, start, count, stacked, rollback)` carries out several runs as one call, if it can.
    """

    whole = False

    def __init__(
        self,
        program: Program,
        steps: Sequence[tuple[LoweredOp, Closure]],
        plan: MemoryPlan,
        exact: bool,
        in_a_row: Any = None,
    ) -> None:
        self.program, self.exact, self._plan, self._in_a_row = program, exact, plan, in_a_row
        self.buffers, self.bytes = plan.arena.buffers, plan.arena.size
        """Pieces of memory that are kept from run to run, Variables not counted, and the memory that they take together."""
        self._sources = [call.record for call, _ in steps]
        self._parts = _parts_of(steps)
        products, slots = list(map(multiplications, program.records)), [x for one in program.records for x in slots_of(one)]
        self._multiplies = max(products, default=0) >= LONG
        self.kernels = len(steps)
        self.seconds = 1.5e-6 * self.kernels + sum(x.bytes for x in slots) / 1e10 + 2.0 * sum(products) / 5e10
        """The time of a run by NumPy, roughly: computed from calls, memory and products, so it never changes.

        Measured on a server's processor of 2.5 GHz: 1.5 us a call, 10 GB/s, 50 Gflop/s.
        """
        self._results = [(plan.registers[x.key], None) if isinstance(x, Slot) else (None, x) for x in program.results]
        self._idle: list[RunMemory] = []
        commits = any(access.writing is not None and access.writing.in_place for access in plan.flat)
        self._rollback = rollback_of(program) if commits else None
        """If a run ends with a commit of all that it assigns, what puts back what it has changed before."""
        self._locks = locks_of(program)
        """A step reads weights, and assigns what follows from them, before another thread takes one."""

    def __call__(self, arguments: Sequence[Array]) -> list[Any]:
        """The leaves of the result: new Tensors, and other values as they are.

        Raises:
            MinikerasError: if a kernel or a check refuses values, as in an eager run.
        """
        with HeldLocks(self._locks):
            memory = self._memory_of_a_run()
            try:
                registers = self._run(memory, arguments)
                return [constant if number is None else Tensor(registers[number]) for number, constant in self._results]
            finally:
                self._idle.append(memory)

    def run_many(self, batches: RowBatches, keep_state: Callable[[], None], stacked: bool) -> list[Any]:
        """Several runs in turn, some as one call where possible; locks and memory are taken once for all."""
        parts: list[list[Array]] = []
        """Results of each call: stacks, or arrays of the last run."""
        with HeldLocks(self._locks):
            memory = self._memory_of_a_run()
            try:
                for found in self._calls(memory, batches, keep_state, stacked):
                    if not stacked:
                        parts.clear()
                    parts.append(found)
            finally:
                self._idle.append(memory)
        return leaves_of(self.program, parts, stacked)

    def _calls(
        self, memory: RunMemory, batches: RowBatches, keep_state: Callable[[], None], stacked: bool
    ) -> Iterator[list[Array]]:
        """The results of one call after another."""
        position, each = 0, iter(batches)
        while position < len(batches):
            found = None
            if self._in_a_row is not None and self._rollback is not None:
                count = min(len(batches) - position, self._in_a_row.most(batches))
                found = self._in_a_row(memory, batches, position, count, stacked, self._rollback)
            if found is not None:
                position += count
                each = map(batches.arguments, itertools.count(position))
                yield found
                continue
            if self._rollback is None:
                keep_state()
                registers = self._run(memory, next(each))
            else:
                registers = self._run_whole(memory, next(each), self._rollback)
            arrays = [registers[number] for number, _ in self._results if number is not None]
            del registers  # the next run counts references to the arrays
            position += 1
            yield [namespace(array).stack([array]) for array in arrays] if stacked else arrays

    def _run_whole(self, memory: RunMemory, arguments: Sequence[Array], rollback: Rollback) -> list[Any]:
        """A run that ends with a commit, or leaves everything as it was."""
        put_back = rollback()
        memory.committed = False
        try:
            return self._run(memory, arguments)
        except BaseException:
            if not memory.committed:
                put_back()
            raise

    def _memory_of_a_run(self) -> RunMemory:
        try:
            return self._idle.pop()
        except IndexError:
            return RunMemory(self._plan)

    def _run(self, memory: RunMemory, arguments: Sequence[Array]) -> list[Any]:
        """The registers after a run."""
        registers = memory.begin()
        registers[1 : 1 + len(arguments)] = arguments
        if not self._multiplies:
            self._carry_out(registers)
        else:
            with quiet_blas():  # once, and not for each product
                self._carry_out(registers)
        return registers

    def _carry_out(self, registers: list[Any]) -> None:
        """Call all closures; an error names the operation."""
        for closures, quiet, first in self._parts:
            calls = iter(closures)
            try:
                if quiet:
                    quiet_context().run(_carry_out, calls, registers)
                    continue
                for call in calls:
                    call(registers)
            except MinikerasError:
                raise
            except (ValueError, TypeError, OverflowError, np.linalg.LinAlgError) as error:
                record = self._sources[first + len(closures) - 1 - operator.length_hint(calls)]
                if record.primitive.effect:
                    raise
                raise explained(record.primitive, record.inputs, record.params, error) from error


def _carry_out(calls: Iterable[Closure], registers: list[Any]) -> None:
    for call in calls:
        call(registers)


def _parts_of(steps: Sequence[tuple[LoweredOp, Closure]]) -> list[tuple[list[Closure], bool, int]]:
    """Consecutive closures that run alike, whether they run without warnings, and the position of the first.

    Each such part is a call in a context of its own, as kernels are in eager runs: 0.15 us, `errstate` takes 1.3. Effects run
    in the caller's, where user code finds its context variables.
    """
    parts: list[tuple[list[Closure], bool, int]] = []
    for position, (call, closure) in enumerate(steps):
        if not parts or call.quiet not in (None, parts[-1][1]):
            parts.append(([], call.quiet or False, position))
        parts[-1][0].append(closure)
    return parts


def leaves_of(program: Program, parts: Sequence[Sequence[Array]], stacked: bool = False) -> list[Any]:
    """The leaves of a result, from the arrays of each call: those of the last run, or stacks, which are joined."""
    several = stacked and len(parts) > 1
    arrays = iter([namespace(one[0]).concatenate(one) if several else one[-1] for one in zip(*parts, strict=True)])
    return [Tensor(next(arrays)) if isinstance(x, Slot) else x for x in program.results]


def locks_of(program: Program) -> tuple[UpdateLock, ...]:
    """The locks of the optimizers whose steps a program takes, and of the Variables that it assigns beside them."""
    steps = [record.params["step"] for record in program.records if "step" in record.params]
    owners = [record.params["optimizer"] for record in program.records if "optimizer" in record.params]
    owners += [step.optimizer for step in steps if hasattr(step, "optimizer")]
    if not owners:
        return ()
    locks = UpdateLocks(owners[0].state.locks.own)
    for owner in owners:
        locks.include(owner.state.locks.all)
    locks.join(record.inputs[0] for record in program.records if State.OPERANDS in record.primitive.writes)
    return locks.all
