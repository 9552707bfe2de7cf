"""Products of matrices as kernels: large ones by BLAS, small ones by loops of our own, which need no packing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .functions import Instructions, Value, type_of
from .kernels import ALIGN, load_address, load_operand, part_of

LARGEST = {64: 1 << 28, 32: 1 << 19, 16: 1 << 12}
"""Multiplications of the largest product without BLAS, by the bytes of a vector. With 64 our tiles take 0.4 to 0.9 of the time of
a BLAS that does not know the processor, with 32 they are ahead as long as all lies in the second cache, with 16 in short calls.
"""
PANEL = 1 << 18
"""Bytes of a panel, a strip of columns of the second factor, in memory of the stack."""
FAR = 1 << 11
"""Bytes between two rows of the second factor from which its panels are copied, so that their rows are neighbours."""
MANY = 64
"""Rows of the result from which the copy pays."""


class ProductKernel:
    """A product of two matrices by BLAS, in rows or columns of its result.

    Its operands are the places of out, a and b, then m, n, k, whether a and b are stored transposed, the address of BLAS's
    `gemm` and whether parts are rows: out (m, n) = a @ b, where a is stored as (m, k) or, transposed, (k, m), and b likewise.

    Args:
        dtype: float32 or float64.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._kind, self._itemsize = type_of(dtype), dtype.itemsize

    def text(self, name: str) -> str:
        """The function."""
        to, kind = Instructions(), self._kind
        out, a, b = [load_address(to, number) for number in range(3)]
        m, n, k, transpose_a, transpose_b, gemm, by_rows = [load_operand(to, number) for number in range(3, 10)]
        turned_a, turned_b, rows = [to.add(f"icmp ne i64 {one}, 0") for one in (transpose_a, transpose_b, by_rows)]
        start, stop = part_of(to, to.add(f"select i1 {rows}, i64 {m}, i64 {n}"), ALIGN)
        count = to.add(f"sub i64 {stop}, {start}")
        row, column = to.add(f"select i1 {rows}, i64 {start}, i64 0"), to.add(f"select i1 {rows}, i64 0, i64 {start}")
        height, width = to.add(f"select i1 {rows}, i64 {count}, i64 {m}"), to.add(f"select i1 {rows}, i64 {n}, i64 {count}")
        stride_a = to.add(f"select i1 {turned_a}, i64 {m}, i64 {k}")
        stride_b = to.add(f"select i1 {turned_b}, i64 {k}, i64 {n}")
        first_a = to.add(f"select i1 {turned_a}, i64 {row}, i64 {to.add(f'mul i64 {row}, {k}')}")
        first_b = to.add(f"select i1 {turned_b}, i64 {to.add(f'mul i64 {column}, {k}')}, i64 {column}")
        first_out = to.add(f"add i64 {to.add(f'mul i64 {row}, {n}')}, {column}")

        def place(array: Value, at: Value) -> Value:
            return to.add(f"getelementptr {kind}, ptr {array}, i64 {at}")

        # BLAS counts columns first: the transpose of out is the product of the transposes of b and a.
        operands = [
            *(self._letter(to, turned_b), self._letter(to, turned_a), *(self._integer(to, one) for one in (width, height, k))),
            *(self._float(to, "1.0"), place(b, first_b), self._integer(to, stride_b)),
            *(place(a, first_a), self._integer(to, stride_a), self._float(to, "0.0"), place(out, first_out)),
            self._integer(to, n),
        ]
        address = to.add(f"inttoptr i64 {gemm} to ptr")
        to.do(f"call void {address}({', '.join(f'ptr {one}' for one in operands)})")
        to.do("ret i64 0")
        return "\n".join([f"define i64 @{name}(ptr %o, ptr %a, i64 %part, i64 %parts) {{", "entry:", *to.lines, "}"])

    def _letter(self, to: Instructions, turned: Value) -> Value:
        """The address of 'T' or 'N', as numbers."""
        cell = to.add("alloca i8")
        to.do(f"store i8 {to.add(f'select i1 {turned}, i8 84, i8 78')}, ptr {cell}")
        return cell

    def _integer(self, to: Instructions, number: Value) -> Value:
        """The address of an integer of 32 bits."""
        cell = to.add("alloca i32")
        to.do(f"store i32 {to.add(f'trunc i64 {number} to i32')}, ptr {cell}")
        return cell

    def _float(self, to: Instructions, number: str) -> Value:
        cell = to.add(f"alloca {self._kind}")
        to.do(f"store {self._kind} {number}, ptr {cell}")
        return cell


