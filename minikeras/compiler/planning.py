"""Placement of values in one piece of memory by their liveness intervals; only values alive at the same time lie apart."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import operator
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from ..core import IS_LOCKED, Owned, Primitive, Record, State, Variable, are_held, effect, restore
from ..layout import Layout
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


# Flattened Variables: weights, gradients and slots of one dtype are a flat array each, read, computed and assigned as a
# whole.


def _flatten(*arrays: Array, layout: Layout) -> Array:
    flat = np.zeros(layout.size, layout.dtype)
    for piece, array in zip(layout.pieces(flat), arrays, strict=True):
        piece[...] = array.reshape(piece.shape)
    return flat


def _read(*variables: Variable, layout: Layout) -> tuple[Array, ...]:
    count = len(layout.shapes)
    columns = [variables[start : start + count] for start in range(0, len(variables), count)]
    return tuple([_flatten(*[variable.array for variable in column], layout=layout) for column in columns])


def _assign(*operands: Any, layout: Layout) -> tuple[()]:
    variables = [x for x in operands if isinstance(x, Variable)]
    pieces = [piece for flat in operands[len(variables) :] for piece in layout.pieces(flat)]
    for variable, piece in zip(variables, pieces, strict=True):
        variable.array = piece
    return ()


flatten = Primitive("flatten", lambda xp: _flatten, differentiable=False, uniform=False, registered=False)
"""Arrays in one flat one, where its layout has them."""
read_flat = effect("read_flat", _read, reads=(State.OPERANDS,))
"""Variables as one flat array for each column: weights, then one slot of each, then the next."""
assign_flat = effect("assign_flat", _assign, writes=(State.OPERANDS,), escapes=True)
"""Variables are given the parts of flat arrays."""
part = Primitive(
    "part",
    lambda xp: lambda flat, *, start, shape: flat[start : start + math.prod(shape)].reshape(shape),
    differentiable=False,
    registered=False,
)
"""One of the arrays that lie within a flat one."""


def flats_of(record: Record) -> list[Any]:
    """The flat arrays of an assignment."""
    return [x for x in record.inputs if not isinstance(x, Variable)]


def variables_of(record: Record) -> list[Variable]:
    """The Variables of a reading or an assignment, column by column."""
    return [x for x in record.inputs if isinstance(x, Variable)]


class FlatBuffer:
    """Memory for one value of flattened Variables.

    Args:
        layout: the places of the Variables of one column.
        columns: the number of flat arrays.

    Attributes:
        flats: the flat arrays, as programs see them.
        addresses: of the flat arrays.
        pieces: the arrays that the Variables hold, column by column.
        variables: those that were given the pieces last.
        held: its parts, and how many references they have, beside those of programs, while only its Variable holds each.
    """

    __slots__ = ("__weakref__", "_base", "_owned", "addresses", "flats", "held", "pieces", "variables")

    def __init__(self, layout: Layout, columns: int) -> None:
        per_line = ALIGNMENT // layout.dtype.itemsize
        width = -(-layout.size // per_line) * per_line
        memory = memoryview(memory_of(columns * width * layout.dtype.itemsize))
        # Two arrays over one memory: references to parts of the first come from Variables, the second belongs to programs.
        self._base: Array = np.frombuffer(memory, layout.dtype)
        own: Array = np.frombuffer(memory, layout.dtype)
        starts = [column * width for column in range(columns)]
        self.flats = [own[start : start + layout.size] for start in starts]
        self.addresses: Array = np.array([flat.ctypes.data for flat in self.flats], np.int64)
        self.pieces = [piece for start in starts for piece in layout.pieces(self._base[start : start + layout.size])]
        self._own()

    def _own(self) -> None:
        """Count the references to its parts, which are complete by now."""
        self._owned = Owned([*self.pieces, self._base])
        self.held = self._owned, len(self.pieces)
        self.variables: Sequence[Variable] = ()
        _buffers.update(zip(map(id, self.pieces), itertools.repeat(self), strict=False))

    @property
    def is_seen(self) -> bool:
        """True if anything refers to a part beside its Variables and programs: a Tensor, a view, another Variable."""
        held = sum([variable.array is piece for variable, piece in zip(self.variables, self.pieces, strict=False)])
        return not self._owned.is_shared_by(held)

    @property
    def in_use(self) -> bool:
        """True if anything beside programs refers to any part: a Variable, a Tensor, a view."""
        return self._owned.is_shared

    def adopt(self, variables: Sequence[Variable]) -> None:
        """Copy the Variables' values, and let them hold the copies; a value that another thread assigns meanwhile stays."""
        self.variables = variables
        for variable, piece in zip(variables, self.pieces, strict=True):
            array = variable.array
            if array is not piece:
                self._fill(piece, array)
                if variable.array is array:
                    variable.array = piece

    def _fill(self, piece: Array, array: Array) -> None:
        piece[...] = array

    def assign(self, variables: Sequence[Variable]) -> None:
        """Let the Variables hold it; an interrupt on the way gives them all the old values back."""
        before = [variable.array for variable in variables]
        try:
            for variable, piece in zip(variables, self.pieces, strict=True):
                variable.array = piece
        except BaseException:
            restore(zip(variables, before, strict=True))
            raise
        self.variables = variables


