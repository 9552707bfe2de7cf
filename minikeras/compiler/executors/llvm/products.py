"""Products of matrices as kernels: by BLAS, or in tiles of our own, which small ones need not be packed for."""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import importlib.util
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.forks import importing
from ....parallel import blas
from ....parallel.blas import OneThread
from . import jit
from .functions import Instructions, Value, constant, type_of
from .kernels import ALIGN, load_address, load_operand, part_of

# Pieces of a product of matrices in LLVM's language: tiles of the result, in registers, and panels of the second factor.
#
# A panel is a strip of columns, two vectors wide, whose rows are neighbours in memory.


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
        """All of a tile: for each of k, a row of b times one element of each row of a; with `adds` added to what is there.

        `row` and `column` are the strides of a, `line` that of b, n that of the result; `count` columns are left.
        """
        to, kind = Instructions(), self.kind
        strides = "i64 %row, i64 %column, i64 %line, i64 %n"
        yield f"define internal void @{name}(ptr %out, ptr %a, ptr %b, i64 %k, {strides}, i64 %count, i1 %adds) {{"
        to.label("entry")
        masks = [self._mask(to, number) if tile.partial else None for number in range(tile.vectors)]
        rows = [to.add(f"getelementptr {kind}, ptr %a, i64 {to.add(f'mul i64 %row, {row}')}") for row in range(tile.rows)]
        sums = {(row, number): f"%s{row}_{number}" for row in range(tile.rows) for number in range(tile.vectors)}
        places = {(row, n): self._place(to, "%out", to.add(f"mul i64 %n, {row}"), n) for row, n in sums}
        to.do("br i1 %adds, label %there, label %loop")
        to.label("there")
        before = {(row, n): self._load(to, places[row, n], masks[n]) for row, n in sums}
        to.do("br label %loop")
        to.label("loop")
        to.do("%p = phi i64 [ 0, %entry ], [ 0, %there ], [ %following, %loop ]")
        for (row, n), total in sums.items():
            to.do(f"{total} = phi {self.type} [ zeroinitializer, %entry ], [ {before[row, n]}, %there ], [ {total}n, %loop ]")
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
        for (row, n), total in sums.items():
            self._store(to, f"{total}n", places[row, n], masks[n])
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
        """The transpose of x (rows, columns) in lines as a panel: blocks of 8 by 8 in registers, what is left one by one."""
        yield f"""define internal void @{name}(ptr %panel, ptr %x, i64 %rows, i64 %columns, i64 %line) {{
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
        places = [self._cell(to, "%x", ("%r", "%c"), "%line", row) for row in range(8)]
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
  %{n}below = mul i64 %{n}r, %line
  %{n}at = add i64 %{n}below, %{n}c
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


LARGEST = {64: 1 << 28, 32: 1 << 19, 16: 1 << 12}
"""Multiplications of the largest product in tiles, by the bytes of a vector. With 64, tiles take 0.5 to 1 times as long
as OpenBLAS, and half as long where that uses half a vector; with 32 they are ahead in short calls.
"""
PANEL = 1 << 18
"""Bytes of a panel, a strip of columns of the second factor, in memory of the stack."""
FAR = 1 << 11
"""Bytes between two rows of the second factor from which its panels are copied, so that their rows are neighbours."""
MANY = 64
"""Rows of the result from which the copy pays."""


class ProductKernel:
    """A product of two matrices in rows or columns of its result.

    Its operands are the places of out, a and b, then m, n, k, whether a and b are stored transposed, the addresses of a `Way`,
    and whether parts are rows: out (m, n) = a @ b, where a is stored as (m, k) or, transposed, (k, m), and b likewise.

    Args:
        dtype: float32 or float64.
        multiplies: whether the way is BLAS.
    """

    def __init__(self, dtype: np.dtype[Any], multiplies: bool) -> None:
        self._dtype, self.multiplies = dtype, multiplies

    def text(self, name: str) -> str:
        """The function."""
        to, kind = Instructions(), type_of(self._dtype)
        out, a, b = [load_address(to, number) for number in range(3)]
        m, n, k, transpose_a, transpose_b, function, blas, by_rows = [load_operand(to, number) for number in range(3, 11)]
        turned_a, turned_b, rows = [to.add(f"icmp ne i64 {one}, 0") for one in (transpose_a, transpose_b, by_rows)]
        start, stop = part_of(to, to.add(f"select i1 {rows}, i64 {m}, i64 {n}"), ALIGN)
        count = to.add(f"sub i64 {stop}, {start}")
        row, column = to.add(f"select i1 {rows}, i64 {start}, i64 0"), to.add(f"select i1 {rows}, i64 0, i64 {start}")
        height, width = to.add(f"select i1 {rows}, i64 {count}, i64 {m}"), to.add(f"select i1 {rows}, i64 {n}, i64 {count}")
        line_a = to.add(f"select i1 {turned_a}, i64 {m}, i64 {k}")
        line_b = to.add(f"select i1 {turned_b}, i64 {k}, i64 {n}")
        first_a = to.add(f"select i1 {turned_a}, i64 {row}, i64 {to.add(f'mul i64 {row}, {k}')}")
        first_b = to.add(f"select i1 {turned_b}, i64 {to.add(f'mul i64 {column}, {k}')}, i64 {column}")
        first_out = to.add(f"add i64 {to.add(f'mul i64 {row}, {n}')}, {column}")
        places = [
            (to.add(f"getelementptr {kind}, ptr {array}, i64 {first}"), line)
            for array, first, line in ((a, first_a, line_a), (b, first_b, line_b), (out, first_out, n))
        ]
        addresses = [to.add(f"inttoptr i64 {one} to ptr") for one in (function, blas)]
        to.do(called((addresses[0], addresses[1]), (turned_a, turned_b, "0"), (height, width, k), places))
        head = f"define i64 @{name}(ptr %o, ptr %a, i64 %part, i64 %parts) {{"
        return "\n".join([head, "entry:", *to.lines, "  ret i64 0\n}"])


class Way(NamedTuple):
    """How products are computed: two addresses, as integers.

    Attributes:
        function: of `PARAMETERS`.
        blas: what it is told of BLAS; 0 if it needs none.
    """

    function: int
    blas: int


PARAMETERS = (
    "ptr %gemm, i1 %turneda, i1 %turnedb, i1 %adds, i64 %m, i64 %n, i64 %k, "
    "ptr %a, i64 %linea, ptr %b, i64 %lineb, ptr %c, i64 %linec"
)
"""Of a function that computes c (m, n) = a @ b, or adds it to c. Each lies in lines, a and b perhaps transposed."""


def called(
    way: tuple[Value, Value], turned: Sequence[Value], sizes: Sequence[Value], places: Sequence[tuple[Value, Value]]
) -> str:
    """A call of such a function; `turned` ends with whether it adds."""
    given = [f"ptr {way[1]}", *(f"i1 {one}" for one in turned), *(f"i64 {one}" for one in sizes)]
    given += [f"ptr {start}, i64 {line}" for start, line in places]
    return f"call void {way[0]}({', '.join(given)})"


def way_of(dtype: np.dtype[Any], sizes: tuple[int | None, int | None, int | None]) -> Way:
    """How products of at most these sizes are computed; None for one that is not known."""
    m, n, k = sizes
    tiles = Tiles(dtype, jit.vector_bytes())
    if m is not None and n is not None and k is not None and tiles.takes(m, n, k):
        return Way(_address(tiles), 0)
    return Way(_address(Blas(dtype)), gemm(dtype))


_addresses: dict[str, int] = {}


def _address(product: Tiles | Blas) -> int:
    """Where the machine code of a function begins, which is compiled once."""
    if product.name not in _addresses:
        _addresses[product.name] = jit.functions(product.text(), [product.name])[0]
    return _addresses[product.name]


class Blas:
    """A function that calls BLAS, which counts columns first: the transpose of c is the product of the transposes of b and a.

    Args:
        dtype: float32 or float64.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._kind, self.name = type_of(dtype), f"product_by_blas_{dtype.name}"

    def text(self) -> str:
        """The function."""
        to = Instructions()
        letters = [to.add(f"select i1 %turned{one}, i8 84, i8 78") for one in "ba"]  # 'T' or 'N', as numbers
        n, m, k, *lines = [("i32", to.add(f"trunc i64 %{x} to i32")) for x in ("n", "m", "k", "lineb", "linea", "linec")]
        one, factor = constant(1.0, self._kind), to.add(f"uitofp i1 %adds to {self._kind}")
        cells: list[Value] = []
        for kind, value in [*(("i8", x) for x in letters), n, m, k, (self._kind, one), *lines, (self._kind, factor)]:
            cells.append(to.add(f"alloca {kind}"))
            to.do(f"store {kind} {value}, ptr {cells[-1]}")
        operands = [*cells[:6], "%b", cells[6], "%a", cells[7], cells[9], "%c", cells[8]]
        call = f"call void %gemm({', '.join(f'ptr {x}' for x in operands)})"
        return "\n".join([f"define void @{self.name}({PARAMETERS}) {{", "entry:", *to.lines, f"  {call}\n  ret void\n}}"])


