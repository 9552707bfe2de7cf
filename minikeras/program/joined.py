"""Variables that lie one after the other: read, computed and assigned as one flat array.

Key idea: weights, gradients and slots of one dtype are one vector each, so a formula for each element is one pass over memory,
however many layers there are. Two vectors serve in turn: a step reads one and writes the other, so that nobody ever sees a
value change, and what a step that failed has written is nowhere to be seen. Next: `lower.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import Primitive, Variable
from ..types import Array

ALIGNMENT = 64
"""Bytes: a line of the cache."""


class Layout:
    """Where each of several arrays of one dtype lies within a flat one.

    Args:
        shapes: of the arrays.
        dtype: of all.
    """

    __slots__ = ("dtype", "shapes", "size", "starts")

    def __init__(self, shapes: Sequence[tuple[int, ...]], dtype: Any) -> None:
        self.shapes, self.dtype = list(shapes), np.dtype(dtype)
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes)]).tolist()
        self.starts, self.size = ends[:-1], ends[-1]

    def pieces(self, flat: Array) -> list[Array]:
        """The arrays as views of a flat one."""
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        return [
            flat[start : start + size].reshape(shape)
            for start, size, shape in zip(self.starts, sizes, self.shapes, strict=True)
        ]

    def __repr__(self) -> str:
        return f"{len(self.shapes)} arrays of {self.dtype.name}"


def _join(*arrays: Array, layout: Layout) -> Array:
    return np.concatenate([np.asarray(array, layout.dtype).reshape(-1) for array in arrays])


def _read(*variables: Variable, layout: Layout) -> Array:
    return _join(*[variable._array for variable in variables], layout=layout)


def _never(*arrays: Any, **params: Any) -> Any:
    raise AssertionError("an assignment is carried out by its replay")


join = Primitive("join", lambda xp: _join, differentiable=False, uniform=False, registered=False)
"""Arrays one after the other."""
read_joined = Primitive("read_joined", lambda xp: _read, differentiable=False, uniform=False, effect=True, registered=False)
"""Variables one after the other."""
assign_joined = Primitive(
    "assign_joined", lambda xp: _never, differentiable=False, uniform=False, effect=True, registered=False
)
"""Variables are given the parts of a flat array."""
part = Primitive(
    "part",
    lambda xp: lambda flat, *, start, shape: flat[start : start + int(np.prod(shape))].reshape(shape),
    differentiable=False,
    registered=False,
)
"""One of the arrays that lie within a flat one."""


class Row:
    """Variables that are read and assigned as one vector, and the memory of one value of it.

    Args:
        layout: where each of them lies.
        values: what they hold by now; None to leave the memory as it is.
    """

    __slots__ = ("_base", "_quiet", "flat", "pieces")

    def __init__(self, layout: Layout, values: Sequence[Array] | None = None) -> None:
        whole = np.empty(layout.size * layout.dtype.itemsize + ALIGNMENT, np.uint8)
        start = -whole.ctypes.data % ALIGNMENT
        memory = memoryview(whole[start : start + layout.size * layout.dtype.itemsize])  # type: ignore[arg-type]
        # Two arrays over one memory: who holds a part of the first has seen a Variable, the second belongs to programs.
        self._base: Array = np.frombuffer(memory, layout.dtype)
        self.flat: Array = np.frombuffer(memory, layout.dtype)
        self.pieces = layout.pieces(self._base)
        self._quiet = self._references()
        if values is not None:
            for piece, value in zip(layout.pieces(self.flat), values, strict=True):
                piece[...] = value

    def _references(self) -> int:
        return sum(map(sys.getrefcount, self.pieces)) + sys.getrefcount(self._base)

    @property
    def seen(self) -> bool:
        """Whether anybody beside programs holds any of it: a Variable, a Tensor, a view."""
        return self._references() != self._quiet

    def held_by(self, variables: Sequence[Variable]) -> bool:
        """Whether this is what the Variables hold."""
        return all([variable._array is piece for variable, piece in zip(variables, self.pieces, strict=True)])

    def assign(self, variables: Sequence[Variable]) -> None:
        """Let the Variables hold it."""
        for variable, piece in zip(variables, self.pieces, strict=True):
            variable._array, variable._spare = piece, None
