"""A choice between two arrays is that of NumPy, bit by bit, however many elements there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minikeras as tf
from minikeras.core.ops.arithmetic import choose

DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool", "complex64")
KINDS = st.sampled_from(["array", "other array", "column", "zero", "one", "half"])


def operand(kind, rng, shape, dtype):
    x = rng.normal(size=(*shape[:1], 1) if kind == "column" else shape) * 3
    x.flat[:: x.size // 7 or 1] = rng.choice([np.nan, np.inf, -np.inf, -0.0], x.flat[:: x.size // 7 or 1].shape)
    with np.errstate(invalid="ignore"):
        array = x.astype(dtype)
    return {"zero": 0, "one": 1, "half": 0.5, "other array": np.asfortranarray(array)}.get(kind, array)


@given(KINDS, KINDS, st.sampled_from(DTYPES), st.sampled_from([(3, 5), (40, 50), (1, 2000)]), st.integers(0, 99))
def test_a_choice_is_that_of_where_bit_by_bit(first, second, dtype, shape, seed):
    rng = np.random.default_rng(seed)
    a, b = operand(first, rng, shape, dtype), operand(second, rng, shape, dtype)
    condition = rng.random(shape) < 0.5
    wanted, found = np.where(condition, a, b), choose(np, condition, a, b)
    assert (found.dtype, found.shape, found.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())
    for place, x in enumerate((np.empty(shape, wanted.dtype), a, b)):
        if isinstance(x, np.ndarray) and x.dtype == wanted.dtype and x.shape == shape:
            out = x.copy()
            choose(np, condition, out if place == 1 else a, out if place == 2 else b, out)
            assert out.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("shape", [(7,), (30, 70)])
def test_where_gives_each_branch_its_gradient_and_a_true_zero_elsewhere(shape):
    rng = np.random.default_rng(0)
    a, b, condition = tf.Variable(rng.normal(size=shape)), tf.Variable(rng.normal(size=shape)), rng.random(shape) < 0.5
    with tf.GradientTape() as tape:
        y = tf.where(condition, a / 0.0, b)
    of_a, of_b = tape.gradient(y, [a, b])
    assert np.isinf(np.asarray(of_a)[condition]).all() and not np.asarray(of_a)[~condition].any()
    np.testing.assert_array_equal(of_b, np.where(condition, 0.0, 1.0))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "complex64"])
@pytest.mark.parametrize("exponent", [*range(10), 3.0, 8.0])
def test_whole_powers_are_those_of_numpy_to_the_last_places(exponent, dtype):
    exponent = int(exponent) if dtype == "int32" else exponent
    x = np.random.default_rng(0).uniform(-3, 3, 50).astype(dtype)
    np.testing.assert_allclose(
        tf.constant(x) ** exponent, x**exponent, rtol=8 * np.finfo(x.real.dtype).eps if dtype != "int32" else 0
    )


def test_a_choice_of_transposed_arrays_lies_as_they_do():
    x = np.random.default_rng(0).normal(size=(60, 70)).T
    assert choose(np, x > 0, x, x + 1).strides == np.where(x > 0, x, x + 1).strides == choose(np, x > 0, x, 0).strides
