"""Empty inputs, scalars, ranks and dtypes at the edge of what an operation takes."""

import numpy as np
import pytest
from in_one_test import in_one_test

import minikeras as tf
from minikeras.errors import InvalidArgumentError

EMPTY = {
    "softmax": (lambda: tf.nn.softmax(tf.zeros([2, 0])), np.zeros((2, 0), "float32")),
    "softmax along an empty first axis": (lambda: tf.nn.softmax(tf.zeros([0, 2]), 0), np.zeros((0, 2), "float32")),
    "log_softmax": (lambda: tf.nn.log_softmax(tf.zeros([2, 0])), np.zeros((2, 0), "float32")),
    "softmax_cross_entropy": (
        lambda: tf.nn.softmax_cross_entropy_with_logits(tf.zeros([2, 0]), tf.zeros([2, 0])),
        np.zeros(2, "float32"),
    ),
    "sparse_softmax_cross_entropy": (
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(tf.zeros([0], "int32"), tf.zeros([0, 0])),
        np.zeros(0, "float32"),
    ),
    "reshape": (lambda: tf.reshape(tf.zeros([0, 6]), [0, -1, 3]), np.zeros((0, 2, 3), "float32")),
    "reshape to as many": (lambda: tf.reshape(tf.zeros([0, 6]), [0, -1]), np.zeros((0, 6), "float32")),
    "reshape of a vector": (lambda: tf.reshape(tf.zeros([0]), [-1, 0]), np.zeros((1, 0), "float32")),
    "bincount": (lambda: tf.math.bincount([]), np.zeros(0, "int32")),
    "bincount with minlength": (lambda: tf.math.bincount([], minlength=3), np.zeros(3, "int32")),
    "bincount with weights": (lambda: tf.math.bincount([], weights=[], minlength=2), np.zeros(2, "float32")),
    "searchsorted in nothing": (lambda: tf.searchsorted(tf.zeros([0]), [1.0, 2.0]), np.zeros(2, "int32")),
    "searchsorted of nothing": (lambda: tf.searchsorted(tf.zeros([2, 3]), tf.zeros([2, 0])), np.zeros((2, 0), "int32")),
    "searchsorted without rows": (lambda: tf.searchsorted(tf.zeros([0, 3]), tf.zeros([0, 2])), np.zeros((0, 2), "int32")),
    "lstsq without equations": (lambda: tf.linalg.lstsq(tf.zeros([0, 2]), tf.zeros([0, 1])), np.zeros((2, 1), "float32")),
    "lstsq without unknowns": (lambda: tf.linalg.lstsq(tf.zeros([3, 0]), tf.zeros([3, 1])), np.zeros((0, 1), "float32")),
    "lstsq of no matrix": (lambda: tf.linalg.lstsq(tf.zeros([0, 3, 2]), tf.zeros([0, 3, 1])), np.zeros((0, 2, 1), "float32")),
    "reduce_max of integers": (lambda: tf.reduce_max(tf.zeros([0], "int32")), np.int32(-(2**31))),
    "reduce_min of integers": (lambda: tf.reduce_min(tf.zeros([2, 0], "uint8"), 1), np.full(2, 255, "uint8")),
    "reduce_max of floats": (lambda: tf.reduce_max(tf.zeros([0, 2]), 0), np.full(2, -np.inf, "float32")),
    "reduce_std": (lambda: tf.math.reduce_std(tf.zeros([0])), np.float32(np.nan)),
    "reduce_std of rows": (lambda: tf.math.reduce_std(tf.zeros([2, 0]), 1), np.full(2, np.nan, "float32")),
    "reduce_variance": (lambda: tf.math.reduce_variance(tf.zeros([2, 0]), 1), np.full(2, np.nan, "float32")),
    "pad of a scalar": (lambda: tf.pad(1.0, []), np.float32(1)),
    "pad of a scalar by a tensor": (lambda: tf.pad(1.0, tf.zeros([0, 2], "int32")), np.float32(1)),
}


@in_one_test(compiled=[False, True], name=EMPTY)
def test_nothing_is_an_input_too(name, compiled):
    call, expected = EMPTY[name]
    call = tf.function(call) if compiled else call
    for _ in range(3 if compiled else 1):
        found = call()
    assert found.dtype == expected.dtype and tuple(found.shape) == np.shape(expected)
    np.testing.assert_array_equal(found.numpy(), expected)


