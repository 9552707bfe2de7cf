"""Losses: every reduction, with and without weights and masks, and the gradient."""

import numpy as np
import pytest
from golden_numbers import assert_golden, golden
from in_one_test import in_one_test

import minikeras as tf

LOSSES = golden("losses")
SINGLE = {"float64": "single", "float32": "float32"}
CASES = LOSSES["cases"]
for _case in CASES:
    if _case["loss"] == "Tversky":  # alpha and beta changed places in Keras 3.15, and are the right way round since
        _case["config"] |= {"alpha": _case["config"].get("beta", 0.5), "beta": _case["config"].get("alpha", 0.5)}


def _tolerance(case, dtype):
    return "edge" if case["data"] == "bin_edge" and dtype == "float32" else SINGLE[dtype]


def tensors(name, dtype):
    """Labels (as integers for the sparse losses) and predictions."""
    data = LOSSES["data"][name]
    labels = np.asarray(data["y_true"])
    return (labels if labels.dtype.kind == "i" else labels.astype(dtype)), tf.constant(data["y_pred"], dtype)


@in_one_test(case=CASES)
def test_a_reduced_loss_is_keras_s(case, dtype):
    y_true, y_pred = tensors(case["data"], dtype)
    for key, expected in case["values"].items():
        reduction, _, weighted = key.partition("|")
        loss = getattr(tf.keras.losses, case["loss"])(reduction=reduction, **case["config"])
        weights = LOSSES["sample_weight"][: len(y_true)] if weighted else None
        assert_golden(loss(y_true, y_pred, weights), expected, _tolerance(case, dtype))


@in_one_test(case=CASES)
def test_the_gradient_of_a_loss_is_keras_s(case, dtype):
    y_true, y_pred = tensors(case["data"], dtype)
    with tf.GradientTape() as tape:
        tape.watch(y_pred)
        value = getattr(tf.keras.losses, case["loss"])(**case["config"])(y_true, y_pred)
    assert_golden(tape.gradient(value, y_pred), case["grad_y_pred"], _tolerance(case, dtype))


@pytest.mark.parametrize("case", LOSSES["mse_rank3_sample_weight"]["cases"], ids=lambda case: case["reduction"])
def test_weights_of_sequences_are_those_of_rows_or_of_steps(case, dtype):
    data = LOSSES["mse_rank3_sample_weight"]
    y_true, y_pred = np.asarray(data["y_true"], dtype), tf.constant(data["y_pred"], dtype)
    loss = tf.keras.losses.MeanSquaredError(reduction=case["reduction"])
    value = loss(y_true, y_pred, case["sample_weight"])
    if isinstance(case["value"], dict):  # JAX cannot broadcast (2,) with (2, 3); here a weight belongs to its row
        column = np.asarray(case["sample_weight"])[:, None]
        assert np.array_equal(value.numpy(), loss(y_true, y_pred, column).numpy())
    else:
        assert_golden(value, case["value"], SINGLE[dtype])


@pytest.mark.parametrize("case", LOSSES["mse_rank3_mask"]["cases"], ids=lambda case: case["reduction"])
def test_a_mask_leaves_steps_out_of_the_mean(case, dtype):
    data, shared = LOSSES["mse_rank3_mask"], LOSSES["mse_rank3_sample_weight"]
    y_true, y_pred = np.asarray(shared["y_true"], dtype), tf.constant(shared["y_pred"], dtype)
    loss = tf.keras.losses.MeanSquaredError(reduction=case["reduction"])
    assert_golden(loss(y_true, y_pred, mask=np.array(data["mask"])), case["value"], SINGLE[dtype])
    weighted = loss(y_true, y_pred, np.asarray(data["sample_weight"], dtype), mask=np.array(data["mask"]))
    assert_golden(weighted, case["value_sw"], SINGLE[dtype])


@pytest.mark.parametrize("name", LOSSES["functions"])
def test_a_loss_function_reduces_the_last_axis_only(name, dtype):
    case = LOSSES["functions"][name]
    assert_golden(getattr(tf.keras.losses, name)(*tensors(case["data"], dtype)), case["value"], SINGLE[dtype])


@pytest.mark.parametrize("name", LOSSES["default_configs"])
def test_the_default_configuration_of_a_loss_is_keras_s(name):
    config = getattr(tf.keras.losses, name)().get_config()
    expected = LOSSES["default_configs"][name]
    assert {key: config[key] for key in expected} == expected


@in_one_test(case=CASES)
def test_a_loss_returns_from_its_configuration(case, float64):
    y_true, y_pred = tensors(case["data"], "float64")
    loss = getattr(tf.keras.losses, case["loss"])(reduction="sum", **case["config"])
    for again in (type(loss).from_config(loss.get_config()), tf.keras.losses.deserialize(tf.keras.losses.serialize(loss))):
        assert (type(again), again.name, again.reduction) == (type(loss), loss.name, "sum")
        assert float(again(y_true, y_pred)) == float(loss(y_true, y_pred))


def test_the_mean_is_another_name_of_the_default_reduction():
    loss = tf.keras.losses.MeanSquaredError(reduction="mean")
    assert float(loss([[1.0], [2.0]], [[0.0], [0.0]], [1.0, 0.5])) == 1.5


def test_a_scalar_weight_scales_the_loss():
    assert float(tf.keras.losses.MeanSquaredError()([[1.0], [3.0]], [[0.0], [0.0]], 0.5)) == 2.5
