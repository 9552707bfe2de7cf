"""Order, quantiles, counts, sets and correlations, under Keras's names."""

from __future__ import annotations

import builtins
from typing import Any, Literal

import numpy as np

from ....absent import hide_imports
from ....core import Tensor, convert_to_tensor
from ....errors import ShapeError
from ....functions import contractions, ordering
from ....functions import linalg as _linalg
from ....functions.convolution import convolution
from ....functions.creation import linspace, zeros_like
from ....functions.elementwise import cast, ceil, clip_by_value, conj, floor, is_inf, is_nan, round, sqrt, where
from ....functions.indexing import gather, take_along_axis
from ....functions.operands import integer
from ....functions.reductions import reduce_max, reduce_mean, reduce_min, reduce_sum
from ....functions.shaping import expand_dims, pad, reshape, reverse, stack, transpose
from ....types import Axis, TensorLike
from ...promotion import floating, promoted, result_type
from ...symbolic.operation import operation
from ...symbolic.rules import check_size, cost_of_anything
from ..rows import anything, row


@operation
def argsort(x: TensorLike, axis: int | None = -1) -> Tensor:
    """The positions, as int32, that put the elements in ascending order; equal ones stay in their order.

    >>> print(tf.keras.ops.argsort([3, 1, 2]).numpy())
    [1 2 0]
    """
    x = convert_to_tensor(x)
    x, axis = (reshape(x, [-1]), -1) if axis is None or not x.ndim else (x, axis)
    return cast(ordering.argsort(x, axis=axis, stable=True), "int32")


@operation
def argpartition(x: TensorLike, kth: int, axis: int | None = -1) -> Tensor:
    """Positions, as int32, after which the kth element stands where sorting puts it, between smaller and larger ones.

    >>> print(tf.keras.ops.argpartition([3, 1, 2], 0).numpy()[0])
    1
    """
    integer(kth)  # sorted, any of them stands in its place
    return argsort(convert_to_tensor(x), axis)


# Quantiles ---------------------------------------------------------------------------------------------------------------

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


