"""Metrics gather sums: what they gather on parts of a batch adds up to what they gather on all of it."""

import numpy as np
import pytest
from in_one_test import in_one_test

import minikeras as tf
from minikeras.distribute.parts import BatchPart
from minikeras.ranks import computing_on

metrics = tf.keras.metrics
ROWS, PARTS = 11, [range(0, 4), range(4, 7), range(7, 7), range(7, 11)]
GENERATOR = np.random.default_rng(0)
POSITIVE = GENERATOR.uniform(0.05, 0.95, (ROWS, 3)).astype("float32")
OTHERS = GENERATOR.uniform(0.05, 0.95, (ROWS, 3)).astype("float32")
CLASSES = GENERATOR.integers(0, 3, ROWS)
BINARY = GENERATOR.integers(0, 2, (ROWS, 3)).astype("float32")
WEIGHTS = GENERATOR.uniform(0.5, 2.0, ROWS).astype("float32")

ARGUMENTS = {
    "FBetaScore": {"average": "macro", "threshold": 0.5},
    "IoU": {"num_classes": 3, "target_class_ids": [0, 1]},
    "MeanIoU": {"num_classes": 3},
    "MeanRelativeError": {"normalizer": [0.5, 1.0, 2.0]},
    "OneHotIoU": {"num_classes": 3, "target_class_ids": [0, 2]},
    "OneHotMeanIoU": {"num_classes": 3},
    "PrecisionAtRecall": {"recall": 0.5},
    "RecallAtPrecision": {"precision": 0.5},
    "SensitivityAtSpecificity": {"specificity": 0.5},
    "SpecificityAtSensitivity": {"sensitivity": 0.5},
    "BinaryIoU": {"target_class_ids": [0, 1], "threshold": 0.5},
    "MeanMetricWrapper": {"fn": lambda y_true, y_pred: tf.reduce_max(tf.abs(y_true - y_pred), -1)},
    "AUC": {"num_thresholds": 20},
}
OF_BITS = ("AUC", "Binary", "FBeta", "F1", "FalseNeg", "FalsePos", "Precision", "Recall", "Sensitivity", "Specificity", "True")


def every_metric():
    for name in sorted(set(metrics.__all__)):
        kind = getattr(metrics, name)
        if isinstance(kind, type) and issubclass(kind, metrics.Metric) and kind is not metrics.Metric:
            yield name


def data_of(name):
    """Labels and predictions for a metric."""
    if name in ("Mean", "Sum", "MeanTensor"):
        return (OTHERS,)
    if name in ("IoU", "MeanIoU"):
        return CLASSES, np.roll(CLASSES, 2)
    if name.startswith("Sparse"):
        return CLASSES, POSITIVE
    if name.startswith(("Categorical", "TopK", "OneHot")):
        return np.eye(3, dtype="float32")[CLASSES], POSITIVE
    if name.startswith(OF_BITS):
        return BINARY, POSITIVE
    return OTHERS, POSITIVE


def additive(make, batches):
    """The results of a metric that has seen batches, and of one that has gathered each from parts, as a strategy does."""
    whole, shared = make(), make()
    shared.update_state(*batches[0])  # makes the Variables
    shared.reset_state()
    for batch in batches:
        whole.update_state(*batch)
        before = [variable.numpy() for variable in shared.variables]
        sums = [np.zeros_like(one) for one in before]
        total = len(batch[0])
        for rows in PARTS:
            for variable in shared.variables:
                variable.assign(np.zeros(variable.shape, variable.dtype.numpy))
            if len(rows):
                with computing_on(BatchPart(rows.start, len(rows), total)):
                    shared.update_state(*[one[rows.start : rows.stop] for one in batch])
            sums = [one + variable.numpy() for one, variable in zip(sums, shared.variables, strict=True)]
        for variable, old, new in zip(shared.variables, before, sums, strict=True):
            variable.assign(old + new)
    return whole, shared


@in_one_test(weighted=[False, True], name=list(every_metric()))
def test_parts_add_up_to_the_whole_batch(name, weighted):
    data = (*data_of(name), *[WEIGHTS] * weighted)
    kind = {"dtype": "float32"} if "IoU" in name else {}
    make = lambda: getattr(metrics, name)(**ARGUMENTS.get(name, {}), **kind)
    whole, shared = additive(make, [data, tuple(one[::-1] for one in data)])
    assert all(variable.aggregation == "sum" for variable in whole.variables)
    np.testing.assert_allclose(shared.result(), whole.result(), rtol=2e-6)


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum"])
def test_a_loss_object_as_a_metric_has_one_value_for_each_batch(reduction):
    make = lambda: metrics.MeanMetricWrapper(tf.keras.losses.MeanSquaredError(reduction=reduction))
    whole, shared = additive(make, [(OTHERS, POSITIVE), (POSITIVE, OTHERS)])
    np.testing.assert_allclose(shared.count.numpy(), whole.count.numpy())
    np.testing.assert_allclose(shared.result(), whole.result(), rtol=2e-6)


def test_the_mean_of_a_batch_counts_once():
    metric = metrics.Mean()
    for first, value in ((0, 1.0), (3, 5.0)):
        with computing_on(BatchPart(first, 3 if not first else 1, 4)):
            metric.update_state(value)
    assert (float(metric.count), float(metric.result())) == (1.0, 2.0)


@pytest.mark.parametrize("weighted", [True, False], ids=["by rows", "without a weight"])
def test_means_of_batches_count_as_in_one_process(weighted):
    whole, total, count = metrics.Mean(), 0.0, 0.0
    weight = lambda rows: {"sample_weight": rows} if weighted else {}
    whole.update_state(OTHERS.mean(), **weight(ROWS))
    for rows in filter(len, PARTS):
        metric = metrics.Mean()
        with computing_on(BatchPart(rows.start, len(rows), ROWS)):
            metric.update_state(OTHERS[rows.start : rows.stop].mean(), **weight(len(rows)))
        total, count = total + metric.total, count + metric.count
    np.testing.assert_allclose([total, count], [whole.total, whole.count], rtol=1e-6)
