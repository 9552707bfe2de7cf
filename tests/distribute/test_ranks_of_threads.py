"""Collective operations and data parallelism, with threads as ranks."""

import numpy as np
import pytest
from trained import on_ranks

import minikeras as tf


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16"])
@pytest.mark.parametrize(("op", "expected"), [("sum", [6, 3]), ("max", [3, 2]), ("min", [1, 0])])
def test_all_ranks_get_the_same(dtype, op, expected):
    def work():
        rank = tf.distribute.rank()
        return tf.distribute.all_reduce(tf.constant([rank + 1, rank], dtype), op)

    for found in on_ranks(3, work):
        assert found.dtype.name == dtype and found.numpy().tolist() == expected


def test_the_mean_is_that_of_the_ranks():
    found = on_ranks(4, lambda: tf.distribute.all_reduce(tf.fill([2, 2], float(tf.distribute.rank())), "mean").numpy())
    assert all((one == 1.5).all() for one in found)


def test_one_rank_keeps_what_it_has():
    assert (tf.distribute.rank(), tf.distribute.size(), tf.distribute.local_rank()) == (0, 1, 0)
    assert tf.distribute.all_reduce([1, 2]).numpy().tolist() == [1, 2]
    tf.distribute.barrier()


def test_tensors_of_several_dtypes_are_reduced_together():
    def work():
        rank = tf.distribute.rank()
        return tf.distribute.all_reduce_together([[[1.0, rank]], None, tf.constant(rank), tf.constant([2.0], "float64")])

    for a, nothing, b, c in on_ranks(2, work):
        assert a.numpy().tolist() == [[2.0, 1.0]] and nothing is None and int(b) == 1 and c.numpy().tolist() == [4.0]
        assert (a.dtype, c.dtype) == (tf.float32, tf.float64)


def test_variables_get_the_values_of_one_rank():
    def work():
        a, b = tf.Variable([1.0, 2.0]) * 1.0, None
        a = tf.Variable(tf.fill([2, 3], float(tf.distribute.rank())))
        b = tf.Variable(tf.distribute.rank())
        tf.distribute.broadcast_variables([a, b], root_rank=1)
        return a.numpy(), int(b)

    for a, b in on_ranks(3, work):
        assert (a == 1.0).all() and b == 1


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda rank: [tf.Variable(tf.zeros([2 + rank]), name="w")], r"on rank \d Variable 0 is w float32\[[23]\]"),
        (lambda rank: [tf.Variable(0.0)] * (1 + rank), r"the ranks have \[1, 2\] Variables"),
    ],
)
def test_ranks_with_other_variables_are_told_on_each(made, message):
    def work():
        with pytest.raises(ValueError, match=message):
            tf.distribute.broadcast_variables(made(tf.distribute.rank()))
        return True

    assert on_ranks(2, work) == [True, True]


def test_a_rank_that_fails_ends_the_others_with_its_error():
    def work():
        if tf.distribute.rank() == 1:
            raise OSError("the disk is full")
        return tf.distribute.all_reduce(1.0)

    with pytest.raises(OSError, match="the disk is full"):
        on_ranks(3, work)


def test_ranks_that_call_other_operations_are_told_which():
    def work():
        if tf.distribute.rank() == 1:
            tf.distribute.barrier()
        return tf.distribute.all_reduce([1.0, 2.0])

    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"'all_reduce sum float32\[2\]' on 0, 2; 'barrier float64\[0\]' on 1"
    ):
        on_ranks(3, work)


@pytest.mark.parametrize("x", [True, "text"])
def test_what_has_no_mean_is_refused(x):
    with pytest.raises(tf.errors.InvalidArgumentError, match="there is no mean"):
        tf.distribute.all_reduce(x, "mean")
    with pytest.raises(tf.errors.InvalidArgumentError, match="op must be"):
        tf.distribute.all_reduce(1.0, "product")


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.distribute.all_reduce(True),
        lambda: tf.distribute.all_reduce(1j, "max"),
        lambda: tf.distribute.broadcast_variables([tf.Variable(1.0)], root_rank=1),
        lambda: tf.distribute.rows_of(-1),
        lambda: tf.distribute.rows_of(3, 2, 2),
        lambda: tf.distribute.ThreadCommunicator(0),
    ],
)
def test_arguments_that_no_ranks_can_follow_are_refused(call):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(expected|must be|there is no)"):
        call()


def test_the_mean_of_complex_numbers_is_one():
    assert on_ranks(2, lambda: complex(tf.distribute.all_reduce(1j * tf.distribute.rank(), "mean").numpy())) == [0.5j] * 2


X = np.random.default_rng(0).normal(size=(24, 5)).astype("float32")
Y = np.random.default_rng(1).integers(0, 3, 24)


def trained(compiled):
    """A model that was trained on this rank's rows."""
    kernel = tf.keras.initializers.GlorotUniform(seed=1)
    model = tf.keras.Sequential([tf.keras.Input((5,)), tf.keras.layers.Dense(4, "tanh", kernel_initializer=kernel)])
    model.add(tf.keras.layers.Dense(3, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=2)))
    optimizer = tf.keras.optimizers.Adam(0.01)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    tf.distribute.broadcast_variables(model.variables)

    def step(x, y):
        with tf.distribute.DistributedGradientTape() as tape:
            loss = loss_of(y, model(x))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return tf.distribute.all_reduce(loss, "mean")

    step = tf.function(step) if compiled else step
    for start in range(0, 24, 12):
        rows = [start + row for row in tf.distribute.rows_of(12)]
        for _ in range(6):
            loss = step(tf.constant(X[rows]), tf.constant(Y[rows]))
    return float(loss), model.get_weights()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_ranks_train_what_one_would(size, compiled):
    expected = trained(False)
    results = on_ranks(size, lambda: trained(compiled))
    for loss, weights in results:
        assert loss == pytest.approx(expected[0], rel=1e-5)
        for one, other, first in zip(weights, expected[1], results[0][1], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
            assert (one == first).all()
