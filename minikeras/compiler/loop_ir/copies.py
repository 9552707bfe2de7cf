"""Copies between arrays with strides: transposes, slices and pieces of a larger array. Lengths and strides are sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..ir import Slot
from .expression import Array, Axis, lift, size
from .nest import For, Nest, Store
from .strided import Access, Launch, Shape, contiguous, merged


def copy_of(access: Access, result: Slot, shape: Shape | None = None, place: tuple[int, Shape] | None = None) -> Launch:
    """A result = a slot at its offset and strides, for all elements of a shape; by default of the whole result, without gaps.

    Args:
        access: to the elements.
        result: where they are written.
        shape: of the elements.
        place: their offset and strides in the result.

    The axis with the least stride of y is the innermost. Rows of y follow one another, so that cache lines that are read
    across are read again soon.
    """
    shape = result.shape if shape is None else shape
    begin, own = place or (0, contiguous(shape))
    sizes, (there, here) = merged(shape, [tuple(access.strides), tuple(own)])
    if not sizes:
        sizes, there, here = (1,), (1,), (1,)
    names = [[size(f"{kind}{axis}") for axis in range(len(sizes))] for kind in ("length", "from", "to")]
    lengths, reads, writes = [list(one) for one in names]
    for steps, number in ((reads, there[-1]), (writes, here[-1])):
        steps[-1] = lift(1) if number == 1 else steps[-1]  # known to be 1, so that LLVM can vectorize
    starts = [size("x_start"), size("y_start")]
    x, y = Array("x", result.dtype), Array("y", result.dtype)
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
    numbers, seconds = [access.offset, begin, *sizes, *there, *here], math.prod(shape) * result.dtype.itemsize / 4e9
    return Launch(Nest("copy", [x, y], given, grid), [access.slot], [result], numbers, seconds)


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
