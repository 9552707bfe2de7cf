"""Random numbers that can be repeated, and data in batches."""

import numpy as np
import pytest

import minikeras as tf

DRAWS = {
    "uniform": lambda: tf.random.uniform([4]),
    "normal": lambda: tf.random.normal([4]),
    "integers": lambda: tf.random.uniform([4], maxval=1000, dtype=tf.int32),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_seed_restarts_the_sequence(draw):
    """T134: the same calls give the same numbers, one call after the other gives others."""
    tf.random.set_seed(3)
    first = [draw().numpy().tolist() for _ in range(2)]
    tf.random.set_seed(3)
    assert [draw().numpy().tolist() for _ in range(2)] == first
    assert first[0] != first[1]


def test_integers_lie_below_the_maximum():
    """T134."""
    numbers = tf.random.uniform([1000], minval=2, maxval=5, dtype=tf.int32)
    assert numbers.dtype == tf.int32 and set(numbers.numpy().tolist()) == {2, 3, 4}


def test_generators_and_stateless_draws_repeat():
    """T134."""
    one, two = (tf.random.Generator.from_seed(7) for _ in range(2))
    assert one.normal([3]).numpy().tolist() == two.normal([3]).numpy().tolist()
    for draw in (tf.random.stateless_normal, tf.random.stateless_uniform):
        assert draw([3], seed=[1, 2]).numpy().tolist() == draw([3], seed=[1, 2]).numpy().tolist()
        assert draw([3], seed=[1, 2]).numpy().tolist() != draw([3], seed=[1, 3]).numpy().tolist()


def test_random_numbers_have_no_gradient():
    """T77, T134."""
    low = tf.Variable(0.0)
    with tf.GradientTape() as tape:
        y = tf.random.uniform([3]) * 2.0
    assert tape.gradient(y, low) is None


def test_batches_keep_the_remainder():
    """T135."""
    data = tf.data.Dataset.from_tensor_slices({"x": np.arange(5.0), "y": np.arange(5)}).batch(2)
    batches = list(data)
    assert [batch["x"].numpy().tolist() for batch in batches] == [[0.0, 1.0], [2.0, 3.0], [4.0]]
    assert [batch["y"].shape for batch in batches] == [(2,), (2,), (1,)]


def test_iterating_over_data_cuts_the_gradient():
    """T135, T41: what goes into a dataset is copied."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        total = sum(part * part for part in tf.data.Dataset.from_tensor_slices(x * 1.0))
    assert total.numpy() == 5.0 and tape.gradient(total, x) is None


def test_the_global_generator_is_that_of_functions_without_one():
    tf.random.set_seed(3)
    first = tf.random.get_global_generator().uniform([2])
    tf.random.set_seed(3)
    assert tf.random.uniform([2]).numpy().tolist() == first.numpy().tolist()
    seeds = tf.random.Generator.from_seed(1).make_seeds(3)
    assert seeds.shape == (2, 3) and seeds.dtype == tf.int64 and len(set(seeds.numpy().ravel().tolist())) == 6
    assert tf.random.stateless_uniform([], seeds[:, 0]).shape == ()


def test_a_counter_is_a_dataset():
    assert [int(number) for number in tf.data.experimental.Counter(3, 2).take(2)] == [3, 5]
