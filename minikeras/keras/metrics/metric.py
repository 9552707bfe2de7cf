"""The base of all metrics: Variables that accumulate over batches, and are saved, restored and rolled back like weights; and
sums and means, which nearly all metrics are.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from ...core import Tensor, Variable, watched
from ...files import limits
from ...functions import broadcast_to, cast, divide_no_nan, reduce_mean, reduce_sum, static_shape
from ...module import snake_case
from ...ranks import rows_here
from ...types import DTypeLike, ShapeLike, TensorLike
from .. import initializers, losses
from ..arguments import Catalogue, as_call
from ..calls import context, mask_of, without_effects
from ..config import floatx, policy_of
from ..losses.loss import as_floats, combine_weights, gave_no_tensor, spread_weights, with_function
from ..names import auto_name
from ..weight import KerasVariable

catalogue = Catalogue("metric")
serialize = catalogue.serialize


class _Noted(threading.local):
    results: dict[int, tuple[Metric, Any]] | None = None


_noted = _Noted()


@contextlib.contextmanager
def noted_results() -> Iterator[dict[int, tuple[Metric, Any]]]:
    """Within the block results of metrics are noted: the metric by the key of the Tensor, and the name in a dict of results."""
    before, _noted.results = _noted.results, {}
    try:
        yield _noted.results
    finally:
        _noted.results = before


def result_of(noted: tuple[Metric, Any]) -> Any:
    """The present value of a result that was noted."""
    metric, name = noted
    return metric.result() if name is None else metric.result()[name]


def _noting(result: Callable[..., Any]) -> Callable[..., Any]:

    @functools.wraps(result)
    def noting(self: Metric, *arguments: Any, **options: Any) -> Any:
        found = result(self, *arguments, **options)
        if _noted.results is not None:
            for name, value in found.items() if isinstance(found, dict) else [(None, found)]:
                if isinstance(value, Tensor):
                    _noted.results[value.key] = self, name
        return found

    return noting


@watched
class Metric:
    """Base class: `update_state` for each batch, `result` at any time, `reset_state` between epochs.

    Args:
        dtype: of the state, or a policy, whose compute dtype it is; the default float dtype if None.
        name: shown in logs; the class name in snake case if None.

    Attributes:
        variables: the state: what `add_variable` made, other Variables in an attribute or in a list, tuple or dict there, and
            the state of metrics in such places.

    >>> class Count(tf.keras.metrics.Metric):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.rows = self.add_variable((), "zeros", name="rows")
    ...     def update_state(self, y_true, y_pred, sample_weight=None):
    ...         self.rows.assign_add(float(len(y_true)))
    ...     def result(self):
    ...         return self.rows.value
    >>> print(Count()([1, 2], [1, 2]).numpy())
    2.0
    """

    _direction: str | None = None
    """'up' or 'down': which way is better, if one is."""

    _configured: tuple[str, ...] = ()
    """Arguments of the constructor beside name and dtype, kept as attributes of the same names; see `Catalogue.add`."""

    _initial: tuple[tuple[Variable, Tensor], ...]
    _inner: tuple[Metric, ...]
    _containers: tuple[list[Any] | dict[Any, Any], ...]
    """Lists and dicts of state, to which more may be added."""

    def __init__(self, dtype: DTypeLike = None, name: str | None = None) -> None:
        self._initial, self._inner, self._containers = (), (), ()
        self.name: Any = name or auto_name(snake_case(type(self).__name__))
        self.dtype: str = floatx() if dtype is None else policy_of(dtype).compute_dtype

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "result" in vars(cls):
            cls.result = _noting(cls.result)  # type: ignore[method-assign]

    def __setattr__(self, name: str, value: Any) -> None:
        """Note Variables and metrics, also those in a list, tuple or dict; they are found again as state."""
        if name not in ("_initial", "_inner", "_containers"):
            has_state = self._note_within(value)
            if isinstance(value, (list, dict)) and (has_state or not value):
                self._containers += (value,)
        super().__setattr__(name, value)

    def _note_within(self, value: Any) -> bool:
        """Note the Variables and metrics in a value; True if there are any."""
        if isinstance(value, Variable):
            self._note(value, Tensor(value.array))
        elif isinstance(value, Metric):
            self._need_init()
            if all(value is not known for known in self._inner):
                self._inner += (value,)
        else:
            inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
            return any([self._note_within(one) for one in inside])
        return True

    def _note(self, variable: Variable, first: Tensor) -> None:
        self._need_init()
        if all(variable is not known for known, _ in self._initial):
            self._initial += ((variable, first),)

    def _need_init(self) -> None:
        if not hasattr(self, "_initial"):
            raise RuntimeError(f"{type(self).__name__}: call `super().__init__()` first in the `__init__()` method.")

    def add_variable(
        self,
        shape: ShapeLike = (),
        initializer: Any = None,
        dtype: DTypeLike = None,
        aggregation: str = "sum",
        name: str | None = None,
    ) -> Variable:
        """A state Variable; `reset_state` gives it its first value again.

        Args:
            shape: () for one number.
            initializer: by name or object, or the first value itself; zeros if None.
            dtype: that of the metric if None.
            aggregation: how the states of ranks become one, which each compute on a part of a batch: 'sum' adds up what all
                parts add, 'mean' or 'none' takes the mean of changes weighted by rows, 'only_first_replica' those of the first.
            name: of the Variable, as saved.
        """
        if isinstance(shape, str):
            raise TypeError(f"add_variable: the first argument is the shape, found {shape!r}. Write name={shape!r}.")
        self._need_init()
        limits.spend_state(static_shape(shape), 8, f"state of a metric {name or ''!r}")
        make = initializers.get("zeros" if initializer is None else initializer)
        first = cast(make(shape, dtype or self.dtype), dtype or self.dtype)
        path = context.path(self.name, name or "variable")
        variable = KerasVariable(first, trainable=False, name=name, aggregation=aggregation, path=path)
        self._note(variable, first)
        return variable

    add_weight = add_variable

    @property
    def variables(self) -> list[Variable]:
        """The state."""
        inner = self._metrics()
        own = [variable for variable, _ in self._initial]
        return own + [variable for metric in inner for variable in metric.variables] if inner else own

    def _metrics(self) -> tuple[Metric, ...]:
        """The metrics within, also those that were added to a list or dict since it was assigned."""
        self._need_init()
        for container in self._containers:
            self._note_within(container)
        return self._inner

    def checkpoint_children(self) -> Iterator[tuple[str, Any]]:
        """The state by name, in checkpoints."""
        names = [variable.name.removesuffix(":0") for variable in self.variables]
        for number, (name, variable) in enumerate(zip(names, self.variables, strict=True)):
            yield name if names.count(name) == 1 else f"{name}#{number}", variable

    def reset_state(self) -> None:
        """Forget all batches."""
        inner = self._metrics()
        for variable, first in self._initial:
            variable.assign(first)
        for metric in inner:
            metric.reset_state()

    def reset_states(self) -> None:
        """The same, by the name that it had before Keras 3."""
        self.reset_state()

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """Let a batch enter. Override it.

        Most metrics take labels, predictions and `sample_weight`: None, a number, or one weight for each row or value. If
        shapes do not fit they raise a ShapeError and stay as they were.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement update_state.")

    def result(self) -> Any:
        """The value over all batches so far. Override it."""
        raise NotImplementedError(f"{type(self).__name__} must implement result.")

    def stateless_update_state(self, metric_variables: Sequence[Any], *args: Any, **kwargs: Any) -> list[Tensor]:
        """The values of `variables` after `update_state`, had they held `metric_variables`; they stay as they are.

        >>> mean = tf.keras.metrics.Mean()
        >>> float(mean.stateless_result(mean.stateless_update_state([6.0, 2.0], 3.0))), float(mean.total)
        (3.0, 0.0)
        """
        return self._stateless(metric_variables, lambda: self.update_state(*args, **kwargs))[1][0]

    def stateless_result(self, metric_variables: Sequence[Any]) -> Any:
        """The `result`, had `variables` these values."""
        return self._stateless(metric_variables, self.result)[0]

    def stateless_reset_state(self) -> list[Tensor]:
        """The values of `variables` after `reset_state`; they stay as they are."""
        return self._stateless(self.variables, self.reset_state)[1][0]

    def _stateless(self, values: Sequence[Any], call: Callable[[], Any]) -> tuple[Any, list[list[Tensor]]]:
        result, after = without_effects(self.name, [("metric_variables", self.variables, values)], call)
        if len(after[0]) != len(self.variables):
            raise ValueError(f"{self.name}: the first batch makes its state. Call update_state with one, then reset_state.")
        return result, after

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Update and return the result."""
        self.update_state(*args, **kwargs)
        return self.result()

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"name": self.name, "dtype": self.dtype, **{name: getattr(self, name) for name in self._configured}}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """A metric from `get_config`."""
        return cls(**config)

    __repr__ = as_call


def row_sums(values: Tensor, sample_weight: TensorLike, reduce: Callable[..., Tensor]) -> tuple[Tensor, Any]:
    """The weighted sum of one value for each row, and the sum of weights (the number of rows without weights).

    `reduce`, `reduce_mean` or `reduce_sum`, makes the values (n, ...) of a row one; a scalar is one row.
    """
    if sample_weight is None:
        shape = values.array.shape
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

    def __init__(self, name: str | None = "mean", dtype: DTypeLike = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_variable((), "zeros", name="total")
        self.count = self.add_variable((), "zeros", name="count")

    def update_state(self, values: TensorLike, sample_weight: TensorLike = None) -> None:
        """Let values of any shape enter; the first axis is that of the rows, weights as in `Metric`."""
        values = as_floats(values, self.dtype)
        total, count = row_sums(values, sample_weight, reduce_mean)
        if not values.ndim and sample_weight is None:  # a mean over rows, which counts by their number
            total, count = map(rows_here().weigh, (total, count))
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

    def __init__(self, name: str | None = "sum", dtype: DTypeLike = None) -> None:
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
        name: that of the function in snake_case if None, as in Keras: 'lambda' for a lambda.
        options: handed to `fn`.

    >>> def worst(y_true, y_pred):
    ...     return tf.reduce_max(tf.abs(y_true - y_pred), axis=-1)
    >>> metric = tf.keras.metrics.MeanMetricWrapper(worst)
    >>> print(metric(tf.constant([[1.0, 2.0]]), tf.constant([[1.0, 5.0]])).numpy())
    3.0
    """

    def __init__(self, fn: Callable[..., Any], name: str | None = None, dtype: DTypeLike = None, **options: Any) -> None:
        own = getattr(fn, "__name__", type(fn).__name__)
        super().__init__(name or getattr(fn, "name", None) or (own if own.startswith("_") else snake_case(own)), dtype)
        self._fn, self._options = fn, options
        is_loss = isinstance(fn, losses.Loss) or getattr(losses, getattr(fn, "__name__", ""), None) is fn
        if self._direction is None and is_loss:
            self._direction = "down"

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> None:  # type: ignore[override]
        values = self._fn(y_true, y_pred, **self._given())
        if values is None:
            raise TypeError(gave_no_tensor(self, values))
        super().update_state(values, combine_weights(sample_weight, mask_of(y_pred), values))

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; a subclass knows its function."""
        own = {"fn": self._fn} if type(self) is MeanMetricWrapper else {}
        return {**super().get_config(), **own, **self._given()}

    def _given(self) -> dict[str, Any]:
        """The arguments of the function beside labels and predictions."""
        return self._options

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
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
    """Base of the metrics whose constructors begin with name and dtype, and end there if the function has no options."""

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
