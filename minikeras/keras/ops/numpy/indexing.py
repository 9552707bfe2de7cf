"""Elements picked and put, and diagonals, under Keras's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....absent import hide_imports
from ....core import Tensor, convert_to_tensor
from ....errors import ShapeError
from ....functions import indexing as tf
from ....functions.elementwise import cast
from ....functions.elementwise import where as choose
from ....functions.operands import negative_axis
from ....functions.reductions import reduce_sum
from ....functions.shaping import pad, reshape, transpose
from ....types import ShapeLike, TensorLike
from ...promotion import promoted, result_type
from ...symbolic.operation import operation
from ...symbolic.rules import check_size, cost_of_anything
from ..rows import anything, row


@operation(counts=True)
def where(condition: TensorLike, x1: TensorLike = None, x2: TensorLike = None) -> Any:
    """x1 where the condition is true, else x2; without the two the places where it is true, as `nonzero` gives them.

    >>> print(tf.keras.ops.where([True, False], 1, 0.5).numpy())
    [1.  0.5]
    """
    truth = cast(convert_to_tensor(condition), "bool")
    if x1 is None and x2 is None:
        return nonzero(truth)
    if x1 is None or x2 is None:
        raise ValueError("where: needs both x1 and x2, or neither of them; found one.")
    first, second = promoted(x1, x2)
    return choose(truth, first, second)


@operation
def select(condlist: Sequence[TensorLike], choicelist: Sequence[TensorLike], default: TensorLike = 0) -> Tensor:
    """Each element from the choice whose condition is the first to be true there, else the default.

    >>> print(tf.keras.ops.select([[True, False], [True, True]], [[1, 2], [3, 4]]).numpy())
    [1 4]
    """
    *choices, found = promoted(*choicelist, default)
    for condition, choice in reversed(list(zip(condlist, choices, strict=True))):
        found = choose(cast(convert_to_tensor(condition), "bool"), choice, found)
    return found


@operation(cost=cost_of_anything)
def take(x: TensorLike, indices: TensorLike, axis: int | None = None) -> Tensor:
    """The slices at positions along an axis; of the flattened tensor if `axis` is None. Negative ones count from the end.

    >>> print(tf.keras.ops.take([1, 2, 3], [2, -3]).numpy())
    [3 1]
    """
    x = convert_to_tensor(x)
    x, axis = (reshape(x, [-1]), 0) if axis is None else (x, axis)
    axis = negative_axis(axis, x.ndim, "take")
    return tf.gather(x, _from_front(indices, x.shape[axis]), axis=axis)


@operation
def take_along_axis(x: TensorLike, indices: TensorLike, axis: int | None = None) -> Tensor:
    """For each place the element at a position along an axis; of the flattened tensor if `axis` is None.

    >>> print(tf.keras.ops.take_along_axis([[1, 2], [3, 4]], [[1], [0]], axis=1).numpy().tolist())
    [[2], [3]]
    """
    x = convert_to_tensor(x)
    if axis is None:
        return take_along_axis(reshape(x, [-1]), reshape(convert_to_tensor(indices), [-1]), 0)
    axis = negative_axis(axis, x.ndim, "take_along_axis")
    return tf.take_along_axis(x, _from_front(indices, x.shape[axis]), axis)


def _from_front(indices: TensorLike, size: int) -> Tensor:
    places = convert_to_tensor(indices)
    return choose(places < 0, places + size, places) if places.dtype.name.startswith("int") else cast(places, "int64")


@operation
def unravel_index(indices: TensorLike, shape: ShapeLike) -> tuple[Tensor, ...]:
    """Positions along each axis of a shape for positions in the flattened tensor.

    >>> [one.numpy().tolist() for one in tf.keras.ops.unravel_index([1, 5], (2, 3))]
    [[0, 1], [1, 2]]
    """
    places = convert_to_tensor(indices)
    found = []
    for size in reversed(shape):
        found.append(places % size)
        places = places // size
    return tuple(reversed(found))


# Diagonals ---------------------------------------------------------------------------------------------------------------


def _on_or_below(x: Tensor, k: int) -> np.ndarray:
    return np.tri(x.shape[-2], x.shape[-1], k=k, dtype=bool)


@operation
def diagonal(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonal of two axes, as a new last axis; above the main one for a positive offset.

    >>> print(tf.keras.ops.diagonal([[1, 2], [3, 4]]).numpy())
    [1 4]
    """
    x = convert_to_tensor(x)
    first, second = (negative_axis(axis, x.ndim, "diagonal") + x.ndim for axis in (axis1, axis2))
    rows, columns = x.shape[first], x.shape[second]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    moved = transpose(x, [*(axis for axis in range(x.ndim) if axis not in (first, second)), first, second])
    flat = reshape(moved, [*moved.shape[:-2], rows * columns])
    begin = max(offset, 0) - min(offset, 0) * columns
    return tf.gather(flat, np.arange(length) * (columns + 1) + begin, axis=-1)


