"""Placement of values in one piece of memory by their liveness intervals; only values alive at the same time lie apart."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..types import Array
from .ir import Slot, slots_in

ALIGNMENT = 64
"""In bytes: a cache line."""
DEVICE_ALIGNMENT = 256
"""In bytes, on a GPU: the alignment of matrices that cublasLt's choice of an algorithm assumes."""


class Interval(NamedTuple):
    """A value that needs memory from one call to another; it may take the memory of donors, by key, that die at its birth."""

    key: int
    bytes: int
    born: int
    dies: int
    donors: Sequence[int] = ()


class Arena(NamedTuple):
    """The offsets of values, by key; the size of the whole, in bytes; the most values alive at the same time."""

    offsets: dict[int, int]
    size: int
    buffers: int


def allocate(intervals: Iterable[Interval], alignment: int = ALIGNMENT) -> Arena:
    """Give each value, in the order of birth, the first free bytes.

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
        dying = {piece.value.key: piece for piece in pieces if piece.value.dies == value.born}
        fitting = [dying[key] for key in value.donors if key in dying and dying[key].stop - dying[key].start >= value.bytes]
        donor = next(iter(fitting), None)
        if donor is not None:
            pieces[pieces.index(donor)] = donor._replace(value=value)
        start = _take(pieces, value, alignment) if donor is None else donor.start
        offsets[value.key] = start
        size = max(size, pieces[-1].stop)
        buffers = max(buffers, len(pieces))
    return Arena(offsets, size, buffers)


class _Piece(NamedTuple):
    start: int
    stop: int
    value: Interval


def _take(pieces: list[_Piece], value: Interval, alignment: int) -> int:
    """Take the first gap between pieces, or the place behind them, that is large enough."""
    size = max(-(-value.bytes // alignment) * alignment, alignment)
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
    """Return free memory between used pieces to the system, which glibc keeps: 20 MiB after two steps with 2 M weights."""
    _trim()(0)


def memory_of(size: int) -> Array:
    """Bytes that begin at a cache line."""
    whole = np.empty(size + ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + size]


def address_of(array: Array) -> int:
    """The address of an array's memory."""
    try:
        return ctypes.addressof(_from_buffer(array))  # 0.2 us; NumPy itself takes 1.0
    except (TypeError, ValueError):  # an array that is not to be written, or has gaps or no elements
        return int(array.__array_interface__["data"][0])


_from_buffer = ctypes.c_char.from_buffer


# Liveness: birth and death of a program's values, as positions of the calls that touch them, independent of memory.


class Lifetime(NamedTuple):
    """The positions of the first call that touches a value and of the last one."""

    born: int
    dies: int


def touched(call: Any) -> list[Slot]:
    """The values that a call reads, then those that it writes."""
    return slots_in((*call.operands, *call.results))


def lifetimes(calls: Sequence[Any], owner: Callable[[int], int] = lambda key: key) -> dict[int, Lifetime]:
    """The lifetime of each value, by key and in the order of birth. The `owner` of memory lives as long as the values in it.

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


Owner = Callable[[Slot], Slot]
"""The value that owns the memory of another one, which is a view of it or written there as a part; itself for any other."""


def arena_of(
    calls: Sequence[Any], owner: Owner, wanted: Callable[[int], bool], kept: Collection[int] = (), alignment: int = ALIGNMENT
) -> Arena:
    """The arena of wanted values that own memory, among those that calls touch. Those in `kept`, by key, stay to the end."""
    owners = {x.key: owner(x) for call in calls for x in touched(call)}
    slots = {slot.key: slot for slot in owners.values()}
    intervals = [
        Interval(key, slots[key].bytes, born, len(calls) if key in kept else dies, _donors(calls[born], key, owners))
        for key, (born, dies) in lifetimes(calls, lambda key: owners[key].key).items()
        if wanted(key)
    ]
    return allocate(intervals, alignment)


def aliases_of(call: Any, key: int) -> Sequence[int]:
    """The positions of operands in whose memory a call may write a result."""
    found = zip(call.results, getattr(call, "may_alias", ()), strict=False)
    return next((allowed for y, allowed in found if y.key == key), ())


def _donors(call: Any, key: int, owners: Mapping[int, Slot]) -> list[int]:
    """The operands whose memory a result may take if this is their last use."""
    given = [owners[x.key].key for x in slots_in(call.operands)]
    y = next((y for y in call.results if y.key == key), None)
    return [
        x.key
        for x in (call.operands[position] for position in aliases_of(call, key))
        if isinstance(x, Slot)
        and y is not None
        and (x.shape, x.dtype, x.order) == (y.shape, y.dtype, y.order)
        and given.count(x.key) == sum(one is x for one in call.operands)
    ]
