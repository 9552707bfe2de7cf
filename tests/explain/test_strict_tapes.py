"""Strict tapes raise instead of giving None; memory, summary and the printed list of Records."""

import gc
import weakref

import numpy as np
import pytest

import minikeras as tf


@pytest.fixture
def recording():
    x, w = tf.Variable([[3.0], [4.0]], name="x"), tf.Variable([[1.0], [2.0]], name="w")
    with tf.GradientTape(persistent=True, strict=True) as tape:
        y = x * x
    return tape, y, x, w


METHODS = ["gradient", "jacobian", "batch_jacobian"]


@pytest.mark.parametrize("method", METHODS)
def test_a_strict_tape_raises_instead_of_giving_none(recording, method):
    tape, y, x, w = recording
    with pytest.raises(tf.errors.UnconnectedGradientError, match=r"1 of 1 sources.*\n.*variable 'w:0'") as caught:
        getattr(tape, method)(y, w)
    assert isinstance(caught.value, ValueError)
    assert [found.reason for found in caught.value.explanations] == ["no_dependence"]
    assert getattr(tape, method)(y, x) is not None


@pytest.mark.parametrize("method", METHODS)
def test_zeros_that_were_asked_for_are_given(recording, method):
    tape, y, x, w = recording
    assert not np.any(getattr(tape, method)(y, w, unconnected_gradients="zero").numpy())


@pytest.mark.parametrize("method", METHODS)
def test_a_tape_is_not_strict_by_itself(method):
    """T40, T56, T65."""
    x, w = tf.Variable([[3.0]]), tf.Variable([[1.0]])
    with tf.GradientTape() as tape:
        y = x * x
    result = getattr(tape, method)(y, w)
    assert result is None if method != "batch_jacobian" else not np.any(result.numpy())


def test_the_message_explains_every_source_that_is_not_connected():
    x, c = tf.Variable(3.0), tf.constant(2.0)
    with tf.GradientTape(strict=True) as tape:
        y = tf.round(x) * c * tf.Variable(1.0)
    with pytest.raises(tf.errors.UnconnectedGradientError) as caught:
        tape.gradient(y, {"x": x, "c": c, "y": y})
    assert [found.reason for found in caught.value.explanations] == ["not_watched", "non_differentiable_op"]  # by key
    assert all(str(found) in str(caught.value) for found in caught.value.explanations)
    assert __file__ in str(caught.value)


def test_a_strict_tape_gives_the_gradients_of_an_ordinary_one():
    x = tf.Variable(2.0)
    with tf.GradientTape(strict=True) as outer:
        with tf.GradientTape(strict=True) as inner:
            y = x**3
        first = inner.gradient(y, x)
    assert first.numpy() == 12.0 and outer.gradient(first, x).numpy() == 12.0


def test_a_traced_tape_may_stop_reset_and_be_entered_again():
    """T9, T10, T28, T32: what traces follows."""
    x = tf.Variable(2.0)
    tape = tf.GradientTape(trace=True)
    for _ in range(2):
        with tape:
            with tape.stop_recording():
                x * 5.0
            x * 7.0
            tape.reset()
            y = x * x
        with tape:
            z = y * 2.0
        assert tape.gradient(z, x).numpy() == 8.0


def test_a_trace_keeps_no_value_of_what_was_not_recorded():
    """T14."""
    with tf.GradientTape(trace=True) as tape:
        y = tf.constant(2.0) * 3.0
        alive = weakref.ref(y)
        del y
    assert alive() is None and tape.memory() == 0


# What a tape holds -------------------------------------------------------------------------------------------------------


@pytest.mark.host
def test_memory_counts_each_buffer_once():
    x = tf.Variable(np.zeros(1000, np.float32))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reshape(x, [10, 100])  # a view
        z = y * y
    assert tape.memory() == 2 * 4000
    tape.gradient(z, x)
    assert tape.memory() == 2 * 4000


def test_a_used_up_tape_holds_nothing():
    x = tf.Variable(np.zeros(1000, np.float32))
    with tf.GradientTape() as tape:
        y = tf.exp(x)
    assert tape.memory() == 8000
    tape.gradient(y, x)
    assert tape.memory() == 0 and tape.summary().records == 0


def test_a_summary_is_one_line():
    x = tf.Variable([1.0, 2.0], name="x")
    with tf.GradientTape() as tape:
        tf.reduce_sum(x * x)
    found = tape.summary()
    assert (found.records, found.bytes, found.variables) == (4, 20, ("x:0",))
    assert str(found) == "4 records, 20 bytes, watching x:0"
    assert str(tf.GradientTape().summary()) == "0 records, 0 bytes, watching no variables"


def test_printing_a_tape_lists_its_records():
    x = tf.Variable([1.0, 2.0], name="x")
    with tf.GradientTape() as tape:
        tf.sin(x * 2.0)
    first, *lines = str(tape).splitlines()
    assert first == "GradientTape: 3 records, 24 bytes, watching x:0"
    assert [line.split(" = ")[1].partition("(")[0] for line in lines] == ["read_variable", "multiply", "sin"]
    assert "x:0:float32[2]" in lines[0]


def test_conversions_and_assignments_outside_of_tapes_are_announced_to_nobody():
    v = tf.Variable([1.0])
    v.assign([2.0])
    alive = weakref.ref(v)
    assert float(v) == 2.0
    del v
    assert alive() is None and gc.garbage == []
