"""Errors, cross-entropies, hinges, similarities, correlations and the coefficient of determination, averaged over batches."""

from __future__ import annotations

from ...absent import hide_imports
from ...core import Tensor, warn_caller
from ...functions import broadcast_to, cast, is_inf, sqrt, square, tensor, where
from ...functions.reductions import reduce_any, reduce_mean, reduce_std, reduce_sum, reduce_variance
from ...types import DTypeLike, TensorLike
from .. import losses
from ..config import epsilon
from ..losses.loss import aligned, as_columns, as_floats, class_labels, classes_last, combine_weights, spread_weights
from .metric import Mean, Metric, PlainMetric, catalogue, metric


@metric(losses.mean_squared_error, "mse", "MSE")
class MeanSquaredError(PlainMetric):
    """The mean of (y_pred - y_true)**2.

    >>> print(tf.keras.metrics.MeanSquaredError()([[0.0, 2.0]], [[1.0, 4.0]]).numpy().round(4))
    2.5
    """


@catalogue.add("rmse", "RMSE")
class RootMeanSquaredError(Mean):
    """sqrt of the mean of (y_pred - y_true)**2 over all batches.

    >>> print(tf.keras.metrics.RootMeanSquaredError()([[0.0, 2.0]], [[3.0, 1.0]]).numpy().round(4))
    2.2361
    """

    _direction = "down"

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: DTypeLike = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> None:  # type: ignore[override]
        """Let a batch enter; arguments as in `MeanMetricWrapper`."""
        labels, predictions = aligned("RootMeanSquaredError", as_floats(y_true, self.dtype), as_floats(y_pred, self.dtype))
        super().update_state(square(predictions - labels), sample_weight)

    def result(self) -> Tensor:
        """The root of the mean, 0 before any value."""
        return sqrt(super().result())


@metric(losses.mean_absolute_error, "mae", "MAE")
class MeanAbsoluteError(PlainMetric):
    """The mean of |y_pred - y_true|.

    >>> print(tf.keras.metrics.MeanAbsoluteError()([[0.0, 2.0]], [[1.0, 4.0]]).numpy().round(4))
    1.5
    """


@metric(losses.mean_absolute_percentage_error, "mape", "MAPE")
class MeanAbsolutePercentageError(PlainMetric):
    """The mean of 100 |y_pred - y_true| / |y_true|.

    >>> print(tf.keras.metrics.MeanAbsolutePercentageError()([[2.0, 4.0]], [[1.0, 4.0]]).numpy().round(4))
    25.0
    """


@metric(losses.mean_squared_logarithmic_error, "msle", "MSLE")
class MeanSquaredLogarithmicError(PlainMetric):
    """The mean of (log(1 + y_pred) - log(1 + y_true))**2.

    >>> print(tf.keras.metrics.MeanSquaredLogarithmicError()([[0.0]], [[1.0]]).numpy().round(4))
    0.4805
    """


