"""Losses: every reduction, with and without weights and masks, and the gradient."""

from __future__ import annotations

import numpy as np
import pytest
from golden_numbers import assert_golden, golden, now

import minikeras as tf

LOSSES = golden("losses")
SINGLE = {"float64": "single", "float32": "float32"}
CASES = now(LOSSES["cases"], "losses", "loss")


def _tolerance(case, dtype):
    return "edge" if case["data"] == "bin_edge" and dtype == "float32" else SINGLE[dtype]


def tensors(name, dtype):
    """Labels (as integers for the sparse losses) and predictions."""
    data = LOSSES["data"][name]
    labels = np.asarray(data["y_true"])
    return (labels if labels.dtype.kind == "i" else labels.astype(dtype)), tf.constant(data["y_pred"], dtype)


@pytest.mark.parametrize("key", sorted({key for case in CASES for key in case["values"]}))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_reduced_loss_is_keras_s(case, key, dtype):
    if key not in case["values"]:
        assert case["data"] in ("sparse_logit_seq", "bin_edge", "cat_logit_big") and "sample_weight" in key  # not in Keras
        return
    y_true, y_pred = tensors(case["data"], dtype)
    reduction, _, weighted = key.partition("|")
    loss = getattr(tf.keras.losses, case["loss"])(reduction=reduction, **case["config"])
    weights = LOSSES["sample_weight"][: len(y_true)] if weighted else None
    assert_golden(loss(y_true, y_pred, weights), case["values"][key], _tolerance(case, dtype))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
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


@pytest.mark.parametrize("name", [name for name in LOSSES["functions"] if hasattr(tf.keras.losses, name)])
def test_a_loss_function_reduces_the_last_axis_only(name, dtype):
    case = LOSSES["functions"][name]
    assert_golden(getattr(tf.keras.losses, name)(*tensors(case["data"], dtype)), case["value"], SINGLE[dtype])


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _binary(y, p):
    p = np.clip(p, 1e-7, 1 - 1e-7)
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean(-1)


def _categorical(y, p):
    p = np.clip(p / p.sum(-1, keepdims=True), 1e-7, 1 - 1e-7)
    return -(y * np.log(p)).sum(-1)


FORMULAS = {
    ("MeanSquaredError", "reg", ""): lambda y, p: ((y - p) ** 2).mean(-1),
    ("MeanAbsoluteError", "reg", ""): lambda y, p: abs(y - p).mean(-1),
    ("BinaryCrossentropy", "bin_prob", ""): _binary,
    ("BinaryCrossentropy", "bin_logit", "from_logits"): lambda y, x: (np.log1p(np.exp(x)) - x * y).mean(-1),
    ("CategoricalCrossentropy", "cat_prob", ""): _categorical,
    ("CategoricalCrossentropy", "cat_logit", "from_logits"): lambda y, x: _categorical(y, _softmax(x)),
    ("SparseCategoricalCrossentropy", "sparse_prob", ""): lambda y, p: _categorical(np.eye(p.shape[-1])[y], p),
    ("SparseCategoricalCrossentropy", "sparse_logit", "from_logits"): lambda y, x: _categorical(
        np.eye(x.shape[-1])[y], _softmax(x)
    ),
}


@pytest.mark.parametrize("key", FORMULAS, ids="-".join)
def test_a_loss_is_its_formula(key, float64):
    """Against NumPy, since Keras computes losses in float32."""
    name, data, option = key
    y_true, y_pred = tensors(data, "float64")
    options = {option: True} if option else {}
    values = FORMULAS[key](y_true, y_pred.numpy())
    weights = np.asarray(LOSSES["sample_weight"])
    cls = getattr(tf.keras.losses, name)
    np.testing.assert_allclose(cls(reduction=None, **options)(y_true, y_pred).numpy(), values, rtol=1e-12)
    np.testing.assert_allclose(cls(**options)(y_true, y_pred, weights), (values * weights).mean(), rtol=1e-12)
    mean = cls(reduction="mean_with_sample_weight", **options)(y_true, y_pred, weights)
    np.testing.assert_allclose(mean, (values * weights).sum() / (weights.sum() + 1e-7), rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in LOSSES["default_configs"] if hasattr(tf.keras.losses, name)])
def test_the_default_configuration_of_a_loss_is_keras_s(name):
    config = getattr(tf.keras.losses, name)().get_config()
    expected = LOSSES["default_configs"][name]
    assert {key: config[key] for key in expected} == expected


def test_a_loss_returns_from_its_configuration(float64):
    y_true, y_pred = tensors("bin_logit", "float64")
    loss = tf.keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.2, reduction="sum")
    again = tf.keras.losses.BinaryCrossentropy.from_config(loss.get_config())
    assert float(again(y_true, y_pred)) == float(loss(y_true, y_pred))


def test_the_mean_is_another_name_of_the_default_reduction():
    loss = tf.keras.losses.MeanSquaredError(reduction="mean")
    assert float(loss([[1.0], [2.0]], [[0.0], [0.0]], [1.0, 0.5])) == 1.5


def test_a_scalar_weight_scales_the_loss():
    assert float(tf.keras.losses.MeanSquaredError()([[1.0], [3.0]], [[0.0], [0.0]], 0.5)) == 2.5
