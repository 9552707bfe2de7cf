"""Strided access: strides of slots over the axes of a shape, and nests over slots in the making. Sizes are constants."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import Record, operations
from ..ir import Slot
from .expression import INDEX, NUMBER, Array, Expr, bits, cast, constant, lift, size
from .nest import For, Nest

Shape = tuple[int, ...]
Temporary = Callable[[Shape, Any], Slot]
"""A function that makes a slot for an intermediate value between two nests, by its shape and dtype."""


class Launch(NamedTuple):
    """A nest over slots.

    Attributes:
        nest: the loops, whose arrays are the operands, then the results.
        operands, results: the slots.
        sizes: in the order of the nest's; none where all of them are constants.
        seconds: its time on one thread, roughly.
        members: the number of repetitions, each for the next member of the result.
        moving: for each operand whether it is a stack too, with a member of its own for each repetition.
        may_alias: for each result the positions of operands whose memory it may take.
        most: upper bounds of m, n and k of its products; by default as the nest tells.
    """

    nest: Nest
    operands: Sequence[Slot]
    results: Sequence[Slot]
    sizes: Sequence[int] = ()
    seconds: float = 0.0
    members: int = 1
    moving: Sequence[bool] = ()
    may_alias: Sequence[Sequence[int]] = ()
    most: tuple[int | None, int | None, int | None] | None = None


class NestWriter:
    """A nest in the making, with an array for each slot.

    Args:
        fixed: whether sizes and numbers are constants, as for a GPU; else they are given, so that programs share machine code.
    """

    def __init__(self, fixed: bool = True) -> None:
        self.fixed = fixed
        self._given: dict[Expr, int] = {}
        self._read: dict[int, tuple[Slot, Array]] = {}
        self._written: dict[int, tuple[Slot, Array]] = {}

    def array(self, slot: Slot) -> Array:
        """The array that is read for a slot; a slot whose shape is None is a Python number."""
        return self._array(self._read, "a", slot) if slot.key not in self._written else self._written[slot.key][1]

    def result(self, slot: Slot) -> Array:
        """The array that is written for a slot, as a whole."""
        return self._array(self._written, "y", slot)

    @staticmethod
    def _array(known: dict[int, tuple[Slot, Array]], letter: str, slot: Slot) -> Array:
        dtype = NUMBER if slot.shape is None else slot.dtype
        return known.setdefault(slot.key, (slot, Array(f"{letter}{len(known)}", dtype)))[1]

    def size(self, number: int) -> Expr:
        """An integer."""
        if self.fixed:
            return lift(number)
        self._given[found := size(f"size{len(self._given)}")] = number
        return found

    def number(self, x: float, dtype: Any) -> Expr:
        """A number in a dtype."""
        if self.fixed:
            return constant(x, dtype)
        given = bits(self.size(int(NUMBER.type(x).view(INDEX)))) if isinstance(x, float) else self.size(x)
        return cast(given, dtype)

    def lowered(self, name: str, grid: For, scratch: Sequence[Array] = ()) -> Launch:
        """The finished nest; its time is that of its memory traffic."""
        arrays = [array for _, array in (*self._read.values(), *self._written.values())]
        nest = Nest(name, arrays, list(self._given), grid, scratch)
        operands, results = [tuple([slot for slot, _ in some.values()]) for some in (self._read, self._written)]
        seconds = sum(slot.bytes for slot in (*operands, *results) if slot.shape is not None) / 1e10
        return Launch(nest, operands, results, list(self._given.values()), seconds)


class Access(NamedTuple):
    """The places of a slot's elements, in elements: at `offset`, plus each coordinate times its stride."""

    slot: Slot
    offset: int
    strides: Shape


def contiguous(shape: Sequence[Any]) -> Shape:
    """The strides of an array without gaps.

    >>> contiguous((2, 3, 4))
    (12, 4, 1)
    """
    return tuple([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])


