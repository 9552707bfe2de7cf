"""Carrying a program out again: a plain loop over closures, without Tensors, dispatch or tapes.

Key idea: all that Python looks up in an eager run - which kernel, which library, which operands, which memory - is looked up
once, here. What is left for each run is one call for each instruction over a list of arrays. State is read, drawn and assigned
anew. Read `lower.py` and `memory.py` first.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..arrays import namespace, to_device
from ..core import Record, Tensor, Variable
from ..core.variable import assigned, read_variable
from ..errors import MinikerasError
from ..types import Array
from .joined import Layout, Row, assign_joined, join, read_joined
from .lower import Call, Lowering, View, kernel_of
from .memory import Plan, arranged, memory_of
from .program import Program, outputs_of
from .recorder import Slot

Closure = Callable[[list[Any]], None]

LARGE = 1 << 16
"""Results of at least so many bytes that have memory of their own are let go of as soon as nobody reads them any more."""


class Replay:
    """A program, ready to run any number of times, also in several threads at once: each run has memory of its own.

    Args:
        program: what to carry out.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._lowered = Lowering(program).found
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
        for call, dead in zip(self._lowered, _last_uses(program, self._lowered, self._plan), strict=True):
            self._add(call)
            if dead:
                self._append(functools.partial(_let_go, [self._places[slot.key] for slot in dead]), _record(call))
        self._results = [(self._places[x.key], None) if isinstance(x, Slot) else (None, x) for x in program.results]
        self._idle: list[RunMemory] = []

    def __call__(self, arguments: Sequence[Array]) -> list[Any]:
        """The leaves of the result: Tensors of their own, and what is no Tensor as it is.

        Raises:
            MinikerasError: if a kernel or a check refuses values, as in an eager run.
        """
        try:
            memory = self._idle.pop()
        except IndexError:
            memory = RunMemory(self._plan, self._places, self._first)
        try:
            places = memory.begin()
            places[1 : 1 + len(arguments)] = arguments
            calls = iter(self._closures)
            try:
                with np.errstate(all="ignore"):
                    for call in calls:
                        call(places)
            except MinikerasError:
                raise
            except (ValueError, TypeError, np.linalg.LinAlgError) as error:
                raise self._explained(len(self._closures) - 1 - operator.length_hint(calls), error) from error
            return [constant if place is None else Tensor(places[place]) for place, constant in self._results]
        finally:
            self._idle.append(memory)

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
        self._closures.append(closure)
        self._sources.append(record)

    def _explained(self, position: int, error: Exception) -> Exception:
        from ..core.complaints import explained

        record = self._sources[position]
        return error if record.primitive.effect else explained(record.primitive, record.inputs, record.params, error)

    # One instruction as a function of the list of arrays ----------------------------------------------------------------------

    def _add(self, call: Call | View | Record) -> None:
        if isinstance(call, Call):
            self._append(self._writing(call), call.record)
        elif isinstance(call, View):
            if call.result.key not in self._plan.views:
                function = _copying(call.function) if call.result.key in self._plan.copied else call.function
                closure = _single(function, [self._places[call.operand.key]], self._places[call.result.key])
                self._append(closure, call.record)
        else:
            instruction = self._instruction(call)
            if instruction is not None:
                self._append(instruction, call)

    def _writing(self, call: Call) -> Closure:
        """A call that writes into memory that is there, or that is made for it."""
        operands, results = [self._place(x) for x in call.operands], [self._places[y.key] for y in call.results]
        made = [(self._places[y.key], y) for y in call.results if y.key in self._plan.fresh]
        closure = _into(call.function, [*operands, *results])
        return _with_memory(closure, made) if made else closure

    def _instruction(self, record: Record) -> Closure | None:
        primitive, places = record.primitive, self._places
        if primitive is read_variable:
            return _reading(record.inputs[0], places[record.outputs.key])
        if primitive is assigned:
            return self._assignment(record)
        if primitive is read_joined:
            return functools.partial(_read_row, record.outputs.key)
        if primitive is assign_joined:
            return functools.partial(_assign_row, record.inputs[-1].key)
        if primitive is join:
            moved = [(places[x.key], number) for number, x in enumerate(record.inputs) if not self._plan.lies_inside(x)]
            return functools.partial(_gather, moved, places[record.outputs.key], record.params["layout"]) if moved else None
        known = [x for x in (*record.inputs, *outputs_of(record)) if isinstance(x, Slot)]
        xp = next((x.xp for x in known if x.shape is not None), np)
        function, inputs = kernel_of(record, xp), [self._place(x) for x in record.inputs]
        if type(record.outputs) is tuple:
            return _several(function, inputs, [places[slot.key] for slot in record.outputs])
        return _single(function, inputs, places[record.outputs.key])

    def _assignment(self, record: Record) -> Closure:
        variable, value = record.inputs
        how, xp = _assignments[record.params["conversion"]], namespace(variable._array)
        if isinstance(value, Variable) or value.xp is xp:
            return functools.partial(how, variable, value if isinstance(value, Variable) else self._places[value.key])
        place = self._places[value.key]
        return _moving(functools.partial(how, variable, place), xp, place)

    def _place(self, x: Any) -> int:
        """Where an operand lies; a number gets a place of its own."""
        if isinstance(x, Slot):
            return self._places[x.key]
        self._first.append(x)
        return len(self._first) - 1


