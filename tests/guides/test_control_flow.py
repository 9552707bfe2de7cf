"""Control flow by functions, functions of functions, and what only graphs can do."""

import inspect

import numpy as np
import pytest

import minikeras as tf


def gradient(function, value):
    x = tf.constant(value)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x).numpy()


FLOWS = {
    "cond, true": (lambda x: tf.cond(x > 0.0, lambda: x**2, lambda: -x), 3.0, 6.0),
    "cond, false": (lambda x: tf.cond(x > 0.0, lambda: x**2, lambda: -x), -3.0, -1.0),
    "case": (lambda x: tf.case([(x > 5.0, lambda: x)], default=lambda: x * x), 3.0, 6.0),
    "switch_case": (lambda x: tf.switch_case(tf.constant(1), [lambda: x, lambda: x**3]), 2.0, 12.0),
    "while_loop": (lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (tf.constant(0), x))[1], 2.0, 32.0),
    "map_fn": (lambda x: tf.map_fn(lambda row: row * row, x), [1.0, 3.0], [2.0, 6.0]),
    "scan": (lambda x: tf.scan(lambda total, row: total * row, x), [2.0, 3.0], [4.0, 2.0]),
    "foldl": (lambda x: tf.foldl(lambda total, row: total * row, x), [2.0, 3.0], [3.0, 2.0]),
    "vectorized_map": (lambda x: tf.vectorized_map(lambda row: row * row, x), [1.0, 3.0], [2.0, 6.0]),
}


@pytest.mark.parametrize("name", FLOWS)
def test_what_was_carried_out_is_differentiated(name):
    """T118."""
    function, point, expected = FLOWS[name]
    np.testing.assert_allclose(gradient(function, point), expected)


@pytest.mark.parametrize("name", FLOWS)
def test_also_twice(name):
    """T118, T49: second derivatives against differences of the first."""
    function, point, _ = FLOWS[name]
    x = tf.constant(point, "float64")
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        first = tf.reduce_sum(inner.gradient(y, x))
    second = outer.gradient(first, x, unconnected_gradients="zero").numpy()
    for i in np.ndindex(second.shape):
        step = np.zeros(second.shape)
        step[i] = 1e-4
        ends = [gradient(function, np.asarray(point) + sign * step).sum() for sign in (1, -1)]
        np.testing.assert_allclose(second[i], (ends[0] - ends[1]) / 2e-4, rtol=1e-6, atol=1e-6)


# tf.function ----------------------------------------------------------------------------------------------------------


def test_gradients_go_through_a_function_of_any_order():
    """T119."""

    @tf.function
    def cube(x):
        return x**3

    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = cube(x)
        first = inner.gradient(y, x)
    assert (y.numpy(), first.numpy(), outer.gradient(first, x).numpy()) == (8.0, 12.0, 12.0)


def test_a_function_keeps_its_name_and_the_function_that_was_decorated():
    """T119: with and without arguments of the decorator, also on methods."""

    def plain(x):
        """Says so."""
        return x + 1.0

    decorated = tf.function(plain, input_signature=[tf.TensorSpec([], tf.float32)])
    assert decorated.python_function is plain and decorated.__name__ == "plain" and decorated.__doc__ == "Says so."
    assert decorated(tf.constant(1.0)).numpy() == 2.0

    class Scale:
        factor = 3.0

        @tf.function(reduce_retracing=True)
        def call(self, x):
            return self.factor * x

    assert Scale().call(tf.constant(2.0)).numpy() == 6.0


def test_functions_can_be_told_to_run_as_plain_python():
    """T119: then what Python does beside the operations happens at every call."""
    calls = []

    @tf.function
    def noted(x):
        calls.append(inspect.currentframe().f_code.co_name)
        return x

    tf.config.run_functions_eagerly(True)
    try:
        for _ in range(3):
            noted(tf.constant(1.0))
    finally:
        tf.config.run_functions_eagerly(False)
    assert calls == ["noted"] * 3


# Graphs ---------------------------------------------------------------------------------------------------------------


def test_what_needs_a_graph_refuses_and_names_the_tape():
    """T121."""
    x = tf.constant(1.0)
    with pytest.raises(RuntimeError) as caught:
        tf.gradients(x * x, x)
    expected = "tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead."
    assert str(caught.value) == expected
    with pytest.raises(RuntimeError, match="not supported when eager execution is enabled.*tf.autodiff.hessian"):
        tf.hessians(x * x, x)
