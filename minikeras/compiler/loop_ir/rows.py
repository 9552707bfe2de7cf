"""Rows of a table by their numbers, gathered or with others added, and single elements of rows, by number or the largest.

Negative numbers count from the end, as in NumPy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .expression import INDEX, TRUTH, Array, Axis, Expr, all_of, apply, cast, lift, maximum, minimum, register, size, where
from .nest import Fold, For, Nest, Statement, Store

WIDTH = 64
"""Columns of a row that one thread adds, so that no two threads meet."""

OUTER, COUNT, ROWS, COLUMNS = size("outer"), size("count"), size("rows"), size("columns")


def gather(width: Any, dtype: Any, indices: Any, stacked: bool) -> Nest:
    """y (outer, count, width) = x (outer, rows, width) at the rows of these numbers; outer is 1 if x is not `stacked`.

    A width that is an expression is one more size.
    """
    x, numbers, y, refused = Array("x", dtype), Array("numbers", indices), Array("y", dtype), register(INDEX)
    r, c = Axis(OUTER * COUNT if stacked else COUNT), Axis(width)
    row, refusal = _row(numbers, r % COUNT if stacked else r, refused)
    source = (r // COUNT * ROWS if stacked else 0) + row
    body: list[Statement] = [refusal, For(c, [Store(y, r * width + c, x[source * width + c])])]
    sizes = [OUTER, COUNT, ROWS, *([width] if isinstance(width, Expr) else [])]
    return Nest("gather", [x, numbers, y], sizes, For(r, body), refused=refused)


def add(width: int, dtype: Any, indices: Any, stacked: bool) -> Nest:
    """y (outer, rows, width) = zeros with each row of x (outer, count, width) added to that of its number, in order."""
    x, numbers, y, refused = Array("x", dtype), Array("numbers", indices), Array("y", dtype), register(INDEX)
    blocks = -(-width // WIDTH)
    part, target, i = Axis(OUTER * blocks if stacked else blocks), Axis(ROWS, "sequential"), Axis(COUNT, "sequential")
    outer, first = part // blocks if stacked else lift(0), part % blocks * WIDTH if blocks > 1 else lift(0)
    zero, c = [Axis(minimum(width - first, WIDTH)) for _ in range(2)]
    row, refusal = _row(numbers, i, refused)
    cleared = Store(y, (outer * ROWS + target) * width + first + zero, 0)
    added = Store(y, (outer * ROWS + row) * width + first + c, x[(outer * COUNT + i) * width + first + c], adds=True)
    body: list[Statement] = [For(target, [For(zero, [cleared])]), For(i, [refusal, For(c, [added])])]
    return Nest("add_rows", [x, numbers, y], [OUTER, COUNT, ROWS], For(part, body), refused=refused)


def take(dtype: Any, indices: Any) -> Nest:
    """y (rows) = in each row of x (rows, columns) the element of that number."""
    x, numbers, y, refused, r = *_of_rows(dtype, indices), register(INDEX), Axis(ROWS)
    column, refusal = _row(numbers, r, refused, COLUMNS)
    body: list[Statement] = [refusal, Store(y, r, x[r * COLUMNS + column])]
    return Nest("take_at", [x, numbers, y], [ROWS, COLUMNS], For(r, body), refused=refused)


def add_number(dtype: Any, indices: Any, number: Any) -> Nest:
    """y = x (rows, columns) with a number added to one element of each row; y may lie where x lies."""
    x, numbers, y, refused, r, c = *_of_rows(dtype, indices), register(INDEX), Axis(ROWS), Axis(COLUMNS)
    column, refusal = _row(numbers, r, refused, COLUMNS)
    chosen, at = register(INDEX), r * COLUMNS + c
    body: list[Statement] = [refusal, Fold(chosen, "set", column)]
    body.append(For(c, [Store(y, at, where(apply("equal", c, chosen), x[at] + number, x[at]))]))
    return Nest("add_at", [x, numbers, y], [ROWS, COLUMNS], For(r, body), refused=refused, in_place=True)


def _of_rows(dtype: Any, indices: Any) -> tuple[Array, Array, Array]:
    return Array("x", dtype), Array("numbers", indices), Array("y", dtype)


def largest(dtype: Any, numbers: Any) -> Nest:
    """y (rows) = the number of the largest element of each row of x, or of the first NaN; the first of equals."""
    x, y, r, c, again = Array("x", dtype), Array("y", numbers), Axis(ROWS), *[Axis(COLUMNS, "reduced") for _ in range(2)]
    top, found = register(dtype), register(INDEX)
    one = x[r * COLUMNS + again]
    is_top = apply("equal", one, top)
    if np.dtype(dtype).kind == "f":  # NaN is the largest, and equals nothing
        is_top = Expr("logical_or", (is_top, apply("not_equal", one, one)), TRUTH)
    body: list[Statement] = [
        Fold(top, "set", -math.inf if np.dtype(dtype).kind == "f" else x[r * COLUMNS]),
        For(c, [Fold(top, "maximum", x[r * COLUMNS + c])]),
        Fold(found, "set", COLUMNS - 1),
        For(again, [Fold(found, "minimum", where(is_top, again, COLUMNS - 1))]),
        Store(y, r, cast(found, numbers)),
    ]
    return Nest("argmax", [x, y], [ROWS, COLUMNS], For(r, body))


def _row(numbers: Array, at: Expr, refused: Expr, count: Expr = ROWS) -> tuple[Expr, Fold]:
    """The row of a number, which is always one of so many, and what notes that the number is none."""
    number = cast(numbers[at], INDEX)
    row = where(number < 0, number + count, number)
    outside = where(all_of([row >= 0, row < count]), 0, 1)
    return maximum(minimum(row, count - 1), 0), Fold(refused, "maximum", outside)
