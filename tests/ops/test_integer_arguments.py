"""Axes, sizes, shapes and counts are integers: a float is refused, since int() would cut it off without a word."""

import numpy as np
import pytest
from in_one_test import in_one_test

import minikeras as tf
from minikeras.errors import DTypeError

x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
FLOATS = {
    "reshape": lambda: tf.reshape(x, [2.5, 2]),
    "reshape to a float that is whole": lambda: tf.reshape(x, [4.0]),
    "reshape to a float tensor": lambda: tf.reshape(x, tf.constant([4.0])),
    "reshape to a float array": lambda: tf.reshape(x, np.array([4.0])),
    "transpose": lambda: tf.transpose(x, [1.0, 0.0]),
    "expand_dims": lambda: tf.expand_dims(x, 0.5),
    "squeeze": lambda: tf.squeeze([x], 0.5),
    "broadcast_to": lambda: tf.broadcast_to(x, [1.5, 2, 2]),
    "concat": lambda: tf.concat([x, x], 0.7),
    "stack": lambda: tf.stack([x, x], 0.7),
    "unstack": lambda: tf.unstack(x, axis=0.7),
    "split, axis": lambda: tf.split(x, 2, 0.7),
    "split, number": lambda: tf.split(x, 2.0),
    "split, sizes": lambda: tf.split(x, [1.5, 0.5]),
    "pad": lambda: tf.pad(x, [[1.5, 0], [0, 0]]),
    "tile": lambda: tf.tile(x, [2.7, 1]),
    "roll, shift": lambda: tf.roll(x, 0.5, 0),
    "roll, axis": lambda: tf.roll(x, 1, 0.5),
    "reverse": lambda: tf.reverse(x, [0.5]),
    "repeat": lambda: tf.repeat(x, 1.5),
    "zeros": lambda: tf.zeros([2.5]),
    "ones": lambda: tf.ones(2.0),
    "fill": lambda: tf.fill([2.5], 1),
    "eye": lambda: tf.eye(2.5),
    "eye, columns": lambda: tf.eye(2, 2.5),
    "linspace": lambda: tf.linspace(0.0, 1.0, 2.5),
    "one_hot, depth": lambda: tf.one_hot([0], 2.5),
    "one_hot, axis": lambda: tf.one_hot([0], 2, axis=0.5),
    "normal": lambda: tf.random.normal([2.5]),
    "uniform": lambda: tf.random.uniform([2.0]),
    "reduce_sum": lambda: tf.reduce_sum(x, 0.5),
    "reduce_sum of several": lambda: tf.reduce_sum(x, [0.0, 1]),
    "argmax": lambda: tf.argmax(x, 0.5),
    "cumsum": lambda: tf.cumsum(x, 0.5),
    "sort": lambda: tf.sort(x, 0.5),
    "top_k": lambda: tf.math.top_k(x, 1.5),
    "norm": lambda: tf.norm(x, axis=0.5),
    "softmax": lambda: tf.nn.softmax(x, 0.5),
    "gather": lambda: tf.gather(x, [0], axis=0.5),
    "slice, begin": lambda: tf.slice(x, [0.5, 0], [1, 1]),
    "slice, size": lambda: tf.slice(x, [0, 0], [1.5, 1]),
    "strided_slice": lambda: tf.strided_slice(x, [0.5], [2]),
    "scatter_nd": lambda: tf.scatter_nd([[0]], [1.0], [2.5]),
    "tensordot": lambda: tf.tensordot(x, x, 1.5),
    "band_part": lambda: tf.linalg.band_part(x, 0.5, 0),
}


@in_one_test(name=FLOATS)
def test_a_float_is_no_size_axis_or_count(name):
    with pytest.raises(DTypeError, match="integer"):
        FLOATS[name]()


@pytest.mark.parametrize(
    "two",
    [2, np.int64(2), np.uint8(2), np.array(2), tf.constant(2), tf.Variable(2), tf.constant(2, "int64")],
    ids=lambda value: f"{type(value).__name__}",
)
def test_every_kind_of_integer_is_one(two):
    assert tf.zeros([two, 3]).shape == (2, 3)
    assert tf.zeros(two).shape == (2,)
    assert tf.expand_dims(x, two).shape == (2, 2, 1)
    assert tf.eye(two).shape == (2, 2)
    assert tf.one_hot([0], two).shape == (1, 2)
    assert tf.math.top_k(x, two)[0].shape == (2, 2)
    assert len(tf.split(x, two)) == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.roll(x, 1, [[0, 1]]),
        lambda: tf.roll(x, [[0, 1]], 1),
        lambda: tf.tile(x, [[2, 3], [3, 4]]),
        lambda: tf.transpose(x, [[0, 1], [1, 0]]),
        lambda: tf.cumsum(x, [0]),
        lambda: tf.expand_dims(x, [0, 1]),
        lambda: tf.concat([x, x], "a"),
        lambda: tf.reshape(x, None),
    ],
)
def test_a_list_or_a_word_where_one_integer_belongs_is_named(call):
    with pytest.raises(tf.errors.InvalidArgumentError, match="integer"):
        call()


def test_expand_dims_takes_its_axis_in_a_list_as_well():
    assert tf.expand_dims(x, [0]).shape == tf.expand_dims(x, tf.constant([0])).shape == (1, 2, 2)