def spread(slot: Slot, shape: Shape) -> Access:
    """A slot that is broadcast to a shape like NumPy; a number has no strides."""
    own = slot.shape or ()
    strides = [0 if length == 1 else stride for length, stride in zip(own, contiguous(own), strict=True)]
    return Access(slot, 0, (0,) * (len(shape) - len(own)) + tuple(strides))


def merged(shape: Shape, strides: Sequence[Shape]) -> tuple[Shape, list[Shape]]:
    """The same elements with as few axes as possible.

    >>> merged((2, 3, 1, 4), [(12, 4, 4, 1), (4, 0, 0, 1)])
    ((2, 3, 4), [(12, 4, 1), (4, 0, 1)])
    >>> merged((2, 3, 1, 4), [(12, 4, 4, 1), (0, 0, 0, 0)])
    ((24,), [(1,), (0,)])
    """
    axes: list[tuple[int, list[int]]] = []
    for axis, length in enumerate(shape):
        own = [one[axis] for one in strides]
        if length == 1:
            continue
        if axes and all(before == length * now for before, now in zip(axes[-1][1], own, strict=True)):
            axes[-1] = axes[-1][0] * length, own
        else:
            axes.append((length, own))
    return tuple([length for length, _ in axes]), [tuple([own[i] for _, own in axes]) for i in range(len(strides))]


def place(strides: Sequence[Any], names: Sequence[Expr], offset: int = 0) -> Expr:
    """The place of an element, by its coordinates."""
    at = lift(0)
    for stride, name in zip(strides, names, strict=True):
        at = at + name * stride
    return at + offset


def coordinates(index: Expr, shape: Sequence[Any]) -> list[Expr]:
    """The coordinates of an element, from its number among all."""
    found = [index // behind for behind in contiguous(shape)]
    return [found[0], *[one % length for one, length in zip(found[1:], shape[1:], strict=True)]] if shape else []


def view_of(record: Record) -> Access | None:
    """The access to the elements of a result as a view of its operand; None if it is not one.

    The primitive's own kernel decides: it runs on an array of the operand's shape without memory.
    """
    shape, access = _viewed(record.inputs[0], lambda x: record.primitive.kernel(np)(x, **record.params))
    return access if shape == record.outputs.shape else None


class Piece(NamedTuple):
    """A slot whose elements become a part of a result.

    Attributes:
        slot: of the elements.
        shape: of the part.
        access: to it, in the result.
    """

    slot: Slot
    shape: Shape
    access: Access


def pieces_of(record: Record) -> list[Piece]:
    """The operands of `concat`, `stack_along`, `put_slice` or `pad` as parts of the result."""
    xs, y, params = record.inputs, record.outputs, record.params
    if record.primitive is operations.put_slice:
        return [Piece(xs[0], *_viewed(y, lambda whole: whole[params["key"]]))]
    if record.primitive is operations.pad:
        sizes = xs[0].shape[len(y.shape) - len(params["paddings"]) :]
        key = [slice(before, before + n) for (before, _), n in zip(params["paddings"], sizes, strict=True)]
        return [Piece(xs[0], *_viewed(y, lambda whole: whole[..., *key]))]
    axis, strides = params["axis"] % len(y.shape), contiguous(y.shape)
    is_new = record.primitive is operations.stack_along
    shapes = [(*x.shape[:axis], 1, *x.shape[axis:]) if is_new else tuple(x.shape) for x in xs]
    starts = itertools.accumulate([shape[axis] * strides[axis] for shape in shapes], initial=0)
    return [Piece(x, shape, Access(y, start, strides)) for x, shape, start in zip(xs, shapes, starts, strict=False)]


def _viewed(x: Slot, take: Callable[[Any], Any]) -> tuple[Shape, Access]:
    """The shape and the places of a view, which is taken of an array of the slot's shape without memory."""
    dummy: Any = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), x.shape, contiguous(x.shape))
    view = take(dummy)
    start = view.__array_interface__["data"][0] - dummy.__array_interface__["data"][0]
    return view.shape, Access(x, start, view.strides)
