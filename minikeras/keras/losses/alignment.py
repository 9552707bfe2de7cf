"""Labels, predictions and weights of shapes that fit together, for losses and metrics; nothing is broadcast in silence.

Labels and predictions have one shape, save that (n,) and (n, 1) stand for each other; weights are one a row or one a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import Tensor, convert_to_tensor
from ...core.batch import check_values
from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...functions.elementwise import cast
from ...functions.operands import negative_axis, tensor
from ...functions.shaping import expand_dims, reshape, squeeze, transpose
from ...types import TensorLike, as_dtype
from ..config import floatx


def as_floats(value: TensorLike, dtype: Any) -> Tensor:
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
    """Labels and predictions as Tensors of one shape and of the predictions' float dtype; errors as in `same_shape`."""
    predictions = as_predictions(y_pred)
    return same_shape(name, as_floats(y_true, predictions.dtype), predictions), predictions


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


def class_labels(name: str, y_true: TensorLike, predictions: Tensor) -> Tensor:
    """Labels of classes: one number for each row of predictions, whose last axis is that of the classes; else ShapeError."""
    labels = y_true if type(y_true) is Tensor else convert_to_tensor(y_true)
    rows = predictions.array.shape[:-1]
    if labels.array.shape == rows:
        return labels
    if labels.array.shape == (*rows, 1):
        return squeeze(labels, -1)
    raise ShapeError(
        f"{name}: y_true has shape {labels.shape}, expected one integer for each row of y_pred {predictions.shape}: shape "
        f"{rows}. For one-hot labels use {name.removeprefix('sparse_')}."
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


def mask_of(y_pred: Any) -> Any:
    """The mask that layers attached to predictions, or None."""
    return getattr(y_pred, "_keras_mask", None)


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
