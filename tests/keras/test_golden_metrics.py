"""Metrics over streams of batches, with and without weights."""

from __future__ import annotations

import numpy as np
import pytest
from golden_numbers import assert_golden, golden, now

import minikeras as tf

METRICS = golden("metrics")
CASES = now(METRICS["cases"], "metrics", "metric")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_metric_accumulates_as_keras_s(case, dtype):
    metric = getattr(tf.keras.metrics, case["metric"])(**case["config"])
    tolerance = dtype if case["metric"] in ("Mean", "Sum") or dtype == "float32" else "single"
    stream = zip(METRICS["streams"][case["data"]], METRICS["sample_weights"], case["results"], strict=True)
    for batch, weights, result in stream:
        weights = {"sample_weight": np.asarray(weights)} if case["sample_weight"] else {}
        metric.update_state(*[_array(part, dtype) for part in batch], **weights)
        assert_golden(metric.result(), result, tolerance)
    assert [variable.name.removesuffix(":0") for variable in metric.variables] == case["state_names"]
    for variable, value in zip(metric.variables, case["state"], strict=True):
        assert_golden(variable, value, tolerance)
    assert (metric.name, metric._direction) == (case["name"], case["direction"])
    metric.reset_state()
    assert_golden(metric.result(), case["after_reset"], dtype)


def _array(part, dtype):
    array = np.asarray(part)
    return array.astype(dtype) if array.dtype.kind == "f" else array


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_metric_returns_from_its_configuration(case):
    metric = getattr(tf.keras.metrics, case["metric"])(**case["config"])
    assert type(metric).from_config(metric.get_config()).get_config() == metric.get_config()
