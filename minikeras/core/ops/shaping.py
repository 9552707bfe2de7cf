"""Operations that move elements: all are linear, and the transpose of each is another of them.

Shapes and permutations describe the last `rank` axes of the input; further leading axes pass through.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...types import Array, TensorLike
from ..families import linear, unbroadcast
from ..primitive import Primitive
from ..registry import operations, register

Sizes = tuple[int, ...]


def _lead(x: Array, rank: int) -> Sizes:
    """The leading axes, those in front of the last `rank` ones."""
    return tuple(x.shape[: x.ndim - rank])


reshape: Primitive = linear(
    "reshape",
    lambda xp, x, shape, rank: x.reshape(_lead(x, rank) + shape),
    lambda g, x, shape, rank: reshape(g, shape=tuple(x.shape[len(x.shape) - rank :]), rank=len(shape)),
    moves=True,
)


def _transpose(xp: ModuleType, x: Array, perm: Sizes) -> Array:
    if perm == (-1, -2):
        return x.swapaxes(-1, -2)
    lead = x.ndim - len(perm)
    return x.transpose(tuple(range(lead)) + tuple(x.ndim + axis for axis in perm))


def inverse(perm: Sizes) -> Sizes:
    """The permutation that undoes `perm`; both hold negative axes."""
    return tuple(sorted(range(-len(perm), 0), key=lambda axis: perm[axis]))


transpose: Primitive = linear("transpose", _transpose, lambda g, x, perm: transpose(g, perm=inverse(perm)), moves=True)


def _broadcast_to(xp: ModuleType, x: Array, shape: Sizes, rank: int) -> Array:
    lead = _lead(x, rank)
    if lead and rank < len(shape):
        x = x.reshape(lead + (1,) * (len(shape) - rank) + tuple(x.shape[x.ndim - rank :]))
    return xp.broadcast_to(x, lead + shape)


broadcast_to = linear("broadcast_to", _broadcast_to, lambda g, x, shape, rank: unbroadcast(g, x), moves=True)


def cut(g: TensorLike, axis: int, start: int, stop: int) -> Any:
    """The elements from `start` to `stop` along a negative axis."""
    key = (Ellipsis, slice(start, stop), *(slice(None),) * (-1 - axis))
    return operations.strided_slice(g, key=key, shape=tuple(g.shape))


def split_keys(sizes: Sizes, axis: int) -> list[tuple[Any, ...]]:
    """The keys that index the pieces of an array, given their sizes along a negative axis."""
    behind, stops = (slice(None),) * (-1 - axis), itertools.accumulate(sizes)
    return [(Ellipsis, slice(stop - size, stop), *behind) for size, stop in zip(sizes, stops, strict=True)]


def _concat_transpose(g: TensorLike, *xs: Any, axis: int) -> list[Any]:
    keys = split_keys(tuple(x.shape[axis] for x in xs), axis)
    return [operations.strided_slice(g, key=key, shape=tuple(g.shape)) for key in keys]


def _stack_transpose(g: TensorLike, *xs: Any, axis: int) -> list[Any]:
    behind = (slice(None),) * (-1 - axis)
    return [operations.strided_slice(g, key=(Ellipsis, i, *behind), shape=tuple(g.shape)) for i in range(len(xs))]


concat = linear("concat", lambda xp, *xs, axis: xp.concatenate(xs, axis=axis), _concat_transpose, batching="fill", moves=True)
stack_along = linear(
    "stack_along", lambda xp, *xs, axis: xp.stack(xs, axis=axis), _stack_transpose, batching="fill", moves=True
)


def _split(xp: ModuleType, x: Array, sizes: Sizes, axis: int) -> tuple[Array, ...]:
    parts = [x[key] for key in split_keys(sizes, axis)]
    return tuple(parts if xp is np else [part.copy() for part in parts])  # on a device pieces without gaps


# Pieces of these sizes, whose cotangents are put together in one go.
split_along = linear("split_along", _split, lambda g, x, sizes, axis: concat(*g, axis=axis), moves=True)


def stack(parts: Sequence[Any], axis: int | None = None) -> Any:
    """Tensors of one shape and dtype joined along a new axis: a negative one, or the first one if None."""
    if any(part.shape != parts[0].shape for part in parts):
        raise ShapeError(f"stack: all shapes must be equal, found {[list(part.shape) for part in parts]}.")
    return stack_along(*parts, axis=-1 - parts[0].ndim if axis is None else axis)


register("stack", stack)


def _pad(xp: ModuleType, x: Array, paddings: tuple[Sizes, ...], value: Any) -> Array:
    return xp.pad(x, ((0, 0),) * (x.ndim - len(paddings)) + paddings, constant_values=value)


def _unpad(g: TensorLike, x: TensorLike, paddings: tuple[Sizes, ...], value: Any) -> Any:
    sizes = x.shape[len(x.shape) - len(paddings) :]
    key = tuple(slice(before, before + size) for (before, _), size in zip(paddings, sizes, strict=True))
    return operations.strided_slice(g, key=(Ellipsis, *key), shape=tuple(g.shape))


pad: Primitive = linear(
    "pad", _pad, _unpad, jvp=lambda tangents, y, inputs, params: pad(tangents[0], **{**params, "value": 0}), moves=True
)


def _untile(g: TensorLike, x: TensorLike, multiples: Sizes) -> Any:
    """Each repetition gets an axis of its own, over which the cotangents add up."""
    split = tuple(part for repeats, size in zip(multiples, x.shape, strict=True) for part in (repeats, size))
    folded = reshape(g, shape=split, rank=len(multiples))
    return operations.reduce_sum(folded, axes=tuple(range(-len(split), 0, 2)), keepdims=False)


tile = linear("tile", lambda xp, x, multiples: xp.tile(x, (1,) * (x.ndim - len(multiples)) + multiples), _untile, moves=True)
roll: Primitive = linear(
    "roll",
    lambda xp, x, shift, axis: xp.roll(x, shift, axis=axis),
    lambda g, x, shift, axis: roll(g, shift=tuple(-step for step in shift), axis=axis),
    moves=True,
)


def shifted(x: TensorLike, axis: int, by: int, value: Any) -> Any:
    """The elements moved toward the end of an axis, or toward its beginning if `by` is negative; `value` comes in."""
    n = x.shape[axis]
    ahead, back = min(max(by, 0), n), min(max(-by, 0), n)
    return pad(cut(x, axis, back, n - ahead), paddings=((ahead, back), *((0, 0),) * (-1 - axis)), value=value)


def swap_last(x: TensorLike) -> Any:
    """The transpose of a matrix, or of each in a stack."""
    return transpose(x, perm=(-1, -2))