def test_what_is_known_of_an_empty_tensor_decides_what_is_left_and_nothing_else_does():
    with pytest.raises(InvalidArgumentError, match="reshape"):
        tf.reshape(tf.zeros([0, 6]), [0, -1, 4])
    with pytest.raises(InvalidArgumentError, match="reshape"):
        tf.reshape(tf.zeros([2, 6]), [0, -1])


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmax_cross_entropy"])
def test_nothing_has_gradients_too(name):
    x = tf.Variable(tf.zeros([2, 0]))
    calls = {
        "softmax": lambda: tf.nn.softmax(x),
        "log_softmax": lambda: tf.nn.log_softmax(x),
        "softmax_cross_entropy": lambda: tf.nn.softmax_cross_entropy_with_logits(tf.zeros([2, 0]), x),
    }
    with tf.GradientTape() as tape:
        y = calls[name]()
    assert tape.gradient(y, x).shape == (2, 0)


# Least squares -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 3, 5), (2, 5, 3)])
@pytest.mark.parametrize("fast", [True, False])
def test_least_squares_are_the_smallest_of_all_solutions(shape, fast):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=shape), rng.normal(size=(*shape[:-1], 2))
    expected = np.linalg.pinv(a) @ b
    np.testing.assert_allclose(tf.linalg.lstsq(a, b, fast=fast).numpy(), expected, rtol=1e-9, atol=1e-9)


def test_least_squares_of_any_rank_go_by_singular_values():
    a, b = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), np.array([[6.0], [1.0], [1.0]])
    np.testing.assert_allclose(tf.linalg.lstsq(a, b, fast=False).numpy(), np.linalg.pinv(a) @ b, rtol=1e-9)
    ridge = np.linalg.solve(a.T @ a + 0.5 * np.eye(2), a.T @ b)
    np.testing.assert_allclose(tf.linalg.lstsq(a, b, l2_regularizer=0.5).numpy(), ridge, rtol=1e-9)
    np.testing.assert_allclose(
        tf.linalg.lstsq(a.T, b[:2], l2_regularizer=0.5).numpy(),
        np.linalg.solve(a @ a.T + 0.5 * np.eye(3), a @ b[:2]),
        rtol=1e-9,
    )


@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
def test_least_squares_have_the_gradient_of_their_formula(shape):
    rng = np.random.default_rng(1)
    a, b = tf.Variable(rng.normal(size=shape)), tf.Variable(rng.normal(size=(shape[0], 1)))
    tf.test.check_gradients(lambda a, b: tf.reduce_sum(tf.sin(tf.linalg.lstsq(a, b))), [a, b])


# Dtypes ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype, expected",
    [
        *((name, "float32") for name in ("int8", "int16", "uint8", "uint16")),
        *((name, "float64") for name in ("int32", "int64", "uint32", "uint64")),
        *((name, name) for name in ("float16", "float32", "float64")),
    ],
)
def test_the_quotient_of_integers_is_wide_enough_for_them(dtype, expected):
    x, y = tf.constant([1, 7], dtype), tf.constant([2, 2], dtype)
    for found in (x / y, x / 2, tf.truediv(x, y), tf.divide(x, y), tf.function(lambda x, y: x / y)(x, y)):
        assert found.dtype == expected
        assert found.numpy().tolist() == [0.5, 3.5]
    assert (7 / y).dtype == expected and (7 / y).numpy().tolist() == [3.5, 3.5]


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, np.array([[0, 1, 0]], "float32")),
        ({"on_value": 5}, np.array([[0, 5, 0]], "int32")),
        ({"on_value": 5.0}, np.array([[0, 5, 0]], "float32")),
        ({"off_value": 2}, np.array([[2, 1, 2]], "int32")),
        ({"on_value": 5, "dtype": "float32"}, np.array([[0, 5, 0]], "float32")),
        ({"on_value": True, "off_value": False}, np.array([[False, True, False]])),
        ({"on_value": np.int64(5), "off_value": 0}, np.array([[0, 5, 0]], "int64")),
        ({"on_value": 5, "off_value": 1, "axis": 0}, np.array([[1], [5], [1]], "int32")),
        ({"dtype": "int64"}, np.array([[0, 1, 0]], "int64")),
    ],
)
def test_one_hot_rows_have_the_dtype_of_their_values(options, expected):
    found = tf.one_hot([1], 3, **options)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("options", [{"on_value": 5, "off_value": 1.5}, {"on_value": 1.5, "dtype": "int32"}])
def test_one_hot_refuses_values_that_do_not_fit(options):
    with pytest.raises(TypeError, match=r"1\.5"):
        tf.one_hot([1], 3, **options)


