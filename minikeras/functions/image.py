"""Images (height, width, channels), or batches of them: turned, cut out, padded, with other values, and boxes in them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import Tensor
from ..core.ops import arithmetic, indexing, transcendental
from ..errors import DTypeError, InvalidArgumentError, ShapeError
from ..nn_ops import nn
from ..nn_ops.convolution import offsets, places
from ..types import DTypeLike, ShapeLike, TensorLike, as_dtype
from .assertions import assert_non_negative
from .catalogue import row
from .contractions import tensordot
from .convolution import geometry
from .creation import zeros_like
from .elementwise import (
    abs,
    cast,
    ceil,
    clip_by_value,
    floor,
    floormod,
    maximum,
    minimum,
    saturate_cast,
    squared_difference,
    stop_gradient,
    where,
)
from .indexing import gather, gather_nd
from .operands import beside, inexact, integer, static_shape, tensor, tensors
from .random import stateless_uniform, uniform
from .reductions import reduce_mean, reduce_sum
from .resizing import resize
from .shaping import concat, pad, reverse, stack, tile, transpose, turned_by_quarters, unstack

# fmt: off
flip_left_right = row("flip_left_right", lambda image: reverse(_images("flip_left_right", image), [-2]),
    "The columns in reverse order.", "print(tf.image.flip_left_right([[[1], [2]]]).numpy().ravel()) -> [2 1]")
flip_up_down = row("flip_up_down", lambda image: reverse(_images("flip_up_down", image), [-3]), "The rows in reverse order.",
    "print(tf.image.flip_up_down([[[1]], [[2]]]).numpy().ravel()) -> [2 1]")
random_crop = row("random_crop", lambda value, size, seed=None, name=None: _part("random_crop", value, size, seed, uniform),
    "A part of a tensor, of a size along each axis, that begins anywhere.",
    "tf.image.random_crop(tf.ones([5, 5, 3]), [2, 4, 3]).shape -> TensorShape([2, 4, 3])")
stateless_random_crop = row("stateless_random_crop",
    lambda value, size, seed, name=None: _part("stateless_random_crop", value, size, seed, stateless_uniform),
    "As `random_crop`, by a `seed` of two integers alone.",
    "print(tf.image.stateless_random_crop(tf.ones([5, 5, 3]), [1, 1, 3], [1, 2]).numpy()) -> [[[1. 1. 1.]]]")
adjust_brightness = row("adjust_brightness",
    lambda image, delta: _in_floats("adjust_brightness", image, lambda x: x + cast(beside(x, delta), x.dtype)),
    "x + delta, of integers as floats in [0, 1].",
    "print(tf.image.adjust_brightness([[[0.25, 0.5]]], 0.25).numpy().ravel()) -> [0.5  0.75]")
random_brightness = row("random_brightness",
    lambda image, max_delta, seed=None: adjust_brightness(image, _deviation("random_brightness", math.inf, max_delta, seed)),
    "`adjust_brightness` by one number in [-max_delta, max_delta).",
    "tf.image.random_brightness(tf.ones([2, 2, 1]), 0.2).shape -> TensorShape([2, 2, 1])")
random_hue = row("random_hue",
    lambda image, max_delta, seed=None: adjust_hue(image, _deviation("random_hue", 0.5, max_delta, seed)),
    "`adjust_hue` by one number in [-max_delta, max_delta), at most 0.5.",
    "tf.image.random_hue(tf.ones([2, 2, 3]), 0.2).shape -> TensorShape([2, 2, 3])")
random_contrast = row("random_contrast",
    lambda image, lower, upper, seed=None: adjust_contrast(image, _factor("random_contrast", lower, upper, seed)),
    "`adjust_contrast` by one factor in [lower, upper).",
    "tf.image.random_contrast(tf.ones([2, 2, 1]), 0.2, 0.5).shape -> TensorShape([2, 2, 1])")
random_saturation = row("random_saturation",
    lambda image, lower, upper, seed=None: adjust_saturation(image, _factor("random_saturation", lower, upper, seed)),
    "`adjust_saturation` by one factor in [lower, upper).",
    "tf.image.random_saturation(tf.ones([2, 2, 3]), 0.2, 0.5).shape -> TensorShape([2, 2, 3])")
stateless_random_brightness = row("stateless_random_brightness",
    lambda image, max_delta, seed:
        adjust_brightness(image, _deviation("stateless_random_brightness", math.inf, max_delta, seed, stateless_uniform)),
    "As `random_brightness`, by a `seed` of two integers alone.",
    "tf.image.stateless_random_brightness(tf.ones([2, 2, 1]), 0.2, [1, 2]).shape -> TensorShape([2, 2, 1])")
stateless_random_hue = row("stateless_random_hue",
    lambda image, max_delta, seed:
        adjust_hue(image, _deviation("stateless_random_hue", 0.5, max_delta, seed, stateless_uniform)),
    "As `random_hue`, by a `seed` of two integers alone.",
    "tf.image.stateless_random_hue(tf.ones([2, 2, 3]), 0.2, [1, 2]).shape -> TensorShape([2, 2, 3])")
stateless_random_contrast = row("stateless_random_contrast",
    lambda image, lower, upper, seed:
        adjust_contrast(image, _factor("stateless_random_contrast", lower, upper, seed, stateless_uniform)),
    "As `random_contrast`, by a `seed` of two integers alone.",
    "tf.image.stateless_random_contrast(tf.ones([2, 2, 1]), 0.2, 0.5, [1, 2]).shape -> TensorShape([2, 2, 1])")
stateless_random_saturation = row("stateless_random_saturation",
    lambda image, lower, upper, seed:
        adjust_saturation(image, _factor("stateless_random_saturation", lower, upper, seed, stateless_uniform)),
    "As `random_saturation`, by a `seed` of two integers alone.",
    "tf.image.stateless_random_saturation(tf.ones([2, 2, 3]), 0.2, 0.5, [1, 2]).shape -> TensorShape([2, 2, 3])")
rot90 = row("rot90", lambda image, k=1, name=None: turned_by_quarters(_images("rot90", image), k, (-3, -2)),
    "Turned `k` times by 90 degrees to the left.", "print(tf.image.rot90([[[1], [2]]]).numpy().tolist()) -> [[[2]], [[1]]]")
grayscale_to_rgb = row("grayscale_to_rgb",
    lambda images, name=None: tile(x := _images("grayscale_to_rgb", images, 1), [1] * (x.ndim - 1) + [3]),
    "The one channel three times.", "tf.image.grayscale_to_rgb(tf.ones([2, 2, 1])).shape -> TensorShape([2, 2, 3])")
# fmt: on


def _images(name: str, value: TensorLike, channels: int | None = None) -> Tensor:
    x = tensor(value)
    if x.ndim not in (3, 4) or channels not in (None, x.shape[-1]):
        wanted = "channels" if channels is None else channels
        raise ShapeError(f"{name}: needs (height, width, {wanted}), or a batch of them, found shape {x.shape}.")
    return x


def _transposed(image: TensorLike, name: str | None = None) -> Tensor:
    """Rows and columns exchanged.

    >>> tf.image.transpose(tf.ones([2, 3, 1])).shape
    TensorShape([3, 2, 1])
    """
    x = _images("transpose", image)
    return transpose(x, [*range(x.ndim - 3), x.ndim - 2, x.ndim - 3, x.ndim - 1])


def _sometimes(
    flip: Callable[[TensorLike], Tensor], name: str, axis: str, draw: Any, arguments: str = ""
) -> Callable[..., Tensor]:
    def function(image: TensorLike, seed: Any = None) -> Tensor:
        x = _images(function.__name__, image)
        chosen = draw((*x.shape[:-3], 1, 1, 1), seed=seed) < 0.5
        return where(beside(x, chosen), flip(x), x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Each image with its {axis} in reverse order, in one case of two{arguments and ", by the seed alone"}.

    >>> tf.image.{name}(tf.ones([8, 2, 3, 1]){arguments}).shape
    TensorShape([8, 2, 3, 1])
    """
    return function


