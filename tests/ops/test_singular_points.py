"""Values and slopes where functions are singular: at 0, at infinity, at kinks, at ties, and where exp overflows.

The choices are those of the design note on reliability, section 5, and T111 to T115 of the tape's specification. None
of these computations may warn: an infinity is a legitimate result.
"""

import math
import warnings

import numpy as np
import pytest
from derivatives.problems import second_derivative, slopes
from in_one_test import in_one_test
from scipy import special

import minikeras as tf

inf, nan, pi = math.inf, math.nan, math.pi
M, N, L = tf.math, tf.nn, tf.linalg

# function: (point, value, slope), ...
SCALARS = {
    "abs": (tf.abs, (0.0, 0, 0), (-0.0, 0, 0), (inf, inf, 1), (-inf, inf, -1)),
    "sign": (tf.sign, (0.0, 0, 0), (-0.0, 0, 0), (inf, 1, 0), (-inf, -1, 0)),
    "square": (tf.square, (0.0, 0, 0), (inf, inf, inf), (-inf, inf, -inf)),
    "sqrt": (tf.sqrt, (0.0, 0, inf), (inf, inf, 0), (-1.0, nan, nan), (-inf, nan, nan)),
    "rsqrt": (M.rsqrt, (0.0, inf, -inf), (inf, 0, 0), (-1.0, nan, nan)),
    "reciprocal": (M.reciprocal, (0.0, inf, -inf), (-0.0, -inf, -inf), (inf, 0, 0), (-inf, 0, 0)),
    "exp": (tf.exp, (0.0, 1, 1), (inf, inf, inf), (-inf, 0, 0), (1000.0, inf, inf), (-1000.0, 0, 0)),
    "expm1": (M.expm1, (0.0, 0, 1), (inf, inf, inf), (-inf, -1, 0), (1e-20, 1e-20, 1)),
    "log": (M.log, (0.0, -inf, inf), (inf, inf, 0), (1.0, 0, 1)),
    "log1p": (M.log1p, (-1.0, -inf, inf), (inf, inf, 0), (1e-20, 1e-20, 1)),
    "sigmoid": (tf.sigmoid, (0.0, 0.5, 0.25), (inf, 1, 0), (-inf, 0, 0), (1000.0, 1, 0), (-1000.0, 0, 0)),
    "log_sigmoid": (M.log_sigmoid, (inf, 0, 0), (-inf, -inf, 1), (1000.0, 0, 0), (-1000.0, -1000, 1)),
    "softplus": (M.softplus, (inf, inf, 1), (-inf, 0, 0), (1000.0, 1000, 1), (-1000.0, 0, 0), (0.0, math.log(2), 0.5)),
    "sin": (tf.sin, (0.0, 0, 1), (inf, nan, nan), (-inf, nan, nan)),
    "cos": (tf.cos, (0.0, 1, 0), (inf, nan, nan)),
    "tan": (tf.tan, (0.0, 0, 1), (inf, nan, nan)),
    "asin": (tf.asin, (1.0, pi / 2, inf), (-1.0, -pi / 2, inf), (2.0, nan, nan), (inf, nan, nan)),
    "acos": (tf.acos, (1.0, 0, -inf), (-1.0, pi, -inf), (2.0, nan, nan)),
    "atan": (tf.atan, (0.0, 0, 1), (inf, pi / 2, 0), (-inf, -pi / 2, 0)),
    "sinh": (tf.sinh, (0.0, 0, 1), (inf, inf, inf), (1000.0, inf, inf), (-1000.0, -inf, inf)),
    "cosh": (tf.cosh, (0.0, 1, 0), (inf, inf, inf), (-1000.0, inf, -inf)),
    "tanh": (tf.tanh, (0.0, 0, 1), (inf, 1, 0), (-inf, -1, 0), (1000.0, 1, 0)),
    "asinh": (tf.asinh, (0.0, 0, 1), (inf, inf, 0), (-inf, -inf, 0)),
    "acosh": (tf.acosh, (1.0, 0, inf), (inf, inf, 0), (0.5, nan, nan)),
    "atanh": (tf.atanh, (0.0, 0, 1), (1.0, inf, inf), (-1.0, -inf, inf)),
    "erf": (M.erf, (0.0, 0, 2 / math.sqrt(pi)), (inf, 1, 0), (-inf, -1, 0), (30.0, 1, 0)),
    "erfc": (M.erfc, (0.0, 1, -2 / math.sqrt(pi)), (inf, 0, 0), (-inf, 2, 0), (-30.0, 2, 0)),
    "relu": (N.relu, (0.0, 0, 0), (-0.0, 0, 0), (inf, inf, 1), (-inf, 0, 0)),
    "relu6": (N.relu6, (0.0, 0, 0), (6.0, 6, 0), (inf, 6, 0), (-inf, 0, 0)),
    "leaky_relu": (N.leaky_relu, (0.0, 0, 0.2), (inf, inf, 1), (-inf, -inf, 0.2)),
    "leaky_relu with another slope": (lambda x: N.leaky_relu(x, 0.3), (0.0, 0, 0.3)),
    "elu": (N.elu, (0.0, 0, 1), (inf, inf, 1), (-inf, -1, 0)),
    "elu with another scale": (lambda x: N.elu(x, 2.0), (0.0, 0, 1), (-inf, -2, 0)),
    "selu": (N.selu, (0.0, 0, 1.0507009873554805), (-inf, -1.7580993408473766, 0)),
    "gelu": (N.gelu, (0.0, 0, 0.5), (40.0, 40, 1), (-40.0, 0, 0)),
    "gelu, approximate": (lambda x: N.gelu(x, True), (0.0, 0, 0.5), (1000.0, 1000, 1), (-1000.0, 0, 0)),
    "silu": (N.silu, (0.0, 0, 0.5), (1000.0, 1000, 1), (-1000.0, 0, 0)),
    "softsign": (N.softsign, (0.0, 0, 1), (1e30, 1, 0)),
    "identity": (tf.identity, (inf, inf, 1), (nan, nan, 1)),
    "negative": (tf.negative, (inf, -inf, -1), (-0.0, 0, -1)),
    "x ** 0": (lambda x: x**0.0, (0.0, 1, 0), (-2.0, 1, 0), (inf, 1, 0)),
    "x ** 0, the exponent a tensor": (lambda x: tf.pow(x, tf.zeros([], x.dtype)), (0.0, 1, 0)),
    "x ** 1": (lambda x: x**1.0, (0.0, 0, 1)),
    "x ** 2": (lambda x: x**2, (0.0, 0, 0), (-3.0, 9, -6)),
    "x ** 3": (lambda x: x**3, (0.0, 0, 0), (-2.0, -8, 12)),
    "x ** 0.5": (lambda x: x**0.5, (0.0, 0, inf), (-1.0, nan, nan)),
    "x ** -1": (lambda x: x**-1.0, (0.0, inf, -inf), (inf, 0, 0)),
    "0 ** x": (lambda x: 0.0**x, (2.0, 0, 0), (0.0, 1, 0)),
    "1 / x": (lambda x: 1.0 / x, (0.0, inf, -inf), (inf, 0, 0)),
    "0 / x": (lambda x: 0.0 / x, (0.0, nan, nan)),
    "divide_no_nan": (lambda x: M.divide_no_nan(1.0, x), (0.0, 0, 0), (inf, 0, 0)),
    "divide_no_nan, numerator": (lambda x: M.divide_no_nan(x, tf.zeros([], x.dtype)), (2.0, 0, 0)),
    "multiply_no_nan, by zero": (lambda x: M.multiply_no_nan(x, 0.0), (inf, 0, 0), (nan, 0, 0)),
    "xlogy in x": (lambda x: M.xlogy(x, tf.zeros([], x.dtype)), (0.0, 0, 0), (2.0, -inf, -inf)),
    "xlogy in x, of two": (lambda x: M.xlogy(x, 2.0 * tf.ones([], x.dtype)), (0.0, 0, 0)),
    "xlogy in y": (lambda y: M.xlogy(tf.zeros([], y.dtype), y), (0.0, 0, 0), (-1.0, 0, 0)),
    "xlog1py in y": (lambda y: M.xlog1py(tf.zeros([], y.dtype), y), (-1.0, 0, 0)),
    "xdivy in y": (lambda y: M.xdivy(tf.zeros([], y.dtype), y), (0.0, 0, 0)),
    "atan2 in y": (lambda y: tf.atan2(y, tf.zeros([], y.dtype)), (0.0, 0, 0), (2.0, pi / 2, 0)),
    "atan2 in x": (lambda x: tf.atan2(tf.zeros([], x.dtype), x), (0.0, 0, 0), (-1.0, pi, 0)),
    "maximum, first": (lambda x: tf.maximum(x, 0.0), (0.0, 0, 1), (inf, inf, 1), (-inf, 0, 0)),
    "maximum, second": (lambda x: tf.maximum(0.0, x), (0.0, 0, 0), (inf, inf, 1)),
    "minimum, first": (lambda x: tf.minimum(x, 0.0), (0.0, 0, 1), (-inf, -inf, 1), (inf, 0, 0)),
    "minimum, second": (lambda x: tf.minimum(0.0, x), (0.0, 0, 0), (-inf, -inf, 1)),
    "clip_by_value": (lambda x: tf.clip_by_value(x, -1.0, 1.0), (-1.0, -1, 1), (1.0, 1, 1), (inf, 1, 0), (-inf, -1, 0)),
    "log where positive": (lambda x: tf.where(x > 0, M.log(x), 0.0), (0.0, 0, 0), (-1.0, 0, 0)),
    "sqrt where positive": (lambda x: tf.where(x > 0, tf.sqrt(x), 0.0 * x), (0.0, 0, 0), (-1.0, 0, 0)),
    "1 / x where not zero": (lambda x: tf.where(x == 0, 0.0, 1.0 / x), (0.0, 0, 0)),
    "1 / x by the double where": (lambda x: tf.where(x == 0, 0.0, 1.0 / tf.where(x == 0, 1.0, x)), (0.0, 0, 0)),
    "the naive softplus": (lambda x: M.log(1.0 + tf.exp(x)), (1000.0, inf, nan)),
    "floormod": (lambda x: M.floormod(x, 3.0), (0.0, 0, 1), (-1.0, 2, 1)),
    "angle": (M.angle, (0.0, 0, 0), (-1.0, pi, 0)),
    "cast through float16": (lambda x: tf.cast(tf.cast(x, "float16"), x.dtype), (1e30, inf, 1)),
}


