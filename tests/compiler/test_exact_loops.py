"""Long loops of plain arithmetic that NumPy's executor hands to LLVM once they have taken a while: the bits stay."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minikeras as tf
from minikeras.compiler import executors
from minikeras.compiler.executors.numpy import blocks
from minikeras.compiler.executors.numpy.blocks import BlockLoop
from minikeras.compiler.loops import traced

SIZE = 70_001
SPECIAL = [0.0, -0.0, math.inf, -math.inf, 1.5, -2.5, 1e-42, -3e-45, 3e38, math.nan]


@pytest.fixture
def at_once(monkeypatch):
    """A loop is compiled after its first call."""
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(blocks, "PAYS", 0.0)


def _numbers(dtype: str, seed: int) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal(SIZE).astype(dtype)
    found[:: 7 + seed] = np.resize(np.array(SPECIAL, dtype), found[:: 7 + seed].shape)
    return found


def _by_numpy_then_compiled(block: BlockLoop, *operands, outputs: int = 1) -> tuple[list[bytes], list[bytes]]:
    found = []
    for _ in range(2):
        results = [np.empty(SIZE, block.body.dtypes[register]) for register in block.body.outputs]
        with np.errstate(all="ignore"):
            block(*operands, *results)
        found.append([np.where(y != y, np.nan, y).astype(y.dtype).tobytes() for y in results])
    return found[0], found[1]


def arithmetic(x, y, number):
    root = np.sqrt(np.absolute(x * y)) / (number + y**2)
    return (-x) * 0.9 + (1.0 - number) * y, np.where(x <= 3, root, np.reciprocal(y)), np.where(y != 0, x / y, 1.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_compiled_loop_has_the_bits_of_numpy_also_for_infinity_and_subnormal_numbers(at_once, dtype) -> None:
    block = BlockLoop(traced(arithmetic, [np.dtype(dtype), np.dtype(dtype), float]))
    first, second = _by_numpy_then_compiled(block, _numbers(dtype, 0), _numbers(dtype, 1), 0.3)
    assert block._compiled is not None
    assert first == second


def test_results_may_take_the_memory_of_operands(at_once) -> None:
    block = BlockLoop(traced(lambda x, y: (x + y, x - y), [np.dtype("float32")] * 2))
    x, y = _numbers("float32", 0), _numbers("float32", 1)
    with np.errstate(all="ignore"):
        expected = x + y, x - y
        block(x, y, np.empty_like(x), np.empty_like(x))
    block(x, y, x, y)
    np.testing.assert_array_equal((x, y), expected)


def test_arrays_with_gaps_are_left_to_numpy(at_once) -> None:
    block = BlockLoop(traced(lambda x: x * 2.0 + 1.0, [np.dtype("float32")]))
    wide = np.ones((SIZE, 2), "float32")
    wide[:, 1] = 5.0
    for x in (wide[:, 0].copy(), wide[:, 0]):
        found = np.empty(SIZE, "float32")
        block(x, found)
        assert block._compiled is not None and (found == 3.0).all()


@pytest.mark.parametrize("function", [np.exp, np.tanh, lambda x: np.maximum(x, 0) * 2.0])
def test_functions_with_more_than_one_right_result_stay_numpys(at_once, function) -> None:
    block = BlockLoop(traced(lambda x: function(x) + 1.0, [np.dtype("float32")]))
    _by_numpy_then_compiled(block, _numbers("float32", 0))
    assert block._compiled is None


def test_without_llvm_numpy_goes_on(at_once, monkeypatch) -> None:
    monkeypatch.setattr(executors.llvm, "installed", lambda: False)
    block = BlockLoop(traced(lambda x: x * 2.0 + 1.0, [np.dtype("float32")]))
    first, second = _by_numpy_then_compiled(block, _numbers("float32", 0))
    assert block._compiled is None and first == second


def test_several_threads_share_a_compiled_loop(at_once) -> None:
    block = BlockLoop(traced(lambda x, number: x * number + 1.0, [np.dtype("float32"), float]))
    x = np.ones(SIZE, "float32")
    block(x, 1.0, np.empty_like(x))

    def call(number: int) -> bool:
        found = np.empty_like(x)
        block(x, float(number), found)
        return bool((found == number + 1).all())

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(call, range(200)))


@pytest.mark.parametrize("make", [tf.keras.optimizers.Adagrad, tf.keras.optimizers.Adam, tf.keras.optimizers.RMSprop])
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.01}, {"use_ema": True}], ids=str)
def test_an_optimizers_steps_have_the_same_bits_whether_compiled_or_not(monkeypatch, make, options) -> None:
    pytest.importorskip("llvmlite")

    def trained(pays: float) -> bytes:
        monkeypatch.setattr(blocks, "PAYS", pays)
        weights, optimizer = tf.Variable(tf.ones([300, 301])), make(0.1, **options)
        for step in range(12):
            gradient = tf.random.stateless_normal([300, 301], seed=[1, step])
            optimizer.apply([gradient], [weights])
        return weights.numpy().tobytes()

    compiled = []
    monkeypatch.setattr(blocks, "compiled", lambda *given: compiled.append(executors._exact_loop(*given)) or compiled[-1])
    assert trained(math.inf) == trained(0.0)
    assert len(compiled) == 1 and compiled[0] is not None
