"""Cross-entropies, and losses of distributions and counts: Kullback and Leibler's divergence, Poisson's likelihood.

With logits the logarithm and the exponential cancel and nothing overflows; probabilities are kept epsilon away from 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...absent import hide_imports
from ...core import Tensor
from ...functions import beside, clip_by_value, log, negative_axis, one_hot, pow, reduce_mean, reduce_sum, sigmoid, where
from ...functions.nn import (
    check_labels,
    sigmoid_cross_entropy_with_logits,
    softmax,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from ...functions.shaping import reshape
from ...types import TensorLike
from ..config import epsilon
from .loss import (
    FunctionLoss,
    PlainLoss,
    aligned,
    as_integers,
    as_predictions,
    class_labels,
    classes_last,
    loss,
    several_classes,
)

# Functions -------------------------------------------------------------------------------------------------------------


def binary_crossentropy(
    y_true: TensorLike, y_pred: TensorLike, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> Tensor:
    """-mean(y log p + (1 - y) log(1 - p)) over an axis.

    Args:
        y_true: labels in [0, 1].
        y_pred: probabilities, or logits with `from_logits`, which is more accurate.
        label_smoothing: s in [0, 1] turns labels into y (1 - s) + s / 2.
        axis: over which to take the mean.

    >>> print(tf.keras.losses.binary_crossentropy([[1.0]], [[0.5]]).numpy().round(4))
    [0.6931]
    """
    labels, predictions = aligned("binary_crossentropy", y_true, y_pred)
    labels = smooth_labels(labels, label_smoothing, 2)
    if from_logits:
        return reduce_mean(sigmoid_cross_entropy_with_logits(labels, predictions), axis)
    return reduce_mean(binary_terms(labels, clip_probabilities(predictions)), axis)


def categorical_crossentropy(
    y_true: TensorLike, y_pred: TensorLike, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> Tensor:
    """-sum(y log p) over the classes, for one-hot labels or probabilities y.

    Args:
        y_true: (..., classes).
        y_pred: probabilities (normalized to sum 1 first), or logits with `from_logits`, which is more accurate.
        label_smoothing: s in [0, 1] turns labels into y (1 - s) + s / classes.
        axis: of the classes.

    Raises:
        ShapeError: if shapes differ, or there is a single class (the loss would be 0 whatever the prediction).

    >>> print(tf.keras.losses.categorical_crossentropy([[1.0, 0.0]], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    labels, predictions = aligned("categorical_crossentropy", y_true, y_pred)
    labels = smooth_labels(labels, label_smoothing, several_classes("categorical_crossentropy", predictions, axis))
    if from_logits:
        return softmax_cross_entropy_with_logits(labels, predictions, axis)
    return -reduce_sum(labels * log(normalize(predictions, axis)), axis)


def sparse_categorical_crossentropy(
    y_true: TensorLike, y_pred: TensorLike, from_logits: bool = False, ignore_class: int | None = None, axis: int = -1
) -> Tensor:
    """-log p[label] over the classes, for integer labels.

    Args:
        y_true: labels (...) or (..., 1) in [0, classes).
        y_pred: probabilities (..., classes), or logits with `from_logits`, which is more accurate.
        ignore_class: a label whose rows give a loss of 0.
        axis: of the classes.

    Raises:
        ShapeError: if the labels' shape is not that of the predictions without the classes, or there is a single class.
        InvalidArgumentError: if a label is out of range.

    >>> print(tf.keras.losses.sparse_categorical_crossentropy([1], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    name = "sparse_categorical_crossentropy"
    predictions = classes_last(name, as_predictions(y_pred), axis)
    if predictions.array.shape[-1] < 2:
        several_classes(name, predictions, -1)
    labels = as_integers(name, class_labels(name, y_true, predictions))
    if ignore_class is None:
        return _sparse(labels, predictions, from_logits)
    valid = labels != ignore_class
    return where(valid, _sparse(where(valid, labels, 0), predictions, from_logits), 0.0)


def _sparse(labels: Tensor, predictions: Tensor, from_logits: bool) -> Tensor:
    if from_logits:
        return sparse_softmax_cross_entropy_with_logits(labels, predictions)
    return -log(clip_probabilities(probability_of_label(labels, predictions) / reduce_sum(predictions, -1)))


# Parts -----------------------------------------------------------------------------------------------------------------


_LEAST = {"bfloat16": (0.0, 2.0**-8), "float16": (2.0**-14, 2.0**-11)}
"""By dtype, the least distance of probabilities from 0 and from 1: 1 / p must be finite, and 1 - p another number than 1."""


def clip_probabilities(p: Tensor) -> Tensor:
    """Probabilities kept epsilon away from 0 and 1; further in half precision, which cannot tell epsilon from them."""
    low, high = _LEAST.get(p.dtype.name, (0.0, 0.0))
    return clip_by_value(p, max(epsilon(), low), 1.0 - max(epsilon(), high))


def normalize(p: Tensor, axis: int) -> Tensor:
    """Probabilities divided by their sum, kept epsilon away from 0 and 1."""
    return clip_probabilities(p / reduce_sum(p, axis, keepdims=True))


def probability_of_label(labels: Tensor, predictions: Tensor) -> Tensor:
    """The prediction for the class of each row's label."""
    classes = predictions.shape[-1]
    check_labels(labels, classes)
    return reduce_sum(one_hot(labels, classes, dtype=predictions.dtype) * predictions, -1)


def binary_terms(labels: Tensor, p: Tensor) -> Tensor:
    """-(y log p + (1 - y) log(1 - p)) for each element."""
    return -(labels * log(p) + (1.0 - labels) * log(1.0 - p))


def smooth_labels(labels: Tensor, smoothing: float, classes: int) -> Tensor:
    """Labels moved toward the uniform distribution: y (1 - s) + s / classes.

    Source: Szegedy et al. (2016), Rethinking the Inception Architecture, section 7.
    """
    if not 0.0 <= smoothing <= 1.0:
        raise ValueError(f"label_smoothing must lie in [0, 1], found {smoothing}.")
    return labels * (1.0 - smoothing) + smoothing / classes if smoothing else labels


# Classes ---------------------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Crossentropy(FunctionLoss):
    """A loss of probabilities, or of logits if `from_logits`, whose labels may be smoothed."""

    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1
    reduction: str | None = "sum_over_batch_size"
    name: str | None = None
    dtype: Any = None


@loss(binary_crossentropy, "bce", "BCE")
class BinaryCrossentropy(Crossentropy):
    """Cross-entropy of yes or no. Options as in `binary_crossentropy`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.BinaryCrossentropy(from_logits=True)([[1.0]], [[0.0]]).numpy().round(4))
    0.6931
    """


@loss(categorical_crossentropy, "cce", "CCE")
class CategoricalCrossentropy(Crossentropy):
    """Cross-entropy of one-hot labels. Options as in `categorical_crossentropy`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.CategoricalCrossentropy(from_logits=True)([[1.0, 0.0]], [[0.0, 0.0]]).numpy().round(4))
    0.6931
    """


@loss(sparse_categorical_crossentropy, "scce")
class SparseCategoricalCrossentropy(FunctionLoss):
    """Cross-entropy of integer labels. Options as in `sparse_categorical_crossentropy`; reduction, name, dtype as in `Loss`.

    Rows of the ignored class do not count for the mean.

    >>> print(tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)([1], [[0.0, 0.0]]).numpy().round(4))
    0.6931
    """

    _float_labels = False

    from_logits: bool = False
    ignore_class: int | None = None
    reduction: str | None = "sum_over_batch_size"
    axis: int = -1
    name: str | None = "sparse_categorical_crossentropy"
    dtype: Any = None

    def _rows_that_count(self, labels: Tensor, values: Tensor) -> Tensor | None:
        ignored = self.ignore_class
        return None if ignored is None else labels != ignored


# Focal and generalized -------------------------------------------------------------------------------------------------


def binary_focal_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """mean of (1 - p_t)**gamma times the binary cross-entropy over an axis, for p_t = y p + (1 - y)(1 - p).

    Args:
        apply_class_balancing: multiply also by alpha, in [0, 1], for label 1, by 1 - alpha for label 0.
        gamma: >= 0; 0 gives `binary_crossentropy`, where the other arguments are explained.

    Source: Lin et al. (2018), Focal Loss for Dense Object Detection, equations (4) and (5).

    >>> print(tf.keras.losses.binary_focal_crossentropy([[1.0]], [[0.5]]).numpy().round(4))
    [0.1733]
    """
    labels, predictions = aligned("binary_focal_crossentropy", y_true, y_pred)
    labels = smooth_labels(labels, label_smoothing, 2)
    p = sigmoid(predictions) if from_logits else predictions
    right = labels * p + (1.0 - labels) * (1.0 - p)
    terms = pow(1.0 - right, float(gamma)) * binary_terms(labels, clip_probabilities(p))
    if apply_class_balancing:
        terms = (labels * alpha + (1.0 - labels) * (1.0 - alpha)) * terms
    return reduce_mean(terms, axis)


def categorical_focal_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    alpha: Any = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """-alpha sum((1 - p)**gamma y log p) over the classes.

    Args:
        alpha: a number, or a list with one for each class.
        gamma: >= 0; 0 gives `categorical_crossentropy` times alpha, where the other arguments and errors are explained.

    Source: Lin et al. (2018), Focal Loss for Dense Object Detection, equation (5).

    >>> print(tf.keras.losses.categorical_focal_crossentropy([[1.0, 0.0]], [[0.5, 0.5]]).numpy().round(4))
    [0.0433]
    """
    labels, predictions = aligned("categorical_focal_crossentropy", y_true, y_pred)
    classes = several_classes("categorical_focal_crossentropy", predictions, axis)
    labels = smooth_labels(labels, label_smoothing, classes)
    p = normalize(softmax(predictions, axis) if from_logits else predictions, axis)
    return reduce_sum(_by_class(alpha, p, axis) * pow(1.0 - p, float(gamma)) * (-labels * log(p)), axis)


def _by_class(alpha: Any, p: Tensor, axis: int) -> Any:
    """A number as it is; one for each class, laid along the axis of the classes."""
    if isinstance(alpha, (int, float)):
        return alpha
    place = negative_axis(axis, p.ndim, "categorical_focal_crossentropy")
    return reshape(beside(p, alpha, p.dtype), (p.shape[place], *[1] * (-place - 1)))


def categorical_generalized_cross_entropy(y_true: TensorLike, y_pred: TensorLike, q: float = 0.5) -> Tensor:
    """(1 - p[label]**q) / q: cross-entropy as q goes to 0, absolute error at q = 1. Wrong labels do less harm than to either.

    Args:
        y_true, y_pred: labels and probabilities as in `sparse_categorical_crossentropy`, with its errors.
        q: in (0, 1).

    Source: Zhang and Sabuncu (2018), Generalized Cross Entropy Loss, equation (6).

    >>> print(tf.keras.losses.categorical_generalized_cross_entropy([1], [[0.75, 0.25]], q=0.5).numpy())
    [1.]
    """
    name = "categorical_generalized_cross_entropy"
    predictions = as_predictions(y_pred)
    several_classes(name, predictions, -1)
    labels = as_integers(name, class_labels(name, y_true, predictions))
    return (1.0 - pow(probability_of_label(labels, predictions), float(q))) / float(q)


@loss(binary_focal_crossentropy)
class BinaryFocalCrossentropy(FunctionLoss):
    """Focal cross-entropy of yes or no. Options as in `binary_focal_crossentropy`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.BinaryFocalCrossentropy(gamma=2.0)([[1.0, 0.0]], [[0.9, 0.4]]).numpy().round(4))
    0.0414
    """

    apply_class_balancing: bool = False
    alpha: float = 0.25
    gamma: float = 2.0
    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1
    reduction: str | None = "sum_over_batch_size"
    name: str | None = "binary_focal_crossentropy"
    dtype: Any = None


@loss(categorical_focal_crossentropy)
class CategoricalFocalCrossentropy(FunctionLoss):
    """Focal cross-entropy of one-hot labels. Options as in `categorical_focal_crossentropy`; the others as in `Loss`.

    >>> print(tf.keras.losses.CategoricalFocalCrossentropy()([[0.0, 1.0]], [[0.4, 0.6]]).numpy().round(4))
    0.0204
    """

    alpha: Any = 0.25
    gamma: float = 2.0
    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1
    reduction: str | None = "sum_over_batch_size"
    name: str | None = "categorical_focal_crossentropy"
    dtype: Any = None


@loss(categorical_generalized_cross_entropy)
class CategoricalGeneralizedCrossEntropy(FunctionLoss):
    """(1 - p[label]**q) / q. Options as in `categorical_generalized_cross_entropy`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.CategoricalGeneralizedCrossEntropy(q=0.5)([1], [[0.75, 0.25]]).numpy())
    1.0
    """

    _float_labels = False

    q: float = 0.5
    reduction: str | None = "sum_over_batch_size"
    name: str | None = "categorical_generalized_cross_entropy"
    dtype: Any = None

    def __post_init__(self) -> None:
        if not 0 < self.q < 1:
            raise ValueError(f"CategoricalGeneralizedCrossEntropy: q must lie in the interval (0, 1), found {self.q}.")
        super().__post_init__()


def kl_divergence(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """sum(y_true log(y_true / y_pred)) over the last axis, for probabilities; they are limited to [epsilon, 1].

    Source: Kullback and Leibler (1951), On Information and Sufficiency.

    >>> print(tf.keras.losses.kl_divergence([[0.5, 0.5]], [[0.25, 0.75]]).numpy().round(4))
    [0.1438]
    """
    labels, predictions = (clip_by_value(p, epsilon(), 1.0) for p in aligned("kl_divergence", y_true, y_pred))
    return reduce_sum(labels * log(labels / predictions), -1)


def poisson(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(y_pred - y_true log(y_pred + epsilon)) over the last axis: the log-likelihood of counts, save a constant.

    Args:
        y_true: counts, at least 0.
        y_pred: their expected values, at least 0.

    >>> print(tf.keras.losses.poisson([[3.0]], [[1.0]]).numpy().round(4))
    [1.]
    """
    labels, predictions = aligned("poisson", y_true, y_pred)
    return reduce_mean(predictions - labels * log(predictions + epsilon()), -1)


@loss(kl_divergence, "kld", "KLD", "kullback_leibler_divergence")
class KLDivergence(PlainLoss):
    """sum(y_true log(y_true / y_pred)). As `kl_divergence`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.KLDivergence()([[0.5, 0.5]], [[0.25, 0.75]]).numpy().round(4))
    0.1438
    """


@loss(poisson)
class Poisson(PlainLoss):
    """mean(y_pred - y_true log(y_pred)). As `poisson`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.Poisson()([[1.0, 2.0]], [[1.0, 1.0]]).numpy().round(4))
    1.0
    """


kld = KLD = kullback_leibler_divergence = kl_divergence

hide_imports(
    globals(), "Crossentropy", "binary_terms", "clip_probabilities", "normalize", "probability_of_label", "smooth_labels"
)
