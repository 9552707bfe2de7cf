"""Infinities, NaN and integers that wrap are results like any other: NumPy warns of none of them."""

import warnings

import laws
import numpy as np
import pytest
from in_one_test import in_one_test
from specimens import SPECIMENS

import minikeras as tf
from minikeras.core.tensor import Tensor
from minikeras.errors import MinikerasError


def extreme(array, value):
    """The array with one element, and all others where there are more than two, at the extreme."""
    if array.dtype.kind not in "fc":
        return array
    flat = array.reshape(-1).copy()
    flat[len(flat) // 2 :] = value
    return flat.reshape(array.shape)


@in_one_test(specimen=SPECIMENS, value=[np.inf, 3e38])
def test_extreme_numbers_raise_no_warning_forward_or_backward(specimen, value):
    assert_warns_of_nothing(specimen, value)


@pytest.mark.slow
@in_one_test(specimen=SPECIMENS, value=[-np.inf, -3e38, np.nan, 0.0])
def test_other_extreme_numbers_raise_no_warning_either(specimen, value):
    assert_warns_of_nothing(specimen, value)


def assert_warns_of_nothing(specimen, value):
    with np.errstate(all="ignore"):
        arrays = [extreme(x, value) for x in specimen.sample("float32")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensors = [Tensor(x) for x in arrays]
        sources = [x for x in tensors if x.dtype.is_differentiable]
        try:
            with tf.GradientTape() as tape:
                tape.watch(sources)
                targets = laws.results(specimen, tensors)
            if specimen.smooth:
                tape.gradient([y for y in targets if isinstance(y, Tensor) and y.dtype.is_differentiable], sources)
        except (MinikerasError, np.linalg.LinAlgError):  # some refuse what is not finite; that is no warning either
            pass


@in_one_test(
    compiled=[False, True],
    function=[
        lambda x: x - x,
        lambda x: x * 0.0,
        lambda x: x * x,
        lambda x: tf.reduce_sum(tf.stack([x, -x])),
        lambda x: tf.square(x) + x,
        lambda x: tf.reduce_mean(tf.stack([x, x, -x])),
        lambda x: tf.matmul([[x, x]], [[x], [-x]]),
        lambda x: tf.cast(x, "int32"),
        lambda x: tf.cast(x, "float16"),
    ],
    value=[np.inf, 3e38, np.nan],
)
def test_no_warning_leaks_from_a_number(function, value, compiled):
    run = tf.function(function) if compiled else function
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            run(tf.constant(value, "float32"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
def test_integers_wrap_without_a_warning(dtype):
    top = np.iinfo(dtype).max
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = tf.constant(top, dtype)
        assert (x + 1).numpy() == np.iinfo(dtype).min
        assert (x * 2).numpy() == np.array([top], dtype) * np.array([2], dtype)
        assert (tf.constant(np.iinfo(dtype).min, dtype) - 1).numpy() == top
        assert tf.square(x).numpy() == (np.array([top], dtype) ** 2)[0]
        assert tf.reduce_sum(tf.stack([x, x])).numpy() == (np.array([top], dtype) * 2)[0]
        assert tf.function(lambda x: x + 1)(x).numpy() == np.iinfo(dtype).min
        tf.abs(tf.constant(np.iinfo(dtype).min, dtype)), -tf.constant(np.iinfo(dtype).min, dtype), tf.cumsum(tf.stack([x, x]))


def test_the_caller_s_own_error_state_is_left_alone():
    before = np.geterr()
    with np.errstate(all="raise"):
        assert np.isinf(tf.exp(tf.constant(1000.0)).numpy())
        assert np.isinf((tf.constant(3e38) * 10.0).numpy())
        with pytest.raises(FloatingPointError):
            np.float32(3e38) * np.float32(10)
    assert np.geterr() == before
