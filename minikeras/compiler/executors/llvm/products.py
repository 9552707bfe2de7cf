"""Products of matrices as kernels: by BLAS, or in tiles of our own, which small ones need not be packed for."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .functions import Instructions, Value, type_of
from .kernels import ALIGN, load_address, load_operand, part_of
from .tiles import Tile, Vectors

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
    """A product of two matrices by BLAS, in rows or columns of its result.

    Its operands are the places of out, a and b, then m, n, k, whether a and b are stored transposed, the address of BLAS's
    `gemm` and whether parts are rows: out (m, n) = a @ b, where a is stored as (m, k) or, transposed, (k, m), and b likewise.

    Args:
        dtype: float32 or float64.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._kind = type_of(dtype)

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


class TiledProductKernel:
    """A product of two matrices, tile by tile; parts are rows of its result, and its bits do not depend on them.

    Its operands are those of `ProductKernel` up to whether a and b are stored transposed. Panels of a second factor that is
    stored transposed are turned around.

    Args:
        dtype: float32 or float64.
        vector: bytes of a vector of this processor.
    """

    def __init__(self, dtype: np.dtype[Any], vector: int) -> None:
        self._dtype, self._vectors, self._bytes = dtype, Vectors(dtype, vector), vector
        self._heights = [8, 4, 1] if vector == 64 else [4, 1]
        """Rows of tiles: with two vectors each, all sums lie in registers."""

    def takes(self, m: int, n: int, k: int) -> bool:
        """Whether it is for products of this size: a panel fits its memory, and BLAS would take longer."""
        return 0 < m * n * k <= LARGEST[self._bytes] and 2 * self._bytes * k <= PANEL

    def text(self, name: str) -> str:
        """The function, and before it those of tiles and panels."""
        return "\n".join([_pieces(self._dtype, self._bytes, name), *self._whole(name)])

    @property
    def tiles(self) -> list[Tile]:
        """What the result is made of."""
        return [Tile(rows, *kind) for rows in self._heights for kind in _KINDS.values()]

    def _whole(self, name: str) -> Iterator[str]:
        """Down a strip of columns, then the next."""
        to, kind, wide = Instructions(), self._vectors.kind, 2 * self._vectors.width
        out, a, b = [load_address(to, number) for number in range(3)]
        m, n, k, turned_a, turned_b = [load_operand(to, number) for number in range(3, 8)]
        start, stop = part_of(to, m, self._heights[0])
        for one, turned in (("%alongrows", turned_a), ("%turned", turned_b)):
            to.do(f"{one} = icmp ne i64 {turned}, 0")
        to.do(f"%row = select i1 %alongrows, i64 1, i64 {k}\n  %column = select i1 %alongrows, i64 {m}, i64 1")
        yield f"""define i64 @{name}(ptr %o, ptr %a, i64 %part, i64 %parts) {{
entry:
  %panel = alloca [{PANEL // self._vectors.bytes} x {kind}], align 64"""
        yield from to.lines
        yield f"""  %far = icmp sge i64 {n}, {FAR // self._vectors.bytes}
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
  %single = icmp sle i64 %count, {self._vectors.width}
  %beside = getelementptr {kind}, ptr {b}, i64 %j
  br i1 %turned, label %turn, label %straight
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
  %line = phi i64 [ {wide}, %turn ], [ {wide}, %copy ], [ {n}, %straight ]
  br label %down0"""
        for number in range(len(self._heights)):
            yield from self._down(name, number, (out, a, k, n), (start, stop))
        yield f"down:\n  %nextj = add i64 %j, {wide}\n  br label %strip\nout:\n  ret i64 0\n}}"

    def _down(self, name: str, d: int, operands: tuple[Value, Value, Value, Value], rows: tuple[Value, Value]) -> Iterator[str]:
        """The tiles of one height, the d-th, in a strip, from where the higher ones end to where no more fit."""
        kind, height, (out, a, k, n) = self._vectors.kind, self._heights[d], operands
        before, first = ("first", rows[0]) if d == 0 else (f"down{d - 1}", f"%i{d - 1}")
        then = "down" if d + 1 == len(self._heights) else f"down{d + 1}"
        yield f"""down{d}:
  %i{d} = phi i64 [ {first}, %{before} ], [ %end{d}, %took{d} ]
  %end{d} = add i64 %i{d}, {height}
  %fits{d} = icmp sle i64 %end{d}, {rows[1]}
  br i1 %fits{d}, label %take{d}, label %{then}
take{d}:
  %starta{d} = mul i64 %i{d}, %row
  %ata{d} = getelementptr {kind}, ptr {a}, i64 %starta{d}
  %line{d} = mul i64 %i{d}, {n}
  %starto{d} = add i64 %line{d}, %j
  %ato{d} = getelementptr {kind}, ptr {out}, i64 %starto{d}
  br i1 %whole, label %whole{d}, label %partial{d}
partial{d}:
  br i1 %single, label %single{d}, label %double{d}"""
        given = f"ptr %ato{d}, ptr %ata{d}, ptr %top, i64 {k}, i64 %row, i64 %column, i64 %line, i64 {n}, i64 %count"
        for label, one in _KINDS.items():
            yield f"{label}{d}:\n  call void @{name}_{Tile(height, *one).name}({given})\n  br label %took{d}"
        yield f"took{d}:\n  br label %down{d}"


_KINDS = {"whole": (2, False), "single": (1, True), "double": (2, True)}
"""Vectors of a tile, and whether it is partial, by how many columns are left: enough, one vector's at most, or more."""


@functools.cache
def _pieces(dtype: np.dtype[Any], vector: int, name: str) -> str:
    """The functions of tiles and panels, which take a millisecond to write."""
    vectors, tiles = Vectors(dtype, vector), TiledProductKernel(dtype, vector).tiles
    return "\n".join(
        [
            *vectors.declarations(),
            *(line for tile in tiles for line in vectors.tile(f"{name}_{tile.name}", tile)),
            *vectors.turning(f"{name}_turn"),
            *vectors.copying(f"{name}_copy"),
        ]
    )