class Tiles:
    """A function that goes tile by tile. Its bits do not depend on how rows are shared, if parts begin at multiples of 8.

    Panels of a second factor that is stored transposed are turned around.

    Args:
        dtype: float32 or float64.
        vector: bytes of a vector of this processor.
    """

    def __init__(self, dtype: np.dtype[Any], vector: int) -> None:
        self._dtype, self._vectors, self._bytes = dtype, Vectors(dtype, vector), vector
        self._heights = [8, 4, 1] if vector == 64 else [4, 1]
        """Rows of tiles: with two vectors each, all sums lie in registers."""
        self._longest = PANEL // (2 * vector)
        """Rows of a panel."""
        self.name = f"product_by_tiles_{dtype.name}_{vector}"

    def takes(self, m: int, n: int, k: int) -> bool:
        """Whether it is for products of this size, for which BLAS would take longer."""
        return 0 < m * n * k <= LARGEST[self._bytes]

    def text(self) -> str:
        """The function, and before it those of tiles and panels."""
        vectors = self._vectors
        tiles = [Tile(rows, *kind) for rows in self._heights for kind in _KINDS.values()]
        return "\n".join(
            [
                *vectors.declarations(),
                *(line for tile in tiles for line in vectors.tile(f"{self.name}_{tile.name}", tile)),
                *vectors.turning(f"{self.name}_turn"),
                *vectors.copying(f"{self.name}_copy"),
                *self._whole(self.name),
            ]
        )

    def _whole(self, name: str) -> Iterator[str]:
        """All in blocks of k; a block goes down a strip of columns, then the next."""
        kind, wide = self._vectors.kind, 2 * self._vectors.width
        places = ("%ata", "%linea"), ("%atb", "%lineb"), ("%c", "%linec")
        block = called((f"@{name}_block", "%gemm"), ("%turneda", "%turnedb", "%again"), ("%m", "%n", "%some"), places)
        yield f"""define void @{name}({PARAMETERS}) {{
entry:
  br label %block
block:
  %p = phi i64 [ 0, %entry ], [ %end, %within ]
  %again = phi i1 [ %adds, %entry ], [ 1, %within ]
  %left = sub i64 %k, %p
  %several = icmp sgt i64 %left, {self._longest}
  %some = select i1 %several, i64 {self._longest}, i64 %left
  %end = add i64 %p, %some
  %below = mul i64 %p, %linea
  %under = mul i64 %p, %lineb
  %starta = select i1 %turneda, i64 %below, i64 %p
  %startb = select i1 %turnedb, i64 %p, i64 %under
  %ata = getelementptr {kind}, ptr %a, i64 %starta
  %atb = getelementptr {kind}, ptr %b, i64 %startb
  br label %within
within:
  {block}
  br i1 %several, label %block, label %done
done:
  ret void
}}

define internal void @{name}_block({PARAMETERS}) {{
entry:
  %panel = alloca [{PANEL // self._vectors.bytes} x {kind}], align 64
  %row = select i1 %turneda, i64 1, i64 %linea
  %column = select i1 %turneda, i64 %linea, i64 1
  %far = icmp sge i64 %lineb, {FAR // self._vectors.bytes}
  %many = icmp sge i64 %m, {MANY}
  %pays = and i1 %far, %many
  br label %strip
strip:
  %j = phi i64 [ 0, %entry ], [ %nextj, %down ]
  %count = sub i64 %n, %j
  %more = icmp sgt i64 %count, 0
  br i1 %more, label %begin, label %out
begin:
  %whole = icmp sge i64 %count, {wide}
  %single = icmp sle i64 %count, {self._vectors.width}
  %beside = getelementptr {kind}, ptr %b, i64 %j
  br i1 %turnedb, label %turn, label %straight
turn:
  %some = select i1 %whole, i64 {wide}, i64 %count
  %before = mul i64 %j, %lineb
  %below = getelementptr {kind}, ptr %b, i64 %before
  call void @{name}_turn(ptr %panel, ptr %below, i64 %some, i64 %k, i64 %lineb)
  br label %first
straight:
  %copies = and i1 %pays, %whole
  br i1 %copies, label %copy, label %first
copy:
  call void @{name}_copy(ptr %panel, ptr %beside, i64 %k, i64 %lineb)
  br label %first
first:
  %top = phi ptr [ %panel, %turn ], [ %panel, %copy ], [ %beside, %straight ]
  %line = phi i64 [ {wide}, %turn ], [ {wide}, %copy ], [ %lineb, %straight ]
  br label %down0"""
        for number in range(len(self._heights)):
            yield from self._down(name, number)
        yield f"down:\n  %nextj = add i64 %j, {wide}\n  br label %strip\nout:\n  ret void\n}}"

    def _down(self, name: str, d: int) -> Iterator[str]:
        """The tiles of one height, the d-th, in a strip, from where the higher ones end to where no more fit."""
        kind, height = self._vectors.kind, self._heights[d]
        before, first = ("first", "0") if d == 0 else (f"down{d - 1}", f"%i{d - 1}")
        then = "down" if d + 1 == len(self._heights) else f"down{d + 1}"
        yield f"""down{d}:
  %i{d} = phi i64 [ {first}, %{before} ], [ %end{d}, %took{d} ]
  %end{d} = add i64 %i{d}, {height}
  %fits{d} = icmp sle i64 %end{d}, %m
  br i1 %fits{d}, label %take{d}, label %{then}
take{d}:
  %starta{d} = mul i64 %i{d}, %row
  %ata{d} = getelementptr {kind}, ptr %a, i64 %starta{d}
  %line{d} = mul i64 %i{d}, %linec
  %starto{d} = add i64 %line{d}, %j
  %ato{d} = getelementptr {kind}, ptr %c, i64 %starto{d}
  br i1 %whole, label %whole{d}, label %partial{d}
partial{d}:
  br i1 %single, label %single{d}, label %double{d}"""
        given = (
            f"ptr %ato{d}, ptr %ata{d}, ptr %top, i64 %k, i64 %row, i64 %column, i64 %line, i64 %linec, i64 %count, i1 %adds"
        )
        for label, one in _KINDS.items():
            yield f"{label}{d}:\n  call void @{name}_{Tile(height, *one).name}({given})\n  br label %took{d}"
        yield f"took{d}:\n  br label %down{d}"


