"""Carrying a program out again: a plain loop over closures, without Tensors, dispatch or tapes.

Key idea: all that Python looks up in an eager run - which kernel, which library, which operands, which memory - is looked up
once, here. What is left for each run is one call for each instruction over a list of arrays. State is read, drawn and assigned
anew. Read `lower.py` and `memory.py` first.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....arrays import namespace
from ....core import Record, Tensor, Variable
from ....core.effects import State
from ....core.registry import operations
from ....core.update_lock import Held, UpdateLock, in_order
from ....core.variable import assigned, read_variable
from ....errors import MinikerasError
from ....types import Array
from ...ir import Program, outputs_of
from ...planning.flat_variables import assign_flat, flatten, read_flat
from ...planning.memory_plan import Plan
from ...recorder import Slot
from .blocks import put
from .closures import (
    ASSIGNMENTS,
    Closure,
    assign_row,
    calling,
    copied_view,
    exporting,
    gather,
    giving_one,
    giving_several,
    let_go,
    moving,
    read_row,
    reading,
    with_memory,
    writing_into,
)
from .lowering import Call, View, kernel_of
from .run_memory import RunMemory

LARGE = 1 << 16
"""Results of at least so many bytes that have memory of their own are let go of as soon as nobody reads them any more."""

Link = Callable[[Sequence[Any], Callable[[Slot], int]], Callable[[Array], None]]
"""From addressed calls, and the place of a slot in the list of addresses, to a function of that list."""


class Replay:
    """A program, ready to run any number of times, also in several threads at once: each run has memory of its own.

    Args:
        program: what to carry out.
        calls: its instructions as calls.
        link: makes one function of addresses of addressed calls that follow one another.

    Attributes:
        exact: whether it gives the bits of an eager run.
    """

    def __init__(self, program: Program, calls: Sequence[Call | View | Record], link: Link | None = None) -> None:
        self.program = program
        self.exact = link is None
        self._lowered, self._link = calls, link
        self._plan = Plan(program, self._lowered)
        self._places: dict[int, int] = {}
        self._first: list[Any] = [None]
        """What each place holds before the first instruction: the constants; at 0 the memory of the run."""
        for slot in (*program.slots(), *_temporaries(self._lowered)):
            if slot.key not in self._places:
                self._places[slot.key] = len(self._first)
                self._first.append(slot.array)
        self._closures: list[Closure] = []
        self._sources: list[Record] = []
        self._addressed: dict[int, int] = {}
        """By key of a slot its place in the list of addresses."""
        self._segment: list[Any] = []
        """Calls of a segment that is not complete."""
        for call, dead in zip(self._lowered, _last_uses(program, self._lowered, self._plan), strict=True):
            self._add(call)
            if dead:
                self._append(functools.partial(let_go, [self._places[slot.key] for slot in dead]), _record(call))
        self._flush()
        self._computes = any(map(_computes, self._lowered))
        self._results = [(self._places[x.key], None) if isinstance(x, Slot) else (None, x) for x in program.results]
        self._idle: list[RunMemory] = []
        self._held = Held(_locks_of(program))
        """A step reads weights, and assigns what follows from them, before another thread takes one."""

    def __call__(self, arguments: Sequence[Array]) -> list[Any]:
        """The leaves of the result: Tensors of their own, and what is no Tensor as it is.

        Raises:
            MinikerasError: if a kernel or a check refuses values, as in an eager run.
        """
        with self._held:
            return self._run(arguments)

    def _run(self, arguments: Sequence[Array]) -> list[Any]:
        try:
            memory = self._idle.pop()
        except IndexError:
            memory = RunMemory(self._plan, self._places, self._first, self._addressed)
        try:
            places = memory.begin()
            places[1 : 1 + len(arguments)] = arguments
            calls = iter(self._closures)
            try:
                with np.errstate(all="ignore") if self._computes else _NOTHING:
                    for call in calls:
                        call(places)
            except MinikerasError:
                raise
            except (ValueError, TypeError, OverflowError, np.linalg.LinAlgError) as error:
                raise self._explained(len(self._closures) - 1 - operator.length_hint(calls), error) from error
            return [constant if place is None else Tensor(places[place]) for place, constant in self._results]
        finally:
            self._idle.append(memory)

    @property
    def seconds(self) -> float:
        """What a run takes NumPy, roughly: from calls, memory and products, so it is the same whenever it is asked.

        Measured on a server's processor of 2.5 GHz: 1.5 us a call, 10 GB/s, 50 Gflop/s.
        """
        slots = [x for record in self.program.records for x in (*record.inputs, *outputs_of(record)) if isinstance(x, Slot)]
        products = [
            math.prod(record.outputs.shape) * record.inputs[0].shape[-1]
            for record in self.program.records
            if record.primitive is operations.matrix_product and record.inputs[0].shape
        ]
        return 1.5e-6 * len(self._closures) + sum(x.bytes for x in slots) / 1e10 + 2.0 * sum(products) / 5e10

    @property
    def kernels(self) -> int:
        """Calls in each run."""
        return len(self._closures)

    @property
    def buffers(self) -> int:
        """Pieces of memory that are kept from run to run, Variables not counted."""
        return self._plan.buffers

    @property
    def bytes(self) -> int:
        """The memory that they take together."""
        return self._plan.size

    def _append(self, closure: Closure, record: Record) -> None:
        self._flush()
        self._closures.append(closure)
        self._sources.append(record)

    def _explained(self, position: int, error: Exception) -> Exception:
        from ....core.operation_errors import explained

        record = self._sources[position]
        return error if record.primitive.effect else explained(record.primitive, record.inputs, record.params, error)

    # One instruction as a function of the list of arrays ----------------------------------------------------------------------

    def _add(self, call: Call | View | Record) -> None:
        if isinstance(call, Call) and call.addressed:
            if self._segment and not call.joins(self._segment):
                self._flush()
            self._segment.append(call)
        elif isinstance(call, Call):
            self._append(self._writing(call), call.record)
        elif isinstance(call, View):
            if call.result.key not in self._plan.views or call.result.key in self._plan.copied:
                function = copied_view(call.function) if call.result.key in self._plan.copied else call.function
                closure = giving_one(function, [self._places[call.operand.key]], self._places[call.result.key])
                self._append(closure, call.record)
        else:
            instruction = self._instruction(call)
            if instruction is not None:
                self._append(instruction, call)

    def _flush(self) -> None:
        """The calls that wait become one."""
        if self._segment:
            calls, self._segment = self._segment, []
            exported = [self._places[y.key] for call in calls for y in call.results if y.key in self._plan.exported]
            assert self._link is not None
            segment = self._link(calls, lambda slot: self._addressed.setdefault(slot.key, len(self._addressed)))
            self._append(calling(segment, exported), calls[0].record)

    def _writing(self, call: Call) -> Closure:
        """A call that writes into memory that is there, or that is made for it."""
        operands, results = [self._place(x) for x in call.operands], [self._places[y.key] for y in call.results]
        made = [(self._places[y.key], y) for y in call.results if y.key in self._plan.fresh]
        closure = writing_into(call.function, [*operands, *results])
        if made:
            return with_memory(closure, made)
        exported = [self._places[y.key] for y in call.results if y.key in self._plan.exported]
        return exporting(closure, exported) if exported else closure

    def _instruction(self, record: Record) -> Closure | None:
        primitive, places = record.primitive, self._places
        if primitive is read_variable:
            return reading(record.inputs[0], places[record.outputs.key])
        if primitive is assigned:
            return self._assignment(record)
        if primitive is read_flat:
            return functools.partial(read_row, self._plan.vector_of(record))
        if primitive is assign_flat:
            return functools.partial(assign_row, self._plan.vector_of(record))
        if primitive is flatten:
            whole, given = record.outputs, enumerate(record.inputs)
            moved = [(places[x.key], number) for number, x in given if not self._plan.lies_inside(x, whole)]
            return functools.partial(gather, moved, places[whole.key], record.params["layout"]) if moved else None
        known = [x for x in (*record.inputs, *outputs_of(record)) if isinstance(x, Slot)]
        xp = next((x.xp for x in known if x.shape is not None), np)
        function, inputs = kernel_of(record, xp), [self._place(x) for x in record.inputs]
        if type(record.outputs) is tuple:
            return giving_several(function, inputs, [places[slot.key] for slot in record.outputs])
        return giving_one(function, inputs, places[record.outputs.key])

    def _assignment(self, record: Record) -> Closure:
        variable, value = record.inputs
        how, xp = ASSIGNMENTS[record.params["conversion"]], namespace(variable._array)
        if isinstance(value, Variable) or value.xp is xp:
            return functools.partial(how, variable, value if isinstance(value, Variable) else self._places[value.key])
        place = self._places[value.key]
        return moving(functools.partial(how, variable, place), xp, place)

    def _place(self, x: Any) -> int:
        """Where an operand lies; a number gets a place of its own."""
        if isinstance(x, Slot):
            return self._places[x.key]
        self._first.append(x)
        return len(self._first) - 1


_NOTHING = contextlib.nullcontext()


def _locks_of(program: Program) -> tuple[UpdateLock, ...]:
    """The locks of the optimizers whose steps a program takes, the oldest first."""
    steps = [record.params["step"] for record in program.records if "step" in record.params]
    owners = [record.params["optimizer"] for record in program.records if "optimizer" in record.params]
    owners += [step.optimizer for step in steps if hasattr(step, "optimizer")]
    return in_order(lock for owner in owners for lock in owner.state.locks.all)


def _computes(call: Call | View | Record) -> bool:
    """Whether NumPy computes anything in a call, and might warn of it."""
    if isinstance(call, Call):
        return not call.addressed and call.function is not put
    if isinstance(call, View) or call.primitive is flatten:
        return False
    if State.OPERANDS in (*call.primitive.reads, *call.primitive.writes):
        return False
    return not call.primitive.effect or any(y.shape is not None for y in outputs_of(call))


def _temporaries(calls: Sequence[Call | View | Record]) -> Iterator[Slot]:
    for call in calls:
        if isinstance(call, Call):
            yield from (x for x in (*call.operands, *call.results) if isinstance(x, Slot))


def _record(call: Call | View | Record) -> Record:
    return call if isinstance(call, Record) else call.record


def _last_uses(program: Program, calls: Sequence[Call | View | Record], plan: Plan) -> Iterator[list[Slot]]:
    """For each call the large slots with memory of their own that nobody reads after it."""
    kept = (
        {x.key for x in program.results if isinstance(x, Slot)} | plan.offsets.keys() | plan.views.keys() | plan.writes.keys()
    )
    kept |= plan.reads.keys()
    later: list[list[Slot]] = []
    for call in reversed(calls):
        if isinstance(call, Call):
            touched: Sequence[Any] = (*call.operands, *call.results)
        else:
            touched = (call.operand, call.result) if isinstance(call, View) else (*call.inputs, *outputs_of(call))
        dead = []
        for x in touched:
            if isinstance(x, Slot) and x.key not in kept:
                kept.add(x.key)
                if x.array is None and x.bytes >= LARGE:
                    dead.append(x)
        later.append(dead)
    return reversed(later)
