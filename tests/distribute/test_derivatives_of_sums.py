"""Derivatives of sums over ranks."""

import numpy as np
import pytest
import trained

import minikeras as tf
from minikeras.distribute.parts import BatchPart
from minikeras.ranks import computing_on, rows_here


def on_ranks(size, function):
    return trained.on_ranks(size, lambda: function(tf.distribute.rank()))


def test_the_gradient_of_a_sum_is_the_sum_of_the_gradients():
    def work(rank):
        x = tf.Variable(float(rank + 1))
        with tf.GradientTape() as tape:
            y = tf.distribute.all_reduce(x * x) * float(rank + 1)
        return float(tape.gradient(y, x))

    assert on_ranks(3, work) == [2 * 6.0, 4 * 6.0, 6 * 6.0]


def test_the_gradient_of_a_mean_is_the_mean():
    def work(rank):
        x = tf.Variable(float(rank))
        with tf.GradientTape() as tape:
            y = tf.distribute.all_reduce(x, "mean") * float(rank)
        return float(tape.gradient(y, x))

    assert on_ranks(4, work) == [1.5] * 4


def test_the_largest_has_no_gradient():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.distribute.all_reduce(x, "max")
    assert tape.gradient(y, x) is None


def test_second_derivatives_and_tangents_pass_through_sums():
    """y is the cube of a sum, so its second derivative is 6 of these for each pair, and there are as many y as ranks."""

    def work(rank):
        x = tf.Variable(float(rank + 1))
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = tf.distribute.all_reduce(x) ** 3
            first = inner.gradient(y, x)
        second = outer.gradient(first, x)
        with tf.autodiff.ForwardAccumulator(x, tf.constant(float(rank))) as accumulator:
            y = tf.distribute.all_reduce(x) ** 3
        return float(first), float(second), float(accumulator.jvp(y))

    for first, second, moved in on_ranks(2, work):
        assert (first, second, moved) == (2 * 27.0, 2 * 2 * 18.0, 27.0)


def test_stacks_of_values_are_reduced_at_once():
    def work(rank):
        x = tf.Variable([1.0, 2.0])
        with tf.GradientTape() as tape:
            y = tf.distribute.all_reduce(x * float(rank + 1))
        return tape.jacobian(y, x).numpy().tolist()

    assert on_ranks(2, work) == [[[2.0, 0.0], [0.0, 2.0]], [[4.0, 0.0], [0.0, 4.0]]]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_gradients_on_parts_of_unequal_size_enter_a_mean_weighted_by_rows(compiled):
    """The variance over a batch, of which each rank knows some rows."""
    x = np.random.default_rng(0).normal(size=(7, 2))

    def variance(part, scale):
        rows = tf.constant(x[part.start : part.stop]) * scale
        total = rows_here().sums([tf.reduce_sum(rows, 0)])[0]
        return tf.reduce_mean(tf.square(rows - total / 7.0) * tf.square(rows))

    def work(rank):
        part, scale = tf.distribute.rows_of(7), tf.Variable(1.5, dtype="float64")

        def step():
            with tf.GradientTape() as tape:
                value = variance(part, scale)
            return value, tape.gradient(value, scale)

        step = tf.function(step) if compiled else step
        with computing_on(BatchPart(part.start, len(part), 7)):
            for _ in range(4):
                found = step()
        return len(part), np.array([float(one) for one in found])

    (rows, expected), *_ = on_ranks(1, work)
    assert rows == 7
    for size in (2, 3):
        found = sum(rows / 7 * values for rows, values in on_ranks(size, work))
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_step_is_recorded_for_each_part():
    """The same function on other rows: what was recorded for some of them is not repeated for others."""
    loss = tf.keras.losses.MeanSquaredError(reduction="sum")
    step = tf.function(lambda x: loss(tf.zeros([2, 1]), x))
    x = tf.ones([2, 1])
    for total in (2, 4, 2, 4, 8, None, 2):
        with computing_on(None if total is None else BatchPart(0, 2, total)):
            assert float(step(x)) == (total or 2)
