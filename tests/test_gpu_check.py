"""The check script for machines with a GPU: its checks run on the CPU and the strict double, and without a GPU it says why."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time

import gpu_check
import gpu_peers
import pytest
from slow import diagonal

from minikeras.core.arrays import probe

SCRIPT = pathlib.Path(gpu_check.__file__)
DEVICES = ["CPU:0", "STRICT:0"]
TIMED = gpu_check.step_times, gpu_check.fit_times, gpu_check.times_of_peers


@pytest.fixture
def jax_is_there():
    """At first it draws from NumPy's global state, which no test may."""
    if importlib.util.find_spec("jax"):
        importlib.import_module("jax")


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


@pytest.mark.parametrize("check, device", diagonal([one for one in gpu_check.CHECKS[1:] if one not in TIMED], DEVICES[::-1]))
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


def test_one_that_fails_hides_no_other(monkeypatch, capsys):
    found = gpu_check.collected({"first": lambda: 1 / 0, "second": lambda: 2})
    assert found == {"first": "ZeroDivisionError: division by zero", "second": 2}
    printed = capsys.readouterr()
    assert "second: 2" in printed.out and "Traceback" in printed.err
    monkeypatch.setattr(gpu_check, "trained_weights", lambda make, *rest, **options: make()[1:])
    monkeypatch.setattr(gpu_check, "MODELS", [gpu_check.dense, lambda: 1 / 0])
    found = gpu_check.training_repeats_bit_for_bit("CPU:0")
    assert found.pop("passed") is False and [*found.values()] == [True, "ZeroDivisionError: division by zero"]


@pytest.fixture
def few(monkeypatch):
    """Sizes that take no time."""
    monkeypatch.setattr(gpu_check, "SIZES", dict.fromkeys(("medium", "large"), (784, 4, 10)))
    monkeypatch.setattr(gpu_check, "IMAGES", 2100)
    monkeypatch.setattr(gpu_check.microseconds, "__defaults__", (0.01,))


def test_steps_and_epochs_are_timed(few):
    found = gpu_check.step_times("CPU:0")
    assert (
        found["passed"]
        and all(times > 0 for times in found["large"].values())
        and list(found["large"]) == [*gpu_check.KINDS, "fit"]
    )
    found = gpu_check.fit_times("CPU:0")
    assert found["passed"] and found["medium, 128 rows"] > 0 and found["large, 1024 rows"] > 0


@pytest.mark.slow
def test_times_of_others_are_there_or_the_reason_why_not(jax_is_there, few, monkeypatch):
    monkeypatch.setattr(gpu_peers, "STEPS", {"a peer": lambda sizes, rows, device: 1 / 0})
    found = gpu_check.times_of_peers("CPU:0")
    assert found["passed"] and found["medium"]["a peer"].startswith("ZeroDivisionError")
    times = found["large, 1024 rows"]
    assert list(times) == [*gpu_peers.EPOCHS]
    if importlib.util.find_spec("jax"):
        assert min(times["JAX jit"], times["JAX scan"]) > 0


def test_a_time_that_cannot_be_taken_fails_the_check(few, monkeypatch):
    monkeypatch.setattr(gpu_check, "network", lambda name: 1 / 0)
    for check in (gpu_check.step_times, gpu_check.fit_times):
        assert not check("CPU:0")["passed"]


def test_a_check_whose_process_ends_or_hangs_says_so_and_hides_no_other(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_check, "START", time.perf_counter())  # tests may run later than the check's time after its import
    monkeypatch.setattr(gpu_check, "__file__", "no such script")
    found = gpu_check.alone(gpu_check.step_times, "CPU:0")["step_times"]
    assert not found["passed"] and found["error"] == "the process ended with 2" and "no such script" in found["output"][-1]
    script = tmp_path / "hangs.py"
    script.write_text("import time; print('begun', flush=True); time.sleep(600)")
    monkeypatch.setattr(gpu_check, "__file__", str(script))
    monkeypatch.setattr(gpu_check, "MOST", 0.5)
    found = gpu_check.alone(gpu_check.step_times, "CPU:0")["step_times"]
    assert not found["passed"] and found["error"].startswith("TimeoutError: stopped after")


@pytest.mark.slow
@pytest.mark.parametrize("name", gpu_peers.STEPS)
def test_a_peer_s_step_trains(jax_is_there, name):
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
@pytest.mark.parametrize("names", [["data_are_moved_once"], ["data_are_moved_once", "memory_accesses_are_valid"]])
def test_the_script_writes_what_it_found_and_prints_a_table(tmp_path, names):
    outcome = run("--device", "CPU:0", "--out", str(tmp_path / "report.json"), *names, check=True)
    report = json.loads((tmp_path / "report.json").read_text())
    assert list(report) == ["environment", *names] and report["environment"]["numpy"]
    for name in names:
        assert report[name]["passed"] and f"{name:42}passed" in outcome.stdout


@pytest.mark.slow
@pytest.mark.skipif(probe().works, reason="there is a GPU")
def test_without_a_gpu_it_fails_and_names_the_reason():
    outcome = run("data_are_moved_once", check=False)
    assert outcome.returncode == 1
    assert probe().reason in outcome.stdout
