"""Where values lie in one piece of memory, from the intervals in which they live; only those that live together lie apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...types import Array

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
    living: list[Interval] = []
    size = buffers = 0
    for value in intervals:
        living = [one for one in living if one.dies >= value.born]
        donor = next((one for key in value.donors for one in living if one.key == key and one.dies == value.born), None)
        if donor is not None:
            living.remove(donor)
            offsets[value.key] = offsets[donor.key]
        else:
            offsets[value.key] = _first_fit([(offsets[one.key], _aligned(one.bytes)) for one in living], _aligned(value.bytes))
        living.append(value)
        size = max(size, offsets[value.key] + _aligned(value.bytes))
        buffers = max(buffers, len(living))
    return Arena(offsets, size, buffers)


def _first_fit(taken: Iterable[tuple[int, int]], size: int) -> int:
    """The first start of so many bytes between pieces, given as starts and sizes, or behind them."""
    start = 0
    for first, room in sorted(taken):
        if first >= start + size:
            break
        start = first + room
    return start


def _aligned(size: int) -> int:
    return max(-(-size // ALIGNMENT) * ALIGNMENT, ALIGNMENT)


def memory_of(size: int) -> Array:
    """Bytes that begin with a line of the cache."""
    whole = np.empty(size + ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + size]
