"""The best of one rate under a condition on another: sensitivity at a specificity, precision at a recall, and the reverse."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...files import limits
from ...functions.elementwise import where
from ...functions.reductions import reduce_max
from .confusion import Counts, ThresholdMetric
from .metric import catalogue

_RATES = {
    "sensitivity": ("true_positives", "false_negatives"),
    "recall": ("true_positives", "false_negatives"),
    "specificity": ("true_negatives", "false_positives"),
    "precision": ("true_positives", "false_positives"),
}
"""Each rate is the first count divided by the sum of both."""


class _RateAtRate(ThresholdMetric):
    """The largest `_wanted` among thresholds where `_kept` is at least a value."""

    _direction = "up"
    _wanted: str
    _kept: str

    def __init__(
        self, value: float, num_thresholds: int = 200, class_id: int | None = None, name: str | None = None, dtype: Any = None
    ) -> None:
        if not 0 <= value <= 1:
            raise ValueError(f"Argument `{self._kept}` must be in the range [0, 1]. Received: {self._kept}={value}")
        if num_thresholds <= 0:
            raise ValueError(f"Argument `num_thresholds` must be an integer > 0. Received: num_thresholds={num_thresholds}")
        limits.spend_state((num_thresholds,), 100, "thresholds")
        even = [i / (num_thresholds - 1) for i in range(num_thresholds)] if num_thresholds > 1 else [0.5]
        super().__init__(even, Counts._fields, name, dtype, class_id=class_id)
        self.value, self.num_thresholds = value, num_thresholds
        self._make_state()

    def result(self) -> Tensor:
        kept, wanted = self._quotient(*_RATES[self._kept]), self._quotient(*_RATES[self._wanted])
        return reduce_max(where(kept >= self.value, wanted, 0.0))

    def get_config(self) -> dict[str, Any]:
        own = {self._kept: self.value, "num_thresholds": self.num_thresholds, "class_id": self.class_id}
        return {**super().get_config(), **own}


@catalogue.add()
class SensitivityAtSpecificity(_RateAtRate):
    """The largest sensitivity tp / (tp + fn) at thresholds where the specificity tn / (tn + fp) is at least a value.

    Args:
        specificity: in [0, 1].
        num_thresholds: evenly spaced in [0, 1].
        class_id: measure this class alone, of (n, classes).
        name, dtype: as in `Metric`.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.SensitivityAtSpecificity(0.5)([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8]).numpy())
    0.5
    """

    _wanted, _kept = "sensitivity", "specificity"

    def __init__(
        self,
        specificity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(specificity, num_thresholds, class_id, name, dtype)


@catalogue.add()
class SpecificityAtSensitivity(_RateAtRate):
    """The largest specificity at thresholds where the sensitivity is at least a value, in [0, 1]; the rest as above.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.SpecificityAtSensitivity(0.5)([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8]).numpy().round(4))
    0.6667
    """

    _wanted, _kept = "specificity", "sensitivity"

    def __init__(
        self,
        sensitivity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(sensitivity, num_thresholds, class_id, name, dtype)


@catalogue.add()
class PrecisionAtRecall(_RateAtRate):
    """The largest precision tp / (tp + fp) at thresholds where the recall tp / (tp + fn) is at least a value.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.PrecisionAtRecall(0.5)([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8]).numpy())
    0.5
    """

    _wanted, _kept = "precision", "recall"

    def __init__(
        self, recall: float, num_thresholds: int = 200, class_id: int | None = None, name: str | None = None, dtype: Any = None
    ) -> None:
        super().__init__(recall, num_thresholds, class_id, name, dtype)


@catalogue.add()
class RecallAtPrecision(_RateAtRate):
    """The largest recall at thresholds where the precision is at least a value, in [0, 1]; the rest as above.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.RecallAtPrecision(0.5)([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8]).numpy())
    1.0
    """

    _wanted, _kept = "recall", "precision"

    def __init__(
        self,
        precision: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(precision, num_thresholds, class_id, name, dtype)
