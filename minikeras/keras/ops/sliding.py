"""Convolutions and pools under Keras's names, blocks of images as columns or channels, and numbers in polar form."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import Tensor, convert_to_tensor
from ...core.ops.indexing import add_rows, gather_rows
from ...errors import ShapeError
from ...functions import beside, convolution, cos, expand_dims, reshape, shaping, sin, squeeze, transpose
from ...functions.elementwise import complex as to_complex
from ...types import Array, ShapeLike, TensorLike
from ..config import checked_format
from ..promotion import floating, promoted
from ..symbolic.operation import operation
from ..symbolic.trial import check_size, cost_of_operands
from .rows import anything, floats, row

# Elements under windows, as indices: what is read that way is added up that way by the transpose --------------------------


def for_each(value: Any, rank: int) -> tuple[int, ...]:
    """One number for each axis."""
    return (value,) * rank if isinstance(value, int) else tuple(value)


def places(sizes: Sequence[int], window: Any, strides: int | Sequence[int], dilation: Any) -> tuple[int, ...]:
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


def elements(sizes: Sequence[int], window: Any, strides: int | Sequence[int] = 1, dilation: Any = 1) -> Array:
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
    """The transpose of `read` along the last axes: elements with the same number are added up."""
    lead = tuple(x.shape[: x.ndim - numbers.ndim])
    check_size(math.prod(lead) * size, "sums of windows")
    return add_rows(reshape(x, (*lead, numbers.size)), beside(x, numbers.ravel()), axis=-1, size=size)


def as_batch(
    name: str, images: TensorLike, data_format: str | None, rank: int = 2
) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Images as (batch, *sizes, channels), and the function that brings such a tensor back into their form.

    Args:
        rank: number of sizes: 2 of images, 3 of volumes.

    Raises:
        ShapeError: if they have another number of axes.
    """
    x, first = convert_to_tensor(images), checked_format(data_format) == "channels_first"
    if x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(f"{name}: needs one image of {rank + 1} axes or a batch of them, found shape {x.shape}.")
    alone = x.ndim == rank + 1
    x = expand_dims(x, 0) if alone else x

    def back(y: Tensor) -> Tensor:
        y = transpose(y, [0, y.ndim - 1, *range(1, y.ndim - 1)]) if first else y
        return squeeze(y, 0) if alone else y

    return transpose(x, [0, *range(2, x.ndim), 1]) if first else x, back


# Functions -----------------------------------------------------------------------------------------------------------------


def _settled(config: dict[str, Any]) -> dict[str, Any]:
    """The options as Keras keeps them."""
    padding = {"padding": config["padding"].lower()} if "padding" in config else {}
    return config | padding | {"data_format": checked_format(config["data_format"])}


def _cost_of_convolution(shapes: list[tuple[int, ...]], given: Any) -> tuple[int, int]:
    """Elements of the result and multiplications: each place has one window; a transposed one makes the sizes larger."""
    if len(shapes) < 2:
        return math.prod(shapes[0]), math.prod(shapes[0])
    config, kernel, rank = given[-1], shapes[1], len(shapes[0]) - 2
    sizes = shapes[0][2:] if config["data_format"] == "channels_first" else shapes[0][1:-1]
    if "output_padding" in config:
        strides, spread = [for_each(config[key], rank) for key in ("strides", "dilation_rate")]
        sizes = tuple([(n + 1) * s + k * d for n, s, k, d in zip(sizes, strides, kernel, spread, strict=False)])
    places = shapes[0][0] * math.prod(sizes)
    return places * max(kernel[-2:]) * max(one[-1] for one in shapes[1:]), places * sum(map(math.prod, shapes[1:]))


def _cost_of_windows(shapes: list[tuple[int, ...]], given: Any) -> tuple[int, int]:
    """Elements of adaptive pools, which may be more than the input has."""
    counts = for_each(given[-1]["output_size"], len(shapes[0]) - 2)
    sizes = math.prod(n + max(m, 0) for n, m in zip(sorted(shapes[0][1:]), (*sorted(counts), 0), strict=True))
    result = shapes[0][0] * sizes
    return result, result * max(shapes[0][1:])


@operation(cost=_cost_of_convolution, settle=_settled)
def conv(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: int | Sequence[int] = 1,
) -> Tensor:
    """Convolution over any number of axes; of groups of channels where the kernel has fewer inputs.

    Args:
        inputs: (batch, *sizes, channels), or with the channels first.
        kernel: (*window, inputs, outputs).
        strides, dilation_rate: an int, or one for each axis.
        padding: 'valid' (none) or 'same' (as many places as size / stride, rounded up).
        data_format: 'channels_last' or 'channels_first'; `keras.config.image_data_format()` if None.

    >>> tf.keras.ops.conv(tf.ones([2, 28, 28, 3]), tf.ones([3, 3, 3, 8]), strides=2, padding="same").shape
    TensorShape([2, 14, 14, 8])
    """
    x, w = map(floating, promoted(inputs, kernel))
    return convolution.convolution(x, w, strides, padding.upper(), checked_format(data_format), dilation_rate)


