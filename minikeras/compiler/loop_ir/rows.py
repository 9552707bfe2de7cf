"""Rows of a table by their numbers, gathered or with others added, and single elements of rows.

Negative numbers count from the end, as in NumPy. Where lengths are sizes, numbers that are no rows are refused; with constants,
as for a GPU, they are looked at before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .expression import INDEX, Array, Axis, Expr, all_of, apply, cast, lift, maximum, minimum, register, size, where
from .nest import SHORT, Fold, For, Nest, Statement, Store

BESIDE = 64
"""Columns of a row that one thread adds, so that no two threads write the same element."""

OUTER, COUNT, ROWS, COLUMNS, WIDTH = [size(one) for one in ("outer", "count", "rows", "columns", "width")]


def gather(shape: tuple[Any, Any, Any, Any], dtype: Any, indices: Any, sizes: Sequence[Expr] = ()) -> Nest:
    """y (outer, count, width) = x (outer, rows, width) at the rows of these numbers; shape is (outer, count, rows, width)."""
    (x, numbers, y), (outer, count, rows, width) = _of_rows(dtype, indices), shape
    refused = register(INDEX) if sizes else None
    r, c, stacked = Axis(outer * count), Axis(width), isinstance(outer, Expr) or outer > 1
    row, refusal = _row(numbers, r % count if stacked else r, refused, rows)
    source = (r // count * rows if stacked else 0) + row
    body: list[Statement] = [*refusal, For(c, [Store(y, r * width + c, x[source * width + c])])]
    return Nest("gather", [x, numbers, y], sizes, For(r, body), refused=refused)


def add(shape: tuple[Any, Any, Any, int], dtype: np.dtype[Any], indices: Any, sizes: Sequence[Expr]) -> Nest:
    """y (outer, rows, width) = zeros with each row of x (outer, count, width) added to that of its number, in order."""
    (x, numbers, y), (outer, count, rows, width), refused = _of_rows(dtype, indices), shape, register(INDEX)
    blocks = -(-width // BESIDE)
    part, target, i = Axis(outer * blocks), Axis(rows, "sequential"), Axis(count, "sequential")
    member = part // blocks if isinstance(outer, Expr) else lift(0)
    first = part % blocks * BESIDE
    zero, c = [Axis(minimum(width - first, BESIDE)) for _ in range(2)]
    row, refusal = _row(numbers, i, refused, rows)
    cleared = Store(y, (member * rows + target) * width + first + zero, 0)
    added = Store(y, (member * rows + row) * width + first + c, x[(member * count + i) * width + first + c], adds=True)
    body: list[Statement] = [For(target, [For(zero, [cleared])]), For(i, [*refusal, For(c, [added])])]
    return Nest("add_rows", [x, numbers, y], sizes, For(part, body), refused=refused)


def take(dtype: np.dtype[Any], indices: Any) -> Nest:
    """y (rows) = in each row of x (rows, columns) the element of that number."""
    (x, numbers, y), r, refused = _of_rows(dtype, indices), Axis(ROWS), register(INDEX)
    column, refusal = _row(numbers, r, refused, COLUMNS)
    body: list[Statement] = [*refusal, Store(y, r, x[r * COLUMNS + column])]
    return Nest("take_at", [x, numbers, y], [ROWS, COLUMNS], For(r, body), refused=refused)


def add_number(dtype: np.dtype[Any], indices: Any, number: Any, columns: int) -> Nest:
    """y = x (rows, columns) with a number added to one element of each row; y may take the memory of x."""
    (x, numbers, y), refused = _of_rows(dtype, indices), register(INDEX)
    width = lift(columns) if columns < SHORT else COLUMNS
    r, c, chosen = Axis(ROWS), Axis(width), register(INDEX)
    column, refusal = _row(numbers, r, refused, width)
    at = r * width + c
    body: list[Statement] = [*refusal, Fold(chosen, "set", column)]
    body.append(For(c, [Store(y, at, where(apply("equal", c, chosen), x[at] + number, x[at]))]))
    return Nest("add_at", [x, numbers, y], [ROWS, COLUMNS], For(r, body), refused=refused, in_place=True)


def checked(number: Expr, count: int) -> Expr:
    """An index within an axis; a negative one counts from its end, one beyond it becomes 0."""
    number = cast(number, INDEX)
    at = where(number < 0, number + count, number)
    return where(all_of([at >= 0, at < count]), at, 0)


def _of_rows(dtype: np.dtype[Any], indices: Any) -> tuple[Array, Array, Array]:
    return Array("x", dtype), Array("numbers", indices), Array("y", dtype)


def _row(numbers: Array, at: Expr, refused: Expr | None, count: Any) -> tuple[Expr, list[Statement]]:
    """The row of a number, always a valid one, and the statement that notes an invalid number."""
    if refused is None:
        return checked(numbers[at], count), []
    number = cast(numbers[at], INDEX)
    row = where(number < 0, number + count, number)
    outside = where(all_of([row >= 0, row < count]), 0, 1)
    return maximum(minimum(row, count - 1), 0), [Fold(refused, "maximum", outside)]
