"""Variables that lie one after the other: read, computed and assigned as one flat array.

Key idea: weights, gradients and slots of one dtype are one vector each, so a formula for each element is one pass over memory,
however many layers there are. Two vectors serve in turn: a step reads one and writes the other, so that nobody ever sees a
value change, and what a step that failed has written is nowhere to be seen. Next: `lower.py`.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import Primitive, Record, Variable
from ...core.effects import State, effect
from ...core.layout import Layout
from ...types import Array

ALIGNMENT = 64
"""Bytes: a line of the cache."""


def _join(*arrays: Array, layout: Layout) -> Array:
    return np.concatenate([np.asarray(array, layout.dtype).reshape(-1) for array in arrays])


def _read(*variables: Variable, layout: Layout) -> tuple[Array, ...]:
    count = len(layout.shapes)
    columns = [variables[start : start + count] for start in range(0, len(variables), count)]
    return tuple([_join(*[variable._array for variable in column], layout=layout) for column in columns])


def _assign(*operands: Any, layout: Layout) -> tuple[()]:
    variables = [x for x in operands if isinstance(x, Variable)]
    pieces = [piece for flat in operands[len(variables) :] for piece in layout.pieces(flat)]
    for variable, piece in zip(variables, pieces, strict=True):
        variable._array = piece
    return ()


join = Primitive("join", lambda xp: _join, differentiable=False, uniform=False, registered=False)
"""Arrays one after the other."""
read_joined = effect("read_joined", _read, reads=(State.OPERANDS,))
"""Variables one after the other, as one vector for each column: weights, then one slot of each, then the next."""
assign_joined = effect("assign_joined", _assign, writes=(State.OPERANDS,), escapes=True)
"""Variables are given the parts of vectors."""
part = Primitive(
    "part",
    lambda xp: lambda flat, *, start, shape: flat[start : start + math.prod(shape)].reshape(shape),
    differentiable=False,
    registered=False,
)
"""One of the arrays that lie within a flat one."""


def flats_of(record: Record) -> list[Any]:
    """The vectors of an assignment."""
    return [x for x in record.inputs if not isinstance(x, Variable)]


def variables_of(record: Record) -> list[Variable]:
    """The Variables of a reading or an assignment, column by column."""
    return [x for x in record.inputs if isinstance(x, Variable)]


class Row:
    """Memory for one value of Variables that are read and assigned as vectors.

    Args:
        layout: where the Variables of one column lie.
        columns: how many vectors there are.

    Attributes:
        flats: the vectors, as programs see them.
        addresses: of the vectors.
        pieces: what the Variables hold, column by column.
    """

    __slots__ = ("_base", "_quiet", "addresses", "flats", "pieces")

    def __init__(self, layout: Layout, columns: int) -> None:
        per_line = ALIGNMENT // layout.dtype.itemsize
        width = -(-layout.size // per_line) * per_line
        memory = memoryview(memory_of(columns * width * layout.dtype.itemsize))
        # Two arrays over one memory: who holds a part of the first has seen a Variable, the second belongs to programs.
        self._base: Array = np.frombuffer(memory, layout.dtype)
        own: Array = np.frombuffer(memory, layout.dtype)
        starts = [column * width for column in range(columns)]
        self.flats = [own[start : start + layout.size] for start in starts]
        self.addresses = np.array([flat.ctypes.data for flat in self.flats], np.int64)
        self.pieces = [piece for start in starts for piece in layout.pieces(self._base[start : start + layout.size])]
        self._quiet = self._references()

    def _references(self) -> int:
        return sum(map(sys.getrefcount, self.pieces)) + sys.getrefcount(self._base)

    @property
    def seen(self) -> bool:
        """Whether anybody beside programs holds any of it: a Variable, a Tensor, a view."""
        return self._references() != self._quiet

    def held_by(self, variables: Sequence[Variable]) -> bool:
        """Whether this is what the Variables hold."""
        return all(map(operator.is_, [variable._array for variable in variables], self.pieces))

    def fill(self, variables: Sequence[Variable], layout: Layout) -> None:
        """Take over what the Variables hold. They keep arrays of their own."""
        arrays = [variable._array for variable in variables]
        count = len(layout.shapes)
        for flat, start in zip(self.flats, range(0, len(arrays), count), strict=True):
            for piece, array in zip(layout.pieces(flat), arrays[start : start + count], strict=True):
                piece[...] = array
        for variable in variables:
            variable._spare = None

    def assign(self, variables: Sequence[Variable]) -> None:
        """Let the Variables hold it; an interrupt on the way gives them all the old values back."""
        before = [variable._array for variable in variables]
        try:
            for variable, piece in zip(variables, self.pieces, strict=True):
                variable._array = piece
        except BaseException:
            for variable, array in zip(variables, before, strict=True):
                variable._array = array
            raise


def memory_of(size: int) -> Array:
    """Bytes that begin with a line of the cache."""
    whole = np.empty(size + ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + size]
