"""Linear algebra of matrices that hold NaN or infinity: LAPACK reads past them, so nothing may look like a number."""

import numpy as np
import pytest
from in_one_test import in_one_test

import minikeras as tf

NAN = [[np.nan, 1.0], [1.0, 1.0]]
GOOD = [[2.0, 0.0], [0.0, 4.0]]
FACTORS = {
    "det": tf.linalg.det,
    "slogdet": tf.linalg.slogdet,
    "cholesky": tf.linalg.cholesky,
    "eigh": tf.linalg.eigh,
    "eigvalsh": tf.linalg.eigvalsh,
    "qr": lambda a: tf.linalg.qr(a)[1],
    "svd": lambda a: tf.linalg.svd(a),
    "singular values": lambda a: tf.linalg.svd(a, compute_uv=False),
    "pinv": tf.linalg.pinv,
    "norm": lambda a: tf.norm(a, ord=2, axis=[-2, -1]),
    "expm": tf.linalg.expm,
}


@in_one_test(dtype=["float32", "float64", "complex64"], place=[(0, 0), (1, 0), (1, 1)], name=FACTORS)
def test_of_a_matrix_with_nan_nothing_is_a_number(name, place, dtype):
    matrix = np.array(GOOD, dtype)
    matrix[place] = np.nan
    for part in tf.nest.flatten(FACTORS[name](tf.constant(matrix))):
        assert np.isnan(part.numpy()).any(), part


@pytest.mark.parametrize("name", FACTORS)
def test_in_a_stack_the_other_matrices_keep_their_results(name):
    alone = tf.nest.flatten(FACTORS[name](tf.constant([GOOD])))
    among = tf.nest.flatten(FACTORS[name](tf.constant([NAN, GOOD, NAN])))
    for one, several in zip(alone, among, strict=True):
        np.testing.assert_allclose(several.numpy()[1], one.numpy()[0], rtol=1e-6)
        assert np.isnan(several.numpy()[0]).any()
        assert np.isnan(several.numpy()[2]).any()


def test_a_determinant_may_be_infinite():
    assert tf.linalg.det([[np.inf, 0.0], [0.0, 1.0]]).numpy() == np.inf


@pytest.mark.parametrize("name", ["eigh", "svd", "singular values", "pinv", "expm"])
def test_of_a_matrix_with_infinity_neither(name):
    for part in tf.nest.flatten(FACTORS[name](tf.constant([[np.inf, 1.0], [1.0, 1.0]]))):
        assert np.isnan(part.numpy()).any()


def test_the_inverse_and_solutions_are_refused_as_for_any_matrix_without_one():
    for call in (lambda: tf.linalg.inv(NAN), lambda: tf.linalg.solve(NAN, [[1.0], [1.0]])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
            call()
