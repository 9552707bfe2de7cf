"""The check script for machines with a GPU: its checks run on the CPU and the strict double, and without a GPU it says why."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import gpu_check
import gpu_peers
import pytest

from minikeras.arrays import probe

if importlib.util.find_spec("jax"):
    import jax  # noqa: F401  # at first it draws from NumPy's global state, which no test may

SCRIPT = pathlib.Path(gpu_check.__file__)
DEVICES = ["CPU:0", "STRICT:0"]
TIMED = gpu_check.step_times, gpu_check.fit_beside_peers


def run(*arguments, check):
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parent.parent)}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], env=environment, capture_output=True, text=True, check=check, timeout=300
    )


@pytest.mark.parametrize("device", DEVICES)
def test_five_models_agree_in_every_precision(device):
    pytest.importorskip("ml_dtypes")
    found = gpu_check.models_agree_with_float64_on_the_cpu(device)
    assert found.pop("passed") and len(found) == len(gpu_check.MODELS) * len(gpu_check.LIMITS) == 15


@pytest.mark.parametrize("check", [one for one in gpu_check.CHECKS[1:] if one not in TIMED])
@pytest.mark.parametrize("device", DEVICES)
def test_a_check_passes(check, device, monkeypatch):
    monkeypatch.setattr(gpu_check, "RUNS", 50)
    assert check(device)["passed"], check(device)


def test_a_check_fails_where_there_is_something_to_find(monkeypatch):
    monkeypatch.setattr(gpu_check, "LIMITS", {"float32": 0.0})
    assert not gpu_check.models_agree_with_float64_on_the_cpu("CPU:0")["passed"]
    sizes = iter(range(10))
    monkeypatch.setattr(gpu_check, "pool_bytes", lambda device: next(sizes))
    assert not gpu_check.memory_stays_constant("CPU:0")["passed"]


def test_no_check_begins_when_the_time_is_over(monkeypatch, capsys):
    monkeypatch.setattr(gpu_check, "TIME", 0.0)
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", "--device", "CPU:0"])
    assert gpu_check.main() == 1
    assert capsys.readouterr().out.count("TimeoutError: no time is left") == len(gpu_check.CHECKS)


def test_times_stand_beside_those_of_others_or_beside_the_reason_why_not(monkeypatch):
    monkeypatch.setattr(gpu_check, "SIZES", {"small": (8, 4, 3)})
    monkeypatch.setattr(gpu_check.microseconds, "__defaults__", (0.01,))
    monkeypatch.setattr(gpu_peers, "STEPS", {"a peer": lambda sizes, rows, device: 1 / 0})
    times = gpu_check.step_times("CPU:0")["small"]
    assert times["eager"] > 0 and times["compiled"] > 0 and times["fit"] > 0 and times["a peer"].startswith("ZeroDivisionError")


def test_epochs_of_fit_stand_beside_those_of_others(monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.setattr(gpu_check, "SIZES", dict.fromkeys(("medium", "large"), (784, 4, 10)))
    monkeypatch.setattr(gpu_check, "IMAGES", 2100)
    found = gpu_check.fit_beside_peers("CPU:0")
    assert found.pop("passed") and list(found) == ["medium, 128 rows", "large, 1024 rows"]
    for times in found.values():
        assert list(times) == ["fit", "PyTorch graph", "JAX jit", "JAX scan"]
        assert min(times["fit"], times["JAX jit"], times["JAX scan"]) > 0


def test_a_run_that_fails_beside_the_peers_fails_the_check(monkeypatch):
    monkeypatch.setattr(gpu_peers, "EPOCHS", {})
    monkeypatch.setattr(gpu_check, "IMAGES", 2100)
    monkeypatch.setattr(gpu_check, "network", lambda name: 1 / 0)
    found = gpu_check.fit_beside_peers("CPU:0")
    assert not found["passed"] and found["large, 1024 rows"] == {"fit": "ZeroDivisionError: division by zero"}


@pytest.mark.parametrize("name", gpu_peers.STEPS)
def test_a_peer_s_step_trains(name):
    pytest.importorskip("torch" if "Torch" in name else "jax")
    run, wait = gpu_peers.STEPS[name]((8, 6, 3), 16, "CPU:0")
    losses = [float(wait(run())) for _ in range(30)]
    assert losses[-1] < 0.98 * losses[0]


@pytest.mark.parametrize(("code", "passed"), [(0, True), (9, False)])
def test_the_sanitizer_s_verdict_counts(monkeypatch, tmp_path, code, passed):
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(f"#!/bin/sh\necho $1 $2 $4\necho 'ERROR SUMMARY'\nexit {code}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert gpu_check.memory_accesses_are_valid("GPU:0") == {"passed": passed, "last line": "ERROR SUMMARY"}
    assert "skipped" in gpu_check.memory_accesses_are_valid("CPU:0")


@pytest.mark.parametrize(
    ("output", "count"),
    [("..\n3 passed, 9 deselected in 1s\n", 3), ("1 failed, 2 passed\n", 3), ("9 skipped in 1s", 0), ("", 0)],
)
def test_tests_that_were_run_are_counted(output, count):
    assert gpu_check.executed(output) == count


def test_the_first_failures_are_named():
    found = gpu_check.last_words("FAILED tests/a.py::b\n1 failed\n")
    assert found == {"last line": "1 failed", "failed": ["FAILED tests/a.py::b"]}
    assert gpu_check.last_words("")["last line"] == "no output"


@pytest.mark.slow
def test_the_script_writes_what_it_found_and_prints_a_table(tmp_path):
    name = "data_are_moved_once"
    outcome = run("--device", "CPU:0", "--out", str(tmp_path / "report.json"), name, check=True)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report[name]["passed"] and report["environment"]["numpy"] and f"{name:42}passed" in outcome.stdout


@pytest.mark.slow
@pytest.mark.skipif(probe().works, reason="there is a GPU")
def test_without_a_gpu_it_fails_and_names_the_reason():
    outcome = run("data_are_moved_once", check=False)
    assert outcome.returncode == 1
    assert probe().reason in outcome.stdout
