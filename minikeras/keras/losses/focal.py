"""Cross-entropies that weigh easy rows less by (1 - p)**gamma, or wrong labels less."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...functions.elementwise import log, pow, sigmoid
from ...functions.nn import softmax
from ...functions.publish import beside, negative_axis
from ...functions.reductions import reduce_mean, reduce_sum
from ...functions.shaping import reshape
from ...types import TensorLike
from .alignment import aligned, as_integers, as_predictions, class_labels, several_classes
from .crossentropy import binary_terms, clip_probabilities, normalize, probability_of_label, smooth_labels
from .loss import LossFunctionWrapper, catalogue

# Functions -------------------------------------------------------------------------------------------------------------


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

    >>> import minikeras as tf
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

    >>> import minikeras as tf
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

    >>> import minikeras as tf
    >>> print(tf.keras.losses.categorical_generalized_cross_entropy([1], [[0.75, 0.25]], q=0.5).numpy())
    [1.]
    """
    name = "categorical_generalized_cross_entropy"
    predictions = as_predictions(y_pred)
    several_classes(name, predictions, -1)
    labels = as_integers(name, class_labels(name, y_true, predictions))
    return (1.0 - pow(probability_of_label(labels, predictions), float(q))) / float(q)


# Classes ---------------------------------------------------------------------------------------------------------------


@catalogue.add()
class BinaryFocalCrossentropy(LossFunctionWrapper):
    """Focal cross-entropy of yes or no. Options as in `binary_focal_crossentropy`; reduction, name, dtype as in `Loss`."""

    def __init__(
        self,
        apply_class_balancing: bool = False,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "binary_focal_crossentropy",
        dtype: Any = None,
    ) -> None:
        focus = {"apply_class_balancing": apply_class_balancing, "alpha": alpha, "gamma": gamma}
        options = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(binary_focal_crossentropy, reduction, name, dtype, **focus, **options)


@catalogue.add()
class CategoricalFocalCrossentropy(LossFunctionWrapper):
    """Focal cross-entropy of one-hot labels. Options as in `categorical_focal_crossentropy`; the others as in `Loss`."""

    def __init__(
        self,
        alpha: Any = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "categorical_focal_crossentropy",
        dtype: Any = None,
    ) -> None:
        options = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(categorical_focal_crossentropy, reduction, name, dtype, alpha=alpha, gamma=gamma, **options)


@catalogue.add()
class CategoricalGeneralizedCrossEntropy(LossFunctionWrapper):
    """(1 - p[label]**q) / q. Options as in `categorical_generalized_cross_entropy`; reduction, name, dtype as in `Loss`."""

    _float_labels = False

    def __init__(
        self,
        q: float = 0.5,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "categorical_generalized_cross_entropy",
        dtype: Any = None,
    ) -> None:
        if not 0 < q < 1:
            raise ValueError(f"CategoricalGeneralizedCrossEntropy: q must lie in the interval (0, 1), found {q}.")
        super().__init__(categorical_generalized_cross_entropy, reduction, name, dtype, q=q)
