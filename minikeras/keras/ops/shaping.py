"""New tensors, of dtype `floatx()` unless told otherwise; axes and shapes, elements picked and put, under Keras's names."""

from __future__ import annotations

import itertools
import math as _math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import Tensor, convert_to_tensor
from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...functions import bitcast, cast, creation, indexing, integer, negative_axis, pow, reduce_sum, static_shape
from ...functions import shaping as tf
from ...functions.catalogue import row as plain_row
from ...functions.catalogue import takes_symbols
from ...functions.elementwise import where as choose
from ...types import Axis, DTypeLike, ShapeLike, TensorLike, as_dtype
from .. import config
from ..promotion import exact, floating, promoted, result_type
from ..symbolic import KerasTensor
from ..symbolic.operation import operation
from ..symbolic.trial import check_size, cost_of_anything
from .rows import anything, row


@operation(same=tf.expand_dims)
def expand_dims(x: TensorLike, axis: Axis) -> Tensor:
    """New axes of size 1, at the places that they have in the result.

    >>> tf.keras.ops.expand_dims(tf.keras.Input((3,)), (1, -1)).shape
    (None, 1, 3, 1)
    """
    x = convert_to_tensor(x)
    axes = [axis] if not isinstance(axis, (list, tuple)) else list(axis)
    rank = x.ndim + len(axes)
    for one in sorted(negative_axis(one, rank, "expand_dims") + rank for one in axes):
        x = tf.expand_dims(x, one)
    return x


@operation
def moveaxis(x: TensorLike, source: Any, destination: Any) -> Tensor:
    """Axes moved to other places; the others stay in their order.

    >>> tf.keras.ops.moveaxis(tf.keras.Input((2, 3)), 1, -1).shape
    (None, 3, 2)
    """
    x = convert_to_tensor(x)
    froms, tos = ([one] if not isinstance(one, (list, tuple)) else list(one) for one in (source, destination))
    if len(froms) != len(tos):
        raise ShapeError(f"moveaxis: source and destination must name as many axes, found {source} and {destination}.")
    froms, tos = ([negative_axis(one, x.ndim, "moveaxis") + x.ndim for one in axes] for axes in (froms, tos))
    order = [axis for axis in range(x.ndim) if axis not in froms]
    for to, axis in sorted(zip(tos, froms, strict=True)):
        order.insert(to, axis)
    return tf.transpose(x, order)


@operation
def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """Two axes in each other's place.

    >>> tf.keras.ops.swapaxes(tf.keras.Input((2, 3)), 1, 2).shape
    (None, 3, 2)
    """
    x = convert_to_tensor(x)
    first, second = (negative_axis(one, x.ndim, "swapaxes") + x.ndim for one in (axis1, axis2))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return tf.transpose(x, order)


@operation(same=tf.roll)
def roll(x: TensorLike, shift: Any, axis: Any = None) -> Tensor:
    """Elements moved on along axes, those that leave at one end come back at the other; of the flattened tensor if None.

    >>> print(tf.keras.ops.roll([1, 2, 3], 1).numpy())
    [3 1 2]
    """
    x = convert_to_tensor(x)
    if axis is None:
        return tf.reshape(tf.roll(tf.reshape(x, [-1]), sum(shift) if isinstance(shift, (list, tuple)) else shift, 0), x.shape)
    if isinstance(axis, (list, tuple)) or isinstance(shift, (list, tuple)):
        shift, axis = (one.tolist() for one in np.broadcast_arrays(np.ravel(shift), np.ravel(axis)))
    return tf.roll(x, shift, axis)


# Joining -----------------------------------------------------------------------------------------------------------------


def _several(xs: Any) -> list[Tensor]:
    """The tensors of a list, or the slices of one tensor, in the dtype in which they meet."""
    return promoted(*(list(xs) if isinstance(xs, (list, tuple)) else tf.unstack(convert_to_tensor(xs))))


_PART = 1000
"""The cost of making one part of a tensor, in elements that are copied in the same time."""

