"""Random functions, compiled: the same bits as the function itself, and no array that was seen is ever written."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from in_threads import in_threads
from random_programs import INSTRUCTION, Case, arguments, cases, eagerly, recorded, replayed
from side_by_side import assert_same, leaves
from slow import drawn, mostly_slow

from minikeras.compiler.executors import by_llvm, by_numpy, llvm
from minikeras.compiler.executors.numpy import blocks, lowering
from minikeras.compiler.passes import optimized

ANY = st.booleans()
CHANGES = ("assign", "assign_sub", "optimize", "optimize twice")
PURE = INSTRUCTION.filter(lambda instruction: instruction[0] not in CHANGES)


def assert_is_the_function(case):
    program, state = recorded(case)
    results, left = replayed(case, by_numpy(optimized(program)), state)
    expected, expected_left = eagerly(case)
    assert_same(expected, results)
    assert_same(expected_left, left)


@drawn(50, 150, case=cases(special=ANY))
def test_an_improved_program_is_the_function_bit_for_bit_and_keeps_what_was_seen(case):
    assert_is_the_function(case)


@pytest.mark.slow
@settings(max_examples=60)
@given(case=cases(special=ANY))
def test_a_program_as_it_was_recorded_is_the_function_too(case):
    program, state = recorded(case)
    results, left = replayed(case, by_numpy(program), state)
    expected, expected_left = eagerly(case)
    assert_same(expected, results)
    assert_same(expected_left, left)


@pytest.mark.parametrize("sizes", mostly_slow([(1, 1), (4, 7), (16, 1)], (4, 7)))
@drawn(30, 60, case=cases(sizes=(0, 1, 3, 9), special=ANY))
def test_loops_in_blocks_and_in_threads_are_the_function_bit_for_bit(case, sizes, monkeypatch):
    block, least = sizes
    for module, name, value in (
        *(
            (lowering, "LARGE_LOOP", 1),
            (lowering, "FEW_STEPS", 0),
            (blocks, "BLOCK", block),
            (blocks, "LONG_BLOCK", block),
            (blocks, "LEAST", least),
        ),
    ):
        monkeypatch.setattr(module, name, value)
    assert_is_the_function(case)


@drawn(6, 60, case=cases(instruction=PURE))
def test_runs_in_several_threads_do_not_meet(executor, case):
    program, _ = recorded(case)
    replay = executor(optimized(program))
    found = {}

    def work(first):
        for number in range(first, first + 20):
            found[number] = replay(arguments(case, number % 3))

    in_threads(lambda: work(0), lambda: work(100))
    expected = [leaves(replay(arguments(case, number))) for number in range(3)]
    for number, results in found.items():
        assert_same(expected[number % 3], leaves(results))
    assert len(found) == 40


needs_llvm = pytest.mark.skipif(not llvm.installed(), reason="llvmlite and SciPy are not installed")


@needs_llvm
@drawn(20, 150, case=cases())
@example(case=Case((0, 0), "float32", [("optimize", 0, 0, 0), ("shape", 0, 0, 0)], [0], 0, False))  # an empty view
@example(case=Case((0, 0), "float32", [("optimize", 281, 0, 0)], [0], 3, False))  # steps on numbers among arrays without axes
def test_llvm_gives_the_same_up_to_rounding_and_keeps_what_was_seen(case):
    assert_near(case)


@needs_llvm
@pytest.mark.slow
@settings(max_examples=60)
@given(case=cases(sizes=(0, 1, 3, 9)))
def test_loops_of_llvm_in_threads_give_the_same_up_to_rounding(case, monkeypatch):
    from minikeras.compiler.executors.llvm import segment

    monkeypatch.setattr(segment, "SHARED", 1e-9)
    monkeypatch.setattr(segment, "WAKING", 0.0)
    assert_near(case)


def assert_near(case):
    """LLVM gives the function's numbers: to 1e-5 of the largest of an array in float32, to 1e-12 in float64."""
    program, state = recorded(case)
    results, left = replayed(case, by_llvm(optimized(program)), state)
    expected, expected_left = eagerly(case)
    tolerance = {"float32": 1e-5, "float64": 1e-12}[case.dtype]
    for one, other in zip([*expected, *expected_left], [*results, *left], strict=True):
        assert (np.shape(one), np.asarray(one).dtype) == (np.shape(other), np.asarray(other).dtype)
        largest = np.abs(one).max(initial=1.0)
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance * largest)
