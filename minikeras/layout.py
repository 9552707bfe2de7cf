"""The layout of arrays in one flat array, for eager and compiled steps of optimizers and derivatives by all parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .types import Array


class Layout:
    """Contiguous arrays of some shapes, and of one dtype if that matters: their starts, slices and size in the flat array.

    Each starts at a multiple of `alignment` elements, with a gap before it where there has to be one.
    """

    __slots__ = ("_cuts", "dtype", "shapes", "size", "slices", "starts")

    def __init__(self, shapes: Iterable[tuple[int, ...]], dtype: Any = None, alignment: int = 1) -> None:
        self.shapes = list(shapes)
        self.dtype: Any = None if dtype is None else np.dtype(dtype)
        self.starts: list[int] = []
        self.slices: list[slice] = []
        self.size = 0
        for shape in self.shapes:
            start = -(-self.size // alignment) * alignment
            self.size = start + math.prod(shape)
            self.starts.append(start)
            self.slices.append(slice(start, self.size))
        wanted = [None if len(shape) == 1 else shape for shape in self.shapes]
        self._cuts = list(zip(self.slices, wanted, strict=True))

    def pieces(self, flat: Array) -> list[Array]:
        """The arrays as views of a flat one."""
        return [flat[part] if shape is None else flat[part].reshape(shape) for part, shape in self._cuts]

    def __repr__(self) -> str:
        return f"{len(self.shapes)} arrays" + ("" if self.dtype is None else f" of {self.dtype.name}")

    @property
    def name(self) -> str:
        """Shown in printed programs."""
        return repr(self)
