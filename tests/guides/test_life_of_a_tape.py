"""Entering, leaving, using up and entering again: what a tape is good for at each point of its life."""

import logging

import pytest

import minikeras as tf

USED_UP = "A non-persistent GradientTape can only be used to compute one set of gradients"


def test_with_yields_the_tape_itself_and_leaving_returns_none():
    """T1."""
    tape = tf.GradientTape(persistent=False, watch_accessed_variables=True)
    with tape as entered:
        pass
    assert entered is tape
    assert tf.GradientTape().__exit__(None, None, None) is None


def test_a_recording_is_usable_after_its_block_also_if_that_raised():
    """T1: the exception is not swallowed, and what was recorded before it counts."""
    x = tf.Variable(3.0)
    tape = tf.GradientTape()
    with pytest.raises(KeyError), tape:
        y = x * x
        raise KeyError
    assert tape.gradient(y, x).numpy() == 6.0


def test_what_is_computed_after_the_block_is_not_recorded():
    """T1, T41."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    z = y * 2.0
    assert tape.gradient(z, x) is None


def test_a_tape_is_used_up_by_one_gradient():
    """T2."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=USED_UP):
            tape.gradient(y, x)


def test_a_tape_that_was_never_entered_has_no_gradient():
    """T3."""
    x = tf.Variable(3.0)
    with pytest.raises(RuntimeError, match=USED_UP):
        tf.GradientTape().gradient(x, x)
    with pytest.raises(RuntimeError, match=USED_UP):
        tf.GradientTape(persistent=True).gradient(x, x)


@pytest.mark.parametrize("expected", [RuntimeError, AttributeError])
def test_watching_before_the_block_says_to_enter_it_first(expected):
    """T3 and 18.2: a RuntimeError that code written for TensorFlow catches as an AttributeError."""
    with pytest.raises(expected, match="enter the tape with `with` first"):
        tf.GradientTape().watch(tf.constant(3.0))


def test_a_persistent_tape_answers_any_number_of_questions():
    """T4."""
    x = tf.Variable([1.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        z = y * y
    assert tape.gradient(z, x).numpy().tolist() == [4.0, 108.0]
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 6.0]
    assert tape.gradient(z, y).numpy().tolist() == [2.0, 18.0]
    del tape


def test_a_gradient_inside_the_block_stops_a_tape_for_one_use():
    """T5: later operations are not recorded, a second call is refused, and the block ends quietly."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        assert tape.gradient(y, x).numpy() == 6.0
        late = x * x * x
        assert tape.watched_variables() == (x,)
        with pytest.raises(RuntimeError, match=USED_UP):
            tape.gradient(late, x)


def test_one_persistent_tape_gives_higher_orders_from_inside_its_block():
    """T6: x**3 at 3 is 27, 18, and 6 from outside."""
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x**3
        first = tape.gradient(y, x)
        second = tape.gradient(first, x)
    assert (first.numpy(), second.numpy()) == (27.0, 18.0)
    assert tape.gradient(second, x).numpy() == 6.0


def test_a_gradient_inside_a_persistent_tapes_block_warns_once_for_each_line(caplog):
    """T6."""
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        for _ in range(3):
            tape.gradient(y, x)
        tape.gradient(y, x)
    tape.gradient(y, x)
    assert [(record.name, record.levelno) for record in caplog.records] == [("minikeras", logging.WARNING)] * 2
    assert caplog.messages[0].startswith(
        "Calling GradientTape.gradient on a persistent tape inside its context is significantly less efficient than "
        "calling it outside the context"
    )


@pytest.mark.parametrize("persistent", [False, True])
def test_a_gradient_inside_stop_recording_is_not_recorded_and_does_not_warn(persistent, caplog):
    """T7."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer, tf.GradientTape(persistent=persistent) as tape:
        y = x**3
        with tape.stop_recording(), outer.stop_recording():
            slope = tape.gradient(y, x)
    assert slope.numpy() == 27.0
    assert caplog.records == []
    assert outer.gradient(slope, x) is None
    if persistent:
        assert tape.gradient(slope, x) is None


def test_a_tape_goes_on_afresh_after_it_was_used_up_inside_stop_recording():
    """T7, T10: what follows in the block is a new recording."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        with tape.stop_recording():
            assert tape.gradient(y, x).numpy() == 6.0
        z = x * x * x
    assert tape.gradient([y, z], x).numpy() == 27.0


def test_an_active_tape_cannot_be_entered_again():
    """T8."""
    with (
        tf.GradientTape() as tape,
        pytest.raises(ValueError, match="Tape is still recording, This can happen if you try to re-enter"),
    ):
        tape.__enter__()


def test_entering_again_continues_the_recording():
    """T9: y = 2x in one block and z = 2y in the next give dz/dx = 4."""
    x = tf.Variable(1.0)
    tape = tf.GradientTape()
    with tape:
        y = 2.0 * x
    between = y * 5.0
    with tape:
        z = 2.0 * y
    assert tape.gradient([z, between], x).numpy() == 4.0


def test_entering_a_used_up_tape_starts_afresh():
    """T10: it is good for one more use, and what it knew before is forgotten."""
    x, other = tf.Variable(3.0), tf.Variable(1.0)
    tape = tf.GradientTape()
    with tape:
        y = x * x + other
    tape.gradient(y, x)
    with tape:
        z = x * x * x
    assert tape.watched_variables() == (x,)
    assert tape.gradient([y, z], x).numpy() == 27.0
    with pytest.raises(RuntimeError, match=USED_UP):
        tape.gradient(z, x)


def test_a_question_that_is_refused_does_not_use_the_tape_up():
    """T12: a wrong option, a wrong target or a wrong seed leaves it usable."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    with pytest.raises(ValueError):
        tape.gradient(y, x, unconnected_gradients="nonsense")
    with pytest.raises(TypeError):
        tape.gradient(None, x)
    with pytest.raises(TypeError):
        tape.gradient(y, [x, 2.0])
    with pytest.raises(ValueError):
        tape.gradient(y, x, output_gradients=[1.0, 2.0])
    assert tape.gradient(y, x).numpy() == 6.0


def test_a_tape_is_usable_for_another_target_after_a_missing_gradient():
    """T12, T75 and 18.2."""
    x = tf.Variable([[[0.1, 0.2, 0.3]]])
    with tf.GradientTape() as tape:
        picture = tf.image.adjust_contrast(x, 2.0)
        y = x * x
    with pytest.raises(LookupError, match="gradient registry has no entry for: AdjustContrastv2") as caught:
        tape.gradient(picture, x)
    assert type(caught.value) is LookupError
    assert tape.gradient(y, x).numpy().ravel().tolist() == pytest.approx([0.2, 0.4, 0.6])
    with pytest.raises(RuntimeError, match=USED_UP):
        tape.gradient(y, x)


def test_the_tape_has_two_names():
    """T13."""
    assert tf.autodiff.GradientTape is tf.GradientTape
