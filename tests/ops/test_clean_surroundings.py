"""The guard that `conftest.py` puts around every test sees what it is there to see."""

import gc

import pytest
from laws import cyclic_garbage

import minikeras as tf


def test_a_cycle_that_holds_a_tensor_is_seen():
    cycle = [tf.constant(1.0)]
    cycle.append(cycle)
    del cycle
    assert cyclic_garbage((tf.Tensor,)) == [tf.Tensor.__name__]
    gc.collect()


def test_a_cycle_from_a_caught_exception_is_the_tests_own():
    with pytest.raises(ValueError) as caught:
        keep = tf.constant(1.0)
        raise ValueError(keep)
    del caught
    assert cyclic_garbage((tf.Tensor,)) == []


def test_tensors_and_tapes_are_freed_by_reference_counting():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(tf.exp(x) * tf.nn.softmax(x))
    tape.gradient(y, x)
    del tape, y, x
    assert cyclic_garbage((tf.Tensor, tf.Variable, tf.GradientTape)) == []
