"""Pools over one or more axes: the largest or the mean element under sliding windows, or windows that divide an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import Tensor
from ..core.ops.indexing import gather_rows
from ..errors import ShapeError
from ..nn_ops import convolution as ops
from ..types import ShapeLike, TensorLike
from .catalogue import named
from .convolution import channels_first, channels_last, channels_moved_first, geometry, one_for_each
from .creation import ones_like
from .operands import beside, inexact, rounded_once, tensor
from .resizing import along_axis


def max_pool(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """The largest element under a sliding window, for each channel; of several the first has the gradient.

    Args:
        input: tensor (batch, *sizes, channels), or with the channels first.
        ksize, strides: an int, or one for each axis.
        padding, data_format: as in `convolution`; what is padded is never the largest.

    >>> print(tf.nn.max_pool([[[1.0], [3.0], [2.0]]], 2, 1, "VALID").numpy().ravel())
    [3. 3.]
    """
    return _pooled("max_pool", input, ksize, strides, padding, data_format)


@rounded_once
def avg_pool(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """The mean of what lies under a sliding window, for each channel; padding does not count. Arguments as in `max_pool`.

    >>> print(tf.nn.avg_pool([[[1.0], [3.0], [2.0]]], 2, 2, "SAME").numpy().ravel())
    [2. 2.]
    """
    return _pooled("avg_pool", input, ksize, strides, padding, data_format)


def _pooled(name: str, input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str | None) -> Tensor:
    x = tensor(input)
    inexact(name, x, "f" if name == "avg_pool" else "iuf")
    if x.ndim < 3:
        raise ShapeError(f"{name}: needs a tensor (batch, *sizes, channels), found shape {x.shape}.")
    first = channels_first(data_format)
    x = channels_last(x) if first else x
    sizes = tuple(x.shape[1:-1])
    window = one_for_each(name, "ksize", ksize, len(sizes), first)
    options = geometry(name, sizes, window, strides, padding, None, first)
    if name == "max_pool":
        y = ops.max_pool(x, **options)
    elif any(map(any, options["padding"])):
        y = ops.window_sum(x, **options) / ops.window_sum(ones_like(x[:1, ..., :1]), **options)
    else:
        y = ops.window_sum(x, **options) * (1.0 / math.prod(window))
    return channels_moved_first(y) if first else y


def adaptive_max_pool(input: TensorLike, output_size: ShapeLike, data_format: str | None = None) -> Tensor:
    """The largest element of each window, for each channel; windows divide an axis into parts as equal as they can be.

    Window i of m along an axis of n elements holds those from floor(i n / m) up to ceil((i + 1) n / m), without that one.

    Args:
        input: tensor (batch, *sizes, channels), or with the channels first.
        output_size: number of windows; an int, or one for each axis.
        data_format: as in `convolution`.
    """
    return _adapted("adaptive_max_pool", max_pool, input, output_size, data_format)


@rounded_once
def adaptive_avg_pool(input: TensorLike, output_size: ShapeLike, data_format: str | None = None) -> Tensor:
    """The mean of each window, for each channel. Arguments and windows as in `adaptive_max_pool`."""
    return _adapted("adaptive_avg_pool", avg_pool, input, output_size, data_format)


def _adapted(
    name: str, pool: Callable[..., Tensor], input: TensorLike, output_size: ShapeLike, data_format: str | None
) -> Tensor:
    x = tensor(input)
    inexact(name, x, "f" if pool is avg_pool else "iuf")
    first = channels_first(data_format)
    x = channels_last(x) if first else x
    rank = x.ndim - 2
    counts = one_for_each(name, "output_size", output_size, rank, first)
    sizes = tuple(x.shape[1:-1])
    if rank < 1 or min(counts) < 1 or 0 in sizes:
        raise ShapeError(f"{name}: needs (batch, *sizes, channels) and windows in each axis, found {x.shape} and {counts}.")
    even = tuple(n // m if n % m == 0 else 1 for n, m in zip(sizes, counts, strict=True))
    y = pool(x, even, even, "VALID") if max(even) > 1 else x
    for axis, m in enumerate(counts, 1):
        n = y.shape[axis]
        if n != m:
            y = _overlapping(y, axis, -(-np.arange(1, m + 1) * n // m), np.arange(m) * n // m, pool)
    return channels_moved_first(y) if first else y


def _overlapping(x: Tensor, axis: int, stops: Any, starts: Any, pool: Callable[..., Tensor]) -> Tensor:
    """Pooled along an axis, over windows that share elements with their neighbours."""
    if pool is avg_pool:
        position = np.arange(x.shape[axis])
        inside = (position >= starts[:, None]) & (position < stops[:, None])
        return along_axis(inside / inside.sum(1, keepdims=True), x, axis)
    width = int((stops - starts).max())
    rows = np.minimum(starts[:, None] + np.arange(width), stops[:, None] - 1)  # the last element again in shorter windows
    window = tuple(width if i == axis else 1 for i in range(1, x.ndim - 1))
    return max_pool(gather_rows(x, beside(x, rows.ravel()), axis=axis - x.ndim), window, window, "VALID")


# fmt: off
max_pool1d = named(max_pool, "max_pool1d", "`max_pool` over (batch, width, channels).",
    "tf.nn.max_pool1d(tf.ones([2, 5, 3]), 2, 2, 'VALID').shape -> TensorShape([2, 2, 3])")
avg_pool1d = named(avg_pool, "avg_pool1d", "`avg_pool` over (batch, width, channels).",
    "tf.nn.avg_pool1d(tf.ones([2, 5, 3]), 2, 2, 'VALID').shape -> TensorShape([2, 2, 3])")
max_pool2d = named(max_pool, "max_pool2d", "`max_pool` over (batch, height, width, channels).",
    "tf.nn.max_pool2d(tf.ones([2, 5, 5, 3]), 2, 2, 'VALID').shape -> TensorShape([2, 2, 2, 3])")
avg_pool2d = named(avg_pool, "avg_pool2d", "`avg_pool` over (batch, height, width, channels).",
    "tf.nn.avg_pool2d(tf.ones([2, 5, 5, 3]), 2, 2, 'VALID').shape -> TensorShape([2, 2, 2, 3])")
max_pool3d = named(max_pool, "max_pool3d", "`max_pool` over (batch, depth, height, width, channels).",
    "tf.nn.max_pool3d(tf.ones([2, 5, 5, 5, 3]), 2, 2, 'VALID').shape -> TensorShape([2, 2, 2, 2, 3])")
avg_pool3d = named(avg_pool, "avg_pool3d", "`avg_pool` over (batch, depth, height, width, channels).",
    "tf.nn.avg_pool3d(tf.ones([2, 5, 5, 5, 3]), 2, 2, 'VALID').shape -> TensorShape([2, 2, 2, 2, 3])")
# fmt: on
