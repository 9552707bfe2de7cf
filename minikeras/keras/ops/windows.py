"""Elements under sliding windows, as indices: what is read that way is added up that way by the transpose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import Tensor
from ...core.ops.indexing import add_rows, gather_rows
from ...errors import ShapeError
from ...functions.operands import beside
from ...functions.shaping import reshape
from ...types import Array
from ..symbolic.rules import check_size


def for_each(value: Any, rank: int) -> tuple[int, ...]:
    """One number for each axis."""
    return (value,) * rank if isinstance(value, int) else tuple(value)


def places(sizes: Sequence[int], window: Any, strides: Any, dilation: Any) -> tuple[int, ...]:
    """Number of windows that fit along each axis.

    Raises:
        ShapeError: if none does, or a number is not positive.
    """
    rows = list(zip(sizes, *[for_each(one, len(sizes)) for one in (window, strides, dilation)], strict=True))
    found = tuple([(n - (k - 1) * d - 1) // s + 1 if min(k, s, d) > 0 else 0 for n, k, s, d in rows])
    if min(found) < 1:
        raise ShapeError(
            f"no window {window} with strides {strides} and dilation {dilation} fits into the sizes {list(sizes)}."
        )
    return found


def elements(sizes: Sequence[int], window: Any, strides: Any = 1, dilation: Any = 1) -> Array:
    """The flat number of each element (*places, *window) under windows over axes of some sizes."""
    rank, total = len(sizes), np.zeros((), "int64")
    steps, spread, window = (for_each(one, rank) for one in (strides, dilation, window))
    counts = places(sizes, window, steps, spread)
    check_size(math.prod((*counts, *window)), "elements under windows")
    for axis, (n, count, k, s, d) in enumerate(zip(sizes, counts, window, steps, spread, strict=True)):
        along = np.arange(count)[:, None] * s + np.arange(k) * d
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = count, k
        total = total * n + along.reshape(shape)
    return total


def read(x: Tensor, numbers: Array, axis: int) -> Tensor:
    """The elements of these numbers along a negative axis, which becomes as many axes as the numbers have."""
    lead, rest = tuple(x.shape[:axis]), tuple(x.shape[axis:][1:])
    check_size(math.prod((*lead, numbers.size, *rest)), "elements under windows")
    return reshape(gather_rows(x, beside(x, numbers.ravel()), axis=axis), (*lead, *numbers.shape, *rest))


def add_up(x: Tensor, numbers: Array, size: int) -> Tensor:
    """The transpose of `read` along the last axes: each element is added to what has its number."""
    lead = tuple(x.shape[: x.ndim - numbers.ndim])
    check_size(math.prod(lead) * size, "sums of windows")
    return add_rows(reshape(x, (*lead, numbers.size)), beside(x, numbers.ravel()), axis=-1, size=size)
