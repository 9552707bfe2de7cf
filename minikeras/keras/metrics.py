"""Metrics: numbers that accumulate over batches.

Key idea: a metric is a few Variables and three methods. Nearly all are means: of a function of labels and predictions, weighted
by rows. State is float, so a metric costs two additions a batch. Next: `training.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import Tensor, Variable, convert_to_tensor
from ..errors import ShapeError
from ..functions.elementwise import cast, equal
from ..functions.publish import tensor
from ..functions.reductions import argmax, reduce_mean, reduce_sum
from ..functions.shaping import broadcast_to, squeeze
from ..module import snake_case
from ..ops.arithmetic import divide_no_nan
from ..types import TensorLike
from . import initializers, losses
from .catalogue import Catalogue
from .config import floatx
from .losses.alignment import aligned, as_floats, spread_weights
from .names import auto_name

catalogue = Catalogue("metric")


class Metric:
    """Base class: `update_state` for each batch, `result` at any time, `reset_state` between epochs.

    Args:
        dtype: of the state; the default float dtype if None.
        name: shown in logs.

    >>> import minikeras as tf
    >>> class Count(tf.keras.metrics.Metric):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.rows = self.add_variable((), "zeros", name="rows")
    ...     def update_state(self, y_true, y_pred, sample_weight=None):
    ...         self.rows.assign_add(float(len(y_true)))
    ...     def result(self):
    ...         return self.rows.value()
    >>> print(Count()([1, 2], [1, 2]).numpy())
    2.0
    """

    _direction: str | None = None
    """'up' or 'down': which way is better, if one is."""

    def __init__(self, dtype: Any = None, name: str | None = None) -> None:
        self.name = name or auto_name(snake_case(type(self).__name__))
        self.dtype = dtype or floatx()
        self._initial: list[tuple[Variable, Tensor]] = []

    def add_variable(
        self, shape: Any, initializer: Any, dtype: Any = None, aggregation: str = "sum", name: str | None = None
    ) -> Variable:
        """A state Variable; `reset_state` gives it its first value again."""
        first = initializers.get(initializer)(shape, dtype or self.dtype)
        variable = Variable(first, trainable=False, name=name)
        self._initial.append((variable, first))
        return variable

    add_weight = add_variable

    @property
    def variables(self) -> list[Variable]:
        """The state."""
        return [variable for variable, _ in self._initial]

    def reset_state(self) -> None:
        """Forget all batches."""
        for variable, first in self._initial:
            variable._array = first._array

    reset_states = reset_state

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Let a batch enter. Override it."""
        raise NotImplementedError(f"{type(self).__name__} must implement update_state.")

    def result(self) -> Any:
        """The value over all batches so far. Override it."""
        raise NotImplementedError(f"{type(self).__name__} must implement result.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Update and return the result."""
        self.update_state(*args, **kwargs)
        return self.result()

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"name": self.name, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Metric:
        """A metric from `get_config`."""
        return cls(**config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def weighted_sum(values: Tensor, sample_weight: TensorLike) -> tuple[Tensor, Any]:
    """Sum of weighted values, and sum of weights (the number of values without weights)."""
    if sample_weight is None:
        return reduce_sum(values), float(values.shape.num_elements())
    weights = as_floats(sample_weight, values.dtype)
    if 0 < weights.ndim < values.ndim:
        values = reduce_mean(values, list(range(weights.ndim, values.ndim)))
    weights = broadcast_to(spread_weights(weights, values), values.shape)
    return reduce_sum(values * weights), reduce_sum(weights)


@catalogue.add()
class Mean(Metric):
    """The weighted mean of all values.

    >>> import minikeras as tf
    >>> metric = tf.keras.metrics.Mean()
    >>> metric.update_state([1.0, 3.0])
    >>> metric.update_state([5.0])
    >>> print(metric.result().numpy())
    3.0
    """

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_variable((), "zeros", name="total")
        self.count = self.add_variable((), "zeros", name="count")

    def update_state(self, values: TensorLike, sample_weight: TensorLike = None) -> None:
        """Let values enter."""
        total, count = weighted_sum(as_floats(values, self.dtype), sample_weight)
        self.total.assign_add(total)
        self.count.assign_add(count)

    def result(self) -> Tensor:
        """total / count, 0 before any value."""
        return divide_no_nan(self.total.value(), self.count.value())  # type: ignore[no-any-return]


@catalogue.add()
class Sum(Metric):
    """The weighted sum of all values.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.Sum()([1.0, 3.0]).numpy())
    4.0
    """

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_variable((), "zeros", name="total")

    def update_state(self, values: TensorLike, sample_weight: TensorLike = None) -> None:
        """Let values enter."""
        self.total.assign_add(weighted_sum(as_floats(values, self.dtype), sample_weight)[0])

    def result(self) -> Tensor:
        """The total."""
        return self.total.value()


class MeanMetricWrapper(Mean):
    """The mean of a function of labels and predictions.

    Args:
        fn: `fn(y_true, y_pred, **options)`, one value for each row.
        name, dtype: as in `Metric`.
        options: handed to `fn`.
    """

    def __init__(self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **options: Any) -> None:
        super().__init__(name or getattr(fn, "__name__", None), dtype)
        self._fn = fn
        self._options = options

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> None:  # type: ignore[override]
        """Let a batch enter."""
        super().update_state(self._fn(y_true, y_pred, **self._options), sample_weight)

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype, **self._options}


# Accuracies --------------------------------------------------------------------------------------------------------------


def accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """1 where labels and predictions are equal.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.Accuracy()([1, 2], [1, 3]).numpy())
    0.5
    """
    labels, predictions = aligned("accuracy", y_true, y_pred)
    return cast(equal(labels, predictions), floatx())


def binary_accuracy(y_true: TensorLike, y_pred: TensorLike, threshold: float = 0.5) -> Tensor:
    """Share of elements of each row on the right side of a threshold.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.binary_accuracy([[1.0], [0.0]], [[0.7], [0.6]]).numpy())
    [1. 0.]
    """
    labels, predictions = aligned("binary_accuracy", y_true, y_pred)
    return reduce_mean(cast(equal(labels, cast(predictions > threshold, labels.dtype)), floatx()), -1)


def categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """1 where the largest prediction is that of the one-hot label.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.categorical_accuracy([[0.0, 1.0]], [[0.3, 0.7]]).numpy())
    [1.]
    """
    labels, predictions = aligned("categorical_accuracy", y_true, y_pred)
    return cast(equal(argmax(labels, -1), argmax(predictions, -1)), floatx())


def sparse_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """1 where the largest prediction is that of the integer label.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.sparse_categorical_accuracy([1], [[0.3, 0.7]]).numpy())
    [1.]
    """
    predictions, labels = tensor(y_pred), convert_to_tensor(y_true)
    if labels.ndim == predictions.ndim and labels.shape[-1:] == (1,):
        labels = squeeze(labels, -1)
    if tuple(labels.shape) != tuple(predictions.shape[:-1]):
        raise ShapeError(
            f"sparse_categorical_accuracy: y_true has shape {labels.shape}, expected one integer for each row of y_pred "
            f"{predictions.shape}. For one-hot labels use categorical_accuracy."
        )
    return cast(equal(cast(labels, "int64"), argmax(predictions, -1)), floatx())


@catalogue.add()
class Accuracy(MeanMetricWrapper):
    """Share of predictions that equal their labels."""

    _direction = "up"

    def __init__(self, name: str | None = "accuracy", dtype: Any = None) -> None:
        super().__init__(accuracy, name, dtype)


@catalogue.add()
class BinaryAccuracy(MeanMetricWrapper):
    """Share of predictions on the right side of `threshold`.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.BinaryAccuracy()([[1.0], [0.0]], [[0.7], [0.6]]).numpy())
    0.5
    """

    _direction = "up"

    def __init__(self, name: str | None = "binary_accuracy", dtype: Any = None, threshold: float = 0.5) -> None:
        if not 0 < threshold < 1:
            raise ValueError(f"BinaryAccuracy: threshold must lie between 0 and 1, found {threshold}.")
        super().__init__(binary_accuracy, name, dtype, threshold=threshold)


@catalogue.add()
class CategoricalAccuracy(MeanMetricWrapper):
    """Share of rows whose largest prediction is that of the one-hot label.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.CategoricalAccuracy()([[0.0, 1.0]], [[0.3, 0.7]]).numpy())
    1.0
    """

    _direction = "up"

    def __init__(self, name: str | None = "categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(categorical_accuracy, name, dtype)


@catalogue.add()
class SparseCategoricalAccuracy(MeanMetricWrapper):
    """Share of rows whose largest prediction is that of the integer label.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.SparseCategoricalAccuracy()([1], [[0.3, 0.7]]).numpy())
    1.0
    """

    _direction = "up"

    def __init__(self, name: str | None = "sparse_categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(sparse_categorical_accuracy, name, dtype)


def _mean_of(fn: Callable[..., Any], class_name: str, *names: str) -> type[MeanMetricWrapper]:
    """The metric that is the mean of a loss."""

    def __init__(self: Any, name: str | None = fn.__name__, dtype: Any = None, **options: Any) -> None:
        MeanMetricWrapper.__init__(self, fn, name, dtype, **options)

    summary = f"The mean of `losses.{fn.__name__}` over all rows; options are handed to it."
    contents = {"__init__": __init__, "__doc__": summary, "__module__": __name__, "_direction": "down"}
    made = type(class_name, (MeanMetricWrapper,), contents)
    return catalogue.add(*names)(made)  # type: ignore[no-any-return]


MeanSquaredError = _mean_of(losses.mean_squared_error, "MeanSquaredError", "mse", "MSE")
MeanAbsoluteError = _mean_of(losses.mean_absolute_error, "MeanAbsoluteError", "mae", "MAE")
BinaryCrossentropy = _mean_of(losses.binary_crossentropy, "BinaryCrossentropy", "bce")
CategoricalCrossentropy = _mean_of(losses.categorical_crossentropy, "CategoricalCrossentropy", "cce")
SparseCategoricalCrossentropy = _mean_of(losses.sparse_categorical_crossentropy, "SparseCategoricalCrossentropy")


def get(identifier: Any) -> Any:
    """The `Metric` for a name, a function, a class or an object; a name given stays its name."""
    found = catalogue.get(identifier)
    if isinstance(identifier, str) and isinstance(found, Metric):
        found.name = identifier
    return found if found is None or isinstance(found, Metric) else MeanMetricWrapper(found)


TASKS = ("accuracy", "acc", "crossentropy", "ce")
"""Names whose meaning depends on the shapes of labels and predictions: see `for_task`."""


def for_task(identifier: str, y_true: Tensor, y_pred: Tensor) -> Metric:
    """What 'accuracy' and 'crossentropy' mean, told by the shapes: binary, sparse categorical or categorical.

    Binary if there is one prediction a row; sparse if the labels lack the axis of classes, or have one column.
    """
    binary = y_pred.ndim < 2 or y_pred.shape[-1] == 1
    sparse = y_true.ndim < y_pred.ndim or y_true.shape[-1] == 1
    kind = "binary" if binary else "sparse_categorical" if sparse else "categorical"
    measure = "accuracy" if identifier in ("accuracy", "acc") else "crossentropy"
    metric: Metric = catalogue.get(f"{kind}_{measure}")
    metric.name = identifier
    return metric
