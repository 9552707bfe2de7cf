"""`tf.TensorArray` in code written for TensorFlow."""

import pytest

import minikeras as tf


def test_what_is_written_in_a_loop_is_stacked_and_differentiated():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        array = tf.TensorArray(tf.float32, size=3)
        for i in tf.range(3):
            array = array.write(i, x ** tf.cast(i, tf.float32))
        y = tf.reduce_sum(array.stack())
    assert y.numpy() == 7.0 and tape.gradient(y, x).numpy() == 5.0


def test_a_while_loop_carries_it():
    _, array = tf.while_loop(
        lambda i, a: i < 4, lambda i, a: (i + 1, a.write(i, i * i)), (tf.constant(0), tf.TensorArray(tf.int32, 4))
    )
    assert array.stack().numpy().tolist() == [0, 1, 4, 9]


def test_slices_and_pieces():
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True).unstack([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert int(array.size()) == len(array) == 3 and array.element_shape == [2]
    assert array.gather([2, 0]).numpy().tolist() == [[5, 6], [1, 2]]
    assert array.concat().numpy().tolist() == [1, 2, 3, 4, 5, 6]
    assert array.scatter([1], [[9.0, 9.0]]).identity().read(1).numpy().tolist() == [9, 9]
    pieces = tf.TensorArray(tf.int32, 2, infer_shape=False).split(tf.range(5), [2, 3])
    assert [pieces.read(i).numpy().tolist() for i in range(2)] == [[0, 1], [2, 3, 4]]
    array.close()
    assert array.stack().shape == (0, 2)


def test_what_was_never_written_is_zero_if_its_shape_is_known():
    array = tf.TensorArray(tf.float32, size=3).write(1, [1.0, 2.0])
    assert array.stack().numpy().tolist() == [[0, 0], [1, 2], [0, 0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="never written"):
        tf.TensorArray(tf.float32, size=1).read(0)
    assert tf.TensorArray(tf.float32, 1, element_shape=[2]).read(0).shape == (2,)


def test_mistakes_are_answered():
    array = tf.TensorArray(tf.float32, size=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="index 2 of 2 elements"):
        array.write(2, 1.0)
    with pytest.raises(tf.errors.DTypeError, match=r"holds float32, found int32"):
        array.write(0, tf.constant(1))
    array.write(0, [1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="infer_shape=False"):
        array.write(1, [1.0, 2.0])
    array.read(0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="clear_after_read=False"):
        array.read(0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="index 5 of 2"):
        array.read(5)
    kept = tf.TensorArray(tf.float32, 1, clear_after_read=False).write(0, 1.0)
    assert kept.read(0) == kept.read(0)


def test_an_element_is_read_again_once_it_is_written_again():
    array = tf.TensorArray(tf.float32, 1).write(0, 1.0)
    array.read(0)
    assert array.write(0, 2.0).read(0).numpy() == 2.0


def test_what_does_not_fit_changes_nothing():
    array = tf.TensorArray(tf.float32, 2).unstack([1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError):
        array.unstack([3.0, 4.0, 5.0])
    assert array.stack().numpy().tolist() == [1.0, 2.0]


def test_a_size_is_not_negative():
    with pytest.raises(tf.errors.InvalidArgumentError, match="size"):
        tf.TensorArray(tf.float32, -1)