@operation
def trace(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of the diagonal of two axes.

    >>> print(tf.keras.ops.trace([[1, 2], [3, 4]]).numpy())
    5
    """
    found = diagonal(x, offset, axis1, axis2)
    return reduce_sum(cast(found, "int32") if result_type(found.dtype, "int32") == "int32" else found, -1)


@operation(cost=cost_of_anything)
def diag(x: TensorLike, k: int = 0) -> Tensor:
    """A matrix with a vector on its k-th diagonal; of a matrix this diagonal.

    >>> print(tf.keras.ops.diag([1, 2]).numpy().tolist(), tf.keras.ops.diag([[1, 2], [3, 4]], 1).numpy().tolist())
    [[1, 0], [0, 2]] [2]
    """
    x = convert_to_tensor(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(f"diag: needs a vector or a matrix, found shape {x.shape}.")
    length = x.shape[0]
    square = reshape(pad(x[:, None], [[0, 0], [0, length]]), [-1])[: length * length] if length else x
    before, after = max(k, 0), max(-k, 0)
    return pad(reshape(square, [length, length]), [[after, before], [before, after]])


@operation(cost=cost_of_anything)
def diagflat(x: TensorLike, k: int = 0) -> Tensor:
    """A matrix with the flattened tensor on its k-th diagonal.

    >>> print(tf.keras.ops.diagflat([[1, 2]]).numpy().tolist())
    [[1, 0], [0, 2]]
    """
    flat = reshape(convert_to_tensor(x), [-1])
    check_size((flat.shape[0] + abs(k)) ** 2, "a diagonal matrix")
    return diag(flat, k)


# fmt: off
tril = row("tril", lambda x, k=0: choose(_on_or_below(x, k), x, cast(0, x.dtype)),
    "Matrices with zeros above the k-th diagonal.",
    "print(tf.keras.ops.tril([[1, 2], [3, 4]]).numpy().tolist()) -> [[1, 0], [3, 4]]", takes=anything)
triu = row("triu", lambda x, k=0: choose(~_on_or_below(x, k - 1), x, cast(0, x.dtype)),
    "Matrices with zeros below the k-th diagonal.",
    "print(tf.keras.ops.triu([[1, 2], [3, 4]]).numpy().tolist()) -> [[1, 2], [0, 4]]", takes=anything)
get_item = row("get_item", lambda x, key: convert_to_tensor(x)[tuple(key) if isinstance(key, list) else key],
    "The part x[key]: integers, slices, None, Ellipsis, tensors of integers or bools, or a tuple of these.",
    "print(tf.keras.ops.get_item([[1, 2], [3, 4]], (0, slice(1, None))).numpy()) -> [2]", returns="Any")
nonzero = row("nonzero", lambda x: tuple(convert_to_tensor(np.asarray(places, "int32")) for places in np.nonzero(x.numpy())),
    "The places of what is not 0: int32 positions along each axis.",
    "[places.numpy().tolist() for places in tf.keras.ops.nonzero([[0, 1], [2, 0]])] -> [[0, 1], [1, 0]]",
    takes=anything, returns="tuple[Tensor, ...]", counts=True)
# fmt: on

hide_imports(globals())
