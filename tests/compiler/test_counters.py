"""What a compiled step says of itself: its counters, its program in print, and its executor."""

import pytest
from side_by_side import assert_same, leaves
from small_training import LABELS, X, needs_llvm, same, trained

import minikeras as tf
from minikeras.compiler import executors
from minikeras.compiler.executors import llvm

optimizers = tf.keras.optimizers


def test_counters_say_what_was_recorded_replayed_and_kept():
    step, _ = trained(optimizers.Adam(0.1))
    assert (step.recordings, step.replays, step.kernels, step.buffers, step.bytes) == (0, 0, 0, 0, 0)
    for _ in range(3):
        step(X, LABELS)
    assert (step.recordings, step.replays, step.eager_calls) == (1, 2, 0)
    first = step.kernels, step.buffers, step.bytes
    (replay,) = step._replays
    assert first == (replay.kernels, replay.buffers, replay.bytes)
    assert 10 < step.kernels < 60 and 0 < step.buffers < 20 and 6 * 3 * 4 <= step.bytes < 5000
    assert 1.5e-6 * step.kernels <= replay.seconds < 1e-3
    step(X[:3], LABELS[:3])
    together = step.kernels, step.buffers, step.bytes
    assert step.recordings == 2 and all(sum_ > one for sum_, one in zip(together, first, strict=True))
    step.forget()
    assert (step.kernels, step.buffers, step.bytes, step.recordings, step.replays) == (0, 0, 0, 2, 2)


def test_a_step_prints_as_one_reading_one_loop_and_one_assignment():
    step, _ = trained(optimizers.Adam(0.1))
    step(X, LABELS)
    program = step.program(X, LABELS)
    lines = str(program).splitlines()
    assert lines[:2] == ["%0:float32[6,4] = argument()", "%1:int32[6] = argument()"]
    names = [record.primitive.name for record in program.records]
    for name in ("step_numbers", "read_flat", "assign_flat", "step_counted", "flatten"):
        assert names.count(name) == 1 and sum(f"{name}(" in line for line in lines) == 1
    assert names[-2:] == ["assign_flat", "step_counted"] and names[-3] == "loop"
    assert "read_variable" not in names and "apply" not in " ".join(names)
    assert sum("sqrt(" in line for line in lines) == 1, "the formula of Adam"
    assert ":number = step_numbers(" in "\n".join(lines) or ":number, " in "\n".join(lines)
    assert lines[-1].startswith("return %")


@needs_llvm
def test_a_function_that_is_planned_for_many_calls_goes_on_with_the_same_numbers_and_programs():
    plain, own = trained(optimizers.Adam(0.1))
    fast, weights = trained(optimizers.Adam(0.1))
    for _ in range(3):
        plain(X, LABELS), fast(X, LABELS)
    before = fast.kernels
    fast.plan(10**9)
    after = fast.kernels
    assert after < before
    for _ in range(3):
        same([plain(X, LABELS)], [fast(X, LABELS)], fast=True)
    same(own, weights, fast=True)
    assert (fast.recordings, fast.replays) == (1, 5)
    fast(X[:3], LABELS[:3])
    assert fast.kernels == 2 * after, "the other shape goes to LLVM too"


def test_llvm_is_for_runs_that_are_long_enough(monkeypatch):
    enough = executors.COMPILING / executors.SAVED
    monkeypatch.setattr(llvm, "installed", lambda: True)
    assert (
        executors.is_worth_compiling(enough * 1.01)
        and not executors.is_worth_compiling(enough * 0.99)
        and not executors.is_worth_compiling(0.0)
    )
    monkeypatch.setattr(llvm, "installed", lambda: False)
    assert not executors.is_worth_compiling(enough * 100.0)


@pytest.fixture(params=[["llvmlite", "SciPy"], ["llvmlite"], ["SciPy"]], ids=" and ".join)
def missing(request, monkeypatch):
    """A computer where something is not installed that LLVM's kernels need."""
    executors.available.cache_clear()
    monkeypatch.setattr(llvm, "missing", lambda: request.param)
    yield request.param
    executors.available.cache_clear()


def test_without_llvm_numpy_carries_out_what_was_to_be_fast_and_says_so_once(missing, caplog):
    runs = [trained(optimizers.Adam(0.1), fast) for fast in (None, True, True)]
    for _ in range(3):
        for step, _ in runs:
            step(X, LABELS)
    for _, weights in runs[1:]:
        assert_same(leaves(weights), leaves(runs[0][1]))
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1 and "pip install 'minikeras[jit]'" in told[0]
    found = f": {' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not installed, "
    assert found in told[0]
    assert len({step.kernels for step, _ in runs}) == 1