random_flip_left_right = _sometimes(flip_left_right, "random_flip_left_right", "columns", uniform)
random_flip_up_down = _sometimes(flip_up_down, "random_flip_up_down", "rows", uniform)
stateless_random_flip_left_right = _sometimes(
    flip_left_right, "stateless_random_flip_left_right", "columns", stateless_uniform, ", [1, 2]"
)
stateless_random_flip_up_down = _sometimes(flip_up_down, "stateless_random_flip_up_down", "rows", stateless_uniform, ", [1, 2]")


# Parts ----------------------------------------------------------------------------------------------------------------


def crop_to_bounding_box(
    image: TensorLike, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Tensor:
    """The part of the image that begins at a row and a column and has the given size.

    >>> tf.image.crop_to_bounding_box(tf.ones([5, 5, 1]), 1, 2, 3, 2).shape
    TensorShape([3, 2, 1])
    """
    x = _images("crop_to_bounding_box", image)
    top, left, height, width = map(integer, (offset_height, offset_width, target_height, target_width))
    if min(top, left) < 0 or min(height, width) < 1 or top + height > x.shape[-3] or left + width > x.shape[-2]:
        raise ShapeError(
            f"crop_to_bounding_box: {height} x {width} from ({top}, {left}) on lies outside of an image of shape {x.shape}."
        )
    key = (Ellipsis, slice(top, top + height), slice(left, left + width), slice(None))
    return indexing.strided_slice(x, key=key, shape=tuple(x.shape))


def central_crop(image: TensorLike, central_fraction: float) -> Tensor:
    """The middle of the image, a share in (0, 1] of its height and width.

    >>> tf.image.central_crop(tf.ones([8, 6, 1]), 0.5).shape
    TensorShape([4, 4, 1])
    """
    x, share = _images("central_crop", image), float(central_fraction)
    if not 0.0 < share <= 1.0:
        raise ValueError(f"central_crop: central_fraction must lie in (0, 1], found {share}.")
    top, left = (int((size - size * share) / 2) for size in x.shape[-3:-1])
    return crop_to_bounding_box(x, top, left, x.shape[-3] - 2 * top, x.shape[-2] - 2 * left)


def pad_to_bounding_box(
    image: TensorLike, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Tensor:
    """The image, placed at a row and a column within zeros of the given size.

    >>> tf.image.pad_to_bounding_box(tf.ones([2, 2, 1]), 1, 0, 4, 3).shape
    TensorShape([4, 3, 1])
    """
    x = _images("pad_to_bounding_box", image)
    top, left = integer(offset_height), integer(offset_width)
    below, right = integer(target_height) - top - x.shape[-3], integer(target_width) - left - x.shape[-2]
    if min(top, left, below, right) < 0:
        raise ShapeError(
            f"pad_to_bounding_box: an image of shape {x.shape} from ({top}, {left}) on does not fit into {target_height} x "
            f"{target_width}."
        )
    return pad(x, [[0, 0]] * (x.ndim - 3) + [[top, below], [left, right], [0, 0]])


def resize_with_crop_or_pad(image: TensorLike, target_height: int, target_width: int) -> Tensor:
    """The middle of the image, and zeros around it, so that it has this size.

    >>> tf.image.resize_with_crop_or_pad(tf.ones([2, 5, 3]), 4, 2).shape
    TensorShape([4, 2, 3])
    """
    x = _images("resize_with_crop_or_pad", image)
    sizes, target = tuple(x.shape[-3:-1]), (integer(target_height), integer(target_width))
    more = [wanted - size for size, wanted in zip(sizes, target, strict=True)]
    x = crop_to_bounding_box(x, *[max(-one // 2, 0) for one in more], *map(min, sizes, target))
    above, left = (max(one // 2, 0) for one in more)
    return pad_to_bounding_box(x, above, left, *target)


def resize_with_pad(
    image: TensorLike, target_height: int, target_width: int, method: str = "bilinear", antialias: bool = False
) -> Tensor:
    """The whole image resized as in `resize`, with its proportions, and zeros around it.

    >>> print(tf.image.resize_with_pad(tf.ones([2, 4, 1]), 2, 2).numpy()[..., 0])
    [[1. 1.]
     [0. 0.]]
    """
    x, target = _images("resize_with_pad", image), np.array([target_height, target_width], "float32")
    found = np.array(x.shape[-3:-1], "float32")
    found = found / max(found / target)
    above, left = (int(one) for one in (target - found) / 2)
    x = resize(x, [max(int(size), 1) for size in found], method, antialias=antialias)
    return pad_to_bounding_box(x, above, left, target_height, target_width)


def _part(name: str, value: TensorLike, size: ShapeLike, seed: Any, draw: Any) -> Tensor:
    x, sizes = tensor(value), static_shape(size)
    if len(sizes) != x.ndim or any(not 0 <= part <= whole for part, whole in zip(sizes, x.shape, strict=True)):
        raise ShapeError(f"{name}: a part of size {list(sizes)} does not lie within shape {x.shape}.")
    places = draw([x.ndim], dtype="float64", seed=seed)
    for axis, (part, whole) in enumerate(zip(sizes, x.shape, strict=True)):
        if part < whole:
            first = cast(places[axis] * (whole - part + 1.0), "int32")
            x = gather(x, beside(x, np.arange(part, dtype="int32")) + first, axis=axis)
    return x


# Values ---------------------------------------------------------------------------------------------------------------


def convert_image_dtype(image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None) -> Tensor:
    """The image in another dtype: 1.0 as a float is the largest integer.

    Args:
        image: of floats in [0, 1], or of integers.
        dtype: of the result.
        saturate: whether to limit the values to the range of `dtype`.

    >>> print(tf.image.convert_image_dtype(tf.constant([[[0, 255]]], tf.uint8), tf.float32).numpy().ravel())
    [0. 1.]
    >>> print(tf.image.convert_image_dtype([[[0.0, 1.0]]], tf.uint8).numpy().ravel())
    [  0 255]
    """
    x, wanted = inexact("convert_image_dtype", tensor(image), "iuf"), as_dtype(dtype)
    if not (wanted.is_floating or wanted.is_integer):
        raise DTypeError(f"convert_image_dtype: dtype must be a float or an integer, found {wanted.name}.")
    if x.dtype == wanted or (x.dtype.is_floating and wanted.is_floating):
        return cast(x, wanted)
    convert = saturate_cast if saturate else cast
    if wanted.is_floating:
        return cast(x, wanted) * (1.0 / x.dtype.max)
    if x.dtype.is_floating:
        return convert(x * (wanted.max + 0.5), wanted)
    if x.dtype.max > wanted.max:
        return convert(x // ((x.dtype.max + 1) // (wanted.max + 1)), wanted)
    return convert(x, wanted) * ((wanted.max + 1) // (x.dtype.max + 1))


def _in_floats(name: str, image: TensorLike, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Change an image as floats in [0, 1], and give it back in its dtype."""
    return _changed(_images(name, image), change)


def _changed(x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    if x.dtype.is_floating:
        return change(x)
    return convert_image_dtype(change(convert_image_dtype(x, "float32")), x.dtype, saturate=True)


def adjust_contrast(images: TensorLike, contrast_factor: TensorLike, name: str | None = None) -> Tensor:
    """(x - mean) * factor + mean, the mean over height and width, of integers as floats in [0, 1].

    As in TensorFlow, no gradient is registered.

    >>> print(tf.image.adjust_contrast([[[0.0], [2.0]]], 2.0).numpy().ravel())
    [-1.  3.]
    """
    x = inexact("adjust_contrast", tensor(images), "iuf")
    if x.ndim < 3:
        raise InvalidArgumentError(f"adjust_contrast: images need (height, width, channels), found shape {x.shape}.")
    return _changed(x, lambda y: nn.adjust_contrast(y, cast(tensors(y, contrast_factor)[1], y.dtype)))


def adjust_gamma(image: TensorLike, gamma: float = 1.0, gain: float = 1.0) -> Tensor:
    """gain x**gamma, of integers as floats in [0, 1].

    >>> print(tf.image.adjust_gamma([[[0.25, 0.5]]], 2.0).numpy().ravel())
    [0.0625 0.25  ]
    """
    if hasattr(gamma, "dtype"):
        assert_non_negative(gamma, "adjust_gamma: gamma must not be negative.")
    elif gamma < 0:
        raise ValueError(f"adjust_gamma: gamma must not be negative, found {gamma}.")
    return _in_floats("adjust_gamma", image, lambda x: x**gamma * gain)


def hue_saturation_value(*colors: Tensor) -> list[Tensor]:
    """Red, green and blue as hue, saturation and value."""
    least = float(colors[0].dtype.info.eps)
    red, green, blue = [where(abs(one) < least, zeros_like(one), one) for one in colors]
    value = maximum(maximum(red, green), blue)
    span = value - minimum(minimum(red, green), blue)
    colored = span > 0
    scale = 1.0 / (6.0 * where(colored, span, 1.0))
    hue = where(value == green, scale * (blue - red) + 2.0 / 6.0, scale * (red - green) + 4.0 / 6.0)
    hue = where(value == red, scale * (green - blue), hue)
    hue = where(colored, hue, 0.0) + cast(hue < 0.0, hue.dtype)
    return [hue, where(value > 0, span / where(value > 0, value, 1.0), 0.0), value]


def red_green_blue(hue: Tensor, saturation: Tensor, value: Tensor) -> list[Tensor]:
    """The inverse of `hue_saturation_value`."""
    sixths = floormod(hue, 1.0) * 6.0
    ramps = [abs(sixths - 3.0) - 1.0, 2.0 - abs(sixths - 2.0), 2.0 - abs(sixths - 4.0)]
    return [value * (1.0 - saturation + saturation * clip_by_value(ramp, 0.0, 1.0)) for ramp in ramps]


def _in_colors(name: str, images: TensorLike, change: Callable[[Tensor, Tensor, Tensor], list[Tensor]]) -> Tensor:
    """Change hue, saturation and value of an image."""

    def changed(x: Tensor) -> Tensor:
        return stack(red_green_blue(*change(*hue_saturation_value(*unstack(x, axis=-1)))), -1)

    return _in_floats(name, _images(name, images, 3), changed)


def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> Tensor:
    """The colors turned on their circle by a part of it, of integers as floats in [0, 1].

    >>> print(tf.image.adjust_hue([[[1.0, 0.0, 0.0]]], 1 / 3).numpy().round(4))
    [[[0. 1. 0.]]]
    """
    if not hasattr(delta, "dtype") and not -1.0 <= delta <= 1.0:
        raise ValueError(f"adjust_hue: delta must lie in [-1, 1], found {delta}.")
    return _in_colors("adjust_hue", image, lambda hue, *rest: [hue + cast(beside(hue, delta), hue.dtype), *rest])


def adjust_saturation(image: TensorLike, saturation_factor: TensorLike, name: str | None = None) -> Tensor:
    """The saturation of each pixel times a factor, at most 1; of integers as floats in [0, 1].

    >>> print(tf.image.adjust_saturation([[[1.0, 0.5, 0.5]]], 2.0).numpy())
    [[[1. 0. 0.]]]
    """

    def change(hue: Tensor, saturation: Tensor, value: Tensor) -> list[Tensor]:
        return [hue, clip_by_value(saturation * cast(beside(hue, saturation_factor), hue.dtype), 0.0, 1.0), value]

    return _in_colors("adjust_saturation", image, change)


def _deviation(name: str, largest: float, max_delta: float, seed: Any, draw: Any = uniform) -> Tensor:
    if not 0 <= max_delta <= largest:
        raise ValueError(f"{name}: max_delta must not be negative, nor above {largest}, found {max_delta}.")
    return draw([], minval=-max_delta, maxval=max_delta, seed=seed)


def _factor(name: str, lower: float, upper: float, seed: Any, draw: Any = uniform) -> Tensor:
    if not 0.0 <= lower < upper:
        raise ValueError(f"{name}: needs 0 <= lower < upper, found {lower} and {upper}.")
    return draw([], minval=lower, maxval=upper, seed=seed)


def per_image_standardization(image: TensorLike) -> Tensor:
    """(x - mean) / max(deviation, 1 / sqrt(n)) over the n elements of each image; integers become float32.

    >>> print(tf.image.per_image_standardization([[[1.0], [3.0]]]).numpy().ravel())
    [-1.  1.]
    """
    x = _images("per_image_standardization", image)
    x, axes = x if x.dtype.is_floating else cast(x, "float32"), [-3, -2, -1]
    least = 1.0 / math.sqrt(max(math.prod(x.shape[-3:]), 1))
    distance = x - reduce_mean(x, axes, True)
    return distance / arithmetic.maximum(transcendental.sqrt(reduce_mean(distance * distance, axes, True)), least)


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """0.2989 red + 0.587 green + 0.114 blue, as one channel, in the dtype of the images.

    >>> print(tf.image.rgb_to_grayscale([[[1.0, 1.0, 0.0]]]).numpy().round(4).ravel())
    [0.8859]
    """

    def gray(x: Tensor) -> Tensor:
        return tensordot(x, cast(beside(x, [[0.2989], [0.5870], [0.1140]], "float32"), x.dtype), 1)

    return _in_floats("rgb_to_grayscale", _images("rgb_to_grayscale", images, 3), gray)


def total_variation(images: TensorLike, name: str | None = None) -> Tensor:
    """The sum of absolute differences between neighbouring pixels, for each image.

    >>> print(tf.image.total_variation([[[1.0], [3.0]], [[2.0], [3.0]]]).numpy())
    4.0
    """
    x = inexact("total_variation", _images("total_variation", images), "if")  # unsigned differences would wrap around
    steps = x[..., 1:, :, :] - x[..., :-1, :, :], x[..., 1:, :] - x[..., :-1, :]
    across, along = (reduce_sum(abs(step), [-3, -2, -1]) for step in steps)
    return across + along


def psnr(a: TensorLike, b: TensorLike, max_val: float, name: str | None = None) -> Tensor:
    """The peak signal to noise ratio of two images in decibels: 10 log10(max_val**2 / mean((a - b)**2)).

    >>> print(tf.image.psnr([[[0.0], [1.0]]], [[[0.1], [0.9]]], 1.0).numpy().round(3))
    20.0
    """
    first, second = (convert_image_dtype(_images("psnr", one), "float32") for one in (a, b))
    largest = float(convert_image_dtype(cast(tensor(max_val), tensor(a).dtype), "float32"))
    errors = reduce_mean(squared_difference(first, second), [-3, -2, -1])
    return (2.0 * math.log(largest) - transcendental.log(errors)) * (10.0 / math.log(10.0))


# Windows and boxes -----------------------------------------------------------------------------------------------------


def extract_patches(
    images: TensorLike, sizes: Any, strides: int | Sequence[int], rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """Elements under a window that slides over images, as channels: (batch, rows, columns, height * width * channels).

    Args:
        images: (batch, height, width, channels).
        sizes, strides, rates: (1, height, width, 1): of the window, its steps, the distance of its elements.
        padding: 'VALID', or 'SAME' with zeros around.

    >>> print(tf.image.extract_patches([[[[1], [2], [3]]]], [1, 1, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID").numpy()[0, 0])
    [[1 2]
     [2 3]]
    """
    x, given = tensor(images), [static_shape(one) for one in (sizes, strides, rates)]
    if x.ndim != 4 or any(len(one) != 4 or (one[0], one[3]) != (1, 1) for one in given):
        raise ShapeError(f"extract_patches: needs 4 axes and windows (1, height, width, 1), found {x.shape} and {given}.")
    window, steps, spread = (one[1:3] for one in given)
    how = geometry("extract_patches", tuple(x.shape[1:3]), window, steps, padding, spread, False)
    x = pad(x, [[0, 0], *how["padding"], [0, 0]])
    count = places(tuple(x.shape[1:3]), window, steps, ((0, 0), (0, 0)), spread)
    return concat([x[key] for key in offsets(window, count, steps, spread)], -1)


def crop_and_resize(
    image: TensorLike,
    boxes: TensorLike,
    box_indices: TensorLike,
    crop_size: Any,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Parts of images (batch, height, width, channels) resized to one size, with gradients to images and boxes.

    Args:
        image: images; integers become float32.
        boxes: (n, 4): the first row and column and the last ones, where 0 and 1 are the ends of an image.
        box_indices: (n,): the image of each box.
        crop_size: height and width of the parts.
        method: 'bilinear' or 'nearest'.
        extrapolation_value: of pixels beyond the ends.

    >>> print(tf.image.crop_and_resize([[[[0.0], [1.0], [2.0]]]], [[0.0, 0.25, 0.0, 1.0]], [0], [1, 2]).numpy().ravel())
    [0.5 2. ]
    """
    x = tensor(image)
    x = x if x.dtype.is_floating else cast(x, "float32")
    corners, owners, size = beside(x, boxes, x.dtype), cast(beside(x, box_indices), "int32"), static_shape(crop_size)
    shapes = x.ndim, corners.ndim, tuple(corners.shape[-1:]), owners.ndim, len(size)
    if shapes != (4, 2, (4,), 1, 2) or min(size) < 1 or method not in ("bilinear", "nearest"):
        raise ShapeError(
            "crop_and_resize: needs images of 4 axes, boxes (n, 4), (n,) of their images, two sizes above 0, and 'bilinear' or "
            f"'nearest'; found {x.shape}, {corners.shape}, {owners.shape}, {size} and {method!r}."
        )
    (y, y_in), (z, z_in) = [
        _along(corners[:, axis], corners[:, axis + 2], x.shape[axis + 1], size[axis], method) for axis in (0, 1)
    ]
    total: Any = 0.0
    for (line, share), (column, weight) in itertools.product(y, z):
        indices = [owners[:, None, None], line[:, :, None], column[:, None]]
        found = gather_nd(x, stack([one + zeros_like(sum(indices)) for one in indices], -1))
        total = total + found * (share[:, :, None] * weight[:, None])[..., None]
    return where((y_in[:, :, None] & z_in[:, None])[..., None], total, cast(extrapolation_value, x.dtype))


def _along(first: Tensor, last: Tensor, size: int, count: int, method: str) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    """Pixels (n, count) along an axis between two places: neighbours of each with their shares, and whether it is inside."""
    steps = beside(first, np.linspace(0.0, 1.0, count) if count > 1 else [0.5], first.dtype)
    place = (first[:, None] + (last - first)[:, None] * steps) * (size - 1.0)
    below = stop_gradient(floor(place + 0.5 if method == "nearest" else place))
    share = place - below if method == "bilinear" else zeros_like(place)
    neighbours = [(below, 1.0 - share), (ceil(place), share)]
    inside = (place >= 0.0) & (place <= size - 1.0)
    return [(cast(clip_by_value(one, 0.0, size - 1.0), "int32"), part) for one, part in neighbours], inside


def non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """The int32 numbers of boxes with the highest scores, without those that cover much of a better one.

    Args:
        boxes: (n, 4), two opposite corners each; scores: (n,).
        max_output_size: the most boxes to select.
        iou_threshold: the largest share of what two boxes cover that both of them may cover.
        score_threshold: scores must lie above it.

    >>> boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.9, 1.0], [2.0, 2.0, 3.0, 3.0]]
    >>> print(tf.image.non_max_suppression(boxes, [0.5, 0.9, 0.8], 3).numpy())
    [1 2]
    """
    corners, marks = tensor(boxes).numpy(), tensor(scores).numpy()
    if corners.shape != (len(marks), 4) or not 0.0 <= iou_threshold <= 1.0:
        raise ShapeError(
            "non_max_suppression: needs boxes (n, 4), scores (n,) and an iou_threshold in [0, 1], found "
            f"{corners.shape}, {marks.shape} and {iou_threshold}."
        )
    low, high = np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])
    areas = np.prod(high - low, 1)
    chosen: list[Any] = []
    order = np.argsort(-marks, kind="stable")
    order = order[marks[order] > score_threshold]
    while order.size and len(chosen) < max_output_size:
        best, order = order[0], order[1:]
        chosen.append(best)
        both = np.prod(np.maximum(np.minimum(high[best], high[order]) - np.maximum(low[best], low[order]), 0.0), 1)
        whole = areas[best] + areas[order] - both
        order = order[~(both > iou_threshold * whole)]
    return beside(tensor(boxes), np.array(chosen, "int32"))
