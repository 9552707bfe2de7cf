"""Convolutions and pools over one or more axes. Padding becomes numbers here, and channels go last."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import Tensor
from ..core.ops.indexing import gather_rows
from ..errors import ShapeError
from ..nn_ops import convolution as ops
from ..types import ShapeLike, TensorLike
from .catalogue import named, row
from .contractions import along_axis
from .creation import ones_like
from .operands import beside, inexact, rounded_once, static_shape, tensor, tensors
from .shaping import reshape, transpose

Sizes = tuple[int, ...]


def convolution(
    input: TensorLike,
    filters: TensorLike,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The sum over a window that slides along all axes between batch and channels, times a kernel.

        y[b, o, c] = sum over k, i of input[b, stride o + dilation k - padding, i] filters[k, i, c]

    Args:
        input: float tensor (batch, *sizes, channels), or (batch, channels, *sizes) with a data format such as 'NCHW'.
        filters: (*window, channels / groups, outputs); the number of groups follows from the shapes.
        strides: an int or one for each axis; 1 by default.
        padding: 'VALID' (none), 'SAME' (so that places = size / stride, rounded up), or a pair of numbers for each axis.
        data_format: starts with 'NC' if the channels come first.
        dilations: distance between neighbouring elements of the window; an int or one for each axis.

    Returns:
        (batch, *places, outputs), or with the channels first.

    Raises:
        ShapeError: if ranks or channels do not fit, or no window fits into the input.

    >>> print(tf.nn.convolution([[[1.0], [2.0], [4.0]]], [[[1.0]], [[1.0]]]).numpy().ravel())
    [3. 6.]
    """
    x, kernel = tensors(input, filters)
    inexact("convolution", x, "f")
    rank = kernel.ndim - 2
    if rank < 1 or x.ndim < kernel.ndim:
        raise ShapeError(
            f"convolution: input {x.shape} and filters {kernel.shape} do not fit: they must be (batch, *sizes, channels) "
            "and (*window, channels, outputs), with as many sizes as the window has."
        )
    if x.ndim > kernel.ndim:  # several batch axes are one
        lead, inner = x.shape[: -rank - 1], x.shape[-rank - 1 :]
        y = convolution(reshape(x, (math.prod(lead), *inner)), kernel, strides, padding, data_format, dilations)
        return reshape(y, (*lead, *y.shape[1:]))
    first = channels_first(data_format)
    x = channels_last(x) if first else x
    inner, outputs = kernel.shape[-2:]
    groups = x.shape[-1] // max(inner, 1)
    if groups < 1 or inner * groups != x.shape[-1] or outputs % groups:
        raise ShapeError(
            f"convolution: the input has {x.shape[-1]} channels, filters {kernel.shape} take {inner} in each group and give "
            f"{outputs}; both numbers must be multiples of the number of groups."
        )
    options = geometry("convolution", tuple(x.shape[1:-1]), tuple(kernel.shape[:rank]), strides, padding, dilations, first)
    del options["window"]
    y = ops.convolve(x, kernel, groups=groups, **options)
    return channels_moved_first(y) if first else y


def depthwise_conv(
    input: TensorLike,
    filter: TensorLike,
    strides: int | Sequence[int] | None = None,
    padding: str | Sequence[Any] = "VALID",
    data_format: str | None = None,
    dilations: int | Sequence[int] | None = None,
    name: str | None = None,
) -> Tensor:
    """`convolution` with kernels of its own for each channel: filter (*window, channels, multiplier).

    Returns:
        (batch, *places, channels * multiplier), the results of each channel side by side.
    """
    x, kernel = tensors(input, filter)
    axis = 1 - kernel.ndim if channels_first(data_format) else -1
    if kernel.ndim < 3 or x.ndim < kernel.ndim or x.shape[axis] != kernel.shape[-2]:
        raise ShapeError(
            f"depthwise_conv: input {x.shape} and filter {kernel.shape} do not fit: the filter must be (*window, channels, "
            "multiplier) for the channels of the input."
        )
    *window, channels, multiplier = kernel.shape
    single = reshape(kernel, (*window, 1, channels * multiplier))
    return convolution(x, single, strides, padding, data_format, dilations)


