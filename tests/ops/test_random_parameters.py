"""Draws with parameters: moments, shapes, seeds, and gradients of gamma draws."""

import numpy as np
import pytest
from scipy import special

import minikeras as tf

R = tf.random


def test_moments_are_those_of_the_distributions():
    R.set_seed(1)
    alpha, beta = tf.constant([0.5, 3.0]), tf.constant([[1.0], [2.0]])
    x = R.gamma([20_000], alpha, beta)
    assert x.shape == (20_000, 2, 2) and x.dtype == "float32" and float(tf.reduce_min(x)) > 0
    np.testing.assert_allclose(tf.reduce_mean(x, 0), (alpha / beta).numpy(), rtol=0.05)
    np.testing.assert_allclose(tf.math.reduce_variance(x, 0), (alpha / beta**2).numpy(), rtol=0.1)
    counts = R.poisson([20_000], [0.5, 30.0], dtype="float64")
    np.testing.assert_allclose(tf.reduce_mean(counts, 0), [0.5, 30.0], rtol=0.05)
    np.testing.assert_allclose(tf.math.reduce_variance(counts, 0), [0.5, 30.0], rtol=0.1)


def test_the_same_seed_gives_the_same_numbers():
    for draw in (
        lambda: R.stateless_gamma([3, 2], [1, 2], [0.5, 1.5]),
        lambda: R.stateless_poisson([3, 2], [1, 2], [0.5, 15.0]),
        lambda: R.stateless_truncated_normal([5], [1, 2]),
        lambda: R.stateless_categorical([[0.0, 0.0, 0.0]], 9, [1, 2]),
        lambda: R.split([1, 2], 3),
        lambda: R.fold_in([1, 2], 3),
        lambda: R.Generator.from_seed(1).binomial([4, 2], [10.0, 20.0], [0.5, 0.1]),
        lambda: R.Generator.from_seed(1).truncated_normal([5]),
    ):
        np.testing.assert_array_equal(draw(), draw())
    assert R.split([1, 2], 3).shape == (3, 2) and len({tuple(pair) for pair in R.split([1, 2], 9).numpy().tolist()}) == 9
    assert not np.array_equal(R.fold_in([1, 2], 3), R.fold_in([1, 2], 4))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must end with"):
        R.stateless_gamma([3], [1, 2], [0.5, 1.5])


def test_gamma_draws_move_with_their_parameters_as_their_ranks_stay():
    alpha = tf.Variable(np.array([0.1, 0.5, 2.0, 30.0, 500.0]))
    beta = tf.Variable(np.array(2.0))
    with tf.GradientTape() as tape:
        x = R.stateless_gamma([50, 5], [3, 4], alpha, beta, "float64")
    by_alpha, by_beta = tape.gradient(x, [alpha, beta])
    a, z = alpha.numpy(), x.numpy() * 2.0
    rank = special.gammainc(a, z)
    expected = (special.gammaincinv(a * 1.0001, rank) - special.gammaincinv(a * 0.9999, rank)) / (2e-4 * a)
    np.testing.assert_allclose(by_alpha, expected.sum(0) / 2.0, rtol=1e-4)
    np.testing.assert_allclose(by_beta, -(z / 4.0).sum(), rtol=1e-12)


def test_second_derivatives_of_draws_are_refused():
    alpha = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            x = R.gamma([3], alpha)
        slope = tape.gradient(x, alpha)
    with pytest.raises(LookupError, match="gamma_slope"):
        outer.gradient(slope, alpha)


@pytest.mark.parametrize(
    ("draw", "what"),
    [
        (lambda: tf.random.gamma([2], -1.0), "alpha"),
        (lambda: tf.random.gamma([2], 1.0, dtype=tf.int32), "float"),
        (lambda: tf.random.poisson([2], [1.0, float("nan")]), "lam"),
    ],
)
def test_parameters_without_a_distribution_are_refused(draw, what):
    with pytest.raises(tf.errors.InvalidArgumentError, match=what):
        draw()
