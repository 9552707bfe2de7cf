"""The script runs and what it writes has the promised shape. No speed is asserted: it would fail on a busy machine."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from . import by_hand, peers, report  # noqa: F401  (by_hand and peers enter their candidates)
from .candidates import CANDIDATES
from .executors import Executor, installed
from .optimizers import own_compiled
from .problems import PROBLEMS, first_weights, one_batch
from .settings import Settings

ROOT = Path(__file__).resolve().parents[2]
KEYS = {"section", "problem", "candidate", "unit", "blocks", "median", "minimum"}
OWN = {
    "steps": {"minikeras", "minikeras, tf.function", "NumPy by hand", "NumPy by hand, out=", "products alone, NumPy"},
    "optimizers": {"minikeras", "minikeras, tf.function", "NumPy by hand", "NumPy by hand, out="},
    "recording": {"minikeras", "minikeras, tf.function"},
    "chain": {"minikeras", "NumPy by hand"},
    "predict": {"minikeras model(x)", "minikeras predict", "NumPy by hand"},
    "derivatives": {"minikeras", "minikeras, one gradient"},
    "newton": {"minikeras", "minikeras, one gradient", "minikeras Levenberg-Marquardt"},
    "imports": {"minikeras", "minikeras.keras"},
    "memory": {"minikeras", "minikeras, tf.function", "NumPy by hand", "NumPy by hand, out="},
    "fit": {"minikeras fit", "NumPy by hand", "NumPy by hand, out="},
}


def _run(*options: str) -> str:
    program = [sys.executable, "-m", "tests.performance", "--quick", *options]
    # Workers of a parallel test run share the processors with this program.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_quick_run_measures_every_section_and_all_candidates_compute_the_same(tmp_path: Path) -> None:
    files = ("--json", str(tmp_path / "a.json"), "--markdown", str(tmp_path / "a.md"))
    printed = _run("--no-peers", "--threads", "1", *files)
    result = json.loads((tmp_path / "a.json").read_text())
    assert result["machine"]["threads"] == result["settings"]["threads"] == 1
    assert "numpy" in result["machine"]["versions"]
    rows = result["rows"]
    for section, candidates in OWN.items():
        assert candidates <= {row["candidate"] for row in rows if row["section"] == section}, section
    for row in rows:
        assert row.keys() >= KEYS
        numbers = [row[key] for key in ("median", "minimum", "ratio_of_medians", "ratio_of_minima") if key in row]
        assert all(math.isfinite(number) for number in numbers), row
        assert row["minimum"] <= row["median"]
        assert row.get("agrees", True), f"{row['candidate']} computes something else: {row}"
        assert row.get("cyclic_garbage", 0) == 0, f"{row['candidate']} leaves reference cycles"
        assert row["problem"] in printed
    assert (tmp_path / "a.md").read_text().count("\n| ") == len(rows) + 1


@pytest.mark.slow
def test_installed_peers_compute_the_same(tmp_path: Path) -> None:
    """Those that start within a second or two; TensorFlow takes longer."""
    _run(
        "--only",
        "steps",
        "--only",
        "chain",
        "--only",
        "optimizers",
        "--only",
        "derivatives",
        "--without",
        "tensorflow",
        "--json",
        str(tmp_path / "a.json"),
    )
    rows = json.loads((tmp_path / "a.json").read_text())["rows"]
    compared = [row for row in rows if not row["candidate"].startswith("products alone")]
    assert all(row["agrees"] for row in compared), [row for row in compared if not row["agrees"]]


def _row(candidate: str, median: float, problem: str = "tiny 4-16-3, batch 16") -> report.Row:
    return {"section": "steps", "problem": problem, "candidate": candidate, "median": median, "minimum": 0.5}


def test_an_aim_is_judged_by_the_medians_of_one_problem() -> None:
    rows = [
        _row("JAX jit", 1.0),
        _row("JAX jit", 9.0, "small 64"),
        _row(report.NATIVE, 0.2),
        _row(report.NATIVE, 9.0, "small 64"),
    ]
    reached, missed = report.aims(rows)
    assert reached == "tiny 4-16-3, batch 16: minikeras, native takes 0.20 (1.00) x JAX jit; aim 0.3: reached"
    assert missed == "small 64: minikeras, native takes 1.00 (1.00) x JAX jit; aim 0.8: missed"


def test_an_aim_without_its_two_candidates_is_not_judged() -> None:
    assert report.aims([_row(report.NATIVE, 0.2)]) == report.aims([_row("JAX jit", 1.0)]) == []


def test_every_aim_of_a_step_names_one_size_and_candidates_that_exist() -> None:
    titles = [problem.title(label) for label, problem in PROBLEMS.items()]
    for section, start, own, other, _ in report.AIMS:
        if section in ("steps", "memory"):
            assert {own, other} <= CANDIDATES.keys()
        if section == "steps":
            assert sum(title.startswith(start) for title in titles) == 1, start


@pytest.mark.parametrize("executor", installed(Settings()), ids=lambda executor: executor.name)
@pytest.mark.parametrize("label", ["tiny", "medium with BatchNormalization"])
def test_a_compiled_step_is_replayed_and_not_run_by_python(executor: Executor, label: str) -> None:
    problem = PROBLEMS[label]
    step: Any = CANDIDATES[executor.title].setup(problem, first_weights(problem.sizes), one_batch(problem))
    for _ in range(3):
        step()
    assert step.recordings == 1
    assert step.replays >= 1  # the first of the three calls may make the optimizer's slots


@pytest.mark.parametrize("executor", installed(Settings()), ids=lambda executor: executor.name)
def test_a_compiled_optimizer_is_replayed_and_not_run_by_python(executor: Executor) -> None:
    step: Any = own_compiled(executor)(np.ones((3, 2), np.float32), np.ones((3, 2), np.float32))[0]
    for _ in range(3):
        step()
    assert (step.recordings, step.replays) == (1, 2)