def test_a_leaky_unit_of_integers_is_float32_and_units_of_bools_are_refused():
    found = tf.nn.leaky_relu(tf.constant([-5, 5]))
    assert found.dtype == "float32" and found.numpy().tolist() == [-1.0, 5.0]
    for unit in (tf.nn.relu, tf.nn.relu6, tf.nn.leaky_relu):
        with pytest.raises(TypeError, match="bool"):
            unit([True])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits_are_normalized_by_statistics_of_float32(dtype):
    x, mean, variance = tf.cast([300.0, 302.0], dtype), tf.constant(301.0), tf.constant(1.0)
    found = tf.nn.batch_normalization(x, mean, variance, tf.constant(1.0), tf.constant(2.0), 0.0)
    assert found.dtype == dtype and tf.cast(found, "float32").numpy().tolist() == [-1.0, 3.0]


# Ranks and equations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "equation", ["ij,jk->ik,", "ij,jk->ik->", "i!,jk->ik", "ij,jk->iz", "ij,jk->ii", "ij,jk->i,k", "ij,j....k->ik", "i1,1k->ik"]
)
def test_an_equation_with_a_wrong_format_is_refused(equation):
    with pytest.raises(InvalidArgumentError, match="einsum"):
        tf.einsum(equation, tf.ones([2, 2]), tf.ones([2, 2]))


def test_an_equation_may_have_blanks_and_dots():
    assert tf.einsum(" ij, jk -> ik ", tf.ones([2, 2]), tf.ones([2, 2])).shape == (2, 2)
    assert tf.einsum("...ij,jk->...ik", tf.ones([5, 2, 2]), tf.ones([2, 3])).shape == (5, 2, 3)
    assert tf.einsum("ij->", tf.ones([2, 3])).numpy() == 6.0


@pytest.mark.parametrize("bias", [1.0, [1.0], [[1.0, 1.0, 1.0]], [1.0, 1.0]])
def test_a_bias_is_a_vector_of_the_channels(bias):
    with pytest.raises(InvalidArgumentError, match="bias_add"):
        tf.nn.bias_add(tf.ones([2, 3]), bias)
    with pytest.raises(InvalidArgumentError, match=r"bias_add.*at least two axes, found shape \(3,\)"):
        tf.nn.bias_add(tf.ones([3]), [1.0, 1.0, 1.0])


def test_a_bias_is_added_to_the_channels_wherever_they_lie():
    assert tf.nn.bias_add(tf.zeros([1, 2, 3]), [1.0, 2.0], "NCHW").numpy().tolist() == [[[1, 1, 1], [2, 2, 2]]]
    assert tf.nn.bias_add(tf.zeros([1, 2]), [1.0, 2.0], "NHWC").numpy().tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="data_format"):
        tf.nn.bias_add(tf.zeros([1, 2]), [1.0, 2.0], "NXYZ")


def test_a_roll_needs_a_shift_for_each_axis():
    assert tf.roll(tf.range(6), [1, 2], [0, 0]).numpy().tolist() == [3, 4, 5, 0, 1, 2]
    for shift, axis in (([1, 2], 0), (1, [0, 0]), ([1], [0, 1])):
        with pytest.raises(InvalidArgumentError, match="same size"):
            tf.roll(tf.ones([6, 2]), shift, axis)


def test_a_number_has_no_diagonal():
    with pytest.raises(InvalidArgumentError, match="diag"):
        tf.linalg.diag(1.0)


def test_leading_axes_of_sorted_sequences_and_values_agree():
    with pytest.raises(InvalidArgumentError, match="leading axes"):
        tf.searchsorted(tf.zeros([2, 3]), tf.zeros([3, 3]))


# Random numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (1.0, 2.0), (-3.0, 5.0), (0.0, 0.1), (100.0, 101.0), (-0.7, 0.3)])
def test_uniform_numbers_stay_below_maxval(dtype, bounds):
    tf.random.set_seed(0)
    low, high = (tf.constant(bound, dtype).numpy().astype("float64") for bound in bounds)
    found = tf.random.uniform([200_000], *bounds, dtype=dtype)
    numbers = found.numpy().astype("float64")
    assert found.dtype == dtype and low <= numbers.min() and numbers.max() < high
    width, spacing = high - low, {"float16": 2**-10, "bfloat16": 2**-7}.get(dtype, 1e-6) * max(abs(low), abs(high))
    assert abs(numbers.mean() - (low + high) / 2) < 0.01 * width + spacing


def test_equal_bounds_give_that_number_and_bounds_may_be_tensors():
    assert tf.random.uniform([3], 2.0, 2.0).numpy().tolist() == [2.0, 2.0, 2.0]
    numbers = tf.random.uniform([1000, 2], [0.0, 5.0], [1.0, 6.0]).numpy()
    assert ((numbers >= [0, 5]) & (numbers < [1, 6])).all()
