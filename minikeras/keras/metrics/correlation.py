"""Correlations of labels and predictions: of their ups and downs, and of their values."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...functions.elementwise import square
from ...functions.reductions import reduce_mean, reduce_std, reduce_variance
from ...types import TensorLike
from ..config import epsilon
from ..losses.alignment import aligned
from .metric import catalogue
from .reductions import MeanMetricWrapper


def pearson_correlation(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Tensor:
    """Covariance divided by both standard deviations, along an axis: 1 for a rising line, nan if either is constant.

    Source: Pearson (1895), Note on Regression and Inheritance.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.pearson_correlation([[0.0, 1.0, 0.5]], [[0.1, 0.9, 0.5]]).numpy().round(4))
    [1.]
    """
    labels, predictions = aligned("pearson_correlation", y_true, y_pred)
    return _covariance(labels, predictions, axis) / (reduce_std(labels, axis) * reduce_std(predictions, axis))


def concordance_correlation(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Tensor:
    """2 covariance / (both variances + squared difference of means), along an axis: 1 only for equal values.

    Source: Lin (1989), A Concordance Correlation Coefficient to Evaluate Reproducibility.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.concordance_correlation([[0.0, 1.0, 0.5]], [[0.1, 0.9, 0.5]]).numpy().round(4))
    [0.9756]
    """
    labels, predictions = aligned("concordance_correlation", y_true, y_pred)
    shift = square(reduce_mean(labels, axis) - reduce_mean(predictions, axis))
    spread = reduce_variance(labels, axis) + reduce_variance(predictions, axis) + shift
    return 2.0 * _covariance(labels, predictions, axis) / (spread + epsilon())


def _covariance(a: Tensor, b: Tensor, axis: int) -> Tensor:
    return reduce_mean((a - reduce_mean(a, axis, True)) * (b - reduce_mean(b, axis, True)), axis)


@catalogue.add()
class PearsonCorrelation(MeanMetricWrapper):
    """The mean of Pearson's correlation along `axis`.

    Args:
        name, dtype: as in `Metric`.
        axis: -1 correlates within a row; 0 the rows of a batch, which gives no rows to weight.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.PearsonCorrelation()([[0.0, 1.0, 0.5]], [[0.1, 0.9, 0.5]]).numpy().round(4))
    1.0
    """

    _direction = "up"

    def __init__(self, name: str | None = "pearson_correlation", dtype: Any = None, axis: int = -1) -> None:
        super().__init__(pearson_correlation, name, dtype, axis=axis)


@catalogue.add()
class ConcordanceCorrelation(MeanMetricWrapper):
    """The mean of Lin's concordance correlation along `axis`. Arguments as in `PearsonCorrelation`.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.ConcordanceCorrelation()([[0.0, 1.0, 0.5]], [[0.1, 0.9, 0.5]]).numpy().round(4))
    0.9756
    """

    _direction = "up"

    def __init__(self, name: str | None = "concordance_correlation", dtype: Any = None, axis: int = -1) -> None:
        super().__init__(concordance_correlation, name, dtype, axis=axis)
