"""Slices, gathers and scatters: reading at positions and adding at positions are transposes of each other."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...types import Array, TensorLike
from ..arrays import is_array, namespace, resolve, to_device
from ..batch import BatchedTensor, check_values, own_values
from ..convert import convert_to_tensor
from ..families import linear
from ..indexed_slices import IndexedSlices
from ..primitive import Primitive
from ..registry import operations, register
from ..stack import is_in_step
from ..tensor import Tensor

Key = tuple[Any, ...]
Sizes = tuple[int, ...]


def _put_slice(xp: ModuleType, g: Array, key: Key, shape: Sizes) -> Array:
    described = sum(1 for part in key if part is not None and part is not Ellipsis)
    kept = len(shape) - described + sum(1 for part in key if isinstance(part, slice) or part is None)
    lead = tuple(g.shape[: g.ndim - kept])
    whole = xp.zeros(lead + shape, dtype=g.dtype)
    whole[key] = g
    return whole


strided_slice = linear(
    "strided_slice", lambda xp, x, key, shape: x[key], lambda g, x, key, shape: put_slice(g, key=key, shape=shape), moves=True
)
put_slice: Primitive = linear(
    "put_slice", _put_slice, lambda g, x, key, shape: strided_slice(g, key=key, shape=shape), moves=True
)


def _along(xp: ModuleType, indices: Array, shape: Sizes, axis: int) -> Key:
    """Index arrays that address `indices` along one axis and every position along the others."""
    rank = len(shape)
    return tuple(
        indices if position == rank + axis else xp.arange(size).reshape((1,) * position + (-1,) + (1,) * (rank - position - 1))
        for position, size in enumerate(shape)
    )


def _add_along(xp: ModuleType, g: Array, indices: Array, axis: int, size: int) -> Array:
    shape = (*g.shape[:axis], size, *g.shape[g.ndim + axis + 1 :])
    return _added_at(xp, g, _along(xp, indices, tuple(g.shape), axis), shape)


def _added_at(xp: ModuleType, rows: Array, key: Key, shape: Sizes) -> Array:
    """Zeros, with rows added at the places that index arrays address."""
    if xp is np:
        whole = np.zeros(shape, dtype=rows.dtype)
        np.add.at(whole, key, rows)
        return whole
    lead, rest = shape[: len(key)], shape[len(key) :]
    places = xp.broadcast_to(flat_places(xp, key, lead), rows.shape[: rows.ndim - len(rest)]).ravel()
    found = combined_at(xp, operator.add, rows.reshape((places.shape[0], *rest)), places, math.prod(lead), 0)
    return found.reshape(shape)


take_along = linear(
    "take_along",
    lambda xp, x, indices, axis: xp.take_along_axis(x, indices, axis=axis),
    lambda g, x, indices, axis: [add_along(g, indices, axis=axis, size=x.shape[axis]), None],
    uniform=False,
    batching="lead",
    moves=True,
)
add_along: Primitive = linear(
    "add_along",
    _add_along,
    lambda g, x, indices, axis, size: [take_along(g, indices, axis=axis), None],
    uniform=False,
    batching="fill",
    accumulates=True,
)


def _gather_from_stacks(batch: Any, gather: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """One gather for all: the values of a stack lie one behind the other, and the indices of each start where it does."""
    x, indices = inputs
    axis, rank = params["axis"], len(x.shape)
    if not batch.holds(indices):
        return gather(x.stacked, indices, **params)
    if not batch.holds(x):
        return _moved(gather(x, indices.stacked, **params), rank + axis, 0)
    rows = _moved(x.stacked, rank + 1 + axis, 1)
    rest = tuple(rows.shape[2:])
    rows = operations.reshape(rows, shape=(batch.size * rows.shape[1], *rest), rank=rank + 1)
    picked = gather(rows, _offset(batch, indices, x.shape[axis]), axis=-rank)
    return _axes_moved(picked, 1, len(indices.shape), rank + 1 + axis)


def add_to_stacks(batch: Any, add: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """The transpose of `_gather_from_stacks`."""
    g, indices = inputs
    axis, size = params["axis"], params["size"]
    if not batch.holds(indices):
        return add(g.stacked, indices, **params)
    start = len(g.shape) + 1 + axis - len(indices.shape) + 1
    rows = _axes_moved(batch.full(g), start, len(indices.shape), 1)
    rest = tuple(rows.shape[1 + len(indices.shape) :])
    whole = add(rows, _offset(batch, indices, size), axis=-1 - len(rest), size=batch.size * size)
    whole = operations.reshape(whole, shape=(batch.size, size, *rest), rank=len(whole.shape))
    return _moved(whole, 1, start)


def _offset(batch: Any, indices: TensorLike, size: int) -> Any:
    """The stack of indices, with i times the size added to the indices of value i."""
    return operations.add(_wide(indices.stacked), operations.multiply(_numbers(batch, indices, len(indices.shape)), size))


def _wide(indices: TensorLike) -> Any:
    """As int64: small integers may not hold what is added."""
    return operations.cast(indices, dtype="int64")


def _numbers(batch: Any, indices: TensorLike, trailing: int) -> Any:
    """The position of each value in the batch, with axes of size 1 behind."""
    array = indices.stacked.array if batch.holds(indices) else indices.array
    numbers = namespace(array).arange(batch.size, dtype="int64")
    return Tensor(numbers.reshape((batch.size,) + (1,) * trailing))


def _axes_moved(x: TensorLike, start: int, count: int, target: int) -> Any:
    """`count` neighbouring axes moved together, so that the first of them comes to lie at `target`."""
    order = [axis for axis in range(len(x.shape)) if not start <= axis < start + count]
    order[target:target] = range(start, start + count)
    return operations.transpose(x, perm=tuple(axis - len(order) for axis in order))


def _moved(x: TensorLike, source: int, target: int) -> Any:
    """One axis moved to another place."""
    return _axes_moved(x, source, 1, target)


def _numbered(batch: Any, operation: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """Positions in a stack: the number of the value is one more coordinate, in front of the others."""
    x, indices, *updates = inputs
    if "shape" in params:
        params = {**params, "shape": (batch.size, *params["shape"])}
    elif not batch.holds(x) and not updates:
        return operation(x, indices.stacked, **params)
    whole = _wide(batch.full(indices))
    numbers = _numbers(batch, indices, len(indices.shape))
    numbers = operations.broadcast_to(numbers, shape=(*whole.shape[:-1], 1), rank=len(whole.shape))
    tuples = operations.concat(numbers, whole, axis=-1)
    return operation(batch.full(x), tuples, *[batch.full(update) for update in updates], **params)


def combined_rows(name: str, start: Callable[[Any], Any]) -> Callable[..., Array]:
    """A kernel: `start(dtype)`, `size` times along the axis, with each slice of `x` added, or else combined, at its index."""

    def kernel(xp: ModuleType, x: Array, indices: Array, axis: int, size: int) -> Array:
        rank = indices.ndim
        first = x.ndim + axis - rank + 1
        rows = xp.moveaxis(x, tuple(range(first, first + rank)), tuple(range(rank)))
        if xp is not np:
            rows, places = rows.reshape((math.prod(indices.shape), *rows.shape[rank:])), flat_places(xp, (indices,), (size,))
            return xp.moveaxis(combined_at(xp, resolve(xp, name), rows, places.ravel(), size, start(x.dtype)), 0, axis)
        whole = xp.full((size, *rows.shape[rank:]), start(x.dtype), dtype=x.dtype)
        width = math.prod(whole.shape[1:])
        if width > 1:  # numbers at flat places are combined several times as fast as rows
            places = indices.astype("intp")[..., None] * width + np.arange(width)
            getattr(np, name).at(whole.reshape(-1), places.reshape(-1), rows.reshape(-1))
        else:
            getattr(xp, name).at(whole, indices, rows)
        return xp.moveaxis(whole, 0, axis)

    return kernel


def _whole(g: TensorLike, x: TensorLike, indices: TensorLike, axis: int) -> Any:
    return add_rows(g, indices, axis=axis, size=x.shape[axis])


def _slices(g: TensorLike, x: TensorLike, indices: TensorLike, axis: int) -> Any:
    """The slices and where they belong, on bare arrays; what is recorded computes with the whole."""
    if not is_array(g) or axis != -len(x.shape):
        return _whole(g, x, indices, axis)
    count = int(indices.size)
    return IndexedSlices(g.reshape((count, *x.shape[1:])), indices.reshape(count), tuple(x.shape))


def _gather(name: str, back: Callable[[Any, Any, Any, int], Any]) -> Primitive:
    return linear(
        name,
        lambda xp, x, indices, axis: xp.take(x, indices, axis=axis),
        lambda g, x, indices, axis: [back(g, x, indices, axis), None],
        uniform=False,
        batching=_gather_from_stacks,
        moves=True,
    )


gather_rows = _gather("gather_rows", _whole)
look_up = _gather("look_up", _slices)
"""As `gather_rows`, for the first axis of a table that may be large: the gradient is an IndexedSlices."""
add_rows: Primitive = linear(
    "add_rows",
    combined_rows("add", lambda dtype: 0),
    lambda g, x, indices, axis, size: [gather_rows(g, indices, axis=axis), None],
    uniform=False,
    batching=add_to_stacks,
    accumulates=True,
)


def _positions(xp: ModuleType, indices: Array) -> Key:
    """The last axis of `indices` taken apart: one index array for each axis that is addressed."""
    return tuple(indices[..., i] for i in range(indices.shape[-1]))


def _gather_nd(xp: ModuleType, x: Array, indices: Array) -> Array:
    if not indices.shape[-1]:  # tuples without coordinates address the whole
        return xp.broadcast_to(x, (*indices.shape[:-1], *x.shape))
    return x[_positions(xp, indices)]


def _scatter_nd(xp: ModuleType, updates: Array, indices: Array, shape: Sizes) -> Array:
    if not indices.shape[-1]:
        return updates.sum(axis=tuple(range(indices.ndim - 1)))
    return _added_at(xp, updates, _positions(xp, indices), shape)


gather_nd = linear(
    "gather_nd",
    _gather_nd,
    lambda g, x, indices: [scatter_nd(g, indices, shape=tuple(x.shape)), None],
    uniform=False,
    batching=_numbered,
    moves=True,
)
scatter_nd: Primitive = linear(
    "scatter_nd",
    _scatter_nd,
    lambda g, updates, indices, shape: [gather_nd(g, indices), None],
    uniform=False,
    batching=_numbered,
    accumulates=True,
)


def _overwrite_nd(xp: ModuleType, x: Array, indices: Array, updates: Array) -> Array:
    whole = x.copy()
    whole[_positions(xp, indices)] = updates
    return whole


overwrite_nd: Primitive = linear(
    "overwrite_nd",
    _overwrite_nd,
    lambda g, x, indices, updates: [overwrite_nd(g, indices, operations.zeros_like(updates)), None, gather_nd(g, indices)],
    uniform=False,
    batching=_numbered,
    moves=True,
)


# Rows combined at places ----------------------------------------------------------------------------------------------

# Rows combined at places that may repeat, on a device.
#
# CuPy's `ufunc.at` cannot multiply, knows neither complex numbers nor 16-bit ones, and adds in an order that is another one in
# each run. Here rows are sorted by their places, and neighbours combined in windows of 1, 2, 4, ...: the same bits in each run.


def combined_at(xp: ModuleType, combine: Callable[[Any, Any], Any], rows: Array, places: Array, size: int, start: Any) -> Array:
    """`size` rows: each is `start`, combined with all `rows` (n, ...) whose place (n,) is its number."""
    n, lead = places.shape[0], (-1,) + (1,) * (rows.ndim - 1)
    whole = xp.full((size, *rows.shape[1:]), start, dtype=rows.dtype)
    if not n or not size:
        return whole
    order = xp.argsort(places)
    rows, places = rows[order], places[order]
    step = 1
    while step < n:
        same = (places[:-step] == places[step:]).reshape(lead)
        rows = xp.concatenate([xp.where(same, combine(rows[:-step], rows[step:]), rows[:-step]), rows[n - step :]])
        step *= 2
    numbers = xp.arange(size, dtype=places.dtype)
    first, end = xp.searchsorted(places, numbers), xp.searchsorted(places, numbers, side="right")
    found = rows[xp.minimum(first, n - 1)]  # the first row of a place holds them all by now
    return xp.where((end > first).reshape(lead), combine(whole, found), whole)


def flat_places(xp: ModuleType, key: tuple[Any, ...], shape: tuple[int, ...]) -> Array:
    """The places that index arrays address, counted through the axes of `shape`; negative indices count from the end."""
    total: Any = 0
    for indices, size in zip(key, shape, strict=True):
        indices = indices.astype("int64")
        total = total * size + xp.where(indices < 0, indices + size, indices)
    return total


# x[key] ---------------------------------------------------------------------------------------------------------------


def getitem(x: TensorLike, key: Any) -> Any:
    """`x[key]`: integers, slices, Ellipsis, None, scalar integer tensors, or one boolean mask."""
    x = x if type(x) is Tensor else convert_to_tensor(x)
    shape = tuple(x.shape)
    if type(key) is int and shape and -shape[0] <= key < shape[0]:  # the usual one, spelt out: 2 us less
        return strided_slice(x, key=(Ellipsis, key, *_WHOLE * (len(shape) - 1)), shape=shape)
    if getattr(key, "ndim", 0) > 0 and getattr(key, "dtype", None) in (np.dtype(bool), "bool"):
        return masked(x, convert_to_tensor(key), 0)
    parts = tuple(key) if isinstance(key, (tuple, list)) else (key,)
    if not parts:
        return x
    key = _canonical(parts, shape)
    if any(isinstance(part, Tensor) for part in key):
        x, key = _picked_for_each(x, key)
    return strided_slice(x, key=key, shape=tuple(x.shape))


register("getitem", getitem)
_WHOLE = (slice(None),)
_KEY_ERROR = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are valid indices"
    ", got {!r}. To pick several elements use tf.gather."
)


def masked(x: Tensor, mask: Tensor, axis: int) -> Tensor:
    """The elements where a boolean mask is true, along the axes that it covers, the first of which is `axis`."""
    covered = tuple(x.shape[axis : axis + mask.ndim])
    if mask.dtype != "bool" or not mask.ndim or covered != tuple(mask.shape):
        raise ShapeError(
            f"boolean_mask: a bool mask of shape {mask.shape} ({mask.dtype.name}) does not cover {covered} of {x.shape}."
        )
    sizes = (*x.shape[:axis], math.prod(covered), *x.shape[axis + mask.ndim :])
    (rows,) = own_values(mask).reshape(-1).nonzero()
    flat = operations.reshape(x, shape=sizes, rank=x.ndim)
    return gather_rows(flat, Tensor(to_device(rows, namespace(x.array))), axis=axis - len(sizes))


def checked_indices(name: str, indices: Tensor, size: int) -> Tensor:
    """The indices, refused if they are no integers or not all in [0, size)."""
    if not indices.dtype.is_integer:
        raise TypeError(f"{name}: indices must be integers, found {indices.dtype.name}.")
    check_range(name, "indices", indices, size)
    return indices


def check_range(name: str, what: str, numbers: Tensor, size: int, first: int = 0) -> None:
    """Refuse numbers that are not all in [first, size)."""

    def within(values: np.ndarray[Any, Any]) -> None:
        if values.size and (values.min() < first or values.max() >= size):
            bad = values[(values < first) | (values >= size)].flat[0]
            raise InvalidArgumentError(f"{name}: {what} = {bad} is not in [{first}, {size}).")

    check_values(numbers, within)


def sparse_read(x: Tensor, indices: Tensor) -> Tensor:
    """The rows of a table at indices; negative ones count from the end."""
    check_range("sparse_read", "indices", indices, x.shape[0], -x.shape[0])
    return look_up(x, indices, axis=-x.ndim)


def check_rows(indices: TensorLike, size: int) -> None:
    """Refuse indices of IndexedSlices that are no rows of a table; bare arrays come from a gather, which has checked them."""
    if not is_array(indices):
        check_range("IndexedSlices", "indices", convert_to_tensor(indices), size, -size)


register("sparse_read", sparse_read)
register("check_rows", check_rows)


def _picked_for_each(x: Tensor, key: Key) -> tuple[Tensor, Key]:
    """Indices that differ between slices or steps are gathered; the axes stay with size 1, and the key picks what is there."""
    axis, rest = -x.ndim, []
    for part in key:
        if isinstance(part, Tensor):
            place = operations.select(part < 0, part + x.shape[axis], part)
            place = operations.reshape(checked_indices("index", place, x.shape[axis]), shape=(1,), rank=0)
            x, part = gather_rows(x, place, axis=axis), 0
        rest.append(part)
        axis += part is not None and part is not Ellipsis
    return x, tuple(rest)


def _canonical(parts: Key, shape: Sizes) -> Key:
    """The key with an Ellipsis first and one entry for every axis."""
    rest = len(shape) - sum(1 for part in parts if part is not None and part is not Ellipsis)
    if rest < 0:
        count = len(shape) - rest
        raise InvalidArgumentError(f"Index out of range: {count} indices for a tensor with {len(shape)} axes (shape {shape}).")
    gaps = sum(1 for part in parts if part is Ellipsis)
    if gaps > 1:
        raise InvalidArgumentError("Multiple ellipses are not allowed in one index.")
    key: list[Any] = [Ellipsis]
    axis = 0
    for part in parts if gaps else (*parts, Ellipsis):
        if part is Ellipsis:
            key += _WHOLE * rest
            axis += rest
        else:
            key.append(part if part is None else _index(part, axis, shape[axis]))
            axis += part is not None
    return tuple(key)


def _index(part: Any, axis: int, size: int) -> Any:
    """An integer or a slice of plain ints, checked against the size of its axis."""
    if isinstance(part, slice):
        bounds = [None if bound is None else _integer(bound) for bound in (part.start, part.stop, part.step)]
        if bounds[2] == 0:
            raise InvalidArgumentError("slice step cannot be zero.")
        return slice(*bounds)
    differs = isinstance(part, BatchedTensor) or (isinstance(part, Tensor) and is_in_step())
    if differs and not part.ndim and part.dtype.is_integer:
        return part
    position = _integer(part)
    if not -size <= position < size:
        raise InvalidArgumentError(f"slice index {position} of dimension {axis} out of bounds: the axis has {size} elements.")
    return position


def _integer(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(_KEY_ERROR.format(value))
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(_KEY_ERROR.format(value)) from None
