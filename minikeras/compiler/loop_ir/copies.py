"""Copies between arrays with strides: transposes, slices and pieces of a larger array. Lengths and strides are sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .expression import Array, Axis, lift, size
from .nest import For, Nest, Store
from .strided import Shape, contiguous, merged


class Copy(NamedTuple):
    """A nest, and its sizes."""

    nest: Nest
    sizes: list[int]


def copy(shape: Shape, dtype: Any, source: tuple[int, Shape], target: tuple[int, Shape] | None = None) -> Copy:
    """y at its offset and strides = x at its own, for all elements of a shape; by default y has no gaps.

    The axis with the least stride of y is the innermost. Rows of y follow one another, so that cache lines that are read
    across are read again soon.
    """
    (first, strides), (begin, own) = source, target or (0, contiguous(shape))
    sizes, (there, here) = merged(shape, [tuple(strides), tuple(own)])
    if not sizes:
        sizes, there, here = (1,), (1,), (1,)
    names = [[size(f"{kind}{axis}") for axis in range(len(sizes))] for kind in ("length", "from", "to")]
    lengths, reads, writes = [list(one) for one in names]
    for steps, number in ((reads, there[-1]), (writes, here[-1])):
        steps[-1] = lift(1) if number == 1 else steps[-1]  # known to be 1, so that LLVM can vectorize
    starts = [size("x_start"), size("y_start")]
    x, y = Array("x", dtype), Array("y", dtype)
    outer, inner = Axis(math.prod(lengths[:-1], start=lift(1))), Axis(lengths[-1])
    at, left = list(starts), lift(outer)
    for axis in reversed(range(len(sizes) - 1)):
        index = left % lengths[axis] if axis else left
        at, left = (
            [one + index * step for one, step in zip(at, (reads[axis], writes[axis]), strict=True)],
            left // lengths[axis],
        )
    store = Store(y, at[1] + inner * writes[-1], x[at[0] + inner * reads[-1]])
    grid = For(outer, [For(inner, [store])])
    given = [*(lift(one) for one in starts), *names[0], *names[1], *names[2]]
    return Copy(Nest("copy", [x, y], given, grid), [first, begin, *sizes, *there, *here])


def pieces(shapes: Sequence[Shape], axis: int) -> list[tuple[int, Shape]]:
    """Offset and strides of arrays that lie side by side along an axis of a larger one.

    >>> pieces([(2, 3), (2, 1)], 1)
    [(0, (4, 1)), (3, (4, 1))]
    """
    whole = list(shapes[0])
    whole[axis] = sum([shape[axis] for shape in shapes])
    strides = contiguous(whole)
    starts = np.cumsum([0, *[shape[axis] * strides[axis] for shape in shapes]])
    return [(int(start), strides) for start in starts[:-1]]
