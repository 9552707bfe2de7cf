"""Assertions raise where they do not hold, in each run of a compiled function too, and are silent else."""

import numpy as np
import pytest

import minikeras as tf

D = tf.debugging
HOLD = {
    "assert_equal": ([1, 2], [1, 2]),
    "assert_none_equal": ([1, 2], [2, 1]),
    "assert_less": ([1, 2], 3),
    "assert_less_equal": ([1, 3], 3),
    "assert_greater": ([1, 2], 0),
    "assert_greater_equal": ([1, 0], 0),
    "assert_positive": ([1, 2],),
    "assert_non_negative": ([0, 2],),
    "assert_negative": ([-1, -2],),
    "assert_non_positive": ([0, -2],),
    "assert_near": ([1.0, 2.0], [1.0, 2.0000002]),
    "assert_rank": ([[1.0]], 2),
    "assert_rank_at_least": ([[1.0]], 1),
    "assert_rank_in": ([[1.0]], (1, 2)),
    "assert_scalar": (1.0,),
    "assert_integer": (1,),
    "assert_type": (1, tf.int32),
    "assert_proper_iterable": ([1],),
    "assert_all_finite": ([1.0], "x"),
    "Assert": (True, ["message"]),
}
BROKEN = {
    "assert_equal": ([1, 2], [1, 3]),
    "assert_none_equal": ([1, 2], [2, 2]),
    "assert_less": ([1, 3], 3),
    "assert_less_equal": ([1, 4], 3),
    "assert_greater": ([1, 0], 0),
    "assert_greater_equal": ([1, -1], 0),
    "assert_positive": ([1, 0],),
    "assert_non_negative": ([0, -2],),
    "assert_negative": ([-1, 0],),
    "assert_non_positive": ([0, 2],),
    "assert_near": ([1.0, 2.0], [1.0, 2.1]),
    "assert_rank": ([[1.0]], 1),
    "assert_rank_at_least": ([[1.0]], 3),
    "assert_rank_in": ([[1.0]], (0, 1)),
    "assert_scalar": ([1.0],),
    "assert_integer": (1.5,),
    "assert_type": (1, tf.float32),
    "assert_proper_iterable": ("text",),
    "assert_all_finite": ([float("nan")], "x"),
    "Assert": (False, ["message"]),
}


@pytest.mark.parametrize("name", HOLD)
def test_what_holds_passes_in_silence(name):
    if name != "assert_all_finite":
        assert getattr(D, name)(*HOLD[name]) is None


@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_hold_is_refused(name):
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError, TypeError)):
        getattr(D, name)(*BROKEN[name])


def test_the_error_tells_the_message_and_the_first_place():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^mine assert_less: x < y does not hold at index \[1, 0\]"):
        D.assert_less([[1.0], [5.0]], 2.0, message="mine")


def test_a_compiled_function_asserts_in_each_run():
    @tf.function(jit_compile=True)
    def root(x):
        tf.debugging.assert_non_negative(x, "below zero:")
        return tf.sqrt(x)

    assert root(tf.constant([4.0])).numpy() == [2.0]
    assert root(tf.constant([9.0])).numpy() == [3.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="below zero"):
        root(tf.constant([-1.0]))
    assert root.replays == 2


def test_every_slice_of_a_batch_is_looked_at():
    def checked(x):
        tf.assert_less(x, 2.0)
        return x

    tf.vectorized_map(checked, tf.constant([0.0, 1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="assert_less"):
        tf.vectorized_map(checked, tf.constant([0.0, 3.0]))


def test_shapes_may_share_letters():
    x, y = tf.ones([2, 3]), tf.ones([3, 4])
    D.assert_shapes([(x, ("N", "D")), (y, ("D", 4)), (tf.ones([5, 2, 3]), (..., "N", "D")), (y, ("D", ...)), (x, (None, "."))])
    D.assert_shapes({x.ref(): ("N", "D")})
    with pytest.raises(tf.errors.InvalidArgumentError, match="'N' is 2 and 3"):
        D.assert_shapes([(x, ("N", "D")), (y, ("N", "D"))])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2, 3\] is not \['N'\]"):
        D.assert_shapes([(x, "N")])


def test_one_floating_dtype_is_found():
    assert D.assert_same_float_dtype([tf.constant(1.0)]) == "float32" == D.assert_same_float_dtype()
    with pytest.raises(ValueError, match="one floating dtype"):
        D.assert_same_float_dtype([tf.constant(1.0)], tf.float64)
    assert D.is_numeric_tensor(tf.Variable(1)) and not D.is_numeric_tensor(1)


def test_a_size_may_be_a_number_of_numpys():
    with pytest.raises(ValueError, match="3 and 4"):
        tf.debugging.assert_shapes([(tf.ones([4]), (np.int64(3),))])


def test_conditions_may_be_numbers():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"index \[1\]"):
        tf.debugging.Assert(tf.constant([1, 0]), [])
