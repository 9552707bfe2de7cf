"""Loops over the elements of a shape, and reductions of their results; a reduction of few long sums can be cut into pieces."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import Record, is_short
from ..ir import Slot, outputs_of, slots_in
from ..loops import Body, Step, SumScope, is_of_parts
from .expression import (
    INDEX,
    TRUTH,
    Axis,
    Expr,
    IntTable,
    all_of,
    apply,
    cast,
    constant,
    converted,
    inlined,
    lift,
    minimum,
    register,
    where,
)
from .nest import SHORT, Fold, For, Statement, Store
from .strided import Access, Launch, NestWriter, Shape, Temporary, contiguous, coordinates, merged, place

Pieces = Callable[[Launch], int]
"""The number of pieces into which a target wants to cut the sums of a nest."""


def is_float(dtype: np.dtype[Any]) -> bool:
    """True for a dtype of floats, those of 16 bits included."""
    return dtype.kind == "f" or is_short(dtype)


def wide(dtype: np.dtype[Any]) -> Any:
    """The dtype in which elements are added up: 16-bit floats in float32."""
    return np.dtype(np.float32) if is_float(dtype) and dtype.itemsize == 2 else dtype


def neutral(op: str, dtype: np.dtype[Any]) -> Any:
    """The neutral element of a fold."""
    if op in ("add", "logical_or", "multiply", "logical_and"):
        return int(op in ("multiply", "logical_and"))
    if is_float(dtype):
        return -math.inf if op == "maximum" else math.inf
    if dtype.kind == "b":
        return op == "minimum"
    return getattr(np.iinfo(dtype), "min" if op == "maximum" else "max")


def copy_body(dtype: np.dtype[Any], wanted: Any) -> Body:
    """The body of a copy, in another dtype if one is wanted."""
    if dtype == wanted:
        return Body((dtype,), (), (), (), (0,))
    return Body((dtype,), (), (), (Step(1, "astype", (0,), wanted),), (1,))


def loop_nest(name: str, shape: Shape, body: Body, accesses: Sequence[Access], outputs: Sequence[Slot]) -> Launch:
    """A body for all elements of a shape; results are contiguous."""
    short, (_, *strides) = merged(shape, [contiguous(shape), *[access.strides for access in accesses]])
    writer, i = NestWriter(), Axis(math.prod(shape))
    names = coordinates(i, short)
    values = []
    for access, own in zip(accesses, strides, strict=True):
        whole = own == contiguous(short)
        values.append(writer.array(access.slot)[(i if whole and own else place(own, names)) + access.offset])
    stores = [
        Store(writer.result(y), i, converted(value, y.dtype)) for y, value in zip(outputs, inlined(body, values), strict=True)
    ]
    return writer.lowered(name, For(i, stores))


def copy_nest(name: str, access: Access, y: Slot) -> Launch:
    """A contiguous copy of elements, in the dtype of y."""
    return loop_nest(name, y.shape, copy_body(access.slot.dtype, y.dtype), [access], [y])


class FoldRule(NamedTuple):
    """The rule of a reduction.

    Attributes:
        op: of `Fold`.
        dtype: in which they are folded.
        element: from an element to the value that is folded.
        finish: the result, from the total.
    """

    op: str
    dtype: Any
    element: Callable[[Expr], Expr]
    finish: Callable[[Expr], Expr] = lambda total: total

    @property
    def rest(self) -> FoldRule:
        """The reduction of the pieces of one that was cut."""
        return self._replace(element=lambda x: x)


_OPS = {"max": "maximum", "min": "minimum", "any": "logical_or", "all": "logical_and", "prod": "multiply"}


def reduction_of(name: str, dtype: np.dtype[Any], count: Any = 0, result: Any = None) -> FoldRule:
    """A reduction of so many elements of a dtype; the number may be an expression."""
    own, op = wide(dtype), _OPS.get(name, "add")
    if name in ("any", "all"):
        return FoldRule(op, TRUTH, lambda x: converted(x, TRUTH))
    if name in ("max", "min"):
        return FoldRule(op, own, lambda x: cast(x, own))
    total = wide(result) if result is not None and not is_float(own) else own
    if total.kind == "b" or (name == "mean" and not is_float(total)):
        total = INDEX
    if name == "euclid":
        return FoldRule(op, total, lambda x: cast(x, total) * cast(x, total), lambda x: apply("sqrt", x))
    finish = (lambda x: _mean(x, count)) if name == "mean" else (lambda x: x)
    return FoldRule(op, total, lambda x: cast(x, total), finish)


def _mean(total: Expr, count: Any) -> Expr:
    """A quotient; of integers it is truncated toward zero."""
    if is_float(total.dtype):
        return total / converted(lift(count), total.dtype)
    return where(total < 0, 0 - (0 - total) // count, total // count)


class Reduced(NamedTuple):
    """A result of a reduction: the output of the body, the rule, and the slot."""

    output: int
    reduction: FoldRule
    slot: Slot


Values = Callable[[NestWriter, Sequence[Expr], Sequence[Expr]], tuple[Sequence[Expr], Sequence[Store]]]
"""The folded values, and further stores, from the coordinates of a result and those within its sum."""


def body_values(
    kept: Shape, folded: Shape, body: Body, accesses: Sequence[Access], stored: Sequence[tuple[int, Access]] = ()
) -> tuple[Shape, Shape, Values]:
    """A body for all elements of `kept + folded`, over which accesses have strides.

    Args:
        kept, folded: both parts of the shape.
        body: the operations on an element.
        accesses: its operands.
        stored: outputs of the body that are written too, and their places.

    Returns:
        Both shapes with as few axes as possible, and the body's values.
    """
    everywhere = [*accesses, *[access for _, access in stored]]
    outer, before = merged(kept, [access.strides[: len(kept)] for access in everywhere])
    inner, within = merged(folded, [access.strides[len(kept) :] for access in everywhere])
    strides = [(*one, *other) for one, other in zip(before, within, strict=True)]

    def values(writer: NestWriter, names: Sequence[Expr], inside: Sequence[Expr]) -> tuple[Sequence[Expr], Sequence[Store]]:
        places = [place(own, (*names, *inside), access.offset) for access, own in zip(everywhere, strides, strict=True)]
        loaded = [writer.array(access.slot)[at] for access, at in zip(accesses, places, strict=False)]
        found = inlined(body, loaded)
        stores = [
            Store(writer.result(access.slot), at, converted(found[output], access.slot.dtype))
            for (output, access), at in zip(stored, places[len(accesses) :], strict=True)
        ]
        return found, stores

    return outer, inner, values


def reduction_nests(
    name: str, kept: Shape, folded: Shape, values: Values, results: Sequence[Reduced], temporary: Temporary, pieces_of: Pieces
) -> list[Launch]:
    """Values for all elements of `kept + folded`, reduced over the axes of `folded`."""
    count = math.prod(kept)
    whole = _reduction(name, kept, folded, values, results, 1)
    pieces = pieces_of(whole)
    if pieces == 1:
        return [whole]
    between = [
        Reduced(one.output, one.reduction._replace(finish=lambda x: x), temporary((pieces, count), one.reduction.dtype))
        for one in results
    ]

    def partials(writer: NestWriter, names: Sequence[Expr], inside: Sequence[Expr]) -> tuple[Sequence[Expr], Sequence[Store]]:
        return [writer.array(one.slot)[inside[0] * count + names[0]] for one in between], []

    rest = [Reduced(number, one.reduction.rest, one.slot) for number, one in enumerate(results)]
    return [
        _reduction(name, kept, folded, values, between, pieces),
        _reduction(f"{name}_rest", (count,), (pieces,), partials, rest, 1),
    ]


def _reduction(name: str, kept: Shape, folded: Shape, values: Values, results: Sequence[Reduced], pieces: int) -> Launch:
    """One nest, whose results are `pieces` for each sum, one after another."""
    count, length = math.prod(kept), math.prod(folded)
    each, writer, o = -(-length // pieces), NestWriter(), Axis(count * pieces)
    first = o // count * each if pieces > 1 else lift(0)
    k = Axis(minimum(length - first, each) if pieces > 1 else length, "reduced")
    found, stores = values(writer, coordinates(o % count if pieces > 1 else o, kept), coordinates(first + k, folded))
    totals = [register(one.reduction.dtype) for one in results]
    folds = [
        Fold(total, one.reduction.op, one.reduction.element(found[one.output]))
        for total, one in zip(totals, results, strict=True)
    ]
    written = [
        Store(writer.result(one.slot), o, converted(one.reduction.finish(total), one.slot.dtype))
        for total, one in zip(totals, results, strict=True)
    ]
    return writer.lowered(name, For(o, [*map(begun, folds), For(k, [*stores, *folds]), *written]))


def begun(fold: Fold) -> Fold:
    """The initialization of a register before the first fold."""
    dtype = fold.register.dtype
    return Fold(fold.register, "set", constant(neutral(fold.op, dtype), dtype))


def folded_over(axis: Axis, op: str, value: Expr) -> tuple[Expr, list[Statement]]:
    """A value folded over an axis: the register with the total, and the statements that compute it."""
    fold = Fold(register(value.dtype), op, value)
    return fold.register, [begun(fold), For(axis, [fold])]


# Folds that carry more than a number: two passes over the same elements -------------------------------------------------------


def arg_nest(name: str, x: Slot, shape: tuple[int, int, int], y: Slot, fixed: bool = True) -> Launch:
    """The position of the first largest, or smallest, element along the middle axis of (lead, length, behind); NaN wins."""
    writer, behind, dtype = NestWriter(fixed), shape[2], wide(x.dtype)
    lead, length = writer.size(shape[0]), lift(shape[1]) if shape[1] < SHORT else writer.size(shape[1])
    o = Axis(lead * behind)
    names = coordinates(o, (lead, behind))

    def value(k: Expr) -> Expr:
        return cast(writer.array(x)[place((length * behind, behind, 1), [names[0], k, names[1]])], dtype)

    j, k = Axis(length, "reduced"), Axis(length, "reduced")
    peak, first = folded_over(j, "maximum" if name == "argmax" else "minimum", value(j))
    own = value(k)
    attains = apply("equal", own, peak)
    if is_float(dtype):
        attains = attains | apply("not_equal", own, own)
    at, second = folded_over(k, "minimum", where(attains, k, length))
    return writer.lowered(name, For(o, [*first, *second, Store(writer.result(y), o, converted(at, y.dtype))]))


def logsumexp_nest(x: Slot, kept: Shape, folded: Shape, access: Access, y: Slot) -> Launch:
    """log(sum(exp(x))), with the largest element factored out of the sum if it is finite."""
    outer, inner, values = body_values(kept, folded, copy_body(x.dtype, x.dtype), [access])
    writer, o, dtype = NestWriter(), Axis(math.prod(kept)), wide(x.dtype)
    names = coordinates(o, outer)
    j, k = [Axis(math.prod(folded), "reduced") for _ in range(2)]
    first, second = [cast(values(writer, names, coordinates(axis, inner))[0][0], dtype) for axis in (j, k)]
    peak, before = folded_over(j, "maximum", first)
    shift = register(dtype)
    kept_one = Fold(shift, "set", where(apply("isfinite", peak), peak, 0.0))
    total, behind = folded_over(k, "add", apply("exp", second - shift))
    result = converted(apply("log", total) + shift, y.dtype)
    return writer.lowered("logsumexp", For(o, [*before, kept_one, *behind, Store(writer.result(y), o, result)]))


# Parts of flat arrays: each point has a chunk of one part, and computes its sums ---------------------------------------------

CHUNK = 16 * 256
"""Elements of a chunk."""


def _last_not_above(table: IntTable, count: int, number: Expr) -> Expr:
    """The position of the last of `count` ascending numbers that is at most `number`, which is at least the first."""
    found = lift(0)
    for step in [1 << bit for bit in reversed(range((count - 1).bit_length()))]:
        trial = found + step
        inside = all_of([trial < count, table[minimum(trial, count - 1)] <= number])
        found = where(inside, trial, found)
    return found


def parts_nests(record: Record, temporary: Temporary) -> list[Launch]:
    """The nests of a loop over parts, with its sums."""
    layout, outputs, sums = record.params["layout"], outputs_of(record), record.params["sums"]
    firsts = list(itertools.accumulate([-(-math.prod(shape) // CHUNK) for shape in layout.shapes], initial=0))
    writer, c, own, first, last = NestWriter(), Axis(firsts[-1]), *[register(INDEX) for _ in range(3)]
    chunks, begins = IntTable("chunks", firsts[:-1]), IntTable("begins", layout.starts)
    part = _last_not_above(chunks, len(firsts) - 1, c)
    start, stop = begins[part] + (c - chunks[part]) * CHUNK, IntTable("ends", [one.stop for one in layout.slices])[part]
    begin = [Fold(own, "set", part), Fold(first, "set", start), Fold(last, "set", stop)]
    k = Axis(minimum(last - first, CHUNK), "parallel" if sums is None else "reduced")
    at = first + k

    def place(x: Slot) -> Expr:
        """The place of an operand's number for an element: its own, that of its part, or the only one."""
        return at if x.shape == (layout.size,) else own if is_of_parts(x.shape) else lift(0)

    values = inlined(record.params["body"], [writer.array(x)[place(x)] for x in slots_in(record.inputs)])
    if sums is None:
        stores = [Store(writer.result(y), at, converted(value, y.dtype)) for y, value in zip(outputs, values, strict=True)]
        return [writer.lowered("parts", For(c, [*begin, For(k, stores)]))]
    between = [temporary((firsts[-1],), wide(y.dtype)) for y in outputs]
    totals = [register(y.dtype) for y in between]
    folds = [Fold(total, "add", converted(value, total.dtype)) for total, value in zip(totals, values, strict=True)]
    begin += [Fold(total, "set", 0) for total in totals]
    stores = [Store(writer.result(y), c, total) for y, total in zip(between, totals, strict=True)]
    whole = writer.lowered("parts", For(c, [*begin, For(k, folds), *stores]))
    return [whole, _rest(firsts if sums is SumScope.PART else [0, firsts[-1]], between, outputs)]


def _rest(ends: Sequence[int], xs: Sequence[Slot], outputs: Sequence[Slot]) -> Launch:
    """The sums of ranges of chunks, one for each point."""
    writer, o, firsts, lasts = NestWriter(), Axis(len(ends) - 1), IntTable("firsts", ends[:-1]), IntTable("lasts", ends[1:])
    k, totals = Axis(lasts[o] - firsts[o], "reduced"), [register(x.dtype) for x in xs]
    begin = [Fold(total, "set", 0) for total in totals]
    folds = [Fold(total, "add", writer.array(x)[firsts[o] + k]) for total, x in zip(totals, xs, strict=True)]
    stores = [Store(writer.result(y), o, converted(total, y.dtype)) for y, total in zip(outputs, totals, strict=True)]
    return writer.lowered("parts_rest", For(o, [*begin, For(k, folds), *stores]))
