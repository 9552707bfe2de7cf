"""Calls as functions of registers, the list of arrays that a run works on; register 0 is the memory of the run.

What can be looked up is bound before the first run. The usual numbers of operands are spelt out: to unpack a list costs as much
as the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....types import Array
from ...ir import Slot
from .memory_plan import arranged

Closure = Callable[[list[Any]], None]


def copy_of(array: Array) -> Array:
    """A copy of an array, of a number the number."""
    return array.copy() if array.shape else array[()]


def exporting(closure: Closure, exported: list[int]) -> Closure:
    """A call whose results leave the program: copies take the place of what lies in the arena."""
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
    """A call that writes into new memory, unless the run was given some."""
    empty = np.empty
    if len(made) == 1 and made[0][1].order is None:
        ((to, slot),) = made
        shape, dtype = slot.shape, slot.dtype

        def one(registers: list[Any]) -> None:
            if registers[to] is None:
                registers[to] = empty(shape, dtype)
            closure(registers)

        return one

    def several(registers: list[Any]) -> None:
        for to, slot in made:
            if registers[to] is None:
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
    """A call with several results in a tuple, which it makes, with one in it, or with none."""
    if not outputs:

        def none(registers: list[Any]) -> None:
            function(*[registers[i] for i in inputs])

        return none
    if len(outputs) == 1:
        (to,) = outputs

        def one(registers: list[Any]) -> None:
            (registers[to],) = function(*[registers[i] for i in inputs])

        return one

    def call(registers: list[Any]) -> None:
        for register, result in zip(outputs, function(*[registers[i] for i in inputs]), strict=True):
            registers[register] = result

    return call