def separable_conv(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: int | Sequence[int] | None = None,
    padding: str | Sequence[Any] = "VALID",
    data_format: str | None = None,
    dilations: int | Sequence[int] | None = None,
    name: str | None = None,
) -> Tensor:
    """`depthwise_conv`, then a mix of its channels at each place: pointwise_filter (*ones, channels * multiplier, outputs)."""
    y = depthwise_conv(input, depthwise_filter, strides, padding, data_format, dilations)
    return convolution(y, pointwise_filter, data_format=data_format)


def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of `convolution` in its input: each element adds its window, times the kernel, to the result.

    Args:
        input: (batch, *places, channels).
        filters: (*window, outputs, channels): what the convolution has that this is the transpose of.
        output_shape: (batch, *sizes, outputs).
        strides, padding, data_format, dilations: of that convolution.

    Raises:
        ShapeError: if that convolution does not give the shape of `input`.

    >>> print(tf.nn.conv_transpose([[[1.0], [2.0]]], [[[1.0]], [[3.0]]], [1, 4, 1], strides=2).numpy().ravel())
    [1. 3. 2. 6.]
    """
    g, kernel = tensors(input, filters)
    inexact("conv_transpose", g, "f")
    first, wanted = channels_first(data_format), static_shape(output_shape)
    if first:
        g, wanted = channels_last(g), (wanted[0], *wanted[2:], wanted[1])
    rank = g.ndim - 2
    if rank < 1 or kernel.ndim != g.ndim or len(wanted) != g.ndim:
        raise ShapeError(f"conv_transpose: input {g.shape}, filters {kernel.shape} and output_shape {wanted} need equal ranks.")
    window = tuple(kernel.shape[:rank])
    options = geometry("conv_transpose", wanted[1:-1], window, strides, padding, dilations, first)
    groups = wanted[-1] // max(kernel.shape[-2], 1)
    fitting = (wanted[0], *ops.places(wanted[1:-1], **options), kernel.shape[-1])
    if tuple(g.shape) != fitting or groups * kernel.shape[-2] != wanted[-1] or kernel.shape[-1] % max(groups, 1):
        raise ShapeError(
            f"conv_transpose: for output_shape {wanted} and filters {kernel.shape} the input must have shape {fitting}, "
            f"found {tuple(g.shape)}."
        )
    del options["window"]
    y = ops.spread(g, kernel, sizes=wanted[1:-1], groups=groups, **options)
    return channels_moved_first(y) if first else y


def conv_transpose_to_fit(
    input: TensorLike,
    filters: TensorLike,
    strides: Sizes,
    padding: str,
    output_padding: Sizes | None = None,
    data_format: str | None = None,
    dilations: int | Sequence[int] = 1,
) -> Tensor:
    """`conv_transpose` to the sizes that follow from those of the input, as Keras has it; see `transposed_axis`."""
    g, kernel = tensors(input, filters)
    rank, first = kernel.ndim - 2, channels_first(data_format)
    more = (None,) * rank if output_padding is None else output_padding
    spread = one_for_each("conv_transpose", "dilations", dilations, rank, first)
    axes = zip(g.shape[2:] if first else g.shape[1:-1], kernel.shape[:rank], strides, more, spread, strict=True)
    sizes, pairs = zip(*(transposed_axis(n, k, step, padding, extra, d) for n, k, step, extra, d in axes), strict=True)
    outputs = kernel.shape[-2]
    wanted = (g.shape[0], outputs, *sizes) if first else (g.shape[0], *sizes, outputs)
    outside = ((0, 0), (0, 0))
    padded = (*outside, *pairs) if first else (outside[0], *pairs, outside[1])
    return conv_transpose(g, kernel, wanted, strides, padded, data_format, spread)


def transposed_axis(
    places: int, window: int, stride: int, padding: str, output_padding: int | None, dilation: int
) -> tuple[int, Sizes]:
    """Size and padding, along one axis, of the convolution whose transpose Keras's `conv_transpose` is.

    By default the size is stride * places with padding 'same', and what all windows reach with 'valid', at least that.
    """
    reach = (window - 1) * dilation + 1
    whole = (places - 1) * stride + reach
    if padding.lower() == "valid":
        before, size = 0, whole + (max(stride - reach, 0) if output_padding is None else output_padding)
    else:
        total = reach - 2 + (stride if output_padding is None else reach % 2 + output_padding)
        before, size = max(0, reach - 1 - -(-total // 2)), whole - 2 * (reach - 1) + total
    return size, (before, max(0, whole - before - size))


# fmt: off
conv2d = named(convolution, "conv2d",
    "`convolution` over (batch, height, width, channels); strides may hold the four numbers [1, h, w, 1].",
    "tf.nn.conv2d(tf.ones([2, 5, 5, 3]), tf.ones([3, 3, 3, 4]), strides=1, padding='VALID').shape -> TensorShape([2, 3, 3, 4])")
conv3d = named(convolution, "conv3d", "`convolution` over (batch, depth, height, width, channels).",
    "tf.nn.conv3d(tf.ones([2, 5, 5, 5, 3]), tf.ones([3, 3, 3, 3, 4]), strides=1, padding='SAME').shape -> TensorShape([2, "
    "5, 5, 5, 4])")
depthwise_conv2d = named(depthwise_conv, "depthwise_conv2d",
    "`conv2d` with kernels of its own for each channel: filter (height, width, channels, multiplier).",
    "tf.nn.depthwise_conv2d(tf.ones([2, 5, 5, 3]), tf.ones([3, 3, 3, 2]), [1, 1, 1, 1], 'SAME').shape -> TensorShape([2, "
    "5, 5, 6])")
separable_conv2d = named(separable_conv, "separable_conv2d",
    "`depthwise_conv2d`, then a mix of its channels at each place: pointwise_filter (1, 1, channels * multiplier, outputs).",
    "tf.nn.separable_conv2d(tf.ones([2, 5, 5, 3]), tf.ones([3, 3, 3, 2]), tf.ones([1, 1, 6, 4]), 1, 'SAME').shape -> "
    "TensorShape([2, 5, 5, 4])")
conv1d_transpose = named(conv_transpose, "conv1d_transpose", "The transpose of `conv1d` in its input.",
    "tf.nn.conv1d_transpose(tf.ones([1, 2, 4]), tf.ones([2, 3, 4]), [1, 4, 3], strides=2).shape -> TensorShape([1, 4, 3])")
conv2d_transpose = named(conv_transpose, "conv2d_transpose", "The transpose of `conv2d` in its input.",
    "tf.nn.conv2d_transpose(tf.ones([1, 2, 2, 4]), tf.ones([3, 3, 1, 4]), [1, 4, 4, 1], strides=2).shape -> "
    "TensorShape([1, 4, 4, 1])")
conv3d_transpose = named(conv_transpose, "conv3d_transpose", "The transpose of `conv3d` in its input.",
    "tf.nn.conv3d_transpose(tf.ones([1, 2, 2, 2, 4]), tf.ones([3, 3, 3, 1, 4]), [1, 4, 4, 4, 1], strides=2).shape -> "
    "TensorShape([1, 4, 4, 4, 1])")
conv1d = row("conv1d",
    lambda input, filters, stride, padding, data_format="NWC", dilations=None, name=None:
        convolution(input, filters, stride, padding, data_format, dilations),
    "`convolution` over (batch, width, channels).",
    "tf.nn.conv1d(tf.ones([2, 5, 3]), tf.ones([2, 3, 4]), stride=2, padding='SAME').shape -> TensorShape([2, 3, 4])")
# fmt: on


# Geometry ------------------------------------------------------------------------------------------------------------------


def geometry(name: str, sizes: Sizes, window: Sizes, strides: Any, padding: Any, dilations: Any, first: bool) -> dict[str, Any]:
    """Window, strides, padding and dilation with a number for each sliding axis, checked; `first` if channels come first."""
    rank = len(sizes)
    steps = one_for_each(name, "strides", 1 if strides is None else strides, rank, first)
    spread = one_for_each(name, "dilations", 1 if dilations is None else dilations, rank, first)
    for what, numbers in (("window", window), ("strides", steps), ("dilations", spread)):
        if any(number < 1 for number in numbers):
            raise ShapeError(f"{name}: {what} must be positive, found {numbers}.")
    pairs = _pairs(name, sizes, window, steps, padding, spread, first)
    found = ops.places(sizes, window, steps, pairs, spread)
    if any(n < 1 and size for n, size in zip(found, sizes, strict=True)):
        raise ShapeError(
            f"{name}: a window of {window} (dilation {spread}) does not fit into sizes {sizes} with padding {pairs}. "
            "Use padding='SAME' or a smaller window."
        )
    return {"window": window, "strides": steps, "padding": pairs, "dilation": spread}


def _pairs(
    name: str, sizes: Sizes, window: Sizes, strides: Sizes, padding: str | Sequence[Any], dilation: Sizes, first: bool
) -> tuple[Sizes, ...]:
    """Numbers of elements added before and after each axis."""
    rank = len(sizes)
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return ((0, 0),) * rank
        if padding.upper() == "SAME":
            reach = [(width - 1) * spread + 1 for width, spread in zip(window, dilation, strict=True)]
            missing = [max((-(-n // s) - 1) * s + r - n, 0) for n, s, r in zip(sizes, strides, reach, strict=True)]
            return ops.SamePadding((total // 2, total - total // 2) for total in missing)
    elif isinstance(padding, Sequence) and all(len(static_shape(pair)) == 2 for pair in padding):
        pairs = tuple(static_shape(pair) for pair in padding)
        inside, outside = _of_sliding_axes(pairs, rank, first)
        if len(inside) == rank and not any(map(any, outside)):
            return inside
    raise ValueError(
        f"{name}: padding must be 'VALID', 'SAME' or a pair of numbers for each of {rank} axes, found {padding!r}."
    )


def one_for_each(name: str, what: str, numbers: Any, rank: int, first: bool) -> Sizes:
    """A number for each sliding axis, from one for all, or from a list that may include batch and channels, which must be 1."""
    found = static_shape(numbers)
    if len(found) == 1:
        return found * rank
    inside, outside = _of_sliding_axes(found, rank, first)
    if len(inside) == rank and all(number == 1 for number in outside):
        return inside
    place = "1 for batch and channels" + (", channels first" if first else "")
    raise ShapeError(f"{name}: {what} must be an int or one for each of {rank} axes ({place}), found {list(found)}.")


def _of_sliding_axes(numbers: tuple[Any, ...], rank: int, first: bool) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Entries for the sliding axes, and those for batch and channels, if there are any."""
    if len(numbers) != rank + 2:
        return numbers, ()
    return (numbers[2:], numbers[:2]) if first else (numbers[1:-1], (numbers[0], numbers[-1]))


