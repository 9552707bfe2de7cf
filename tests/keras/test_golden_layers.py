"""Layers: forward, gradients with respect to inputs and weights, and the statistics that a call leaves behind."""

import numpy as np
import pytest
from golden_numbers import TOLERANCE, assert_golden, golden
from in_one_test import in_one_test

import minikeras as tf

CASES = golden("layers")["cases"] + golden("windows")["cases"]


def made(case):
    """The layer of a case, by its configuration.

    That of renormalization leaves out its limits; every correction in its numbers lies at 1.5 and 0.5.
    """
    limits = {"renorm_clipping": {"rmax": 1.5, "dmax": 0.5}} if case["config"].get("renorm") else {}
    return getattr(tf.keras.layers, case["layer"])(**case["config"], **limits, name=case["layer"].lower())


def input_of(case, dtype):
    return tf.constant(case["x"], "int32" if case["layer"] == "Embedding" else dtype)


@in_one_test(case=CASES)
def test_a_layer_computes_what_keras_s_does(case, dtype):
    layer = made(case)
    x = input_of(case, dtype)
    layer.build(x.shape)
    layer.trainable = "frozen" not in case["id"]
    assert [weight.name for weight in layer.weights] == [path.rpartition("/")[2] for path in case["weight_order"]]
    assert [weight.name for weight in layer.trainable_weights] == case["trainable_order"]
    layer.set_weights([np.asarray(case["weights"][weight.name]) for weight in layer.weights])
    variables = [weight for weight in layer.weights if weight.name in case["dtrainable"]]
    smooth = [x] if x.dtype.is_floating else []
    options = {key: np.asarray(value) for key, value in case.get("call_kwargs", {}).items()}
    with tf.GradientTape() as tape:
        tape.watch([*smooth, *variables])
        y = layer(x, training=case["training"], **options)
        loss = tf.reduce_sum(y * tf.constant(case["dy"], dtype))
    tolerance = "single" if dtype == "float64" and _approximate(case) else dtype
    assert_golden(y, case["y"], tolerance)
    loose = 10.0 if dtype == "float32" else 1.0  # the terms of a normalization's gradient cancel against one another
    found = [tf.convert_to_tensor(gradient).numpy() for gradient in tape.gradient(loss, [*smooth, *variables])]
    expected = [case["dx"]] * len(smooth) + [case["dtrainable"][variable.name] for variable in variables]
    for gradient, values in zip(found, expected, strict=True):
        np.testing.assert_allclose(gradient / loose, np.asarray(values) / loose, **TOLERANCE[tolerance])
    for weight in layer.non_trainable_weights:
        if weight.name in case["non_trainable_after"]:
            assert_golden(weight, case["non_trainable_after"][weight.name], tolerance)


def _approximate(case):
    approximate = case["layer"].endswith("Normalization") or case["layer"].startswith("GlobalAverage")
    return approximate or case["config"].get("activation") in ("tanh", "gelu")


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c["layer"] == "BatchNormalization" and not c["config"]["renorm"]],
    ids=lambda case: case["id"],
)
def test_batch_normalization_is_its_formula(case, float64):
    """Against NumPy, since Keras's numbers are only approximate here."""
    layer = made(case)
    x = np.asarray(case["x"])
    layer.build(x.shape)
    weights = {name: np.asarray(value) for name, value in case["weights"].items()}
    layer.set_weights([weights[weight.name] for weight in layer.weights])
    mask = np.asarray(case.get("call_kwargs", {}).get("mask", np.ones(x.shape[:1] if x.ndim == 2 else x.shape[:-1])), float)
    layer.trainable = "frozen" not in case["id"]
    options = {key: np.asarray(value) for key, value in case.get("call_kwargs", {}).items()}
    y = layer(x, training=case["training"], **options).numpy()
    columns = np.moveaxis(x, layer.axis, -1).reshape(-1, weights["moving_mean"].size)
    mean, variance = weights["moving_mean"], weights["moving_variance"]
    if case["training"] and layer.trainable:
        valid = columns[mask.reshape(-1) > 0] if "call_kwargs" in case else columns
        mean, variance = valid.mean(0), valid.var(0)
    expected = (columns - mean) / np.sqrt(variance + layer.epsilon) * weights.get("gamma", 1.0) + weights.get("beta", 0.0)
    tolerance = 1e-6 if "call_kwargs" in case else 1e-12  # with a mask the number of rows has 1e-7 added to it
    np.testing.assert_allclose(np.moveaxis(y, layer.axis, -1).reshape(columns.shape), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("stream", golden("layers")["bn_streams"], ids=lambda stream: str(stream["config"]))
def test_moving_statistics_follow_keras_s_over_six_batches(stream, dtype):
    layer = tf.keras.layers.BatchNormalization(**stream["config"])
    tolerance = "single" if dtype == "float64" else dtype
    for step in stream["steps"]:
        y = layer(tf.constant(step["x"], dtype), training=True)
        assert_golden(y, step["y"], tolerance)
        assert_golden(layer.moving_mean, step["moving_mean"], tolerance)
        assert_golden(layer.moving_variance, step["moving_variance"], tolerance)
    assert_golden(layer(tf.constant(stream["infer_x"], dtype), training=False), stream["infer_y"], tolerance)
