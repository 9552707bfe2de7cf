"""Writes the tables and draws the picture of docs/performance.md from what `--json` wrote.

    python -m tests.performance.document FILE ... [--before FILE ...]

Several files may hold different sections, or be several runs: of what was measured more than once the least counts. What is
written is kept in docs/performance.json, so that tables, picture and numbers cannot differ. Needs matplotlib.
"""

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import report, targets
from .executors import NATIVE, NUMPY, OWN
from .keras_models import MODELS
from .models import JAX, PREDICTS, TORCH
from .problems import PROBLEMS
from .report import Row
from .settings import ROOT
from .training import FIT, KERAS, NATIVE_FIT

DOCUMENT = ROOT / "docs" / "performance.md"
KEPT = ROOT / "docs" / "performance.json"
PICTURE = ROOT / "docs" / "performance.svg"
MODELS_PICTURE = ROOT / "docs" / "performance_models.svg"
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.S)
KEYS = ("section", "problem", "candidate", "unit", "median", "minimum")

PEERS = ("PyTorch eager", "PyTorch eager, fused Adam", "JAX jit")
STEPS = ("NumPy by hand, out=", OWN, NUMPY.title, NATIVE.title, *PEERS)
FITS = (FIT, NATIVE_FIT, KERAS.format("jax"), KERAS.format("torch"))
"""Candidates in the order of columns and bars."""

SECTIONS = ("models", "busy", "predict", "optimizers", "derivatives", "chain", "curve", "nist", "imports", "ensembles", "ranks")
"""Those with a table of all candidates."""

COLOURS = {NATIVE.title: "#c2410c", NUMPY.title: "#f59e0b", OWN: "#fcd9a0", NATIVE_FIT: "#c2410c", FIT: "#f59e0b"}
COLOURS |= {PREDICTS[name]: COLOURS[name] for name in (FIT, NATIVE_FIT)}
GREY = "#94a3b8"


def merged(files: Sequence[Path]) -> dict[str, Any]:
    """Machine and rows of several runs; of a row that was measured more than once the least minimum and median.

    A candidate that computed something else than the others has no time.
    """
    found: dict[tuple[str, ...], Row] = {}
    machine: dict[str, Any] = {}
    for file in files:
        result = json.loads(file.read_text())
        machine = result["machine"]
        for row in (row for row in result["rows"] if row.get("agrees", True)):
            known = found.setdefault((row["section"], row["problem"], row["candidate"]), {key: row[key] for key in KEYS})
            known |= {key: min(known[key], row[key]) for key in ("median", "minimum")}
    return {"machine": machine, "rows": list(found.values())}


