"""The coefficient of determination: the share of the labels' variance that predictions explain."""

from __future__ import annotations

import warnings
from typing import Any

from ...core import Tensor
from ...functions.elementwise import cast, is_inf, square, where
from ...functions.reductions import reduce_any, reduce_mean, reduce_sum
from ...functions.shaping import broadcast_to
from ...types import TensorLike
from ..losses.alignment import as_columns, as_floats, spread_weights
from .metric import Metric, catalogue

_AGGREGATIONS = (None, "uniform_average", "variance_weighted_average")


@catalogue.add()
class R2Score(Metric):
    """1 - sum((y_true - y_pred)**2) / sum((y_true - mean(y_true))**2), for each output.

    Args:
        class_aggregation: 'uniform_average' of the outputs, 'variance_weighted_average', or None for one score for each.
        num_regressors: p > 0 gives the adjusted score 1 - (1 - R2)(n - 1)/(n - p - 1), n the number of rows
            whose weight is not 0.

    Raises:
        ValueError: for an option out of range.

    >>> print(tf.keras.metrics.R2Score()([[1.0], [4.0], [3.0]], [[2.0], [4.0], [4.0]]).numpy().round(4))
    0.5714
    """

    _direction = "up"
    _configured = ("class_aggregation", "num_regressors")

    def __init__(
        self,
        class_aggregation: str | None = "uniform_average",
        num_regressors: int = 0,
        name: str | None = "r2_score",
        dtype: Any = None,
    ) -> None:
        super().__init__(dtype, name)
        if class_aggregation not in _AGGREGATIONS:
            raise ValueError(
                f"Invalid value for argument `class_aggregation`. Expected one of {_AGGREGATIONS}. Received: "
                f"{class_aggregation!r}"
            )
        if num_regressors < 0:
            raise ValueError(f"Invalid value for argument `num_regressors`. Expected a value >= 0. Received: {num_regressors}")
        self.class_aggregation, self.num_regressors = class_aggregation, num_regressors
        self.num_samples = self.add_variable((), "zeros", name="num_samples")

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> None:
        """Let a batch enter; labels and predictions are (n, outputs)."""
        known = self.count.shape[0] if self._built else None
        labels, predictions = as_columns("R2Score", y_true, as_floats(y_pred, self.dtype), known)
        weights = spread_weights(1.0 if sample_weight is None else sample_weight, labels)
        weights = broadcast_to(weights, labels.shape)
        if not self._built:
            self._build(predictions.shape[-1])
        weighted = labels * weights
        self.sum.assign_add(reduce_sum(weighted, 0))
        self.squared_sum.assign_add(reduce_sum(labels * weighted, 0))
        self.total_mse.assign_add(reduce_sum(square(labels - predictions) * weights, 0))
        self.count.assign_add(reduce_sum(weights, 0))
        self.num_samples.assign_add(reduce_sum(cast(reduce_any(weights != 0.0, -1), self.dtype)))

    @property
    def _built(self) -> bool:
        return len(self.variables) > 1

    def _build(self, outputs: int) -> None:
        self.squared_sum = self.add_variable((outputs,), name="squared_sum")
        self.sum = self.add_variable((outputs,), name="sum")
        self.total_mse = self.add_variable((outputs,), name="residual")
        self.count = self.add_variable((outputs,), name="count")

    def result(self) -> Tensor:
        """The score; nan before any batch, 0 for an output that is constant and not met."""
        if not self._built:
            return as_floats(float("nan"), self.dtype)
        sum_, count = self.sum.read_value(), self.count.read_value()
        total = self.squared_sum - sum_ * (sum_ / count)
        raw = 1.0 - self.total_mse / total
        scores = where(is_inf(raw), 0.0, raw)
        if self.class_aggregation == "uniform_average":
            scores = reduce_mean(scores)
        elif self.class_aggregation == "variance_weighted_average":
            scores = reduce_sum(total * scores) / reduce_sum(total)
        return self._adjusted(scores) if self.num_regressors else scores

    def _adjusted(self, score: Tensor) -> Tensor:
        rows, regressors = float(self.num_samples.numpy()), self.num_regressors
        if not rows:
            return score
        if regressors >= rows - 1:
            warnings.warn(
                f"R2Score: {regressors} regressors and {rows:.0f} rows leave no degree of freedom; falling back to the "
                "score that is not adjusted.",
                stacklevel=3,
            )
            return score
        return 1.0 - (1.0 - score) * ((rows - 1.0) / (rows - regressors - 1.0))
