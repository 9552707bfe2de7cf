"""Images of other sizes: resampled, padded, cropped."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core import Tensor, convert_to_tensor
from ....core.batch import all_values
from ....errors import ShapeError
from ....functions.elementwise import round, saturate_cast
from ....functions.resizing import KERNELS, along_axis, resized
from ....functions.shaping import pad
from ....types import Array, TensorLike
from ...promotion import floating
from ...symbolic.operation import operation
from ...symbolic.rules import check_size, cost_of_operands
from .batches import as_batch

__all__ = ["crop_images", "pad_images", "resize", "scale_and_translate"]


@operation(cost=cost_of_operands)
def resize(
    images: TensorLike,
    size: Any,
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str | None = None,
) -> Tensor:
    """Images of another height and width, in their dtype.

    Args:
        images: ([batch,] height, width, channels), or with the channels first.
        size: new height and width.
        interpolation: 'bilinear', 'nearest' or another method of `tf.image.resize`.
        antialias: whether the kernel is as many times wider as the image becomes smaller.
        crop_to_aspect_ratio: whether the largest part in the middle with the new proportions is resized.
        pad_to_aspect_ratio: whether the image is filled up to the new proportions first.
        fill_mode, fill_value: 'constant', and with what.

    >>> tf.keras.ops.image.resize(tf.ones([2, 8, 8, 3]), (4, 6)).shape
    TensorShape([2, 4, 6, 3])
    """
    x, back = as_batch("resize", images, data_format)
    if len(size) != 2 or min(size) < 1 or fill_mode != "constant" or (crop_to_aspect_ratio and pad_to_aspect_ratio):
        raise ValueError(
            "resize: needs two positive sizes, fill_mode='constant' and at most one of crop_to_aspect_ratio and "
            f"pad_to_aspect_ratio, found size={size!r}, fill_mode={fill_mode!r}."
        )
    (height, width), (tall, wide) = x.shape[1:3], size
    check_size(x.shape[0] * x.shape[-1] * max(tall, height) * max(wide, width) + height * tall + width * wide, "images")
    if crop_to_aspect_ratio:
        h, w = max(min(height, int(width * tall / wide)), 1), max(min(width, int(height * wide / tall)), 1)
        top, left = (height - h) // 2, (width - w) // 2
        x = x[:, top : top + h, left : left + w]
    elif pad_to_aspect_ratio:
        top = (max(height, int(width * tall / wide)) - height) // 2
        left = 0 if top else (max(width, int(height * wide / tall)) - width) // 2
        x = pad(x, [[0, 0], [top, top], [left, left], [0, 0]], constant_values=fill_value)
    y = resized(x, {1: tall, 2: wide}, interpolation, antialias)
    if y.dtype != x.dtype:
        y = saturate_cast(round(y) if x.dtype.is_integer else y, x.dtype)
    return back(y)


@operation(name="ScaleAndTranslate", given="output_shape", cost=cost_of_operands)
def scale_and_translate(
    images: TensorLike,
    output_shape: Any,
    scale: TensorLike,
    translation: TensorLike,
    spatial_dims: Any,
    method: str,
    antialias: bool = True,
) -> Tensor:
    """Axes resampled to other sizes after x goes to scale x + translation; 0 where nothing comes from.

    Args:
        images: tensor of any shape.
        output_shape: of the result.
        scale, translation: one number for each of the axes; no gradient flows through them.
        spatial_dims: these axes.
        method: 'linear', 'cubic', 'lanczos3' or 'lanczos5'; 'bi...' and 'tri...' mean the same.
        antialias: whether the kernel is as many times wider as the image becomes smaller.

    >>> image = tf.reshape(tf.range(4.0), [4, 1])
    >>> print(tf.keras.ops.image.scale_and_translate(image, (4, 1), [1.0], [1.0], (0,), "linear").numpy().ravel())
    [0. 0. 1. 2.]
    """
    name = method.removeprefix("tri").removeprefix("bi")
    kernel = KERNELS.get({"linear": "bilinear", "cubic": "bicubic"}.get(name, name))
    x = floating(images)
    check_size(sum(map(math.prod, zip(output_shape, x.shape, strict=False))) + math.prod(output_shape), "images")
    if kernel is None or len(output_shape) != x.ndim:
        raise ValueError(f"scale_and_translate: method {method!r} and output_shape {output_shape} for shape {x.shape}.")
    scales, offsets = [np.ravel(all_values(convert_to_tensor(one))).astype("float64") for one in (scale, translation)]
    for axis, by, offset in zip(spatial_dims, scales, offsets, strict=True):
        n, m = x.shape[axis], output_shape[axis]
        places = (np.arange(m) + 0.5 - offset) / by - 0.5
        weights = kernel(np.abs(places[:, None] - np.arange(n)) / (max(1.0 / by, 1.0) if antialias else 1.0))
        x = along_axis(_scaled(weights, (places >= -0.5) & (places <= n - 0.5)), x, axis % x.ndim)
    return x


def _scaled(weights: Array, inside: Array) -> Array:
    """Rows of sum 1, of zeros for what lies outside."""
    total = weights.sum(1, keepdims=True)
    usable = inside[:, None] & (np.abs(total) > 1000 * np.finfo("float32").eps)
    return np.where(usable, weights / np.where(total == 0, 1.0, total), 0.0)


def _third(name: str, first: int | None, second: int | None, whole: int | None, size: int, sign: int) -> tuple[int, int]:
    """What is added (sign 1) or cut off (-1) at both ends, when two of three numbers are known."""
    if [first, second, whole].count(None) != 1 or any(one is not None and one < 0 for one in (first, second, whole)):
        raise ValueError(f"{name}: give two of the three numbers of an axis, 0 or more, found {first}, {second}, {whole}.")
    change = 0 if whole is None else sign * (whole - size)
    first = change - (second or 0) if first is None else first
    second = change - first if second is None else second
    if first < 0 or second < 0 or (sign < 0 and first + second > size):
        raise ShapeError(f"{name}: {first} and {second} at the ends of an axis of {size} elements.")
    return first, second


@operation(cost=cost_of_operands)
def pad_images(
    images: TensorLike,
    top_padding: int | None = None,
    left_padding: int | None = None,
    bottom_padding: int | None = None,
    right_padding: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Zeros around images. Of top, bottom and the target height two are given; so of left, right and the width.

    >>> tf.keras.ops.image.pad_images(tf.ones([2, 4, 4, 3]), 1, 2, target_height=6, target_width=8).shape
    TensorShape([2, 6, 8, 3])
    """
    x, back = as_batch("pad_images", images, data_format)
    rows = _third("pad_images", top_padding, bottom_padding, target_height, x.shape[1], 1)
    columns = _third("pad_images", left_padding, right_padding, target_width, x.shape[2], 1)
    check_size(x.shape[0] * x.shape[-1] * (x.shape[1] + sum(rows)) * (x.shape[2] + sum(columns)), "images")
    return back(pad(x, [[0, 0], rows, columns, [0, 0]]))


@operation
def crop_images(
    images: TensorLike,
    top_cropping: int | None = None,
    left_cropping: int | None = None,
    bottom_cropping: int | None = None,
    right_cropping: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: str | None = None,
) -> Tensor:
    """The inner part of images. Of top, bottom and the target height two are given; so of left, right and the width.

    >>> tf.keras.ops.image.crop_images(tf.ones([2, 6, 8, 3]), 1, 2, target_height=4, target_width=4).shape
    TensorShape([2, 4, 4, 3])
    """
    x, back = as_batch("crop_images", images, data_format)
    height, width = x.shape[1:3]
    above, below = _third("crop_images", top_cropping, bottom_cropping, target_height, height, -1)
    left, right = _third("crop_images", left_cropping, right_cropping, target_width, width, -1)
    return back(x[:, above : height - below, left : width - right])
