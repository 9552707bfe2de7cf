"""Movement: each element of a result comes from one place, by its coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import Record
from ..ir import Slot
from .expression import INDEX, Axis, Expr, all_of, apply, cast, constant, converted, lift, minimum, register, where
from .nest import Fold, For, Statement, Store
from .reductions import copy_nest, is_float
from .strided import Access, Launch, NestWriter, Piece, Shape, contiguous, coordinates, pieces_of, place, spread, view_of

Names = Sequence[Expr]


def element_nest(name: str, y: Slot, value: Callable[[NestWriter, Names], Expr], shape: Shape | None = None) -> Launch:
    """A nest that computes each element of a result from its coordinates, within `shape` if that is given."""
    writer, i = NestWriter(), Axis(math.prod(y.shape))
    found = value(writer, coordinates(i, y.shape if shape is None else shape))
    return writer.lowered(name, For(i, [Store(writer.result(y), i, converted(found, y.dtype))]))


def whole(writer: NestWriter, x: Slot, names: Names) -> Expr:
    """An element of an array without gaps."""
    return writer.array(x)[place(contiguous(x.shape), names)]


def placed_nest(name: str, pieces: Sequence[Piece], number: Any, y: Slot) -> list[Launch]:
    """Pieces at their places, a number elsewhere."""

    def value(writer: NestWriter, names: Names) -> Expr:
        found = constant(number, y.dtype)
        for piece in reversed([one for one in pieces if 0 not in one.shape]):
            there, at = _inside(piece, y, names)
            load = writer.array(piece.slot)[at if there.number is True else where(there, at, 0)]
            found = where(there, converted(load, y.dtype), found)
        return found

    return [element_nest(name, y, value)]


def _inside(piece: Piece, y: Slot, names: Names) -> tuple[Expr, Expr]:
    """The condition that an element of the result is one of a piece, and its place there."""
    own, tests, at = contiguous(y.shape), list[Expr](), lift(0)
    ranges = [(int(first), 1, 1, 0) for first in np.unravel_index(piece.access.offset, y.shape)]
    """For each axis of the result the first coordinate, the step and the count of these elements, and their stride."""
    for step, count, stride in zip(piece.access.strides, piece.shape, contiguous(piece.shape), strict=True):
        if count > 1:
            axis = next(axis for axis, one in enumerate(own) if y.shape[axis] > 1 and step % one == 0)
            ranges[axis] = ranges[axis][0], step // own[axis], count, stride
    for name, size, (first, step, count, stride) in zip(names, y.shape, ranges, strict=True):
        beyond = name - first if step > 0 else lift(first) - name
        reached = where(beyond >= 0, beyond, 0)  # a dividend must not be negative
        inner = reached // abs(step)
        tests += [beyond >= 0] if (first or step < 0) else []
        tests += [apply("equal", reached % abs(step), lift(0))] if abs(step) != 1 else []
        tests += [inner < count] if (first, step, count) != (0, 1, size) else []
        at = at + inner * stride
    return all_of(tests), at


# Instructions ----------------------------------------------------------------------------------------------------------------


def view(record: Record) -> list[Launch] | None:
    """A copy of a result that is a view of its operand."""
    access = view_of(record)
    return None if access is None else [copy_nest(record.primitive.name, access, record.outputs)]


def real(record: Record) -> list[Launch]:
    """A copy."""
    return [copy_nest(record.primitive.name, spread(record.inputs[0], record.outputs.shape), record.outputs)]


def flatten(record: Record) -> list[Launch]:
    """Arrays in one flat one, where its layout has them."""
    y = record.outputs[0] if type(record.outputs) is tuple else record.outputs
    places = zip(record.inputs, record.params["layout"].starts, strict=True)
    return placed_nest("flatten", [Piece(x, (math.prod(x.shape),), Access(y, start, (1,))) for x, start in places], 0, y)


def placed(record: Record) -> list[Launch]:
    """Arrays as parts of the result, and a number elsewhere."""
    return placed_nest(record.primitive.name, pieces_of(record), record.params.get("value", 0), record.outputs)


def tile(record: Record) -> list[Launch] | None:
    """An array repeated along its axes."""
    x, y = record.inputs[0], record.outputs
    if len(x.shape) != len(y.shape):
        return None

    def value(writer: NestWriter, names: Names) -> Expr:
        return whole(writer, x, [name % size for name, size in zip(names, x.shape, strict=True)])

    return [element_nest("tile", y, value)]


def roll(record: Record) -> list[Launch]:
    """An array rolled along axes."""
    x, y = record.inputs[0], record.outputs
    shifts, axes = record.params["shift"], record.params["axis"]
    total = [0] * len(x.shape)
    for shift, axis in zip(shifts, axes, strict=True) if isinstance(axes, tuple) else [(shifts, axes)]:
        total[axis] += shift

    def value(writer: NestWriter, names: Names) -> Expr:
        return whole(writer, x, [(name + -by % n) % n for name, by, n in zip(names, total, x.shape, strict=True)])

    return [element_nest("roll", y, value)]


def triangle(record: Record) -> list[Launch]:
    """Matrices with zeros on one side of a diagonal."""
    x, y, offset = record.inputs[0], record.outputs, record.params["offset"]

    def value(writer: NestWriter, names: Names) -> Expr:
        beyond = names[-1] - names[-2]
        keeps = beyond <= offset if record.params["lower"] else beyond >= offset
        return where(keeps, whole(writer, x, names), constant(0, x.dtype))

    return [element_nest("triangle", y, value)]


def identity_like(record: Record) -> list[Launch]:
    """The identity matrix."""
    y = record.outputs
    one, zero = constant(1, y.dtype), constant(0, y.dtype)
    return [element_nest("identity", y, lambda _, names: where(apply("equal", names[0], names[1]), one, zero))]


# Along lines -----------------------------------------------------------------------------------------------------------------


def _line(x: Slot, axis: int) -> Shape:
    """(lead, length, behind) of an axis."""
    return math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])


def scan(op: str, start: float) -> Callable[[Record], list[Launch] | None]:
    """Cumulative sums or products along an axis, a line for each point."""

    def lower(record: Record) -> list[Launch] | None:
        x, y, params = record.inputs[0], record.outputs, record.params
        if x.dtype.kind == "b" or (is_float(x.dtype) and x.dtype.itemsize == 2):
            return None
        lead, length, behind = _line(x, params["axis"] + len(x.shape))
        writer, o, k, total = NestWriter(), Axis(lead * behind), Axis(length, "sequential"), register(x.dtype)
        names = coordinates(o, (lead, behind))
        along = lift(length - 1) - k if params.get("reverse", False) else k
        at = place((length * behind, behind, 1), (names[0], along, names[1]))
        following = Expr(op, (total, writer.array(x)[at]), x.dtype)
        present = total if params.get("exclusive", False) else following
        body: list[Statement] = [Store(writer.result(y), at, present), Fold(total, "set", following)]
        first = Fold(total, "set", constant(start, x.dtype))
        return [writer.lowered(record.primitive.name, For(o, [first, For(k, body)]))]

    return lower


def rank(positions: bool) -> Callable[[Record], list[Launch]]:
    """Store each element, or its position, at its rank; equal ones keep their order, and NaN is last."""

    def lower(record: Record) -> list[Launch]:
        x, y, descending = record.inputs[0], record.outputs, record.params["descending"]
        lead, length, behind = _line(x, record.params["axis"] + len(x.shape))
        writer, i, k = NestWriter(), Axis(lead * length * behind), Axis(length, "sequential")
        names, strides = coordinates(i, (lead, length, behind)), (length * behind, behind, 1)
        array = writer.array(x)
        own, other = array[place(strides, names)], array[place(strides, (names[0], k, names[2]))]
        before, equal = (other > own if descending else other < own), apply("equal", other, own)
        if is_float(x.dtype):
            missing = [apply("not_equal", one, one) for one in (other, own)]
            before |= missing[0 if descending else 1] & (missing[0] ^ missing[1])
            equal |= missing[0] & missing[1]
        counts = cast(before | ((k < names[1]) & equal), INDEX)
        place_of = register(INDEX)
        value = converted(names[1], y.dtype) if positions else own
        store = Store(writer.result(y), place(strides, (names[0], place_of, names[2])), value)
        body: list[Statement] = [Fold(place_of, "set", lift(0)), For(k, [Fold(place_of, "add", counts)]), store]
        return [writer.lowered(record.primitive.name, For(i, body))]

    return lower


def searchsorted(record: Record) -> list[Launch] | None:
    """In each row of a sorted sequence, by bisection, the number of elements in front of a value."""
    (sequence, values), y = record.inputs, record.outputs
    count, dtype = sequence.shape[-1], np.result_type(*[x.dtype for x in record.inputs])
    if not count or sequence.shape[:-1] != values.shape[:-1]:
        return None
    writer, i = NestWriter(), Axis(math.prod(y.shape))
    names = coordinates(i, values.shape)
    row = place(contiguous(values.shape[:-1]), names[:-1]) * count
    low, high, turn = register(INDEX), register(INDEX), Axis(count.bit_length(), "sequential")
    middle = (low + high) // 2
    v = cast(writer.array(values)[i], dtype)
    x = cast(writer.array(sequence)[row + minimum(middle, count - 1)], dtype)
    left = record.params["side"] == "left"
    before = x < v if left else x <= v
    if is_float(dtype):
        missing = apply("not_equal", v, v)
        before |= missing & apply("equal", x, x) if left else missing
    open_ = low < high
    rises, sinks = open_ & before, open_ & ~before
    body = [Fold(low, "set", where(rises, middle + 1, low)), Fold(high, "set", where(sinks, middle, high))]
    begin = [Fold(low, "set", lift(0)), Fold(high, "set", lift(count))]
    return [writer.lowered("search", For(i, [*begin, For(turn, body), Store(writer.result(y), i, converted(low, y.dtype))]))]
