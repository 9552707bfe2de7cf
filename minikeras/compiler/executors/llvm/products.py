"""Matrix products as kernels: by BLAS, or in tiles of our own, for which small factors need no packing."""

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

from ....core.locks import importing
from ....parallel import OneThread
from ....parallel import on_one_thread as library_on_one_thread
from . import jit
from .functions import Instructions, Value, constant, function_text, type_of

# Pieces of a matrix product in LLVM's language: tiles of the result, in registers, and panels of the second factor.
#
# A panel is a strip of columns, two vectors wide, whose rows are neighbours in memory.


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
        """The declarations of functions that these call."""
        yield f"declare {self.type} @llvm.masked.load.{self._suffix}(ptr, i32, {self._bits}, {self.type})"
        yield f"declare void @llvm.masked.store.{self._suffix}({self.type}, ptr, i32, {self._bits})"

    # A tile -----------------------------------------------------------------------------------------------------------------

    def tile(self, name: str, height: int, vectors: int, partial: bool) -> Iterator[str]:
        """A tile of the result, `height` rows of `vectors`: for each of k, a row of b times one element of each row of a.

        If it is `partial`, some columns lie beyond the last one; with `adds` it accumulates. `row` and `column` are the strides
        of a, `line` that of b, n that of the result; `count` columns are left.
        """
        to, kind = Instructions(), self.kind
        strides = "i64 %row, i64 %column, i64 %line, i64 %n"
        yield f"define internal void @{name}(ptr %out, ptr %a, ptr %b, i64 %k, {strides}, i64 %count, i1 %adds) {{"
        to.label("entry")
        masks = [self._mask(to, number) if partial else None for number in range(vectors)]
        rows = [to.add(f"getelementptr {kind}, ptr %a, i64 {to.add(f'mul i64 %row, {row}')}") for row in range(height)]
        sums = {(row, number): f"%s{row}_{number}" for row in range(height) for number in range(vectors)}
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
        for row in range(height):
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
        """The mask of a vector's columns that exist."""
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

    def turning(self, name: str) -> str:
        """The transpose of x (rows, columns) in lines as a panel: blocks of 8 by 8 in registers, the rest one by one."""
        to = Instructions()
        eights = {one: to.add(f"ashr i64 %{one}, 3") for one in ("rows", "columns")}
        whole = {one: to.add(f"shl i64 {count}, 3") for one, count in eights.items()}
        with to.loop(stop=eights["rows"]) as strip:
            row = to.add(f"shl i64 {strip.index}, 3")
            with to.loop(stop=eights["columns"]) as block:
                self._turn_block(to, row, to.add(f"shl i64 {block.index}, 3"))
            self._turn_one_by_one(to, (row, to.add(f"add i64 {row}, 8")), (whole["columns"], "%columns"))
        self._turn_one_by_one(to, (whole["rows"], "%rows"), ("0", "%columns"))
        return function_text(f"internal void @{name}(ptr %panel, ptr %x, i64 %rows, i64 %columns, i64 %line)", to)

    def _turn_block(self, to: Instructions, row: Value, column: Value) -> None:
        eight = f"<8 x {self.kind}>"
        places = [self._cell(to, "%x", (row, column), "%line", number) for number in range(8)]
        lines = [to.add(f"load {eight}, ptr {place}, align {self.bytes}") for place in places]
        halves = [", ".join(f"i32 {at}, i32 {at + 8}" for at in range(start, start + 4)) for start in (0, 4)]
        for _ in range(3):  # each time rows i and i + 4 meet, as cards are shuffled
            lines = [
                to.add(f"shufflevector {eight} {lines[row]}, {eight} {lines[row + 4]}, <8 x i32> <{half}>")
                for row in range(4)
                for half in halves
            ]
        for number, line in enumerate(lines):
            place = self._cell(to, "%panel", (column, row), str(2 * self.width), number)
            to.do(f"store {eight} {line}, ptr {place}, align {self.bytes}")

    def _turn_one_by_one(self, to: Instructions, rows: tuple[Value, Value], columns: tuple[Value, Value]) -> None:
        """The elements of some rows and columns, each from the first to before the last."""
        with to.loop(*rows) as row, to.loop(*columns) as column:
            value = to.add(f"load {self.kind}, ptr {self._cell(to, '%x', (row.index, column.index), '%line', 0)}")
            place = self._cell(to, "%panel", (column.index, row.index), str(2 * self.width), 0)
            to.do(f"store {self.kind} {value}, ptr {place}")

    def _cell(self, to: Instructions, array: str, first: tuple[str, str], stride: str, number: int) -> Value:
        """The place of an element some rows below the first one."""
        row, column = first
        line = to.add(f"mul i64 {to.add(f'add i64 {row}, {number}')}, {stride}")
        return to.add(f"getelementptr {self.kind}, ptr {array}, i64 {to.add(f'add i64 {line}, {column}')}")


