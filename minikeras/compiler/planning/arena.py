"""Where values lie in one piece of memory, from the intervals in which they live; only those that live together lie apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...types import Array

ALIGNMENT = 64
"""Bytes: a line of the cache."""


class Interval(NamedTuple):
    """A value that needs memory.

    Attributes:
        key: of the value.
        bytes: how many it needs.
        born, dies: the positions of the first and last call that touch it.
        donors: keys of values whose memory it may take if they die where it is born.
    """

    key: int
    bytes: int
    born: int
    dies: int
    donors: Sequence[int] = ()


class Arena(NamedTuple):
    """Where values lie.

    Attributes:
        offsets: in bytes, by key.
        size: of the whole, in bytes.
        buffers: how many values there are at the same time at most.
    """

    offsets: dict[int, int]
    size: int
    buffers: int


def allocate(intervals: Iterable[Interval]) -> Arena:
    """Give each value the first piece that is free and large enough.

    Args:
        intervals: in the order of their birth.

    >>> allocate([Interval(0, 100, 0, 1), Interval(1, 100, 1, 2), Interval(2, 100, 2, 3)])
    Arena(offsets={0: 0, 1: 128, 2: 0}, size=256, buffers=2)
    >>> allocate([Interval(0, 100, 0, 1), Interval(1, 100, 1, 2, donors=[0]), Interval(2, 100, 2, 3)])
    Arena(offsets={0: 0, 1: 0, 2: 128}, size=256, buffers=2)
    """
    offsets: dict[int, int] = {}
    living: dict[int, Interval] = {}
    free = _Free()
    buffers = 0
    for value in intervals:
        for dead in [one for one in living.values() if one.dies < value.born]:
            free.give(offsets[dead.key], _aligned(dead.bytes))
            del living[dead.key]
        donor = next((key for key in value.donors if key in living and living[key].dies == value.born), None)
        offsets[value.key] = free.take(_aligned(value.bytes)) if donor is None else offsets[donor]
        if donor is not None:
            del living[donor]
        living[value.key] = value
        buffers = max(buffers, len(living))
    return Arena(offsets, free.size, buffers)


def _aligned(size: int) -> int:
    return max(-(-size // ALIGNMENT) * ALIGNMENT, ALIGNMENT)


class _Free:
    """The free pieces of memory that grows as it must."""

    def __init__(self) -> None:
        self.size = 0
        self._pieces: list[tuple[int, int]] = []
        """Starts and sizes, ascending; no two of them touch."""

    def take(self, size: int) -> int:
        for number, (start, room) in enumerate(self._pieces):
            if room >= size:
                self._pieces[number : number + 1] = [(start + size, room - size)] if room > size else []
                return start
        start = self.size
        if self._pieces and sum(self._pieces[-1]) == start:  # the last piece is free, only too small
            start = self._pieces.pop()[0]
        self.size = start + size
        return start

    def give(self, start: int, size: int) -> None:
        pieces: list[tuple[int, int]] = []
        for first, room in sorted([*self._pieces, (start, size)]):
            if pieces and sum(pieces[-1]) == first:
                pieces[-1] = pieces[-1][0], pieces[-1][1] + room
            else:
                pieces.append((first, room))
        self._pieces = pieces


def memory_of(size: int) -> Array:
    """Bytes that begin with a line of the cache."""
    whole = np.empty(size + ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + size]
