"""Every optimizer walks exactly where Keras's does, with every option and every schedule."""

import math

import numpy as np
import pytest
from golden_numbers import TOLERANCE, assert_golden, golden
from in_one_test import in_one_test

import minikeras as tf

optimizers, schedules = tf.keras.optimizers, tf.keras.optimizers.schedules
INPUTS, CASES = golden("optimizers")["inputs"], golden("optimizers")["cases"]
IN_FLOAT32 = {"Adafactor": {"rtol": 1e-6, "atol": 1e-7}, "Muon": {"rtol": 1e-7, "atol": 1e-9}}
"""Keras takes Adafactor's means and Muon's norm in float32 even if all else is float64. In the tests of `test_optimizers.py`
these two are held to their formulas in float64."""


def made(case):
    config = dict(case["config"])
    if "_schedule" in config:
        name, arguments = config.pop("_schedule")
        config["learning_rate"] = getattr(schedules, name)(**arguments)
    optimizer = getattr(optimizers, case["optimizer"])(**config)
    optimizer.exclude_from_weight_decay(var_names=case.get("exclude_from_weight_decay_var_names"))
    return optimizer


def variables(dtype, constraint=None):
    kernel = tf.Variable(INPUTS["w0"], name="kernel", dtype=dtype, constraint=constraint)
    return kernel, tf.Variable(INPUTS["b0"], name="bias", dtype=dtype)


def constraint_of(case):
    config = dict(case.get("kernel_constraint") or {"class": None})
    kind = config.pop("class")
    return getattr(tf.keras.constraints, kind)(**config) if kind else None


def steps(dtype):
    for gw, gb in zip(INPUTS["gw"], INPUTS["gb"], strict=True):
        yield tf.constant(gw, dtype), tf.constant(gb, dtype)


def assert_close(variable, expected, dtype, case):
    tolerance = IN_FLOAT32.get(case["optimizer"], TOLERANCE[dtype]) if dtype == "float64" else TOLERANCE[dtype]
    assert variable.shape == np.shape(expected)
    np.testing.assert_allclose(variable.numpy(), expected, **tolerance)


@in_one_test(case=CASES)
def test_a_trajectory_is_keras_s(case, dtype):
    optimizer, held = made(case), variables(dtype, constraint_of(case))
    for gradients, w, b in zip(steps(dtype), case["w"], case["b"], strict=True):
        optimizer.apply(gradients, held)
        assert_close(held[0], w, dtype, case)
        assert_close(held[1], b, dtype, case)
    assert int(optimizer.iterations) == case["iterations"]
    names = [name.partition("/")[2] for name in case["state_names"]]
    for variable, name, value in zip(optimizer.variables, names, case["state"], strict=True):
        assert_close(variable, value, dtype, case)
        # Keras leaves Adafactor's factors and Nadam's product without a name of their own.
        assert variable.name.removesuffix(":0") == name or name in ("", "kernel")
    if "finalized_w" in case:
        optimizer.finalize_variable_values(held)
        assert_close(held[0], case["finalized_w"], dtype, case)
        assert_close(held[1], case["finalized_b"], dtype, case)


@pytest.mark.parametrize("name", golden("optimizers")["defaults"])
def test_the_defaults_are_keras_s(name, float64):
    config = getattr(optimizers, name)().get_config()
    assert config.pop("name").startswith(tf.keras.optimizers.get(name).name.rsplit("_", 1)[0])
    assert config == golden("optimizers")["defaults"][name]


def test_a_dynamic_loss_scale_is_keras_s(dtype):
    case = golden("optimizers")["loss_scale_optimizer"]
    inner = optimizers.SGD(case["inner"]["learning_rate"])
    optimizer = optimizers.LossScaleOptimizer(inner, case["initial_scale"], case["dynamic_growth_steps"])
    held = variables(dtype)
    for number, (gradients, step) in enumerate(zip(steps(dtype), case["steps"], strict=True)):
        assert optimizer.dynamic_scale.numpy() == step["scale_before"]
        scaled = [gradient.numpy() * step["scale_before"] for gradient in gradients]
        if number in case["inf_steps"]:
            scaled[0][0, 0] = np.inf
        optimizer.apply([tf.constant(gradient) for gradient in scaled], held)
        assert_golden(held[0], step["w"], dtype)
        assert_golden(held[1], step["b"], dtype)
        assert optimizer.dynamic_scale.numpy() == step["scale_after"]
        assert int(optimizer.step_counter) == step["counter_after"]
    assert int(optimizer.iterations) == len(case["steps"]) - len(case["inf_steps"])


