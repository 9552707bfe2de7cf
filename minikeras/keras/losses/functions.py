"""Losses as functions of labels and predictions: one value for each row, the mean or sum over the last axis.

Next: `loss.py`, whose classes reduce the rows.
"""

from __future__ import annotations

from ...core import Tensor, convert_to_tensor
from ...errors import ShapeError
from ...functions.creation import one_hot
from ...functions.elementwise import abs, clip_by_value, log, where
from ...functions.nn import (
    check_labels,
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from ...functions.publish import negative_axis, tensor
from ...functions.reductions import reduce_mean, reduce_sum
from ...functions.shaping import squeeze, transpose
from ...types import TensorLike
from ..catalogue import Catalogue
from ..config import epsilon
from .alignment import aligned, as_integers

catalogue = Catalogue("loss")


@catalogue.add("mse", "MSE")
def mean_squared_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean((y_true - y_pred)**2) over the last axis.

    >>> import minikeras as tf
    >>> print(tf.keras.losses.mean_squared_error([[0.0, 2.0]], [[1.0, 4.0]]).numpy())
    [2.5]
    """
    labels, predictions = aligned("mean_squared_error", y_true, y_pred)
    difference = predictions - labels
    return reduce_mean(difference * difference, -1)


@catalogue.add("mae", "MAE")
def mean_absolute_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(|y_true - y_pred|) over the last axis.

    >>> import minikeras as tf
    >>> print(tf.keras.losses.mean_absolute_error([[0.0, 2.0]], [[1.0, 4.0]]).numpy())
    [1.5]
    """
    labels, predictions = aligned("mean_absolute_error", y_true, y_pred)
    return reduce_mean(abs(predictions - labels), -1)


@catalogue.add("bce", "BCE")
def binary_crossentropy(
    y_true: TensorLike, y_pred: TensorLike, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> Tensor:
    """-mean(y log p + (1 - y) log(1 - p)) over an axis.

    Args:
        y_true: labels in [0, 1].
        y_pred: probabilities, or logits with `from_logits`, which is more accurate.
        from_logits: see above.
        label_smoothing: s in [0, 1] turns labels into y (1 - s) + s / 2.
        axis: over which to take the mean.

    >>> import minikeras as tf
    >>> print(tf.keras.losses.binary_crossentropy([[1.0]], [[0.5]]).numpy().round(4))
    [0.6931]
    """
    labels, predictions = aligned("binary_crossentropy", y_true, y_pred)
    if label_smoothing:
        labels = labels * (1.0 - label_smoothing) + 0.5 * label_smoothing
    if from_logits:
        return reduce_mean(sigmoid_cross_entropy_with_logits(labels, predictions), axis)
    p = clip_by_value(predictions, epsilon(), 1.0 - epsilon())
    return reduce_mean(-(labels * log(p) + (1.0 - labels) * log(1.0 - p)), axis)


@catalogue.add("cce", "CCE")
def categorical_crossentropy(
    y_true: TensorLike, y_pred: TensorLike, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> Tensor:
    """-sum(y log p) over the classes, for one-hot labels or probabilities y.

    Args:
        y_true: (..., classes).
        y_pred: probabilities (normalized to sum 1 first), or logits with `from_logits`, which is more accurate.
        from_logits: see above.
        label_smoothing: s in [0, 1] turns labels into y (1 - s) + s / classes.
        axis: of the classes.

    Raises:
        ShapeError: if shapes differ, or there is a single class (the loss would be 0 whatever the prediction).

    >>> import minikeras as tf
    >>> print(tf.keras.losses.categorical_crossentropy([[1.0, 0.0]], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    labels, predictions = aligned("categorical_crossentropy", y_true, y_pred)
    if not predictions.ndim or predictions.shape[axis] < 2:
        raise ShapeError(
            f"categorical_crossentropy: y_pred has shape {predictions.shape}, a single class, so the loss is 0 for any "
            "prediction. Use binary_crossentropy with a sigmoid, or two units with a softmax."
        )
    if label_smoothing:
        labels = labels * (1.0 - label_smoothing) + label_smoothing / predictions.shape[axis]
    if from_logits:
        return softmax_cross_entropy_with_logits(labels, predictions, axis)
    p = predictions / reduce_sum(predictions, axis, keepdims=True)
    return -reduce_sum(labels * log(clip_by_value(p, epsilon(), 1.0 - epsilon())), axis)  # type: ignore[no-any-return]


@catalogue.add("scce")
def sparse_categorical_crossentropy(
    y_true: TensorLike, y_pred: TensorLike, from_logits: bool = False, ignore_class: int | None = None, axis: int = -1
) -> Tensor:
    """-log p[label] over the classes, for integer labels.

    Args:
        y_true: labels (...) or (..., 1) in [0, classes).
        y_pred: probabilities (..., classes), or logits with `from_logits`, which is more accurate.
        from_logits: see above.
        ignore_class: a label whose rows give a loss of 0.
        axis: of the classes.

    Raises:
        ShapeError: if the labels' shape is not that of the predictions without the classes.
        InvalidArgumentError: if a label is out of range.

    >>> import minikeras as tf
    >>> print(tf.keras.losses.sparse_categorical_crossentropy([1], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    predictions = _classes_last(tensor(y_pred), axis)
    labels = convert_to_tensor(y_true)
    if labels.ndim == predictions.ndim and labels.shape[-1:] == (1,):
        labels = squeeze(labels, -1)
    if tuple(labels.shape) != tuple(predictions.shape[:-1]):
        raise ShapeError(
            f"sparse_categorical_crossentropy: y_true has shape {convert_to_tensor(y_true).shape}, expected one integer for "
            f"each row of y_pred {predictions.shape}: shape {predictions.shape[:-1]}. For one-hot labels use "
            "categorical_crossentropy."
        )
    labels = as_integers("sparse_categorical_crossentropy", labels)
    if ignore_class is not None:
        valid = labels != ignore_class
        loss = _sparse(where(valid, labels, 0), predictions, from_logits)
        return where(valid, loss, 0.0)
    return _sparse(labels, predictions, from_logits)


def _classes_last(x: Tensor, axis: int) -> Tensor:
    place = negative_axis(axis, x.ndim, "sparse_categorical_crossentropy")
    if place == -1:
        return x
    order = [i for i in range(x.ndim) if i != place + x.ndim]
    return transpose(x, [*order, place + x.ndim])


def _sparse(labels: Tensor, predictions: Tensor, from_logits: bool) -> Tensor:
    if from_logits:
        return sparse_softmax_cross_entropy_with_logits(labels, predictions)
    check_labels(labels, predictions.shape[-1])
    p = predictions / reduce_sum(predictions, -1, keepdims=True)
    chosen = one_hot(labels, predictions.shape[-1], dtype=predictions.dtype)
    return -reduce_sum(chosen * log(clip_by_value(p, epsilon(), 1.0 - epsilon())), -1)  # type: ignore[no-any-return]
