"""Rows of a table by their numbers: gathered, or with others added. Negative numbers count from the end, as in NumPy."""

from __future__ import annotations

from typing import Any

from .expression import INDEX, Array, Axis, Expr, all_of, cast, lift, maximum, minimum, register, size, where
from .nest import Fold, For, Nest, Statement, Store

WIDTH = 64
"""Columns of a row that one thread adds, so that no two threads meet."""

OUTER, COUNT, ROWS = size("outer"), size("count"), size("rows")


def gather(width: int, dtype: Any, indices: Any, stacked: bool) -> Nest:
    """y (outer, count, width) = x (outer, rows, width) at the rows of these numbers; outer is 1 if x is not `stacked`."""
    x, numbers, y, refused = Array("x", dtype), Array("numbers", indices), Array("y", dtype), register(INDEX)
    r, c = Axis(OUTER * COUNT if stacked else COUNT), Axis(width)
    row, refusal = _row(numbers, r % COUNT if stacked else r, refused)
    source = (r // COUNT * ROWS if stacked else 0) + row
    body: list[Statement] = [refusal, For(c, [Store(y, r * width + c, x[source * width + c])])]
    return Nest("gather", [x, numbers, y], [OUTER, COUNT, ROWS], For(r, body), refused=refused)


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


def _row(numbers: Array, at: Expr, refused: Expr) -> tuple[Expr, Fold]:
    """The row of a number, which is always one of the table, and what notes that the number is none."""
    number = cast(numbers[at], INDEX)
    row = where(number < 0, number + ROWS, number)
    outside = where(all_of([row >= 0, row < ROWS]), 0, 1)
    return maximum(minimum(row, ROWS - 1), 0), Fold(refused, "maximum", outside)
