"""What a tape follows: Variables by themselves, anything else when asked."""

import logging

import numpy as np
import pytest

import minikeras as tf

READS = {
    "an operation": lambda v: v * 1.0,
    "value": lambda v: v.value(),
    "read_value": lambda v: v.read_value(),
    "a conversion": tf.convert_to_tensor,
    "indexing": lambda v: v[0],
    "iteration": lambda v: next(iter(v)),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_trainable_variables_are_watched_when_they_are_read(read):
    """T16."""
    v = tf.Variable([3.0, 4.0])
    with tf.GradientTape() as tape:
        y = read(v) * 2.0
    assert tape.watched_variables() == (v,)
    assert tape.gradient(y, v).numpy()[0] == 2.0


def test_constants_and_computed_tensors_are_not_watched():
    """T16."""
    c, early = tf.constant(3.0), tf.Variable(2.0) + 1.0
    with tf.GradientTape() as tape:
        y = c * c + early * early
    assert tape.gradient(y, [c, early]) == [None, None]


def test_a_variable_that_is_not_trainable_is_watched_only_on_request():
    """T17."""
    v = tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.watched_variables() == ()
    assert tape.gradient(y, v) is None
    with tf.GradientTape() as tape:
        tape.watch(v)
        y = v * v
    assert tape.watched_variables() == (v,)
    assert tape.gradient(y, v).numpy() == 6.0


def test_a_tape_may_watch_nothing_by_itself():
    """T18."""
    x0, x1 = tf.Variable(0.0), tf.Variable(10.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(x1)
        y = x0 * 3.0 + x1 * x1
    none, slope = tape.gradient(y, [x0, x1])
    assert none is None and slope.numpy() == 20.0
    assert tape.watched_variables() == (x1,)


def test_a_nest_is_watched_at_once():
    """T19."""
    a, b, v = tf.constant(1.0), tf.constant(2.0), tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        assert tape.watch({"a": a, "rest": [b, (v,)]}) is None
        assert tape.watch([]) is None
        y = a * b * v
    assert [g.numpy() for g in tape.gradient(y, [a, b, v])] == [6.0, 3.0, 2.0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1.0 of type 'float'"),
        (np.array(1.0), "1.0 of type 'ndarray'"),
        (None, "None of type"),
        ("a", "a of type 'str'"),
    ],
)
def test_only_tensors_and_variables_can_be_watched(value, shown):
    """T19: the message names the value and its type."""
    with tf.GradientTape() as tape:
        for nest in (value, [tf.constant(1.0), value]):
            with pytest.raises(ValueError, match=f"Passed in object {shown}.*, not tf.Tensor or tf.Variable or ExtensionType."):
                tape.watch(nest)


def test_watching_counts_from_then_on():
    """T20."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        early = x * x
        tape.watch(x)
        late = x * x * x
    assert tape.gradient([early, late], x).numpy() == 27.0


def test_a_constant_watched_by_the_inner_tape_has_no_second_derivative_in_the_outer():
    """T21."""
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        slope = inner.gradient(y, x)
    assert slope.numpy() == 27.0
    assert outer.gradient(slope, x) is None


@pytest.mark.parametrize("value", [3, True, "text"], ids=["int32", "bool", "string"])
def test_watching_what_has_no_derivative_warns(value, caplog):
    """T22: at most five times for each line."""
    x = tf.constant(value)
    with tf.GradientTape() as tape:
        for _ in range(8):
            tape.watch(x)
        tape.watch(x)
    message = f"The dtype of the watched tensor must be floating (e.g. tf.float32), got {x.dtype!r}"
    assert [(r.name, r.levelno, r.getMessage()) for r in caplog.records] == [("minikeras", logging.WARNING, message)] * 6
    assert tf.get_logger().name == "minikeras"
    with tape:
        y = tf.constant(2.0) * 3.0
    assert tape.gradient(y, x) is None


def test_integers_carry_no_gradient_into_what_is_computed_from_them():
    """T22, T41, T106: a cast to float does not connect an integer that was watched."""
    n = tf.constant([1, 2])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(n)
        y = tf.cast(n, "float32") * 2.0
    assert tape.gradient(y, n) is None
    assert tape.gradient(y, n, unconnected_gradients="zero").numpy().tolist() == [0, 0]


def test_watched_variables_are_listed_in_the_order_of_their_construction():
    """T23: not in that of their use; tensors are never among them."""
    x0, x1, x2 = (tf.Variable(float(i), name=f"x{i}") for i in range(3))
    tape = tf.GradientTape(persistent=True)
    assert tape.watched_variables() == ()
    with tape:
        tape.watch(tf.constant(1.0))
        y = x2 * x0
        assert [v.name for v in tape.watched_variables()] == ["x0:0", "x2:0"]
        y = y + x1
    assert [v.name for v in tape.watched_variables()] == ["x0:0", "x1:0", "x2:0"]


def test_watched_variables_are_kept_when_the_tape_is_used_up_and_forgotten_by_reset():
    """T23."""
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.reset()
        assert tape.watched_variables() == ()
        y = x * x
    tape.gradient(y, x)
    assert tape.watched_variables() == (x,)


def test_an_integer_variable_that_was_read_is_listed_too():
    """T23."""
    n = tf.Variable(2)
    with tf.GradientTape() as tape:
        n + 1
    assert tape.watched_variables() == (n,)


def test_a_variable_made_inside_the_block_is_watched():
    """T24: but its initial value does not connect it."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        v = tf.Variable(x * x)
        y = v * v
    slope, none = tape.gradient(y, [v, x])
    assert slope.numpy() == 18.0 and none is None


def test_variables_read_while_recording_is_stopped_are_not_watched():
    """T25."""
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape, tape.stop_recording():
        y = v * v
    assert tape.watched_variables() == ()
    assert tape.gradient(y, v) is None


def test_an_unwatched_operand_beside_a_watched_one_has_no_gradient():
    """T16, T18, T52: also if the operation was recorded because of the other operand."""
    v, c, n = tf.Variable(3.0), tf.constant(2.0), tf.Variable(5.0, trainable=False)
    with tf.GradientTape() as tape:
        y = v * c * n
    slope, *others = tape.gradient(y, [v, c, n])
    assert slope.numpy() == 10.0 and others == [None, None]
