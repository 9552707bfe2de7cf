"""SGD and Adam walk exactly where Keras's do, with every option that they have."""

from __future__ import annotations

import numpy as np
import pytest
from golden_numbers import LATER_CLASSES, LATER_OPTIONS, assert_golden, golden

import minikeras as tf

INPUTS = golden("optimizers")["inputs"]
CASES = [
    case
    for case in golden("optimizers")["cases"]
    if case["optimizer"] not in LATER_CLASSES["optimizers"] and not LATER_OPTIONS["Optimizer"] & case["config"].keys()
]


def made(case):
    """The optimizer of a case. AdamW is Adam with another default weight decay."""
    config = dict(case["config"])
    if "_schedule" in config:
        _, schedule = config.pop("_schedule")
        config["learning_rate"] = lambda step: (
            schedule["initial_learning_rate"]
            * schedule["decay_rate"] ** (tf.cast(step, tf.keras.config.floatx()) / schedule["decay_steps"])
        )
    if case["optimizer"] == "AdamW":
        return tf.keras.optimizers.Adam(**{"weight_decay": 0.004, **config})
    return getattr(tf.keras.optimizers, case["optimizer"])(**config)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_trajectory_is_keras_s(case, dtype):
    constraint = None
    if "kernel_constraint" in case:
        config = dict(case["kernel_constraint"])
        constraint = getattr(tf.keras.constraints, config.pop("class"))(**config)
    kernel = tf.Variable(INPUTS["w0"], name="kernel", dtype=dtype, constraint=constraint)
    bias = tf.Variable(INPUTS["b0"], name="bias", dtype=dtype)
    optimizer = made(case)
    if "exclude_from_weight_decay_var_names" in case:
        optimizer.exclude_from_weight_decay(var_names=case["exclude_from_weight_decay_var_names"])
    for gw, gb, w, b in zip(INPUTS["gw"], INPUTS["gb"], case["w"], case["b"], strict=True):
        optimizer.apply([tf.constant(gw, dtype), tf.constant(gb, dtype)], [kernel, bias])
        assert_golden(kernel, w, dtype)
        assert_golden(bias, b, dtype)
    assert int(optimizer.iterations) == case["iterations"] == len(case["w"])
    names = [name.partition("/")[2] for name in case["state_names"]]
    assert [variable.name.removesuffix(":0") for variable in optimizer.variables] == names
    for variable, value in zip(optimizer.variables, case["state"], strict=True):
        assert_golden(variable, value, dtype)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_the_defaults_are_keras_s(name, float64):
    expected = golden("optimizers")["defaults"][name]
    config = getattr(tf.keras.optimizers, name)().get_config()
    later = LATER_OPTIONS["Optimizer"] | {"ema_momentum", "ema_overwrite_frequency"}
    assert {key: config[key] for key in expected if key not in later} == {
        key: value for key, value in expected.items() if key not in later
    }


@pytest.mark.parametrize("option", sorted(LATER_OPTIONS["Optimizer"]))
def test_an_option_of_a_later_stage_is_refused_rather_than_ignored(option):
    with pytest.raises(ValueError, match=f"Unrecognized keyword arguments passed to SGD: .*{option}"):
        tf.keras.optimizers.SGD(0.1, **{option: 2})


def test_the_order_of_clipping_weight_decay_step_and_constraint_is_keras_s(float64):
    """One step by hand: the gradient is clipped, w shrinks by w * decay * lr, then the step, then the projection."""
    w0, g, rate, decay, limit = np.array([3.0, -1.0]), np.array([3.0, -4.0]), 0.1, 0.5, 1.0
    w = tf.Variable(w0, constraint=tf.keras.constraints.NonNeg())
    tf.keras.optimizers.SGD(rate, weight_decay=decay, clipnorm=limit).apply([tf.constant(g)], [w])
    expected = np.maximum(w0 - w0 * decay * rate - rate * g * (limit / 5.0), 0.0)
    np.testing.assert_allclose(w.numpy(), expected, rtol=1e-15)
