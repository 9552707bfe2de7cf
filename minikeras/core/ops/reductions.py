"""Sums, means, products, extrema and running sums along `axes`, a tuple of negative numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ...types import Array, TensorLike
from ..arrays import to_numpy
from ..families import elementwise, is_complex, linear, primitive
from ..primitive import Primitive
from ..registry import operations
from .arithmetic import (
    add,
    cast,
    conj,
    divide,
    divide_no_nan,
    equal,
    identity,
    indicator,
    multiply,
    ones_like,
    ordered,
    real,
    select,
    square,
    stop_gradient,
    subtract,
    zeros_like,
)
from .shaping import broadcast_to, inverse, reshape, shifted, transpose
from .transcendental import exp, logaddexp, share_of_sum

Axes = tuple[int, ...]


def _kept_shape(shape: Any, axes: Axes) -> tuple[int, ...]:
    """`shape` with size 1 at `axes`."""
    sizes = list(shape)
    for axis in axes:
        sizes[axis] = 1
    return tuple(sizes)


def count(shape: Any, axes: Axes) -> int:
    """Number of elements that each result of a reduction is made of."""
    total = 1
    for axis in axes:
        total *= shape[axis]
    return total


def expanded(value: Any, x: TensorLike, axes: Axes, keepdims: bool) -> Any:
    """The result of a reduction of `x`, brought back to the rank of `x` with size 1 at `axes`."""
    return value if keepdims or not axes else reshape(value, shape=_kept_shape(x.shape, axes), rank=len(value.shape))


def spread(value: Any, x: TensorLike, axes: Axes, keepdims: bool) -> Any:
    """The result of a reduction of `x`, repeated over the axes that were reduced."""
    return broadcast_to(expanded(value, x, axes, keepdims), shape=tuple(x.shape), rank=len(x.shape))


_add_up: Any = np.add.reduce


def sum_along(x: Array, axes: Any, keepdims: bool = False) -> Array:
    """The sum of floats; of NumPy's arrays without the method's way through Python, which takes 0.4 us."""
    return _add_up(x, axes, keepdims=keepdims) if type(x) is np.ndarray else x.sum(axis=axes, keepdims=keepdims)


def _sum(xp: ModuleType, x: Array, axes: Axes, keepdims: bool) -> Array:
    if x.dtype.kind in "fc":
        return sum_along(x, axes, keepdims)
    return x.sum(axis=axes, keepdims=keepdims, dtype=x.dtype if x.dtype.kind in "iu" else None)


def _mean(xp: ModuleType, x: Array, axes: Axes, keepdims: bool) -> Array:
    total, n = sum_along(x, axes, keepdims), count(x.shape, axes)
    if x.dtype.kind in "iu":  # truncated toward zero, as in TensorFlow
        return (xp.sign(total) * (abs(total) // max(n, 1))).astype(x.dtype)
    return total / n if n else total * float("nan")


def _sum_of_stacks(batch: Any, operation: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """Over the rows of many matrices einsum adds several times faster than sum."""
    x = inputs[0].stacked
    if params == {"axes": (-2,), "keepdims": False} and len(x.shape) == 3 and x.dtype.kind == "f":
        return operations.einsum(x, terms=("nij",), result="nj")
    return batch.keep(operation, inputs, params)


reduce_sum = linear(
    "reduce_sum", _sum, lambda g, x, axes, keepdims: spread(g, x, axes, keepdims), batching=_sum_of_stacks, accumulates=True
)
reduce_mean = linear(
    "reduce_mean",
    _mean,
    lambda g, x, axes, keepdims: spread(multiply(g, 1.0 / (count(x.shape, axes) or 1)), x, axes, keepdims),
    accumulates=True,
)


def _extremum_vjp(g: TensorLike, y: TensorLike, x: TensorLike, axes: Axes, keepdims: bool) -> Any:
    """The elements that attain the extremum share the cotangent evenly."""
    attained = indicator(equal(x, expanded(y, x, axes, keepdims)), x)
    share = divide(attained, reduce_sum(attained, axes=axes, keepdims=True))
    return multiply(expanded(g, x, axes, keepdims), share)


def _of_nothing(xp: ModuleType, x: Array, axes: Axes, keepdims: bool, start: float) -> Array:
    """The result of a reduction over an empty axis: its neutral element."""
    kept = xp.full(_kept_shape(x.shape, axes), start, dtype=x.dtype)
    return kept if keepdims else kept.max(axis=axes)


def _extremum(name: str, start: float) -> Any:
    """`xp.max` or `xp.min`, with the neutral element for an empty axis: infinite, or the first or last integer."""

    def kernel(xp: ModuleType, x: Array, axes: Axes, keepdims: bool) -> Array:
        if not count(x.shape, axes) and x.dtype.kind in "fiu":
            limits = None if x.dtype.kind == "f" else np.iinfo(x.dtype)
            return _of_nothing(xp, x, axes, keepdims, start if limits is None else limits.min if start < 0 else limits.max)
        return getattr(x, name)(axis=axes, keepdims=keepdims)

    return ordered(f"reduce_{name}", kernel)


reduce_max = primitive("reduce_max", _extremum("max", -float("inf")), _extremum_vjp, batching="keep", accumulates=True)
reduce_min = primitive("reduce_min", _extremum("min", float("inf")), _extremum_vjp, batching="keep", accumulates=True)


def _product_vjp(g: TensorLike, y: TensorLike, x: TensorLike, axes: Axes, keepdims: bool) -> Any:
    """The product of all the others: exact where elements are zero, since nothing is divided."""
    rank = len(x.shape)
    rest = tuple(axis for axis in range(-rank, 0) if axis not in axes)
    order = rest + axes
    moved = transposed(x, order)
    flat = reshape(moved, shape=(*moved.shape[: len(rest)], count(x.shape, axes)), rank=rank)
    before = cumprod(flat, axis=-1, exclusive=True, reverse=False)
    after = cumprod(flat, axis=-1, exclusive=True, reverse=True)
    others = reshape(multiply(before, after), shape=tuple(moved.shape), rank=len(flat.shape))
    slope = transposed(others, inverse(order))
    return multiply(expanded(g, x, axes, keepdims), conj(slope) if is_complex(slope) else slope)


def transposed(x: TensorLike, order: Axes) -> Any:
    """`x` with its axes in the given order, or itself if that is the present one."""
    return x if order == tuple(range(-len(order), 0)) else transpose(x, perm=order)


reduce_prod = primitive(
    "reduce_prod",
    lambda xp, x, axes, keepdims: x.prod(axis=axes, keepdims=keepdims, dtype=x.dtype if x.dtype.kind in "iu" else None),
    _product_vjp,
    batching="keep",
    accumulates=True,
)


def _logsumexp(xp: ModuleType, x: Array, axes: Axes, keepdims: bool) -> Array:
    if not count(x.shape, axes):
        return _of_nothing(xp, x, axes, keepdims, -float("inf"))
    peak = xp.max(x, axis=axes, keepdims=True)
    peak = xp.where(xp.isfinite(peak), peak, 0)
    total = xp.log(xp.exp(x - peak).sum(axis=axes, keepdims=True)) + peak
    return total if keepdims else total.reshape([n for i, n in enumerate(total.shape, -total.ndim) if i not in axes])


def _logsumexp_vjp(g: TensorLike, y: TensorLike, x: TensorLike, axes: Axes, keepdims: bool) -> Any:
    """Softmax; all zeros where every element is minus infinity."""
    kept = expanded(y, x, axes, keepdims)
    weights = exp(subtract(x, select(equal(kept, -float("inf")), zeros_like(kept), kept)))
    # They sum to one but for the rounding of y, which is large where y is: 3e-5 for y = 1000 in float32.
    share = divide_no_nan(weights, reduce_sum(weights, axes=axes, keepdims=True))
    return multiply(expanded(g, x, axes, keepdims), share)


reduce_logsumexp = primitive("reduce_logsumexp", _logsumexp, _logsumexp_vjp, batching="keep", accumulates=True)


reduce_euclidean_norm = primitive(
    "reduce_euclidean_norm",
    lambda xp, x, axes, keepdims: xp.sqrt((x * x.conj()).real.sum(axis=axes, keepdims=keepdims)),
    # x / |x|, and the subgradient 0 at the origin.
    lambda g, y, x, axes, keepdims: multiply(
        x, _as(x, divide_no_nan(expanded(g, x, axes, keepdims), expanded(y, x, axes, keepdims)))
    ),
    batching="keep",
    accumulates=True,
)


def _as(like: Any, value: Any) -> Any:
    """A real value in the dtype of `like`, which may be complex."""
    return cast(value, dtype=like.dtype.name) if is_complex(like) else identity(value)


reduce_any = elementwise("reduce_any", lambda xp, x, axes, keepdims: x.any(axis=axes, keepdims=keepdims), None)
reduce_all = elementwise("reduce_all", lambda xp, x, axes, keepdims: x.all(axis=axes, keepdims=keepdims), None)
argmax = elementwise("argmax", ordered("argmax", lambda xp, x, axis, dtype: x.argmax(axis=axis).astype(dtype)), None)
argmin = elementwise("argmin", ordered("argmin", lambda xp, x, axis, dtype: x.argmin(axis=axis).astype(dtype)), None)

# Running sums and products --------------------------------------------------------------------------------------------


def _running(name: str, start: int) -> Any:
    """A cumulative kernel with TensorFlow's options: `exclusive` leaves the element out, `reverse` runs backward."""

    def kernel(xp: ModuleType, x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
        if reverse:
            x = xp.flip(x, axis)
        y = getattr(xp, name)(x, axis=axis, dtype=x.dtype)
        if exclusive:
            first = xp.full((*x.shape[:axis], min(x.shape[axis], 1), *x.shape[x.ndim + axis + 1 :]), start, dtype=x.dtype)
            keep = (Ellipsis, slice(None, -1), *(slice(None),) * (-1 - axis))
            y = xp.concatenate([first, y[keep]], axis=axis)
        return xp.flip(y, axis) if reverse else y

    return kernel


cumsum: Primitive = linear(
    "cumsum",
    _running("cumsum", 0),
    lambda g, x, axis, exclusive, reverse: cumsum(g, axis=axis, exclusive=exclusive, reverse=not reverse),
    accumulates=True,
)


def _cumprod_vjp(g: TensorLike, y: TensorLike, x: TensorLike, axis: int, exclusive: bool, reverse: bool) -> Any:
    """Sum over k of g_k times the product without x_i: an n x n table, so that zeros need no division."""
    n, rank = x.shape[axis], len(x.shape)
    table_shape = (*x.shape[: rank + axis], n, n, *x.shape[rank + axis + 1 :])
    own = _kept_shape(table_shape, (axis - 1,))
    row = broadcast_to(reshape(x, shape=own, rank=rank), shape=table_shape, rank=rank + 1)
    here = identity_like(x, n=n, trailing=-axis - 1)
    without = select(equal(here, 1), ones_like(row), row)
    products = cumprod(without, axis=axis, exclusive=exclusive, reverse=reverse)
    if is_complex(products):
        products = conj(products)
    reach = cumsum(broadcast_to(here, shape=table_shape, rank=len(here.shape)), axis=axis, exclusive=exclusive, reverse=reverse)
    weights = multiply(reshape(g, shape=own, rank=rank), reach)
    return reduce_sum(multiply(weights, products), axes=(axis,), keepdims=False)


def _running_logsumexp(xp: ModuleType, x: Array, axis: int) -> Array:
    if xp is np:
        return np.logaddexp.accumulate(x, axis)
    step = 1
    while step < x.shape[axis]:  # over 2, 4, 8, ... elements
        x, step = logaddexp.on(xp)(x, shifted(x, axis, step, -math.inf)), 2 * step
    return x


def _running_logsumexp_vjp(g: TensorLike, y: TensorLike, x: TensorLike, axis: int) -> Any:
    """x_i gets exp(x_i - y_i) r_i, with r_i = g_i + exp(y_i - y_i+1) r_i+1: no factor is above 1. In windows of 1, 2, 4, ..."""
    factor, step = share_of_sum(y, shifted(y, axis, -1, math.inf)), 1
    while step < x.shape[axis]:
        g = add(g, multiply(factor, shifted(g, axis, -step, 0)))
        factor, step = multiply(factor, shifted(factor, axis, -step, 0)), 2 * step
    return multiply(share_of_sum(x, y), g)


running_logsumexp = primitive(
    "running_logsumexp", _running_logsumexp, _running_logsumexp_vjp, batching="keep", accumulates=True
)


def _identity(xp: ModuleType, x: Array, n: int, trailing: int) -> Array:
    """The n x n identity with `trailing` axes of size 1 behind it, of the kind and dtype of `x`."""
    return xp.eye(n, dtype=x.dtype).reshape((n, n) + (1,) * trailing)


identity_like = elementwise("identity_like", _identity, None, batching="constant")
cumprod = primitive("cumprod", _running("cumprod", 1), _cumprod_vjp, batching="keep", accumulates=True)


def _argsort(xp: ModuleType, x: Array, axis: int, descending: bool) -> Array:
    if descending:  # stable: equal elements keep their order, as in TensorFlow
        backward = xp.flip(xp.argsort(xp.flip(x, axis), axis=axis, kind="stable"), axis)
        return (x.shape[axis] - 1 - backward).astype("int32")
    return xp.argsort(x, axis=axis, kind="stable").astype("int32")


argsort = elementwise("argsort", ordered("argsort", _argsort), None)


def _largest_places(xp: ModuleType, x: Array, k: int) -> Array:
    """The first `k` of a descending order of the last axis; of many elements only those that are chosen are sorted."""
    n = x.shape[-1]
    if xp is not np or not x.size or not 0 < 4 * k <= n or x.dtype.kind not in "fiu":
        return _argsort(xp, x, -1, True)[..., :k]
    rows = x.reshape(-1, n)
    limit = np.partition(rows, n - k)[:, n - k, None]
    chosen = ~(rows < limit)  # NaN is the largest
    tied = np.flatnonzero(np.count_nonzero(chosen, axis=-1) > k)
    if tied.size:  # of elements that equal the last one the first
        rows_of_ties, limit = rows[tied], limit[tied]
        is_nan, ends_in_nan = rows_of_ties != rows_of_ties, limit != limit
        above, equal = (rows_of_ties > limit) | (is_nan & ~ends_in_nan), (rows_of_ties == limit) | (is_nan & ends_in_nan)
        room = k - np.count_nonzero(above, axis=-1, keepdims=True)
        chosen[tied] = above | (equal & (np.cumsum(equal, axis=-1) <= room))
    places = chosen.nonzero()[1].reshape(-1, k)
    order = _argsort(np, np.take_along_axis(rows, places, -1), -1, True)
    return np.take_along_axis(places, order, -1).reshape(*x.shape[:-1], k).astype("int32")


largest_places = elementwise("largest_places", ordered("top_k", _largest_places), None)


def _sort(xp: ModuleType, x: Array, axis: int, descending: bool) -> Array:
    y = xp.sort(x, axis=axis)
    return xp.flip(y, axis) if descending else y


def _sort_vjp(g: TensorLike, y: TensorLike, x: TensorLike, axis: int, descending: bool) -> Any:
    """Each cotangent back to where its element stood. The order is found here only: sorting alone takes a fraction of it."""
    places = argsort(argsort(x, axis=axis, descending=descending), axis=axis, descending=False)
    return operations.take_along(g, places, axis=axis)


sort = primitive("sort", ordered("sort", _sort), _sort_vjp, batching="keep")


def _searchsorted(xp: ModuleType, sequence: Array, values: Array, side: Any) -> Array:
    """Row by row on the host, since neither library takes more than one sorted sequence at once."""
    if sequence.shape[:-1] != values.shape[:-1]:
        raise ValueError(f"leading axes {sequence.shape[:-1]} and {values.shape[:-1]} differ")
    rows = to_numpy(sequence).reshape(math.prod(sequence.shape[:-1]), sequence.shape[-1])
    queries = to_numpy(values).reshape(len(rows), values.shape[-1])
    places = np.zeros(queries.shape, dtype="int64")
    for place, row, query in zip(places, rows, queries, strict=True):
        place[:] = np.searchsorted(row, query, side=side)
    return xp.asarray(places.reshape(values.shape))


searchsorted = elementwise(
    "searchsorted", ordered("searchsorted", _searchsorted), None, None, batching="fill", elementwise=False
)  # the values may be more or fewer than the sequence has


def variance(x: TensorLike, axes: Axes, keepdims: bool) -> Any:
    """Mean squared distance from the mean, a real number also for complex `x`."""
    distance = centred(x, axes)
    squares = real(multiply(distance, conj(distance))) if is_complex(x) else square(distance)
    return reduce_mean(squares, axes=axes, keepdims=keepdims)


def centred(x: TensorLike, axes: Axes) -> Any:
    """The distance from the mean, without loss of accuracy where the mean is large.

    The mean of numbers near 1e6 is rounded to 0.06 in float32. What is left of it afterwards is subtracted once more;
    it is zero but for rounding, so its derivative is that of zero.
    """
    distance = subtract(x, reduce_mean(x, axes=axes, keepdims=True))
    return subtract(distance, stop_gradient(reduce_mean(distance, axes=axes, keepdims=True)))


def total(values: list[Any]) -> Any:
    """The sum of several values of one shape."""
    result = values[0]
    for value in values[1:]:
        result = add(result, value)
    return result