# Cutting -----------------------------------------------------------------------------------------------------------------


@operation
def split(x: TensorLike, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Parts along an axis: so many of one size, or cut in front of these places.

    >>> print([part.numpy().tolist() for part in tf.keras.ops.split([1, 2, 3, 4], [1, 3])])
    [[1], [2, 3], [4]]
    """
    x = convert_to_tensor(x)
    size = x.shape[negative_axis(axis, x.ndim, "split")]
    if isinstance(indices_or_sections, int):
        check_size(_PART * min(size, indices_or_sections), "parts")
        if indices_or_sections < 1 or size % indices_or_sections:
            raise ShapeError(f"split: {size} elements along axis {axis} are not {indices_or_sections} parts of one size.")
        return tf.split(x, indices_or_sections, axis)
    places = [0, *(slice(0, int(place)).indices(size)[1] for place in indices_or_sections), size]
    return tf.split(x, [max(0, after - before) for before, after in itertools.pairwise(places)], axis)


@operation
def array_split(x: TensorLike, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Parts along an axis, the first ones larger by one where the size asks for it.

    >>> print([part.numpy().tolist() for part in tf.keras.ops.array_split([1, 2, 3], 2)])
    [[1, 2], [3]]
    """
    x = convert_to_tensor(x)
    if isinstance(indices_or_sections, int):
        check_size(_PART * abs(indices_or_sections), "parts")
        each, more = divmod(x.shape[negative_axis(axis, x.ndim, "array_split")], indices_or_sections)
        return tf.split(x, [each + (part < more) for part in range(indices_or_sections)], axis)
    return split(x, indices_or_sections, axis)


# Growing -----------------------------------------------------------------------------------------------------------------


@operation(cost=cost_of_anything, same=tf.tile)
def tile(x: TensorLike, repeats: ShapeLike) -> Tensor:
    """The whole tensor repeated along its axes, the last ones if fewer numbers are given; more numbers make new axes in front.

    >>> print(tf.keras.ops.tile([1, 2], 2).numpy())
    [1 2 1 2]
    """
    x = convert_to_tensor(x)
    times = static_shape(repeats)
    rank = max(x.ndim, len(times))
    return tf.tile(tf.reshape(x, [*[1] * (rank - x.ndim), *x.shape]), [*[1] * (rank - len(times)), *times])


@operation(cost=cost_of_anything, named="constant_values")
def pad(x: TensorLike, pad_width: Any, mode: str = "constant", constant_values: TensorLike | None = None) -> Tensor:
    """More elements before and behind, along each axis.

    Args:
        x: tensor of any shape.
        pad_width: a pair of numbers for each axis, or one pair, or one number, for all.
        mode: 'constant', 'reflect' (without the edge) or 'symmetric' (with it).
        constant_values: what 'constant' fills with; 0 if None.

    Raises:
        ValueError: for constant_values with another mode.

    >>> print(tf.keras.ops.pad([1, 2], 1).numpy())
    [0 1 2 0]
    """
    if mode != "constant" and constant_values is not None:
        raise ValueError(f"pad: constant_values= belongs to mode='constant', found mode={mode!r}.")
    x = convert_to_tensor(x)
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    check_size(_math.prod(n + abs(int(sum(more))) for n, more in zip(x.shape, widths, strict=True)), "a padded tensor")
    return tf.pad(x, widths, mode.upper(), cast(exact(constant_values or 0, x.dtype), x.dtype))


# Facts -------------------------------------------------------------------------------------------------------------------


# fmt: off
reshape = row("reshape", lambda x, newshape: tf.reshape(convert_to_tensor(x), newshape),
    "The same elements in another shape; -1 stands for the size that is left.",
    "tf.keras.ops.reshape(tf.keras.Input((2, 3)), (-1, 6)).shape -> (None, 6)", same=tf.reshape)
ravel = row("ravel", lambda x: tf.reshape(convert_to_tensor(x), [-1]), "The same elements along one axis.",
    "print(tf.keras.ops.ravel([[1, 2], [3, 4]]).numpy()) -> [1 2 3 4]")
transpose = row("transpose", lambda x, axes=None: tf.transpose(convert_to_tensor(x), axes),
    "The axes in another order; reversed if None.",
    "tf.keras.ops.transpose(tf.keras.Input((2, 3)), (0, 2, 1)).shape -> (None, 3, 2)", same=tf.transpose)
squeeze = row("squeeze", lambda x, axis=None: tf.squeeze(convert_to_tensor(x), axis),
    "Without these axes, which have size 1; without all such axes if None.",
    "tf.keras.ops.squeeze(tf.keras.Input((1, 3)), axis=1).shape -> (None, 3)", same=tf.squeeze)
flipud = row("flipud", lambda x: tf.reverse(convert_to_tensor(x), [0]), "Backwards along the first axis.",
    "print(tf.keras.ops.flipud([[1], [2]]).numpy().tolist()) -> [[2], [1]]")
fliplr = row("fliplr", lambda x: tf.reverse(convert_to_tensor(x), [1]), "Backwards along the second axis.",
    "print(tf.keras.ops.fliplr([[1, 2]]).numpy()) -> [[2 1]]")
hstack = row("hstack",
    lambda xs: tf.concat(parts := [tf.reshape(x, [-1]) if x.ndim < 1 else x for x in _several(xs)], min(1, parts[0].ndim - 1)),
    "Tensors beside one another: along the second axis, vectors along their only one.",
    "print(tf.keras.ops.hstack([[1, 2], [3, 4]]).numpy()) -> [1 2 3 4]")
vstack = row("vstack", lambda xs: tf.concat([tf.reshape(x, [1, -1]) if x.ndim < 2 else x for x in _several(xs)], 0),
    "Tensors below one another: along the first axis, vectors as rows.",
    "print(tf.keras.ops.vstack([[1, 2], [3, 4]]).numpy().tolist()) -> [[1, 2], [3, 4]]")
dstack = row("dstack",
    lambda xs:
        tf.concat([x if x.ndim > 2 else tf.reshape(x, [1, -1, 1] if x.ndim < 2 else [*x.shape, 1]) for x in _several(xs)], 2),
    "Tensors behind one another: along the third axis.",
    "tf.keras.ops.dstack([[1, 2], [3, 4]]).shape -> TensorShape([1, 2, 2])")
concatenate = row("concatenate",
    lambda xs, axis=0: tf.concat([ravel(x) for x in _several(xs)] if axis is None else _several(xs), axis or 0),
    "Tensors behind one another along an axis; flattened ones if `axis` is None.",
    "print(tf.keras.ops.concatenate([[1, 2], [3.5]]).numpy()) -> [1.  2.  3.5]", types={"axis": "int | None"}, same=tf.concat)
append = row("append", lambda x1, x2, axis=None: concatenate(promoted(x1, x2), axis),
    "x2 behind x1 along an axis; flattened ones if `axis` is None.",
    "print(tf.keras.ops.append([1, 2], [3]).numpy()) -> [1 2 3]")
vsplit = row("vsplit", lambda x, indices_or_sections: split(convert_to_tensor(x), indices_or_sections, 0),
    "`split` along the first axis.",
    "[tuple(part.shape) for part in tf.keras.ops.vsplit(tf.ones([4, 2]), 2)] -> [(2, 2), (2, 2)]", returns="list[Tensor]")
dsplit = row("dsplit", lambda x, indices_or_sections: split(convert_to_tensor(x), indices_or_sections, 2),
    "`split` along the third axis.",
    "[tuple(part.shape) for part in tf.keras.ops.dsplit(tf.ones([1, 2, 4]), 2)] -> [(1, 2, 2), (1, 2, 2)]",
    returns="list[Tensor]")
broadcast_to = row("broadcast_to", lambda x, shape: tf.broadcast_to(convert_to_tensor(x), shape),
    "Repeated along axes of size 1, and new ones in front, to a shape.",
    "print(tf.keras.ops.broadcast_to([1, 2], (2, 2)).numpy().tolist()) -> [[1, 2], [1, 2]]", cost=cost_of_anything,
    same=tf.broadcast_to)
repeat = row("repeat", lambda x, repeats, axis=None: tf.repeat(convert_to_tensor(x), repeats, axis),
    "Each element repeated, the same number of times or each its own; of the flattened tensor if `axis` is None.",
    "print(tf.keras.ops.repeat([1, 2], 2).numpy()) -> [1 1 2 2]", cost=cost_of_anything, same=tf.repeat)
ndim = row("ndim", lambda x: convert_to_tensor(convert_to_tensor(x).ndim), "The number of axes.",
    "print(tf.keras.ops.ndim([[1, 2]]).numpy()) -> 2")
size = row("size", lambda x: convert_to_tensor(_math.prod(convert_to_tensor(x).shape)), "The number of elements.",
    "print(tf.keras.ops.size([[1, 2]]).numpy()) -> 2")
flip = row("flip",
    lambda x, axis=None:
        tf.reverse(x, list(range(x.ndim)) if axis is None else axis if isinstance(axis, (list, tuple)) else [axis]),
    "Backwards along axes, all if None.", "print(tf.keras.ops.flip([1, 2, 3]).numpy()) -> [3 2 1]",
    takes=anything, types={"axis": "Any"}, same=tf.reverse)
stack = row("stack", lambda x, axis=0: tf.stack(_several(x), axis), "Tensors of one shape along a new axis.",
    "print(tf.keras.ops.stack([[1, 2], [3, 4]], axis=1).numpy().tolist()) -> [[1, 3], [2, 4]]",
    types={"x": "Sequence[TensorLike]", "axis": "int"}, same=tf.stack)
hsplit = row("hsplit", lambda x, indices_or_sections: split(x, indices_or_sections, min(1, x.ndim - 1)),
    "`split` along the second axis, of vectors along their only one.",
    "[tuple(part.shape) for part in tf.keras.ops.hsplit(tf.ones([2, 4]), 2)] -> [(2, 2), (2, 2)]",
    takes=anything, returns="list[Tensor]")
meshgrid = row("meshgrid", lambda *x, indexing="xy": creation.meshgrid(*map(convert_to_tensor, x), indexing=indexing),
    "The coordinates of a grid from those along its axes; with 'xy' the first two axes change places.",
    "[one.numpy().tolist() for one in tf.keras.ops.meshgrid([1, 2], [3])] -> [[[1, 2]], [[3, 3]]]", returns="list[Tensor]")
rot90 = row("rot90", lambda array, k=1, axes=(0, 1): tf.turned_by_quarters(array, k, axes),
    "Turned by k quarters from the first of two axes towards the second.",
    "print(tf.keras.ops.rot90([[1, 2], [3, 4]]).numpy().tolist()) -> [[2, 4], [1, 3]]",
    takes=anything, types={"array": "TensorLike", "k": "int", "axes": "Any"})
# fmt: on

# Picking -----------------------------------------------------------------------------------------------------------------


@operation(counts=True, same=choose)
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
    x, axis = (tf.reshape(x, [-1]), 0) if axis is None else (x, axis)
    axis = negative_axis(axis, x.ndim, "take")
    return indexing.gather(x, _from_front(indices, x.shape[axis]), axis=axis)


@operation(same=indexing.take_along_axis)
def take_along_axis(x: TensorLike, indices: TensorLike, axis: int | None = None) -> Tensor:
    """For each place the element at a position along an axis; of the flattened tensor if `axis` is None.

    >>> print(tf.keras.ops.take_along_axis([[1, 2], [3, 4]], [[1], [0]], axis=1).numpy().tolist())
    [[2], [3]]
    """
    x = convert_to_tensor(x)
    if axis is None:
        return take_along_axis(tf.reshape(x, [-1]), tf.reshape(convert_to_tensor(indices), [-1]), 0)
    axis = negative_axis(axis, x.ndim, "take_along_axis")
    return indexing.take_along_axis(x, _from_front(indices, x.shape[axis]), axis)


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
    if x.ndim < 2:
        raise ShapeError(f"tril, triu: matrices (..., n, m) are needed, found shape {tuple(x.shape)}.")
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
    moved = tf.transpose(x, [*(axis for axis in range(x.ndim) if axis not in (first, second)), first, second])
    flat = tf.reshape(moved, [*moved.shape[:-2], rows * columns])
    begin = max(offset, 0) - min(offset, 0) * columns
    return indexing.gather(flat, np.arange(length) * (columns + 1) + begin, axis=-1)


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
    square = tf.reshape(tf.pad(x[:, None], [[0, 0], [0, length]]), [-1])[: length * length] if length else x
    before, after = max(k, 0), max(-k, 0)
    return tf.pad(tf.reshape(square, [length, length]), [[after, before], [before, after]])


@operation(cost=cost_of_anything)
def diagflat(x: TensorLike, k: int = 0) -> Tensor:
    """A matrix with the flattened tensor on its k-th diagonal.

    >>> print(tf.keras.ops.diagflat([[1, 2]]).numpy().tolist())
    [[1, 0], [0, 2]]
    """
    flat = tf.reshape(convert_to_tensor(x), [-1])
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


def array(x: TensorLike, dtype: DTypeLike = None) -> Any:
    """The value as a Tensor of a dtype.

    >>> print(tf.keras.ops.array([1, 2]).numpy())
    [1 2]
    """
    if isinstance(x, KerasTensor):
        return _array(x, dtype)
    x = convert_to_tensor(x)
    return x if dtype is None else cast(x, dtype)


@operation(name="Array")
def _array(x: TensorLike, dtype: DTypeLike = None) -> Tensor:
    return array(convert_to_tensor(x), dtype)


@operation(cost=cost_of_anything)
def arange(start: TensorLike, stop: TensorLike = None, step: TensorLike = None, dtype: DTypeLike = None) -> Tensor:
    """start, start + step, and so on, below `stop`; from 0 to `start` if there is no `stop`.

    >>> print(tf.keras.ops.arange(3).numpy(), tf.keras.ops.arange(1, 2, 0.5).numpy())
    [0 1 2] [1.  1.5]
    """
    limits = (0, start) if stop is None else (start, stop)
    found = result_type(*(getattr(one, "dtype", type(one)) for one in (start, stop, step) if one is not None))
    given = (*limits, 1 if step is None else step)  # 0.3 / 0.1 of float32 is more than 3
    numbers = [convert_to_tensor(exact(one, "float64" if isinstance(one, float) else None)).numpy() for one in given]
    if not numbers[-1]:
        raise InvalidArgumentError(f"arange: step must not be zero, found {step}.")
    if dtype is None:  # int64 for integers that int32 does not hold
        dtype = "int64" if found == "int32" and any(one.dtype == "int64" for one in numbers) else found
    if all(isinstance(one, np.integer) for one in numbers):
        numbers = [operator.index(one) for one in numbers]  # a sum in int32 may not fit into it
    return cast(convert_to_tensor(np.arange(*numbers)), dtype)


@operation
def view(x: TensorLike, dtype: DTypeLike = None) -> Tensor:
    """The same bytes as another dtype: the last axis has more elements of a smaller one, fewer of a larger one.

    Raises:
        DTypeError: if the bytes of the last axis are no whole number of elements, or there is none.

    >>> print(tf.keras.ops.view([1.0], "int32").numpy(), tf.keras.ops.view([[1, 2, 3]], "int16").shape)
    [1065353216] (1, 6)
    """
    x = convert_to_tensor(x)
    wanted = x.dtype if dtype is None else as_dtype(dtype)
    if wanted.size == x.dtype.size:
        return bitcast(x, wanted)
    count, rest = divmod(x.shape[-1] * x.dtype.size, wanted.size) if x.ndim else (0, 1)
    if rest:
        raise DTypeError(f"view: the last axis of {x.dtype.name}{list(x.shape)} does not hold whole {wanted.name}s.")
    parts = [count, wanted.size // x.dtype.size] if wanted.size > x.dtype.size else x.shape[-1:]
    return tf.reshape(bitcast(tf.reshape(x, [*x.shape[:-1], *parts]), wanted), [*x.shape[:-1], count])


@operation(cost=cost_of_anything)
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Any:
    """Numbers at equal distances from `start` to `stop`, which is left out if `endpoint` is False.

    Returns:
        A Tensor with a new axis; with `retstep` the distance too.

    >>> print(tf.keras.ops.linspace(0, 1, 3).numpy())
    [0.  0.5 1. ]
    """
    first, last = map(floating, promoted(exact(start, dtype), exact(stop, dtype)))
    num = integer(num)
    parts = num - 1 if endpoint else num
    step = (last - first) / max(parts, 1) if parts else (last - first) * float("nan")
    found = creation.linspace(first, last if endpoint else first + step * (num - 1), num, axis=axis)
    found = found if dtype is None else cast(found, dtype)
    return (found, step) if retstep else found


def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Tensor:
    """Powers of `base` with exponents at equal distances.

    >>> print(tf.keras.ops.logspace(0, 2, 3).numpy())
    [  1.  10. 100.]
    """
    exponents = linspace(exact(start, dtype), exact(stop, dtype), num, endpoint, axis=axis)
    found = pow(cast(exact(base, exponents.dtype), exponents.dtype), exponents)
    return found if dtype is None else cast(found, dtype)


@operation(cost=cost_of_anything)
def geomspace(
    start: TensorLike, stop: TensorLike, num: int = 50, endpoint: bool = True, dtype: DTypeLike = None, axis: int = 0
) -> Tensor:
    """Numbers at equal quotients from `start` to `stop`, two numbers of one sign.

    >>> print(tf.keras.ops.geomspace(1, 100, 3).numpy())
    [  1.  10. 100.]
    """
    first, last = map(floating, promoted(exact(start, dtype), exact(stop, dtype)))
    ratio = last / first
    base, quotient = tf.expand_dims(tf.broadcast_to(first, ratio.shape), axis), tf.expand_dims(ratio, axis)
    found = base * pow(quotient, linspace(creation.zeros_like(ratio), creation.ones_like(ratio), num, endpoint, axis=axis))
    return found if dtype is None else cast(found, dtype)


# Windows of signals --------------------------------------------------------------------------------------------------------


def _window(function: Callable[..., Any], places: Any, *options: float) -> Tensor:
    return cast(convert_to_tensor(function(int(convert_to_tensor(places).numpy()), *options)), config.floatx())


# fmt: off
full = row("full",
    lambda shape, fill_value, dtype=None: tf.broadcast_to(
        cast(convert_to_tensor(exact(fill_value, dtype or config.floatx())), dtype or config.floatx()), static_shape(shape)),
    "One value, or what can be broadcast, in every place.", "print(tf.keras.ops.full((2,), 7.0).numpy()) -> [7. 7.]",
    cost=cost_of_anything)
zeros_like = row("zeros_like", lambda x, dtype=None: creation.zeros_like(convert_to_tensor(x), dtype),
    "Zeros of the shape of `x`, and of its dtype if no other one is given.",
    "print(tf.keras.ops.zeros_like([1, 2]).numpy()) -> [0 0]")
ones_like = row("ones_like", lambda x, dtype=None: creation.ones_like(convert_to_tensor(x), dtype),
    "Ones of the shape of `x`, and of its dtype if no other one is given.",
    "print(tf.keras.ops.ones_like([1, 2]).numpy()) -> [1 1]")
empty_like = row("empty_like", lambda x, dtype=None: creation.zeros_like(convert_to_tensor(x), dtype),
    "Elements of any values, zeros here, in the shape of `x`.", "tf.keras.ops.empty_like([1, 2]).shape -> TensorShape([2])")
zeros = plain_row("zeros", lambda shape, dtype=None: takes_symbols(creation.zeros)(shape, dtype or config.floatx()), "Zeros.",
    "print(tf.keras.ops.zeros((2,)).numpy()) -> [0. 0.]")
ones = plain_row("ones", lambda shape, dtype=None: takes_symbols(creation.ones)(shape, dtype or config.floatx()), "Ones.",
    "print(tf.keras.ops.ones((2,)).numpy()) -> [1. 1.]")
empty = plain_row("empty", lambda shape, dtype=None: zeros(shape, dtype), "Elements of any values; zeros here.",
    "tf.keras.ops.empty((2, 3)).shape -> TensorShape([2, 3])")
full_like = row("full_like",
    lambda x, fill_value, dtype=None: full(convert_to_tensor(x).shape, fill_value, dtype or convert_to_tensor(x).dtype),
    "One value in every place of the shape of `x`, in its dtype if no other one is given.",
    "print(tf.keras.ops.full_like([1, 2], 7).numpy()) -> [7 7]")
bartlett = plain_row("bartlett", lambda x: _window(np.bartlett, x), "The triangular window of so many places.",
    "print(tf.keras.ops.bartlett(3).numpy()) -> [0. 1. 0.]", types={"x": "int"})
blackman = plain_row("blackman", lambda x: _window(np.blackman, x),
    "Blackman's window: 0.42 - 0.5 cos(2 pi n / (x - 1)) + 0.08 cos(4 pi n / (x - 1)).",
    "print(tf.keras.ops.blackman(3).numpy().round(4) + 0.0) -> [0. 1. 0.]", types={"x": "int"})
hamming = plain_row("hamming", lambda x: _window(np.hamming, x), "Hamming's window: 0.54 - 0.46 cos(2 pi n / (x - 1)).",
    "print(tf.keras.ops.hamming(3).numpy()) -> [0.08 1.   0.08]", types={"x": "int"})
hanning = plain_row("hanning", lambda x: _window(np.hanning, x), "Hann's window: 0.5 - 0.5 cos(2 pi n / (x - 1)).",
    "print(tf.keras.ops.hanning(3).numpy()) -> [0. 1. 0.]", types={"x": "int"})
kaiser = plain_row("kaiser", lambda x, beta: _window(np.kaiser, x, float(convert_to_tensor(beta).numpy())),
    "Kaiser's window: I0(beta sqrt(1 - (2n / (x - 1) - 1)**2)) / I0(beta).",
    "print(tf.keras.ops.kaiser(3, 5.0).numpy().round(4)) -> [0.0367 1.     0.0367]",
    types={"x": "int", "beta": "float"})
eye = plain_row("eye",
    lambda N, M=None, k=0, dtype=None: convert_to_tensor(np.eye(N, M, k, dtype=as_dtype(dtype or config.floatx()).numpy)),
    "N rows and M columns with ones on the k-th diagonal.",
    "print(tf.keras.ops.eye(2).numpy().tolist()) -> [[1.0, 0.0], [0.0, 1.0]]")
identity = plain_row("identity", lambda n, dtype=None: eye(n, dtype=dtype), "The identity matrix.",
    "print(tf.keras.ops.identity(2).numpy().tolist()) -> [[1.0, 0.0], [0.0, 1.0]]")
tri = plain_row("tri", lambda N, M=None, k=0, dtype=None: tril(ones((N, N if M is None else M), dtype), k),
    "Ones on and below the k-th diagonal, else zeros.",
    "print(tf.keras.ops.tri(2).numpy().tolist()) -> [[1.0, 0.0], [1.0, 1.0]]")
vander = row("vander",
    lambda x, N=None, increasing=False:
        pow(x[:, None], cast(np.arange(x.shape[0] if N is None else N)[:: 1 if increasing else -1], x.dtype)),
    "Powers of a vector as columns: N of them, the highest first, or 1, x, x**2, and so on.",
    "print(tf.keras.ops.vander([1, 2, 3], increasing=True).numpy().tolist()) -> [[1, 1, 1], [1, 2, 4], [1, 3, 9]]",
    takes=anything, types={"N": "int | None"}, cost=cost_of_anything)
# fmt: on
