"""Loops of NumPy's executor whose arithmetic LLVM compiles once they have taken a while: the bits stay."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest
from slow import sampled

import minikeras as tf
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
    monkeypatch.setattr(blocks, "LATER", 0.0)
    monkeypatch.setattr(blocks, "_uses", WeakValueDictionary())


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


def loop_of(function, dtypes) -> BlockLoop:
    """The loop of a function of arrays, and of Python numbers where the dtype is `float`."""
    return BlockLoop(traced(function, dtypes), (SIZE,), [None if dtype is float else (SIZE,) for dtype in dtypes])


def arithmetic(x, y, number):
    root = np.sqrt(np.absolute(x * y)) / (number + y**2)
    return (-x) * 0.9 + (1.0 - number) * y, np.where(x <= 3, root, np.reciprocal(y)), np.where(y != 0, x / y, 1.0)


def mixed(x, y):
    """Two functions of NumPy in turn, with arithmetic before, between and after, and results of each part."""
    a = x * x + y * 0.5 - 1.0
    b = np.exp(-np.absolute(a)) * 2.0 + 1.0 / (x + 3.0)
    c = np.tanh(b - x) + b * b
    return a * 3.0 - x, b + y - c, np.minimum(c, 0.25) * y, np.exp(x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_compiled_loop_has_the_bits_of_numpy_also_for_infinity_and_subnormal_numbers(at_once, dtype) -> None:
    block = loop_of(arithmetic, [np.dtype(dtype), np.dtype(dtype), float])
    first, second = _by_numpy_then_compiled(block, _numbers(dtype, 0), _numbers(dtype, 1), 0.3)
    assert block._uses.compiled is not None
    assert first == second


def test_results_may_take_the_memory_of_operands(at_once) -> None:
    block = loop_of(lambda x, y: (x + y, x - y, x * y), [np.dtype("float32")] * 2)
    x, y = _numbers("float32", 0), _numbers("float32", 1)
    with np.errstate(all="ignore"):
        expected = x + y, x - y, x * y
        block(x, y, *[np.empty_like(x) for _ in range(3)])
    found = x, y, np.empty_like(x)
    block(x, y, *found)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("function", [arithmetic, mixed])
def test_operands_may_be_rows_columns_or_single_elements(at_once, function) -> None:
    shape, dtype = (123, 47), np.dtype("float32")
    whole = _numbers("float32", 0)[: 123 * 47].reshape(shape)
    for other in (whole[:1], whole[0], whole[:, :1].copy(), whole[0, 0].reshape(())):
        given = [whole, other, 0.3][: 3 if function is arithmetic else 2]
        body = traced(function, [float if type(x) is float else dtype for x in given])
        block = BlockLoop(body, shape, [None if type(x) is float else x.shape for x in given])
        found = []
        for _ in range(2):
            results = [np.empty(shape, body.dtypes[register]) for register in body.outputs]
            with np.errstate(all="ignore"):
                block(*given, *results)
            found.append(results)
        assert other.shape == () or block._uses.compiled is not None
        np.testing.assert_array_equal(*found)


def test_arrays_with_gaps_are_left_to_numpy(at_once) -> None:
    block = loop_of(lambda x: (x * 2.0 + 1.0) / 3.0, [np.dtype("float32")])
    wide = np.ones((SIZE, 2), "float32")
    wide[:, 1] = 5.0
    for x in (wide[:, 0].copy(), wide[:, 0]):
        found = np.empty(SIZE, "float32")
        block(x, found)
        assert block._uses.compiled is not None and (found == 1.0).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_with_more_than_one_right_result_stay_numpys(at_once, dtype) -> None:
    block = loop_of(mixed, [np.dtype(dtype)] * 2)
    first, second = _by_numpy_then_compiled(block, _numbers(dtype, 0), _numbers(dtype, 1))
    stages = block._uses.compiled._stages
    assert [stage.function.__name__ for stage in stages if stage.function is not None] == ["exp", "exp", "tanh"]
    assert first == second


def test_results_of_several_stages_may_take_the_memory_of_operands(at_once) -> None:
    block = loop_of(mixed, [np.dtype("float32")] * 2)
    x, y = np.linspace(-2.0, 2.0, SIZE, dtype="float32"), np.linspace(3.0, 1.0, SIZE, dtype="float32")
    expected = [np.empty(SIZE, "float32") for _ in range(4)]
    block(x, y, *expected)
    results = [np.empty(SIZE, "float32") for _ in range(4)]
    for number, operands in enumerate(map(block.may_alias, range(4))):
        if 0 in operands:
            results[number] = x
            break
    block(x, y, *results)
    np.testing.assert_array_equal(results, expected)


@pytest.mark.parametrize("function", [np.exp, np.tanh, lambda x: np.maximum(x, 0) * 2.0])
def test_a_loop_of_little_arithmetic_stays_numpys(at_once, function) -> None:
    block = loop_of(lambda x: function(x) + 1.0, [np.dtype("float32")])
    _by_numpy_then_compiled(block, _numbers("float32", 0))
    assert block._uses.compiled is None


def test_without_llvm_numpy_goes_on(at_once, monkeypatch) -> None:
    monkeypatch.setattr(blocks.Uses, "has_compiler", lambda: False)
    block = loop_of(lambda x: (x * 2.0 + 1.0) / 3.0, [np.dtype("float32")])
    first, second = _by_numpy_then_compiled(block, _numbers("float32", 0))
    assert block._uses.compiled is None and first == second


def test_several_threads_share_a_compiled_loop(at_once) -> None:
    block = loop_of(lambda x, number: (x * number + 1.0) * 1.0, [np.dtype("float32"), float])
    x = np.ones(SIZE, "float32")
    block(x, 1.0, np.empty_like(x))

    def call(number: int) -> bool:
        found = np.empty_like(x)
        block(x, float(number), found)
        return bool((found == number + 1).all())

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(call, range(200)))


@pytest.mark.parametrize(
    "make", sampled([tf.keras.optimizers.Adagrad, tf.keras.optimizers.Adam, tf.keras.optimizers.RMSprop], 3)
)
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.01}, {"use_ema": True}], ids=str)
def test_an_optimizers_steps_have_the_same_bits_whether_compiled_or_not(monkeypatch, make, options) -> None:
    pytest.importorskip("llvmlite")

    def trained(pays: float) -> tuple[bytes, list[Any]]:
        monkeypatch.setattr(blocks, "PAYS", pays)
        monkeypatch.setattr(blocks, "LATER", 0.0)
        monkeypatch.setattr(blocks, "_uses", uses := WeakValueDictionary())
        weights, optimizer = tf.Variable(tf.ones([300, 301])), make(0.1, **options)
        for step in range(12):
            gradient = tf.random.stateless_normal([300, 301], seed=[1, step])
            optimizer.apply([gradient], [weights])
        return weights.numpy().tobytes(), [one.compiled for one in uses.values()]

    (by_numpy, none), (compiled, loops) = trained(math.inf), trained(0.0)
    assert by_numpy == compiled
    assert none == [None] and None not in loops
