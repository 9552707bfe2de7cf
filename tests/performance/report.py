"""The table of a run, as text and as Markdown."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]

HEADINGS = ("problem", "candidate", "median", "minimum", "", "own / it, medians", "minima", "")

# What the project aims at: (section, start of the problem, candidate, most that minikeras may take of it).
AIMS = (
    ("steps", "tiny", "PyTorch eager", 0.45),
    ("steps", "small", "PyTorch eager", 0.45),
    ("steps", "medium", "NumPy by hand, out=", 1.3),
    ("steps", "large", "NumPy by hand, out=", 1.3),
    ("chain", "", "PyTorch eager", 0.9),
    ("fit", "epoch", "NumPy by hand", 1.6),
    ("training", "step of fit, tiny", "Keras fit on jax (own process)", 1.0),
    ("training", "step of fit, small", "Keras fit on jax (own process)", 1.0),
    ("training", "step of fit, medium", "Keras fit on tensorflow (own process)", 1.0),
    ("derivatives", "Jacobian of Dense", "torch.func", 0.5),
    ("derivatives", "full Jacobian", "torch.func", 1.0),
    ("derivatives", "Hessian of 1,015", "torch.func", 1.0),
    ("derivatives", "Hessian times a vector", "minikeras, one gradient", 2.5),
    ("newton", "Newton step of 1,015", "torch.func", 0.95),
    ("newton", "memory of a Hessian-vector product", "minikeras, one gradient", 3.0),
    ("newton", "MLP 1-16-15-1 fits 200 points, to within", "minikeras Adam(1e-2)", 0.1),
    ("newton", "MLP 1-16-15-1 fits 200 points, to within", "minikeras Adam(3e-3)", 0.1),
)
# The most that minikeras may take, in the unit of the row.
LIMITS = (
    ("imports", "", 0.12),
    ("derivatives", "Hessian of 1,015", 50.0),
    ("derivatives", "Hessian of 4,929", 900.0),
    ("newton", "Newton step of 1,015", 60.0),
    ("newton", "Newton step of 4,929", 1800.0),
    ("newton", "Rosenbrock", 22),
)


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
    table = [HEADINGS]
    last = None
    for problem, *others in cells(rows):
        table.append(("" if problem == last else problem, *others))
        last = problem
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADINGS))]
    right = {2, 3, 5, 6}
    lines = []
    for row in table:
        columns = enumerate(zip(row, widths, strict=True))
        parts = [cell.rjust(width) if i in right else cell.ljust(width) for i, (cell, width) in columns]
        lines.append("  ".join(parts).rstrip())
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def markdown(rows: list[Row], machine: dict[str, Any]) -> str:
    """A table for the documentation, with the machine above it."""
    lines = [header(machine), "", "| " + " | ".join(HEADINGS) + " |", "|---" * len(HEADINGS) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in cells(rows)]
    return "\n".join([*lines, "", *(f"- {line}" for line in aims(rows)), ""])


def header(machine: dict[str, Any]) -> str:
    """The machine in one sentence."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    load = machine["load_average"][0]
    return (
        f"{machine['processor']}, {machine['processors']} processors, {machine['threads']} threads for every "
        f"candidate, load {load:.1f} before the run; Python {machine['python']}, {versions}."
    )


def aims(rows: list[Row]) -> list[str]:
    """One line for each aim that this run has numbers for."""
    lines = []
    for section, problem, candidate, most in AIMS:
        for row in rows:
            wanted = row["section"] == section and row["candidate"] == candidate and "own" in row
            if wanted and row["problem"].startswith(problem):
                medians, minima = row["ratio_of_medians"], row["ratio_of_minima"]
                verdict = "reached" if min(medians, minima) <= most else "missed"
                lines.append(f"{row['problem']}: {medians:.2f} ({minima:.2f}) x {candidate}; aim {most}: {verdict}")
    for section, problem, limit in LIMITS:
        for row in rows:
            if (row["section"], row["candidate"]) == (section, "minikeras") and row["problem"].startswith(problem):
                found = f"{_number(row['median'])} ({_number(row['minimum'])}) {row['unit']}"
                verdict = "reached" if row["minimum"] <= limit else "missed"
                lines.append(f"{row['problem']}: {found}; aim {limit:g} {row['unit']}: {verdict}")
    return lines