class RunMemory:
    """What one run at a time works in: the program's own memory, and the vectors of Variables that it reads and writes.

    Args:
        plan: where everything lies.
        places: the position of each slot in the list of arrays.
        first: that list before a run.
    """

    def __init__(self, plan: Plan, places: dict[int, int], first: Sequence[Any]) -> None:
        self._plan, self._places, self._list = plan, places, list(first)
        arena = memory_of(plan.size)
        for key, slot in plan.kept():
            start = plan.offsets[key]
            self._list[places[key]] = arranged(arena[start : start + slot.bytes].view(slot.dtype), slot)
        for key, (base, view) in plan.views.items():
            if plan.root(key) not in plan.reads:
                self._list[places[key]] = view.function(self._list[places[base]])
        self._rows: dict[Any, list[Row]] = {_group(record): [] for record in plan.writes.values()}
        self._bound: dict[int, tuple[Row, list[tuple[int, Array]]]] = {}
        self._next: dict[int, Row] = {}

    def begin(self) -> list[Any]:
        """The list of arrays for a run, with unseen vectors to write new values of Variables into."""
        for key, record in self._plan.writes.items():
            rows = self._rows[_group(record)]
            row = next((row for row in rows if not row.seen), None)
            if row is None:
                row = Row(record.params["layout"])
                rows.append(row)
                if len(rows) > 2:  # somebody outside has held on to the oldest one: it is theirs
                    self._bound.pop(id(rows.pop(0)), None)
            self._next[key] = row
            self._list[self._places[key]] = row.flat
        places = self._list.copy()
        places[0] = self
        return places

    def read(self, key: int, places: list[Any]) -> None:
        """Put the values of Variables, as one vector and one by one, in their places."""
        record = self._plan.reads[key]
        variables = record.inputs
        for row in self._rows.get(_group(record), ()):
            if row.held_by(variables):
                break
        else:
            row = Row(record.params["layout"], [variable._array for variable in variables])
        for place, array in self._arrays(key, row):
            places[place] = array

    def _arrays(self, key: int, row: Row) -> list[tuple[int, Array]]:
        """The vector and the views of it that the program reads, with their places."""
        found = self._bound.get(id(row))
        if found is None or found[0] is not row:
            arrays = {key: row.flat}
            for other, (base, view) in self._plan.views.items():
                if self._plan.root(other) == key:
                    arrays[other] = view.function(arrays[base])
            listed = [(self._places[other], array) for other, array in arrays.items()]
            if not any(row is known for rows in self._rows.values() for known in rows):
                return listed
            found = self._bound[id(row)] = row, listed
        return found[1]

    def assign(self, key: int) -> None:
        """Let the Variables hold what was written."""
        self._next[key].assign(self._plan.writes[key].inputs[:-1])


