"""The pages, as text."""

import pathlib

from . import Row, sections

DOCS = pathlib.Path(__file__).parent.parent.parent / "docs"
TITLES = {"tensorflow": "TensorFlow", "keras": "Keras"}
INTRODUCTION = """# Differences from {title}

`import minikeras as tf` keeps the names and meanings of {title}. Where behaviour differs, it is on purpose, and this page says
why. A test runs each line on minikeras for the column "here"; the column beside it was found by running {title} {version}.
In the code, `L` is `keras.layers`, and `ones(2, 3)` an array of ones of that shape; what precedes a last line after `...` is in
`tests/differences/`.
"""
LINES = 4
"""Longer code is not shown on a page but for its last line; it stands in the row."""
VERSIONS = {"tensorflow": "2.21", "keras": "3.15"}


def path(peer: str) -> pathlib.Path:
    """Where the page of a peer lies."""
    return DOCS / f"differences-from-{peer}.md"


def page(peer: str) -> str:
    """The page of a peer."""
    parts = [INTRODUCTION.format(title=TITLES[peer], version=VERSIONS[peer])]
    for section in sections(peer):
        lines = [f"## {section.title}", "", f"| what | code | {TITLES[peer]} | here | why |", "|---|---|---|---|---|"]
        parts.append("\n".join(lines + [_line(row) for row in section.rows]) + "\n")
    return "\n".join(parts)


def _line(row: Row) -> str:
    *before, last = row.code.strip().splitlines()
    shown = [*before, last] if len(before) < LINES else ["...", last]
    code = "<br>".join(map(_code, shown))
    return f"| {row.what} | {code} | {_code(row.theirs)} | {_code(row.ours)} | {row.why} |"


def _code(text: str) -> str:
    """Text between backticks, indentation and bars kept in a cell of a table."""
    inside = text.replace("|", "\\|")
    indent = len(inside) - len(inside.lstrip())
    return "&nbsp;" * indent + f"`{inside.strip()}`"
