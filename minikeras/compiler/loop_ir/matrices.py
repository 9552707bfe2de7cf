"""A body for each element of rows times columns, with sums and maxima of its results. Rows and columns are sizes."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import NamedTuple

from ..loops import Body
from .bodies import NUMBER, NoNest, inlined
from .expression import INDEX, Array, Axis, Expr, bits, cast, lift, minimum, register, size
from .nest import Fold, For, Nest, Part, Statement, Store

BLOCK = 1024
"""Elements whose sum is taken in the dtype itself; sums of blocks are added in float64."""

LINE = 16
"""Parts of a row begin at a multiple of so many elements, so that they share no cache line."""


class Kind(enum.IntEnum):
    """The layout of an input over rows times columns: full, each row the same, each column the same, one number, or columns of
    a wider matrix.
    """

    FULL = 0
    ROW = 1
    COLUMN = 2
    SCALAR = 3
    WINDOW = 4


class Result(enum.IntEnum):
    """The result made from an output: stored, summed over rows, over columns, over all, or the largest of each row."""

    STORE = 0
    OVER_ROWS = 1
    OVER_COLUMNS = 2
    OVER_ALL = 3
    LARGEST_OF_ROW = 4


class Output(NamedTuple):
    """A register of a body, and the result made from it."""

    register: int
    how: Result


def given_literals(body: Body) -> list[tuple[int, float]]:
    """The literals that are sizes of the nest, as bits, so that bodies with other numbers share its machine code."""
    exact = all(step.dtype is float or step.dtype.kind in "fb" for step in body.steps)
    return [(n, x) for n, x in body.literals if type(x) is float or (exact and type(x) is int and abs(x) > 2)]


def matrix_nest(body: Body, kinds: Sequence[Kind], outputs: Sequence[Output], by_rows: bool) -> Nest:
    """A body for rows times columns elements; a stored output may take the memory of a FULL input.

    Args:
        body: the operations on each element.
        kinds: of the inputs. The sizes of a WINDOW are its first element and the distance of its rows.
        outputs: registers and the results made from them.
        by_rows: whether parts are rows; else columns.

    Raises:
        NoNest: if functions of the body take operands of several dtypes, or integers are divided.
    """
    return _Matrix(body, kinds, outputs, by_rows).nest


class _Matrix:
    """A nest in the making."""

    def __init__(self, body: Body, kinds: Sequence[Kind], outputs: Sequence[Output], by_rows: bool) -> None:
        if any(step.function in ("floor_divide", "remainder") and step.dtype == INDEX for step in body.steps):
            raise NoNest("a division of integers")
        literals = given_literals(body)
        self._body, self._kinds = body, kinds
        self._bits = [size(f"literal{number}") for number, _ in enumerate(literals)]
        self._literals = {register: bits(one) for (register, _), one in zip(literals, self._bits, strict=True)}
        self._inputs = [Array(f"x{n}", NUMBER if dtype is float else dtype) for n, dtype in enumerate(body.inputs)]
        dtypes = body.dtypes
        self._outputs = [(Array(f"y{n}", dtypes[one.register]), one) for n, one in enumerate(outputs)]
        self._rows, self._columns, self._start, self._stop = [size(one) for one in ("rows", "columns", "start", "stop")]
        self._totals = {y: register(NUMBER) for y, one in self._outputs if one.how is Result.OVER_ALL}
        windows = [number for number, kind in enumerate(kinds) if kind is Kind.WINDOW]
        self._windows = {number: (size(f"first{number}"), size(f"line{number}")) for number in windows}
        extent = self._rows if by_rows else self._columns
        row_range = (self._start, self._stop) if by_rows else (lift(0), self._rows)
        self._range = (lift(0), self._columns) if by_rows else (self._start, self._stop)
        part = Part(extent, self._start, self._stop, self._all(*row_range), 1 if by_rows else LINE)
        places = [one for pair in self._windows.values() for one in pair]
        arrays = [*self._inputs, *[y for y, _ in self._outputs]]
        sizes = [self._rows, self._columns, *places, *self._bits]
        self.nest = Nest("loop", arrays, sizes, part, in_place=True)

    def _all(self, first: Expr, last: Expr) -> list[Statement]:
        """All rows of the part."""
        row = Axis(last - first, "parallel" if self._start is first else "sequential")
        body: list[Statement] = [Fold(one, "set", 0.0) for one in self._totals.values()]
        begin, end = self._range
        for y, one in self._outputs:
            if one.how is Result.OVER_ROWS:
                zero = Axis(end - begin)
                body.append(For(zero, [Store(y, begin + zero, 0)]))
        single = [kind is Kind.SCALAR or one is float for kind, one in zip(self._kinds, self._body.inputs, strict=True)]
        singles = {n: self._kept(x[0], body) for n, x in enumerate(self._inputs) if single[n]}
        body.append(For(row, self._row(first + row, singles)))
        return body + [Store(y, 0, cast(total, y.dtype)) for y, total in self._totals.items()]

    @staticmethod
    def _kept(value: Expr, before: list[Statement]) -> Expr:
        """A value in a register, so that no loop reads it again."""
        known = register(value.dtype)
        before.append(Fold(known, "set", value))
        return known

    def _row(self, row: Expr, singles: dict[int, Expr]) -> list[Statement]:
        body: list[Statement] = []
        known = dict(singles)
        for number, kind in enumerate(self._kinds):
            if kind is Kind.COLUMN and number not in known:
                known[number] = self._kept(self._inputs[number][row], body)
        begin, end = self._range
        summed = {y: register(y.dtype) for y, one in self._outputs if one.how in (Result.OVER_ALL, Result.OVER_COLUMNS)}
        largest = {y: register(y.dtype) for y, one in self._outputs if one.how is Result.LARGEST_OF_ROW}
        if not summed and not largest:
            return [*body, self._elements(row, begin, end - begin, known, {})]
        sums = {y: self._totals.get(y) or register(NUMBER) for y in summed}
        body += [Fold(sums[y], "set", 0.0) for y in summed if y not in self._totals]
        body += [Fold(one, "set", -math.inf) for one in largest.values()]
        block = Axis((end - begin + (BLOCK - 1)) // BLOCK, "sequential")
        first = begin + block * BLOCK
        within: list[Statement] = [Fold(one, "set", 0.0) for one in summed.values()]
        within.append(self._elements(row, first, minimum(end - first, BLOCK), known, summed | largest))
        within += [Fold(sums[y], "add", cast(one, NUMBER)) for y, one in summed.items()]
        body.append(For(block, within))
        body += [Store(y, row, cast(sums[y], y.dtype)) for y in summed if y not in self._totals]
        return body + [Store(y, row, one) for y, one in largest.items()]

    def _elements(self, row: Expr, first: Expr, count: Expr, known: dict[int, Expr], folded: dict[Array, Expr]) -> For:
        """Neighbouring elements of a row."""
        inner = Axis(count, "reduced" if folded else "parallel")
        column = first + inner
        at = row * self._columns + column
        values = dict(self._literals)
        for number, (x, kind) in enumerate(zip(self._inputs, self._kinds, strict=True)):
            if kind is Kind.WINDOW:
                start, line = self._windows[number]
                values[number] = x[start + row * line + column]
            else:
                values[number] = known[number] if number in known else x[at if kind is Kind.FULL else column]
        body: list[Statement] = []
        outputs = self._body._replace(outputs=tuple([one.register for _, one in self._outputs]))
        for (y, one), value in zip(self._outputs, inlined(outputs, values), strict=True):
            if one.how is Result.STORE:
                body.append(Store(y, at, value))
            elif one.how is Result.OVER_ROWS:
                body.append(Store(y, column, value, adds=True))
            else:
                body.append(Fold(folded[y], "maximum" if one.how is Result.LARGEST_OF_ROW else "add", value))
        return For(inner, body)
