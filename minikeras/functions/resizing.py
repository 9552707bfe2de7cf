"""Images of other sizes: along each axis a matrix times the elements, whose rows are a kernel around the new places."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from ..core import Tensor
from ..core.ops.indexing import gather_rows
from ..errors import ShapeError
from ..nn_ops.convolution import window_spread
from ..types import Array, TensorLike
from .contractions import along_axis
from .convolution import channels_first
from .elementwise import cast
from .operands import beside, inexact, rounded_once, static_shape, tensor
from .shaping import expand_dims, squeeze


def _cubic(x: Array) -> Array:
    """Keys (1981), equation 15: third order with a = -1/2."""
    near, far = (1.5 * x - 2.5) * x * x + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def _mitchell(x: Array) -> Array:
    """Mitchell and Netravali (1988): third order with B = C = 1/3."""
    near, far = (7 / 6 * x - 2.0) * x * x + 8 / 9, ((-7 / 18 * x + 2.0) * x - 10 / 3) * x + 16 / 9
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def _lanczos(radius: int, x: Array) -> Array:
    return np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0.0)


KERNELS: dict[str, Callable[[Array], Array]] = {
    "bilinear": lambda x: np.maximum(0.0, 1.0 - x),
    "bicubic": _cubic,
    "lanczos3": functools.partial(_lanczos, 3),
    "lanczos5": functools.partial(_lanczos, 5),
    "gaussian": lambda x: np.where(x < 1.5, np.exp(-2.0 * x * x), 0.0),
    "mitchellcubic": _mitchell,
}
"""Weight by distance from the new place, in elements."""
METHODS = ("nearest", "area", *KERNELS)
BLURRING = ("gaussian", "mitchellcubic")
"""Kernels that change an image even along an axis whose size stays, if the size of another axis changes."""


class ResizeMethod:
    """The methods of `resize` by name.

    >>> tf.image.resize(tf.ones([1, 1, 1]), [2, 2], tf.image.ResizeMethod.NEAREST_NEIGHBOR).shape
    TensorShape([2, 2, 1])
    """

    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA = "bilinear", "nearest", "bicubic", "area"
    LANCZOS3, LANCZOS5, GAUSSIAN, MITCHELLCUBIC = "lanczos3", "lanczos5", "gaussian", "mitchellcubic"


def resize(
    images: TensorLike,
    size: int | Sequence[int],
    method: str = "bilinear",
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Images of another height and width; centers of elements lie at 1/2, 3/2 and so on.

        y[j] = sum over i of w[j, i] x[i] along both axes, w[j, i] = k(|(j + 1/2) n / m - 1/2 - i|), rows scaled to sum 1

    Args:
        images: (height, width, channels) or (batch, height, width, channels).
        size: new height and width.
        method: 'bilinear', 'nearest', 'bicubic' (Keys, 1981), 'lanczos3', 'lanczos5', 'gaussian', 'mitchellcubic', or 'area',
            the mean over the part of the image that a new element covers.
        preserve_aspect_ratio: whether `size` is an upper limit and the image keeps its proportions.
        antialias: whether the kernel is as many times wider as the image becomes smaller.

    Returns:
        Floats; integers become float32, but stay integers with 'nearest'.

    Raises:
        ShapeError: if a rank does not fit, or a size is not positive.
        ValueError: for an unknown method.

    >>> print(tf.image.resize([[[0.0], [4.0]]], [1, 4]).numpy().ravel())
    [0. 1. 3. 4.]
    """
    x, sizes = tensor(images), static_shape(size)
    if x.ndim not in (3, 4) or len(sizes) != 2 or min(*sizes, *x.shape[-3:-1]) < 1:
        raise ShapeError(
            "resize: needs images ([batch,] height, width, channels) with pixels and two positive sizes, "
            f"found {x.shape} and {sizes}."
        )
    if preserve_aspect_ratio:
        height, width = x.shape[-3:-1]
        scale = min(sizes[0] / height, sizes[1] / width)
        sizes = (max(1, round(height * scale)), max(1, round(width * scale)))
    return resized(x, dict(zip((x.ndim - 3, x.ndim - 2), sizes, strict=True)), method, antialias)


@rounded_once
def resized(x: Tensor, sizes: dict[int, int], method: str = "bilinear", antialias: bool = False) -> Tensor:
    """The elements along some axes resampled to other sizes; see `resize`.

    Raises:
        ValueError: for an unknown method.
    """
    if method not in METHODS:
        raise ValueError(f"resize: method must be one of {METHODS}, found {method!r}.")
    if method != "nearest" and not x.dtype.is_floating:
        x = cast(inexact("resize", x, "iuf"), "float32")
    kept = method not in BLURRING or all(x.shape[axis] == size for axis, size in sizes.items())
    for axis in sorted(sizes, reverse=True):  # the products with few columns first, while there are few rows
        n, m = x.shape[axis], sizes[axis]
        if n == m and kept:
            continue
        if method == "nearest":
            rows = np.minimum((np.arange(m) + 0.5) * n / m, n - 1).astype("int64")
            x = gather_rows(x, beside(x, rows), axis=axis - x.ndim)
        else:
            weights = _shares(n, m) if method == "area" else _weights(n, m, KERNELS[method], antialias)
            x = along_axis(weights, x, axis)
    return x


def _weights(n: int, m: int, kernel: Callable[[Array], Array], antialias: bool) -> Array:
    """The matrix (m, n) from n elements to m."""
    wider = max(n / m, 1.0) if antialias else 1.0
    places = (np.arange(m) + 0.5) * n / m - 0.5
    found = kernel(np.abs(places[:, None] - np.arange(n)) / wider)
    return found / found.sum(1, keepdims=True)


def _shares(n: int, m: int) -> Array:
    """The matrix (m, n) of the shares that n elements have in the means over m equal parts."""
    edges, places = np.arange(m + 1) * n / m, np.arange(n)
    ends = np.minimum(edges[1:, None], places + 1) - np.maximum(edges[:-1, None], places)
    return np.maximum(ends, 0.0) * m / n


def enlarged(x: Tensor, factors: tuple[int, ...], data_format: str | None = None) -> Tensor:
    """Each element repeated along the axes between batch and channels, as many times as `factors` say."""
    rank = len(factors)
    y = expand_dims(x, -1) if channels_first(data_format) else x
    sizes = tuple(n * factor for n, factor in zip(y.shape[-rank - 1 : -1], factors, strict=True))
    side_by_side = {"window": factors, "strides": factors, "padding": ((0, 0),) * rank, "dilation": (1,) * rank}
    y = window_spread(y, sizes=sizes, **side_by_side)
    return squeeze(y, -1) if channels_first(data_format) else y
