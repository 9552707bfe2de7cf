"""`&`, `|`, `^` and `~` work on the bits of integers and on the truth of bools, eager and compiled."""

import operator

import numpy as np
import pytest
from hypothesis import strategies as st
from slow import drawn

import minikeras as tf

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
OPERATORS = [operator.and_, operator.or_, operator.xor]


def tensor_and_variable(array):
    return tf.constant(array), tf.Variable(array)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize("operate", OPERATORS)
@drawn(5, 40, data=st.data())
def test_operators_of_bits_are_numpy_s(operate, dtype, data):
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    numbers = st.lists(st.integers(*map(int, limits)), min_size=3, max_size=3)
    a, b = np.array(data.draw(numbers), dtype), np.array(data.draw(numbers), dtype)
    expected = operate(a, b)
    compiled = tf.function(operate)
    for x in tensor_and_variable(a):
        for y in (*tensor_and_variable(b), b, *([] if dtype == "uint64" else [b.tolist()])):
            for found in (operate(x, y), operate(y, x) if not isinstance(y, np.ndarray) else operate(x, y)):
                assert found.dtype == dtype
                np.testing.assert_array_equal(found.numpy(), expected)
        np.testing.assert_array_equal((~x).numpy(), ~a)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(tf.constant(a), tf.constant(b)).numpy(), expected)


def test_python_numbers_take_the_dtype_of_the_tensor():
    x = tf.constant(6)
    assert (x & 3).numpy() == (3 & x).numpy() == 2
    assert (x | 3).numpy() == (3 | x).numpy() == 7
    assert (x ^ 3).numpy() == (3 ^ x).numpy() == 5
    assert (~x).numpy() == -7 and (~tf.constant(6, "uint8")).numpy() == 249
    assert (tf.constant([True, False]) & True).numpy().tolist() == [True, False]
    assert tf.function(lambda x: x & 3)(x).dtype == "int32"


@pytest.mark.parametrize("operate", OPERATORS)
def test_floats_have_neither_bits_nor_truth(operate):
    with pytest.raises(TypeError, match="integers or bools"):
        operate(tf.constant(1.0), tf.constant(2.0))
    with pytest.raises(TypeError, match="integers or bools"):
        ~tf.Variable(1.0)
    with pytest.raises(TypeError, match="int64"):
        operate(tf.constant(1), tf.constant(2, "int64"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="300"):
        operate(tf.constant(1, "int8"), 300)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_move_bits_by_as_many_places_as_there_are(dtype):
    x, bits = np.array([1, 77, 100], dtype), np.iinfo(dtype).bits
    for places in (0, 1, 3, bits - 1):
        moved = np.array(places, dtype)
        np.testing.assert_array_equal(tf.bitwise.left_shift(x, moved).numpy(), x << moved)
        np.testing.assert_array_equal(tf.bitwise.right_shift(x, moved).numpy(), x >> moved)
    np.testing.assert_array_equal(tf.bitwise.left_shift(x, np.array(100, dtype)).numpy(), x << np.array(bits - 1, dtype))
    np.testing.assert_array_equal(tf.bitwise.right_shift(-tf.constant(x), 100).numpy(), -x >> np.array(bits - 1, dtype))
    if np.iinfo(dtype).min:
        np.testing.assert_array_equal(tf.bitwise.left_shift(x, np.array(-5, dtype)).numpy(), x)


def test_slices_of_a_stack_have_their_own_bits():
    found = tf.vectorized_map(lambda x: (x & 6) | tf.bitwise.left_shift(x, 4), tf.range(8))
    np.testing.assert_array_equal(found.numpy(), [(i & 6) | (i << 4) for i in range(8)])