@operation(cost=_cost_of_convolution, settle=_settled)
def conv_transpose(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: str = "valid",
    output_padding: Any = None,
    data_format: str | None = None,
    dilation_rate: int | Sequence[int] = 1,
) -> Tensor:
    """The transpose of a convolution in its input, as a layer that makes images larger: kernel (*window, outputs, inputs).

    Args:
        output_padding: more elements at the end; as many as give stride * size with padding 'same' if None.
        inputs, kernel, strides, padding, data_format, dilation_rate: as in `conv`.

    >>> tf.keras.ops.conv_transpose(tf.ones([2, 7, 7, 3]), tf.ones([3, 3, 8, 3]), strides=2, padding="same").shape
    TensorShape([2, 14, 14, 8])
    """
    x, w = map(floating, promoted(inputs, kernel))
    rank = w.ndim - 2
    more = None if output_padding is None else for_each(output_padding, rank)
    options = (for_each(strides, rank), padding, more, checked_format(data_format), dilation_rate)
    return convolution.conv_transpose_to_fit(x, w, *options)


@operation(settle=_settled)
def max_pool(
    inputs: TensorLike,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """The largest element under a sliding window, for each channel.

    Args:
        pool_size: an int, or one for each axis.
        strides: those of the window if None.
        inputs, padding, data_format: as in `conv`.

    >>> tf.keras.ops.max_pool(tf.ones([2, 28, 28, 3]), 2).shape
    TensorShape([2, 14, 14, 3])
    """
    steps = pool_size if strides is None else strides
    return convolution.max_pool(convert_to_tensor(inputs), pool_size, steps, padding.upper(), checked_format(data_format))


@operation(cost=cost_of_operands)
def unfold(x: TensorLike, kernel_size: int | Sequence[int], dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The blocks under a window as columns: (batch, channels, height, width) to (batch, channels * window, places).

    Args:
        kernel_size, dilation, stride: of the window, an int or one for height and width.
        padding: zeros added at each end, an int or one for height and width.

    >>> tf.keras.ops.unfold(tf.ones([2, 3, 5, 5]), 2, stride=2).shape
    TensorShape([2, 12, 4])
    """
    x = convert_to_tensor(x)
    if x.ndim != 4:
        raise ShapeError(f"unfold: needs images (batch, channels, height, width), found shape {x.shape}.")
    above, beside = for_each(padding, 2)
    check_size(math.prod(x.shape[:2]) * (x.shape[2] + 2 * above) * (x.shape[3] + 2 * beside), "padded images")
    if above or beside:
        x = shaping.pad(x, [[0, 0], [0, 0], [above, above], [beside, beside]])
    n, channels, *sizes = x.shape
    columns = elements(sizes, kernel_size, stride, dilation).transpose(2, 3, 0, 1)
    return shaping.reshape(
        read(shaping.reshape(x, (n, channels, math.prod(sizes))), columns, -1),
        (n, channels * math.prod(columns.shape[:2]), math.prod(columns.shape[2:])),
    )


@operation(cost=cost_of_operands)
def fold(
    x: TensorLike,
    output_size: ShapeLike,
    kernel_size: int | Sequence[int],
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """The transpose of `unfold`: columns are added up where their blocks lie in an image of a given size.

    >>> print(tf.keras.ops.fold(tf.ones([1, 4, 4]), 3, 2).numpy()[0, 0])
    [[1. 2. 1.]
     [2. 4. 2.]
     [1. 2. 1.]]
    """
    x = convert_to_tensor(x)
    sizes, pads = for_each(output_size, 2), for_each(padding, 2)
    padded = [size + 2 * more for size, more in zip(sizes, pads, strict=True)]
    columns = elements(padded, kernel_size, stride, dilation).transpose(2, 3, 0, 1)
    block, count = math.prod(columns.shape[:2]), math.prod(columns.shape[2:])
    if x.ndim != 3 or x.shape[1] % block or x.shape[2] != count:
        raise ShapeError(f"fold: needs columns (batch, channels * {block}, {count}), found shape {x.shape}.")
    n, channels = x.shape[0], x.shape[1] // block
    image = add_up(shaping.reshape(x, (n, channels, *columns.shape)), columns, math.prod(padded))
    image = shaping.reshape(image, (n, channels, *padded))
    return image[:, :, pads[0] : pads[0] + sizes[0], pads[1] : pads[1] + sizes[1]]


def _in_blocks(x: Tensor, b: int, data_format: str | None, split: bool) -> Tensor:
    """With the channels first they are (channels, block), as in PyTorch, not (block, channels)."""
    if checked_format(data_format) == "channels_last":
        return shaping.depth_to_space(x, b) if split else shaping.space_to_depth(x, b)
    if x.ndim != 4 or b < 2 or (x.shape[1] % (b * b) if split else x.shape[2] % b or x.shape[3] % b):
        raise ShapeError(
            f"block_size {b} of at least 2 must divide the sides of (batch, channels, height, width), or its square the "
            f"channels; found shape {x.shape}."
        )
    n, c, height, width = x.shape
    shape = (n, c // (b * b), b, b, height, width) if split else (n, c, height // b, b, width // b, b)
    blocks = shaping.transpose(shaping.reshape(x, shape), (0, 1, 4, 2, 5, 3) if split else (0, 1, 3, 5, 2, 4))
    n, c, *sizes = blocks.shape
    result = (n, c, sizes[0] * b, sizes[2] * b) if split else (n, c * b * b, *sizes[2:])
    return shaping.reshape(blocks, result)


# fmt: off
depthwise_conv = row("depthwise_conv",
    lambda inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1:
        convolution.depthwise_conv(inputs, kernel, strides, padding.upper(), checked_format(data_format), dilation_rate),
    "Convolution with kernels of its own for each channel: kernel (*window, channels, multiplier). Arguments as in `conv`.",
    "tf.keras.ops.depthwise_conv(tf.ones([2, 28, 28, 3]), tf.ones([3, 3, 3, 2])).shape -> TensorShape([2, 26, 26, 6])",
    takes=floats, cost=_cost_of_convolution, settle=_settled)
separable_conv = row("separable_conv",
    lambda inputs, depthwise_kernel, pointwise_kernel, strides=1, padding="valid", data_format=None, dilation_rate=1:
        convolution.separable_conv(
            inputs, depthwise_kernel, pointwise_kernel, strides, padding.upper(), checked_format(data_format), dilation_rate
        ),
    "`depthwise_conv`, then a mix of its channels at each place: pointwise_kernel (1, ..., channels, outputs).",
    "tf.keras.ops.separable_conv(tf.ones([2, 8, 3]), tf.ones([3, 3, 2]), tf.ones([1, 6, 4])).shape -> TensorShape([2, 6, 4])",
    takes=floats, cost=_cost_of_convolution, settle=_settled)
average_pool = row("average_pool",
    lambda inputs, pool_size, strides=None, padding="valid", data_format=None:
        convolution.avg_pool(
            inputs, pool_size, pool_size if strides is None else strides, padding.upper(), checked_format(data_format)
        ),
    "The mean of what lies under a sliding window, for each channel; padding does not count. Arguments as in `max_pool`.",
    "tf.keras.ops.average_pool(tf.ones([2, 28, 28, 3]), 2).shape -> TensorShape([2, 14, 14, 3])",
    takes=floats, settle=_settled)
adaptive_max_pool = row("adaptive_max_pool",
    lambda inputs, output_size, data_format=None:
        convolution.adaptive_max_pool(inputs, output_size, checked_format(data_format)),
    "The largest element of each of so many windows along each axis, as equal as they can be, for each channel.",
    "tf.keras.ops.adaptive_max_pool(tf.ones([2, 28, 28, 3]), 5).shape -> TensorShape([2, 5, 5, 3])",
    takes=anything, cost=_cost_of_windows, settle=_settled)
adaptive_average_pool = row("adaptive_average_pool",
    lambda inputs, output_size, data_format=None:
        convolution.adaptive_avg_pool(inputs, output_size, checked_format(data_format)),
    "The mean of each of so many windows along each axis, as equal as they can be, for each channel.",
    "tf.keras.ops.adaptive_average_pool(tf.ones([2, 28, 28, 3]), 5).shape -> TensorShape([2, 5, 5, 3])",
    takes=floats, cost=_cost_of_windows, settle=_settled)
depth_to_space = row("depth_to_space",
    lambda x, block_size, data_format="channels_last": _in_blocks(x, block_size, data_format, True),
    "Channels laid out as blocks of pixels: (batch, h, w, b b c) becomes (batch, h b, w b, c).",
    "tf.keras.ops.depth_to_space(tf.ones([1, 2, 3, 8]), 2).shape -> TensorShape([1, 4, 6, 2])",
    takes=anything, types={"block_size": "int", "data_format": "str"}, settle=_settled)
space_to_depth = row("space_to_depth",
    lambda x, block_size, data_format="channels_last": _in_blocks(x, block_size, data_format, False),
    "Blocks of pixels laid out as channels, the inverse of `depth_to_space`.",
    "tf.keras.ops.space_to_depth(tf.ones([1, 4, 6, 2]), 2).shape -> TensorShape([1, 2, 3, 8])",
    takes=anything, types={"block_size": "int", "data_format": "str"}, settle=_settled)
polar = row("polar", lambda abs_, angle: to_complex(abs_ * cos(angle), abs_ * sin(angle)),
    "Complex numbers from their size and angle: abs (cos angle + i sin angle).",
    "print(tf.keras.ops.polar(2.0, 0.0).numpy()) -> (2+0j)", takes=floats)
# fmt: on
