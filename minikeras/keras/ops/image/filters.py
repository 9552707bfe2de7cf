"""Filters of neighbouring pixels, and colors in other coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core import Tensor, convert_to_tensor
from ....errors import DTypeError, ShapeError
from ....functions.catalogue import row as plain_row
from ....functions.convolution import depthwise_conv
from ....functions.elementwise import cast
from ....functions.image import hue_saturation_value, red_green_blue
from ....functions.operands import beside
from ....functions.reductions import reduce_mean
from ....functions.shaping import expand_dims, pad, reshape, squeeze, stack, transpose
from ....types import Array, TensorLike
from ...promotion import floating
from ...settings import checked_format
from ...symbolic.operation import operation
from ...symbolic.trial import check_size, cost_of_operands
from ..nn.sliding import elements, for_each, read
from ..rows import row

Back = Callable[[Tensor], Tensor]


def as_batch(name: str, images: TensorLike, data_format: str | None, rank: int = 2) -> tuple[Tensor, Back]:
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


def _gaussian(size: int, sigma: float) -> Array:
    """Weights of sum 1."""
    weights = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2)
    return weights / weights.sum()


def _filtered(x: Tensor, kernel: Array, padding: str) -> Tensor:
    """Each channel under a kernel (height, width), or several of them (height, width, number)."""
    kernel = kernel.reshape(*kernel.shape[:2], 1, -1)
    kernels = np.broadcast_to(kernel, (*kernel.shape[:2], x.shape[-1], kernel.shape[-1]))
    return depthwise_conv(x, beside(x, kernels.astype(x.dtype.numpy), x.dtype), 1, padding)


def blurred(x: Tensor, size: Sequence[int], sigma: Sequence[float]) -> Tensor:
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
    return back(blurred(floating(x), kernel_size, sigma))


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
