"""The table of a run, as text and as Markdown."""

from __future__ import annotations

from typing import Any

from . import executors
from .executors import OWN

Row = dict[str, Any]

HEADINGS = ("problem", "candidate", "median", "minimum", "", "own / it, medians", "minima", "")

# The candidates that are compiled steps of this project, on NumPy and on native code.
COMPILED, NATIVE = executors.NUMPY.title, executors.NATIVE.title
FIT, NATIVE_FIT = f"{OWN} fit", f"{OWN} fit, native"
BY_HAND, FUSED, KERAS = "NumPy by hand, out=", "PyTorch eager, fused Adam", "Keras fit on {} (own process)"

# What the project aims at: (section, start of the problem, its own candidate, another, most it may take of the other).
AIMS = (
    ("steps", "tiny", OWN, "PyTorch eager", 0.45),
    ("steps", "small", OWN, "PyTorch eager", 0.45),
    ("steps", "medium 784", OWN, BY_HAND, 1.3),
    ("steps", "large", OWN, BY_HAND, 1.3),
    ("steps", "tiny", COMPILED, BY_HAND, 1.3),
    ("steps", "small", COMPILED, BY_HAND, 1.2),
    ("steps", "medium 784", COMPILED, BY_HAND, 0.95),
    ("steps", "large", COMPILED, BY_HAND, 0.9),
    ("steps", "medium with BatchNormalization", COMPILED, FUSED, 1.0),
    ("steps", "tiny", NATIVE, "JAX jit", 0.3),
    ("steps", "small", NATIVE, "JAX jit", 0.8),
    ("steps", "medium 784", NATIVE, "JAX jit", 1.0),
    ("steps", "large", NATIVE, "JAX jit", 1.0),
    ("steps", "medium with BatchNormalization", NATIVE, "JAX jit", 1.05),
    ("optimizers", "Adam alone", COMPILED, BY_HAND, 0.6),
    ("optimizers", "Adam alone", NATIVE, "PyTorch, fused", 0.8),
    ("recording", "first call", COMPILED, OWN, 5.0),
    ("recording", "first call", NATIVE, OWN, 5.0),
    ("memory", "peak of the large", OWN, FUSED, 1.0),
    ("memory", "peak of the large", COMPILED, FUSED, 1.0),
    ("memory", "peak of the large", NATIVE, FUSED, 1.0),
    ("chain", "", OWN, "PyTorch eager", 0.9),
    ("fit", "epoch", FIT, "NumPy by hand", 1.6),
    *(
        ("training", f"step of fit, {label}", own, KERAS.format("jax"), most)
        for label, most in (("tiny", 0.5), ("small", 0.5), ("medium", 1.0), ("large", 1.0))
        for own in (FIT, NATIVE_FIT)
    ),
    ("training", "step of fit, medium", FIT, KERAS.format("tensorflow"), 1.0),
    ("derivatives", "Jacobian of Dense", OWN, "torch.func", 0.5),
    ("derivatives", "full Jacobian", OWN, "torch.func", 1.0),
    ("derivatives", "Hessian of 1,015", OWN, "torch.func", 1.0),
    ("derivatives", "Hessian times a vector", OWN, "minikeras, one gradient", 2.5),
    ("newton", "Newton step of 1,015", OWN, "torch.func", 0.95),
    ("newton", "memory of a Hessian-vector product", OWN, "minikeras, one gradient", 3.0),
    *(
        ("newton", "MLP 1-16-15-1 fits 200 points, to within", "minikeras Levenberg-Marquardt", f"minikeras Adam({rate})", 0.1)
        for rate in ("1e-2", "3e-3")
    ),
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
    """A table for the documentation, with the computer above it."""
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
    known = {(row["section"], row["problem"], row["candidate"]): row for row in rows}
    for section, start, own, other, most in AIMS:
        for (where, problem, candidate), row in known.items():
            mine = known.get((where, problem, own))
            if mine and (where, candidate) == (section, other) and problem.startswith(start):
                medians, minima = (mine[key] / row[key] for key in ("median", "minimum"))
                verdict = "reached" if medians <= most else "missed"
                lines.append(f"{problem}: {own} takes {medians:.2f} ({minima:.2f}) x {other}; aim {most}: {verdict}")
    for section, problem, limit in LIMITS:
        for row in rows:
            if (row["section"], row["candidate"]) == (section, OWN) and row["problem"].startswith(problem):
                found = f"{_number(row['median'])} ({_number(row['minimum'])}) {row['unit']}"
                verdict = "reached" if row["minimum"] <= limit else "missed"
                lines.append(f"{row['problem']}: {found}; aim {limit:g} {row['unit']}: {verdict}")
    return lines
