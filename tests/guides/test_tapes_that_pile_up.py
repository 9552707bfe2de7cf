"""Persistent tapes that a loop makes and keeps: one warning, with the line and the size."""

import logging

import numpy as np
import pytest

import minikeras as tf
from minikeras.core import warnings


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch):
    """A few recordings of the square of a thousand numbers are too much already."""
    monkeypatch.setattr(warnings, "BYTES", 10_000)
    warnings._tapes_by_line.clear()


X = np.ones(1000, "float32")


def test_tapes_kept_in_a_list_are_told_of_once(caplog):
    """18.1: after some iterations, not for each."""
    x, kept = tf.Variable(X), []
    for _ in range(20):
        with tf.GradientTape(persistent=True) as tape:
            tf.reduce_sum(x * x)
        kept.append(tape)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and record.name == "minikeras"
    assert record.getMessage().startswith("3 recordings of persistent tapes that were entered on this line are still alive")


def test_one_tape_that_grows_is_told_of(caplog):
    """18.1, T9: entering it again adds to its recording."""
    x, tape = tf.Variable(X), tf.GradientTape(persistent=True)
    for _ in range(20):
        with tape:
            tf.reduce_sum(x * x)
    assert len(caplog.records) == 1 and "Entering a persistent tape again adds to its recording" in caplog.text


def looped(count, **options):
    x = tf.Variable(X)
    for _ in range(count):
        with tf.GradientTape(**options) as tape:
            y = tf.reduce_sum(x * x)
        tape.gradient(y, x)


def test_a_tape_of_its_own_for_each_iteration_is_all_right(caplog):
    looped(20, persistent=True)
    looped(20)
    assert caplog.records == []


def test_tapes_for_one_use_and_small_ones_say_nothing(caplog):
    """Also if they are kept."""
    x, small, kept = tf.Variable(X), tf.Variable(1.0), []
    for _ in range(20):
        with tf.GradientTape() as tape:
            x * x
        with tf.GradientTape(persistent=True) as other:
            small * small
        kept += [tape, other]
    assert caplog.records == []


def nested(x, depth):
    if depth:
        with tf.GradientTape(persistent=True):
            x * x
            nested(x, depth - 1)


def test_tapes_that_are_still_recording_do_not_outlive_anything(caplog):
    nested(tf.Variable(X), 10)
    assert caplog.records == []
