"""Loops over parts of flat arrays: each point of the grid has a chunk of one part, and computes its sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ...core import Record
from ..ir import Slot, outputs_of, slots_in
from ..loops import SumScope, is_of_parts
from .bodies import converted, inlined
from .expression import INDEX, Axis, Expr, IntTable, all_of, lift, minimum, register, where
from .nest import Fold, For, Store
from .reductions import wide
from .strided import Launch, NestWriter, Temporary

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