_buffers: WeakValueDictionary[int, FlatBuffer] = WeakValueDictionary()
"""The buffers, by the identity of each of their pieces, which live as long."""


def holder_of(array: Array) -> FlatBuffer | None:
    """The buffer of which an array is a piece."""
    return _buffers.get(id(array))


def buffer_of(arrays: Sequence[Array], columns: int = 1) -> FlatBuffer | None:
    """The buffer of so many columns whose pieces are exactly these arrays, in their order; None if there is none.

    >>> buffer = FlatBuffer(Layout([(2,), (3, 1)], "float32"), 1)
    >>> buffer_of(buffer.pieces) is buffer, buffer_of(buffer.pieces[:1]), buffer_of([np.ones(2)])
    (True, None, None)
    """
    buffer = holder_of(arrays[0])
    if buffer is None or len(buffer.addresses) != columns or len(arrays) != len(buffer.pieces):
        return None
    return buffer if all(map(operator.is_, arrays, buffer.pieces)) else None


def unused_buffer(buffers: list[FlatBuffer], make: Callable[[], FlatBuffer], read: FlatBuffer | None = None) -> FlatBuffer:
    """One of two buffers that nothing uses, or a new one in place of the older, which is left to those that refer to it.

    `read` is the buffer of the present values; Variables that another thread assigned may hold others.
    """
    for buffer in buffers:
        if buffer is not read and not buffer.in_use:
            return buffer
    buffers.append(make())
    del buffers[:-2]
    return buffers[-1]


class FlatVariables:
    """Variables that one run at a time reads or assigns as flat arrays, in two buffers that are read and written in turn.

    Args:
        variables: column by column.
        layout: of one column.
        in_place: whether a buffer is written where it is read if nothing but the Variables refers to it. The call that writes
            counts the references; the run holds the Variables' locks, so no other thread assigns them meanwhile.

    Attributes:
        alone: where new values go in place, the parts of the buffer, and the expected number of references, see `FlatBuffer`.
    """

    __slots__ = ("_buffers", "_columns", "_current", "_layout", "_next", "_variables", "alone", "in_place")

    def __init__(self, variables: Sequence[Variable], layout: Layout, in_place: bool = False) -> None:
        self._variables, self._layout, self.in_place = variables, layout, in_place and IS_LOCKED
        self._columns = len(variables) // len(layout.shapes)
        self._buffers: list[FlatBuffer] = []
        self._current: FlatBuffer | None = None
        self._next: FlatBuffer | None = None
        self.alone: tuple[Owned, int] | None = None

    def begin(self) -> FlatBuffer:
        """The buffer for new values: one that only programs see."""
        self._next = unused_buffer(self._buffers, self._make, self._current if self.in_place else None)
        self.alone = None
        return self._next

    def _make(self) -> FlatBuffer:
        return FlatBuffer(self._layout, self._columns)

    def read(self) -> FlatBuffer:
        """The buffer that the Variables hold, which may be another program's, or a new one that adopts them.

        In place it is the one for new values too, until `begin` chooses another.
        """
        held = self._current
        if held is None or not are_held(held.pieces, self._variables):
            held = buffer_of([variable.array for variable in self._variables], self._columns)
            if held is None:  # before the first one, and after it, free memory is given back
                give = give_back if self._current is None else lambda: None
                held = self._make()
                give()
                held.adopt(self._variables)
                give()
        return self._keep(held)

    def _keep(self, held: FlatBuffer) -> FlatBuffer:
        """Keep a buffer, whose memory must stay while it is read by its address."""
        self._current = held
        if held not in self._buffers:
            self._buffers = [*([self._next] if self._next else self._buffers[-1:]), held]
        if self.in_place:
            self.alone = held.held
        return held

    @property
    def is_held_alone(self) -> bool:
        """True if new values go in place as far as one can tell before the call that writes."""
        return self.alone is not None and self.alone[0].is_shared_by(self.alone[1])

    def assign(self) -> None:
        """Let the Variables hold the written values."""
        if self.alone is not None:
            return
        assert self._next is not None
        self._next.assign(self._variables)
        if self._buffers[-1] is not self._next:
            self._buffers.reverse()  # the last is the one to be read next, the first most likely free
