"""When the values of a program are born and die, as positions of the calls that touch them. It knows nothing of memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..ir import Slot, slots_in


class Lifetime(NamedTuple):
    """The positions of the first call that touches a value and of the last one."""

    born: int
    dies: int


def touched(call: Any) -> list[Slot]:
    """The values that a call reads, then those that it writes."""
    return slots_in((*call.operands, *call.results))


def lifetimes(calls: Sequence[Any], owner: Callable[[int], int] = lambda key: key) -> dict[int, Lifetime]:
    """The lifetime of each value, by key and in the order of birth. The `owner` of memory lives as long as what lies in it.

    >>> from types import SimpleNamespace
    >>> x, y, view = (Slot(key, (2,), None) for key in range(3))
    >>> calls = [SimpleNamespace(operands=[x], results=[y]), SimpleNamespace(operands=[y], results=[view])]
    >>> lifetimes(calls)[1]
    Lifetime(born=0, dies=1)
    >>> lifetimes([*calls, SimpleNamespace(operands=[view], results=[])], {2: 1, 1: 1, 0: 0}.get)[1]
    Lifetime(born=0, dies=2)
    """
    born: dict[int, int] = {}
    dies: dict[int, int] = {}
    for position, call in enumerate(calls):
        for x in touched(call):
            key = owner(x.key)
            born.setdefault(key, position)
            dies[key] = position
    return {key: Lifetime(first, dies[key]) for key, first in born.items()}
