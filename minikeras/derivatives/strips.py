"""A symmetric matrix made of strips: each of some rows, with the columns from the diagonal on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.arrays import namespace
from ..core.registry import operations
from ..core.tensor import Tensor
from ..layout import Layout
from .flat import symmetric

Bounds = tuple[int, int]

CACHED = 2**18
"""Elements of a stack that stay in a processor's cache from one operation to the next."""
MOST = 16
"""Strips into which a matrix is cut for the cache's sake: each is a sweep, and a part of a program that is recorded."""
LEAST = 64
"""Rows below which Python's part of a sweep costs more than the numbers."""


def cached_rows(size: int, largest: int) -> int:
    """How many of `size` rows to carry at once, for the cache's sake, where an intermediate result has `largest` elements."""
    return max(CACHED // largest, math.ceil(size / MOST), LEAST)


def strips(layout: Layout, most: int) -> list[Bounds]:
    """Bounds of strips of at most `most` rows, that end where a leaf of the layout ends if they have enough rows by then."""
    enough = min(max(LEAST, layout.size // MOST), most)
    bounds: list[Bounds] = []
    start = 0
    for part in layout.slices:
        while part.stop - start > most:
            bounds.append((start, start + most))
            start += most
        if part.stop - start >= enough:
            bounds.append((start, part.stop))
            start = part.stop
    return bounds if bounds and start == layout.size else [*bounds, (start, layout.size)]


def unit_rows(target: Any, first: int, count: int) -> Tensor:
    """A stack of cotangents of a target: row i picks its element `first + i`, and nothing if there is none."""
    array = target._array
    unit = namespace(array).eye(count, array.size, first, dtype=array.dtype)
    return Tensor(unit.reshape((count, *array.shape)))


def mirrored(rows: Sequence[Tensor], bounds: Sequence[Bounds]) -> Tensor:
    """The symmetric matrix whose strips are given: squares on the diagonal averaged, the rest of the lower half transposed."""
    if len(rows) == 1:
        return symmetric(rows[0])
    whole = []
    for i, (start, stop) in enumerate(bounds):
        above = [rows[h][:, start - first : stop - first] for h, (first, _) in enumerate(bounds[:i])]
        square, rest = rows[i][:, : stop - start], rows[i][:, stop - start :]
        parts = [*[operations.transpose(part, perm=(-1, -2)) for part in above], symmetric(square)]
        whole.append(operations.concat(*parts, rest, axis=-1))
    return operations.concat(*whole, axis=-2)
