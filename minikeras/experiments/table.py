"""Table: rows with named columns, as aligned text in a terminal, as HTML in a notebook and as a data frame of pandas."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import markup
from ..extras import imported

_DIGITS = 4
_MOST_ROWS = 100
_SHORTEST_TEXT = 24
_GAP = "  "
_LEFT_OUT = "…"


class Table:
    """Rows with named columns. Printed it is aligned and fits into the terminal, and a notebook shows it as HTML.

    Args:
        rows: dicts from names of columns to values. Columns stand in the order in which the rows name them first; what a row
            does not name is None there, and empty when it is shown.
        caption: a line above the table.

    Attributes:
        columns: the values by the name of their column, each a list with one value for each row.
        caption: as given, or None.

    A column of numbers is aligned right, everything else left. Floats are shown with four digits, or shorter where fewer are
    enough for a whole column. Where a terminal is narrow, names of columns are broken into lines, long texts are cut, then
    columns in the middle are left out; long tables show their first hundred rows. An ellipsis marks what is left out.
    `columns`, HTML and data frame hold everything.

    >>> table = Table([{"optimizer": "Adam", "loss": 0.0123456, "steps": 200}, {"optimizer": "SGD", "loss": 1.5}])
    >>> print(table)
    optimizer     loss  steps
    ─────────  ───────  ─────
    Adam       0.01235    200
    SGD          1.500
    >>> table.columns["loss"], len(table), [row["steps"] for row in table]
    ([0.0123456, 1.5], 2, [200, None])
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]], caption: str | None = None) -> None:
        listed = list(rows)
        names = dict.fromkeys(name for row in listed for name in row)
        self.columns: dict[str, list[Any]] = {name: [row.get(name) for row in listed] for name in names}
        self.caption = caption
        self._length = len(listed)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each with all columns."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def __repr__(self) -> str:
        """The text, as wide as the terminal at most."""
        return self.text(shutil.get_terminal_size((100, 24)).columns)

    def text(self, width: int) -> str:
        """The table as aligned lines, each of `width` characters at most where cutting texts and columns is enough for that."""
        lines = [] if self.caption is None else [self.caption]
        if not self.columns:
            return "\n".join([*lines, "(no rows)"])
        columns = [_Column([name], shown(found[:_MOST_ROWS]), is_numeric(found)) for name, found in self.columns.items()]
        columns = _within(width, columns)
        height = max(len(column.name) for column in columns)
        lines += (_GAP.join(cells).rstrip() for cells in zip(*(column.aligned(height) for column in columns), strict=True))
        hidden = len(self) - _MOST_ROWS
        return "\n".join(lines if hidden <= 0 else [*lines, f"{_LEFT_OUT} and {hidden} more rows"])

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        right = [place for place, values in enumerate(self.columns.values()) if is_numeric(values)]
        rows = zip(*(shown(values) for values in self.columns.values()), strict=True)
        return markup.table(list(self.columns), rows, right, self.caption)

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`, with whole values.

        Raises:
            MissingExtraError: without pandas.
        """
        pandas = imported("pandas", "to_pandas needs pandas")
        return pandas.DataFrame(self.columns, index=range(len(self)))


def is_numeric(values: Iterable[Any]) -> bool:
    """True if a column holds numbers and nothing else, apart from None; False for one without any value."""
    found = [value for value in values if value is not None]
    return bool(found) and all(isinstance(one, (int, float, np.number)) and not isinstance(one, bool) for one in found)


def shown(values: Sequence[Any]) -> list[str]:
    """The cells of a column as short texts of one line.

    >>> shown([0.001, 0.1, None]), shown([0.001, 1 / 3]), shown([True, "a\\nb", (1, 2), np.int64(3)])
    (['0.001', '0.1', ''], ['0.001000', '0.3333'], ['yes', 'a b', '(1, 2)', '3'])
    """
    floats = [float(value) for value in values if isinstance(value, (float, np.floating))]
    short = all(math.isclose(float(f"{value:.{_DIGITS}g}"), value, rel_tol=1e-7) for value in floats if math.isfinite(value))

    def text(value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, (bool, np.bool_)):
            return "yes" if value else "no"
        if isinstance(value, (float, np.floating)):
            number = float(value)
            return f"{number:.{_DIGITS}g}" if short else f"{number:#.{_DIGITS}g}".removesuffix(".")
        return " ".join(str(value).split())

    return [text(value) for value in values]


class _Column(NamedTuple):
    """The lines of a column's name, its cells, and whether they are aligned right."""

    name: list[str]
    cells: list[str]
    right: bool = False

    @property
    def width(self) -> int:
        return max(map(len, [*self.name, *self.cells]))

    def cut(self, size: int) -> _Column:
        """The column with lines of `size` characters at most."""
        name, cells = ([_cut(text, size) for text in texts] for texts in (self.name, self.cells))
        return _Column(name, cells, self.right)

    def aligned(self, height: int) -> list[str]:
        """All lines, of one width: the name at the bottom of `height` lines, a rule, the cells."""
        lines = [*[""] * (height - len(self.name)), *self.name, "─" * self.width, *self.cells]
        return [line.rjust(self.width) if self.right else line.ljust(self.width) for line in lines]


def _within(width: int, columns: list[_Column]) -> list[_Column]:
    """Columns that fit into a line: names are broken, then long texts cut, then columns in the middle left out."""
    if _line(columns) > width:
        narrowest = [max(map(len, [*column.name[0].split(), *column.cells])) for column in columns]
        names = [textwrap.wrap(one.name[0], most, break_on_hyphens=False) for one, most in zip(columns, narrowest, strict=True)]
        columns = [column._replace(name=name or [""]) for column, name in zip(columns, names, strict=True)]
    while (excess := _line(columns) - width) > 0:
        longest = max(range(len(columns)), key=lambda i: 0 if columns[i].right else columns[i].width)
        size = columns[longest].width
        if columns[longest].right or size <= _SHORTEST_TEXT:
            break
        columns[longest] = columns[longest].cut(max(size - excess, _SHORTEST_TEXT))
    first = last = (len(columns) + 1) // 2
    gap, shorter = _Column([_LEFT_OUT], [_LEFT_OUT] * len(columns[0].cells)), columns
    while _line(shorter) > width and last - first < len(columns) - 2:
        first, last = (first - 1, last) if first > len(columns) - last else (first, last + 1)
        shorter = [*columns[:first], gap, *columns[last:]]
    return shorter


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1].rstrip() + _LEFT_OUT


def _line(columns: Sequence[_Column]) -> int:
    """The length of a line of these columns."""
    return sum(column.width for column in columns) + len(_GAP) * (len(columns) - 1)