_KINDS = {"whole": (2, False), "single": (1, True), "double": (2, True)}
"""Vectors of a tile, and whether it is partial, by how many columns are left: enough, one vector's at most, or more."""


# BLAS as SciPy brings it: the addresses of its products, and the number of threads that it uses itself.


@functools.cache
def gemm(dtype: np.dtype[Any]) -> int:
    """The address of `sgemm` or `dgemm`, which take the addresses of their operands, as Fortran does."""
    with importing:
        capsule = _cython_blas().__pyx_capi__["sgemm" if dtype == np.float32 else "dgemm"]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = ctypes.py_object, ctypes.c_char_p
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


@functools.cache
def _cython_blas() -> Any:
    """The module `scipy.linalg.cython_blas`, without the package around it, which takes 90 ms and 20 MiB more."""
    name = "scipy.linalg.cython_blas"
    if name in sys.modules:
        return sys.modules[name]
    import scipy  # which finds its libraries

    spec = importlib.machinery.PathFinder.find_spec(name, [str(pathlib.Path(scipy.__file__).parent / "linalg")])
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def on_one_thread() -> OneThread | None:
    """What keeps SciPy's BLAS on one thread; None if it cannot be told, and then shares products among its own."""
    gemm(np.dtype(np.float32))  # the library is loaded by now
    return blas.on_one_thread("scipy")
