"""Gather and scatter: elements at indices that an array holds, and rows of a table by their numbers.

Negative numbers count from the end, as in NumPy. Checks before refuse numbers that are no rows; here they count as 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import Record, operations
from ...types import as_dtype
from ..ir import Slot
from .expression import (
    INDEX,
    Array,
    Axis,
    Expr,
    all_of,
    apply,
    cast,
    constant,
    converted,
    lift,
    minimum,
    register,
    size,
    where,
)
from .moves import Names, element_nest, whole
from .nest import SHORT, Fold, For, Nest, Statement, Store
from .reductions import folded_over, wide
from .strided import Launch, NestWriter, Shape, contiguous, coordinates, place

TILE = 256
"""The number of indices that are scanned at once, and of columns of a row in registers."""
BESIDE = 64
"""Columns of a row that one thread adds, so that no two threads write the same element."""

OUTER, COUNT, ROWS, WIDTH = [size(one) for one in ("outer", "count", "rows", "width")]


def gather_nest(shape: tuple[Any, Any, Any, Any], dtype: Any, indices: Any, sizes: Sequence[Expr] = ()) -> Nest:
    """y (outer, count, width) = x (outer, rows, width) at the rows of these numbers; shape is (outer, count, rows, width)."""
    (x, numbers, y), (outer, count, rows, width) = _of_rows(dtype, indices), shape
    r, c, stacked = Axis(outer * count), Axis(width), isinstance(outer, Expr) or outer > 1
    source = (r // count * rows if stacked else 0) + checked(numbers[r % count if stacked else r], rows)
    return Nest("gather", [x, numbers, y], sizes, For(r, [For(c, [Store(y, r * width + c, x[source * width + c])])]))


def add_nest(shape: tuple[Any, Any, Any, int], dtype: np.dtype[Any], indices: Any, sizes: Sequence[Expr]) -> Nest:
    """y (outer, rows, width) = zeros with each row of x (outer, count, width) added to that of its number, in order."""
    (x, numbers, y), (outer, count, rows, width) = _of_rows(dtype, indices), shape
    blocks = -(-width // BESIDE)
    part, target, i = Axis(outer * blocks), Axis(rows, "sequential"), Axis(count, "sequential")
    member = part // blocks if isinstance(outer, Expr) else lift(0)
    first = part % blocks * BESIDE
    zero, c = [Axis(minimum(width - first, BESIDE)) for _ in range(2)]
    cleared = Store(y, (member * rows + target) * width + first + zero, 0)
    row = member * rows + checked(numbers[i], rows)
    added = Store(y, row * width + first + c, x[(member * count + i) * width + first + c], adds=True)
    body: list[Statement] = [For(target, [For(zero, [cleared])]), For(i, [For(c, [added])])]
    return Nest("add_rows", [x, numbers, y], sizes, For(part, body))


def take_nest(dtype: np.dtype[Any], indices: Any) -> Nest:
    """y (rows) = in each row of x (rows, columns) the element of that number."""
    (x, numbers, y), r = _of_rows(dtype, indices), Axis(ROWS)
    return Nest("take_at", [x, numbers, y], [ROWS, WIDTH], For(r, [Store(y, r, x[r * WIDTH + checked(numbers[r], WIDTH)])]))


def add_number_nest(dtype: np.dtype[Any], indices: Any, number: Any, columns: int) -> Nest:
    """y = x (rows, columns) with a number added to one element of each row; y may take the memory of x."""
    (x, numbers, y), width = _of_rows(dtype, indices), lift(columns) if columns < SHORT else WIDTH
    r, c, chosen = Axis(ROWS), Axis(width), register(INDEX)
    at = r * width + c
    added = Store(y, at, where(apply("equal", c, chosen), x[at] + number, x[at]))
    body: list[Statement] = [Fold(chosen, "set", checked(numbers[r], width)), For(c, [added])]
    return Nest("add_at", [x, numbers, y], [ROWS, WIDTH], For(r, body), in_place=True)


def checked(number: Expr, count: Any) -> Expr:
    """An index within an axis; a negative one counts from its end, one beyond it becomes 0."""
    number = cast(number, INDEX)
    at = where(number < 0, number + count, number)
    return where(all_of([at >= 0, at < count]), at, 0)


def _of_rows(dtype: np.dtype[Any], indices: Any) -> tuple[Array, Array, Array]:
    return Array("x", dtype), Array("numbers", indices), Array("y", dtype)


# Instructions as nests of constants ---------------------------------------------------------------------------------------


def gather(record: Record) -> list[Launch]:
    """Slices of x at indices along one of its axes."""
    (x, indices), y = record.inputs, record.outputs
    axis = record.params["axis"] + len(x.shape)
    shape = math.prod(x.shape[:axis]), math.prod(indices.shape), x.shape[axis], math.prod(x.shape[axis + 1 :])
    return [Launch(gather_nest(shape, x.dtype, indices.dtype), (x, indices), (y,))]


def _broadcast_strides(shape: Shape, full: Shape) -> Shape:
    """The strides of an array that is broadcast to a shape of as many axes."""
    return tuple([0 if size == 1 != n else stride for size, n, stride in zip(shape, full, contiguous(shape), strict=True)])


def take_along(record: Record) -> list[Launch]:
    """Elements of x at indices along one axis; the other coordinates are those of the result."""
    (x, indices), y = record.inputs, record.outputs
    axis = record.params["axis"] + len(x.shape)

    def value(writer: NestWriter, names: Names) -> Expr:
        given = writer.array(indices)[place(_broadcast_strides(indices.shape, y.shape), names)]
        own = [stride if one == axis or x.shape[one] > 1 else 0 for one, stride in enumerate(contiguous(x.shape))]
        return writer.array(x)[place(own, [*names[:axis], checked(given, x.shape[axis]), *names[axis + 1 :]])]

    return [element_nest("take_along", y, value)]


def add_along(record: Record) -> list[Launch]:
    """Each element of y is the sum of the elements of g along an axis whose index equals its coordinate there."""
    (g, indices), y = record.inputs, record.outputs
    axis, dtype = record.params["axis"] + len(g.shape), wide(g.dtype)
    writer, i, k = NestWriter(), Axis(math.prod(y.shape)), Axis(g.shape[axis], "reduced")
    names = coordinates(i, y.shape)
    inside = [*names[:axis], k, *names[axis + 1 :]]
    at = checked(writer.array(indices)[place(_broadcast_strides(indices.shape, g.shape), inside)], y.shape[axis])
    own = cast(whole(writer, g, inside), dtype)
    total, body = folded_over(k, "add", where(apply("equal", at, names[axis]), own, constant(0, dtype)))
    return [writer.lowered("add_along", For(i, [*body, Store(writer.result(y), i, converted(total, y.dtype))]))]


# Scatter ---------------------------------------------------------------------------------------------------------------------

Combine = Callable[[Expr, Expr], Expr]


def _function(name: str) -> Combine:
    return lambda total, x: Expr(name, (total, x), total.dtype)


_COMBINED: dict[str, tuple[Combine, Callable[[Any], Any]]] = {
    "add_rows": (_function("add"), lambda dtype: 0),
    "segment_max": (_function("maximum"), lambda dtype: as_dtype(dtype).min),
    "segment_min": (_function("minimum"), lambda dtype: as_dtype(dtype).max),
    "segment_prod": (_function("multiply"), lambda dtype: 1),
}


Row = Callable[[NestWriter, Expr], Expr]


def scatter_nest(
    name: str, x: Slot, y: Slot, shape: tuple[int, int, int, int], row_of: Row, combine: Combine, start: Row
) -> list[Launch]:
    """x (lead, rows, behind), whose row k is combined with row `row_of(k)` of y (lead, size, behind).

    Each point owns columns of one row of the result, and scans all indices in their order, tile by tile. A tile without an
    index of the row is skipped after one scan of its indices.

    Args:
        name: of the operation.
        x, y: operand and result.
        shape: lead, rows, size, behind.
        row_of: the row of y, from the number of a row of x.
        combine: of the value so far and an element.
        start: the initial value of an element of y, from its place.
    """
    lead, rows, size, behind = shape
    width, dtype, writer = lead * behind, wide(x.dtype), NestWriter()
    chunk = min(width, TILE)
    chunks = -(-width // chunk)
    point, totals = Axis(size * chunks), Array("totals", dtype, chunk)
    row, first = point // chunks, point % chunks * chunk if chunks > 1 else lift(0)

    def columns(extent: Callable[[Expr], Expr] = lambda n: n) -> tuple[Axis, list[Expr]]:
        axis = Axis(extent(minimum(width - first, chunk) if width % chunk else lift(chunk)))
        return axis, coordinates(first + axis, (lead, behind))

    def here(k: Expr) -> Expr:
        return apply("equal", row_of(writer, k), row)

    def own(names: Sequence[Expr]) -> Expr:
        return place((size * behind, behind, 1), (names[0], row, names[1]))

    tile = Axis(-(-rows // TILE), "sequential")
    rest = minimum(rows - tile * TILE, TILE)
    m = Axis(rest, "reduced")
    found, search = folded_over(m, "logical_or", here(tile * TILE + m))
    one = Axis(where(found, rest, 0), "sequential")
    k = tile * TILE + one
    (begin, before), (taken, within), (end, after) = columns(), columns(lambda n: where(here(k), n, 0)), columns()
    inner = place((rows * behind, behind, 1), (within[0], k, within[1]))
    added = Store(totals, taken, combine(totals[taken], cast(writer.array(x)[inner], dtype)))
    started = Store(totals, begin, cast(start(writer, own(before)), dtype))
    array = writer.result(y)
    body = [
        For(begin, [started]),
        For(tile, [*search, For(one, [For(taken, [added])])]),
        For(end, [Store(array, own(after), converted(totals[end], y.dtype))]),
    ]
    return [writer.lowered(name, For(point, body), [totals])]


def scatter_rows(record: Record) -> list[Launch]:
    """Rows added, or otherwise combined, at their numbers."""
    (x, indices), y = record.inputs, record.outputs
    size, last = record.params["size"], len(x.shape) + record.params["axis"]
    first = last - len(indices.shape) + 1
    combine, start = _COMBINED[record.primitive.name]
    lead, behind = math.prod(x.shape[:first]), math.prod(x.shape[last + 1 :])
    index = lambda writer, k: checked(writer.array(indices)[k], size)
    begin = constant(start(x.dtype), x.dtype)
    shape = lead, math.prod(indices.shape), size, behind
    return scatter_nest("scatter", x, y, shape, index, combine, lambda writer, at: begin)


def _addressed(indices: Slot, shape: Shape) -> Callable[[NestWriter, Expr], Expr]:
    """The number of the row that a tuple of coordinates addresses."""
    width = indices.shape[-1]

    def index(writer: NestWriter, k: Expr) -> Expr:
        array = writer.array(indices)
        return place(contiguous(shape[:width]), [checked(array[k * width + one], shape[one]) for one in range(width)])

    return index


def gather_nd(record: Record) -> list[Launch] | None:
    """Slices at tuples of coordinates."""
    (x, indices), y = record.inputs, record.outputs
    width = indices.shape[-1]
    if not width:
        return None
    count, behind = math.prod(indices.shape[:-1]), math.prod(x.shape[width:])
    index = _addressed(indices, x.shape)
    value = lambda writer, names: writer.array(x)[place((behind, 1), (index(writer, names[0]), names[1]))]
    return [element_nest("gather_nd", y, value, (count, behind))]


def scatter_nd(record: Record) -> list[Launch] | None:
    """`scatter_nd` adds to zeros; in `overwrite_nd` the last of several updates wins."""
    overwrites = record.primitive is operations.overwrite_nd
    (*base, indices, updates) = record.inputs if overwrites else (*record.inputs[1:], record.inputs[0])
    y, width = record.outputs, indices.shape[-1]
    count, behind = math.prod(indices.shape[:-1]), math.prod(y.shape[width:])
    if updates.shape != (*indices.shape[:-1], *y.shape[width:]):
        return None
    start = lambda writer, at: writer.array(base[0])[at] if overwrites else constant(0, y.dtype)
    combine: Combine = (lambda total, x: x) if overwrites else _function("add")
    shape = 1, count, math.prod(y.shape[:width]), behind
    return scatter_nest("scatter_nd", updates, y, shape, _addressed(indices, y.shape), combine, start)
