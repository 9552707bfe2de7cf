"""HTML for notebooks: text and tables that are read on light and on dark paper. Text is escaped; nothing is loaded or run."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence


def element(tag: str, text: str, style: str = "") -> str:
    """An element that holds nothing but text.

    >>> element("b", "<script>")
    '<b>&lt;script&gt;</b>'
    """
    attribute = f' style="{style}"' if style else ""
    return f"<{tag}{attribute}>{html.escape(text)}</{tag}>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[int] = (), caption: str | None = None) -> str:
    """A table.

    Args:
        head: the names of the columns.
        rows: for each row a text for each column.
        right: the numbers of the columns whose texts stand right; the others stand left.
        caption: above the table.

    >>> print(table(["a"], [["x < y"]]).partition("<tbody>")[2])
    <tr><td style="text-align: left">x &lt; y</td></tr></tbody></table>
    """
    styles = ["text-align: right" if column in right else "text-align: left" for column in range(len(head))]
    titled = "" if caption is None else element("caption", caption)
    body = "".join(_row("td", cells, styles) for cells in rows)
    return f"<table>{titled}<thead>{_row('th', head, styles)}</thead><tbody>{body}</tbody></table>"


def _row(tag: str, cells: Sequence[str], styles: Sequence[str]) -> str:
    return f"<tr>{''.join(element(tag, cell, style) for cell, style in zip(cells, styles, strict=True))}</tr>"