LARGEST = {64: 1 << 28, 32: 1 << 19, 16: 1 << 12}
"""Multiplications of the largest product in tiles, by the bytes of a vector. With 64, tiles take 0.5 to 1 times as long
as OpenBLAS, and half as long where that uses half a vector; with 32 they are ahead in short calls.
"""
PANEL = 1 << 18
"""Bytes of a panel, a strip of columns of the second factor, in memory of the stack."""
FEW = 4
"""The most columns for which a vector of so many takes half as long as a longer one."""


class Way(NamedTuple):
    """The method of a product: two addresses, as integers.

    Attributes:
        function: of `PARAMETERS`.
        blas: the address of the BLAS function for it; 0 if it needs none.
    """

    function: int
    blas: int


PARAMETERS = (
    "ptr %gemm, i1 %turneda, i1 %turnedb, i1 %adds, i64 %m, i64 %n, i64 %k, "
    "ptr %a, i64 %linea, ptr %b, i64 %lineb, ptr %c, i64 %linec"
)
"""Parameters of a function that computes c (m, n) = a @ b, or adds it to c. Each lies in lines, a and b perhaps transposed."""


def called(
    way: tuple[Value, Value], turned: Sequence[Value], sizes: Sequence[Value], places: Sequence[tuple[Value, Value]]
) -> str:
    """A call of such a function; the last of `turned` says whether it adds."""
    given = [f"ptr {way[1]}", *(f"i1 {one}" for one in turned), *(f"i64 {one}" for one in sizes)]
    given += [f"ptr {start}, i64 {line}" for start, line in places]
    return f"call void {way[0]}({', '.join(given)})"


def way_of(dtype: np.dtype[Any], sizes: tuple[int | None, int | None, int | None]) -> Way:
    """The method of products of at most these sizes; None for an unknown size."""
    m, n, k = sizes
    tiles = Tiles(dtype, jit.vector_bytes())
    if m is not None and n is not None and k is not None and tiles.takes(m, n, k):
        return Way(_address(tiles), 0)
    return Way(_address(Blas(dtype)), gemm(dtype))


_addresses: dict[str, int] = {}


def _address(product: Tiles | Blas) -> int:
    """The address of a function's machine code, which is compiled once."""
    if product.name not in _addresses:
        _addresses[product.name] = jit.functions(product.text(), [product.name])[0]
    return _addresses[product.name]


