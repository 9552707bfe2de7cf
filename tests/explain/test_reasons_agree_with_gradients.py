"""A law over random computations: the explanation agrees with `gradient`, and blames only what was really done."""

import random

import pytest
from in_one_test import in_one_test

import minikeras as tf


def stopped_for_a_while(tape, value, state):
    with tape.stop_recording():
        return value * 2.0


def assigned(tape, value, state):
    state.assign(value)
    return state * 1.0


SMOOTH = [lambda tape, v, s: tf.sin(v), lambda tape, v, s: v * v, lambda tape, v, s: tf.reshape(tf.reshape(v, [1]), [])]
CUTS = {
    "stopped": lambda tape, v, s: tf.stop_gradient(v),
    "non_differentiable_op": lambda tape, v, s: tf.round(v),
    "integer_dtype": lambda tape, v, s: tf.cast(tf.cast(v, tf.int32), tf.float32),
    "left_through_numpy": lambda tape, v, s: tf.constant(v.numpy()) * 1.0,
    "through_assignment": assigned,
    "computed_outside": stopped_for_a_while,
}


@in_one_test(seed=range(60))
def test_the_reasons_are_the_cuts_from_the_target_to_the_source(seed):
    choose = random.Random(seed)
    x, state, cuts = tf.Variable(0.7), tf.Variable(0.0), []
    with tf.GradientTape(persistent=True, trace=True) as tape:
        y = tf.sin(x)
        for _ in range(choose.randint(1, 6)):
            if choose.random() < 0.3:
                name = choose.choice(list(CUTS))
                cuts.append(name)
                y = CUTS[name](tape, y, state)
            y = choose.choice(SMOOTH)(tape, y, state)
    found = tape.explain(y, x)
    assert found.connected is (tape.gradient(y, x) is not None) is (not cuts)
    named = [found.reason, *(other.reason for other in found.others)] if cuts else []
    in_order = [name for i, name in enumerate(reversed(cuts)) if name not in list(reversed(cuts))[:i]]
    assert list(dict.fromkeys(named)) == in_order


@pytest.mark.parametrize("seed", range(20))
def test_a_path_beside_the_cuts_connects(seed):
    choose = random.Random(seed)
    x, state = tf.Variable(0.7), tf.Variable(0.0)
    with tf.GradientTape(trace=choose.random() < 0.5) as tape:
        y = x * 1.0
        for _ in range(3):
            y = choose.choice(list(CUTS.values()))(tape, y, state) + choose.choice(SMOOTH)(tape, y, state)
    assert tape.explain(y, x) and tape.gradient(y, x) is not None and tape.explain(y, x)
