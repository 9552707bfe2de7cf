"""Losses as objects: a function of labels and predictions with one value for each row, and how to reduce its values.

Labels, predictions and weights, of metrics too, must have shapes that fit together: nothing is broadcast in silence. Labels and
predictions have one shape, save that (n,) and (n, 1) stand for each other; weights are one a row or one a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np

from ...core import Tensor, check_values, convert_to_tensor, watched
from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...functions import cast, divide_no_nan, negative_axis, reduce_mean, reduce_sum, tensor
from ...functions.shaping import broadcast_to, expand_dims, reshape, squeeze, transpose
from ...module import snake_case
from ...ranks import rows_here
from ...types import DTypeLike, TensorLike, as_dtype
from ..arguments import Catalogue, as_call
from ..calls import mask_of
from ..config import floatx, policy_of
from ..saving.objects import deserialize_keras_object

catalogue = Catalogue("loss")
serialize = catalogue.serialize

REDUCTIONS = ("sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none", None)


class Reduction:
    """The reductions of losses by the names of Keras 2.

    >>> tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.SUM)([[0.0], [0.0]], [[1.0], [2.0]]).numpy()
    np.float32(5.0)
    """

    AUTO = SUM_OVER_BATCH_SIZE = "sum_over_batch_size"
    NONE, SUM = "none", "sum"


@watched
class Loss:
    """Base class: a function of labels and predictions, and how to reduce its values.

    A subclass writes `call(y_true, y_pred)`, which gets both as Tensors of one float dtype (labels (n,) as (n, 1) if the
    predictions are that) and returns one value for each row.

    Args:
        name: shown in logs.
        reduction: 'sum_over_batch_size' or 'mean' (sum / number of values), 'sum', 'mean_with_sample_weight' (sum / sum of
            weights), or 'none' or None (the values as they are).
        dtype: of the result, and of the computation unless that is half precision, which is computed in float32. None: that of
            the predictions; half precision and integers are raised to the default float dtype.

    Raises:
        ValueError: if there is no such reduction.

    >>> class Cubic(tf.keras.losses.Loss):
    ...     def call(self, y_true, y_pred):
    ...         return tf.reduce_mean(tf.abs(y_true - y_pred) ** 3, axis=-1)
    >>> print(Cubic()([[0.0]], [[2.0]]).numpy())
    8.0
    """

    _float_labels = True
    """True if `call` gets labels in the dtype and rank of the predictions; losses of class numbers take them as they come."""

    def __init__(self, name: str | None = None, reduction: str | None = "sum_over_batch_size", dtype: DTypeLike = None) -> None:
        self.name: Any = name or snake_case(type(self).__name__)
        if reduction not in REDUCTIONS:
            raise ValueError(
                f"Invalid value for argument `reduction`. Expected one of {list(REDUCTIONS)}. Received: {reduction=}."
            )
        self.reduction = reduction
        self.dtype = None if dtype is None else policy_of(dtype).compute_dtype

    def call(self, y_true: TensorLike, y_pred: TensorLike) -> Tensor:
        """Loss values, one for each row. Override it."""
        raise NotImplementedError(f"{type(self).__name__} must implement call(y_true, y_pred).")

    def __call__(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None, mask: TensorLike = None
    ) -> Tensor:
        """The reduced loss: a scalar, or one value for each row if nothing is reduced.

        Args:
            y_true, y_pred: labels and predictions of as many rows.
            sample_weight: None, a number, one weight for each row, (n,) or (n, 1), or one for each value.
            mask: None, or what `sample_weight` may be: 0 for rows or values that do not count.

        Raises:
            ShapeError: if shapes do not fit; nothing is broadcast.
        """
        predictions, narrow = (y_pred, None) if self._as_they_are(y_pred) else self._raised(y_pred)
        if self._float_labels:
            labels = same_rank(as_floats(y_true, predictions.dtype), predictions)
        else:
            labels = y_true if type(y_true) is Tensor else convert_to_tensor(y_true)
        values = self.call(labels, predictions)
        if not hasattr(values, "ndim"):
            raise TypeError(gave_no_tensor(self, values))
        attached, counting = mask_of(y_pred), self._rows_that_count(labels, values)
        if attached is not None or counting is not None:
            mask = combine_weights(combine_weights(mask, attached, values), counting, values)
        result = reduced(values, sample_weight, self.reduction, mask)
        return result if narrow is None else cast(result, narrow)

    def _as_they_are(self, y_pred: TensorLike) -> bool:
        """True if the loss is computed from these predictions directly, in their dtype."""
        return (
            isinstance(y_pred, Tensor)
            and self.dtype is None
            and y_pred.array.dtype.kind == "f"
            and y_pred.array.dtype.itemsize >= 4
        )

    def _raised(self, y_pred: TensorLike) -> tuple[Tensor, Any]:
        """Predictions in the dtype of the computation; the dtype of the result if that is a narrower one."""
        kind = as_dtype(self.dtype or floatx())
        wide = kind if kind.size >= 4 else as_dtype("float32")
        predictions = convert_to_tensor(y_pred, dtype_hint=None if hasattr(y_pred, "dtype") else wide)
        if self._as_they_are(predictions):
            return predictions, None
        return as_floats(predictions, wide), kind if kind.size < 4 else None

    def _rows_that_count(self, labels: Tensor, values: Tensor) -> Tensor | None:
        """A mask of the values that count for the mean of the loss, or None if all do."""
        return None

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """A loss from `get_config`."""
        return cls(**config)

    __repr__ = as_call


def reduced(values: Tensor, sample_weight: TensorLike, reduction: str | None, mask: TensorLike = None) -> Tensor:
    """Loss values of rows, weighted and reduced as in `Loss`; a mask leaves fewer values to divide by.

    On a part of a batch the value is such that the mean over all parts, weighted by their rows, is the value of the batch.
    """
    here = rows_here()
    weights = None if sample_weight is None else spread_weights(sample_weight, values)
    if mask is not None:
        valid = spread_weights(mask, values, "mask")
        if reduction in ("sum_over_batch_size", "mean"):
            valid = valid * divide_no_nan(float(valid.shape.num_elements()), _even_sum(valid, values))
        weights = valid if weights is None else weights * valid
    weighted = values if weights is None else values * weights
    if reduction in (None, "none"):
        return weighted
    if not weighted.ndim:
        return weighted
    if reduction == "sum":
        found: Tensor = here.spread(reduce_sum(weighted))
        return found
    if reduction == "mean_with_sample_weight" and weights is not None:
        return divide_no_nan(reduce_sum(weighted), _even_sum(weights, values))
    return reduce_sum(weighted) * 0.0 if here.rows == 0 else reduce_mean(weighted)


def _even_sum(weights: Tensor, values: Tensor) -> Tensor:
    """The sum of weights; on a part of a batch, the sum over the whole batch times the share of this part."""
    found, here = reduce_sum(weights), rows_here()
    if weights.ndim and weights.shape[0] == values.shape[0]:  # else they are the same for all rows
        (found,) = map(here.weigh, here.sums([found]))
    return found


class LossFunctionWrapper(Loss):
    """A loss made of a function.

    Args:
        fn: `fn(y_true, y_pred, **options)`, which gets what `Loss.call` gets and returns one value for each row.
        reduction, name, dtype: as in `Loss`.
        options: handed to `fn`.

    >>> def cubic(y_true, y_pred, scale=1.0):
    ...     return scale * tf.reduce_mean(tf.abs(y_true - y_pred) ** 3, axis=-1)
    >>> print(tf.keras.losses.LossFunctionWrapper(cubic, scale=0.5)([[0.0]], [[2.0]]).numpy())
    4.0
    """

    def __init__(
        self,
        fn: Callable[..., Tensor],
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: DTypeLike = None,
        **options: Any,
    ) -> None:
        super().__init__(name or getattr(fn, "__name__", None), reduction, dtype)
        self.fn = fn
        self._options = options

    @property
    def options(self) -> Mapping[str, Any]:
        """The arguments of the function beside labels and predictions."""
        return self._options

    def call(self, y_true: TensorLike, y_pred: TensorLike) -> Tensor:
        return self.fn(y_true, y_pred, **self.options)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; a subclass knows its function."""
        own = {"fn": self.fn} if type(self) is LossFunctionWrapper else {}
        return {**super().get_config(), **own, **self.options}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """A loss from `get_config`, in which a function may stand as its configuration."""
        return cls(**with_function(config))


