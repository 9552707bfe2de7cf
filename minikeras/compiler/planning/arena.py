"""Where values lie in one piece of memory, from the intervals in which they live; only those that live together lie apart."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...types import Array
from ..ir import Slot, slots_in

ALIGNMENT = 64
"""Bytes: a line of the cache."""


class Interval(NamedTuple):
    """A value that needs memory from one call to another; it may take that of donors, by key, that die where it is born."""

    key: int
    bytes: int
    born: int
    dies: int
    donors: Sequence[int] = ()


class Arena(NamedTuple):
    """Where values begin, by key; the size of the whole, in bytes; how many values there are at the same time at most."""

    offsets: dict[int, int]
    size: int
    buffers: int


def allocate(intervals: Iterable[Interval]) -> Arena:
    """Give each value, in the order of birth, the first bytes that are free.

    >>> allocate([Interval(0, 100, 0, 1), Interval(1, 100, 1, 2), Interval(2, 100, 2, 3)])
    Arena(offsets={0: 0, 1: 128, 2: 0}, size=256, buffers=2)
    >>> allocate([Interval(0, 100, 0, 1), Interval(1, 100, 1, 2, donors=[0]), Interval(2, 100, 2, 3)])
    Arena(offsets={0: 0, 1: 0, 2: 128}, size=256, buffers=2)
    """
    offsets: dict[int, int] = {}
    pieces: list[_Piece] = []
    """Those that are taken, ascending."""
    size = buffers = 0
    for value in intervals:
        pieces = [piece for piece in pieces if piece.value.dies >= value.born]
        donor = next((piece for key in value.donors for piece in pieces if _donates(piece, key, value)), None)
        if donor is not None:
            pieces[pieces.index(donor)] = donor._replace(value=value)
        start = _take(pieces, value) if donor is None else donor.start
        offsets[value.key] = start
        size = max(size, pieces[-1].stop)
        buffers = max(buffers, len(pieces))
    return Arena(offsets, size, buffers)


class _Piece(NamedTuple):
    start: int
    stop: int
    value: Interval


def _donates(piece: _Piece, key: int, value: Interval) -> bool:
    return piece.value.key == key and piece.value.dies == value.born and piece.stop - piece.start >= value.bytes


def _take(pieces: list[_Piece], value: Interval) -> int:
    """Take the first bytes between pieces, or behind them, that are enough."""
    size = max(-(-value.bytes // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
    start = position = 0
    while position < len(pieces) and pieces[position].start < start + size:
        start = pieces[position].stop
        position += 1
    pieces.insert(position, _Piece(start, start + size, value))
    return start


@functools.cache
def _trim() -> Callable[[int], Any]:
    return getattr(ctypes.CDLL(None), "malloc_trim", lambda size: 0) if sys.platform == "linux" else lambda size: 0


def give_back() -> None:
    """Give the system what is free between pieces in use, as glibc keeps it: 20 MiB after two steps with 2 M weights."""
    _trim()(0)


def memory_of(size: int) -> Array:
    """Bytes that begin with a line of the cache."""
    whole = np.empty(size + ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + size]


# When the values of a program are born and die, as positions of the calls that touch them. It knows nothing of memory.


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
