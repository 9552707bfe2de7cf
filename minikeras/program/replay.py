"""Carrying a program out again: a plain loop over closures, without Tensors, dispatch or tapes.

Key idea: all that Python looks up in an eager run - which kernel, which library, which operands - is looked up once, here. What
is left for each run is one call for each instruction over a list of arrays. State is read, drawn and assigned anew.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..arrays import namespace, to_device
from ..core import Record, Tensor, Variable
from ..core.variable import assigned, read_variable
from ..errors import MinikerasError
from ..types import Array
from .prepared import kernel_of
from .program import Program, outputs_of
from .recorder import Slot

Call = Callable[[list[Any]], None]

LARGE = 1 << 16
"""Results of at least so many bytes are let go of as soon as nobody reads them any more."""


class Replay:
    """A program, ready to run any number of times, also in several threads at once.

    Args:
        program: what to carry out.
    """

    __slots__ = ("_calls", "_first", "_records", "_results", "program")

    def __init__(self, program: Program) -> None:
        self.program = program
        places = {slot.key: number for number, slot in enumerate(program.slots())}
        self._first: list[Any] = [slot.array for slot in program.slots()]
        """What each place holds before the first instruction: the constants."""
        self._calls: list[Call] = []
        self._records: list[Record] = []
        for record, dead in zip(program.records, _last_uses(program), strict=True):
            self._add(record, self._call(record, places))
            if dead:
                self._add(record, functools.partial(_let_go, [places[slot.key] for slot in dead]))
        self._results = [(places[x.key], None) if isinstance(x, Slot) else (None, x) for x in program.results]

    def __call__(self, arguments: Sequence[Array]) -> list[Any]:
        """The leaves of the result: Tensors of their own, and what is no Tensor as it is.

        Raises:
            MinikerasError: if a kernel or a check refuses values, as in an eager run.
        """
        places = self._first.copy()
        places[: len(arguments)] = arguments
        calls = iter(self._calls)
        try:
            with np.errstate(all="ignore"):
                for call in calls:
                    call(places)
        except MinikerasError:
            raise
        except (ValueError, TypeError, np.linalg.LinAlgError) as error:
            raise self._explained(len(self._calls) - 1 - operator.length_hint(calls), error) from error
        return [constant if place is None else Tensor(places[place]) for place, constant in self._results]

    def _add(self, record: Record, call: Call) -> None:
        self._calls.append(call)
        self._records.append(record)

    def _explained(self, position: int, error: Exception) -> Exception:
        from ..core.complaints import explained

        record = self._records[position]
        return error if record.primitive.effect else explained(record.primitive, record.inputs, record.params, error)

    def _call(self, record: Record, places: dict[int, int]) -> Call:
        """One instruction as a function of the list of arrays."""
        if record.primitive is read_variable:
            return _reading(record.inputs[0], places[record.outputs.key])
        if record.primitive is assigned:
            variable, value = record.inputs
            how, xp = _assignments[record.params["conversion"]], namespace(variable._array)
            if isinstance(value, Variable) or value.xp is xp:
                return functools.partial(how, variable, value if isinstance(value, Variable) else places[value.key])
            return _moving(functools.partial(how, variable, places[value.key]), xp, places[value.key])
        known = [x for x in (*record.inputs, *outputs_of(record)) if isinstance(x, Slot)]
        xp = known[0].xp if known else np
        function, inputs = kernel_of(record, xp), [self._place(x, places) for x in record.inputs]
        if type(record.outputs) is tuple:
            return _several(function, inputs, [places[slot.key] for slot in record.outputs])
        return _single(function, inputs, places[record.outputs.key])

    def _place(self, x: Any, places: dict[int, int]) -> int:
        """Where an operand lies; a number gets a place of its own."""
        if isinstance(x, Slot):
            return places[x.key]
        self._first.append(x)
        return len(self._first) - 1


def _last_uses(program: Program) -> Iterator[list[Slot]]:
    """For each instruction the large slots that nobody reads after it."""
    kept = {x.key for x in program.results if isinstance(x, Slot)}
    later: list[list[Slot]] = []
    for record in reversed(program.records):
        dead = []
        for x in (*record.inputs, *outputs_of(record)):
            if isinstance(x, Slot) and x.key not in kept:
                kept.add(x.key)
                if x.array is None and int(np.prod(x.shape)) * x.dtype.itemsize >= LARGE:
                    dead.append(x)
        later.append(dead)
    return reversed(later)


def _let_go(dead: list[int], places: list[Any]) -> None:
    for place in dead:
        places[place] = None


def _reading(variable: Variable, to: int) -> Call:
    def call(places: list[Any]) -> None:
        places[to] = variable._array

    return call


def _moving(assign: Call, xp: Any, place: int) -> Call:
    """An assignment to a Variable on another device."""

    def call(places: list[Any]) -> None:
        kept = places[place]
        places[place] = to_device(kept, xp)
        assign(places)
        places[place] = kept

    return call


def _value(source: int | Variable, places: list[Any]) -> Array:
    return source._array if isinstance(source, Variable) else places[source]


def _assign(variable: Variable, source: int | Variable, places: list[Any]) -> None:
    variable._array = _value(source, places)


def _assign_add(variable: Variable, source: int | Variable, places: list[Any]) -> None:
    variable._combine(_value(source, places), operator.add)


def _assign_sub(variable: Variable, source: int | Variable, places: list[Any]) -> None:
    variable._combine(_value(source, places), operator.sub)


_assignments = {"assign": _assign, "assign_add": _assign_add, "assign_sub": _assign_sub}


def _single(function: Callable[..., Any], inputs: list[int], to: int) -> Call:
    """A call with one result. The usual numbers of operands are spelt out: unpacking a list would cost as much as the rest."""
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


def _several(function: Callable[..., Any], inputs: list[int], outputs: list[int]) -> Call:
    def call(places: list[Any]) -> None:
        for place, result in zip(outputs, function(*[places[i] for i in inputs]), strict=True):
            places[place] = result

    return call