def with_function(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration with the function itself, where its configuration stood as 'fn'."""
    fn = config.get("fn")
    return config | {"fn": deserialize_keras_object(fn)} if isinstance(fn, Mapping) else config


class FunctionLoss(LossFunctionWrapper):
    """Base of the losses that `loss` makes of functions: what a class declares are arguments of its constructor.

    Beside `reduction`, `name` and `dtype`, which each class has where Keras has them, these are the options of the function.
    """

    _function: ClassVar[Callable[..., Tensor]]
    _configured: ClassVar[tuple[str, ...]] = ()
    """The names of the options and `reduction`, which are attributes; see `Catalogue.add`."""

    def __post_init__(self) -> None:
        super().__init__(self._function, self.reduction, self.name, self.dtype)

    @property
    def options(self) -> Mapping[str, Any]:
        """The arguments of the function beside labels and predictions. The attributes can be changed, this only read."""
        return MappingProxyType({name: getattr(self, name) for name in self._configured if name != "reduction"})


@dataclass(eq=False, repr=False)
class PlainLoss(FunctionLoss):
    """Base of the losses of functions without options."""

    reduction: str | None = "sum_over_batch_size"
    name: str | None = None
    dtype: Any = None


L = TypeVar("L", bound=type[FunctionLoss])


@dataclass_transform(eq_default=False)
def loss(fn: Callable[..., Tensor], *names: str) -> Callable[[L], L]:
    """A decorator that makes a class the loss of a function, and enters it under its own and further names."""

    def made(cls: L) -> L:
        kind: Any = dataclass(eq=False, repr=False)(cls)
        kind._function = staticmethod(fn)
        entered: L = catalogue.add(*names)(kind)
        return entered

    return made


def get(identifier: Any) -> Any:
    """The loss for a name, a configuration, a class or an object; a function, or None, is returned as it is.

    Names in the way of functions give the function, with a value for each row: 'mse', 'mean_squared_error'. Names of classes
    give a `Loss` with its reduction: 'MeanSquaredError'.

    >>> print(tf.keras.losses.get("mse")([[0.0], [0.0]], [[2.0], [4.0]]).numpy())
    [ 4. 16.]
    >>> print(tf.keras.losses.get("MeanSquaredError")([[0.0], [0.0]], [[2.0], [4.0]]).numpy())
    10.0
    """
    return _named(identifier, catalogue.get(identifier))


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The loss for a name, as from `get`, or for what `serialize` gave.

    >>> tf.keras.losses.deserialize(tf.keras.losses.serialize(tf.keras.losses.Huber(delta=2.0))).delta
    2.0
    """
    return _named(config, catalogue.deserialize(config, custom_objects))


def _named(identifier: Any, found: Any) -> Any:
    """The function of a loss that was asked for by the name of its function."""
    by_function = isinstance(identifier, str) and identifier != type(found).__name__
    return found.fn if by_function and isinstance(found, LossFunctionWrapper) else found


def as_loss(identifier: Any) -> Any:
    """The `Loss` for whatever `get` takes; None stays None."""
    found = catalogue.get(identifier)
    return found if found is None or isinstance(found, Loss) else LossFunctionWrapper(found)


# Shapes that fit together ----------------------------------------------------------------------------------------------


def as_floats(value: TensorLike, dtype: DTypeLike) -> Tensor:
    """A Tensor of a float dtype; numbers in lists are read in it. DTypeError for strings and complex numbers."""
    if type(value) is Tensor and value.array.dtype is as_dtype(dtype).numpy:
        return value
    if not hasattr(value, "dtype"):
        value = convert_to_tensor(value, dtype_hint=dtype)
    if as_dtype(value.dtype).kind not in "biuf":
        raise DTypeError(f"labels, predictions and weights must be real numbers, found dtype {value.dtype}. Encode them first.")
    return cast(value, dtype)


def as_predictions(value: TensorLike) -> Tensor:
    """Predictions as a Tensor of a float dtype: their own if it is one, else the default."""
    predictions = tensor(value)
    return (
        predictions
        if predictions.array.dtype.kind == "f" or predictions.dtype.is_floating
        else as_floats(predictions, floatx())
    )


def aligned(name: str, y_true: TensorLike, y_pred: TensorLike) -> tuple[Tensor, Tensor]:
    """Labels and predictions as Tensors of one shape and of the predictions' float dtype; errors as in `same_shape`.

    A number of Python stands for all labels: it lacks no axis.
    """
    predictions = as_predictions(y_pred)
    labels = as_floats(y_true, predictions.dtype)
    if isinstance(y_true, (int, float)):
        return broadcast_to(labels, predictions.array.shape), predictions
    return same_shape(name, labels, predictions), predictions


def same_shape(name: str, labels: Tensor, predictions: Tensor) -> Tensor:
    """The labels in the shape of the predictions; ShapeError if they differ by more than one axis of size 1 at the end."""
    labels = same_rank(labels, predictions)
    if labels.array.shape != predictions.array.shape:
        raise ShapeError(
            f"{name}: y_true has shape {labels.shape} and y_pred {predictions.shape}; they must be equal (or (n,) and (n, 1)). "
            "Nothing is broadcast here: check the number of units of the last layer, or one-hot encode the labels."
        )
    return labels


def as_columns(name: str, y_true: TensorLike, y_pred: Tensor, columns: int | None) -> tuple[Tensor, Tensor]:
    """As `aligned`, for (n, columns); ShapeError for other shapes, or if `columns` is known and another number."""
    labels, predictions = aligned(name, y_true, y_pred)
    if predictions.ndim != 2 or columns not in (None, predictions.shape[-1]):
        raise ShapeError(
            f"{name} expects 2D inputs with shape (batch_size, {columns or 'output_dim'}). Received input shapes: "
            f"y_pred.shape={predictions.shape} and y_true.shape={labels.shape}."
        )
    return labels, predictions


def same_rank(labels: Tensor, predictions: Tensor) -> Tensor:
    """The labels with an axis of size 1 added or dropped at the end, if that gives them the shape of the predictions."""
    shape, wanted = labels.array.shape, predictions.array.shape
    if wanted == (*shape, 1):
        return expand_dims(labels, -1)
    return squeeze(labels, -1) if shape == (*wanted, 1) else labels


# Classes ---------------------------------------------------------------------------------------------------------------


def classes_last(name: str, predictions: Tensor, axis: int) -> Tensor:
    """The predictions with the axis of the classes at the end."""
    if axis == -1 and predictions.array.shape:
        return predictions
    rank = len(predictions.array.shape)
    place = negative_axis(axis, rank, name)
    if place == -1:
        return predictions
    return transpose(predictions, [*(i for i in range(rank) if i != place + rank), place + rank])


def several_classes(name: str, predictions: Tensor, axis: int) -> int:
    """The number of classes; ShapeError if it is one, since the loss would be 0 whatever the prediction."""
    shape = predictions.array.shape
    count = shape[axis] if -len(shape) <= axis < len(shape) else 0
    if count < 2:
        raise ShapeError(
            f"{name}: y_pred has shape {predictions.shape}, a single class, so the loss is 0 for any prediction. Use "
            "binary_crossentropy with a sigmoid, or two units with a softmax."
        )
    return count


def gave_no_tensor(thing: Any, given: Any) -> str:
    """The message for a loss or metric whose function gives something else."""
    return f"'{thing.name}' ({type(thing).__name__}) gave {given!r}, a tensor is needed. Does it end without `return`?"


def class_labels(name: str, y_true: TensorLike, predictions: Tensor) -> Tensor:
    """Labels of classes: one number for each row of predictions, whose last axis is that of the classes; else ShapeError."""
    labels = y_true if type(y_true) is Tensor else convert_to_tensor(y_true)
    rows = predictions.array.shape[:-1]
    if labels.array.shape == rows:
        return labels
    if labels.array.shape == (*rows, 1):
        return squeeze(labels, -1)
    dense = name.removeprefix("sparse_")
    of_rows = f"For one-hot labels use {'their places, np.argmax(y, axis=-1)' if dense == name else dense}."
    of_samples = "For one label of each sample flatten or pool before the last layer."
    raise ShapeError(
        f"{name}: y_true has shape {labels.shape}, expected one integer for each row of y_pred {predictions.shape}: shape "
        f"{rows}. {of_rows if labels.ndim >= predictions.ndim else of_samples}"
    )


def as_integers(name: str, labels: Tensor, what: str = "y_true") -> Tensor:
    """Labels as integers; whole numbers may come as floats. InvalidArgumentError for others, which are probabilities."""
    if labels.array.dtype.kind in "iu":
        return labels
    dtype = labels.dtype

    def whole(values: np.ndarray[Any, Any]) -> None:
        if not dtype.is_floating or (values != values.astype("int64").astype(values.dtype)).any():
            raise InvalidArgumentError(
                f"{name}: {what} must hold integer labels, found {dtype.name} values such as {values.flat[0]!r}. "
                "Probabilities and one-hot rows are for what is not sparse, such as categorical_crossentropy."
            )

    with np.errstate(invalid="ignore"):
        check_values(labels, whole)
    return cast(labels, "int64")


# Weights ---------------------------------------------------------------------------------------------------------------


def combine_weights(weights: Any, others: Any, values: Tensor) -> Any:
    """The product of two weights or masks of values, either of which may be None."""
    if weights is None or others is None:
        return others if weights is None else weights
    return spread_weights(weights, values) * spread_weights(others, values)


def spread_weights(sample_weight: TensorLike, values: Tensor, what: str = "sample_weight") -> Tensor:
    """A number, or weights (n,), (n, 1), like the values, or (1, columns), ready to multiply values with; else ShapeError."""
    weights = as_floats(sample_weight, values.dtype)
    given, wanted = weights.array.shape, values.array.shape
    if given == wanted or not given:
        return weights
    shape = given[:-1] if len(given) == len(wanted) + 1 and given[-1] == 1 else given
    shape = (*shape, *[1] * (len(wanted) - len(shape)))
    fits = len(shape) == len(wanted) and all(size in (1, whole) for size, whole in zip(shape, wanted, strict=True))
    if not fits or (shape[:1] != wanted[:1] and not 1 < len(given) == len(wanted)):
        advice = (
            f"Give one weight for each row, shape ({wanted[0]},), or one for each value."
            if wanted
            else ("There is one value for the whole batch: give a number, or have one for each row (see the option `axis`).")
        )
        raise ShapeError(f"{what} has shape {weights.shape}, the values to weight have shape {values.shape}. {advice}")
    return reshape(weights, shape)
