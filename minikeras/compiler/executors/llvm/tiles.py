"""Pieces of a product of matrices in LLVM's language: tiles of the result, in registers, and panels of the second factor.

A panel is a strip of columns, two vectors wide, whose rows are neighbours in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .functions import Instructions, Value, type_of


class Tile(NamedTuple):
    """A piece of the result.

    Attributes:
        rows: how many.
        vectors: how many in each row.
        partial: whether some columns lie beyond the last one.
    """

    rows: int
    vectors: int
    partial: bool

    @property
    def name(self) -> str:
        """Of its function."""
        return f"tile_{self.rows}_{self.vectors}{'p' if self.partial else ''}"


class Vectors:
    """Writes functions of vectors of one dtype.

    Args:
        dtype: float32 or float64.
        size: bytes of a vector.
    """

    def __init__(self, dtype: np.dtype[Any], size: int) -> None:
        self.kind, self.bytes, self.width = type_of(dtype), dtype.itemsize, size // dtype.itemsize
        self.type, self._bits = f"<{self.width} x {self.kind}>", f"<{self.width} x i1>"
        self._suffix = f"v{self.width}f{8 * self.bytes}.p0"

    def declarations(self) -> Iterator[str]:
        """Of what the functions call."""
        yield f"declare {self.type} @llvm.masked.load.{self._suffix}(ptr, i32, {self._bits}, {self.type})"
        yield f"declare void @llvm.masked.store.{self._suffix}({self.type}, ptr, i32, {self._bits})"

    # A tile -----------------------------------------------------------------------------------------------------------------

    def tile(self, name: str, tile: Tile) -> Iterator[str]:
        """All of a tile: for each of k, a row of b times one element of each row of a.

        `row` and `column` are the strides of a, `line` that of b, n that of the result; `count` columns are left.
        """
        to, kind = Instructions(), self.kind
        strides = "i64 %row, i64 %column, i64 %line, i64 %n"
        yield f"define internal void @{name}(ptr %out, ptr %a, ptr %b, i64 %k, {strides}, i64 %count) {{"
        to.label("entry")
        masks = [self._mask(to, number) if tile.partial else None for number in range(tile.vectors)]
        rows = [to.add(f"getelementptr {kind}, ptr %a, i64 {to.add(f'mul i64 %row, {row}')}") for row in range(tile.rows)]
        to.do("br label %loop")
        to.label("loop")
        to.do("%p = phi i64 [ 0, %entry ], [ %following, %loop ]")
        sums = {(row, number): f"%s{row}_{number}" for row in range(tile.rows) for number in range(tile.vectors)}
        for total in sums.values():
            to.do(f"{total} = phi {self.type} [ zeroinitializer, %entry ], [ {total}n, %loop ]")
        at, below = to.add("mul i64 %p, %column"), to.add("mul i64 %p, %line")
        factors = [self._load(to, self._place(to, "%b", below, number), mask) for number, mask in enumerate(masks)]
        for row in range(tile.rows):
            element = to.add(f"load {kind}, ptr {to.add(f'getelementptr {kind}, ptr {rows[row]}, i64 {at}')}")
            every = self._everywhere(to, self.type, f"{kind} {element}")
            for number, factor in enumerate(factors):
                product = to.add(f"fmul contract {self.type} {every}, {factor}")
                to.do(f"{sums[row, number]}n = fadd contract {self.type} {sums[row, number]}, {product}")
        to.do("%following = add nuw nsw i64 %p, 1")
        to.do(f"br i1 {to.add('icmp slt i64 %following, %k')}, label %loop, label %done")
        to.label("done")
        for (row, number), total in sums.items():
            place = self._place(to, "%out", to.add(f"mul i64 %n, {row}"), number)
            self._store(to, f"{total}n", place, masks[number])
        yield from (*to.lines, "  ret void", "}")

    def _everywhere(self, to: Instructions, vector: str, element: str) -> Value:
        first = to.add(f"insertelement {vector} poison, {element}, i64 0")
        return to.add(f"shufflevector {vector} {first}, {vector} poison, <{self.width} x i32> zeroinitializer")

    def _mask(self, to: Instructions, number: int) -> Value:
        """Which columns of a vector there are."""
        lanes = f"<{self.width} x i64>"
        columns = ", ".join(f"i64 {number * self.width + lane}" for lane in range(self.width))
        return to.add(f"icmp slt {lanes} <{columns}>, {self._everywhere(to, lanes, 'i64 %count')}")

    def _place(self, to: Instructions, array: str, line: Value, number: int) -> Value:
        at = to.add(f"add i64 {line}, {number * self.width}")
        return to.add(f"getelementptr {self.kind}, ptr {array}, i64 {at}")

    def _load(self, to: Instructions, place: Value, mask: Value | None = None) -> Value:
        if mask is None:
            return to.add(f"load {self.type}, ptr {place}, align {self.bytes}")
        given = f"ptr {place}, i32 {self.bytes}, {self._bits} {mask}, {self.type} zeroinitializer"
        return to.add(f"call {self.type} @llvm.masked.load.{self._suffix}({given})")

    def _store(self, to: Instructions, value: Value, place: Value, mask: Value | None = None) -> None:
        if mask is None:
            to.do(f"store {self.type} {value}, ptr {place}, align {self.bytes}")
        else:
            given = f"{self.type} {value}, ptr {place}, i32 {self.bytes}, {self._bits} {mask}"
            to.do(f"call void @llvm.masked.store.{self._suffix}({given})")

    # Panels -----------------------------------------------------------------------------------------------------------------

    def copying(self, name: str) -> Iterator[str]:
        """The panel that begins at x, a matrix whose lines have n elements; k rows of it."""
        to = Instructions()
        line, beside = to.add("mul i64 %p, %n"), to.add(f"mul i64 %p, {2 * self.width}")
        both = [self._load(to, self._place(to, "%x", line, number)) for number in range(2)]
        for number, value in enumerate(both):
            self._store(to, value, self._place(to, "%panel", beside, number))
        yield f"""define internal void @{name}(ptr %panel, ptr %x, i64 %k, i64 %n) {{
entry:
  br label %row
row:
  %p = phi i64 [ 0, %entry ], [ %following, %row ]"""
        yield from to.lines
        yield """  %following = add i64 %p, 1
  %more = icmp slt i64 %following, %k
  br i1 %more, label %row, label %done
done:
  ret void
}"""

    def turning(self, name: str) -> Iterator[str]:
        """The transpose of x (rows, columns) as a panel: blocks of 8 by 8 in registers, what is left one by one."""
        yield f"""define internal void @{name}(ptr %panel, ptr %x, i64 %rows, i64 %columns) {{
entry:
  %wholerows = and i64 %rows, -8
  %wholecolumns = and i64 %columns, -8
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %nextr, %rowdone ]
  %inr = icmp slt i64 %r, %wholerows
  br i1 %inr, label %column, label %below
column:
  %c = phi i64 [ 0, %row ], [ %nextc, %block ]
  %inc = icmp slt i64 %c, %wholecolumns
  br i1 %inc, label %block, label %right
block:"""
        yield from self._block_turned()
        yield "  %nextc = add i64 %c, 8\n  br label %column\nright:\n  %rowend = add i64 %r, 8"
        yield self._one_by_one("right", ("%r", "%rowend"), ("%wholecolumns", "%columns"), "rowdone")
        yield "rowdone:\n  %nextr = add i64 %r, 8\n  br label %row\nbelow:"
        yield self._one_by_one("below", ("%wholerows", "%rows"), ("0", "%columns"), "finish")
        yield "finish:\n  ret void\n}"

    def _block_turned(self) -> list[str]:
        to, eight = Instructions(), f"<8 x {self.kind}>"
        places = [self._cell(to, "%x", ("%r", "%c"), "%columns", row) for row in range(8)]
        lines = [to.add(f"load {eight}, ptr {place}, align {self.bytes}") for place in places]
        halves = [", ".join(f"i32 {at}, i32 {at + 8}" for at in range(start, start + 4)) for start in (0, 4)]
        for _ in range(3):  # each time rows i and i + 4 meet, as cards are shuffled
            lines = [
                to.add(f"shufflevector {eight} {lines[row]}, {eight} {lines[row + 4]}, <8 x i32> <{half}>")
                for row in range(4)
                for half in halves
            ]
        for row, line in enumerate(lines):
            place = self._cell(to, "%panel", ("%c", "%r"), str(2 * self.width), row)
            to.do(f"store {eight} {line}, ptr {place}, align {self.bytes}")
        return to.lines

    def _cell(self, to: Instructions, array: str, first: tuple[str, str], stride: str, number: int) -> Value:
        """The place of an element some rows below the first one."""
        row, column = first
        line = to.add(f"mul i64 {to.add(f'add i64 {row}, {number}')}, {stride}")
        return to.add(f"getelementptr {self.kind}, ptr {array}, i64 {to.add(f'add i64 {line}, {column}')}")

    def _one_by_one(self, n: str, rows: tuple[str, str], columns: tuple[str, str], then: str) -> str:
        """The elements of some rows and columns, each from the first to before the last; what comes before is block n."""
        kind = self.kind
        return f"""  br label %{n}row
{n}row:
  %{n}r = phi i64 [ {rows[0]}, %{n} ], [ %{n}nextr, %{n}end ]
  %{n}inr = icmp slt i64 %{n}r, {rows[1]}
  br i1 %{n}inr, label %{n}column, label %{then}
{n}column:
  %{n}c = phi i64 [ {columns[0]}, %{n}row ], [ %{n}nextc, %{n}one ]
  %{n}inc = icmp slt i64 %{n}c, {columns[1]}
  br i1 %{n}inc, label %{n}one, label %{n}end
{n}one:
  %{n}line = mul i64 %{n}r, %columns
  %{n}at = add i64 %{n}line, %{n}c
  %{n}from = getelementptr {kind}, ptr %x, i64 %{n}at
  %{n}value = load {kind}, ptr %{n}from
  %{n}other = mul i64 %{n}c, {2 * self.width}
  %{n}to = add i64 %{n}other, %{n}r
  %{n}place = getelementptr {kind}, ptr %panel, i64 %{n}to
  store {kind} %{n}value, ptr %{n}place
  %{n}nextc = add i64 %{n}c, 1
  br label %{n}column
{n}end:
  %{n}nextr = add i64 %{n}r, 1
  br label %{n}row"""
