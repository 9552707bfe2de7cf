"""Accuracies: 1 for each row that is right and 0 for each that is wrong, averaged; and F-scores of precision and recall."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...absent import hide_imports
from ...core import Tensor, Variable
from ...functions import abs, cast, equal, greater, is_finite, logical_and, one_hot, tensor, where
from ...functions.reductions import argmax, reduce_any, reduce_max, reduce_mean, reduce_sum
from ...types import DTypeLike, TensorLike
from ..config import epsilon, floatx
from ..losses.loss import aligned, as_columns, as_floats, as_predictions, class_labels, same_shape, spread_weights
from .metric import FunctionMetric, Metric, PlainMetric, catalogue, metric

# Functions -------------------------------------------------------------------------------------------------------------


def accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """1 where labels and predictions are equal, else 0.

    >>> print(tf.keras.metrics.accuracy([1, 2], [1, 3]).numpy())
    [1. 0.]
    """
    labels, predictions = tensor(y_true), tensor(y_pred)
    if labels.dtype.is_floating and not predictions.dtype.is_floating:
        predictions = as_floats(predictions, labels.dtype)
    else:
        labels = as_floats(labels, predictions.dtype)
    return _hits(equal(same_shape("accuracy", labels, predictions), predictions))


def binary_accuracy(y_true: TensorLike, y_pred: TensorLike, threshold: float = 0.5) -> Tensor:
    """1 where a prediction lies on the side of the threshold that its label (0 or 1) says, else 0.

    >>> print(tf.keras.metrics.binary_accuracy([[1.0], [0.0]], [[0.7], [0.6]]).numpy().ravel())
    [1. 0.]
    """
    labels, predictions = aligned("binary_accuracy", y_true, y_pred)
    return _hits(equal(labels, cast(predictions > threshold, labels.dtype)))


def categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """1 where the largest prediction is that of the one-hot label, else 0.

    >>> print(tf.keras.metrics.categorical_accuracy([[0.0, 1.0]], [[0.3, 0.7]]).numpy())
    [1.]
    """
    labels, predictions = aligned("categorical_accuracy", y_true, y_pred)
    return _hits(equal(argmax(labels, -1), argmax(predictions, -1)))


def sparse_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """1 where the largest prediction is that of the integer label, else 0.

    >>> print(tf.keras.metrics.sparse_categorical_accuracy([1], [[0.3, 0.7]]).numpy())
    [1.]
    """
    predictions = tensor(y_pred)
    labels = class_labels("sparse_categorical_accuracy", y_true, predictions)
    return _hits(equal(cast(labels, "int64"), argmax(predictions, -1)))


def top_k_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike, k: int = 5) -> Tensor:
    """1 where the class of the one-hot label is among the `k` with the largest predictions, else 0.

    >>> print(tf.keras.metrics.top_k_categorical_accuracy([[0, 1, 0]], [[0.5, 0.3, 0.2]], k=2).numpy())
    [1.]
    """
    labels, predictions = aligned("top_k_categorical_accuracy", y_true, y_pred)
    return _among_the_best(argmax(labels, -1), predictions, k)


def sparse_top_k_categorical_accuracy(
    y_true: TensorLike, y_pred: TensorLike, k: int = 5, from_sorted_ids: bool = False
) -> Tensor:
    """1 where the class of the integer label is among the `k` with the largest predictions, else 0.

    Classes that tie with the last of the `k` count as among them.

    Args:
        y_true: labels (...) or (..., 1).
        y_pred: (..., classes); with `from_sorted_ids` classes in falling order of preference, of which the first `k` count.
        k: at least 1.
        from_sorted_ids: see above.

    >>> print(tf.keras.metrics.sparse_top_k_categorical_accuracy([1], [[0.5, 0.3, 0.2]], k=2).numpy())
    [1.]
    """
    predictions = tensor(y_pred) if from_sorted_ids else as_predictions(y_pred)
    labels = class_labels("sparse_top_k_categorical_accuracy", y_true, predictions)
    if not from_sorted_ids:
        return _among_the_best(labels, predictions, k)
    return _hits(reduce_any(equal(cast(labels, predictions.dtype)[..., None], predictions[..., : _checked(k)]), -1))


def _among_the_best(labels: Tensor, predictions: Tensor, k: int) -> Tensor:
    """Hits: fewer than `k` predictions are larger than that of the label, which must be finite."""
    place = one_hot(cast(labels, "int64"), predictions.shape[-1], on_value=True, off_value=False, dtype="bool")
    own = reduce_max(where(place, predictions, -float("inf")), -1, keepdims=True)
    larger = reduce_sum(cast(greater(predictions, own), "int32"), -1)
    return _hits(logical_and(larger < _checked(k), is_finite(own[..., 0])))


def _checked(k: int) -> int:
    if int(k) != k or k < 1:
        raise ValueError(f"top-k accuracy: k must be an int of at least 1, found {k!r}.")
    return int(k)


def _hits(right: Tensor) -> Tensor:
    return cast(right, floatx())


# Classes ---------------------------------------------------------------------------------------------------------------


@metric(accuracy, better="up")
class Accuracy(PlainMetric):
    """Share of predictions that equal their labels.

    >>> print(tf.keras.metrics.Accuracy()([1, 2, 3, 4], [1, 2, 0, 4]).numpy())
    0.75
    """


@metric(binary_accuracy, better="up")
class BinaryAccuracy(PlainMetric):
    """Share of predictions on the right side of `threshold`, which lies in (0, 1).

    >>> print(tf.keras.metrics.BinaryAccuracy(threshold=0.5)([[1], [0], [1]], [[0.9], [0.2], [0.4]]).numpy().round(4))
    0.6667
    """

    name: str | None = "binary_accuracy"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            raise ValueError(f"BinaryAccuracy: threshold must lie between 0 and 1, found {self.threshold}.")
        super().__post_init__()


@metric(categorical_accuracy, better="up")
class CategoricalAccuracy(PlainMetric):
    """Share of rows whose largest prediction is that of the one-hot label.

    >>> print(tf.keras.metrics.CategoricalAccuracy()([[0, 1], [1, 0]], [[0.1, 0.9], [0.2, 0.8]]).numpy())
    0.5
    """


@metric(sparse_categorical_accuracy, better="up")
class SparseCategoricalAccuracy(PlainMetric):
    """Share of rows whose largest prediction is that of the integer label.

    >>> print(tf.keras.metrics.SparseCategoricalAccuracy()([1, 0], [[0.1, 0.9], [0.2, 0.8]]).numpy())
    0.5
    """


@metric(top_k_categorical_accuracy, better="up")
class TopKCategoricalAccuracy(FunctionMetric):
    """Share of rows whose one-hot label is among the `k` largest predictions.

    >>> print(tf.keras.metrics.TopKCategoricalAccuracy(k=2)([[0, 0, 1]], [[0.1, 0.5, 0.4]]).numpy())
    1.0
    """

    k: int = 5
    name: str | None = "top_k_categorical_accuracy"
    dtype: Any = None

    def __post_init__(self) -> None:
        self.k = _checked(self.k)
        super().__post_init__()


@metric(sparse_top_k_categorical_accuracy, better="up")
class SparseTopKCategoricalAccuracy(TopKCategoricalAccuracy):
    """Share of rows whose integer label is among the `k` largest. Options as in `sparse_top_k_categorical_accuracy`.

    >>> print(tf.keras.metrics.SparseTopKCategoricalAccuracy(k=2)([2, 0], [[0.1, 0.5, 0.4], [0.1, 0.5, 0.4]]).numpy())
    0.5
    """

    name: str | None = "sparse_top_k_categorical_accuracy"
    from_sorted_ids: bool = False


_STATE = ("true_positives", "false_positives", "false_negatives", "intermediate_weights")
_AVERAGES = (None, "micro", "macro", "weighted")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


@catalogue.add()
class FBetaScore(Metric):
    """(1 + beta**2) precision recall / (beta**2 precision + recall): recall counts beta times as much as precision.

    Args:
        average: None for one score for each class; 'micro' counts all classes together; 'macro' is the mean of the classes,
            'weighted' that weighted by how often a class occurs.
        beta: > 0.
        threshold: in (0, 1], above which a prediction is positive. None: the largest of a row is.

    Raises:
        ValueError: for an option out of range.

    Source: van Rijsbergen (1979), Information Retrieval, chapter 7.

    >>> metric = tf.keras.metrics.FBetaScore(beta=2.0, threshold=0.5)
    >>> print(metric([[1, 0], [1, 1]], [[0.9, 0.6], [0.2, 0.9]]).numpy().round(3))
    [0.556 0.833]
    """

    _direction = "up"
    true_positives: Variable

    def __init__(
        self,
        average: str | None = None,
        beta: float = 1.0,
        threshold: float | None = None,
        name: str | None = "fbeta_score",
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(dtype, name)
        if average not in _AVERAGES:
            raise ValueError(f"Invalid `average` argument value. Expected one of: {_AVERAGES}. Received: average={average!r}")
        if not (_is_number(beta) and beta > 0):
            raise ValueError(f"Invalid `beta` argument value. It should be a number > 0. Received: beta={beta!r}")
        if threshold is not None and not (_is_number(threshold) and 0 < threshold <= 1):
            raise ValueError(
                "Invalid `threshold` argument value. It should be None or a number with 0 < threshold <= 1. Received: "
                f"threshold={threshold!r}"
            )
        self.average, self.beta = average, float(beta)
        self.threshold = None if threshold is None else float(threshold)

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> None:
        """Let a batch enter: 0 and 1 as labels, scores as predictions, both (n, classes)."""
        known = self.true_positives.shape[-1] if self.variables and self.average != "micro" else None
        labels, predictions = as_columns(type(self).__name__, y_true, as_floats(y_pred, self.dtype), known)
        weights = spread_weights(1.0 if sample_weight is None else sample_weight, labels)
        chosen = cast(self._chosen(predictions), self.dtype)
        if not self.variables:
            shape = () if self.average == "micro" else (predictions.shape[-1],)
            for name in _STATE:
                setattr(self, name, self.add_variable(shape, "zeros", name=name))
        counts = (chosen * labels, chosen * (1.0 - labels), (1.0 - chosen) * labels, labels)
        for name, count in zip(_STATE, counts, strict=True):
            getattr(self, name).assign_add(reduce_sum(count * weights, None if self.average == "micro" else 0))

    def _chosen(self, predictions: Tensor) -> Tensor:
        if self.threshold is not None:
            return predictions > self.threshold
        return logical_and(predictions >= reduce_max(predictions, -1, keepdims=True), abs(predictions) > 1e-9)

    def result(self) -> Tensor:
        """The score, or one for each class; 0 before any batch."""
        if not self.variables:
            return as_floats(0.0, self.dtype)
        hits, surplus, missing, occurrences = (getattr(self, name).read_value() for name in _STATE)
        precision = hits / (hits + surplus + epsilon())
        recall = hits / (hits + missing + epsilon())
        square = self.beta**2
        score = (1.0 + square) * precision * recall / (square * precision + recall + epsilon())
        if self.average == "weighted":
            return reduce_sum(score * occurrences / (reduce_sum(occurrences) + epsilon()))
        return score if self.average is None else reduce_mean(score)


@catalogue.add()
class F1Score(FBetaScore):
    """2 precision recall / (precision + recall). Arguments as in `FBetaScore`, without beta.

    >>> metric = tf.keras.metrics.F1Score(threshold=0.5)
    >>> print(metric([[1, 0], [1, 1]], [[0.9, 0.6], [0.2, 0.9]]).numpy().round(3))
    [0.667 0.667]
    """

    def __init__(
        self, average: str | None = None, threshold: float | None = None, name: str | None = "f1_score", dtype: DTypeLike = None
    ) -> None:
        super().__init__(average, 1.0, threshold, name, dtype)


hide_imports(globals())
