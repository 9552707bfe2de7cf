"""Slopes of operands that were broadcast. Those at ties, corners and infinities are in tests/ops/test_singular_points.py."""

import numpy as np
import pytest

import minikeras as tf

inf, nan = np.inf, np.nan
M = tf.math


def gradients(function, *values, dtype="float64"):
    """The gradients of the sum of a function, as arrays."""
    tensors = [tf.constant(value, dtype) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = function(*tensors)
    return [g if g is None else g.numpy() for g in tape.gradient(y, tensors)]


BROADCASTING = {
    "+": (lambda a, b: a + b, lambda a, b: (1, 1)),
    "-": (lambda a, b: a - b, lambda a, b: (1, -1)),
    "*": (lambda a, b: a * b, lambda a, b: (b, a)),
    "/": (lambda a, b: a / b, lambda a, b: (1 / b, -a / b**2)),
    "**": (lambda a, b: a**b, lambda a, b: (b * a ** (b - 1), a**b * np.log(a))),
    "maximum": (tf.maximum, lambda a, b: (a >= b, a < b)),
    "minimum": (tf.minimum, lambda a, b: (a <= b, a > b)),
    "where": (lambda a, b: tf.where(a > b, a, b), lambda a, b: (a > b, a <= b)),
    "squared_difference": (M.squared_difference, lambda a, b: (2 * (a - b), 2 * (b - a))),
    "atan2": (tf.atan2, lambda a, b: (b / (a**2 + b**2), -a / (a**2 + b**2))),
}


@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3)), ((1, 3), (2, 3)), ((0, 3), (3,))], ids=str)
@pytest.mark.parametrize("name", BROADCASTING)
def test_gradients_are_summed_down_to_the_shape_of_each_operand(name, shapes):
    """T110."""
    function, partials = BROADCASTING[name]
    random = np.random.default_rng(0)
    a, b = (random.uniform(0.5, 2.0, shape) for shape in shapes)
    for x, found, partial in zip((a, b), gradients(function, a, b), partials(a, b), strict=True):
        whole = np.broadcast_to(partial, np.broadcast_shapes(a.shape, b.shape)).astype(float)
        extra = tuple(range(whole.ndim - x.ndim))
        kept = tuple(i for i, size in enumerate(whole.sum(extra).shape) if x.shape[i] == 1 and size != 1)
        np.testing.assert_allclose(found, whole.sum(extra).sum(kept, keepdims=True), rtol=1e-12)


def test_stacks_of_matrices_are_broadcast_too():
    """T110."""
    a, b = np.ones((4, 2, 3)), np.arange(15.0).reshape(3, 5)
    for_a, for_b = gradients(tf.matmul, a, b)
    np.testing.assert_array_equal(for_a, np.broadcast_to(b.sum(1), a.shape))
    np.testing.assert_array_equal(for_b, np.full(b.shape, 8.0))
