"""Blocks of images as columns or channels, and numbers in polar form."""

from __future__ import annotations

import math
from typing import Any

from ....core import Tensor, convert_to_tensor
from ....errors import ShapeError
from ....functions import shaping
from ....functions.elementwise import complex as to_complex
from ....functions.elementwise import cos, sin
from ....types import TensorLike
from ...promotion import floating, promoted
from ...symbolic.operation import operation
from ...symbolic.rules import check_size, cost_of_operands
from ..windows import add_up, elements, for_each, read
from .sliding import checked_format

__all__ = ["depth_to_space", "fold", "polar", "space_to_depth", "unfold"]


@operation(cost=cost_of_operands)
def unfold(x: TensorLike, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
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
def fold(x: TensorLike, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
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


def _settled(config: dict[str, Any]) -> dict[str, Any]:
    return config | {"data_format": checked_format(config["data_format"])}


@operation(settle=_settled)
def depth_to_space(x: TensorLike, block_size: int, data_format: str = "channels_last") -> Tensor:
    """Channels laid out as blocks of pixels: (batch, h, w, b b c) becomes (batch, h b, w b, c).

    >>> tf.keras.ops.depth_to_space(tf.ones([1, 2, 3, 8]), 2).shape
    TensorShape([1, 4, 6, 2])
    """
    x = convert_to_tensor(x)
    if checked_format(data_format) == "channels_last":
        return shaping.depth_to_space(x, block_size)
    return _swapped(x, block_size, (0, 1, 4, 2, 5, 3), split=True)


@operation(settle=_settled)
def space_to_depth(x: TensorLike, block_size: int, data_format: str = "channels_last") -> Tensor:
    """Blocks of pixels laid out as channels, the inverse of `depth_to_space`.

    >>> tf.keras.ops.space_to_depth(tf.ones([1, 4, 6, 2]), 2).shape
    TensorShape([1, 2, 3, 8])
    """
    x = convert_to_tensor(x)
    if checked_format(data_format) == "channels_last":
        return shaping.space_to_depth(x, block_size)
    return _swapped(x, block_size, (0, 1, 3, 5, 2, 4), split=False)


def _swapped(x: Tensor, b: int, order: tuple[int, ...], split: bool) -> Tensor:
    """With the channels first they are (channels, block), as in PyTorch, not (block, channels)."""
    if x.ndim != 4 or b < 2 or (x.shape[1] % (b * b) if split else x.shape[2] % b or x.shape[3] % b):
        raise ShapeError(
            f"block_size {b} of at least 2 must divide the sides of (batch, channels, height, width), or its square the "
            f"channels; found shape {x.shape}."
        )
    n, c, height, width = x.shape
    shape = (n, c // (b * b), b, b, height, width) if split else (n, c, height // b, b, width // b, b)
    blocks = shaping.transpose(shaping.reshape(x, shape), order)
    n, c, *sizes = blocks.shape
    result = (n, c, sizes[0] * b, sizes[2] * b) if split else (n, c * b * b, *sizes[2:])
    return shaping.reshape(blocks, result)


@operation
def polar(abs_: TensorLike, angle: TensorLike) -> Tensor:
    """Complex numbers from their size and angle: abs (cos angle + i sin angle).

    >>> print(tf.keras.ops.polar(2.0, 0.0).numpy())
    (2+0j)
    """
    size, turned = map(floating, promoted(abs_, angle))
    return to_complex(size * cos(turned), size * sin(turned))
