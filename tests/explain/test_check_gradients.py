"""Numeric checks of gradients: what is right passes, what is wrong is named."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.core import elementwise


def test_functions_of_one_and_of_several_arguments():
    check = tf.test.check_gradients(lambda a, b: tf.linalg.matmul(tf.tanh(a), b), [np.ones((2, 3)) * 0.3, np.ones((3, 2))])
    assert check.elements == 12 and check.first < 1e-9 and check.second < 1e-9
    assert str(check).startswith("12 elements agree")
    assert tf.test.check_gradients(tf.sin, np.float32(0.5), order=1).second is None


def test_several_results_and_integer_arguments():
    labels = tf.constant([0, 1])
    check = tf.test.check_gradients(lambda x, y: (tf.gather(x, y) ** 2, tf.exp(x), y), [[0.3, 0.4], labels])
    assert check.elements == 2


def test_a_model_with_respect_to_its_input_and_its_variables():
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, activation="tanh"), tf.keras.layers.Dense(2)])
    check = tf.test.check_gradients(model, np.linspace(-1, 1, 8).reshape(2, 4))
    assert check.elements == 8 + 15 + 8 and check.second < 1e-8
    assert {variable.dtype for variable in model.variables} == {tf.float32}
    assert model(tf.ones([1, 4])).dtype == tf.float32 and tf.keras.config.floatx() == "float32"


def test_a_loss():
    loss = tf.keras.losses.MeanSquaredError()
    assert tf.test.check_gradients(loss, [[[0.0, 1.0]], [[0.3, 0.6]]]).elements == 4


def test_a_wrong_first_derivative_is_named():
    wrong = elementwise("cube_with_wrong_slope", lambda xp, x: x**3, lambda x, y: 2.0 * x * x)
    with pytest.raises(AssertionError, match=r"first order: the worst of 2 is element \[1\] of argument 0") as e:
        tf.test.check_gradients(wrong, np.array([0.1, 2.0]))
    assert isinstance(e.value, tf.errors.GradientMismatchError)


def test_a_wrong_second_derivative_is_named():
    @tf.custom_gradient
    def square(x):
        return x * x, lambda upstream: upstream * 2.0 * tf.stop_gradient(x)

    assert tf.test.check_gradients(square, np.array([0.5, 2.0]), order=1).first < 1e-9
    with pytest.raises(tf.errors.GradientMismatchError, match=r"second order, along the random direction of seed 0"):
        tf.test.check_gradients(square, np.array([0.5, 2.0]))


def test_a_wrong_gradient_of_a_variable_is_named_with_its_path():
    class Broken(tf.keras.layers.Dense):
        def call(self, x):
            return super().call(x) + tf.stop_gradient(tf.reduce_sum(self.kernel))

    with pytest.raises(tf.errors.GradientMismatchError, match=r"of variable 'wrong/kernel'"):
        tf.test.check_gradients(Broken(2, name="wrong"), np.ones((1, 2)))


def test_a_missing_gradient_is_explained():
    with pytest.raises(tf.errors.GradientMismatchError, match=r"argument 0 \(Stop_gradient .* lies on every path"):
        tf.test.check_gradients(lambda x, w: tf.stop_gradient(x) * w, [2.0, 3.0])


def test_large_arguments_are_sampled():
    assert tf.test.check_gradients(tf.sin, np.ones(50), max_elements=7).elements == 7


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(ValueError, match="two results"):
        tf.test.check_gradients(lambda x: x * tf.cast(tf.random.normal([]), tf.float64), 1.0)
    with pytest.raises(ValueError, match="nothing to differentiate"):
        tf.test.check_gradients(tf.identity, tf.constant(3))
    with pytest.raises(ValueError, match="order must be 1 or 2"):
        tf.test.check_gradients(tf.identity, 1.0, order=3)


def test_both_modules_have_the_same_function():
    assert tf.debugging.check_gradients is tf.test.check_gradients
