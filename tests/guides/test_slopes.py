"""Slopes: broadcasting undone, ties, corners, infinities and what stays stable far out."""

import numpy as np
import pytest

import minikeras as tf

inf, nan = np.inf, np.nan
M, N = tf.math, tf.nn


def gradients(function, *values, dtype="float64"):
    """The gradients of the sum of a function, as arrays."""
    tensors = [tf.constant(value, dtype) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = function(*tensors)
    return [g if g is None else g.numpy() for g in tape.gradient(y, tensors)]


def slope(function, value):
    return gradients(function, value)[0]


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


TIES = {
    "maximum": (lambda x: tf.maximum(x[0], x[1]), [2, 2], [1, 0]),
    "minimum": (lambda x: tf.minimum(x[0], x[1]), [2, 2], [1, 0]),
    "reduce_max": (tf.reduce_max, [2, 2, 1, 2], [1 / 3, 1 / 3, 0, 1 / 3]),
    "reduce_min": (tf.reduce_min, [2, 1, 1], [0, 0.5, 0.5]),
    "clip_by_value": (lambda x: tf.clip_by_value(x, -1.0, 1.0), [-1, 1, 2], [1, 1, 0]),
    "top_k": (lambda x: M.top_k(x, 2)[0], [1, 1, 1], [1, 1, 0]),
}


@pytest.mark.parametrize("name", TIES)
def test_a_tie_is_decided(name):
    """T111: the first one takes all, but a reduction shares; both edges of a range belong to it."""
    function, point, expected = TIES[name]
    np.testing.assert_allclose(slope(function, point), expected)


CORNERS = [
    ("relu", N.relu, 0.0, 0.0),
    ("leaky_relu", lambda x: N.leaky_relu(x, 0.3), 0.0, 0.3),
    ("elu", N.elu, 0.0, 1.0),
    ("selu", N.selu, 0.0, 1.0507009873554805),
    ("relu6 at 0", N.relu6, 0.0, 0.0),
    ("relu6 at 6", N.relu6, 6.0, 0.0),
    ("abs", tf.abs, 0.0, 0.0),
    ("sign", tf.sign, 0.0, 0.0),
]


@pytest.mark.parametrize(("function", "point", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CORNERS])
def test_a_corner_has_the_slope_of_one_side(function, point, expected):
    """T112."""
    assert slope(function, point) == pytest.approx(expected)


INFINITIES = [
    ("sqrt at 0", tf.sqrt, 0.0, inf),
    ("sqrt below", tf.sqrt, -1.0, nan),
    ("log", M.log, 0.0, inf),
    ("rsqrt", M.rsqrt, 0.0, -inf),
    ("reciprocal", M.reciprocal, 0.0, -inf),
    ("x ** 0.5 at 0", lambda x: x**0.5, 0.0, inf),
    ("x ** 0.5 below", lambda x: x**0.5, -1.0, nan),
    ("0 ** x", lambda x: 0.0**x, 2.0, 0.0),
    ("x ** 3", lambda x: x**3, -2.0, 12.0),
    ("a product with a zero", tf.reduce_prod, [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
    # Chosen otherwise than in TensorFlow, see docs/differences-from-tensorflow.md.
    ("the norm of zero", tf.norm, [0.0, 0.0], [0.0, 0.0]),
    ("the deviation of equal values", M.reduce_std, [2.0, 2.0], [0.0, 0.0]),
    ("x ** 0", lambda x: x**0.0, 0.0, 0.0),
    ("running products after a zero", M.cumprod, [0.0, 2.0, 3.0], [9.0, 0.0, 0.0]),
]


@pytest.mark.parametrize(("function", "point", "expected"), [pytest.param(*case[1:], id=case[0]) for case in INFINITIES])
def test_an_infinite_slope_is_infinite_and_a_convention_is_finite(function, point, expected):
    """T113."""
    np.testing.assert_array_equal(slope(function, point), expected)


SELECTED = [
    ("1 / x where x is not 0", lambda x: tf.where(x == 0.0, 0.0, 1.0 / x), 0.0, 0.0),
    ("the double where", lambda x: tf.where(x == 0.0, 0.0, 1.0 / tf.where(x == 0.0, 1.0, x)), 0.0, 0.0),
    ("sqrt where x is positive", lambda x: tf.where(x > 0.0, tf.sqrt(x), 0.0 * x), 0.0, 0.0),
    ("divide_no_nan", lambda x: M.divide_no_nan(3.0, x), 0.0, 0.0),
    ("multiply_no_nan", lambda x: M.multiply_no_nan(x, 0.0), inf, 0.0),
    ("xlogy in x", lambda x: M.xlogy(x, tf.constant(2.0, x.dtype)), 0.0, 0.0),
    ("xlogy in y", lambda y: M.xlogy(tf.constant(0.0, y.dtype), y), 0.0, 0.0),
    ("xlog1py in y", lambda y: M.xlog1py(tf.constant(0.0, y.dtype), y), -1.0, 0.0),
]


@pytest.mark.parametrize(("function", "point", "expected"), [pytest.param(*case[1:], id=case[0]) for case in SELECTED])
def test_a_branch_that_was_not_taken_and_a_masked_pole_add_nothing(function, point, expected):
    """T114: `where` selects; in TensorFlow it multiplies, and the double where is needed."""
    assert slope(function, point) == pytest.approx(expected)


def two_logits(loss):
    return lambda x: loss(tf.stack([x, -x]))


STABLE = [
    ("sigmoid", tf.sigmoid, (1000.0, 0.0), (-1000.0, 0.0)),
    ("softplus", N.softplus, (1000.0, 1.0), (-1000.0, 0.0)),
    ("log_sigmoid", M.log_sigmoid, (1000.0, 0.0), (-1000.0, 1.0)),
    ("log_softmax", two_logits(lambda z: N.log_softmax(z)[1]), (1000.0, -2.0), (-1000.0, 0.0)),
    ("reduce_logsumexp", two_logits(tf.reduce_logsumexp), (1000.0, 1.0), (-1000.0, -1.0)),
    (
        "sigmoid cross-entropy",
        lambda x: N.sigmoid_cross_entropy_with_logits(tf.zeros_like(x), x),
        (1000.0, 1.0),
        (-1000.0, 0.0),
    ),
    (
        "softmax cross-entropy",
        two_logits(lambda z: N.softmax_cross_entropy_with_logits(tf.constant([0.0, 1.0], z.dtype), z)),
        (1000.0, 2.0),
        (-1000.0, 0.0),
    ),
    (
        "sparse cross-entropy",
        two_logits(lambda z: N.sparse_softmax_cross_entropy_with_logits([1], z[None])[0]),
        (1000.0, 2.0),
        (-1000.0, 0.0),
    ),
]


@pytest.mark.parametrize(("function", "points"), [pytest.param(case[1], case[2:], id=case[0]) for case in STABLE])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_stable_has_a_true_slope_far_out(function, points, dtype):
    """T115."""
    for point, expected in points:
        (found,) = gradients(function, point, dtype=dtype)
        assert found == pytest.approx(expected, abs=1e-30)


def test_logsumexp_leaves_out_what_is_minus_infinity():
    """T115."""
    np.testing.assert_array_equal(slope(tf.reduce_logsumexp, [-inf, 2.0]), [0.0, 1.0])


def test_the_naive_formula_is_what_it_is():
    """T115: log(1 + exp(x)) overflows on the way, in float32 at 100 already; softplus does not."""
    naive = gradients(lambda x: M.log(1.0 + tf.exp(x)), 100.0, dtype="float32")[0]
    assert np.isnan(naive)
    assert gradients(N.softplus, 100.0, dtype="float32")[0] == 1.0