def test_two_optimizers_on_disjoint_variables_do_not_touch_each_other(dtype):
    """What Keras's MultiOptimizer computes with SGD for the kernel and Adam for the bias."""
    case = golden("optimizers")["multi_optimizer"]
    assert case["map"] == {"default": "SGD(0.1)", "bias": "Adam(0.05)"}
    slow, fast, (kernel, bias) = optimizers.SGD(0.1), optimizers.Adam(0.05), variables(dtype)
    for (gw, gb), w, b in zip(steps(dtype), case["w"], case["b"], strict=True):
        slow.apply([gw], [kernel])
        fast.apply([gb], [bias])
        assert_golden(kernel, w, dtype)
        assert_golden(bias, b, dtype)


# Schedules ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", golden("schedules")["cases"], ids=lambda case: f"{case['class']}-{len(str(case['config']))}")
def test_a_schedule_is_keras_s(case, dtype):
    schedule = getattr(schedules, case["class"])(**case["config"])
    assert schedule.get_config() == case["full_config"]
    again = schedules.deserialize(schedules.serialize(schedule))
    # Keras takes the cosine in float32 even if all else is float64.
    tolerance = TOLERANCE["single" if case["class"].startswith("Cosine") and dtype == "float64" else dtype]
    for step, value in zip(golden("schedules")["steps"], case["values"], strict=True):
        rate = schedule(step)
        assert rate.dtype.name == dtype and rate.shape == ()
        np.testing.assert_allclose(rate.numpy(), value, **tolerance)
        assert again(tf.constant(step)).numpy() == rate.numpy()


def test_cosine_schedules_follow_their_formula_in_float64(float64):
    """The formula, written once more, since Keras's numbers have float32's precision only."""
    decay = schedules.CosineDecay(0.02, 10, alpha=0.1, warmup_target=0.1, warmup_steps=4)
    for step in range(20):
        progress = min(max(step - 4, 0), 10) / 10
        expected = 0.02 + 0.08 * step / 4 if step < 4 else 0.1 * (0.1 + 0.9 * (1 + math.cos(math.pi * progress)) / 2)
        np.testing.assert_allclose(decay(step).numpy(), expected, rtol=1e-14)
    restarts = schedules.CosineDecayRestarts(0.1, 1, t_mul=3.0, m_mul=0.5, alpha=0.25)
    for period, start in enumerate([0, 1, 4, 13, 40, 121]):
        peak, middle = restarts(start).numpy(), restarts(start + 3**period / 2).numpy()
        np.testing.assert_allclose(peak, 0.1 * (0.25 + 0.75 * 0.5**period), rtol=1e-14)
        np.testing.assert_allclose(middle, 0.1 * (0.25 + 0.75 * 0.5**period / 2), rtol=1e-14)


# Order -------------------------------------------------------------------------------------------------------------------


def test_the_order_of_clipping_weight_decay_step_average_and_constraint_is_keras_s(float64):
    """One step by hand: unscaled, clipped, w shrinks by w * decay * lr, then the step, the average, the projection."""
    w0, g, rate, decay, limit = np.array([3.0, -1.0]), np.array([3.0, -4.0]), 0.1, 0.5, 1.0
    w = tf.Variable(w0, constraint=tf.keras.constraints.NonNeg())
    optimizer = optimizers.SGD(rate, weight_decay=decay, clipnorm=limit, loss_scale_factor=4.0, use_ema=True)
    optimizer.apply([tf.constant(4.0 * g)], [w])
    free = w0 - w0 * decay * rate - rate * g * (limit / 5.0)
    np.testing.assert_allclose(w.numpy(), np.maximum(free, 0.0), rtol=1e-15)
    np.testing.assert_allclose(optimizer.slot(w, "average").numpy(), free, rtol=1e-15)