_LAST, _FIRST = ("NWC", "NHWC", "NDHWC", "channels_last", None), ("NCW", "NCHW", "NCDHW", "channels_first")
_FORMATS = dict.fromkeys(_LAST, False) | dict.fromkeys(_FIRST, True)


def channels_first(data_format: str | None) -> bool:
    """True for 'NCW', 'NCHW', 'NCDHW' and 'channels_first'; ValueError for an unknown format."""
    if data_format not in _FORMATS:
        raise ValueError(f"data_format must be one of {', '.join(map(repr, _FORMATS))}, found {data_format!r:.80}.")
    return _FORMATS[data_format]


def channels_last(x: Tensor) -> Tensor:
    """The second axis moved to the end."""
    return transpose(x, [0, *range(2, x.ndim), 1])


def channels_moved_first(x: Tensor) -> Tensor:
    """The last axis moved behind the first."""
    return transpose(x, [0, x.ndim - 1, *range(1, x.ndim - 1)])


# Pools -----------------------------------------------------------------------------------------------------------------
#
# The largest or the mean element under sliding windows, or windows that divide an axis.


def max_pool(
    input: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: str | Sequence[Any],
    data_format: str | None = None,
    name: str | None = None,
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
    input: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: str | Sequence[Any],
    data_format: str | None = None,
    name: str | None = None,
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
