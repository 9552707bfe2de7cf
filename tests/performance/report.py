"""The table of a run, as text and as Markdown."""

from typing import Any

Row = dict[str, Any]

HEADINGS = ("problem", "candidate", "median", "minimum", "", "own / it, medians", "minima", "")


def cells(rows: list[Row]) -> list[tuple[str, ...]]:
    """The table without its headings."""
    found = []
    for row in rows:
        ratios = [f"{row[key]:.2f}" if key in row else "" for key in ("ratio_of_medians", "ratio_of_minima")]
        remark = "" if row.get("agrees", True) else "DIFFERS"
        if row.get("cyclic_garbage"):
            remark = f"{row['cyclic_garbage']} objects in cycles"
        numbers = [_number(row[key]) for key in ("median", "minimum")]
        found.append((row["problem"], row["candidate"], *numbers, row["unit"], *ratios, remark))
    return found


def _number(value: float) -> str:
    """Three digits that count."""
    if value == 0:
        return "0"
    digits = max(0, 2 - len(str(int(abs(value)))) + (abs(value) >= 1)) if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def text(rows: list[Row]) -> str:
    """Aligned columns; the problem is named once."""
    lines = []
    last = None
    for problem, *others in cells(rows):
        lines.append(("" if problem == last else problem, *others))
        last = problem
    return aligned(HEADINGS, lines, right={2, 3, 5, 6})


def aligned(headings: tuple[str, ...], lines: list[tuple[str, ...]], right: set[int]) -> str:
    """A table for the terminal; the columns `right` are numbers."""
    table = [headings, *lines]
    widths = [max(len(line[column]) for line in table) for column in range(len(headings))]
    found = []
    for line in table:
        columns = enumerate(zip(line, widths, strict=True))
        parts = [cell.rjust(width) if i in right else cell.ljust(width) for i, (cell, width) in columns]
        found.append("  ".join(parts).rstrip())
    return "\n".join([found[0], "-" * max(map(len, found)), *found[1:]])


def markdown(headings: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    """A table for documents."""
    return "\n".join("| " + " | ".join(line) + " |" for line in (headings, ("---",) * len(headings), *lines))


def header(machine: dict[str, Any]) -> str:
    """The machine in one sentence."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    load = machine["load_average"][0]
    return (
        f"{machine['processor']}, {machine['processors']} processors, {machine['threads']} threads for every "
        f"candidate, load {load:.1f} before the run; Python {machine['python']}, {versions}."
    )
