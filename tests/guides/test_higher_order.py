"""Tapes within tapes and tapes side by side."""

import numpy as np
from derivatives.problems import second_derivative

import minikeras as tf


def derivatives(function, x, order):
    """Values of the derivatives of order 1 to `order`, by as many nested tapes."""
    x = tf.constant(x, dtype="float64")
    return [float(derivative(function, x, k)) for k in range(1, order + 1)]


def derivative(function, x, order):
    """The derivative of one order at the tensor x, recorded by whatever listens."""
    if order == 0:
        return function(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        lower = derivative(function, x, order - 1)
    return tape.gradient(lower, x)


def test_the_inner_gradient_is_recorded_by_the_outer_tape():
    """T49: x**3 at 1 gives 3 and 6."""
    x = tf.Variable(1.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
        slope = inner.gradient(y, x)
    assert slope.numpy() == 3.0
    assert outer.gradient(slope, x).numpy() == 6.0


def test_five_levels_of_tapes():
    """T49: the derivatives of x**5 at 1 are 5, 20, 60, 120, 120."""
    assert derivatives(lambda x: x**5, 1.0, 5) == [5.0, 20.0, 60.0, 120.0, 120.0]


def test_a_gradient_taken_after_the_outer_block_is_not_recorded():
    """T50."""
    x = tf.Variable(1.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        y = x**3
    slope = inner.gradient(y, x)
    assert slope.numpy() == 3.0
    assert outer.gradient(slope, x) is None


def test_the_second_derivative_of_a_linear_function_is_unconnected():
    """T51."""
    x = tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            y = 2.0 * x
        slope = inner.gradient(y, x)
    assert slope.numpy() == 2.0
    assert outer.gradient(slope, x) is None
    assert outer.gradient(slope, x, unconnected_gradients="zero").numpy() == 0.0


def test_tapes_side_by_side_watch_independently():
    """T52: crosswise there is nothing, also where one operation takes both."""
    x, y = tf.constant(0.0), tf.constant(0.0)
    with tf.GradientTape(persistent=True) as a, tf.GradientTape(persistent=True) as b:
        a.watch(x)
        b.watch(y)
        total = tf.sin(x) + tf.sigmoid(y)
        product = (x + 2.0) * (y + 3.0)
        direct = x * y
    assert a.gradient(total, x).numpy() == 1.0 and b.gradient(total, y).numpy() == 0.25
    assert a.gradient(product, x).numpy() == 3.0 and b.gradient(product, y).numpy() == 2.0
    for target in (total, product, direct):
        assert a.gradient(target, y) is None and b.gradient(target, x) is None


def test_an_input_gradients_norm_is_differentiated_with_respect_to_weights():
    """T53: against central differences."""
    random = np.random.default_rng(3)
    x = tf.constant(random.normal(size=(4, 3)))
    kernel, bias = tf.Variable(random.normal(size=(3, 2))), tf.Variable(random.normal(size=2))

    def penalty():
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(tf.tanh(tf.matmul(x, kernel) + bias) ** 2)
        return tf.norm(inner.gradient(y, x))

    with tf.GradientTape() as outer:
        value = penalty()
    gradients = outer.gradient(value, [kernel, bias])
    for variable, gradient in zip([kernel, bias], gradients, strict=True):
        start, direction, step = variable.numpy(), random.normal(size=variable.shape), 1e-6
        ends = []
        for sign in (1, -1):
            variable.assign(start + sign * step * direction)
            ends.append(penalty().numpy())
        variable.assign(start)
        np.testing.assert_allclose(np.sum(gradient.numpy() * direction), (ends[0] - ends[1]) / (2 * step), rtol=1e-7)


def test_the_hessian_of_the_softmax_cross_entropies_is_right():
    """T54: diag(p) - p p^T, for labels as a distribution and as an index."""
    logits = np.array([0.5, -1.0, 2.0])
    p = np.exp(logits) / np.exp(logits).sum()
    expected = np.diag(p) - np.outer(p, p)
    dense = second_derivative(lambda x: tf.nn.softmax_cross_entropy_with_logits(labels=[0.2, 0.3, 0.5], logits=x), logits)
    sparse = second_derivative(lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=1, logits=x), logits)
    np.testing.assert_allclose(dense, expected, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(sparse, expected, rtol=1e-10, atol=1e-14)
