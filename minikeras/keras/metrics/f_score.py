"""F-scores: precision and recall of classes in one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import Tensor, Variable
from ...functions.elementwise import abs, cast, logical_and
from ...functions.reductions import reduce_max, reduce_mean, reduce_sum
from ...types import TensorLike
from ..config import epsilon
from ..losses.alignment import as_columns, as_floats, spread_weights
from .metric import Metric, catalogue

_STATE = ("true_positives", "false_positives", "false_negatives", "intermediate_weights")
_AVERAGES = (None, "micro", "macro", "weighted")


def _is_number(value: Any) -> bool:
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
    _configured: tuple[str, ...] = ("average", "beta", "threshold")
    true_positives: Variable

    def __init__(
        self,
        average: str | None = None,
        beta: float = 1.0,
        threshold: float | None = None,
        name: str | None = "fbeta_score",
        dtype: Any = None,
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
        """Which predictions are positive."""
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

    _configured = ("average", "threshold")

    def __init__(
        self, average: str | None = None, threshold: float | None = None, name: str | None = "f1_score", dtype: Any = None
    ) -> None:
        super().__init__(average, 1.0, threshold, name, dtype)
