"""Calls as functions of registers, the list of arrays that a run works on; register 0 is the memory of the run.

What can be looked up is bound before the first run. The usual numbers of operands are spelt out: to unpack a list costs as much
as the rest.
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
from ...ir import Slot
from .memory_plan import arranged

Closure = Callable[[list[Any]], None]


def drop(dead: list[int], registers: list[Any]) -> None:
    """Drop references to arrays that no later call reads."""
    for register in dead:
        registers[register] = None


def exporting(closure: Closure, exported: list[int]) -> Closure:
    """A call whose results leave the program: copies take the place of what lies in the arena."""

    def call(registers: list[Any]) -> None:
        closure(registers)
        for register in exported:
            registers[register] = _copied(registers[register])

    return call


def _copied(array: Array) -> Array:
    """A copy of an array, of a number the number."""
    return array.copy() if array.shape else array[()]


def reading(variable: Variable, to: int) -> Closure:
    """Reading a Variable."""

    def call(registers: list[Any]) -> None:
        registers[to] = variable._array

    return call


def read_flat_variables(number: int, registers: list[Any]) -> None:
    """Reading flattened Variables."""
    memory = registers[0]
    memory.flat[number].read(registers, memory.addresses)


def assign_flat_variables(number: int, registers: list[Any]) -> None:
    """Assigning flattened Variables."""
    registers[0].flat[number].assign()


def gather(moved: list[tuple[int, int]], to: int, layout: Layout, registers: list[Any]) -> None:
    """Copy those arrays into a flat one that were not written there right away."""
    pieces = layout.pieces(registers[to])
    for register, number in moved:
        pieces[number][...] = registers[register]


def moving(assign: Closure, xp: Any, register: int) -> Closure:
    """An assignment to a Variable on another device."""

    def call(registers: list[Any]) -> None:
        kept = registers[register]
        registers[register] = to_device(kept, xp)
        assign(registers)
        registers[register] = kept

    return call


def copied_view(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """What a view shows, as a copy."""
    return lambda array: _copied(function(array))


def _value(source: int | Variable, registers: list[Any]) -> Array:
    return source._array if isinstance(source, Variable) else registers[source]


def _assign(variable: Variable, source: int | Variable, registers: list[Any]) -> None:
    variable._array = _value(source, registers)


def _assign_add(variable: Variable, source: int | Variable, registers: list[Any]) -> None:
    variable._combine(_value(source, registers), operator.add)


def _assign_sub(variable: Variable, source: int | Variable, registers: list[Any]) -> None:
    variable._combine(_value(source, registers), operator.sub)


ASSIGNMENTS = {Write.ASSIGN: _assign, Write.ADD: _assign_add, Write.SUBTRACT: _assign_sub}


# Calls --------------------------------------------------------------------------------------------------------------------


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
    """A call with several results, which it makes."""

    def call(registers: list[Any]) -> None:
        for register, result in zip(outputs, function(*[registers[i] for i in inputs]), strict=True):
            registers[register] = result

    return call