def _group(record: Record) -> tuple[int, ...]:
    """The same for all instructions on the same Variables."""
    return tuple([x.key for x in record.inputs if isinstance(x, Variable)])


def _temporaries(calls: Sequence[Call | View | Record]) -> Iterator[Slot]:
    for call in calls:
        if isinstance(call, Call):
            yield from call.results


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


def _let_go(dead: list[int], places: list[Any]) -> None:
    for place in dead:
        places[place] = None


def _reading(variable: Variable, to: int) -> Closure:
    def call(places: list[Any]) -> None:
        places[to] = variable._array

    return call


def _read_row(key: int, places: list[Any]) -> None:
    places[0].read(key, places)


def _assign_row(key: int, places: list[Any]) -> None:
    places[0].assign(key)


def _gather(moved: list[tuple[int, int]], to: int, layout: Layout, places: list[Any]) -> None:
    """Copy those arrays into a vector that were not written there right away."""
    pieces = layout.pieces(places[to])
    for place, number in moved:
        pieces[number][...] = places[place]


def _moving(assign: Closure, xp: Any, place: int) -> Closure:
    """An assignment to a Variable on another device."""

    def call(places: list[Any]) -> None:
        kept = places[place]
        places[place] = to_device(kept, xp)
        assign(places)
        places[place] = kept

    return call


def _copying(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def copy(array: Array) -> Array:
        view = function(array)
        return view.copy() if view.shape else view[()]

    return copy


def _value(source: int | Variable, places: list[Any]) -> Array:
    return source._array if isinstance(source, Variable) else places[source]


def _assign(variable: Variable, source: int | Variable, places: list[Any]) -> None:
    variable._array = _value(source, places)


def _assign_add(variable: Variable, source: int | Variable, places: list[Any]) -> None:
    variable._combine(_value(source, places), operator.add)


def _assign_sub(variable: Variable, source: int | Variable, places: list[Any]) -> None:
    variable._combine(_value(source, places), operator.sub)


_assignments = {"assign": _assign, "assign_add": _assign_add, "assign_sub": _assign_sub}


# Calls. The usual numbers of operands are spelt out: unpacking a list would cost as much as the rest. -------------------------


def _into(function: Callable[..., Any], places_of: list[int]) -> Closure:
    """A call that writes into the last of its arrays."""
    if len(places_of) == 2:
        a, to = places_of

        def one(places: list[Any]) -> None:
            function(places[a], places[to])

        return one
    if len(places_of) == 3:
        a, b, to = places_of

        def two(places: list[Any]) -> None:
            function(places[a], places[b], places[to])

        return two

    def any_number(places: list[Any]) -> None:
        function(*[places[i] for i in places_of])

    return any_number


def _with_memory(closure: Closure, made: list[tuple[int, Slot]]) -> Closure:
    """A call that writes into new memory."""
    empty = np.empty
    if len(made) == 1 and made[0][1].order is None:
        ((to, slot),) = made
        shape, dtype = slot.shape, slot.dtype

        def one(places: list[Any]) -> None:
            places[to] = empty(shape, dtype)
            closure(places)

        return one

    def several(places: list[Any]) -> None:
        for to, slot in made:
            places[to] = arranged(empty(math.prod(slot.shape), slot.dtype), slot)
        closure(places)

    return several


def _single(function: Callable[..., Any], inputs: list[int], to: int) -> Closure:
    """A call with one result, which it makes."""
    if len(inputs) == 1:
        (a,) = inputs

        def one(places: list[Any]) -> None:
            places[to] = function(places[a])

        return one
    if len(inputs) == 2:
        a, b = inputs

        def two(places: list[Any]) -> None:
            places[to] = function(places[a], places[b])

        return two

    def any_number(places: list[Any]) -> None:
        places[to] = function(*[places[i] for i in inputs])

    return any_number


def _several(function: Callable[..., Any], inputs: list[int], outputs: list[int]) -> Closure:
    def call(places: list[Any]) -> None:
        for place, result in zip(outputs, function(*[places[i] for i in inputs]), strict=True):
            places[place] = result

    return call
