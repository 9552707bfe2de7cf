"""Parts of images: what lies under sliding windows or in boxes, and which boxes are worth keeping."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..core import Tensor
from ..errors import ShapeError
from ..nn_ops.convolution import offsets, places
from ..types import TensorLike
from .convolution import geometry
from .creation import zeros_like
from .elementwise import cast, ceil, clip_by_value, floor, stop_gradient, where
from .indexing import gather_nd
from .operands import beside, static_shape, tensor
from .shaping import concat, pad, stack


def extract_patches(images: TensorLike, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> Tensor:
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
    for (row, share), (column, weight) in itertools.product(y, z):
        indices = [owners[:, None, None], row[:, :, None], column[:, None]]
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
