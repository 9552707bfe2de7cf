"""Errors and similarities of numbers, averaged over batches."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...functions.elementwise import sqrt, square
from ...types import TensorLike
from .. import losses
from ..losses.alignment import aligned, as_floats
from .metric import catalogue
from .reductions import Mean, MeanMetricWrapper


@catalogue.add("mse", "MSE")
class MeanSquaredError(MeanMetricWrapper):
    """The mean of (y_pred - y_true)**2.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.MeanSquaredError()([[0.0, 2.0]], [[1.0, 4.0]]).numpy())
    2.5
    """

    _direction = "down"

    def __init__(self, name: str | None = "mean_squared_error", dtype: Any = None) -> None:
        super().__init__(losses.mean_squared_error, name, dtype)


@catalogue.add("rmse", "RMSE")
class RootMeanSquaredError(Mean):
    """sqrt of the mean of (y_pred - y_true)**2 over all batches.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.RootMeanSquaredError()([[0.0, 2.0]], [[3.0, 1.0]]).numpy().round(4))
    2.2361
    """

    _direction = "down"

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> None:  # type: ignore[override]
        """Let a batch enter; arguments as in `MeanMetricWrapper`."""
        labels, predictions = aligned("RootMeanSquaredError", as_floats(y_true, self.dtype), as_floats(y_pred, self.dtype))
        super().update_state(square(predictions - labels), sample_weight)

    def result(self) -> Tensor:
        """The root of the mean, 0 before any value."""
        return sqrt(super().result())


@catalogue.add("mae", "MAE")
class MeanAbsoluteError(MeanMetricWrapper):
    """The mean of |y_pred - y_true|.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.MeanAbsoluteError()([[0.0, 2.0]], [[1.0, 4.0]]).numpy())
    1.5
    """

    _direction = "down"

    def __init__(self, name: str | None = "mean_absolute_error", dtype: Any = None) -> None:
        super().__init__(losses.mean_absolute_error, name, dtype)


@catalogue.add("mape", "MAPE")
class MeanAbsolutePercentageError(MeanMetricWrapper):
    """The mean of 100 |y_pred - y_true| / |y_true|.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.MeanAbsolutePercentageError()([[2.0, 4.0]], [[1.0, 4.0]]).numpy())
    25.0
    """

    _direction = "down"

    def __init__(self, name: str | None = "mean_absolute_percentage_error", dtype: Any = None) -> None:
        super().__init__(losses.mean_absolute_percentage_error, name, dtype)


@catalogue.add("msle", "MSLE")
class MeanSquaredLogarithmicError(MeanMetricWrapper):
    """The mean of (log(1 + y_pred) - log(1 + y_true))**2.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.MeanSquaredLogarithmicError()([[0.0]], [[1.0]]).numpy().round(4))
    0.4805
    """

    _direction = "down"

    def __init__(self, name: str | None = "mean_squared_logarithmic_error", dtype: Any = None) -> None:
        super().__init__(losses.mean_squared_logarithmic_error, name, dtype)


def cosine_similarity(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Tensor:
    """cos of the angle between labels and predictions along an axis: 1 for one direction. The loss is its negative.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.cosine_similarity([[0.0, 2.0]], [[0.0, 5.0]]).numpy())
    [1.]
    """
    return -losses.cosine_similarity(y_true, y_pred, axis)


@catalogue.add()
class CosineSimilarity(MeanMetricWrapper):
    """The mean of cos of the angle between labels and predictions along `axis`.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.CosineSimilarity()([[0.0, 2.0]], [[0.0, 5.0]]).numpy())
    1.0
    """

    _direction = "up"

    def __init__(self, name: str | None = "cosine_similarity", dtype: Any = None, axis: int = -1) -> None:
        super().__init__(cosine_similarity, name, dtype, axis=axis)


@catalogue.add("logcosh", "log_cosh")
class LogCoshError(MeanMetricWrapper):
    """The mean of log(cosh(y_pred - y_true)).

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.LogCoshError()([[0.0]], [[1.0]]).numpy().round(4))
    0.4338
    """

    _direction = "down"

    def __init__(self, name: str | None = "logcosh", dtype: Any = None) -> None:
        super().__init__(losses.log_cosh, name, dtype)
