"""Sums, means, extremes and running sums over axes, under Keras's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....absent import hide_imports
from ....core import Tensor, convert_to_tensor
from ....errors import ShapeError
from ....functions import reductions as tf
from ....functions.catalogue import name_like_definition
from ....functions.elementwise import cast, is_nan, maximum, minimum, where
from ....functions.shaping import expand_dims, reshape
from ....types import Axis, DTypeLike, TensorLike
from ...promotion import floating, is_float, promoted
from ...symbolic.operation import operation
from ..rows import row
from .elementwise import isnan

_DOCUMENTATION = """{summary}

Args:
    x: tensor of any shape.
    axis: the axes that are reduced, an int or a tuple; all if None.
    keepdims: whether reduced axes stay, with size 1.

Returns:
    A Tensor. {dtype}

>>> tf.keras.ops.{name}(tf.keras.Input((2, 3)), axis=1).shape
(None, 3)
"""
_FLOATS, _SAME, _WIDE = ("Integers and bools become floats.", "The dtype of `x`.", "Bools and short integers become int32.")


def _reduction(name: str, function: Callable[..., Tensor], summary: str, dtype: str) -> Callable[..., Tensor]:
    """The row of a function of a Tensor, axes and keepdims."""
    prepared = {_FLOATS: floating, _SAME: convert_to_tensor, _WIDE: _wide}[dtype]

    def row(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return function(prepared(x), axis, keepdims)

    name_like_definition(row, name, __name__)
    row.__doc__ = _DOCUMENTATION.format(summary=summary, name=name, dtype=dtype)
    return operation(row)


def _wide(x: TensorLike) -> Tensor:
    """A Tensor that can be summed up: bools and integers of at most 16 bits as 32-bit integers."""
    x = convert_to_tensor(x)
    short = x.dtype.is_bool or (x.dtype.is_integer and x.dtype.size < 4)
    return cast(x, "uint32" if x.dtype.name.startswith("u") else "int32") if short else x


def _without_nan(x: Tensor, instead: float) -> Tensor:
    return where(is_nan(x), cast(instead, x.dtype), x) if is_float(x.dtype) else x


def _nan_mean(x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    count = tf.reduce_sum(cast(~is_nan(x), x.dtype), axis, keepdims)
    return tf.reduce_sum(_without_nan(x, 0.0), axis, keepdims) / count


def _nan_variance(x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    return _nan_mean((x - _nan_mean(x, axis, True)) ** 2, axis, keepdims)


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


all = _reduction("all", _truth(tf.reduce_all), "True if all elements are.", _SAME)
amax = _reduction("amax", tf.reduce_max, "Maximum. Derivative: 1, shared evenly at a tie.", _SAME)
amin = _reduction("amin", tf.reduce_min, "Minimum. Derivative: 1, shared evenly at a tie.", _SAME)
any = _reduction("any", _truth(tf.reduce_any), "True if any element is.", _SAME)
mean = _reduction("mean", tf.reduce_mean, "Mean.", _FLOATS)
nanmax = _reduction("nanmax", _nan_extreme(tf.reduce_max, -float("inf")), "Maximum of what is not NaN.", _SAME)
nanmean = _reduction("nanmean", _nan_mean, "Mean of what is not NaN.", _FLOATS)
nanmin = _reduction("nanmin", _nan_extreme(tf.reduce_min, float("inf")), "Minimum of what is not NaN.", _SAME)
nanprod = _reduction("nanprod", lambda x, *over: tf.reduce_prod(_without_nan(x, 1.0), *over), "Product without NaN.", _WIDE)
nanstd = _reduction("nanstd", _nan_deviation, "Standard deviation of what is not NaN.", _FLOATS)
nansum = _reduction("nansum", lambda x, *over: tf.reduce_sum(_without_nan(x, 0.0), *over), "Sum of what is not NaN.", _WIDE)
nanvar = _reduction("nanvar", _nan_variance, "Variance of what is not NaN.", _FLOATS)
ptp = _reduction("ptp", lambda x, *over: tf.reduce_max(x, *over) - tf.reduce_min(x, *over), "Maximum minus minimum.", _SAME)
std = _reduction("std", tf.reduce_std, "Standard deviation: sqrt(mean((x - mean(x))**2)).", _FLOATS)
sum = _reduction("sum", tf.reduce_sum, "Sum.", _WIDE)
var = _reduction("var", tf.reduce_variance, "Variance: mean((x - mean(x))**2).", _FLOATS)


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
    lambda x, axis=None, keepdims=False, initial=None: _extreme(x, axis, keepdims, initial, tf.reduce_max, maximum),
    "Maximum, at least `initial`. Derivative: 1, shared evenly at a tie.",
    "print(tf.keras.ops.max([[1, 5], [3, 2]], axis=1).numpy(), tf.keras.ops.max([1, 2], initial=9).numpy()) -> [5 3] 9")
min = row("min",
    lambda x, axis=None, keepdims=False, initial=None: _extreme(x, axis, keepdims, initial, tf.reduce_min, minimum),
    "Minimum, at most `initial`. Derivative: 1, shared evenly at a tie.",
    "print(tf.keras.ops.min([[1, 5], [3, 2]], axis=1).numpy(), tf.keras.ops.min([1, 2], initial=0).numpy()) -> [1 2] 0")
prod = row("prod",
    lambda x, axis=None, keepdims=False, dtype=None:
        tf.reduce_prod(_wide(x) if dtype is None else cast(convert_to_tensor(x), dtype), axis, keepdims),
    "Product, in `dtype`. Derivative: the product of the others, exact with zeros.",
    "print(tf.keras.ops.prod([[1, 5], [3, 2]], axis=1).numpy()) -> [5 6]")
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

hide_imports(globals())
