"""Reading and writing at positions: slices, gathers, scatters, masks, and segments, the slices that share a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import BatchedTensor, Tensor, all_values, check_values, convert_to_tensor, read
from ..core.ops import arithmetic, indexing, reductions, shaping, transcendental
from ..errors import InvalidArgumentError, ShapeError
from ..nn_ops import segments
from ..types import ShapeLike, TensorLike
from .catalogue import name_like_definition, row
from .elementwise import cast
from .operands import beside, inexact, integer, negative_axis, rounded_once, static_shape, tensor
from .shaping import concat, reshape, stack, transpose


def slice_(input_: TensorLike, begin: Any, size: int | Sequence[int], name: str | None = None) -> Tensor:
    """The block that starts at `begin` and has the given sizes; -1 stands for the rest of an axis.

    >>> print(tf.slice([1, 2, 3, 4], [1], [2]).numpy())
    [2 3]
    """
    x, begin = tensor(input_), read(begin)
    if isinstance(begin, BatchedTensor):
        return _slice_of_each(x, begin, static_shape(size))
    starts, sizes = static_shape(begin), static_shape(size)
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise ShapeError(f"slice: begin {list(starts)} and size {list(sizes)} need one entry for each axis of {x.shape}.")
    for start, length, whole in zip(starts, sizes, x.shape, strict=True):
        if start < 0 or length < -1 or start + max(length, 0) > whole:
            raise InvalidArgumentError(
                f"slice: begin {list(starts)} and size {list(sizes)} leave the tensor of shape {x.shape}."
            )
    key = tuple(slice(start, None if length == -1 else start + length) for start, length in zip(starts, sizes, strict=True))
    return indexing.strided_slice(x, key=(Ellipsis, *key), shape=tuple(x.shape))


def _slice_of_each(x: Tensor, begin: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Blocks of one size that begin elsewhere for each of many slices."""
    if begin.shape != (x.ndim,) or len(sizes) != x.ndim or min(sizes, default=0) < 0:
        raise ShapeError(
            f"slice: begin of shape {begin.shape} and size {list(sizes)} for a tensor of shape {x.shape}: each axis needs an "
            "entry, and inside vectorized_map, where each slice begins elsewhere, a size >= 0."
        )
    for axis, length in enumerate(sizes, -x.ndim):
        rows = begin[axis] + beside(x, np.arange(length), begin.dtype)
        x = indexing.gather_rows(x, _checked_indices("slice", rows, x, axis), axis=axis)
    return x