def cosine_similarity(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Tensor:
    """cos of the angle between labels and predictions along an axis: 1 for one direction. The loss is its negative.

    >>> print(tf.keras.metrics.cosine_similarity([[0.0, 2.0]], [[0.0, 5.0]]).numpy())
    [1.]
    """
    return -losses.cosine_similarity(y_true, y_pred, axis)


@metric(cosine_similarity, better="up")
class CosineSimilarity(PlainMetric):
    """The mean of `cosine_similarity`, along `axis`.

    >>> print(tf.keras.metrics.CosineSimilarity()([[0.0, 2.0]], [[0.0, 5.0]]).numpy().round(4))
    1.0
    """

    name: str | None = "cosine_similarity"
    axis: int = -1


@metric(losses.log_cosh, "logcosh", "log_cosh")
class LogCoshError(PlainMetric):
    """The mean of `losses.log_cosh`.

    >>> print(tf.keras.metrics.LogCoshError()([[0.0]], [[1.0]]).numpy().round(4))
    0.4338
    """

    name: str | None = "logcosh"


# Correlations ----------------------------------------------------------------------------------------------------------


def pearson_correlation(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Tensor:
    """Covariance divided by both standard deviations, along an axis: 1 for a rising line, nan if either is constant.

    Source: Pearson (1895), Note on Regression and Inheritance.

    >>> print(tf.keras.metrics.pearson_correlation([[0.0, 1.0, 0.5]], [[0.1, 0.9, 0.5]]).numpy().round(4))
    [1.]
    """
    labels, predictions = aligned("pearson_correlation", y_true, y_pred)
    return _covariance(labels, predictions, axis) / (reduce_std(labels, axis) * reduce_std(predictions, axis))


def concordance_correlation(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Tensor:
    """2 covariance / (both variances + squared difference of means), along an axis: 1 only for equal values.

    Source: Lin (1989), A Concordance Correlation Coefficient to Evaluate Reproducibility.

    >>> print(tf.keras.metrics.concordance_correlation([[0.0, 1.0, 0.5]], [[0.1, 0.9, 0.5]]).numpy().round(4))
    [0.9756]
    """
    labels, predictions = aligned("concordance_correlation", y_true, y_pred)
    shift = square(reduce_mean(labels, axis) - reduce_mean(predictions, axis))
    spread = reduce_variance(labels, axis) + reduce_variance(predictions, axis) + shift
    return 2.0 * _covariance(labels, predictions, axis) / (spread + epsilon())


def _covariance(a: Tensor, b: Tensor, axis: int) -> Tensor:
    return reduce_mean((a - reduce_mean(a, axis, True)) * (b - reduce_mean(b, axis, True)), axis)


@metric(pearson_correlation, better="up")
class PearsonCorrelation(PlainMetric):
    """The mean of `pearson_correlation` along `axis`: -1 correlates within a row, 0 the rows of a batch (no rows to weight).

    >>> print(tf.keras.metrics.PearsonCorrelation()([[1.0, 2.0, 3.0]], [[2.0, 4.0, 6.0]]).numpy().round(4))
    1.0
    """

    name: str | None = "pearson_correlation"
    axis: int = -1


@metric(concordance_correlation, better="up")
class ConcordanceCorrelation(PlainMetric):
    """The mean of `concordance_correlation`. Arguments as in `PearsonCorrelation`.

    >>> print(tf.keras.metrics.ConcordanceCorrelation()([[1.0, 2.0, 3.0]], [[2.0, 3.0, 4.0]]).numpy().round(4))
    0.5714
    """

    name: str | None = "concordance_correlation"
    axis: int = -1


# Cross-entropies, divergences, hinges ------------------------------------------------------------------------------------


@metric(losses.binary_crossentropy, "bce", "BCE")
class BinaryCrossentropy(PlainMetric):
    """The mean of `losses.binary_crossentropy`; options as there.

    >>> print(tf.keras.metrics.BinaryCrossentropy()([[1.0, 0.0]], [[0.9, 0.4]]).numpy().round(4))
    0.3081
    """

    name: str | None = "binary_crossentropy"
    from_logits: bool = False
    label_smoothing: float = 0.0


@metric(losses.categorical_crossentropy, "cce", "CCE")
class CategoricalCrossentropy(PlainMetric):
    """The mean of `losses.categorical_crossentropy`; options as there.

    >>> print(tf.keras.metrics.CategoricalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]]).numpy().round(4))
    0.6931
    """

    name: str | None = "categorical_crossentropy"
    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1


@metric(losses.sparse_categorical_crossentropy, "scce")
class SparseCategoricalCrossentropy(PlainMetric):
    """The mean of `losses.sparse_categorical_crossentropy`; options as there. Rows of the ignored class do not count.

    >>> print(tf.keras.metrics.SparseCategoricalCrossentropy()([1], [[0.5, 0.5]]).numpy().round(4))
    0.6931
    """

    name: str | None = "sparse_categorical_crossentropy"
    from_logits: bool = False
    ignore_class: int | None = None
    axis: int = -1

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> None:  # type: ignore[override]
        if self.ignore_class is not None:
            predictions = classes_last(str(self.name), tensor(y_pred), self.axis)
            counts = as_floats(class_labels(str(self.name), y_true, predictions) != self.ignore_class, self.dtype)
            sample_weight = combine_weights(sample_weight, counts, counts)
        super().update_state(y_true, y_pred, sample_weight)


@metric(losses.kl_divergence, "kld", "KLD", "kullback_leibler_divergence")
class KLDivergence(PlainMetric):
    """The mean of `losses.kl_divergence`.

    >>> print(tf.keras.metrics.KLDivergence()([[0.5, 0.5]], [[0.25, 0.75]]).numpy().round(4))
    0.1438
    """


@metric(losses.poisson)
class Poisson(PlainMetric):
    """The mean of `losses.poisson`.

    >>> print(tf.keras.metrics.Poisson()([[1.0, 2.0]], [[1.0, 1.0]]).numpy().round(4))
    1.0
    """


@metric(losses.hinge)
class Hinge(PlainMetric):
    """The mean of `losses.hinge`.

    >>> print(tf.keras.metrics.Hinge()([[1.0, -1.0]], [[0.5, 0.0]]).numpy().round(4))
    0.75
    """


@metric(losses.squared_hinge)
class SquaredHinge(PlainMetric):
    """The mean of `losses.squared_hinge`.

    >>> print(tf.keras.metrics.SquaredHinge()([[1.0, -1.0]], [[0.5, 0.0]]).numpy().round(4))
    0.625
    """


@metric(losses.categorical_hinge)
class CategoricalHinge(PlainMetric):
    """The mean of `losses.categorical_hinge`.

    >>> print(tf.keras.metrics.CategoricalHinge()([[0.0, 1.0]], [[0.6, 0.4]]).numpy().round(4))
    1.2
    """


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

    def __init__(
        self,
        class_aggregation: str | None = "uniform_average",
        num_regressors: int = 0,
        name: str | None = "r2_score",
        dtype: DTypeLike = None,
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
        labels, predictions = as_columns("R2Score", y_true, as_floats(y_pred, self.dtype), self._outputs)
        weights = spread_weights(1.0 if sample_weight is None else sample_weight, labels)
        weights = broadcast_to(weights, labels.shape)
        if self._outputs is None:
            outputs = predictions.shape[-1:]
            self.squared_sum = self.add_variable(outputs, name="squared_sum")
            self.sum = self.add_variable(outputs, name="sum")
            self.total_mse = self.add_variable(outputs, name="residual")
            self.count = self.add_variable(outputs, name="count")
        weighted = labels * weights
        self.sum.assign_add(reduce_sum(weighted, 0))
        self.squared_sum.assign_add(reduce_sum(labels * weighted, 0))
        self.total_mse.assign_add(reduce_sum(square(labels - predictions) * weights, 0))
        self.count.assign_add(reduce_sum(weights, 0))
        self.num_samples.assign_add(reduce_sum(cast(reduce_any(weights != 0.0, -1), self.dtype)))

    _outputs = property(lambda self: self.count.shape[0] if hasattr(self, "count") else None)

    def result(self) -> Tensor:
        """The score; nan before any batch, 0 for an output that is constant and not met."""
        if self._outputs is None:
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
            warn_caller(
                f"R2Score: {regressors} regressors and {rows:.0f} rows leave no degree of freedom; falling back to the "
                "score that is not adjusted."
            )
            return score
        return 1.0 - (1.0 - score) * ((rows - 1.0) / (rows - regressors - 1.0))


hide_imports(globals())
