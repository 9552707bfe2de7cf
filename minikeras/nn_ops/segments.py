"""Extrema and products of segments, the slices along an axis that share a number, and counts of numbers in bins. Sums of
segments are `indexing.add_rows`.

`ids` are numbers in [0, size), in any order and shape; their axes lie side by side in `x`, the last of them at `axis`.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

from ..core import Primitive, linear, primitive, to_numpy
from ..core.ops.arithmetic import conj_if_complex, divide_no_nan, equal, indicator, multiply, ordered, select
from ..core.ops.indexing import add_rows, add_to_stacks, combined_rows, gather_rows
from ..core.ops.reductions import argsort
from ..core.ops.shaping import reshape, shifted
from ..errors import InvalidArgumentError
from ..types import Array, TensorLike, as_dtype


def _extremum_vjp(g: TensorLike, y: TensorLike, x: TensorLike, ids: Any, axis: int, size: int) -> Any:
    """The elements that attain the extremum share the cotangent evenly."""
    attained = indicator(equal(x, gather_rows(y, ids, axis=axis)), x)
    share = divide_no_nan(g, add_rows(attained, ids, axis=axis, size=size))
    return multiply(gather_rows(share, ids, axis=axis), attained)


def _extremum(name: str, ufunc: str, end: str) -> Primitive:
    """Beginning at the last number of the dtype in the other direction, which an empty segment keeps."""

    def start(dtype: Any) -> Any:
        number = getattr(as_dtype(dtype), end)
        return int(number) if dtype.kind in "iu" else float(number)

    kernel = ordered(name, combined_rows(ufunc, start))
    return primitive(name, kernel, _extremum_vjp, None, uniform=False, batching=add_to_stacks)


segment_max = _extremum("segment_max", "maximum", "min")
segment_min = _extremum("segment_min", "minimum", "max")


def _product_vjp(g: TensorLike, y: TensorLike, x: TensorLike, ids: Any, axis: int, size: int) -> Any:
    """The product of all others in a segment: exact where elements are zero, since nothing is divided."""
    n, rank, behind = math.prod(ids.shape), len(ids.shape), x.shape[len(x.shape) + axis + 1 :]
    lead = x.shape[: len(x.shape) + axis + 1 - rank]
    flat, numbers = reshape(x, shape=(*lead, n, *behind), rank=len(x.shape)), reshape(ids, shape=(n,), rank=rank)
    order = argsort(numbers, axis=-1, descending=False)
    flat, numbers = gather_rows(flat, order, axis=axis), gather_rows(numbers, order, axis=-1)
    others = multiply(*(_product_up_to(flat, numbers, axis, toward) for toward in (1, -1)))
    others = gather_rows(others, argsort(order, axis=-1, descending=False), axis=axis)
    return multiply(
        gather_rows(g, ids, axis=axis), conj_if_complex(reshape(others, shape=tuple(x.shape), rank=len(flat.shape)))
    )


def _product_up_to(x: TensorLike, ids: Any, axis: int, step: int) -> Any:
    """The product of those in front of each element, or behind it, in its segment; in windows of 1, 2, 4, ... elements."""
    column = (*ids.shape, *(1,) * (-1 - axis))

    def shift(values: Any, by: int) -> Any:
        same = reshape(equal(ids, shifted(ids, -1, by, -1)), shape=column, rank=1)
        return select(same, shifted(values, axis, by, 1), 1)

    product = shift(x, step) if ids.shape[0] else x
    while abs(step) < ids.shape[0]:
        product, step = multiply(product, shift(product, step)), 2 * step
    return product


segment_prod = primitive(
    "segment_prod",
    combined_rows("multiply", lambda dtype: 1),
    _product_vjp,
    None,
    uniform=False,
    batching=add_to_stacks,
    accumulates=True,
)


def _histogram(xp: ModuleType, x: Array, low: float, high: float, bins: int, rank: int) -> Array:
    """Counts of the last `rank` axes, for each place in the leading ones."""
    lead = tuple(x.shape[: x.ndim - rank])
    rows = math.prod(lead)
    places = xp.floor((x.astype("float64") - low) * (bins / (high - low)))
    if bool(to_numpy(xp.isnan(places).any())):
        raise InvalidArgumentError("histogram_fixed_width: NaN among the values belongs to no bin.")
    places = xp.minimum(xp.maximum(places, 0), bins - 1).astype("int64")
    counts = xp.zeros((rows, bins), dtype="int32")
    xp.add.at(counts, (xp.arange(rows)[:, None], places.reshape((rows, math.prod(x.shape[x.ndim - rank :])))), 1)
    return counts.reshape((*lead, bins))


# As in TensorFlow, no gradient is registered for it: asking for one says so.
histogram = linear("HistogramFixedWidth", _histogram, lambda g, x, **options: None, vjp=None, jvp=None, batching="keep")
