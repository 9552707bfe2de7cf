"""Stopping for a while, and starting over."""

import pytest

import minikeras as tf

NOT_RECORDING = r"^Tape is not recording\.$"
NEVER_RECORDED = "Trying to stop recording a tape which is not recording."


def test_recording_stops_on_one_tape_only():
    """T28."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape, tf.GradientTape() as other:
        y = x * x
        with tape.stop_recording():
            z = x * x * x
        w = 2.0 * x
    assert tape.gradient([y, z, w], x).numpy() == 8.0
    assert other.gradient([y, z, w], x).numpy() == 35.0


def test_recording_goes_on_after_an_exception():
    """T28."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        with pytest.raises(KeyError), tape.stop_recording():
            raise KeyError
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


def test_recording_cannot_be_stopped_after_the_block():
    """T29: and the gradient is still there."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    with pytest.raises(ValueError, match=NOT_RECORDING), tape.stop_recording():
        pass
    assert tape.gradient(y, x).numpy() == 6.0


def test_recording_cannot_be_stopped_on_a_tape_that_never_recorded_or_is_used_up():
    """T30: the error comes from `with`, not from the call."""
    never = tf.GradientTape()
    stopped = never.stop_recording()
    with pytest.raises(RuntimeError, match=NEVER_RECORDED), stopped:
        pass
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    stopped = tape.stop_recording()
    with pytest.raises(RuntimeError, match=NEVER_RECORDED), stopped:
        pass


def test_stopping_does_not_nest_on_one_tape():
    """T31."""
    with tf.GradientTape() as tape, tape.stop_recording(), pytest.raises(ValueError, match=NOT_RECORDING):
        tape.stop_recording().__enter__()


def test_reset_forgets_records_and_watches_and_records_afresh():
    """T32."""
    x, c = tf.Variable(3.0), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(c)
        y = x * x * c
        tape.reset()
        z = x * c
    assert tape.gradient([y, z], [x, c])[1] is None, "c is not watched any more"
    with tf.GradientTape() as tape:
        y = x * x
        tape.reset()
        z = 5.0 * x
    assert tape.gradient([y, z], x).numpy() == 5.0


def test_reset_needs_a_recording_tape():
    """T32."""
    tape = tf.GradientTape()
    with pytest.raises(ValueError, match=NOT_RECORDING):
        tape.reset()
    with tape, tape.stop_recording(), pytest.raises(ValueError, match=NOT_RECORDING):
        tape.reset()
    with pytest.raises(ValueError, match=NOT_RECORDING):
        tape.reset()