class Blas:
    """A function that calls BLAS, which is column-major: the transpose of c is the product of the transposes of b and a.

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
        to.do(f"call void %gemm({', '.join(f'ptr {x}' for x in operands)})")
        return function_text(f"void @{self.name}({PARAMETERS})", to)


class Tiles:
    """A function that goes tile by tile. Its bits do not depend on the division of rows, if parts begin at multiples of 8.

    Panels of a second factor that is stored transposed are transposed.

    Args:
        dtype: float32 or float64.
        vector: bytes of a vector of this processor.
    """

    def __init__(self, dtype: np.dtype[Any], vector: int) -> None:
        self._dtype, self._vectors, self._bytes = dtype, Vectors(dtype, vector), vector
        self._narrow = Vectors(dtype, FEW * dtype.itemsize)
        self._heights = [8, 4, 1] if vector == 64 else [4, 1]
        """Rows of tiles: with two vectors each, all sums lie in registers."""
        self._longest = PANEL // (2 * vector)
        """Rows of a panel."""
        self.name = f"product_by_tiles_{dtype.name}_{vector}"

    def _named(self, kind: str, rows: int) -> str:
        """The name of the function for a tile."""
        return f"{self.name}_{kind}_{rows}"

    def takes(self, m: int, n: int, k: int) -> bool:
        """True for products of this size, for which BLAS would take longer."""
        return 0 < m * n * k <= LARGEST[self._bytes]

    def text(self) -> str:
        """The function, and before it those of tiles and panels."""
        vectors = self._vectors
        tiles = [(label, rows, *kind) for rows in self._heights for label, kind in _KINDS.items()]
        own = {"narrow": self._narrow}
        return "\n".join(
            [
                *dict.fromkeys([*vectors.declarations(), *self._narrow.declarations()]),
                *(one for label, m, n, cut in tiles for one in own.get(label, vectors).tile(self._named(label, m), m, n, cut)),
                vectors.turning(f"{self.name}_turn"),
                self._block(f"{self.name}_block"),
                self._whole(),
            ]
        )

    def _whole(self) -> str:
        """The product in blocks of k, at least one even if k is 0; all but the first accumulate."""
        to, kind = Instructions(), self._vectors.kind
        with to.loop() as block:
            p, adds = to.add(f"mul i64 {block.index}, {self._longest}"), to.add(f"icmp sgt i64 {block.index}, 0")
            left, again = to.add(f"sub i64 %k, {p}"), to.add(f"or i1 %adds, {adds}")
            is_last = to.add(f"icmp sle i64 {left}, {self._longest}")
            some = to.add(f"select i1 {is_last}, i64 {left}, i64 {self._longest}")
            starts = [to.add(f"select i1 %turneda, i64 {to.add(f'mul i64 {p}, %linea')}, i64 {p}")]
            starts.append(to.add(f"select i1 %turnedb, i64 {p}, i64 {to.add(f'mul i64 {p}, %lineb')}"))
            a, b = [to.add(f"getelementptr {kind}, ptr %{x}, i64 {at}") for x, at in zip("ab", starts, strict=True)]
            places = (a, "%linea"), (b, "%lineb"), ("%c", "%linec")
            to.do(called((f"@{self.name}_block", "%gemm"), ("%turneda", "%turnedb", again), ("%m", "%n", some), places))
            block.leave(is_last)
        return function_text(f"void @{self.name}({PARAMETERS})", to)

    def _block(self, name: str) -> str:
        """A block: down a strip of columns, then the next strip."""
        to, kind, wide = Instructions(), self._vectors.kind, 2 * self._vectors.width
        panel = to.add(f"alloca [{PANEL // self._vectors.bytes} x {kind}], align 64")
        tops, lines = to.add("alloca ptr"), to.add("alloca i64")
        steps = [to.add(f"select i1 %turneda, i64 {one}, i64 {other}") for one, other in (("1", "%linea"), ("%linea", "1"))]
        with to.loop() as strip:
            j = to.add(f"mul i64 {strip.index}, {wide}")
            count = to.add(f"sub i64 %n, {j}")
            strip.leave(to.add(f"icmp sle i64 {count}, 0"))
            whole, single = to.add(f"icmp sge i64 {count}, {wide}"), to.add(f"icmp sle i64 {count}, {self._vectors.width}")
            narrow = to.add(f"icmp sle i64 {count}, {FEW}")
            beside = to.add(f"getelementptr {kind}, ptr %b, i64 {j}")
            to.do(f"store ptr {beside}, ptr {tops}\n  store i64 %lineb, ptr {lines}")
            with to.when("%turnedb"):
                some = to.add(f"select i1 {whole}, i64 {wide}, i64 {count}")
                below = to.add(f"getelementptr {kind}, ptr %b, i64 {to.add(f'mul i64 {j}, %lineb')}")
                to.do(f"call void @{self.name}_turn(ptr {panel}, ptr {below}, i64 {some}, i64 %k, i64 %lineb)")
                to.do(f"store ptr {panel}, ptr {tops}\n  store i64 {wide}, ptr {lines}")
            top, line = to.add(f"load ptr, ptr {tops}"), to.add(f"load i64, ptr {lines}")
            double = to.add(f"xor i1 {to.add(f'or i1 {whole}, {single}')}, true")
            fits = {"whole": whole, "single": to.add(f"xor i1 {single}, {narrow}"), "double": double, "narrow": narrow}
            given = f"ptr {top}, i64 %k, i64 {steps[0]}, i64 {steps[1]}, i64 {line}, i64 %linec, i64 {count}, i1 %adds"
            first = "0"
            for height in self._heights:
                first = self._down(to, height, first, (j, steps[0]), given, fits)
        return function_text(f"internal void @{name}({PARAMETERS})", to)

    def _down(
        self, to: Instructions, height: int, first: Value, at: tuple[Value, Value], given: str, fits: dict[str, Value]
    ) -> Value:
        """The tiles of one height in a strip, from a row to where no more fit, which is returned."""
        kind, (j, row) = self._vectors.kind, at
        count = to.add(f"sdiv i64 {to.add(f'sub i64 %m, {first}')}, {height}")
        with to.loop(stop=count) as tile:
            i = to.add(f"add i64 {first}, {to.add(f'mul i64 {tile.index}, {height}')}")
            a = to.add(f"getelementptr {kind}, ptr %a, i64 {to.add(f'mul i64 {i}, {row}')}")
            line = to.add(f"mul i64 {i}, %linec")
            c = to.add(f"getelementptr {kind}, ptr %c, i64 {to.add(f'add i64 {line}, {j}')}")
            for label in _KINDS:
                with to.when(fits[label]):
                    to.do(f"call void @{self._named(label, height)}(ptr {c}, ptr {a}, {given})")
        return to.add(f"add i64 {first}, {to.add(f'mul i64 {count}, {height}')}")


_KINDS = {"whole": (2, False), "single": (1, True), "double": (2, True), "narrow": (1, True)}
"""Vectors of a tile, and whether it is partial, by the columns that are left: enough, one vector's at most, or more, or FEW."""


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
    import scipy  # the import finds its libraries

    spec = importlib.machinery.PathFinder.find_spec(name, [str(pathlib.Path(scipy.__file__).parent / "linalg")])
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def on_one_thread() -> OneThread | None:
    """A context that keeps SciPy's BLAS on one thread; None if there is no way, and then it shares products among its own."""
    gemm(np.dtype(np.float32))  # the library is loaded by now
    return library_on_one_thread("scipy")
