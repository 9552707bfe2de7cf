"""Metrics over streams of batches, with and without weights."""

import contextlib
import re

import numpy as np
import pytest
from golden_numbers import assert_golden, golden
from in_one_test import in_one_test

import minikeras as tf

METRICS = golden("metrics")
CASES = METRICS["cases"]
IN_DOUBLE = {
    *("Accuracy", "AUC", "CategoricalAccuracy", "CategoricalCrossentropy", "CategoricalHinge", "CosineSimilarity"),
    *("FalseNegatives", "FalsePositives", "KLDivergence", "Mean", "Precision", "PrecisionAtRecall", "Recall"),
    *("RecallAtPrecision", "SensitivityAtSpecificity", "SparseCategoricalAccuracy", "SparseCategoricalCrossentropy"),
    *("SparseTopKCategoricalAccuracy", "SpecificityAtSensitivity", "Sum", "TopKCategoricalAccuracy", "TrueNegatives"),
    "TruePositives",
}
"""What Keras computed in float64 throughout; for the others it took a mean or a result in single precision."""


def tolerance(case, dtype):
    doubled = case["metric"] in IN_DOUBLE and not case["config"].get("multi_label")
    return dtype if dtype == "float32" or doubled else "single"


@in_one_test(case=CASES)
def test_a_metric_accumulates_as_keras_s(case, dtype):
    tf.keras.utils.clear_session()  # the name is the first of its kind
    metric = getattr(tf.keras.metrics, case["metric"])(**case["config"])
    stream = zip(METRICS["streams"][case["data"]], METRICS["sample_weights"], case["results"], strict=True)
    for batch, weights, result in stream:
        with weights_cut(case):
            metric.update_state(*[_array(part, dtype) for part in batch], **_weights(case, weights))
        assert_golden(metric.result(), result, tolerance(case, dtype))
    assert [variable.name for variable in metric.variables] == case["state_names"]
    for variable, value in zip(metric.variables, case.get("state", []), strict="state" in case):
        outputs = metric.count.shape[0] if variable.name == "num_samples" else 1  # Keras 3.15 counts a row once for each output
        assert_golden(variable * outputs, value, tolerance(case, dtype))
    assert (metric.name, metric._direction) == (re.sub(r"_\d+$", "", case["name"]), case["direction"])
    metric.reset_state()
    assert_golden(metric.result(), case["after_reset"], dtype)


def weights_cut(case):
    """Keras counts in integers and cuts weights; here it is said."""
    cut = case["metric"].endswith("IoU") and case["sample_weight"]
    return pytest.warns(UserWarning, match="dtype='float32'") if cut else contextlib.nullcontext()


def _weights(case, weights):
    return {"sample_weight": np.asarray(weights)} if case["sample_weight"] else {}


def _array(part, dtype):
    array = np.asarray(part)
    return array.astype(dtype) if array.dtype.kind == "f" else array


@in_one_test(case=CASES)
def test_a_metric_returns_from_its_configuration(case, float64):
    metric = getattr(tf.keras.metrics, case["metric"])(**case["config"], name="of_mine")
    again = tf.keras.metrics.deserialize(tf.keras.metrics.serialize(metric))
    assert type(again) is type(metric)
    assert again.get_config() == metric.get_config() == type(metric).from_config(metric.get_config()).get_config()
    batch, weights = METRICS["streams"][case["data"]][0], _weights(case, METRICS["sample_weights"][0])
    with weights_cut(case):
        results = [one(*[_array(part, "float64") for part in batch], **weights).numpy() for one in (metric, again)]
    assert np.array_equal(*results, equal_nan=True)