def strided_slice(
    input_: TensorLike,
    begin: Any,
    end: Any,
    strides: int | Sequence[int] | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    name: str | None = None,
) -> Tensor:
    """The elements from `begin` to `end`, which is left out, in steps, along the first axes.

    Bit i of a mask is about entry i: it goes from the first element or to the last one, stands for an ellipsis or for a new
    axis, or picks the element at `begin` alone.

    >>> print(tf.strided_slice([1, 2, 3, 4], [0], [4], [2]).numpy())
    [1 3]
    """
    starts, stops = static_shape(begin), static_shape(end)
    steps = static_shape(strides) if strides is not None else (1,) * len(starts)
    key: list[Any] = [slice(*bounds) for bounds in zip(starts, stops, steps, strict=True)]
    for i, part in enumerate(key):
        of_first, of_last, rest, new, one = (
            mask >> i & 1 for mask in (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
        )
        within = slice(None if of_first else part.start, None if of_last else part.stop, part.step)
        key[i] = Ellipsis if rest else None if new else part.start if one else within
    return indexing.getitem(input_, tuple(key))


def _checked_indices(name: str, indices: TensorLike, x: Tensor, axis: int) -> Tensor:
    """Integer indices, each within the size of an axis of `x`."""
    return indexing.checked_indices(name, beside(x, indices), x.shape[axis])


def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: Any = None,
    axis: int | None = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Tensor:
    """Slices of `params` along an axis, picked by index.

    Args:
        params: where to read.
        indices: integer tensor of any shape, values in [0, size of the axis).
        validate_indices: accepted for compatibility, ignored; indices are always checked.
        axis: along which to pick; `batch_dims` by default.
        batch_dims: number of leading axes that both have in common; if negative, counted from the rank of `indices`.

    Returns:
        Shape: params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]. Along the first axis the gradient for
        `params` is a `tf.IndexedSlices`.

    Raises:
        InvalidArgumentError: if an index is out of range.
        ShapeError: if the leading axes differ, or `axis` is one of them.

    >>> print(tf.gather([10.0, 20.0, 30.0], [2, 0]).numpy())
    [30. 10.]
    """
    x = tensor(params)
    where = beside(x, indices)
    shared = _shared_axes("gather", x, where, batch_dims)
    place = negative_axis(shared if axis is None else axis, x.ndim, "gather")
    if place + x.ndim < shared:
        raise ShapeError(f"gather: axis {axis} is one of the {shared} leading axes that batch_dims={batch_dims} names.")
    where = _checked_indices("gather", where, x, place)
    if not shared:
        return (indexing.look_up if place == -x.ndim else indexing.gather_rows)(x, where, axis=place)
    return _batched_gather(x, where, place + x.ndim, shared)


def _shared_axes(name: str, x: Tensor, where: Tensor, batch_dims: int) -> int:
    """Number of leading axes that values and indices have in common; a negative number counts from the rank of the indices."""
    count = integer(batch_dims or 0)
    if not -where.ndim <= count <= where.ndim:
        raise ShapeError(f"{name}: batch_dims={count} is out of range for indices with {where.ndim} axes.")
    count = count + where.ndim if count < 0 else count
    if count > x.ndim or tuple(x.shape[:count]) != tuple(where.shape[:count]):
        raise ShapeError(
            f"{name}: with batch_dims={batch_dims} the first {count} axes of params {x.shape} and indices {where.shape} must "
            "agree."
        )
    return count


def _batched_gather(x: Tensor, where: Tensor, axis: int, batch_dims: int) -> Tensor:
    """Each leading position has its own indices: one gather from the flattened leading axes."""
    lead, size = tuple(x.shape[:batch_dims]), x.shape[axis]
    order = [*range(batch_dims), axis, *(i for i in range(batch_dims, x.ndim) if i != axis)]
    rest = [x.shape[i] for i in order[batch_dims + 1 :]]
    count = int(np.prod(lead))
    rows = reshape(transpose(x, order), (count * size, *rest))
    offsets = (np.arange(count) * size).reshape(lead + (1,) * (where.ndim - batch_dims))
    picked = indexing.gather_rows(rows, arithmetic.cast(where, dtype="int64") + beside(x, offsets), axis=-1 - len(rest))
    inner = where.ndim - batch_dims
    before = axis - batch_dims
    turned = [*range(batch_dims)]
    turned += [batch_dims + inner + i for i in range(before)]
    turned += [batch_dims + i for i in range(inner)]
    turned += [batch_dims + inner + i for i in range(before, len(rest))]
    return transpose(picked, turned)


def gather_nd(params: TensorLike, indices: TensorLike, batch_dims: int = 0, name: str | None = None) -> Tensor:
    """Elements or slices picked by tuples of indices in the last axis of `indices`.

    Args:
        params: where to read.
        indices: integer tensor (..., n); a tuple of n coordinates addresses the first n axes behind those of the batch.
        batch_dims: number of leading axes that both have in common.

    Returns:
        Shape: indices.shape[:-1] + params.shape[batch_dims + n:].

    Raises:
        InvalidArgumentError: if an index is out of range.
        ShapeError: if the leading axes differ.

    >>> print(tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]]).numpy())
    [2 3]
    """
    x = tensor(params)
    where = beside(x, indices)
    shared = _shared_axes("gather_nd", x, where, batch_dims)
    if shared == where.ndim and shared:
        raise ShapeError(f"gather_nd: batch_dims={batch_dims} leaves no axis of indices {where.shape} for the tuples.")
    where = _checked_tuples("gather_nd", where, tuple(x.shape[shared:]), x)
    return indexing.gather_nd(x, _with_batch_coordinates(where, shared) if shared else where)


def _with_batch_coordinates(where: Tensor, count: int) -> Tensor:
    """Index tuples with their own position along the leading axes in front."""
    places = np.indices(tuple(where.shape[:count])).reshape(count, *where.shape[:count], *[1] * (where.ndim - 1 - count))
    own = np.broadcast_to(np.moveaxis(places, 0, -1), (*where.shape[:-1], count))
    return shaping.concat(beside(where, own.astype("int64")), arithmetic.cast(where, dtype="int64"), axis=-1)


def _checked_tuples(name: str, indices: TensorLike, shape: tuple[int, ...], x: Tensor) -> Tensor:
    """Index tuples in the last axis, each within the shape, on the device of `x`."""
    where = beside(x, indices)
    if not where.dtype.is_integer or not where.ndim or where.shape[-1] > len(shape):
        raise InvalidArgumentError(
            f"{name}: indices {where.dtype.name}{list(where.shape)} must be integers, at most {len(shape)} a tuple."
        )

    def within(values: np.ndarray[Any, Any]) -> None:
        limits = np.asarray(shape[: values.shape[-1]])
        if values.size and ((values < 0) | (values >= limits)).any():
            bad = values.reshape(-1, values.shape[-1])[((values < 0) | (values >= limits)).any(-1).reshape(-1)][0]
            raise InvalidArgumentError(f"{name}: indices = {bad.tolist()} does not index into shape {list(shape)}.")

    check_values(where, within)
    return where


def scatter_nd(indices: TensorLike, updates: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """Zeros of a shape with `updates` added at index tuples; repeated positions add up.

    >>> print(tf.scatter_nd([[1], [1]], [2.0, 3.0], [3]).numpy())
    [0. 5. 0.]
    """
    whole, values = static_shape(shape), tensor(updates)
    return indexing.scatter_nd(values, _checked_places("scatter_nd", indices, values, whole), shape=whole)


def _checked_places(name: str, indices: TensorLike, updates: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Index tuples into a shape, with one update for each; nothing is broadcast."""
    where = _checked_tuples(name, indices, shape, updates)
    depth = where.shape[-1]
    if not depth:
        raise InvalidArgumentError(f"{name}: indices {where.shape} hold tuples without a coordinate, which name no place.")
    expected = (*where.shape[:-1], *shape[depth:])
    if tuple(updates.shape) != expected:
        raise ShapeError(
            f"{name}: indices {where.shape} into shape {shape} need updates of shape {expected}, found {updates.shape}. "
            "Broadcast them: tf.broadcast_to(updates, shape)."
        )
    return where


def _with_scattered(name: str, tensor: TensorLike, indices: TensorLike, updates: TensorLike) -> tuple[Tensor, Tensor]:
    """The tensor, and zeros like it with the updates added at index tuples."""
    x = convert_to_tensor(tensor)
    values, shape = beside(x, updates, x.dtype), tuple(x.shape)
    return x, indexing.scatter_nd(values, _checked_places(name, indices, values, shape), shape=shape)


def tensor_scatter_nd_update(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
    """The tensor with the elements at index tuples replaced by `updates`; positions should not repeat.

    >>> print(tf.tensor_scatter_nd_update([1.0, 1.0], [[0]], [5.0]).numpy())
    [5. 1.]
    """
    x = convert_to_tensor(tensor)
    values = beside(x, updates, x.dtype)
    where = _checked_places("tensor_scatter_nd_update", indices, values, tuple(x.shape))
    return indexing.overwrite_nd(x, where, values)


def boolean_mask(tensor: TensorLike, mask: TensorLike, axis: int | None = None, name: str = "boolean_mask") -> Tensor:
    """The elements where a boolean mask is true, along the axes that the mask covers.

    >>> print(tf.boolean_mask([1, 2, 3], [True, False, True]).numpy())
    [1 3]
    """
    x = convert_to_tensor(tensor)
    start = negative_axis(axis or 0, max(x.ndim, 1), "boolean_mask") + max(x.ndim, 1)
    return indexing.masked(x, convert_to_tensor(mask), start)


def take_along_axis(arr: TensorLike, indices: TensorLike, axis: int) -> Tensor:
    """Elements picked along an axis, with indices of the same rank, as `numpy.take_along_axis`.

    >>> print(tf.take_along_axis([[10, 20]], [[1]], axis=1).numpy())
    [[20]]
    """
    x = tensor(arr)
    place = negative_axis(axis, x.ndim, "take_along_axis")
    return indexing.take_along(x, _checked_indices("take_along_axis", indices, x, place), axis=place)


def reverse_sequence(
    input: TensorLike, seq_lengths: TensorLike, seq_axis: int = 1, batch_axis: int = 0, name: str | None = None
) -> Tensor:
    """The first elements of each sequence turned around, as many as its length says; the rest stays.

    >>> print(tf.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3]).numpy().tolist())
    [[2, 1, 3], [6, 5, 4]]
    """
    x = tensor(input)
    along, batch = (negative_axis(axis, x.ndim, "reverse_sequence") for axis in (seq_axis, batch_axis))
    lengths = arithmetic.cast(beside(x, seq_lengths), dtype="int64")
    if tuple(lengths.shape) != (x.shape[batch],) or along == batch:
        raise ShapeError(
            f"reverse_sequence: seq_lengths {lengths.shape} for {x.shape}: give one for each of the {x.shape[batch]} sequences."
        )
    size, shape = x.shape[along], [1] * x.ndim

    def reach(values: np.ndarray[Any, Any]) -> None:
        if values.size and (values.min() < 0 or values.max() > size):
            raise InvalidArgumentError(f"reverse_sequence: seq_lengths {values.tolist()!r:.80} are not in [0, {size}].")

    check_values(lengths, reach)
    shape[along] = size
    places = beside(x, np.arange(size).reshape(shape), "int64")
    lengths = reshape(lengths, [-1 if axis == batch else 1 for axis in range(-x.ndim, 0)])
    turned = arithmetic.select(places < lengths, lengths - 1 - places, places)
    return indexing.take_along(x, shaping.broadcast_to(turned, shape=tuple(x.shape), rank=x.ndim), axis=along)


def _extremum_at(
    name: str, primitive: Any, combine: Any, tensor: TensorLike, indices: TensorLike, updates: TensorLike
) -> Tensor:
    """The elements of a tensor combined with updates at index tuples, by way of segments numbered in row-major order."""
    x = convert_to_tensor(tensor)
    values, shape = beside(x, updates, x.dtype), tuple(x.shape)
    where = arithmetic.cast(_checked_places(name, indices, values, shape), dtype="int64")
    depth = where.shape[-1]
    steps = np.append(np.cumprod(shape[:depth][:0:-1])[::-1], 1).astype("int64")
    numbers = reductions.reduce_sum(where * beside(where, steps), axes=(-1,), keepdims=False)
    found = primitive(values, numbers, axis=depth - x.ndim - 1, size=math.prod(shape[:depth]))
    return combine(x, reshape(found, shape))


def unravel_index(indices: TensorLike, dims: ShapeLike, name: str | None = None) -> Tensor:
    """The coordinates of elements by their numbers in row-major order: (number of axes, ...).

    >>> print(tf.unravel_index([2, 5], [3, 3]).numpy().tolist())
    [[0, 1], [2, 2]]
    """
    numbers, sizes = tensor(indices), static_shape(dims)
    indexing.check_range("unravel_index", "indices", numbers, math.prod(sizes))
    parts = []
    for size in reversed(sizes):
        parts.append(numbers % size)
        numbers = numbers // size
    return stack(parts[::-1])


def dynamic_partition(data: TensorLike, partitions: TensorLike, num_partitions: int, name: str | None = None) -> list[Tensor]:
    """The slices along the first axes dealt out: part i holds those whose number in `partitions` is i.

    >>> [part.numpy().tolist() for part in tf.dynamic_partition([1, 2, 3], [0, 1, 0], 2)]
    [[1, 3], [2]]
    """
    x, count = tensor(data), integer(num_partitions)
    numbers = beside(x, partitions)
    indexing.check_range("dynamic_partition", "partitions", numbers, count)
    return [boolean_mask(x, numbers == i) for i in range(count)]


def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """The inverse of `dynamic_partition`: slice data[m][i] comes to lie at indices[m][i]; of several for one place the last.

    >>> print(tf.dynamic_stitch([[0, 2], [1]], [[1, 3], [2]]).numpy())
    [1 2 3]
    """
    parts = [tensor(one) for one in data]
    places = [beside(x, one) for x, one in zip(parts, indices, strict=True)]
    rows = [reshape(x, (-1, *x.shape[place.ndim :])) for place, x in zip(places, parts, strict=True)]
    where, values = concat([reshape(place, (-1,)) for place in places], 0), concat(rows, 0)
    numbers = all_values(where)
    if (numbers < 0).any():
        raise InvalidArgumentError(f"dynamic_stitch: indices must be 0 or more, found {numbers.tolist()!r:.80}.")
    size = int(numbers.max(initial=-1)) + 1
    whole = shaping.broadcast_to(arithmetic.zeros_like(values)[:1], shape=(size, *values.shape[1:]), rank=values.ndim)
    return indexing.overwrite_nd(whole, reshape(where, (-1, 1)), values)


# fmt: off
tensor_scatter_nd_max = row("tensor_scatter_nd_max",
    lambda tensor, indices, updates, name=None:
        _extremum_at("tensor_scatter_nd_max", segments.segment_max, arithmetic.maximum, tensor, indices, updates),
    "The tensor with the elements at index tuples replaced by updates that are larger; at a tie the gradient is the tensor's.",
    "print(tf.tensor_scatter_nd_max([1.0, 1.0], [[0], [1]], [5.0, 0.0]).numpy()) -> [5. 1.]")
tensor_scatter_nd_min = row("tensor_scatter_nd_min",
    lambda tensor, indices, updates, name=None:
        _extremum_at("tensor_scatter_nd_min", segments.segment_min, arithmetic.minimum, tensor, indices, updates),
    "The tensor with the elements at index tuples replaced by updates that are smaller; at a tie the gradient is the tensor's.",
    "print(tf.tensor_scatter_nd_min([1.0, 1.0], [[0], [1]], [5.0, 0.0]).numpy()) -> [1. 0.]")
tensor_scatter_nd_add = row("tensor_scatter_nd_add",
    lambda tensor, indices, updates, name=None:
        arithmetic.add(*_with_scattered("tensor_scatter_nd_add", tensor, indices, updates)),
    "The tensor with `updates` added at index tuples.",
    "print(tf.tensor_scatter_nd_add([1.0, 1.0], [[0]], [5.0]).numpy()) -> [6. 1.]")
tensor_scatter_nd_sub = row("tensor_scatter_nd_sub",
    lambda tensor, indices, updates, name=None:
        arithmetic.subtract(*_with_scattered("tensor_scatter_nd_sub", tensor, indices, updates)),
    "The tensor with `updates` subtracted at index tuples.",
    "print(tf.tensor_scatter_nd_sub([1.0, 1.0], [[0]], [5.0]).numpy()) -> [-4.  1.]")
# fmt: on


# Segments: sums, means, extrema and products of slices that share a number, sorted or not ------------------------------


_DOCUMENTATION = """{summary} of each segment: of the slices along the first axes whose number is the same.

Args:
    data: tensor of at least the rank of `segment_ids`.
    segment_ids: {ids}

Returns:
    A Tensor (number of segments, ...). Derivative: {derivative}. A segment without slices gives {empty}.

Raises:
    InvalidArgumentError: if a number {wrong}.
    ShapeError: if there is not one number for each slice.

>>> print(tf.math.{name}([1.0, 2.0, 3.0], [0, 0, 1]{argument}).numpy())
{expected}
"""


def _sum(x: Tensor, ids: Tensor, axis: int, size: int) -> Tensor:
    return indexing.add_rows(x, ids, axis=axis, size=size)


def _counts(x: Tensor, ids: Tensor, axis: int, size: int) -> Tensor:
    """The number of slices in each segment, beside its results."""
    counts = _sum(beside(x, np.ones(tuple(ids.shape), "int32")), ids, axis=-1, size=size)
    return reshape(counts, (size, *(1,) * (-1 - axis)))


def _divisor(x: Tensor, ids: Tensor, axis: int, size: int) -> Tensor:
    return cast(arithmetic.maximum(_counts(x, ids, axis, size), 1), x.dtype)


@rounded_once
def _mean(x: Tensor, ids: Tensor, axis: int, size: int) -> Tensor:
    """The mean of each segment; of integers it is float64, as any quotient."""
    return arithmetic.divide(_sum(x, ids, axis, size), _divisor(x, ids, axis, size))


def _sorted_mean(x: Tensor, ids: Tensor, axis: int, size: int) -> Tensor:
    """The mean of each segment; of integers it is an integer, rounded toward zero."""
    mean = _mean(x, ids, axis, size)
    return cast(mean, x.dtype) if x.dtype.is_integer else mean


@rounded_once
def _sqrt_n(x: Tensor, ids: Tensor, axis: int, size: int) -> Tensor:
    inexact("unsorted_segment_sqrt_n", x)
    return _sum(x, ids, axis, size) / transcendental.sqrt(_divisor(x, ids, axis, size))


_Reduce = Callable[..., Tensor]


def _checked(name: str, data: TensorLike, segment_ids: TensorLike) -> tuple[Tensor, Tensor]:
    """The slices and their numbers, one for each."""
    x = tensor(data)
    ids = beside(x, segment_ids)
    if not ids.dtype.is_integer or tuple(x.shape[: ids.ndim]) != tuple(ids.shape):
        raise ShapeError(
            f"{name}: needs integers as segment_ids, one for each slice of data {x.shape} along the first axes, found "
            f"{ids.dtype.name}{list(ids.shape)}."
        )
    return x, ids


def _unsorted(reduce: _Reduce, name: str, summary: str, derivative: str, empty: str, expected: str) -> Callable[..., Tensor]:
    """The public function for numbers in any order, of a given number of segments."""

    def function(data: TensorLike, segment_ids: TensorLike, num_segments: Any, name: str | None = None) -> Tensor:
        x, ids = _checked(function.__name__, data, segment_ids)
        size = integer(num_segments)

        def below(values: np.ndarray[Any, Any]) -> None:
            if values.size and values.max() >= size:
                raise InvalidArgumentError(
                    f"{function.__name__}: segment_ids = {values.max()} is not in [0, {size}). Give a larger num_segments."
                )

        check_values(ids, below)
        ids = arithmetic.select(ids < 0, size, ids)  # what belongs nowhere goes into one more segment, which is left out
        return reduce(x, ids, axis=ids.ndim - x.ndim - 1, size=size + 1)[:size]

    ids = "numbers in [0, num_segments), of the first axes of `data`, in any order. Slices with a negative one count nowhere."
    ids += "\n    num_segments: how many segments there are."
    said = {"ids": ids, "wrong": "is num_segments or more", "argument": ", 2", "name": name, "summary": summary}
    text = _DOCUMENTATION.format(derivative=derivative, empty=empty, expected=expected, **said)
    return name_like_definition(function, name, __name__, text)


def _sorted(reduce: _Reduce, name: str, summary: str, derivative: str, empty: str, expected: str) -> Callable[..., Tensor]:
    """The public function for numbers that rise; the last one says how many segments there are."""

    def function(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
        x, ids = _checked(function.__name__, data, segment_ids)
        values = all_values(ids)
        if ids.ndim != 1 or (np.diff(values) < 0).any() or (values < 0).any():
            raise InvalidArgumentError(
                f"{function.__name__}: segment_ids must be a vector of numbers >= 0 that never fall, found {values!r:.80}. "
                f"For any other use tf.math.unsorted_{function.__name__}."
            )
        size = int(values.max(initial=-1)) + 1
        result = reduce(x, ids, axis=-x.ndim, size=size)
        if reduce not in (segments.segment_max, segments.segment_min):
            return result
        return arithmetic.select(_counts(x, ids, -x.ndim, size) > 0, result, 0)

    name_like_definition(function, name, __name__)
    ids, wrong = (
        "a vector of numbers that never fall, one for each slice along the first axis.",
        "is negative, or less than the one before",
    )
    said = {"ids": ids, "wrong": wrong, "argument": "", "name": name, "summary": summary}
    text = _DOCUMENTATION.format(derivative=derivative, empty=empty, expected=expected, **said)
    return name_like_definition(function, name, __name__, text)


_TIE, _OTHERS = "1, shared evenly at a tie", "the product of the others, exact with zeros"
# A table: one row for each function.
# fmt: off
unsorted_segment_sum = _unsorted(_sum, "unsorted_segment_sum", "Sum", "1", "0", "[3. 3.]")
unsorted_segment_mean = _unsorted(_mean, "unsorted_segment_mean", "Mean", "1/n", "0", "[1.5 3. ]")
unsorted_segment_sqrt_n = _unsorted(_sqrt_n, "unsorted_segment_sqrt_n", "Sum/sqrt(n)", "n**-0.5", "0", "[2.1213205 3.       ]")
unsorted_segment_max = _unsorted(segments.segment_max, "unsorted_segment_max", "Maximum", _TIE, "the least number", "[2. 3.]")
unsorted_segment_min = _unsorted(segments.segment_min, "unsorted_segment_min", "Minimum", _TIE, "the largest number", "[1. 3.]")
unsorted_segment_prod = _unsorted(segments.segment_prod, "unsorted_segment_prod", "Product", _OTHERS, "1", "[2. 3.]")
segment_sum = _sorted(_sum, "segment_sum", "Sum", "1", "0", "[3. 3.]")
segment_mean = _sorted(_sorted_mean, "segment_mean", "Mean", "1/n", "0", "[1.5 3. ]")
segment_max = _sorted(segments.segment_max, "segment_max", "Maximum", _TIE, "0", "[2. 3.]")
segment_min = _sorted(segments.segment_min, "segment_min", "Minimum", _TIE, "0", "[1. 3.]")
segment_prod = _sorted(segments.segment_prod, "segment_prod", "Product", _OTHERS, "1", "[2. 3.]")
# fmt: on
