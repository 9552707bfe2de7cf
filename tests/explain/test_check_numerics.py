"""The first operation that makes a NaN or an infinity is named, forward and backward."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.core.stack import BOTTOM, current


@pytest.fixture
def checking():
    with tf.debugging.enable_check_numerics() as check:
        yield check


def test_the_first_operation_is_named_with_shapes_index_and_line(checking):
    x = tf.constant([[1.0, 2.0], [0.0, 3.0]])
    with pytest.raises(tf.errors.NotFiniteError) as caught:
        tf.exp(tf.math.log(x))
    message = str(caught.value)
    assert message.startswith("log made Inf at index [1, 0] of its result float32[2,2] from finite inputs (float32[2,2])")
    assert f"called at {__file__}:" in message
    assert isinstance(caught.value, tf.errors.InvalidArgumentError) and isinstance(caught.value, ArithmeticError)


def test_the_backward_operation_is_named_with_what_is_differentiated(checking):
    x = tf.Variable([4.0, 0.0])
    with tf.GradientTape() as tape:
        y = tf.sqrt(x)
    with pytest.raises(tf.errors.NotFiniteError, match=r"made Inf at index \[1\].*in the gradient of sqrt"):
        tape.gradient(y, x)


def test_the_layer_is_named(checking):
    class Log(tf.keras.layers.Layer):
        def call(self, x):
            return tf.math.log(x)

    with pytest.raises(tf.errors.NotFiniteError, match=r"in layer 'outer/logs'"):
        tf.keras.Sequential([Log(name="logs")], name="outer")(tf.zeros([1, 2]))


def test_what_comes_in_broken_is_not_blamed(checking):
    x = tf.constant([np.inf, 1.0]) * 2.0
    assert np.isinf((x + 1.0).numpy()[0])


def test_a_custom_gradient_is_checked_as_a_whole(checking):
    @tf.custom_gradient
    def reciprocal(x):
        return 1.0 / x, lambda upstream: upstream

    with pytest.raises(tf.errors.NotFiniteError, match="reciprocal made Inf"):
        reciprocal(tf.constant(0.0))


def test_stacks_are_checked(checking):
    with pytest.raises(tf.errors.NotFiniteError, match="log made Inf"):
        tf.vectorized_map(tf.math.log, tf.constant([1.0, 0.0]))


def test_a_sum_that_overflows_over_finite_values_is_no_finding(checking):
    big = tf.constant([3e38, 3e38]) + 0.0
    assert np.isfinite(big.numpy()).all()


def test_enabling_twice_is_enabling_once_and_disabling_ends_it():
    tf.debugging.enable_check_numerics()
    tf.debugging.enable_check_numerics()
    tf.debugging.disable_check_numerics()
    tf.debugging.disable_check_numerics()
    assert current() is BOTTOM
    assert np.isinf(tf.math.log(tf.constant(0.0)).numpy())


def test_gradients_are_the_same_while_checking(checking):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(x**3)
        first = inner.gradient(y, x)
    assert outer.jacobian(first, x).numpy().tolist() == [[6.0, 0.0], [0.0, 12.0]]


def test_one_tensor_can_be_checked():
    x = tf.constant([1.0, 2.0])
    assert tf.debugging.check_numerics(x, "fine") is x
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"loss : Tensor had NaN values, the first at index \[1\]"):
        tf.debugging.check_numerics([1.0, np.nan], "loss")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Inf values, the first at index \[\]"):
        tf.debugging.check_numerics(np.inf, "loss")
    with pytest.raises(tf.errors.InvalidArgumentError, match="int32"):
        tf.debugging.check_numerics([1], "counts")
