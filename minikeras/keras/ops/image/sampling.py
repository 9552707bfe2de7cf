"""Elements between the elements: images read at other places, by affine, perspective and elastic transforms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ....core import Tensor, convert_to_tensor
from ....core.ops.indexing import gather_rows
from ....errors import ShapeError
from ....functions import elementwise as tf
from ....functions.creation import ones_like, zeros, zeros_like
from ....functions.creation import range as numbers
from ....functions.linalg import solve
from ....functions.random import normal
from ....functions.shaping import concat, reshape, stack
from ....types import TensorLike
from ...promotion import floating
from ...symbolic.operation import operation
from .batches import as_batch
from .filters import blurred

__all__ = ["affine_transform", "elastic_transform", "map_coordinates", "perspective_transform"]

_ORDERS = {"nearest": 0, "bilinear": 1}
_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def _within(place: Tensor, size: int, mode: str) -> Tensor:
    """The element that stands for one beyond the ends of an axis."""
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
    """The elements along one axis that a place is read from, and their shares."""
    if order == 0:
        return [(tf.cast(tf.round(coordinate), "int32"), 1.0)]
    below = tf.stop_gradient(tf.floor(coordinate))
    place, share = tf.cast(below, "int32"), coordinate - below
    return [(place, 1.0 - share), (place + 1, share)]


def sampled(x: Tensor, coordinates: Sequence[Tensor], order: int, mode: str, value: Any) -> Tensor:
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
    found = sampled(x[None, ..., None], [where[i][None] for i in range(x.ndim)], order, fill_mode, fill_value)
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


def _at(x: Tensor, coordinates: list[Tensor], order: int, mode: str, value: Any) -> Tensor:
    """`sampled` at (batch or 1, height, width)."""
    like = reshape(zeros_like(tf.cast(numbers(x.shape[0]), coordinates[0].dtype)), (-1, 1, 1))
    return sampled(x, [one + like for one in coordinates], order, mode, value)


def _corners(shape: Any, dtype: Any) -> Tensor:
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
    """Images whose pixels are moved by smooth random amounts: alpha times normal numbers of deviation sigma, blurred by sigma.

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
    moved = blurred(noise, (width, width), (sigma, sigma)) * alpha
    coordinates = [place + moved[..., i] for i, place in enumerate(_grid(x))]
    return back(sampled(x, coordinates, _order("elastic_transform", interpolation), fill_mode, fill_value))
