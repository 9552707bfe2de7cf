"""Many tapes at once, and long chains."""

import functools

import numpy as np
import pytest
from in_threads import in_threads

import minikeras as tf

THREADS, TAPES, STEPS = 64, 10_000, 100_000
WEIGHTS = tf.Variable(np.linspace(-1.0, 1.0, 6).reshape(2, 3))


def small_tape(i):
    """The gradients of a loss with respect to a shared variable and a constant, as bytes."""
    x = tf.constant([[0.1 * i, 1.0]], dtype="float64")
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.tanh(x @ WEIGHTS) ** 2)
    return b"".join(g.numpy().tobytes() for g in tape.gradient(loss, [x, WEIGHTS]))


@pytest.mark.slow
def test_ten_thousand_tapes_on_many_threads_are_those_of_one_thread_bit_for_bit():
    """T120: each thread has a stack of its own."""
    alone = [small_tape(i) for i in range(TAPES)]
    together = [None] * TAPES

    def work(first):
        for i in range(first, TAPES, THREADS):
            together[i] = small_tape(i)

    in_threads(*[functools.partial(work, first) for first in range(THREADS)])
    assert together == alone


@pytest.mark.parametrize("around", ["tape", "accumulator", "map"])
def test_what_surrounds_one_thread_does_not_reach_another(around):
    """T120."""
    x, found = tf.constant([1.0, 2.0]), []

    def elsewhere():
        y = x * x
        found.append(type(y) is tf.Tensor and y.shape)

    def in_a_thread(value):
        in_threads(elsewhere)
        return value

    if around == "tape":
        with tf.GradientTape() as tape:
            tape.watch(x)
            in_a_thread(x)
        assert not tape.tape.records
    elif around == "accumulator":
        with tf.autodiff.ForwardAccumulator(x, [1.0, 1.0]):
            in_a_thread(x)
    else:
        tf.vectorized_map(in_a_thread, tf.constant([[1.0], [2.0]]))
    assert found == [(2,)]


def chain(x):
    """x times a hundred thousand factors that multiply up to one."""
    for _ in range(STEPS // 2):
        x = x * 2.0
        x = x * 0.5
    return x


@pytest.mark.slow
def test_a_chain_of_a_hundred_thousand_operations_has_a_jacobian():
    """T46: no recursion in the sweep, nor when the chain is freed."""
    x = tf.constant([1.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = chain(x)
    np.testing.assert_array_equal(tape.jacobian(y, x).numpy(), np.eye(2))


def test_a_chain_of_a_hundred_thousand_operations_has_a_tangent():
    """T46, T80."""
    x = tf.constant([1.0, 3.0])
    with tf.autodiff.ForwardAccumulator(x, [1.0, 2.0]) as accumulator:
        y = chain(x)
    np.testing.assert_array_equal(accumulator.jvp(y).numpy(), [1.0, 2.0])
