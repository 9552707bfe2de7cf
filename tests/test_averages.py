"""`tf.train.ExponentialMovingAverage` follows its formula."""

import numpy as np
import pytest

import minikeras as tf


def test_averages_follow_the_formula_in_compiled_steps_too():
    v = tf.Variable([0.0, 2.0], dtype="float64", name="v")
    average = tf.train.ExponentialMovingAverage(0.5)
    assert average.average(v) is None
    average.apply([v])

    @tf.function
    def step(x):
        v.assign(x)
        average.apply([v])

    expected = np.array([0.0, 2.0])
    for value in ([1.0, 1.0], [3.0, 0.0], [2.0, 5.0]):
        step(tf.constant(value, "float64"))
        expected = 0.5 * expected + 0.5 * np.array(value)
        np.testing.assert_allclose(average.average(v), expected, rtol=1e-6)
    assert average.average_name(v) == "v/ExponentialMovingAverage" and average.average(v).name.startswith("v/")


def test_early_averages_forget_faster_with_num_updates():
    v, n = tf.Variable(0.0), tf.Variable(0.0)
    average = tf.train.ExponentialMovingAverage(0.99, num_updates=n)
    average.apply([v])
    v.assign(1.0)
    average.apply([v])
    np.testing.assert_allclose(average.average(v), 0.9)


def test_without_bias_the_first_average_is_the_first_value():
    v = tf.Variable(4.0)
    average = tf.train.ExponentialMovingAverage(0.9, zero_debias=True)
    average.apply([v])
    np.testing.assert_allclose(average.average(v), 4.0, rtol=1e-6)
    v.assign(0.0)
    average.apply([v])
    np.testing.assert_allclose(average.average(v), 4.0 * 0.09 / 0.19, rtol=1e-5)


def test_it_is_saved_with_a_checkpoint(tmp_path):
    def made():
        v = tf.Variable(1.0)
        average = tf.train.ExponentialMovingAverage(0.9)
        average.apply([v])
        return v, average

    v, average = made()
    v.assign(11.0)
    average.apply([v])
    path = tf.train.Checkpoint(v=v, average=average).save(tmp_path / "c")
    w, other = made()
    tf.train.Checkpoint(v=w, average=other).restore(path)
    assert other.average(w).numpy() == average.average(v).numpy() == pytest.approx(2.0)


def test_mistakes_are_answered():
    average = tf.train.ExponentialMovingAverage(0.9)
    with pytest.raises(ValueError, match="list of Variables"):
        average.apply()
    with pytest.raises(TypeError, match="Variables of floats"):
        average.apply([tf.Variable(1)])
