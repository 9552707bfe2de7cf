"""Losses of numbers: squared, absolute, relative and robust errors, and the angle between vectors."""

from __future__ import annotations

import math
from typing import Any

from ...absent import hide_imports
from ...core import Tensor
from ...functions import abs, l2_normalize, log1p, maximum, negative_axis, reduce_mean, reduce_sum, softplus, square, where
from ...types import TensorLike
from ..config import epsilon
from .loss import FunctionLoss, PlainLoss, aligned, loss

# Functions -------------------------------------------------------------------------------------------------------------


def mean_squared_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean((y_pred - y_true)**2) over the last axis.

    >>> print(tf.keras.losses.mean_squared_error([[0.0, 2.0]], [[1.0, 4.0]]).numpy())
    [2.5]
    """
    labels, predictions = aligned("mean_squared_error", y_true, y_pred)
    difference = predictions - labels
    return reduce_mean(difference * difference, -1)


def mean_absolute_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(|y_pred - y_true|) over the last axis; the slope at 0 is 0.

    >>> print(tf.keras.losses.mean_absolute_error([[0.0, 2.0]], [[1.0, 4.0]]).numpy())
    [1.5]
    """
    labels, predictions = aligned("mean_absolute_error", y_true, y_pred)
    return reduce_mean(abs(predictions - labels), -1)


def mean_absolute_percentage_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """100 mean(|y_pred - y_true| / max(|y_true|, epsilon)) over the last axis.

    >>> print(tf.keras.losses.mean_absolute_percentage_error([[2.0, 4.0]], [[1.0, 4.0]]).numpy())
    [25.]
    """
    labels, predictions = aligned("mean_absolute_percentage_error", y_true, y_pred)
    return 100.0 * reduce_mean(abs((predictions - labels) / maximum(abs(labels), epsilon())), -1)


def mean_squared_logarithmic_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean((log(1 + y_pred) - log(1 + y_true))**2) over the last axis; numbers below epsilon count as epsilon.

    >>> print(tf.keras.losses.mean_squared_logarithmic_error([[0.0]], [[1.0]]).numpy().round(4))
    [0.4805]
    """
    labels, predictions = aligned("mean_squared_logarithmic_error", y_true, y_pred)
    return reduce_mean(square(log1p(maximum(predictions, epsilon())) - log1p(maximum(labels, epsilon()))), -1)


def cosine_similarity(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Tensor:
    """-sum(y_true y_pred) / (|y_true| |y_pred|) along an axis: -1 for one direction, 1 for opposite ones, 0 for a zero vector.

    >>> print(tf.keras.losses.cosine_similarity([[0.0, 2.0]], [[0.0, 5.0]]).numpy())
    [-1.]
    """
    labels, predictions = aligned("cosine_similarity", y_true, y_pred)
    place = negative_axis(axis, predictions.ndim, "cosine_similarity")
    least = epsilon() ** 2
    return -reduce_sum(l2_normalize(labels, place, least) * l2_normalize(predictions, place, least), place)


def huber(y_true: TensorLike, y_pred: TensorLike, delta: float = 1.0) -> Tensor:
    """mean of e**2 / 2 where |e| <= delta, else delta |e| - delta**2 / 2, for e = y_pred - y_true, over the last axis.

    Args:
        y_true, y_pred: of one shape.
        delta: > 0, where the parabola passes into a line.

    Source: Huber (1964), Robust Estimation of a Location Parameter.

    >>> print(tf.keras.losses.huber([[0.0, 0.0]], [[1.0, 3.0]]).numpy())
    [1.5]
    """
    if not delta > 0:
        raise ValueError(f"huber: delta must be > 0, found {delta}.")
    labels, predictions = aligned("huber", y_true, y_pred)
    error = predictions - labels
    size = abs(error)
    return reduce_mean(where(size <= delta, 0.5 * square(error), delta * size - 0.5 * delta**2), -1)


def log_cosh(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(log(cosh(y_pred - y_true))) over the last axis, without overflow.

    It is e**2 / 2 for small errors e and |e| - log 2 for large ones.

    >>> print(tf.keras.losses.log_cosh([[0.0]], [[1000.0]]).numpy().round(2))
    [999.31]
    """
    labels, predictions = aligned("log_cosh", y_true, y_pred)
    error = predictions - labels
    return reduce_mean(error + softplus(-2.0 * error) - math.log(2.0), -1)


# Classes ---------------------------------------------------------------------------------------------------------------


@loss(mean_squared_error, "mse", "MSE")
class MeanSquaredError(PlainLoss):
    """mean((y_pred - y_true)**2). reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.MeanSquaredError()([[0.0, 2.0]], [[1.0, 4.0]]).numpy().round(4))
    2.5
    """


@loss(mean_absolute_error, "mae", "MAE")
class MeanAbsoluteError(PlainLoss):
    """mean(|y_pred - y_true|). reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.MeanAbsoluteError()([[0.0, 2.0]], [[1.0, 4.0]]).numpy().round(4))
    1.5
    """


@loss(mean_absolute_percentage_error, "mape", "MAPE")
class MeanAbsolutePercentageError(PlainLoss):
    """100 mean(|y_pred - y_true| / |y_true|). reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.MeanAbsolutePercentageError()([[2.0, 4.0]], [[1.0, 4.0]]).numpy().round(4))
    25.0
    """


@loss(mean_squared_logarithmic_error, "msle", "MSLE")
class MeanSquaredLogarithmicError(PlainLoss):
    """mean((log(1 + y_pred) - log(1 + y_true))**2). reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.MeanSquaredLogarithmicError()([[0.0]], [[1.0]]).numpy().round(4))
    0.4805
    """


@loss(cosine_similarity)
class CosineSimilarity(FunctionLoss):
    """-cos of the angle between labels and predictions along `axis`. reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.CosineSimilarity()([[0.0, 2.0]], [[0.0, 5.0]]).numpy().round(4))
    -1.0
    """

    axis: int = -1
    reduction: str | None = "sum_over_batch_size"
    name: str | None = "cosine_similarity"
    dtype: Any = None


@loss(huber)
class Huber(FunctionLoss):
    """A parabola for errors up to `delta`, a line beyond. Options as in `huber`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.Huber(delta=1.0)([[0.0, 0.0]], [[0.5, 3.0]]).numpy())
    1.3125
    """

    delta: float = 1.0
    reduction: str | None = "sum_over_batch_size"
    name: str | None = "huber_loss"
    dtype: Any = None


@loss(log_cosh, "logcosh")
class LogCosh(PlainLoss):
    """mean(log(cosh(y_pred - y_true))). reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.LogCosh()([[0.0]], [[1.0]]).numpy().round(4))
    0.4338
    """


# Names that TensorFlow has beside the long ones.
mse = MSE = mean_squared_error
mae = MAE = mean_absolute_error
mape = MAPE = mean_absolute_percentage_error
msle = MSLE = mean_squared_logarithmic_error
logcosh = log_cosh

hide_imports(globals())
