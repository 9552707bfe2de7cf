"""Losses, clipping, linear algebra and the functions that the guides call; slopes of operands that were broadcast."""

import itertools
import time

import numpy as np
import pytest
from derivatives.problems import gradient
from in_one_test import in_one_test

import minikeras as tf


def test_clipping_by_norm():
    """T123: what is longer gets the length, what is shorter stays; zero is in tests/ops/test_singular_points.py."""
    assert tf.clip_by_norm(tf.constant(4.0), 0.5).numpy() == 0.5
    assert tf.clip_by_norm(tf.constant([0.3, 0.4]), 1.0).numpy().tolist() == pytest.approx([0.3, 0.4])


def test_clipping_by_the_global_norm_keeps_what_is_none():
    """T123."""
    clipped, norm = tf.clip_by_global_norm([tf.constant([3.0]), None, tf.constant([4.0])], 1.0)
    assert isinstance(clipped, list) and clipped[1] is None and norm.numpy() == 5.0
    assert [c.numpy().tolist() for c in clipped if c is not None] == [pytest.approx([0.6]), pytest.approx([0.8])]


def test_padding_with_a_tensor():
    """T125: the constant has a gradient as well."""
    x, c = tf.constant([1.0, 2.0]), tf.constant(7.0)
    with tf.GradientTape() as tape:
        tape.watch([x, c])
        y = tf.pad(x, [[1, 2]], constant_values=c)
    assert y.numpy().tolist() == [7.0, 1.0, 2.0, 7.0, 7.0]
    assert tape.gradient(y, x).numpy().tolist() == [1.0, 1.0]


def test_evenly_spaced_numbers():
    """T125."""
    points = tf.linspace(-10.0, 10.0, 201)
    assert points.shape == (201,) and points.dtype == tf.float32
    np.testing.assert_allclose(points.numpy(), np.linspace(-10, 10, 201), atol=1e-5)
    assert tf.linspace(0, 4, 5).dtype == tf.float64


def test_functions_of_python_give_what_they_announce():
    double = lambda x: x * 2
    assert tf.py_function(double, [3.0], tf.float32).numpy() == 6.0
    assert [one.dtype for one in tf.py_function(lambda: (1, 2), [], [tf.int32, tf.float32])] == [tf.int32, tf.float32]
    assert tf.py_function(lambda x: None, [3.0], []) == []
    assert tf.numpy_function(np.cumsum, [[1.0, 2.0]], tf.TensorSpec([2], tf.float32)).numpy().tolist() == [1.0, 3.0]
    assert tf.numpy_function(lambda x: type(x).__name__, [3.0], tf.string).numpy() == "ndarray"
    for call in (
        lambda: tf.py_function(double, [3.0], tf.float64),
        lambda: tf.py_function(lambda x: None, [3.0], tf.float32),
        lambda: tf.py_function(lambda x: 1, [3.0], [tf.int32, tf.int32]),
        lambda: tf.numpy_function(lambda x: np.float64(2.0), [3.0], tf.float32),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Tout announces"):
            call()


def test_py_function_converts_arrays_of_numpy():
    assert tf.py_function(lambda x: x.numpy() * 1.5, [tf.constant(2)], tf.float32).numpy() == 3.0  # float64
    assert tf.py_function(lambda x: np.array([1, 2]), [0], tf.int32).dtype == tf.int32
    for found, wanted in [(1.7, tf.int32), (1j, tf.float32), (True, tf.float32), ("a", tf.float32), (1.0, tf.string)]:
        with pytest.raises(tf.errors.InvalidArgumentError, match="Tout announces"):  # [1], [0], [1] and a bare ValueError
            tf.py_function(lambda x, found=found: np.array([found]), [0], wanted)


def test_gradients_go_through_a_function_of_python_but_not_of_numpy():
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.py_function(lambda x: x * x, [x], tf.float32)
        z = tf.numpy_function(np.square, [x], tf.float32)
    assert float(tape.gradient(y, x)) == 6.0 and tape.gradient(z, x) is None and float(z) == 9.0


def test_python_runs_in_each_call_of_a_compiled_function_and_for_each_element_of_data():
    seen = []
    noted = tf.function(lambda x: tf.numpy_function(lambda a: seen.append(float(a)) or a, [x], tf.float32) + 1.0)
    assert [float(noted(tf.constant(value))) for value in (1.0, 2.0, 3.0)] == [2.0, 3.0, 4.0] and seen == [1.0, 2.0, 3.0]
    pure = tf.function(lambda x: tf.py_function(lambda a: a * 2.0, [x], tf.float32))
    assert [float(pure(tf.constant(value))) for value in (1.0, 2.0)] == [2.0, 4.0] and pure.replays == 1
    rows = tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(lambda a: a * a, [x], tf.int64))
    assert [int(row) for row in rows] == [0, 1, 4]


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}])
def test_the_clock_goes_on_in_a_compiled_function(options, monkeypatch):
    monkeypatch.setattr(time, "time", itertools.count(5.0).__next__)  # that of the machine may be set back
    now = tf.function(lambda x: tf.timestamp() + 0.0 * x, **options)
    times = [float(now(tf.constant(1.0, tf.float64))) for _ in range(3)]
    assert times == sorted(set(times)) and now.replays == 2 and tf.timestamp().dtype == tf.float64


# Broadcasting ---------------------------------------------------------------------------------------------------------


BROADCASTING = {
    "+": (lambda a, b: a + b, lambda a, b: (1, 1)),
    "-": (lambda a, b: a - b, lambda a, b: (1, -1)),
    "*": (lambda a, b: a * b, lambda a, b: (b, a)),
    "/": (lambda a, b: a / b, lambda a, b: (1 / b, -a / b**2)),
    "**": (lambda a, b: a**b, lambda a, b: (b * a ** (b - 1), a**b * np.log(a))),
    "maximum": (tf.maximum, lambda a, b: (a >= b, a < b)),
    "minimum": (tf.minimum, lambda a, b: (a <= b, a > b)),
    "where": (lambda a, b: tf.where(a > b, a, b), lambda a, b: (a > b, a <= b)),
    "squared_difference": (tf.math.squared_difference, lambda a, b: (2 * (a - b), 2 * (b - a))),
    "atan2": (tf.atan2, lambda a, b: (b / (a**2 + b**2), -a / (a**2 + b**2))),
}


@in_one_test(shapes=[((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3)), ((1, 3), (2, 3)), ((0, 3), (3,))], name=BROADCASTING)
def test_gradients_are_summed_down_to_the_shape_of_each_operand(name, shapes):
    """T110."""
    function, partials = BROADCASTING[name]
    random = np.random.default_rng(0)
    a, b = (random.uniform(0.5, 2.0, shape) for shape in shapes)
    for x, found, partial in zip((a, b), gradient(function, a, b), partials(a, b), strict=True):
        whole = np.broadcast_to(partial, np.broadcast_shapes(a.shape, b.shape)).astype(float)
        extra = tuple(range(whole.ndim - x.ndim))
        kept = tuple(i for i, size in enumerate(whole.sum(extra).shape) if x.shape[i] == 1 and size != 1)
        np.testing.assert_allclose(found, whole.sum(extra).sum(kept, keepdims=True), rtol=1e-12)


def test_stacks_of_matrices_are_broadcast_too():
    """T110."""
    a, b = np.ones((4, 2, 3)), np.arange(15.0).reshape(3, 5)
    for_a, for_b = gradient(tf.matmul, a, b)
    np.testing.assert_array_equal(for_a, np.broadcast_to(b.sum(1), a.shape))
    np.testing.assert_array_equal(for_b, np.full(b.shape, 8.0))
