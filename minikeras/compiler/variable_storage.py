"""Storage of flattened Variables: weights, gradients and slots of one dtype are a flat array each, read, computed and assigned
as a whole. What the Variables hold then are pieces of that array.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..core import IS_LOCKED, Owned, Primitive, Record, State, Variable, are_held, effect, restore
from ..layout import Layout
from ..types import Array
from .planning import ALIGNMENT, give_back, memory_of

# Instructions ------------------------------------------------------------------------------------------------------------


def _flatten(*arrays: Array, layout: Layout) -> Array:
    flat = np.zeros(layout.size, layout.dtype)
    for piece, array in zip(layout.pieces(flat), arrays, strict=True):
        piece[...] = array.reshape(piece.shape)
    return flat


def _read(*variables: Variable, layout: Layout) -> tuple[Array, ...]:
    return tuple([_flatten(*[variable.array for variable in column], layout=layout) for column in _columns(variables, layout)])


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


def columns_of(record: Record) -> list[Sequence[Variable]]:
    """The columns of Variables of a reading or an assignment."""
    return _columns(variables_of(record), record.params["layout"])


def _columns(variables: Sequence[Variable], layout: Layout) -> list[Sequence[Variable]]:
    count = len(layout.shapes)
    return [variables[start : start + count] for start in range(0, len(variables), count)]


# Memory ------------------------------------------------------------------------------------------------------------------


class HostMemory:
    """Memory of the host for flat arrays, each from the beginning of a line of the cache.

    Args:
        layout: the places of the Variables of one column.
        columns: the number of flat arrays.

    Attributes:
        flats: the flat arrays, as programs see them.
        addresses: of these.
        pieces: the arrays that Variables hold, column by column.
        root: the array that these are views of.
    """

    def __init__(self, layout: Layout, columns: int = 1) -> None:
        per_line = ALIGNMENT // layout.dtype.itemsize
        width = -(-layout.size // per_line) * per_line
        memory = memoryview(memory_of(columns * width * layout.dtype.itemsize))
        # Two arrays over one memory: references to parts of the first come from Variables, the second belongs to programs.
        self.root: Array = np.frombuffer(memory, layout.dtype)
        own: Array = np.frombuffer(memory, layout.dtype)
        starts = [column * width for column in range(columns)]
        self.layout, self.flats = layout, [own[start : start + layout.size] for start in starts]
        self.addresses: Array = np.array([flat.ctypes.data for flat in self.flats], np.int64)
        self.pieces = [piece for start in starts for piece in layout.pieces(self.root[start : start + layout.size])]

    def fill(self, place: int, array: Array) -> None:
        """Copy an array to one of the pieces."""
        self.pieces[place][...] = array


class FlatBuffer:
    """One value of flattened Variables.

    Args:
        memory: where it lies: of the host, or of a device.

    Attributes:
        variables: those that were given the pieces last.
        held: its parts, and how many references they have, beside those of programs, while only its Variable holds each.
    """

    __slots__ = ("__weakref__", "_owned", "held", "memory", "pieces", "variables")

    def __init__(self, memory: Any) -> None:
        self.memory, self.pieces = memory, memory.pieces
        self._owned = Owned([*self.pieces, memory.root])
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
        """Copy the values that lie elsewhere, and let the Variables hold the copies; what another thread assigns stays."""
        self.variables = variables
        for place, variable in enumerate(variables):
            array = variable.array
            if array is not self.pieces[place]:
                self.memory.fill(place, array)
                if variable.array is array:
                    variable.array = self.pieces[place]

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
    """The buffer of which an array is a piece.

    >>> buffer = FlatBuffer(HostMemory(Layout([(2,), (3, 1)], "float32")))
    >>> holder_of(buffer.pieces[1]) is buffer, holder_of(np.ones(2))
    (True, None)
    """
    return _buffers.get(id(array))


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

    __slots__ = ("_buffers", "_current", "_layout", "_next", "_variables", "alone", "in_place")

    def __init__(self, variables: Sequence[Variable], layout: Layout, in_place: bool = False) -> None:
        self._variables, self._layout, self.in_place = variables, layout, in_place and IS_LOCKED
        self._buffers: list[FlatBuffer] = []
        self._current: FlatBuffer | None = None
        self._next: FlatBuffer | None = None
        self.alone: tuple[Owned, int] | None = None

    def _make(self) -> FlatBuffer:
        return FlatBuffer(HostMemory(self._layout, len(self._variables) // len(self._layout.shapes)))

    def begin(self, others: Collection[FlatBuffer] = ()) -> FlatBuffer:
        """The buffer for new values, that only programs see: one of two, or a new one in place of the older, which is left to
        those that refer to it. It is none of `others`. In place it is not that of the present values: Variables that another
        thread assigned may hold others.
        """
        read, self.alone = self._current if self.in_place else None, None
        for buffer in self._buffers:
            if buffer is not read and buffer not in others and not buffer.in_use:
                self._next = buffer
                return buffer
        self._next = self._make()
        self._buffers = [*self._buffers[-1:], self._next]
        return self._next

    def read(self) -> FlatBuffer:
        """The buffer that the Variables hold, which may be another program's, or one that adopts them: the one before, if only
        these Variables refer to it, or a new one.

        In place it is the one for new values too, until `begin` chooses another; its memory stays while it is read.
        """
        held = self._current
        if held is None or not are_held(held.pieces, self._variables):
            held = self._found() or self._adopting(held)
        self._current = held
        if held not in self._buffers and len(held.pieces) == len(self._variables):
            self._buffers = [*([self._next] if self._next else self._buffers[-1:]), held]
        if self.in_place:
            self.alone = held.held
        return held

    def _found(self) -> FlatBuffer | None:
        """The buffer in which they lie. No variable keeps a piece beyond this call: it would count as a reference."""
        held = holder_of(self._variables[0].array)
        if held is None or len(held.pieces) != len(self._variables) or not are_held(held.pieces, self._variables):
            return None
        return held if held.memory.layout.starts == self._layout.starts else None

    def _adopting(self, before: FlatBuffer | None) -> FlatBuffer:
        is_own = before is not None and [*map(id, before.variables)] == [*map(id, self._variables)]
        if before is not None and is_own and self.in_place and not before.is_seen:
            before.adopt(self._variables)
            return before
        held = self._make()
        give = give_back if before is None and type(held.memory) is HostMemory else lambda: None
        give()  # free memory, before the first one is filled and after it
        held.adopt(self._variables)
        give()
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
        self._current = self._next
        if self._buffers[-1] is not self._next:
            self._buffers.reverse()  # the last is the one to be read next, the first most likely free