class Tile(NamedTuple):
    """A piece of the result that lies in registers while it is added up.

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


class TiledProductKernel:
    """A product of two matrices, tile by tile; parts are rows of its result.

    Its operands are those of `ProductKernel` up to whether a and b are stored transposed. Panels of a second factor that is
    stored transposed are turned around.

    Args:
        dtype: float32 or float64.
        vector: bytes of a vector of this processor.
    """

    def __init__(self, dtype: np.dtype[np.floating], vector: int) -> None:
        self._kind, self._itemsize = type_of(dtype), dtype.itemsize
        self._width = vector // dtype.itemsize
        self._most = 8 if vector == 64 else 4
        """Rows of a tile: with two vectors each, all sums lie in registers."""

    def text(self, name: str) -> str:
        """The function, and before it those of tiles."""
        tiles = [Tile(*one) for one in itertools.product(self._heights, (1, 2), (True,))]
        tiles += [Tile(rows, 2, False) for rows in self._heights]
        return "\n".join(
            [
                *self._declarations(),
                *("\n".join(self._tile(f"{name}_{tile.name}", tile)) for tile in tiles),
                *self._turning(f"{name}_turn"),
                *self._copying(f"{name}_copy"),
                *self._whole(name),
            ]
        )

    @property
    def _heights(self) -> list[int]:
        return [self._most, 4, 1] if self._most > 4 else [4, 1]

    @property
    def _vector(self) -> str:
        return f"<{self._width} x {self._kind}>"

    def _declarations(self) -> Iterator[str]:
        vector, suffix = self._vector, f"v{self._width}f{8 * self._itemsize}.p0"
        mask = f"<{self._width} x i1>"
        self._read = f"call {vector} @llvm.masked.load.{suffix}(ptr {{}}, i32 {self._itemsize}, {mask} {{}}, {vector} zeroinitializer)"
        self._write = f"call void @llvm.masked.store.{suffix}({vector} {{}}, ptr {{}}, i32 {self._itemsize}, {mask} {{}})"
        yield f"declare {vector} @llvm.masked.load.{suffix}(ptr, i32, {mask}, {vector})"
        yield f"declare void @llvm.masked.store.{suffix}({vector}, ptr, i32, {mask})"

    def takes(self, m: int, n: int, k: int) -> bool:
        """Whether it is for products of this size: a panel fits its memory, and BLAS would take longer."""
        vector = self._width * self._itemsize
        return 0 < m * n * k <= LARGEST[vector] and 2 * vector * k <= PANEL

    # A tile --------------------------------------------------------------------------------------------------------------------

    def _tile(self, name: str, tile: Tile) -> Iterator[str]:
        """All of a tile: for each of k, a row of b times one element of each row of a."""
        to, kind, vector = Instructions(), self._kind, self._vector
        yield f"define internal void @{name}(ptr %out, ptr %a, ptr %b, i64 %k, i64 %row, i64 %column, i64 %stride, i64 %n, i64 %count) {{"
        to.label("entry")
        masks = [self._mask(to, number) for number in range(tile.vectors)] if tile.partial else []
        rows = [to.add(f"getelementptr {kind}, ptr %a, i64 {to.add(f'mul i64 %row, {row}')}") for row in range(tile.rows)]
        to.do("br label %loop")
        to.label("loop")
        to.do("%p = phi i64 [ 0, %entry ], [ %following, %loop ]")
        sums = {(row, number): f"%s{row}_{number}" for row in range(tile.rows) for number in range(tile.vectors)}
        for sum in sums.values():
            to.do(f"{sum} = phi {vector} [ zeroinitializer, %entry ], [ {sum}n, %loop ]")
        at, line = to.add("mul i64 %p, %column"), to.add("mul i64 %p, %stride")
        factors = [self._load(to, self._place(to, "%b", line, number), masks, number) for number in range(tile.vectors)]
        for row in range(tile.rows):
            element = to.add(f"load {kind}, ptr {to.add(f'getelementptr {kind}, ptr {rows[row]}, i64 {at}')}")
            first = to.add(f"insertelement {vector} poison, {kind} {element}, i64 0")
            every = to.add(f"shufflevector {vector} {first}, {vector} poison, <{self._width} x i32> zeroinitializer")
            for number in range(tile.vectors):
                product = to.add(f"fmul contract {vector} {every}, {factors[number]}")
                to.do(f"{sums[row, number]}n = fadd contract {vector} {sums[row, number]}, {product}")
        to.do("%following = add nuw nsw i64 %p, 1")
        to.do(f"br i1 {to.add('icmp slt i64 %following, %k')}, label %loop, label %done")
        to.label("done")
        for (row, number), sum in sums.items():
            place = self._place(to, "%out", to.add(f"mul i64 %n, {row}"), number)
            to.do(
                self._write.format(f"{sum}n", place, masks[number])
                if masks
                else f"store {vector} {sum}n, ptr {place}, align {self._itemsize}"
            )
        yield from (*to.lines, "  ret void", "}")

    def _mask(self, to: Instructions, number: int) -> Value:
        """Which columns of a vector there are."""
        lanes = f"<{self._width} x i64>"
        first = to.add(f"insertelement {lanes} poison, i64 %count, i64 0")
        count = to.add(f"shufflevector {lanes} {first}, {lanes} poison, <{self._width} x i32> zeroinitializer")
        columns = ", ".join(f"i64 {number * self._width + lane}" for lane in range(self._width))
        return to.add(f"icmp slt {lanes} <{columns}>, {count}")

    def _place(self, to: Instructions, array: str, line: Value, number: int) -> Value:
        at = to.add(f"add i64 {line}, {number * self._width}")
        return to.add(f"getelementptr {self._kind}, ptr {array}, i64 {at}")

    def _load(self, to: Instructions, place: Value, masks: list[Value], number: int) -> Value:
        if masks:
            return to.add(self._read.format(place, masks[number]))
        return to.add(f"load {self._vector}, ptr {place}, align {self._itemsize}")

    # Turning -------------------------------------------------------------------------------------------------------------------

    def _turning(self, name: str) -> Iterator[str]:
        """The transpose of x (rows, columns) as a panel: blocks of 8 by 8 in registers, what is left one by one."""
        kind, eight = self._kind, f"<8 x {self._kind}>"
        to = Instructions()
        lines = [
            to.add(f"load {eight}, ptr {self._cell(to, '%x', '%r', '%columns', '%c', row)}, align {self._itemsize}")
            for row in range(8)
        ]
        low, high = [", ".join(f"i32 {start + at}, i32 {start + at + 8}" for at in range(4)) for start in (0, 4)]
        for _ in range(3):  # each time rows i and i + 4 meet, as cards are shuffled
            pairs = [(lines[row], lines[row + 4]) for row in range(4)]
            lines = [
                to.add(f"shufflevector {eight} {one}, {eight} {other}, <8 x i32> <{half}>")
                for one, other in pairs
                for half in (low, high)
            ]
        for row, line in enumerate(lines):
            to.do(f"store {eight} {line}, ptr {self._cell(to, '%out', '%c', str(2 * self._width), '%r', row)}, align {self._itemsize}")
        yield f"""define internal void @{name}(ptr %out, ptr %x, i64 %rows, i64 %columns) {{
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
        yield from to.lines
        yield "  %nextc = add i64 %c, 8\n  br label %column\nright:"
        yield from self._one_by_one("right", "%r", "%rend", "%wholecolumns", "%columns", "rowdone")
        yield "rowdone:\n  %nextr = add i64 %r, 8\n  br label %row\nbelow:"
        yield from self._one_by_one("below", "%wholerows", "%rows", "0", "%columns", "finish")
        yield "finish:\n  ret void\n}"

    def _cell(self, to: Instructions, array: str, row: str, stride: str, column: str, number: int) -> Value:
        line = to.add(f"mul i64 {to.add(f'add i64 {row}, {number}')}, {stride}")
        return to.add(f"getelementptr {self._kind}, ptr {array}, i64 {to.add(f'add i64 {line}, {column}')}")

    def _one_by_one(self, label: str, first: str, last: str, start: str, stop: str, then: str) -> Iterator[str]:
        """The elements of some rows and columns."""
        kind, n = self._kind, label
        bound = "" if last == "%rows" else f"  {last} = add i64 {first}, 8\n"
        yield f"""{bound}  br label %{n}row
{n}row:
  %{n}r = phi i64 [ {first}, %{n} ], [ %{n}nextr, %{n}end ]
  %{n}inr = icmp slt i64 %{n}r, {last}
  br i1 %{n}inr, label %{n}column, label %{then}
{n}column:
  %{n}c = phi i64 [ {start}, %{n}row ], [ %{n}nextc, %{n}one ]
  %{n}inc = icmp slt i64 %{n}c, {stop}
  br i1 %{n}inc, label %{n}one, label %{n}end
{n}one:
  %{n}line = mul i64 %{n}r, %columns
  %{n}at = add i64 %{n}line, %{n}c
  %{n}from = getelementptr {kind}, ptr %x, i64 %{n}at
  %{n}value = load {kind}, ptr %{n}from
  %{n}other = mul i64 %{n}c, {2 * self._width}
  %{n}to = add i64 %{n}other, %{n}r
  %{n}place = getelementptr {kind}, ptr %out, i64 %{n}to
  store {kind} %{n}value, ptr %{n}place
  %{n}nextc = add i64 %{n}c, 1
  br label %{n}column
{n}end:
  %{n}nextr = add i64 %{n}r, 1
  br label %{n}row"""

    def _copying(self, name: str) -> Iterator[str]:
        """The panel of x with k rows of two vectors."""
        to, vector = Instructions(), self._vector
        line, beside = to.add("mul i64 %p, %n"), to.add(f"mul i64 %p, {2 * self._width}")
        both = [to.add(f"load {vector}, ptr {self._place(to, '%x', line, one)}, align {self._itemsize}") for one in range(2)]
        for one, value in enumerate(both):
            to.do(f"store {vector} {value}, ptr {self._place(to, '%out', beside, one)}, align {self._itemsize}")
        yield f"""define internal void @{name}(ptr %out, ptr %x, i64 %k, i64 %n) {{
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

    # The whole -----------------------------------------------------------------------------------------------------------------

    def _whole(self, name: str) -> Iterator[str]:
        """Tile by tile: down a strip of columns, then the next."""
        to, kind, wide = Instructions(), self._kind, 2 * self._width
        out, a, b = [load_address(to, number) for number in range(3)]
        m, n, k, turned_a, turned_b = [load_operand(to, number) for number in range(3, 8)]
        start, stop = part_of(to, m, self._most)
        along = to.add(f"icmp ne i64 {turned_a}, 0")
        row, column = to.add(f"select i1 {along}, i64 1, i64 {k}"), to.add(f"select i1 {along}, i64 {m}, i64 1")
        turned = to.add(f"icmp ne i64 {turned_b}, 0")
        yield f"""define i64 @{name}(ptr %o, ptr %a, i64 %part, i64 %parts) {{
entry:
  %panel = alloca [{PANEL // self._itemsize} x {kind}], align 64"""
        yield from to.lines
        yield f"""  %far = icmp sge i64 {n}, {FAR // self._itemsize}
  %rows = sub i64 {stop}, {start}
  %many = icmp sge i64 %rows, {MANY}
  %pays = and i1 %far, %many
  br label %strip
strip:
  %j = phi i64 [ 0, %entry ], [ %nextj, %down ]
  %count = sub i64 {n}, %j
  %more = icmp sgt i64 %count, 0
  br i1 %more, label %begin, label %out
begin:
  %whole = icmp sge i64 %count, {wide}
  %single = icmp sle i64 %count, {self._width}
  %beside = getelementptr {kind}, ptr {b}, i64 %j
  br i1 {turned}, label %turn, label %straight
turn:
  %some = select i1 %whole, i64 {wide}, i64 %count
  %before = mul i64 %j, {k}
  %below = getelementptr {kind}, ptr {b}, i64 %before
  call void @{name}_turn(ptr %panel, ptr %below, i64 %some, i64 {k})
  br label %first
straight:
  %copies = and i1 %pays, %whole
  br i1 %copies, label %copy, label %first
copy:
  call void @{name}_copy(ptr %panel, ptr %beside, i64 {k}, i64 {n})
  br label %first
first:
  %top = phi ptr [ %panel, %turn ], [ %panel, %copy ], [ %beside, %straight ]
  %stride = phi i64 [ {wide}, %turn ], [ {wide}, %copy ], [ {n}, %straight ]
  br label %down0"""
        given = f"i64 {k}, i64 {row}, i64 {column}, i64 %stride, i64 {n}, i64 %count"
        for number, height in enumerate(self._heights):
            before, i = ("first", start) if number == 0 else (f"down{number - 1}", f"%i{number - 1}")
            last = number + 1 == len(self._heights)
            yield f"""down{number}:
  %i{number} = phi i64 [ {i}, %{before} ], [ %next{number}, %took{number} ]
  %end{number} = add i64 %i{number}, {height}
  %fits{number} = icmp sle i64 %end{number}, {stop}
  br i1 %fits{number}, label %take{number}, label %{'down' if last else f'down{number + 1}'}
take{number}:
  %starta{number} = mul i64 %i{number}, {row}
  %ata{number} = getelementptr {kind}, ptr {a}, i64 %starta{number}
  %line{number} = mul i64 %i{number}, {n}
  %starto{number} = add i64 %line{number}, %j
  %ato{number} = getelementptr {kind}, ptr {out}, i64 %starto{number}
  br i1 %whole, label %whole{number}, label %partial{number}
partial{number}:
  br i1 %single, label %single{number}, label %double{number}"""
            for label, tile in (
                ("whole", Tile(height, 2, False)),
                ("single", Tile(height, 1, True)),
                ("double", Tile(height, 2, True)),
            ):
                yield f"""{label}{number}:
  call void @{name}_{tile.name}(ptr %ato{number}, ptr %ata{number}, ptr %top, {given})
  br label %took{number}"""
            yield f"""took{number}:
  %next{number} = add i64 %i{number}, {height}
  br label %down{number}"""
        yield f"""down:
  %nextj = add i64 %j, {wide}
  br label %strip
out:
  ret i64 0
}}"""
