"""Sums, means, extremes and running sums over axes, order, quantiles, counts, sets, correlations, under Keras's names."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ...core import Tensor, convert_to_tensor
from ...errors import ShapeError
from ...functions import contractions, elementwise, gather, integer, linspace, ordering, take_along_axis, zeros_like
from ...functions import linalg as _linalg
from ...functions import reductions as tf
from ...functions.convolution import convolution
from ...functions.elementwise import cast, ceil, clip_by_value, conj, floor, is_inf, is_nan, where
from ...functions.operands import negative_axes
from ...functions.shaping import expand_dims, pad, reshape, reverse, stack, transpose
from ...types import Axis, DTypeLike, TensorLike
from ..promotion import exact, floating, is_float, promoted, result_type
from ..symbolic.operation import operation
from ..symbolic.trial import check_size, cost_of_anything
from .arithmetic import isnan
from .rows import anything, floats, row, rows_of

_DOCUMENTATION = """{summary}

Args:
    x: tensor of any shape.
    axis: the axes that are reduced, an int or a tuple; all if None.
    keepdims: whether reduced axes stay, with size 1.

Returns:
    A Tensor. """
_EXAMPLE = """

>>> tf.keras.ops.{name}(tf.keras.Input((2, 3)), axis=1).shape
(None, 3)
"""


def _wide(x: TensorLike) -> Tensor:
    """A Tensor that can be summed up: bools and integers of at most 16 bits as 32-bit integers."""
    x = convert_to_tensor(x)
    short = x.dtype.is_bool or (x.dtype.is_integer and x.dtype.size < 4)
    return cast(x, "uint32" if x.dtype.name.startswith("u") else "int32") if short else x


_over = functools.partial(rows_of, lambda x, axis=None, keepdims=False: ...)
_of_any = _over(anything, _DOCUMENTATION + "The dtype of `x`." + _EXAMPLE)
_of_floats = _over(floats, _DOCUMENTATION + "Integers and bools become floats." + _EXAMPLE)
_of_wide = _over(_wide, _DOCUMENTATION + "Bools and short integers become int32." + _EXAMPLE)


def _without_nan(x: Tensor, instead: float) -> Tensor:
    return where(is_nan(x), cast(instead, x.dtype), x) if is_float(x.dtype) else x


def _nan_mean(x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    count = tf.reduce_sum(cast(~is_nan(x), x.dtype), axis, keepdims)
    return tf.reduce_sum(_without_nan(x, 0.0), axis, keepdims) / count


def _nan_deviation(x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    share = tf.reduce_mean(cast(~is_nan(x), x.dtype), axis, keepdims)  # of the elements that are numbers
    return tf.reduce_std(where(is_nan(x), _nan_mean(x, axis, True), x), axis, keepdims) * share**-0.5


def _nan_extreme(function: Callable[..., Tensor], instead: float) -> Callable[..., Tensor]:
    def extreme(x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
        if not is_float(x.dtype):
            return function(x, axis, keepdims)
        missing = tf.reduce_all(is_nan(x), axis, keepdims)
        return where(missing, cast(float("nan"), x.dtype), function(_without_nan(x, instead), axis, keepdims))

    return extreme


def _truth(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda x, axis, keepdims: function(cast(x, "bool"), axis, keepdims)


all = _of_any("all", _truth(tf.reduce_all), "True if all elements are.", same=tf.reduce_all)
amax = _of_any("amax", tf.reduce_max, "Maximum. Derivative: 1, shared evenly at a tie.")
amin = _of_any("amin", tf.reduce_min, "Minimum. Derivative: 1, shared evenly at a tie.")
any = _of_any("any", _truth(tf.reduce_any), "True if any element is.", same=tf.reduce_any)
mean = _of_floats("mean", tf.reduce_mean, "Mean.")
nanmax = _of_any("nanmax", _nan_extreme(tf.reduce_max, -float("inf")), "Maximum of what is not NaN.")
nanmean = _of_floats("nanmean", _nan_mean, "Mean of what is not NaN.")
nanmin = _of_any("nanmin", _nan_extreme(tf.reduce_min, float("inf")), "Minimum of what is not NaN.")
nanprod = _of_wide("nanprod", lambda x, *over: tf.reduce_prod(_without_nan(x, 1.0), *over), "Product without NaN.")
nanstd = _of_floats("nanstd", _nan_deviation, "Standard deviation of what is not NaN.")
nansum = _of_wide("nansum", lambda x, *over: tf.reduce_sum(_without_nan(x, 0.0), *over), "Sum of what is not NaN.")
nanvar = _of_floats(
    "nanvar", lambda x, a, keep: _nan_mean((x - _nan_mean(x, a, True)) ** 2, a, keep), "Variance of what is not NaN."
)
ptp = _of_any("ptp", lambda x, *over: tf.reduce_max(x, *over) - tf.reduce_min(x, *over), "Maximum minus minimum.")
std = _of_floats("std", tf.reduce_std, "Standard deviation: sqrt(mean((x - mean(x))**2)).")
sum = _of_wide("sum", tf.reduce_sum, "Sum.")
var = _of_floats("var", tf.reduce_variance, "Variance: mean((x - mean(x))**2).")


def _extreme(
    x: TensorLike, axis: Axis, keepdims: bool, initial: float | None, reduce: Callable[..., Tensor], of_two: Any
) -> Tensor:
    x = convert_to_tensor(x)
    if initial is None:
        return reduce(x, axis, keepdims)
    bound = cast(initial, x.dtype)
    if not x.array.size:
        return of_two(tf.reduce_sum(x, axis, keepdims) + bound, bound)
    return of_two(reduce(x, axis, keepdims), bound)


@operation(named="weights")
def average(x: TensorLike, axis: Axis = None, weights: TensorLike = None) -> Tensor:
    """Weighted mean: sum(w x) / sum(w); the plain mean without weights.

    Args:
        x: tensor of any shape.
        axis: the axes that are reduced; all if None.
        weights: of the shape of `x`, or of its size along `axis`.

    Raises:
        ShapeError: if the weights fit neither.

    >>> print(tf.keras.ops.average([1.0, 4.0], weights=[2, 1]).numpy())
    2.0
    """
    if weights is None:
        return tf.reduce_mean(floating(x), axis)
    x, w = map(floating, promoted(x, weights))
    if isinstance(axis, (list, tuple)) and len(axis) == 1:
        (axis,) = axis
    if w.shape == x.shape:
        return tf.reduce_sum(x * w, axis) / tf.reduce_sum(w, axis)
    if w.ndim != 1 or not isinstance(axis, int) or w.shape[0] != x.shape[axis]:
        raise ShapeError(f"average: weights must have the shape {x.shape} of x, or its size along `axis`, found {w.shape}.")
    return tf.reduce_sum(x * reshape(w, [-1, *[1] * (x.ndim - 1 - axis % x.ndim)]), axis) / tf.reduce_sum(w)


# Positions ---------------------------------------------------------------------------------------------------------------


def _position(find: Callable[..., Tensor], x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    """int32 positions of extremes, in the flattened tensor for all axes."""
    if axis is not None:
        place = cast(find(x, axis), "int32")
        return expand_dims(place, axis) if keepdims else place
    place = cast(find(reshape(x, [-1]), 0), "int32")
    return reshape(place, [1] * x.ndim) if keepdims else place


def _nan_position(find: Callable[..., Tensor], x: TensorLike, axis: int | None, keepdims: bool, instead: float) -> Tensor:
    x = convert_to_tensor(x)
    place = _position(find, _without_nan(x, instead), axis, keepdims)
    return where(tf.reduce_all(isnan(x), axis, keepdims), cast(-1, "int32"), place)


# Running sums ------------------------------------------------------------------------------------------------------------


def _running(function: Callable[..., Tensor], x: TensorLike, axis: int | None, dtype: DTypeLike) -> Tensor:
    x = convert_to_tensor(x)
    if dtype is not None or x.dtype.is_bool:
        x = cast(x, dtype or "int32")
    return function(x, axis) if axis is not None else function(reshape(x, [-1]), 0)


# fmt: off
max = row("max",
    lambda x, axis=None, keepdims=False, initial=None: _extreme(x, axis, keepdims, initial, tf.reduce_max, elementwise.maximum),
    "Maximum, at least `initial`. Derivative: 1, shared evenly at a tie.",
    "print(tf.keras.ops.max([[1, 5], [3, 2]], axis=1).numpy(), tf.keras.ops.max([1, 2], initial=9).numpy()) -> [5 3] 9",
    same=tf.reduce_max)
min = row("min",
    lambda x, axis=None, keepdims=False, initial=None: _extreme(x, axis, keepdims, initial, tf.reduce_min, elementwise.minimum),
    "Minimum, at most `initial`. Derivative: 1, shared evenly at a tie.",
    "print(tf.keras.ops.min([[1, 5], [3, 2]], axis=1).numpy(), tf.keras.ops.min([1, 2], initial=0).numpy()) -> [1 2] 0",
    same=tf.reduce_min)
prod = row("prod",
    lambda x, axis=None, keepdims=False, dtype=None:
        tf.reduce_prod(_wide(x) if dtype is None else cast(convert_to_tensor(x), dtype), axis, keepdims),
    "Product, in `dtype`. Derivative: the product of the others, exact with zeros.",
    "print(tf.keras.ops.prod([[1, 5], [3, 2]], axis=1).numpy()) -> [5 6]", same=tf.reduce_prod)
count_nonzero = row("count_nonzero",
    lambda x, axis=None: tf.reduce_sum(cast(cast(convert_to_tensor(x), "bool"), "int32"), axis),
    "How many elements are not 0, as int32.", "print(tf.keras.ops.count_nonzero([[0, 1], [2, 3]], axis=0).numpy()) -> [1 2]")
argmax = row("argmax", lambda x, axis=None, keepdims=False: _position(tf.argmax, convert_to_tensor(x), axis, keepdims),
    "The position of the first maximum, as int32; in the flattened tensor if `axis` is None.",
    "print(tf.keras.ops.argmax([[1, 5], [3, 2]], axis=1).numpy()) -> [1 0]")
argmin = row("argmin", lambda x, axis=None, keepdims=False: _position(tf.argmin, convert_to_tensor(x), axis, keepdims),
    "The position of the first minimum, as int32; in the flattened tensor if `axis` is None.",
    "print(tf.keras.ops.argmin([[1, 5], [3, 2]], axis=1).numpy()) -> [0 1]")
nanargmax = row("nanargmax", lambda x, axis=None, keepdims=False: _nan_position(tf.argmax, x, axis, keepdims, -float("inf")),
    "The position of the first maximum of what is not NaN, as int32; -1 if all is NaN.",
    'print(tf.keras.ops.nanargmax([float("nan"), 1.0, 2.0]).numpy()) -> 2')
nanargmin = row("nanargmin", lambda x, axis=None, keepdims=False: _nan_position(tf.argmin, x, axis, keepdims, float("inf")),
    "The position of the first minimum of what is not NaN, as int32; -1 if all is NaN.",
    'print(tf.keras.ops.nanargmin([float("nan"), 1.0, 2.0]).numpy()) -> 1')
cumsum = row("cumsum", lambda x, axis=None, dtype=None: _running(tf.cumsum, x, axis, dtype),
    "Running sum along an axis; of the flattened tensor if `axis` is None.",
    "print(tf.keras.ops.cumsum([1, 2, 3]).numpy()) -> [1 3 6]")
cumprod = row("cumprod", lambda x, axis=None, dtype=None: _running(tf.cumprod, x, axis, dtype),
    "Running product along an axis; of the flattened tensor if `axis` is None.",
    "print(tf.keras.ops.cumprod([1, 2, 3]).numpy()) -> [1 2 6]")
nancumsum = row("nancumsum",
    lambda x, axis=None, dtype=None: _running(tf.cumsum, _without_nan(convert_to_tensor(x), 0.0), axis, dtype),
    "Running sum along an axis, where NaN counts as 0.",
    'print(tf.keras.ops.nancumsum([1.0, float("nan"), 3.0]).numpy()) -> [1. 1. 4.]')
nancumprod = row("nancumprod",
    lambda x, axis=None, dtype=None: _running(tf.cumprod, _without_nan(convert_to_tensor(x), 1.0), axis, dtype),
    "Running product along an axis, where NaN counts as 1.",
    'print(tf.keras.ops.nancumprod([1.0, float("nan"), 3.0]).numpy()) -> [1. 1. 3.]')
# fmt: on


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
    axes = [one + x.ndim for one in negative_axes(axis, x.ndim, name)]
    others = [one for one in range(x.ndim) if one not in axes]
    rest = [x.shape[one] for one in others]
    rows = ordering.sort(reshape(transpose(x, [*others, *axes]), [*rest, -1]))
    missing = tf.reduce_sum(cast(is_nan(rows), x.dtype), -1, keepdims=True)
    count = rows.shape[-1] - missing if nans else zeros_like(missing) + rows.shape[-1]
    places = clip_by_value(reshape(shares, [-1]) * (count - 1.0), 0.0, float(rows.shape[-1] - 1))
    if method in ("lower", "higher", "nearest"):
        found = _at(rows, {"lower": floor, "higher": ceil, "nearest": elementwise.round}[method](places))
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
        low, high = (tf.reduce_min(x), tf.reduce_max(x)) if range is None else (cast(one, x.dtype) for one in range)
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
        missing = builtins.max(0, size - values.shape[place])
        check_size(6 * missing * builtins.max(1, values.size), "different elements")
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
    centred = rows - tf.reduce_mean(rows, -1, keepdims=True)
    covariance = contractions.matmul(centred, centred, adjoint_b=True)
    deviation = elementwise.sqrt(_linalg.diag_part(covariance))
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
        _quantile("percentile", floating(x), floating(exact(q, floating(x).dtype)) / 100.0, axis, method, keepdims, nans=False),
    "`quantile` of q / 100.",
    "print(tf.keras.ops.percentile([1.0, 2.0, 4.0], 75).numpy()) -> 3.0", cost=cost_of_anything)
nanpercentile = row("nanpercentile",
    lambda x, q, axis=None, method="linear", keepdims=False:
        _quantile(
            "nanpercentile", floating(x), floating(exact(q, floating(x).dtype)) / 100.0, axis, method, keepdims, nans=True),
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
