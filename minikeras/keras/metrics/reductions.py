"""Sums and means of values over batches: what nearly all metrics are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, dataclass_transform

from ...core import Tensor
from ...distribute.replica import current_part
from ...functions.elementwise import divide_no_nan
from ...functions.reductions import reduce_mean, reduce_sum
from ...functions.shaping import broadcast_to
from ...types import TensorLike
from .. import losses
from ..losses.alignment import as_floats, combine_weights, mask_of, spread_weights
from ..losses.loss import with_function
from .metric import Metric, catalogue


def row_sums(values: Tensor, sample_weight: TensorLike, reduce: Callable[..., Tensor]) -> tuple[Tensor, Any]:
    """The weighted sum of one value for each row, and the sum of weights (the number of rows without weights).

    `reduce`, `reduce_mean` or `reduce_sum`, makes the values (n, ...) of a row one; a scalar is one row.
    """
    if sample_weight is None:
        shape = values._array.shape
        if len(shape) > 1:
            values = reduce(values, list(range(1, len(shape))))
        return reduce_sum(values), float(shape[0]) if shape else 1.0
    weights = as_floats(sample_weight, values.dtype)
    if 0 < weights.ndim < values.ndim:
        values = reduce(values, list(range(weights.ndim, values.ndim)))
    weights = broadcast_to(spread_weights(weights, values), values.shape)
    weighted = values * weights
    if weighted.ndim > 1:
        others = list(range(1, weighted.ndim))
        weighted, weights = reduce(weighted, others), reduce(weights, others)
    return reduce_sum(weighted), reduce_sum(weights)


@catalogue.add()
class Mean(Metric):
    """The weighted mean of values: sum(weight * value) / sum(weight), the mean of each row first.

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
        """Let values of any shape enter; the first axis is that of the rows, weights as in `Metric`."""
        values, part = as_floats(values, self.dtype), current_part()
        total, count = row_sums(values, sample_weight, reduce_mean)
        if part is not None and not values.ndim and sample_weight is None:  # a mean over rows, which counts by their number
            total, count = total * part.share, count * part.share
        self.total.assign_add(total)
        self.count.assign_add(count)

    def result(self) -> Tensor:
        """total / count, 0 before any value."""
        return divide_no_nan(self.total.read_value(), self.count.read_value())


@catalogue.add()
class Sum(Metric):
    """The weighted sum of all values.

    >>> print(tf.keras.metrics.Sum()([1.0, 3.0]).numpy())
    4.0
    """

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_variable((), "zeros", name="total")

    def update_state(self, values: TensorLike, sample_weight: TensorLike = None) -> None:
        """Let values enter; arguments as in `Mean`."""
        self.total.assign_add(row_sums(as_floats(values, self.dtype), sample_weight, reduce_sum)[0])

    def result(self) -> Tensor:
        """The total."""
        return self.total.read_value()


class MeanMetricWrapper(Mean):
    """The mean of a function of labels and predictions.

    Args:
        fn: `fn(y_true, y_pred, **options)`, one value for each row. Of a loss, less is better.
        name: that of the function if None.
        options: handed to `fn`.

    >>> def worst(y_true, y_pred):
    ...     return tf.reduce_max(tf.abs(y_true - y_pred), axis=-1)
    >>> metric = tf.keras.metrics.MeanMetricWrapper(worst)
    >>> print(metric(tf.constant([[1.0, 2.0]]), tf.constant([[1.0, 5.0]])).numpy())
    3.0
    """

    def __init__(self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **options: Any) -> None:
        super().__init__(name or getattr(fn, "name", None) or getattr(fn, "__name__", None), dtype)
        self._fn, self._options = fn, options
        is_loss = isinstance(fn, losses.Loss) or getattr(losses, getattr(fn, "__name__", ""), None) is fn
        if self._direction is None and is_loss:
            self._direction = "down"

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> None:  # type: ignore[override]
        values = self._fn(y_true, y_pred, **self._given())
        super().update_state(values, combine_weights(sample_weight, mask_of(y_pred), values))

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; a subclass knows its function."""
        own = {"fn": self._fn} if type(self) is MeanMetricWrapper else {}
        return {**super().get_config(), **own, **self._given()}

    def _given(self) -> dict[str, Any]:
        """What the function is given beside labels and predictions."""
        return self._options

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Metric:
        """A metric from `get_config`, in which a function may stand as its configuration."""
        return cls(**with_function(config))


class FunctionMetric(MeanMetricWrapper):
    """Base of the metrics that `metric` makes of functions: what a class declares are arguments of its constructor.

    Beside `name` and `dtype`, which each class has where Keras has them, these are the options of the function.
    """

    _function: ClassVar[Callable[..., Any]]

    def __post_init__(self) -> None:
        super().__init__(self._function, self.name, self.dtype)

    def _given(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._configured}


@dataclass(eq=False, repr=False)
class PlainMetric(FunctionMetric):
    """Base of the metrics of functions without options."""

    name: str | None = None
    dtype: Any = None


M = TypeVar("M", bound=type[FunctionMetric])


@dataclass_transform(eq_default=False)
def metric(fn: Callable[..., Tensor], *names: str, better: str = "down") -> Callable[[M], M]:
    """A decorator that makes a class the mean of a function, and enters it under its own and further names."""

    def made(cls: M) -> M:
        kind: Any = dataclass(eq=False, repr=False)(cls)
        kind._function, kind._direction = staticmethod(fn), better
        entered: M = catalogue.add(*names)(kind)
        return entered

    return made
