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

from . import by_hand, chain, document, environments, peers, report, targets, training  # noqa: F401  (by_hand and peers enter their candidates)
from .candidates import CANDIDATES
from .derivative_candidates import SETUPS
from .derivative_tasks import TASKS
from .executors import NATIVE, Executor, installed
from .optimizers import own_compiled
from .problems import PROBLEMS, first_weights, one_batch
from .settings import Settings
from .worker import workers

ROOT = Path(__file__).resolve().parents[2]
KEYS = {"section", "problem", "candidate", "unit", "blocks", "median", "minimum"}
OWN = {
    "steps": {"minikeras", "minikeras, tf.function", "NumPy by hand", "NumPy by hand, out=", "products alone, NumPy"},
    "optimizers": {"minikeras", "minikeras, tf.function", "NumPy by hand", "NumPy by hand, out="},
    "chain": {"minikeras", "NumPy by hand"},
    "predict": {"minikeras model(x)", "minikeras predict", "NumPy by hand"},
    "derivatives": {"minikeras", "minikeras, one gradient"},
    "newton": {"minikeras", "minikeras, one gradient", "minikeras Levenberg-Marquardt"},
    "curve": {"minikeras", "minikeras, tf.function"},
    "nist": {"minikeras, tf.function"},
    "training": {"minikeras fit"},
    "imports": {"minikeras", "minikeras.keras"},
    "memory": {"minikeras", "minikeras, tf.function", "NumPy by hand", "NumPy by hand, out="},
    "models": {"minikeras fit", "minikeras predict"},
    "busy": {"minikeras fit", "minikeras fit, 2 at once", "minikeras fit, 4 at once"},
    "ranks": {"minikeras fit", "minikeras fit, a strategy on one rank"},
    "ensembles": {"minikeras, members at once", "minikeras, one model", "minikeras, Sweep", "minikeras, a loop of fit"},
}


def _run(*options: str) -> str:
    program = [sys.executable, "-m", "tests.performance", "--quick", *options]
    # Workers of a parallel test run share the processors with this program.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1200)
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
    # The table of targets and that of rows, each with its headings and the line below them.
    assert (tmp_path / "a.md").read_text().count("\n| ") == len(result["targets"]) + len(rows) + 4
    assert len(result["targets"]) >= 4


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


SMALL = PROBLEMS["small"].title("small")


def _row(candidate: str, minimum: float, problem: str = "tiny 4-16-3, batch 16") -> report.Row:
    row = {"section": "steps", "problem": problem, "candidate": candidate, "unit": "ms", "median": 1.0, "minimum": minimum}
    return {**row, "blocks": 2}


def test_a_peer_runs_by_the_interpreter_of_its_own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "_made", {})
    for framework in ("torch", "tensorflow"):
        python = environments._python(tmp_path / framework)
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)
        site = tmp_path / framework / "lib/python3.11/site-packages" / framework
        site.mkdir(parents=True)
    environments.make(tmp_path, ("torch", "tensorflow"))
    for candidate in ("PyTorch eager", "Keras fit on torch"):
        assert environments.interpreter(candidate) == str(environments._python(tmp_path / "torch"))
    assert environments.interpreter("tf.function, XLA") == str(environments._python(tmp_path / "tensorflow"))
    for candidate in ("minikeras, tf.function", "NumPy by hand", "JAX jit"):
        assert environments.interpreter(candidate) == sys.executable
    assert environments.has("tensorflow") and not environments.has("mygrad")
    assert Settings().has("tensorflow") and not Settings(without=("tensorflow",)).has("tensorflow")


def test_a_target_is_judged_by_the_minima_of_one_problem() -> None:
    native = NATIVE.title
    rows = [_row("JAX jit", 1.0), _row(native, 0.2), _row("JAX jit", 4.0, SMALL), _row(native, 2.0, SMALL)]
    tiny, small = targets.results(rows)
    assert (tiny["figure"], tiny["of"]) == ("native call, tiny", "x JAX jit")
    assert (tiny["minimum"], tiny["median"], tiny["reached"]) == (0.2, 1.0, True)
    assert (small["minimum"], small["reached"]) == (0.5, False)


def test_a_target_without_its_two_candidates_is_not_judged() -> None:
    assert targets.results([_row(NATIVE.title, 0.2)]) == targets.results([_row("JAX jit", 1.0)]) == []


