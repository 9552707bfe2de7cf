"""True and false positives and negatives at thresholds, the rates that are made of them, and the area under the curve of two
rates: a Riemann sum between the points that many thresholds give.

All thresholds are counted at once by one matrix product: which predictions lie above which threshold, times their weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...absent import hide_imports
from ...core import Tensor, Variable, convert_to_tensor, namespace, to_device
from ...errors import ShapeError
from ...files import limits
from ...functions import cast, clip_by_value, divide_no_nan, greater, log, logical_and, matmul, maximum, minimum, sigmoid, where
from ...functions.creation import one_hot
from ...functions.operands import beside
from ...functions.ordering import top_k as largest
from ...functions.reductions import reduce_any, reduce_max, reduce_mean, reduce_sum
from ...functions.shaping import broadcast_to, reshape, stack, transpose
from ...types import DTypeLike, TensorLike
from ..config import epsilon
from ..losses.loss import aligned, as_floats, spread_weights
from .metric import Metric, catalogue

Thresholds = float | Sequence[float] | None

_AT_ONCE = 2**22
"""Comparisons of predictions with thresholds that are held in memory at a time."""


class Counts(NamedTuple):
    """Weights of predictions by label and side of each threshold: (thresholds,), or (thresholds, labels)."""

    true_positives: Tensor
    false_positives: Tensor
    true_negatives: Tensor
    false_negatives: Tensor


class ThresholdMetric(Metric):
    """Base of what counts predictions above thresholds.

    Args:
        thresholds: in any order; `given` is how the user gave them, for `get_config`.
        counted: the names of the fields of `Counts` that are kept as state.
        top_k: only the k largest predictions of a row can be positive.
        class_id: count this class alone, of predictions (..., classes).
    """

    def __init__(
        self,
        thresholds: Sequence[float],
        counted: Sequence[str],
        name: str | None,
        dtype: DTypeLike,
        top_k: int | None = None,
        class_id: int | None = None,
        given: Thresholds = None,
    ) -> None:
        super().__init__(dtype, name)
        self.thresholds = list(thresholds)
        self.top_k, self.class_id = top_k, class_id
        self._given = given.tolist() if isinstance(given, np.ndarray | np.generic) else given
        self._counted = tuple(counted)
        self._levels = convert_to_tensor(self.thresholds, self.dtype)

    def _make_state(self, *labels: int) -> None:
        for field in self._counted:
            setattr(self, field, self.add_variable((len(self.thresholds), *labels), "zeros", name=field))

    def _state(self, field: str) -> Variable:
        return getattr(self, field)

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> None:
        """Let a batch enter; arguments as in `Metric`. Label 0 is negative, all else positive."""
        self._count(*self._entries(y_true, y_pred, sample_weight))

    def _entries(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike) -> tuple[Tensor, Tensor, Tensor]:
        """Labels as 1 (positive) or 0, predictions and weights: three Tensors of one shape."""
        labels, predictions = aligned(type(self).__name__, y_true, as_floats(y_pred, self.dtype))
        weights = spread_weights(1.0 if sample_weight is None else sample_weight, predictions)
        if self.top_k is not None:
            k = self.top_k
            if not predictions.ndim or not 1 <= k <= predictions.shape[-1]:
                raise ShapeError(
                    f"{type(self).__name__}: top_k={k} of predictions of shape {predictions.shape}; expected (n, classes), "
                    "classes >= k >= 1."
                )
            classes = predictions.shape[-1]
            places = one_hot(largest(predictions, k)[1], classes, on_value=True, off_value=False, dtype="bool")
            predictions = where(reduce_any(places, -2), predictions, -float("inf"))
        labels, weights = cast(labels != 0.0, self.dtype), broadcast_to(weights, predictions.shape)
        if self.class_id is None:
            return labels, predictions, weights
        if predictions.ndim < 2 or not 0 <= self.class_id < predictions.shape[-1]:
            raise ShapeError(
                f"{type(self).__name__}: there is no class {self.class_id} in y_pred of shape {predictions.shape}; expected "
                "(n, classes) and a class_id in [0, classes)."
            )
        return labels[..., self.class_id], predictions[..., self.class_id], weights[..., self.class_id]

    def _count(self, labels: Tensor, predictions: Tensor, weights: Tensor, by_label: bool = False) -> None:
        """Add the counts; those of each column alone with `by_label`."""
        levels = Tensor(to_device(self._levels.array, namespace(predictions.array)))
        counts = count_at_thresholds(labels, predictions, weights, levels, by_label)
        for field in self._counted:
            self._state(field).assign_add(getattr(counts, field))

    def _quotient(self, part: str, rest: str) -> Tensor:
        """part / (part + rest), 0 where nothing was counted."""
        first = self._state(part).read_value()
        return divide_no_nan(first, first + self._state(rest))

    def _for_thresholds(self, values: Tensor) -> Tensor:
        return values[0] if len(self.thresholds) == 1 else values

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return config | {"thresholds": self._given} if "thresholds" in config else config


def count_at_thresholds(labels: Tensor, predictions: Tensor, weights: Tensor, thresholds: Tensor, by_label: bool) -> Counts:
    """The counts of a batch of labels 1 and 0; those of each column of (n, labels) alone with `by_label`."""
    positive, negative = labels * weights, (1.0 - labels) * weights
    columns = predictions.shape[-1] if by_label else 1
    rows = [reshape(transpose(x) if by_label else x, (columns, -1)) for x in (positive, negative, predictions)]
    sides, scores = stack(rows[:2], -1), rows[2]
    total = reduce_sum(sides, -2, keepdims=True)
    step = max(1, _AT_ONCE // (columns * len(thresholds)))
    above = broadcast_to(total * 0.0, (columns, len(thresholds), 2))
    for start in range(0, scores.shape[1], step):
        part = slice(start, start + step)
        passed = cast(greater(scores[:, None, part], reshape(thresholds, (-1, 1))), scores.dtype)
        above = above + matmul(passed, sides[:, part])
    below = total - above
    shape = (-1, columns) if by_label else (-1,)
    parts = (above[..., 0], above[..., 1], below[..., 1], below[..., 0])
    return Counts(*(reshape(transpose(part), shape) for part in parts))


def checked_thresholds(thresholds: Thresholds, top_k: int | None = None) -> list[float]:
    """Thresholds as a list, each in [0, 1]. None stands for 0.5, or for any of the `top_k` largest."""
    if thresholds is None:
        return [0.5 if top_k is None else -float("inf")]
    given: Any = (
        thresholds if isinstance(thresholds, Sequence | np.ndarray) and not isinstance(thresholds, str) else [thresholds]
    )
    try:
        given = [float(one) for one in given]
    except (TypeError, ValueError):
        raise ValueError(
            f"`thresholds` must be a number in [0, 1] or a list of them. Received: thresholds={thresholds!r}."
        ) from None
    wrong = [one for one in given if not 0 <= one <= 1]
    if wrong or not given:
        raise ValueError(f"Threshold values must be in [0, 1]. Received: {wrong if wrong else 'none'}")
    return given


# One count -------------------------------------------------------------------------------------------------------------


class _OneCount(ThresholdMetric):
    """One of the four counts, kept as `accumulator`."""

    _field: str

    def __init__(self, thresholds: Thresholds = None, name: str | None = None, dtype: DTypeLike = None) -> None:
        super().__init__(checked_thresholds(thresholds), [self._field], name, dtype, given=thresholds)
        self.accumulator = self.add_variable((len(self.thresholds),), "zeros", name="accumulator")

    def _state(self, field: str) -> Variable:
        return self.accumulator

    def result(self) -> Tensor:
        """The count: one number for a single threshold, else one for each."""
        return self._for_thresholds(self.accumulator.read_value())


@catalogue.add()
class TruePositives(_OneCount):
    """Weight of positive labels whose prediction lies above the threshold.

    Args:
        thresholds: a number in [0, 1] or a list of them; 0.5 if None.

    >>> print(tf.keras.metrics.TruePositives()([1, 1, 0], [0.9, 0.2, 0.7]).numpy())
    1.0
    """

    _field = "true_positives"


@catalogue.add()
class FalsePositives(_OneCount):
    """Weight of negative labels whose prediction lies above the threshold. Arguments as in `TruePositives`.

    >>> print(tf.keras.metrics.FalsePositives()([1, 1, 0], [0.9, 0.2, 0.7]).numpy())
    1.0
    """

    _field = "false_positives"


@catalogue.add()
class TrueNegatives(_OneCount):
    """Weight of negative labels whose prediction does not lie above the threshold. Arguments as in `TruePositives`.

    >>> print(tf.keras.metrics.TrueNegatives()([1, 1, 0], [0.9, 0.2, 0.7]).numpy())
    0.0
    """

    _field = "true_negatives"


@catalogue.add()
class FalseNegatives(_OneCount):
    """Weight of positive labels whose prediction does not lie above the threshold. Arguments as in `TruePositives`.

    >>> print(tf.keras.metrics.FalseNegatives()([1, 1, 0], [0.9, 0.2, 0.7]).numpy())
    1.0
    """

    _field = "false_negatives"


# Precision and recall --------------------------------------------------------------------------------------------------


class _Ratio(ThresholdMetric):
    """true positives / (true positives + another count)."""

    _direction = "up"
    _other: str

    def __init__(
        self,
        thresholds: Thresholds = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(
            checked_thresholds(thresholds, top_k), ["true_positives", self._other], name, dtype, top_k, class_id, thresholds
        )
        self._make_state()

    def result(self) -> Tensor:
        """The share, 0 before any count: one number for a single threshold, else one for each."""
        return self._for_thresholds(self._quotient("true_positives", self._other))


@catalogue.add()
class Precision(_Ratio):
    """Of what is predicted to be positive, the share that is: tp / (tp + fp).

    Args:
        thresholds: a number in [0, 1] or a list of them; 0.5 if None, or with `top_k` any prediction among them.
        top_k: only the k largest predictions of a row count as positive.
        class_id: measure this class alone, of (n, classes).

    >>> print(tf.keras.metrics.Precision()([1, 1, 0, 0], [0.9, 0.2, 0.7, 0.1]).numpy())
    0.5
    """

    _other = "false_positives"


@catalogue.add()
class Recall(_Ratio):
    """Of what is positive, the share that is predicted to be: tp / (tp + fn). Arguments as in `Precision`.

    >>> print(tf.keras.metrics.Recall()([1, 1, 0, 0], [0.9, 0.8, 0.7, 0.1]).numpy())
    1.0
    """

    _other = "false_negatives"


# One rate under a condition on another ---------------------------------------------------------------------------------


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

    num_thresholds: int
    class_id: int | None
    name: Any
    dtype: Any

    def __post_init__(self) -> None:
        value, num_thresholds = getattr(self, self._kept), self.num_thresholds
        if not 0 <= value <= 1:
            raise ValueError(f"Argument `{self._kept}` must be in the range [0, 1]. Received: {self._kept}={value}")
        if num_thresholds <= 0:
            raise ValueError(f"Argument `num_thresholds` must be an integer > 0. Received: num_thresholds={num_thresholds}")
        limits.spend_state((num_thresholds,), 100, "thresholds")
        even = [i / (num_thresholds - 1) for i in range(num_thresholds)] if num_thresholds > 1 else [0.5]
        super().__init__(even, Counts._fields, self.name, self.dtype, class_id=self.class_id)
        self._make_state()

    def result(self) -> Tensor:
        kept, wanted = self._quotient(*_RATES[self._kept]), self._quotient(*_RATES[self._wanted])
        return reduce_max(where(kept >= getattr(self, self._kept), wanted, 0.0))


@catalogue.add()
@dataclass(eq=False, repr=False)
class SensitivityAtSpecificity(_RateAtRate):
    """The largest sensitivity tp / (tp + fn) at thresholds where the specificity tn / (tn + fp) is at least a value.

    Args:
        specificity: in [0, 1].
        num_thresholds: evenly spaced in [0, 1].
        class_id: measure this class alone, of (n, classes).

    >>> print(tf.keras.metrics.SensitivityAtSpecificity(0.5)([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8]).numpy())
    0.5
    """

    _wanted, _kept = "sensitivity", "specificity"
    specificity: float
    num_thresholds: int = 200
    class_id: int | None = None
    name: str | None = None
    dtype: Any = None


@catalogue.add()
@dataclass(eq=False, repr=False)
class SpecificityAtSensitivity(_RateAtRate):
    """The largest specificity at thresholds where the sensitivity is at least a value, in [0, 1]; the rest as above.

    >>> print(tf.keras.metrics.SpecificityAtSensitivity(0.5)([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8]).numpy().round(4))
    0.6667
    """

    _wanted, _kept = "specificity", "sensitivity"
    sensitivity: float
    num_thresholds: int = 200
    class_id: int | None = None
    name: str | None = None
    dtype: Any = None


@catalogue.add()
@dataclass(eq=False, repr=False)
class PrecisionAtRecall(_RateAtRate):
    """The largest precision tp / (tp + fp) at thresholds where the recall tp / (tp + fn) is at least a value.

    >>> print(tf.keras.metrics.PrecisionAtRecall(0.5)([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8]).numpy())
    0.5
    """

    _wanted, _kept = "precision", "recall"
    recall: float
    num_thresholds: int = 200
    class_id: int | None = None
    name: str | None = None
    dtype: Any = None


@catalogue.add()
@dataclass(eq=False, repr=False)
class RecallAtPrecision(_RateAtRate):
    """The largest recall at thresholds where the precision is at least a value, in [0, 1]; the rest as above.

    >>> print(tf.keras.metrics.RecallAtPrecision(0.5)([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8]).numpy())
    1.0
    """

    _wanted, _kept = "recall", "precision"
    precision: float
    num_thresholds: int = 200
    class_id: int | None = None
    name: str | None = None
    dtype: Any = None


# Area under a curve ----------------------------------------------------------------------------------------------------

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
        dtype: DTypeLike = None,
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


hide_imports(globals(), "Counts", "ThresholdMetric", "checked_thresholds", "count_at_thresholds")
