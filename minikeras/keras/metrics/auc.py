"""Area under a curve of rates, as a Riemann sum between the points that many thresholds give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core import Tensor
from ...errors import ShapeError
from ...files import limits
from ...functions.elementwise import clip_by_value, divide_no_nan, log, logical_and, maximum, minimum, sigmoid, where
from ...functions.operands import beside
from ...functions.reductions import reduce_mean, reduce_sum
from ...types import TensorLike
from ..config import epsilon
from ..losses.alignment import as_floats
from .confusion import Counts, ThresholdMetric
from .metric import catalogue

_CURVES = ("ROC", "PR", "PRGAIN")
_SUMMATIONS = ("interpolation", "minoring", "majoring")


@catalogue.add()
class AUC(ThresholdMetric):
    """Area under the curve of true against false positives (ROC), or of precision against recall (PR).

    Args:
        num_thresholds: > 1, evenly spaced in [0, 1]; more are more exact.
        curve: 'ROC', 'PR' or 'PRGAIN' (precision and recall gain).
        summation_method: between two points: 'interpolation' (the trapezoid; for PR interpolated counts), 'minoring' (the lower
            height) or 'majoring' (the higher).
        thresholds: in [0, 1], in place of evenly spaced ones; 0 and 1 are added.
        multi_label: one curve for each column of (n, labels), whose areas are averaged; else all values make one curve.
        num_labels: with `multi_label`, the number of columns, if the state is to be made before the first batch.
        label_weights: one weight for each column: of the areas with `multi_label`, of the counts without.
        from_logits: predictions are logits; else they are limited to [0, 1].

    Raises:
        ValueError: for an option that does not exist, or options that exclude each other.

    Source: Davis and Goadrich (2006), The Relationship Between Precision-Recall and ROC Curves, section 4; Flach and Kull
    (2015), Precision-Recall-Gain Curves, equation (2).

    >>> print(tf.keras.metrics.AUC(num_thresholds=3)([0, 0, 1, 1], [0.0, 0.5, 0.3, 0.9]).numpy())
    0.75
    """

    _direction = "up"
    _configured = (
        "num_thresholds", "curve", "summation_method", "multi_label", "num_labels", "label_weights", "from_logits",
    )  # fmt: skip

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: Any = None,
        thresholds: Sequence[float] | None = None,
        multi_label: bool = False,
        num_labels: int | None = None,
        label_weights: Any = None,
        from_logits: bool = False,
    ) -> None:
        inner = _inner_thresholds(num_thresholds, thresholds)
        given = None if thresholds is None else inner
        super().__init__([-epsilon(), *inner, 1.0 + epsilon()], Counts._fields, name, dtype, given=given)
        self.num_thresholds = len(self.thresholds)
        self.curve = _one_of("curve", curve.upper(), _CURVES)
        self.summation_method = _one_of("summation method", summation_method.lower(), _SUMMATIONS)
        if num_labels and not multi_label:
            raise ValueError("`num_labels` is needed only when `multi_label` is True.")
        self.multi_label, self.num_labels, self.from_logits = multi_label, num_labels, from_logits
        self.label_weights = None if label_weights is None else [float(weight) for weight in label_weights]
        if num_labels or not multi_label:
            self._make_state(*([num_labels] if num_labels else []))

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> None:
        """Let a batch enter; (n, labels) with `multi_label`."""
        scores = as_floats(y_pred, self.dtype)
        scores = sigmoid(scores) if self.from_logits else clip_by_value(scores, 0.0, 1.0)
        labels, scores, weights = self._entries(y_true, scores, sample_weight)
        self._check_columns(scores)
        if self.multi_label and not self.variables:
            self._make_state(scores.shape[-1])
        if self.label_weights is not None and not self.multi_label:
            weights = weights * beside(weights, self.label_weights, weights.dtype)
        self._count(labels, scores, weights, by_label=self.multi_label)

    def _check_columns(self, scores: Tensor) -> None:
        """Refuse columns that are not those of the state or of the weights of labels."""
        known = self._state("true_positives").shape[1] if self.multi_label and self.variables else None
        columns = scores.shape[-1] if scores.ndim else 0
        if self.multi_label and (scores.ndim != 2 or known not in (None, columns)):
            raise ShapeError(
                f"AUC: with multi_label=True y_pred must have shape (n, {known or 'labels'}), found {scores.shape}."
            )
        if self.label_weights is not None and len(self.label_weights) != columns:
            raise ShapeError(f"AUC: {len(self.label_weights)} label_weights do not fit y_pred of shape {scores.shape}.")

    def result(self) -> Tensor:
        """The area, 0 before any batch."""
        if not self.variables:
            return as_floats(0.0, self.dtype)
        terms = self._interpolated() if (self.curve, self.summation_method) == ("PR", "interpolation") else self._riemann()
        if not self.multi_label:
            return reduce_sum(terms)
        areas = reduce_sum(terms, 0)
        if self.label_weights is None:
            return reduce_mean(areas)
        weights = beside(areas, self.label_weights, areas.dtype)
        return divide_no_nan(reduce_sum(areas * weights), reduce_sum(weights))

    def _riemann(self) -> Tensor:
        """Width times height of the strips between neighbouring points."""
        x, y = self._points()
        left, right = y[:-1], y[1:]
        if self.summation_method == "interpolation":
            heights = (left + right) / 2.0
        else:
            heights = (minimum if self.summation_method == "minoring" else maximum)(left, right)
        return (x[:-1] - x[1:]) * heights

    def _points(self) -> tuple[Tensor, Tensor]:
        """The curve, from its right end to its left."""
        recall = self._quotient("true_positives", "false_negatives")
        if self.curve == "ROC":
            return self._quotient("false_positives", "true_negatives"), recall
        if self.curve == "PR":
            return recall, self._quotient("true_positives", "false_positives")
        tp, fp, tn, fn = (self._state(field).read_value() for field in Counts._fields)
        odds = divide_no_nan(tp + fn, tn + fp)
        none = tp == 0.0
        recall_gain = where(none, 0.0, 1.0 - odds * divide_no_nan(fn, tp))
        return maximum(recall_gain, 0.0), where(none, 1.0, 1.0 - odds * divide_no_nan(fp, tp))

    def _interpolated(self) -> Tensor:
        """Strips under precision and recall, the true positives linear in the positives between two points.

        Davis and Goadrich: with slope s = dtp / dp and tp = intercept + s p, the integral of tp / p over a strip is
        s (dtp + intercept log(p_left / p_right)), divided by all that are positive.
        """
        tp, fp, _, fn = (self._state(field).read_value() for field in Counts._fields)
        p = tp + fp
        dtp = tp[:-1] - tp[1:]
        slope = divide_no_nan(dtp, maximum(p[:-1] - p[1:], 0.0))
        intercept = tp[1:] - slope * p[1:]
        ratio = where(logical_and(p[:-1] > 0.0, p[1:] > 0.0), divide_no_nan(p[:-1], maximum(p[1:], 0.0)), 1.0)
        return divide_no_nan(slope * (dtp + intercept * log(ratio)), maximum(tp[1:] + fn[1:], 0.0))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | ({} if self._given is None else {"thresholds": self._given})


def _inner_thresholds(number: int, thresholds: Sequence[float] | None) -> list[float]:
    if thresholds is None:
        if number <= 1:
            raise ValueError(f"Argument `num_thresholds` must be an integer > 1. Received: num_thresholds={number}")
        limits.spend_state((number,), 100, "thresholds")
        return [i / (number - 1) for i in range(1, number - 1)]
    wrong = [one for one in thresholds if not 0 <= one <= 1]
    if wrong:
        raise ValueError(f"Threshold values must be in [0, 1]. Received: {wrong}")
    return sorted(float(one) for one in thresholds)


def _one_of(what: str, given: str, known: Sequence[str]) -> str:
    if given not in known:
        raise ValueError(f'Invalid AUC {what} value: "{given}". Expected values are {list(known)}')
    return given