def test_a_target_without_another_candidate_is_a_figure_in_the_unit_of_its_row() -> None:
    row = _row("minikeras", 0.03, "import, beyond NumPy") | {"section": "imports", "unit": "s"}
    (found,) = targets.results([row])
    assert (found["of"], found["minimum"], found["reached"]) == ("s", 0.03, True)


def test_results_of_an_earlier_run_stand_beside_those_of_this_one() -> None:
    now, earlier = ([_row("JAX jit", 1.0), _row(NATIVE.title, minimum)] for minimum in (0.2, 0.8))
    (line,) = targets.cells(targets.results(now, targets.results(earlier)))
    assert line == ("native call, tiny", "x JAX jit", "0.4", "0.8", "0.2", "1", "reached")


def test_every_target_of_a_step_names_one_size_and_candidates_that_exist() -> None:
    titles = {
        "steps": [problem.title(label) for label, problem in PROBLEMS.items()],
        "training": [f"step of fit, {PROBLEMS[label].title(label)}" for label in training.STEPS],
        "derivatives": [task.title for task in TASKS],
    }
    named = {"steps": CANDIDATES.keys(), "derivatives": SETUPS.keys()}
    for target in targets.TARGETS:
        if target.section in titles:
            assert sum(title.startswith(target.problem) for title in titles[target.section]) == 1, target
        if target.section in named:
            assert {target.own, target.other} <= named[target.section], target
    assert len({target.figure for target in targets.TARGETS}) == len(targets.TARGETS)


def test_a_worker_times_as_many_steps_as_it_is_told_and_tells_what_it_computes() -> None:
    with workers("chain", {"by hand": ("NumPy by hand",)}) as processes:
        assert math.isclose(processes["by hand"].answer, chain.expected(), rel_tol=1e-3)
        assert 0 < min(processes["by hand"](1) for _ in range(5)) < processes["by hand"](300)  # the machine may stop one step


def test_a_worker_that_ends_says_what_went_wrong_in_it() -> None:
    with pytest.raises(RuntimeError, match="KeyError: 'no such candidate'"), workers("chain", {"none": ("no such candidate",)}):
        raise AssertionError("the worker's failure must show before this")


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


def test_the_tables_of_the_document_are_those_of_the_results_beside_it() -> None:
    text = document.DOCUMENT.read_text()
    result = json.loads(document.KEPT.read_text())
    assert set(document.BLOCK.findall(text)) and document.written(text, result) == text
    assert {name for _, name, _ in document.BLOCK.findall(text)} == document.tables(result).keys()
    before = [{"figure": found["figure"], "minimum": found["before"]} for found in result["targets"]]
    assert result["targets"] == targets.results(result["rows"], before)


def test_of_a_row_measured_twice_the_document_takes_the_least_and_of_one_that_differs_nothing(tmp_path: Path) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, minimum in zip(files, (0.25, 0.5), strict=True):
        other = (
            [_row("minikeras", 0.1) | {"section": "imports"}, _row("MyGrad", 0.1) | {"agrees": False}]
            if minimum == 0.25
            else []
        )
        file.write_text(json.dumps({"machine": {"threads": 2}, "rows": [_row("JAX jit", minimum), *other]}))
    merged = document.merged(files)["rows"]
    assert [(row["section"], row["minimum"]) for row in merged] == [("steps", 0.25), ("imports", 0.1)]


def test_a_line_of_a_table_is_a_problem_and_a_column_a_candidate() -> None:
    rows = [_row("JAX jit", 0.2), _row("minikeras", 0.1), _row("minikeras", 0.3, SMALL)]
    lines = document.matrix(rows, "steps", ("minikeras", "JAX jit")).splitlines()
    assert lines[0] == "|  | minikeras | JAX jit |"
    assert lines[2:] == ["| tiny 4-16-3, batch 16, ms | 0.1 (1) | 0.2 (1) |", f"| {SMALL}, ms | 0.3 (1) |  |"]


def test_the_picture_has_a_bar_and_a_number_for_each_candidate_that_was_measured(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [
        _row(name, 1.25, PROBLEMS[size].title(size)) for size in ("tiny", "small", "medium", "large") for name in document.STEPS
    ]
    document.draw_steps(rows, tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text()
    assert all(f">{name}<" in drawn for name in document.STEPS)
    assert drawn.count("> 1.25<") == len(rows) and drawn.count("> not measured<") == 4 * len(document.FITS)
