"""Dtypes of results and gradients: integers stay integers, no gradient goes through them, float16 stays float16."""

import laws
import numpy as np
import pytest
from in_one_test import in_one_test
from specimens import SMOOTH, SPECIMENS

import minikeras as tf

INTEGER_FUNCTIONS = {
    "add": (lambda x: tf.add(x, x), lambda a: a + a),
    "multiply": (lambda x: tf.multiply(x, 2), lambda a: a * 2),
    "pow": (lambda x: x**2, lambda a: a**2),
    "abs": (tf.abs, np.abs),
    "sign": (tf.sign, np.sign),
    "square": (tf.square, np.square),
    "maximum": (lambda x: tf.maximum(x, 0), lambda a: np.maximum(a, 0)),
    "relu": (tf.nn.relu, lambda a: np.maximum(a, 0)),
    "reduce_sum": (tf.reduce_sum, np.sum),
    "reduce_prod": (tf.reduce_prod, np.prod),
    "reduce_max": (tf.reduce_max, np.max),
    "reduce_mean, truncated toward zero": (lambda x: tf.reduce_mean(x, 1), lambda a: np.trunc(a.mean(1))),
    "cumsum": (tf.cumsum, lambda a: a.cumsum(0)),
    "cumprod": (tf.math.cumprod, lambda a: a.cumprod(0)),
    "sort": (tf.sort, np.sort),
    "matmul": (lambda x: tf.matmul(x, x, transpose_b=True), lambda a: a @ a.T),
    "einsum": (lambda x: tf.einsum("ij->j", x), lambda a: a.sum(0)),
    "where": (lambda x: tf.where(x > 0, x, 0), lambda a: np.where(a > 0, a, 0)),
    "pad": (
        lambda x: tf.pad(x, [[1, 0], [0, 1]], constant_values=9),
        lambda a: np.pad(a, [(1, 0), (0, 1)], constant_values=9),
    ),
    "diag": (lambda x: tf.linalg.diag(x[0]), lambda a: np.diag(a[0])),
    "set_diag": (lambda x: tf.linalg.set_diag(x[:, :2], [8, 8]), lambda a: np.array([[8, 2], [-4, 8]])),
}


@in_one_test(dtype=["int32", "int64"], name=INTEGER_FUNCTIONS)
def test_integers_stay_integers(name, dtype):
    function, reference = INTEGER_FUNCTIONS[name]
    values = np.array([[-3, 2, 2], [-4, -5, 1]], dtype)
    result = function(tf.constant(values))
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.numpy(), reference(values))


@pytest.mark.parametrize(
    "path",
    [
        lambda x: tf.cast(tf.cast(x, "int32"), "float32"),
        lambda x: tf.cast(x > 0, "float32"),
        lambda x: tf.gather([1.0, 2.0, 3.0], tf.cast(x, "int32")),
        lambda x: tf.one_hot(tf.cast(x, "int32"), 3),
        lambda x: tf.cast(tf.argmax(x), "float32"),
        tf.round,
        tf.stop_gradient,
    ],
)
def test_no_gradient_flows_through_integers_and_steps(path):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = path(x)
    assert tape.gradient(y, x) is None


# What NumPy's linear algebra and complex numbers lack in half precision.
FLOAT32_AT_LEAST = (
    "linalg",
    "eig",
    "logm",
    "sqrtm",
    "lu square",
    "lu tall",
    "lu wide",
    "lu_",
    "solve",
    "inv",
    "det",
    "cofactors",
    "cholesky",
    "lstsq",
    "pinv",
    "qr",
    "svd",
    "eigh",
    "eigvals",
    "order two",
)
HALF = [s for s in SMOOTH if s.float32 and s.sample()[0].dtype.kind != "c" and "complex" not in s.name]
HALF = [s for s in HALF if not any(word in s.name for word in FLOAT32_AT_LEAST)]


@in_one_test(specimen=HALF)
def test_float16_stays_float16(specimen):
    arrays = specimen.sample("float16")
    seeds = laws.cotangents(specimen, arrays)
    floats = {y.dtype.name for y in laws.values(specimen, arrays) if y.dtype.kind == "f"}
    if not floats:
        pytest.skip("there are no complex numbers of 16-bit parts")
    assert floats == {"float16"}
    assert {g.dtype.name for g in laws.vjp(specimen, arrays, seeds)} == {"float16"}


@in_one_test(
    dtype=["float16", "bfloat16", "float32", "float64", "complex64"],
    specimen=[s for s in SPECIMENS if s.elementwise and len(s.inputs) == 2],
)
def test_a_number_takes_the_dtype_of_the_tensor_beside_it(specimen, dtype):
    one = tf.cast([1.0], dtype)
    try:
        expected = specimen.call(one, one).dtype
    except tf.errors.InvalidArgumentError:
        pytest.skip("not for this dtype")
    assert specimen.call(one, 1.0).dtype == specimen.call(1.0, one).dtype == expected
    assert specimen.call(tf.Variable(one), 1.0).dtype == specimen.call(tf.Variable(one[0]), 1).dtype == expected
