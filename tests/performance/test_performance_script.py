"""The script runs and what it writes has the promised shape. No speed is asserted: it would fail on a busy machine."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEYS = {"section", "problem", "candidate", "unit", "blocks", "median", "minimum"}
OWN = {
    "steps": {"minikeras", "minikeras, tf.function", "NumPy by hand", "NumPy by hand, out="},
    "chain": {"minikeras", "NumPy by hand"},
    "predict": {"minikeras model(x)", "minikeras predict", "NumPy by hand"},
    "derivatives": {"minikeras", "minikeras, one gradient"},
    "newton": {"minikeras", "minikeras, one gradient", "minikeras Levenberg-Marquardt"},
    "imports": {"minikeras", "minikeras.keras"},
    "memory": {"minikeras", "NumPy by hand", "NumPy by hand, out="},
    "fit": {"minikeras fit", "NumPy by hand", "NumPy by hand, out="},
}


def _run(*options: str) -> str:
    program = [sys.executable, "-m", "tests.performance", "--quick", *options]
    # Workers of a parallel test run share the processors with this program.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


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


def test_installed_peers_compute_the_same(tmp_path: Path) -> None:
    """Those that start within a second or two; TensorFlow takes longer."""
    _run(
        "--only",
        "steps",
        "--only",
        "chain",
        "--only",
        "derivatives",
        "--without",
        "tensorflow",
        "--json",
        str(tmp_path / "a.json"),
    )
    rows = json.loads((tmp_path / "a.json").read_text())["rows"]
    assert all(row["agrees"] for row in rows), [row for row in rows if not row["agrees"]]
