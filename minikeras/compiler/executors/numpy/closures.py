"""Instructions as functions of the list of arrays that a run works on.

Key idea: whatever can be looked up before the first run is bound here; the usual numbers of operands are spelt out, since
unpacking a list would cost as much as the rest.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ....arrays import to_device
from ....core import Variable
from ....core.effects import Write
from ....core.layout import Layout
from ....types import Array
from ...planning.memory_plan import arranged
from ...recorder import Slot

Closure = Callable[[list[Any]], None]


def let_go(dead: list[int], places: list[Any]) -> None:
    """Let go of arrays that nobody reads any more."""
    for place in dead:
        places[place] = None


def calling(segment: Callable[[Array], None], exported: list[int]) -> Closure:
    """A call of a segment."""

    def call(places: list[Any]) -> None:
        segment(places[0].addresses)

    return exporting(call, exported) if exported else call


def exporting(closure: Closure, exported: list[int]) -> Closure:
    """A call whose results leave the program: copies take the places of what lies in its memory."""

    def call(places: list[Any]) -> None:
        closure(places)
        for place in exported:
            places[place] = _copied(places[place])

    return call


def _copied(array: Array) -> Array:
    """A copy of an array, of a number the number."""
    return array.copy() if array.shape else array[()]


def reading(variable: Variable, to: int) -> Closure:
    """Reading a Variable."""

    def call(places: list[Any]) -> None:
        places[to] = variable._array

    return call


def read_row(number: int, places: list[Any]) -> None:
    """Reading Variables that lie one after the other."""
    memory = places[0]
    memory.vectors[number].read(places, memory.addresses)


def assign_row(number: int, places: list[Any]) -> None:
    """Assigning them."""
    places[0].vectors[number].assign()


def gather(moved: list[tuple[int, int]], to: int, layout: Layout, places: list[Any]) -> None:
    """Copy those arrays into a vector that were not written there right away."""
    pieces = layout.pieces(places[to])
    for place, number in moved:
        pieces[number][...] = places[place]


def moving(assign: Closure, xp: Any, place: int) -> Closure:
    """An assignment to a Variable on another device."""

    def call(places: list[Any]) -> None:
        kept = places[place]
        places[place] = to_device(kept, xp)
        assign(places)
        places[place] = kept

    return call


def copied_view(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """What a view shows, as a copy."""
    return lambda array: _copied(function(array))


def _value(source: int | Variable, places: list[Any]) -> Array:
    return source._array if isinstance(source, Variable) else places[source]


def _assign(variable: Variable, source: int | Variable, places: list[Any]) -> None:
    variable._array = _value(source, places)


def _assign_add(variable: Variable, source: int | Variable, places: list[Any]) -> None:
    variable._combine(_value(source, places), operator.add)


def _assign_sub(variable: Variable, source: int | Variable, places: list[Any]) -> None:
    variable._combine(_value(source, places), operator.sub)


ASSIGNMENTS = {Write.ASSIGN: _assign, Write.ADD: _assign_add, Write.SUBTRACT: _assign_sub}


# Calls. The usual numbers of operands are spelt out: unpacking a list would cost as much as the rest. -------------------------


def writing_into(function: Callable[..., Any], places_of: list[int]) -> Closure:
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


def with_memory(closure: Closure, made: list[tuple[int, Slot]]) -> Closure:
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


def giving_one(function: Callable[..., Any], inputs: list[int], to: int) -> Closure:
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


def giving_several(function: Callable[..., Any], inputs: list[int], outputs: list[int]) -> Closure:
    """A call with several results, which it makes."""

    def call(places: list[Any]) -> None:
        for place, result in zip(outputs, function(*[places[i] for i in inputs]), strict=True):
            places[place] = result

    return call
