"""Images: colors, filters, other sizes, and affine, perspective and elastic transforms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import Tensor, all_values, convert_to_tensor
from ...core.ops.indexing import gather_rows
from ...errors import DTypeError, ShapeError
from ...functions import along_axis, beside, cast, ones_like, reduce_mean, round, saturate_cast, zeros, zeros_like
from ...functions import elementwise as tf
from ...functions.catalogue import row as plain_row
from ...functions.convolution import depthwise_conv
from ...functions.creation import range as numbers
from ...functions.image import hue_saturation_value, red_green_blue
from ...functions.linalg import solve
from ...functions.random import normal
from ...functions.resizing import KERNELS, resized
from ...functions.shaping import concat, pad, reshape, stack, transpose
from ...types import Array, DTypeLike, ShapeLike, TensorLike
from ..config import checked_format
from ..promotion import floating
from ..symbolic.operation import operation
from ..symbolic.trial import check_size, cost_of_operands
from .rows import row
from .sliding import as_batch, elements, for_each, read


def _gaussian(size: int, sigma: float) -> Array:
    """Weights of sum 1."""
    weights = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2)
    return weights / weights.sum()


def _filtered(x: Tensor, kernel: Array, padding: str) -> Tensor:
    """Each channel under a kernel (height, width), or several of them (height, width, number)."""
    kernel = kernel.reshape(*kernel.shape[:2], 1, -1)
    kernels = np.broadcast_to(kernel, (*kernel.shape[:2], x.shape[-1], kernel.shape[-1]))
    return depthwise_conv(x, beside(x, kernels.astype(x.dtype.numpy), x.dtype), 1, padding)


def _blurred(x: Tensor, size: Sequence[int], sigma: Sequence[float]) -> Tensor:
    """Each channel of (batch, height, width, channels) under a Gaussian kernel, along one axis after the other."""
    check_size(math.prod(x.shape) * sum(size), "products with a kernel")
    x = _filtered(x, _gaussian(size[1], sigma[1])[:, None], "SAME")
    return _filtered(x, _gaussian(size[0], sigma[0])[None], "SAME")


@operation
def gaussian_blur(
    images: TensorLike, kernel_size: Any = (3, 3), sigma: Any = (1.0, 1.0), data_format: str | None = None
) -> Tensor:
    """Images under a Gaussian kernel; beyond the ends lie zeros.

    Args:
        images: ([batch,] height, width, channels) of floats, or with the channels first.
        kernel_size: width and height of the kernel.
        sigma: its deviation along the width and the height.

    >>> tf.keras.ops.image.gaussian_blur(tf.ones([2, 8, 8, 3]), (5, 5)).shape
    TensorShape([2, 8, 8, 3])
    """
    x, back = as_batch("gaussian_blur", images, data_format)
    return back(_blurred(floating(x), kernel_size, sigma))


@operation
def sobel_edges(images: TensorLike, data_format: str | None = None) -> Tensor:
    """Slopes along the height and the width (..., 2): differences of neighbours, weighted 1, 2, 1 across.

    >>> tf.keras.ops.image.sobel_edges(tf.ones([2, 8, 8, 3])).shape
    TensorShape([2, 8, 8, 3, 2])
    """
    x, back = as_batch("sobel_edges", images, data_format)
    along_width = np.outer([1.0, 2.0, 1.0], [-1.0, 0.0, 1.0])
    edges = _filtered(floating(x), np.stack([along_width.T, along_width], -1), "SAME")
    n, height, width, _ = edges.shape
    edges = reshape(edges, (n, height, width, x.shape[-1], 2))
    return stack([back(edges[..., 0]), back(edges[..., 1])], -1)


@operation(name="SSIM")
def ssim(
    image1: TensorLike,
    image2: TensorLike,
    max_val: float = 1.0,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    data_format: str | None = None,
) -> Tensor:
    """Structural similarity of two images, or of each pair of two batches: 1 for equal ones.

    Args:
        image1, image2: ([batch,] height, width, channels), or with the channels first.
        max_val: largest possible difference of two pixels.
        filter_size, filter_sigma: of the Gaussian window in which means and variances are taken.
        k1, k2: parts of `max_val` that keep quotients finite.

    Source: Wang et al. (2004), Image Quality Assessment: From Error Visibility to Structural Similarity, equation (13).

    >>> print(tf.keras.ops.image.ssim(tf.ones([12, 12, 1]), tf.ones([12, 12, 1])).numpy())
    1.0
    """
    x, _ = as_batch("ssim", image1, data_format)
    y, _ = as_batch("ssim", image2, data_format)
    if x.shape != y.shape or min(x.shape[1:3]) < filter_size:
        raise ShapeError(f"ssim: needs two images of one shape, no smaller than {filter_size}, found {x.shape}, {y.shape}.")
    held, x, y = x.dtype, floating(x), floating(y)
    row = _gaussian(filter_size, filter_sigma)

    def mean(image: Tensor) -> Tensor:
        return _filtered(_filtered(image, row[:, None], "VALID"), row[None], "VALID")

    a, b = mean(x), mean(y)
    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    covariance, variances = mean(x * y) - a * b, mean(x * x) + mean(y * y) - a * a - b * b
    similarity = (2.0 * a * b + c1) * (2.0 * covariance + c2) / ((a * a + b * b + c1) * (variances + c2))
    found = cast(reduce_mean(similarity, (1, 2, 3)), held)
    return found if convert_to_tensor(image1).ndim == 4 else found[0]


def _settled(config: dict[str, Any]) -> dict[str, Any]:
    size = for_each(config["size"], 2)
    strides = size if config["strides"] is None else config["strides"]
    return config | {"size": size, "strides": strides, "data_format": checked_format(config["data_format"])}


@operation(cost=cost_of_operands, settle=_settled)
def extract_patches(
    images: TensorLike,
    size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    dilation_rate: int | Sequence[int] = 1,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """The blocks under a sliding window as channels: (batch, places, places, window * channels); also of volumes.

    Args:
        images: ([batch,] height, width, channels), or with the channels first; with three numbers in `size` volumes.
        size: of the window, an int or one for each axis.
        strides: `size` if None.
        dilation_rate: distance between neighbouring elements of the window.
        padding: 'valid' (none) or 'same'.

    >>> tf.keras.ops.image.extract_patches(tf.ones([2, 8, 8, 3]), 4).shape
    TensorShape([2, 2, 2, 48])
    """
    rank = 2 if isinstance(size, int) else len(size)
    x, back = as_batch("extract_patches", images, data_format, rank)
    window, steps, spread = [for_each(one, rank) for one in (size, size if strides is None else strides, dilation_rate)]
    if padding.lower() == "same":
        missing = [
            max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
            for n, k, s, d in zip(x.shape[1:-1], window, steps, spread, strict=True)
        ]
        check_size(math.prod(n + k for n, k in zip(x.shape, (0, *missing, 0), strict=True)), "padded images")
        x = pad(x, [[0, 0], *[[more // 2, more - more // 2] for more in missing], [0, 0]])
    n, *sizes, channels = x.shape
    if steps == window and max(spread) == 1:
        return back(_blocks(x, window))
    numbers = elements(sizes, window, steps, spread)
    patches = read(reshape(x, (n, math.prod(sizes), channels)), numbers, -2)
    return back(reshape(patches, (n, *numbers.shape[:rank], math.prod(window) * channels)))


def _blocks(x: Tensor, window: tuple[int, ...]) -> Tensor:
    """Patches that lie side by side, which is a matter of reshaping."""
    n, *sizes, channels = x.shape
    rank, counts = len(window), [size // k for size, k in zip(sizes, window, strict=True)]
    for axis, (count, k) in enumerate(zip(counts, window, strict=True), 1):
        if count * k != x.shape[axis]:
            x = x[(*[slice(None)] * axis, slice(0, count * k))]
    apart = reshape(x, (n, *(part for pair in zip(counts, window, strict=True) for part in pair), channels))
    order = [0, *range(1, 2 * rank, 2), *range(2, 2 * rank + 1, 2), 2 * rank + 1]
    return reshape(transpose(apart, order), (n, *counts, math.prod(window) * channels))


@operation(name="RGBToGrayscale")
def rgb_to_grayscale(images: TensorLike, data_format: str | None = None) -> Tensor:
    """0.2989 red + 0.587 green + 0.114 blue, in the dtype of the images; images of one channel as they are.

    Args:
        images: ([batch,] height, width, 3), or with the channels first.

    >>> print(tf.keras.ops.image.rgb_to_grayscale([[[1.0, 1.0, 0.0]]]).numpy().round(4))
    [[[0.8859]]]
    """
    x, back = as_batch("rgb_to_grayscale", images, data_format)
    if x.shape[-1] not in (1, 3):
        raise ShapeError(f"rgb_to_grayscale: needs 3 channels, or 1, found {x.shape[-1]}.")
    if x.shape[-1] == 3:
        red, green, blue = [floating(x)[..., place : place + 1] for place in range(3)]
        x = cast(red * 0.2989 + green * 0.587 + blue * 0.114, x.dtype)
    return back(x)


def _planes(name: str, images: TensorLike, data_format: str | None, convert: Callable[..., list[Tensor]]) -> Tensor:
    """Three channels converted into three others."""
    x, back = as_batch(name, images, data_format)
    if not x.dtype.is_floating or x.shape[-1] != 3:
        raise DTypeError(f"{name}: needs 3 channels of floats, found {x.shape[-1]} of {x.dtype.name}. Divide integers by 255.")
    return back(stack(convert(*[x[..., place] for place in range(3)]), -1))


# fmt: off
rgb_to_hsv = row("rgb_to_hsv",
    lambda images, data_format=None: _planes("rgb_to_hsv", images, data_format, hue_saturation_value),
    "Hue, saturation and value of floats in [0, 1].",
    "print(tf.keras.ops.image.rgb_to_hsv([[[0.0, 1.0, 0.0]]]).numpy().round(4)) -> [[[0.3333 1.     1.    ]]]", name="RGBToHSV")
hsv_to_rgb = row("hsv_to_rgb", lambda images, data_format=None: _planes("hsv_to_rgb", images, data_format, red_green_blue),
    "The inverse of `rgb_to_hsv`.",
    "print(tf.keras.ops.image.hsv_to_rgb([[[0.0, 1.0, 1.0]]]).numpy()) -> [[[1. 0. 0.]]]", name="HSVToRGB")
extract_patches_3d = plain_row("extract_patches_3d",
    lambda volumes, size, strides=None, dilation_rate=1, padding="valid", data_format=None:
        extract_patches(volumes, for_each(size, 3), strides, dilation_rate, padding, data_format),
    "`extract_patches` of volumes ([batch,] depth, height, width, channels).",
    "tf.keras.ops.image.extract_patches_3d(tf.ones([4, 4, 4, 1]), 2).shape -> TensorShape([2, 2, 2, 8])",
    types={"volumes": "TensorLike", "size": "Any"})
# fmt: on


_ORDERS = {"nearest": 0, "bilinear": 1}
_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def _within(place: Tensor, size: int, mode: str) -> Tensor:
    """The position within an axis that stands for a place beyond its ends, by the fill mode."""
    if mode == "wrap":
        return tf.floormod(place, size)
    if mode == "mirror":
        last = max(size - 1, 1)
        return tf.minimum(tf.abs(tf.floormod(place + last, 2 * last) - last), size - 1)
    if mode == "reflect":
        around = tf.floormod(place, 2 * size)
        return tf.minimum(around, 2 * size - 1 - around)
    return tf.clip_by_value(place, 0, size - 1)


def _neighbours(coordinate: Tensor, order: int) -> list[tuple[Tensor, Any]]:
    """The positions along one axis from which a coordinate is interpolated, and their weights."""
    if order == 0:  # a half goes away from 0, as in Keras on JAX and on TensorFlow; `round` would take the even element
        whole = tf.cast(coordinate, "int32")
        return [(whole + tf.cast(2 * (coordinate - tf.cast(whole, coordinate.dtype)), "int32"), 1.0)]
    below = tf.stop_gradient(tf.floor(coordinate))
    place, share = tf.cast(below, "int32"), coordinate - below
    return [(place, 1.0 - share), (place + 1, share)]


def _sampled(x: Tensor, coordinates: Sequence[Tensor], order: int, mode: str, value: float) -> Tensor:
    """Images (batch, *sizes, channels) at coordinates (batch, *places), one tensor for each size: (batch, *places, channels).

    Args:
        order: 0 for the nearest element, 1 for the mean of the neighbours weighted by their distance along each axis.
        mode: what stands beyond the ends: 'constant', 'nearest', 'wrap', 'mirror' or 'reflect'.
        value: for 'constant'.
    """
    if mode not in _MODES or order not in (0, 1):
        raise ValueError(f"fill_mode must be one of {_MODES} and order 0 or 1, found {mode!r} and {order!r}.")
    sizes, n, channels = x.shape[1:-1], x.shape[0], x.shape[-1]
    rows = reshape(x, (n * math.prod(sizes), channels))
    batch = reshape(numbers(n), (n, *[1] * (coordinates[0].ndim - 1)))
    total: Any = None
    for corner in itertools.product(*[_neighbours(one, order) for one in coordinates]):
        flat, weight, inside = batch, tf.cast(1.0, coordinates[0].dtype), tf.cast(1, "bool")
        for size, (place, share) in zip(sizes, corner, strict=True):
            flat = flat * size + _within(place, size, mode)
            inside, weight = inside & (place >= 0) & (place < size), weight * share
        found = reshape(gather_rows(rows, reshape(flat, (-1,)), axis=-2), (*flat.shape, channels))
        if mode == "constant":
            found = tf.where(inside[..., None], found, tf.cast(value, x.dtype))
        if order:
            found = floating(found)
            found = found * tf.cast(weight[..., None], found.dtype)
        total = found if total is None else total + found
    return total if total.dtype == x.dtype else tf.cast(tf.round(total), x.dtype)


@operation
def map_coordinates(
    inputs: TensorLike, coordinates: TensorLike, order: int, fill_mode: str = "constant", fill_value: float = 0
) -> Tensor:
    """A tensor read at places between its elements.

    Args:
        inputs: tensor of any shape.
        coordinates: (number of axes, *places).
        order: 0 for the nearest element, 1 for the mean of neighbours weighted by distance.
        fill_mode: what stands beyond the ends: 'constant', 'nearest', 'wrap', 'mirror' or 'reflect'.
        fill_value: for 'constant'.

    >>> print(tf.keras.ops.image.map_coordinates([0.0, 10.0, 20.0], [[0.5, 1.25]], order=1).numpy())
    [ 5.  12.5]
    """
    x, where = convert_to_tensor(inputs), floating(coordinates)
    if where.ndim < 2 or where.shape[0] != x.ndim:
        raise ShapeError(f"map_coordinates: coordinates need shape ({x.ndim}, *places) for {x.shape}, found {where.shape}.")
    found = _sampled(x[None, ..., None], [where[i][None] for i in range(x.ndim)], order, fill_mode, fill_value)
    return found[0, ..., 0]


def _order(name: str, interpolation: str) -> int:
    if interpolation not in _ORDERS:
        raise ValueError(f"{name}: interpolation must be 'nearest' or 'bilinear', found {interpolation!r}.")
    return _ORDERS[interpolation]


def _grid(x: Tensor) -> tuple[Tensor, Tensor]:
    """The row (height, 1) and the column (1, width) of each pixel."""
    rows, columns = [tf.cast(numbers(n), "float32") for n in x.shape[1:3]]
    return rows[:, None], columns[None]


@operation
def affine_transform(
    images: TensorLike,
    transform: TensorLike,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: float = 0,
    data_format: str | None = None,
) -> Tensor:
    """Images whose pixel (x, y) comes from (a0 x + a1 y + a2, b0 x + b1 y + b2).

    Args:
        images: ([batch,] height, width, channels), or with the channels first.
        transform: a0, a1, a2, b0, b1, b2, 0, 0, in a vector or one for each image.
        interpolation: 'bilinear' or 'nearest'.
        fill_mode, fill_value: as in `map_coordinates`.

    >>> image = tf.reshape(tf.range(4.0), [2, 2, 1])
    >>> print(tf.keras.ops.image.affine_transform(image, [1.0, 0, 1, 0, 1, 0, 0, 0]).numpy()[..., 0])
    [[1. 0.]
     [3. 0.]]
    """
    x, back = as_batch("affine_transform", images, data_format)
    numbers_of = tf.cast(floating(transform), "float32")
    if numbers_of.ndim not in (1, 2) or numbers_of.shape[-1] != 8:
        raise ShapeError(f"affine_transform: needs 8 numbers, or (batch, 8), found shape {numbers_of.shape}.")
    rows, columns = _grid(x)
    a = [reshape(numbers_of[..., i], (-1, 1, 1)) + zeros_like(rows) for i in range(6)]
    coordinates = [a[3] * columns + a[4] * rows + a[5], a[0] * columns + a[1] * rows + a[2]]
    return back(_at(x, coordinates, _order("affine_transform", interpolation), fill_mode, fill_value))


def _at(x: Tensor, coordinates: list[Tensor], order: int, mode: str, value: float) -> Tensor:
    """`_sampled` at (batch or 1, height, width)."""
    like = reshape(zeros_like(tf.cast(numbers(x.shape[0]), coordinates[0].dtype)), (-1, 1, 1))
    return _sampled(x, [one + like for one in coordinates], order, mode, value)


def _corners(shape: ShapeLike, dtype: DTypeLike) -> Tensor:
    """The corners of a square where points are asked for, to try the function on."""
    whole = zeros(shape, dtype)
    return whole + tf.cast([[0, 0], [1, 0], [0, 1], [1, 1]], dtype) if tuple(shape[-2:]) == (4, 2) else whole


@operation(example=_corners)
def perspective_transform(
    images: TensorLike,
    start_points: TensorLike,
    end_points: TensorLike,
    interpolation: str = "bilinear",
    fill_value: float = 0,
    data_format: str | None = None,
) -> Tensor:
    """Images moved so that four points (x, y) go to four others; straight lines stay straight.

    Args:
        images: ([batch,] height, width, channels), or with the channels first.
        start_points, end_points: (4, 2), or for each image (batch, 4, 2).
        interpolation: 'bilinear' or 'nearest'.
        fill_value: of what comes from outside.

    >>> corners = [[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [3.0, 3.0]]
    >>> tf.keras.ops.image.perspective_transform(tf.ones([4, 4, 1]), corners, corners).shape
    TensorShape([4, 4, 1])
    """
    x, back = as_batch("perspective_transform", images, data_format)
    start, end = [tf.cast(floating(one), "float32") for one in (start_points, end_points)]
    if tuple(start.shape[-2:]) != (4, 2) or start.shape != end.shape or start.ndim > 3:
        raise ShapeError(f"perspective_transform: needs points ([batch,] 4, 2), found {start.shape} and {end.shape}.")
    start, end = [reshape(one, (-1, 4, 2)) for one in (start, end)]
    u, v = end[..., 0], end[..., 1]
    zero, one = zeros_like(u), ones_like(u)
    equations = [
        stack([u, v, one, zero, zero, zero, -start[..., 0] * u, -start[..., 0] * v], -1),
        stack([zero, zero, zero, u, v, one, -start[..., 1] * u, -start[..., 1] * v], -1),
    ]
    h = solve(concat(equations, 1), concat([start[..., 0], start[..., 1]], 1)[..., None])
    rows, columns = _grid(x)
    a = [h[:, i][..., None] for i in range(8)]
    scale = a[6] * columns + a[7] * rows + 1.0
    coordinates = [(a[3] * columns + a[4] * rows + a[5]) / scale, (a[0] * columns + a[1] * rows + a[2]) / scale]
    return back(_at(x, coordinates, _order("perspective_transform", interpolation), "constant", fill_value))


@operation
def elastic_transform(
    images: TensorLike,
    alpha: float = 20.0,
    sigma: float = 5.0,
    interpolation: str = "bilinear",
    fill_mode: str = "reflect",
    fill_value: float = 0.0,
    seed: Any = None,
    data_format: str | None = None,
) -> Tensor:
    """Images whose pixels are moved by smooth random amounts: alpha times normal numbers of deviation sigma, _blurred by sigma.

    Args:
        seed: an int for the same numbers each time.
        images, interpolation, fill_mode, fill_value, data_format: as in `affine_transform`.

    Source: Simard, Steinkraus and Platt (2003), Best Practices for Convolutional Neural Networks, section 2.

    >>> tf.keras.ops.image.elastic_transform(tf.ones([2, 8, 8, 3]), seed=1).shape
    TensorShape([2, 8, 8, 3])
    """
    x, back = as_batch("elastic_transform", images, data_format)
    width = int(6 * sigma) | 1
    noise = normal((*x.shape[:3], 2), stddev=sigma, seed=seed)
    moved = _blurred(noise, (width, width), (sigma, sigma)) * alpha
    coordinates = [place + moved[..., i] for i, place in enumerate(_grid(x))]
    return back(_sampled(x, coordinates, _order("elastic_transform", interpolation), fill_mode, fill_value))


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
    output_shape: ShapeLike,
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
        total, inside = weights.sum(1, keepdims=True), (places >= -0.5) & (places <= n - 0.5)
        usable = inside[:, None] & (np.abs(total) > 1000 * np.finfo("float32").eps)  # rows of places outside become zeros
        x = along_axis(np.where(usable, weights / np.where(total == 0, 1.0, total), 0.0), x, axis % x.ndim)
    return x


def _third(name: str, first: int | None, second: int | None, whole: int | None, size: int, sign: int) -> tuple[int, int]:
    """Numbers of elements added (sign 1) or cut off (-1) at both ends, when two of three numbers are known."""
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
