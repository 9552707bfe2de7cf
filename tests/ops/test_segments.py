"""Segments and counts beside what the rows of `specimens/segments.py` say: dtypes, empty segments, mistakes."""

import numpy as np
import pytest
from in_one_test import in_one_test

import minikeras as tf

M = tf.math


@in_one_test(dtype=["float16", "bfloat16", "float32", "float64", "int8", "int32", "uint8"])
def test_an_empty_segment_keeps_the_last_number_of_its_dtype(dtype):
    x = tf.cast([1, 2, 3], dtype)
    largest, smallest = M.unsorted_segment_max(x, [0, 0, 2], 4), M.unsorted_segment_min(x, [0, 0, 2], 4)
    assert largest.dtype == smallest.dtype == dtype
    assert largest.numpy().tolist() == [2, x.dtype.min, 3, x.dtype.min]
    assert smallest.numpy().tolist() == [1, x.dtype.max, 3, x.dtype.max]
    assert M.segment_max(x, [0, 0, 2]).numpy().tolist() == [2, 0, 3]
    assert M.segment_min(x, [0, 0, 2]).numpy().tolist() == [1, 0, 3]


def test_means_of_integers_are_rounded_down_and_sums_of_short_floats_are_rounded_once():
    assert M.segment_mean([1, 2, 7], [0, 0, 1]).numpy().tolist() == [1, 7]
    ones = tf.ones([10_000], "bfloat16")
    assert float(M.unsorted_segment_sum(ones, tf.zeros([10_000], "int32"), 1)[0]) == float(tf.cast(10_000.0, "bfloat16"))


def test_a_compiled_function_takes_other_segments_and_refuses_those_that_do_not_exist():
    f = tf.function(lambda x, ids: M.unsorted_segment_sum(x, ids, 3))
    x = tf.constant([1.0, 2.0, 3.0])
    assert f(x, tf.constant([0, 0, 2])).numpy().tolist() == [3, 0, 3]
    assert f(x, tf.constant([-1, 1, 1])).numpy().tolist() == [0, 5, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"segment_ids = 3 is not in \[0, 3\)"):
        f(x, tf.constant([0, 3, 1]))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: M.segment_sum([1.0, 2.0], [1, 0]), tf.errors.InvalidArgumentError, "unsorted_segment_sum"),
        (lambda: M.segment_sum([1.0, 2.0], [[0, 0]]), tf.errors.InvalidArgumentError, "one for each slice"),
        (lambda: M.unsorted_segment_sum([1.0, 2.0], [0.0, 1.0], 2), tf.errors.InvalidArgumentError, "needs? integers"),
        (lambda: M.confusion_matrix([3], [0], 2), tf.errors.InvalidArgumentError, "does not index"),
        (lambda: M.invert_permutation([0, 0]), tf.errors.InvalidArgumentError, "each of 0, 1"),
        (lambda: M.in_top_k([0], [0.5, 0.5], 1), tf.errors.InvalidArgumentError, r"\(batch, classes\)"),
        (lambda: tf.sequence_mask([1.0]), tf.errors.InvalidArgumentError, "integers"),
        (lambda: tf.unravel_index([9], [3, 3]), tf.errors.InvalidArgumentError, r"\[0, 9\)"),
        (lambda: tf.reverse_sequence([[1, 2]], [3]), tf.errors.InvalidArgumentError, r"\[0, 2\]"),
        (lambda: tf.nn.space_to_depth(tf.ones([1, 3, 4, 1]), 2), tf.errors.InvalidArgumentError, "sides divisible"),
        (lambda: tf.nn.depth_to_space(tf.ones([1, 3, 4, 3]), 2), tf.errors.InvalidArgumentError, "channels divisible"),
    ],
)
def test_mistakes_are_answered(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_masks_and_matrices_find_their_size():
    assert tf.sequence_mask([[1], [3]]).shape == (2, 1, 3)
    assert M.confusion_matrix([0, 4], [1, 1]).shape == (5, 5)
    assert M.segment_sum(np.zeros([0, 3], "float32"), np.zeros([0], "int32")).shape == (0, 3)


def test_means_of_integers():
    x, ids = tf.constant([3, 4, -7, 2]), [0, 0, 1, 1]
    assert tf.math.segment_mean(x, ids).numpy().tolist() == [3, -2]
    assert tf.math.segment_mean(x, ids).dtype == tf.int32
    assert tf.math.unsorted_segment_mean(x, ids, 2).numpy().tolist() == [3.5, -2.5]
    with pytest.raises(TypeError, match="sqrt_n"):
        tf.math.unsorted_segment_sqrt_n(x, ids, 2)


@pytest.mark.parametrize("numbers", [[0, 2], [0, -1]])
def test_no_slice_is_lost_by_a_partition(numbers):
    with pytest.raises(tf.errors.InvalidArgumentError, match="dynamic_partition"):
        tf.dynamic_partition([1, 2], numbers, 2)


def test_places_of_a_stitch_and_lengths_of_masks_are_not_negative():
    with pytest.raises(tf.errors.InvalidArgumentError, match="dynamic_stitch"):
        tf.dynamic_stitch([[-1, 0]], [[1, 2]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="maxlen"):
        tf.sequence_mask([1], -2)
