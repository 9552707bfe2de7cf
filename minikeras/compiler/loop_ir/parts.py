"""Loops over parts of flat arrays: each point of the grid has a chunk of one part, and computes its sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ...core import Record
from ...layout import Layout
from ..ir import Slot, outputs_of, slots_in
from ..loops import SumScope, is_of_parts
from .bodies import converted, inlined
from .expression import INDEX, Axis, Expr, IntTable, all_of, lift, minimum, register, where
from .nest import Fold, For, Statement, Store
from .reductions import wide
from .strided import Launch, NestWriter, Temporary

CHUNK = 16 * 256
"""Elements of a chunk."""


class _Chunks:
    """The chunks of a layout, and the body of each."""

    def __init__(self, record: Record) -> None:
        self.layout: Layout = record.params["layout"]
        counts = [-(-math.prod(shape) // CHUNK) for shape in self.layout.shapes]
        self.firsts = list(itertools.accumulate(counts, initial=0))
        self.writer, self.c = NestWriter(), Axis(self.firsts[-1])
        chunks, begins = IntTable("chunks", self.firsts[:-1]), IntTable("begins", self.layout.starts)
        self._part, first, last = [register(INDEX) for _ in range(3)]
        part = _last_not_above(chunks, len(counts), self.c)
        start = begins[part] + (self.c - chunks[part]) * CHUNK
        stop = IntTable("ends", [one.stop for one in self.layout.slices])[part]
        self.body: list[Statement] = [Fold(self._part, "set", part), Fold(first, "set", start), Fold(last, "set", stop)]
        self._record, self._first, self._rest = record, first, minimum(last - first, CHUNK)

    def elements(self, kind: str) -> tuple[Axis, Expr, list[Expr]]:
        """An axis over the elements of a chunk, the place of each, and the body's results for it."""
        k = Axis(self._rest, kind)
        at = self._first + k
        values = [self.writer.array(x)[self._index(x, at)] for x in slots_in(self._record.inputs)]
        return k, at, inlined(self._record.params["body"], values)

    def _index(self, x: Slot, at: Expr) -> Expr:
        """The place of an operand's number for an element: its own, that of its part, or the only one."""
        if x.shape == (self.layout.size,):
            return at
        return self._part if is_of_parts(x.shape) else lift(0)


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
    chunks, outputs, sums = _Chunks(record), outputs_of(record), record.params["sums"]
    writer = chunks.writer
    k, at, values = chunks.elements("parallel" if sums is None else "reduced")
    if sums is None:
        stores = [Store(writer.result(y), at, converted(value, y.dtype)) for y, value in zip(outputs, values, strict=True)]
        return [writer.lowered("parts", For(chunks.c, [*chunks.body, For(k, stores)]))]
    between = [temporary((chunks.firsts[-1],), wide(y.dtype)) for y in outputs]
    totals = [register(y.dtype) for y in between]
    folds = [Fold(total, "add", converted(value, total.dtype)) for total, value in zip(totals, values, strict=True)]
    begin = [Fold(total, "set", 0) for total in totals]
    stores = [Store(writer.result(y), chunks.c, total) for y, total in zip(between, totals, strict=True)]
    first = writer.lowered("parts", For(chunks.c, [*chunks.body, *begin, For(k, folds), *stores]))
    ends = chunks.firsts if sums is SumScope.PART else [0, chunks.firsts[-1]]
    return [first, _rest(ends, between, outputs)]


def _rest(ends: Sequence[int], xs: Sequence[Slot], outputs: Sequence[Slot]) -> Launch:
    """The sums of ranges of chunks, one for each point."""
    writer, o, firsts, lasts = NestWriter(), Axis(len(ends) - 1), IntTable("firsts", ends[:-1]), IntTable("lasts", ends[1:])
    k, totals = Axis(lasts[o] - firsts[o], "reduced"), [register(x.dtype) for x in xs]
    begin = [Fold(total, "set", 0) for total in totals]
    folds = [Fold(total, "add", writer.array(x)[firsts[o] + k]) for total, x in zip(totals, xs, strict=True)]
    stores = [Store(writer.result(y), o, converted(total, y.dtype)) for y, total in zip(outputs, totals, strict=True)]
    return writer.lowered("parts_rest", For(o, [*begin, For(k, folds), *stores]))