@operation(cost=cost_of_anything)
def quantile(x: TensorLike, q: TensorLike, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """The values below which shares `q` of the elements lie: sorted x at the place q (n - 1).

    Args:
        x: tensor of any shape; integers become floats.
        q: shares in [0, 1]; its axes come first in the result.
        axis: the axes that are reduced; all if None.
        method: between two elements 'linear' interpolation, the 'lower' or the 'higher' one, their 'midpoint', the 'nearest'.
        keepdims: whether reduced axes stay, with size 1.

    >>> print(tf.keras.ops.quantile([1.0, 2.0, 4.0], [0.5, 0.75]).numpy())
    [2. 3.]
    """
    return _quantile("quantile", floating(x), q, axis, method, keepdims, nans=False)


def _quantile(name: str, x: Tensor, q: TensorLike, axis: Any, method: str, keepdims: bool, nans: bool) -> Tensor:
    """The quantiles along the last axis of what is sorted there; NaNs, which are sorted last, count if `nans` is False."""
    if method not in _METHODS:
        raise ValueError(f"{name}: method must be one of {_METHODS}, found {method!r}.")
    shares = convert_to_tensor(q, x.dtype) if not hasattr(q, "dtype") else cast(q, x.dtype)
    axes = range(x.ndim) if axis is None else [one % x.ndim for one in (axis if isinstance(axis, (list, tuple)) else [axis])]
    others = [one for one in range(x.ndim) if one not in axes]
    rest = [x.shape[one] for one in others]
    rows = ordering.sort(reshape(transpose(x, [*others, *axes]), [*rest, -1]))
    missing = reduce_sum(cast(is_nan(rows), x.dtype), -1, keepdims=True)
    count = rows.shape[-1] - missing if nans else zeros_like(missing) + rows.shape[-1]
    places = clip_by_value(reshape(shares, [-1]) * (count - 1.0), 0.0, float(rows.shape[-1] - 1))
    if method in ("lower", "higher", "nearest"):
        found = _at(rows, {"lower": floor, "higher": ceil, "nearest": round}[method](places))
    else:
        low, high = _at(rows, floor(places)), _at(rows, ceil(places))
        between = places - floor(places) if method == "linear" else where(places == floor(places), 0.0, 0.5)
        share, step = cast(between, x.dtype), where(is_inf(low), high, high - low)  # infinity - infinity is NaN
        found = where(share > 0.0, low + step * share, low)
    spoiled = count == 0 if nans else missing > 0
    found = where(spoiled, cast(float("nan"), x.dtype), found)
    kept = [1 if one in axes else x.shape[one] for one in range(x.ndim)] if keepdims else rest
    return reshape(transpose(found, [len(rest), *range(len(rest))]), [*shares.shape, *kept])


def _at(rows: Tensor, places: Tensor) -> Tensor:
    return take_along_axis(rows, cast(places, "int32"), -1)


# Counts and sets ---------------------------------------------------------------------------------------------------------


@operation(name="SearchSorted")
def searchsorted(sorted_sequence: TensorLike, values: TensorLike, side: Literal["left", "right"] = "left") -> Tensor:
    """The insertion points of values in a sorted sequence with one axis, as int32: before equal elements, or behind ('right').

    >>> print(tf.keras.ops.searchsorted([1, 3, 5], [3, 4]).numpy())
    [1 2]
    """
    sequence, wanted = promoted(sorted_sequence, values)
    if sequence.ndim != 1:
        raise ShapeError(f"searchsorted: the sorted sequence must have one axis, found {sequence.shape}; use vectorized_map.")
    return reshape(ordering.searchsorted(sequence, reshape(wanted, [-1]), side=side), wanted.shape)


@operation
def digitize(x: TensorLike, bins: TensorLike) -> Tensor:
    """The number of the bin of each element, as int32: i for bins[i - 1] <= x < bins[i].

    Args:
        x: tensor of any shape.
        bins: limits of the bins, ascending.

    >>> print(tf.keras.ops.digitize([0.2, 6.4], [0.0, 1.0, 4.0]).numpy())
    [1 3]
    """
    return searchsorted(bins, convert_to_tensor(x), side="right")


@operation(cost=cost_of_anything, counts=True)
def bincount(x: TensorLike, weights: Any = None, minlength: int = 0, sparse: bool = False) -> Tensor:
    """Counts of each number, or the sum of the weights where it occurs, along the last axis.

    Args:
        x: numbers from 0 on, with one or two axes.
        weights: of the shape of `x`.
        minlength: the least size of the result.
        sparse: must be False: tensors are dense here.

    >>> print(tf.keras.ops.bincount([0, 2, 2], minlength=4).numpy())
    [1 0 2 0]
    """
    if sparse:
        raise ValueError("bincount: tensors are dense here; leave out sparse=True.")
    x = convert_to_tensor(x)
    if weights is not None:
        weights = convert_to_tensor(weights)
        weights = cast(weights, result_type(x.dtype, weights.dtype))
    if x.ndim < 2:
        return ordering.bincount(x, weights, minlength)
    length = builtins.max(minlength, int(x.numpy().max(initial=-1)) + 1)
    rows = [ordering.bincount(x[row], None if weights is None else weights[row], length) for row in builtins.range(x.shape[0])]
    return stack(rows)


@operation(cost=cost_of_anything)
def histogram(x: TensorLike, bins: Any = 10, range: Any = None) -> tuple[Tensor, Tensor]:
    """Counts of the elements in each bin, as floats, and the limits of the bins; the last bin holds its upper limit.

    Args:
        x: tensor of any shape.
        bins: the number of bins of equal width, or their limits.
        range: the lowest and the highest limit; the extremes of `x` if None.

    Raises:
        ValueError: for fewer bins than one, or a range whose second limit is not the higher one.

    >>> counts, limits = tf.keras.ops.histogram([1.0, 1.5, 3.0], bins=2)
    >>> print(counts.numpy(), limits.numpy())
    [2. 1.] [1. 2. 3.]
    """
    x = reshape(floating(x), [-1])
    if range is not None and (len(range) != 2 or range[0] >= range[1]):
        raise ValueError(f"histogram: range must be a lower and a higher limit, found {range!r}.")
    if isinstance(bins, int):
        if bins < 1:
            raise ValueError(f"histogram: needs one bin or more, found bins={bins}.")
        low, high = (reduce_min(x), reduce_max(x)) if range is None else (cast(one, x.dtype) for one in range)
        if not x.shape[0] and range is None:
            low, high = cast(0.0, x.dtype), cast(1.0, x.dtype)
        spread = cast(low == high, x.dtype) / 2.0
        limits = linspace(low - spread, high + spread, bins + 1)
    else:
        limits = cast(convert_to_tensor(bins), x.dtype)
    below = cast(searchsorted(limits, x, side="right"), "int32")
    count = limits.shape[0] - 1
    places = where(x == limits[-1], count, below)
    counts = ordering.bincount(places, minlength=count + 2, maxlength=count + 2)
    return cast(counts[1:-1], limits.dtype), limits


@operation(name="IsIn")
def isin(x1: TensorLike, x2: TensorLike, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """True where an element of x1 is among those of x2, or is not (`invert`).

    >>> print(tf.keras.ops.isin([1, 2, 3], [3, 1]).numpy())
    [ True False  True]
    """
    x, among = promoted(x1, x2)
    among = ordering.sort(reshape(among, [-1]))
    if not among.shape[0]:
        return cast(zeros_like(x), "bool") ^ invert
    places = reshape(ordering.searchsorted(among, reshape(x, [-1])), x.shape)
    found = gather(among, clip_by_value(places, 0, among.shape[0] - 1)) == x
    return ~found if invert else found


@operation(counts=True)
def unique(
    x: TensorLike,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The different elements in ascending order, and where asked for the positions of their first occurrences, the position of
    each element among them, and how often each occurs.

    Args:
        x: tensor of any shape.
        sorted: ignored; they are sorted always.
        return_index, return_inverse, return_counts: what else to return, as int32.
        axis: the axis whose slices are compared; the flattened tensor if None.
        size: the number of elements to return: more are cut off, fewer are filled up.
        fill_value: with what; the first one if None.

    >>> print(tf.keras.ops.unique([3, 1, 3]).numpy())
    [1 3]
    """
    array = convert_to_tensor(x).numpy()
    found = np.unique(array, return_index=True, return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    values, index, inverse, counts = found
    place = 0 if axis is None else axis
    if size is not None:
        missing = max(0, size - values.shape[place])
        check_size(6 * missing * max(1, values.size), "different elements")
        values = np.take(values, builtins.range(builtins.min(size, values.shape[place])), place)
        filler = np.take(values, [0] * missing, place) if fill_value is None else None
        shape = list(values.shape)
        shape[place] = missing
        values = np.concatenate([values, np.full(shape, fill_value, values.dtype) if filler is None else filler], place)
        index, counts = np.append(index, [index[0]] * missing)[:size], np.append(counts, [0] * missing)[:size]
    wanted = ((return_index, index), (return_inverse, inverse), (return_counts, counts))
    more = [convert_to_tensor(np.asarray(value, "int32")) for asked, value in wanted if asked]
    return (convert_to_tensor(values), *more) if more else convert_to_tensor(values)


# Correlations ------------------------------------------------------------------------------------------------------------


@operation
def corrcoef(x: TensorLike) -> Tensor:
    """Pearson's correlation of the rows of `x`: cov(i, j) / sqrt(var(i) var(j)), in [-1, 1].

    >>> print(tf.keras.ops.corrcoef([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).numpy().round(4))
    [[ 1. -1.]
     [-1.  1.]]
    """
    x = floating(x)
    rows = expand_dims(x, 0) if x.ndim < 2 else x
    centred = rows - reduce_mean(rows, -1, keepdims=True)
    covariance = contractions.matmul(centred, centred, adjoint_b=True)
    deviation = sqrt(_linalg.diag_part(covariance))
    found = clip_by_value(covariance / expand_dims(deviation, 1) / deviation, -1.0, 1.0)
    return reshape(found, []) if x.ndim < 2 else found


@operation
def correlate(x1: TensorLike, x2: TensorLike, mode: str = "valid") -> Tensor:
    """Correlation of two vectors: c[k] = sum over n of x1[n + k] conj(x2[n]).

    Args:
        x1, x2: tensors with one axis; integers become floats.
        mode: 'valid' where they overlap wholly, 'full' where they overlap at all, 'same' as many as the longer one has.

    >>> print(tf.keras.ops.correlate([1.0, 2.0, 3.0], [0.0, 1.0]).numpy())
    [2. 3.]
    """
    a, v = map(floating, promoted(x1, x2))
    if a.ndim != 1 or v.ndim != 1 or mode not in ("valid", "same", "full"):
        raise ShapeError(f"correlate: needs vectors and 'valid', 'same' or 'full', found {a.shape}, {v.shape}, {mode!r}.")
    if v.shape[0] > a.shape[0]:
        return reverse(conj(correlate(v, a, mode)), [0])
    more = {"valid": 0, "full": v.shape[0] - 1, "same": v.shape[0] // 2}[mode]
    behind = {"valid": 0, "full": more, "same": v.shape[0] - 1 - more}[mode]
    return reshape(convolution(pad(a, [[more, behind]])[None, :, None], conj(v)[:, None, None]), [-1])


# fmt: off
nanquantile = row("nanquantile",
    lambda x, q, axis=None, method="linear", keepdims=False:
        _quantile("nanquantile", floating(x), q, axis, method, keepdims, nans=True), "`quantile` of what is not NaN.",
    'print(tf.keras.ops.nanquantile([1.0, float("nan"), 4.0], 0.5).numpy()) -> 2.5', cost=cost_of_anything)
percentile = row("percentile",
    lambda x, q, axis=None, method="linear", keepdims=False:
        _quantile("percentile", floating(x), floating(q) / 100.0, axis, method, keepdims, nans=False), "`quantile` of q / 100.",
    "print(tf.keras.ops.percentile([1.0, 2.0, 4.0], 75).numpy()) -> 3.0", cost=cost_of_anything)
nanpercentile = row("nanpercentile",
    lambda x, q, axis=None, method="linear", keepdims=False:
        _quantile("nanpercentile", floating(x), floating(q) / 100.0, axis, method, keepdims, nans=True),
    "`quantile` of q / 100 of what is not NaN.",
    'print(tf.keras.ops.nanpercentile([1.0, float("nan"), 4.0], 50).numpy()) -> 2.5', cost=cost_of_anything)
median = row("median",
    lambda x, axis=None, keepdims=False: _quantile("median", floating(x), 0.5, axis, "linear", keepdims, nans=False),
    "The element in the middle, or the mean of the two there.", "print(tf.keras.ops.median([1, 9, 2, 4]).numpy()) -> 3.0")
nanmedian = row("nanmedian",
    lambda x, axis=None, keepdims=False: _quantile("nanmedian", floating(x), 0.5, axis, "linear", keepdims, nans=True),
    "`median` of what is not NaN.", 'print(tf.keras.ops.nanmedian([1.0, float("nan"), 4.0]).numpy()) -> 2.5')
sort = row("sort",
    lambda x, axis=-1: ordering.sort(reshape(x, [-1]) if axis is None else x, axis=-1 if axis is None else axis),
    "The elements in ascending order along an axis; of the flattened tensor if `axis` is None.",
    "print(tf.keras.ops.sort([3, 1, 2]).numpy()) -> [1 2 3]", takes=anything, types={"axis": "int | None"})
# fmt: on

hide_imports(globals())