def shown(value: float) -> str:
    """A number with three digits that count, all before the point."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def matrix(rows: list[Row], section: str, candidates: Sequence[str] = ()) -> str:
    """A line for each problem and a column for each candidate: minimum, and median in brackets."""
    chosen = [row for row in rows if row["section"] == section and (not candidates or row["candidate"] in candidates)]
    columns = [name for name in candidates or dict.fromkeys(row["candidate"] for row in chosen)]
    found = {(row["problem"], row["candidate"]): f"{shown(row['minimum'])} ({shown(row['median'])})" for row in chosen}
    problems = dict.fromkeys((row["problem"], row["unit"]) for row in chosen)
    lines = [(f"{problem}, {unit}", *(found.get((problem, name), "") for name in columns)) for problem, unit in problems]
    return report.markdown(("", *columns), lines)


def tables(result: dict[str, Any]) -> dict[str, str]:
    """The text of each table, by its name in the document."""
    rows = result["rows"]
    alone = ("products alone, NumPy", "products alone, PyTorch")
    return {
        "machine": report.header(result["machine"]),
        "targets": report.markdown(
            targets.HEADINGS, targets.cells([row for row in result["targets"] if not targets.model_of(row)])
        ),
        "ratios": report.markdown(*targets.by_model(result["targets"])),
        "steps": matrix(rows, "steps", (*STEPS, *alone)),
        "training": matrix(rows, "training", FITS),
        **{name: matrix(rows, name) for name in SECTIONS},
        "newton": matrix([row for row in rows if row["problem"].startswith("Newton step")], "newton"),
        "memory": matrix([row for row in rows if row["problem"].startswith("peak")], "memory"),
    }


def written(text: str, result: dict[str, Any]) -> str:
    """The document with the tables of these results."""
    found = tables(result)
    return BLOCK.sub(lambda block: f"{block[1]}\n{found[block[2]]}\n\n{block[3]}", text)


def draw_steps(rows: list[Row], path: Path) -> None:
    """Bars of the minima: a training step above, a step of `fit` below, a column for each size."""
    parts = (("steps", "{}", STEPS, "a training step"), ("training", "step of fit, {}", FITS, "a step of fit"))
    sizes = [(size, PROBLEMS[size].title(size)) for size in targets.SIZES]
    draw(
        rows,
        path,
        [
            [(section, of.format(name), names, f"{title}, {size}") for size, name in sizes]
            for section, of, names, title in parts
        ],
    )


def draw_models(rows: list[Row], path: Path) -> None:
    """Bars of the minima: an epoch of `fit` above, `predict` below, of each model."""
    labels = list(MODELS)
    tasks = (("fit", (FIT, NATIVE_FIT, JAX, TORCH)), ("predict", (*PREDICTS.values(), JAX, TORCH)))
    lines = [(task, names, labels[start : start + 4]) for task, names in tasks for start in range(0, len(labels), 4)]
    draw(
        rows,
        path,
        [[("models", f"{task}, {label}", names, f"{task}, {label}") for label in part] for task, names, part in lines],
    )


def draw(rows: list[Row], path: Path, lines: Sequence[Sequence[tuple[str, str, Sequence[str], str]]]) -> None:
    """Bars of the minima: of a section, a problem and candidates, under a title."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "performance", "font.family": "sans-serif", "font.size": 9}
    import matplotlib.pyplot as plt

    ratios = [len(line[0][2]) for line in lines]
    figure, axes = plt.subplots(len(lines), 4, figsize=(11, 0.38 * sum(ratios)), height_ratios=ratios, layout="constrained")
    for line, row in zip(axes, lines, strict=True):
        for axis, (section, problem, candidates, title) in zip(line, row, strict=True):
            minima = {
                one["candidate"]: one["minimum"] for one in rows if (one["section"], one["problem"]) == (section, problem)
            }
            bars(axis, {name: minima.get(name, 0.0) for name in candidates}, labelled=axis is line[0])
            axis.set_title(title, fontsize=10)
    figure.supxlabel("milliseconds, fastest block", fontsize=9)
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight", pad_inches=0.3)  # fonts differ in width
    plt.close(figure)


def bars(axis: Any, minima: dict[str, float], labelled: bool) -> None:
    """A horizontal bar for each candidate with its number behind it, the first above."""
    names, values = list(minima)[::-1], list(minima.values())[::-1]
    axis.barh(names, values, color=[COLOURS.get(name, GREY) for name in names], height=0.75)
    for place, value in enumerate(values):
        axis.text(value, place, f" {shown(value)}" if value else " not measured", va="center", fontsize=8)
    axis.set_xlim(0, 1.3 * max(values) or 1.0)
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.set_xticks([])
    axis.tick_params(left=False, labelleft=labelled)


def main(given: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m tests.performance.document", description=__doc__)
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+")
    parser.add_argument("--before", metavar="FILE", type=Path, nargs="+", default=[])
    options = parser.parse_args(given)
    result, before = merged(options.files), merged(options.before)
    result["targets"] = targets.results(result["rows"], targets.results(before["rows"]))
    KEPT.write_text(json.dumps(result, indent=1) + "\n")
    DOCUMENT.write_text(written(DOCUMENT.read_text(), result))
    draw_steps(result["rows"], PICTURE)
    draw_models(result["rows"], MODELS_PICTURE)


if __name__ == "__main__":
    main()