def scalar_points():
    for name, (function, *points) in SCALARS.items():
        for point, value, slope in points:
            yield pytest.param(function, point, value, slope, id=f"{name} at {point}")


def value_and_gradient(function, x):
    """Both as arrays, with every warning an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return y.numpy(), tape.gradient(y, x).numpy()


@in_one_test(dtype=["float64", "float32"])
@pytest.mark.parametrize(("function", "point", "value", "slope"), list(scalar_points()))
def test_a_singular_point_has_the_chosen_value_and_slope(function, point, value, slope, dtype):
    found = value_and_gradient(function, tf.constant(point, dtype))
    np.testing.assert_allclose(found, (value, slope), rtol=1e-6, atol=1e-9)


UNARY = {name: entry[0] for name, entry in SCALARS.items() if entry[0] in vars(M).values() or entry[0] in vars(N).values()}


@pytest.mark.parametrize("name", UNARY)
def test_nan_stays_nan(name):
    value, _ = value_and_gradient(UNARY[name], tf.constant(nan))
    assert np.isnan(value)


# vector function, input, value, gradient of the sum of the result
VECTORS = [
    ("the norm of zero has the subgradient zero", tf.norm, [0, 0], 0, [0, 0]),
    ("the norm of order one of zero", lambda x: tf.norm(x, ord=1), [0, 0], 0, [0, 0]),
    ("the norm of order three of zero", lambda x: tf.norm(x, ord=3), [0, 0], 0, [0, 0]),
    (
        "the norm of order three along rows, one of them zero",
        lambda x: tf.norm(x, ord=3, axis=1),
        [[0, 0], [2, 0]],
        [0, 2],
        [[0, 0], [1, 0]],
    ),
    ("the Euclidean norm of zero", M.reduce_euclidean_norm, [0, 0], 0, [0, 0]),
    ("the global norm of zeros", lambda x: L.global_norm([x, x]), [0, 0], 0, [0, 0]),
    ("the standard deviation of equal values", M.reduce_std, [3, 3, 3], 0, [0, 0, 0]),
    ("the standard deviation of one value", M.reduce_std, [3], 0, [0]),
    ("the variance of equal values", M.reduce_variance, [3, 3], 0, [0, 0]),
    ("the zero vector, normalized", M.l2_normalize, [0, 0], [0, 0], [1e6, 1e6]),
    ("the zero vector, clipped", lambda x: tf.clip_by_norm(x, 0.5), [0, 0], [0, 0], [1, 1]),
    ("zeros, clipped by global norm", lambda x: tf.clip_by_global_norm([x], 0.5)[0][0], [0, 0], [0, 0], [1, 1]),
    ("logsumexp of nothing but minus infinity", tf.reduce_logsumexp, [-inf, -inf], -inf, [0, 0]),
    ("logsumexp with one minus infinity", tf.reduce_logsumexp, [-inf, 2], 2, [0, 1]),
    ("logsumexp of large numbers", tf.reduce_logsumexp, [1000, 1000], 1000 + math.log(2), [0.5, 0.5]),
    ("logsumexp of small numbers", tf.reduce_logsumexp, [-1000, -1000], -1000 + math.log(2), [0.5, 0.5]),
    ("logsumexp of a large and a small number", tf.reduce_logsumexp, [1000, -1000], 1000, [1, 0]),
    ("logsumexp with infinity", tf.reduce_logsumexp, [inf, 2], inf, [nan, nan]),
    ("the maximum at a tie is shared", tf.reduce_max, [2, 2, 1], 2, [0.5, 0.5, 0]),
    ("the minimum at a tie is shared", tf.reduce_min, [1, 2, 1], 1, [0.5, 0, 0.5]),
    ("the maximum of infinities", tf.reduce_max, [inf, inf], inf, [0.5, 0.5]),
    ("a product with one zero", tf.reduce_prod, [0, 2, 3], 0, [6, 0, 0]),
    ("a product with two zeros", tf.reduce_prod, [0, 0, 3], 0, [0, 0, 0]),
    ("running products after a zero", M.cumprod, [0, 2, 3], [0, 0, 0], [9, 0, 0]),
    ("the two largest at a tie: the first ones", lambda x: M.top_k(x, 2)[0], [1, 1, 1], [1, 1], [1, 1, 0]),
    ("sorting keeps the order of equals", lambda x: tf.sort(x)[0], [1, 1], 1, [1, 0]),
    ("softmax of large numbers", lambda x: N.softmax(x)[0], [1000, 0], 1, [0, 0]),
    ("softmax with minus infinity", lambda x: N.softmax(x)[1], [-inf, 0], 1, [0, 0]),
    ("log_softmax of large numbers", lambda x: N.log_softmax(x)[1], [1000, 0], -1000, [-1, 1]),
    ("log_softmax with minus infinity", lambda x: N.log_softmax(x)[1], [-inf, 0], 0, [0, 0]),
    (
        "cross-entropy of a sure and right answer",
        lambda x: N.softmax_cross_entropy_with_logits([1.0, 0.0], x),
        [1000, -1000],
        0,
        [0, 0],
    ),
    (
        "cross-entropy of a sure and wrong answer",
        lambda x: N.softmax_cross_entropy_with_logits([0.0, 1.0], x),
        [1000, -1000],
        2000,
        [1, -1],
    ),
    (
        "cross-entropy with an impossible class",
        lambda x: N.softmax_cross_entropy_with_logits([0.0, 1.0], x),
        [-inf, 0],
        0,
        [0, 0],
    ),
    (
        "sparse cross-entropy of a wrong answer",
        lambda x: N.sparse_softmax_cross_entropy_with_logits([1], x),
        [[1000, -1000]],
        [2000],
        [[1, -1]],
    ),
    (
        "sigmoid cross-entropy at both ends",
        lambda x: N.sigmoid_cross_entropy_with_logits([0.0, 0.0], x),
        [1000, -1000],
        [1000, 0],
        [1, 0],
    ),
    ("the diagonal of a matrix may be infinite", L.diag, [inf, 1], [[inf, 0], [0, 1]], [1, 1]),
    (
        "an infinite diagonal is replaced",
        lambda x: L.set_diag(x, [1.0, 1.0]),
        [[inf, 2], [3, nan]],
        [[1, 2], [3, 1]],
        [[0, 1], [1, 0]],
    ),
    ("the sum of nothing", tf.reduce_sum, [], 0, []),
    ("the product of nothing", tf.reduce_prod, [], 1, []),
    ("the maximum of nothing", tf.reduce_max, [], -inf, []),
    ("the minimum of nothing", tf.reduce_min, [], inf, []),
    ("logsumexp of nothing", tf.reduce_logsumexp, [], -inf, []),
    ("the maximum of rows without elements", lambda x: tf.reduce_max(x, 1), [[], []], [-inf, -inf], [[], []]),
    ("the maximum of no rows", tf.reduce_max, np.zeros((0, 3)), -inf, np.zeros((0, 3))),
    (
        "the maximum along no axis of nothing",
        lambda x: tf.reduce_max(x, []),
        np.zeros((0, 3)),
        np.zeros((0, 3)),
        np.zeros((0, 3)),
    ),
    ("the norm of nothing", tf.norm, [], 0, []),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("function", "point", "value", "gradient"), [pytest.param(*case[1:], id=case[0]) for case in VECTORS])
def test_a_singular_vector_has_the_chosen_value_and_gradient(function, point, value, gradient, dtype):
    found_value, found_gradient = value_and_gradient(function, tf.constant(np.array(point, dtype)))
    np.testing.assert_allclose(found_value, value, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found_gradient, gradient, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("function", "point"),
    [
        (tf.sqrt, 0.0),
        (M.rsqrt, 0.0),
        (M.log, 0.0),
        (M.log1p, -1.0),
        (M.reciprocal, 0.0),
        (tf.asin, 1.0),
        (tf.acos, 1.0),
        (tf.acosh, 1.0),
        (tf.atanh, 1.0),
        (lambda x: x**0.5, 0.0),
        (lambda x: 1.0 / x, 0.0),
        (lambda x: M.xlogy(tf.ones([], x.dtype), x), 0.0),
        (lambda x: M.xdivy(tf.ones([], x.dtype), x), 0.0),
    ],
)
def test_a_branch_that_was_not_taken_adds_nothing_even_where_its_slope_is_infinite(function, point):
    value, slope = value_and_gradient(lambda x: tf.where(x > 2.0, function(x), 3.0 * x), tf.constant(point))
    assert (float(value), float(slope)) == (3.0 * point, 3.0)


def test_second_derivatives_at_the_origin_are_finite_where_the_first_ones_were_chosen():
    for function in (lambda x: tf.norm(x) ** 2, lambda x: tf.reduce_logsumexp(x), lambda x: tf.reduce_prod(x)):
        assert np.isfinite(slopes(function, [0.0, 0.0])[1]).all()


def test_the_square_of_a_norm_has_its_second_derivative_where_it_is_written_without_the_norm():
    x = tf.constant([0.0, 0.0])
    np.testing.assert_array_equal(second_derivative(lambda x: tf.reduce_sum(tf.square(x)), x), 2 * np.eye(2))
    np.testing.assert_array_equal(second_derivative(lambda x: tf.norm(x) ** 2, x), np.zeros((2, 2)))  # as the guide says


# Determinants of singular matrices ------------------------------------------------------------------------------------


def cofactors_of(a):
    n = len(a)
    rest = [[k for k in range(n) if k != i] for i in range(n)]
    return np.array([[(-1.0) ** (i + j) * np.linalg.det(a[np.ix_(rest[i], rest[j])]) for j in range(n)] for i in range(n)])


MATRICES = {
    "regular": [[2.0, 1, 0], [0.5, 3, 1], [1, 0, 1]],
    "of rank 2": [[1.0, 2, 3], [4, 5, 6], [7, 8, 9]],
    "of rank 1": [[1.0, 2, 3], [2, 4, 6], [3, 6, 9]],
    "of zeros": np.zeros((3, 3)),
    "nearly singular": np.ones((3, 3)) + 1e-14 * np.eye(3),
    "of rank 3 of 4": np.diag([1.0, -2.0, 0.0, 3.0]) + np.eye(4, k=1),
    "of rank 2 of 4": np.diag([1.0, -2.0, 0.0, 0.0]),
    "one by one": [[0.0]],
    "two by two": [[1.0, 2], [2, 4]],
}


@pytest.mark.parametrize("name", MATRICES)
def test_the_gradient_of_a_determinant_are_the_cofactors_of_any_matrix(name):
    a = np.array(MATRICES[name], "float64")
    x = tf.constant(a)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.linalg.det(x)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), cofactors_of(a), atol=1e-12)
    step, flat = 1e-4, []
    for i in np.ndindex(a.shape):  # cofactors are polynomials: differences are exact up to rounding
        e = np.zeros_like(a)
        e[i] = step
        flat.append(((cofactors_of(a + e) - cofactors_of(a - e)) / (2 * step)).reshape(-1))
    np.testing.assert_allclose(second_derivative(tf.linalg.det, x), np.array(flat).T, atol=1e-6)


def test_a_stack_may_hold_a_singular_matrix_and_complex_ones_have_cofactors_too():
    stack = tf.Variable(np.stack([np.eye(2) * 2, np.zeros((2, 2)), np.ones((2, 2))]))
    compiled = tf.function(lambda: gradient_of_det(stack))
    for found in (gradient_of_det(stack), compiled(), compiled(), compiled()):
        np.testing.assert_allclose(found.numpy(), [[[2, 0], [0, 2]], [[0, 0], [0, 0]], [[1, -1], [-1, 1]]], atol=1e-15)
    singular = tf.Variable(np.array([[1j, 2.0], [2j, 4.0]]))
    np.testing.assert_allclose(gradient_of_det(singular).numpy(), np.conj([[4, -2j], [-2, 1j]]), atol=1e-12)
    with tf.GradientTape() as tape:
        y = tf.linalg.slogdet(stack)[1]
    with pytest.raises((tf.errors.InvalidArgumentError, np.linalg.LinAlgError), match="[Ss]ingular"):
        tape.gradient(y, stack)


def gradient_of_det(x):
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.linalg.det(x))
    return tape.gradient(y, x)


# Accuracy -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [7, 100, 10_001])
@pytest.mark.parametrize("mean", [1e4, 1e6, -1e6])
def test_float32_variance_is_accurate_at_a_large_mean(mean, size):
    x = (np.random.default_rng(0).normal(size=size) + mean).astype("float32")
    exact = x.astype("float64").var()
    assert abs(float(M.reduce_variance(x)) / exact - 1) < 1e-5
    assert abs(float(M.reduce_std(x)) / np.sqrt(exact) - 1) < 1e-5
    _, gradient = value_and_gradient(M.reduce_variance, tf.constant(x))
    expected = 2 * (x.astype("float64") - x.astype("float64").mean()) / x.size
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())


def test_the_mean_of_many_ones_is_one():
    assert float(tf.reduce_mean(tf.ones([2**24 + 1]))) == 1.0


TAILS = {
    "erf": (M.erf, special.erf, [1e-300, 1e-8, 0.1, 0.4687, 0.4688, 1.0, 3.999, 4.001, 5.9]),
    "erfc": (M.erfc, special.erfc, [-5.0, 0.1, 0.4688, 1.0, 4.001, 10.0, 25.0]),
    "softplus": (M.softplus, lambda x: -special.log_expit(-x), [-700.0, -40.0, -1e-8, 40.0, 700.0]),
    "log_sigmoid": (M.log_sigmoid, special.log_expit, [-700.0, -40.0, 40.0, 700.0]),
    "sigmoid": (tf.sigmoid, special.expit, [-700.0, -40.0, 1e-8, 40.0]),
    "expm1": (M.expm1, special.expm1, [1e-300, 1e-12, -1e-12, 5.0]),
    "log1p": (M.log1p, special.log1p, [1e-300, 1e-12, -1e-12, 5.0]),
    "gelu": (N.gelu, lambda x: x * special.ndtr(x), [-30.0, -8.0, -1e-8, 8.0]),
    "xlog1py": (lambda x: M.xlog1py(2.0, x), lambda x: special.xlog1py(2.0, x), [1e-15, 1e-8]),
}


@pytest.mark.parametrize("name", TAILS)
def test_tails_keep_their_relative_accuracy(name):
    function, reference, points = TAILS[name]
    found = function(tf.constant(np.array(points))).numpy()
    np.testing.assert_allclose(found, reference(np.array(points)), rtol=1e-13)


def test_float32_logits_give_losses_within_float32_accuracy_of_float64():
    logits = np.random.default_rng(1).normal(size=(50, 7)) * 30
    labels = np.arange(50) % 7
    exact = -special.log_softmax(logits.astype("float32").astype("float64"), -1)[np.arange(50), labels]
    found = N.sparse_softmax_cross_entropy_with_logits(labels, tf.constant(logits, "float32")).numpy()
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", [L.cholesky, L.eigvalsh, lambda a: L.eigh(a)[1] ** 2])
def test_gradients_of_symmetric_factorizations_are_symmetric(function):
    """One triangle is read, but the matrix is meant: both halves share the gradient."""
    a = tf.constant(np.array([[2.0, 0.5, 0.1], [0.5, 3.0, 0.2], [0.1, 0.2, 5.0]]))
    weights = np.random.default_rng(0).normal(size=function(a).shape)
    _, gradient = value_and_gradient(lambda a: tf.reduce_sum(function(a) * weights), a)
    np.testing.assert_allclose(gradient, gradient.T, rtol=1e-12, atol=1e-15)
