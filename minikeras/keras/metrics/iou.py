"""Intersection over union of classes, from the matrix of how often label i was predicted as j."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...absent import hide_imports
from ...core import Tensor, check_values, warn_caller
from ...core.ops.indexing import scatter_nd
from ...errors import ShapeError
from ...functions import argmax, beside, cast, logical_and, negative_axis, reduce_sum, tensor, where
from ...functions.linalg import diag_part
from ...functions.shaping import broadcast_to, reshape, stack
from ...types import DTypeLike, TensorLike, as_dtype
from ..config import epsilon, floatx
from ..losses.loss import as_floats, as_integers, same_shape, spread_weights
from .metric import Metric, catalogue


@catalogue.add()
class IoU(Metric):
    """The mean over target classes of intersection / union: tp / (tp + fp + fn). Classes that do not occur are left out.

    Args:
        num_classes: labels and predictions lie in [0, num_classes); others are not counted.
        target_class_ids: the classes to average.
        dtype: of the counts, integers if None, which are kept as int64. With weights that are not whole numbers give 'float32'.
        ignore_class: a label whose values are not counted.
        sparse_y_true: labels are integers; else one-hot along `axis`.
        sparse_y_pred: predictions are integers; else scores along `axis`, of which the largest counts.
        axis: of the classes.

    Raises:
        ValueError: if a target is no class.

    >>> metric = tf.keras.metrics.IoU(num_classes=2, target_class_ids=[0])
    >>> print(metric([0, 0, 1, 1], [0, 1, 0, 1]).numpy().round(4))
    0.3333
    """

    _direction = "up"

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: DTypeLike = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        super().__init__(dtype or "int32", name)
        self.num_classes, self.target_class_ids = int(num_classes), [int(one) for one in target_class_ids]
        wrong = [one for one in self.target_class_ids if not 0 <= one < self.num_classes]
        if wrong or not self.target_class_ids:
            raise ValueError(
                f"{type(self).__name__}: target_class_ids {self.target_class_ids} must be classes in [0, {self.num_classes})."
            )
        self.ignore_class, self.sparse_y_true, self.sparse_y_pred = ignore_class, sparse_y_true, sparse_y_pred
        self.axis = axis
        shape = (self.num_classes, self.num_classes)
        kind = "int64" if as_dtype(self.dtype).is_integer else self.dtype  # a few thousand images have 2**31 pixels
        self.total_cm = self.add_variable(shape, "zeros", kind, name="total_confusion_matrix")

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> None:
        """Let a batch enter: classes of one shape, or with an axis of classes (see `sparse_y_true`).

        Raises:
            ShapeError: if shapes do not fit; the state stays.
            InvalidArgumentError: for labels that are not whole. Predictions that are not are cut, with a warning.
        """
        predictions = self._classes("y_pred", tensor(y_pred), self.sparse_y_pred)
        labels = same_shape(type(self).__name__, self._classes("y_true", tensor(y_true), self.sparse_y_true), predictions)
        weights = self._weights(sample_weight, labels)
        counts = logical_and(_within(labels, self.num_classes), _within(predictions, self.num_classes))
        if self.ignore_class is not None:
            counts = logical_and(counts, labels != self.ignore_class)
        pairs = stack([reshape(where(counts, x, 0), (-1,)) for x in (labels, predictions)], -1)
        weights = reshape(where(counts, weights, 0), (-1,))
        counted = scatter_nd(weights, pairs, shape=(self.num_classes, self.num_classes))
        self.total_cm.assign_add(cast(counted, self.total_cm.dtype))

    def _classes(self, what: str, values: Tensor, sparse: bool) -> Tensor:
        """Class numbers, or those of the largest along the axis of classes."""
        if sparse:
            if what == "y_pred" and values.dtype.is_floating:
                check_values(values, self._warn_of_cut_predictions)
            elif values.dtype != "bool":
                values = as_integers(type(self).__name__, values, what)
            return cast(values, "int64")
        if values.shape[negative_axis(self.axis, values.ndim, type(self).__name__)] != self.num_classes:
            raise ShapeError(
                f"{type(self).__name__}: {what} has shape {values.shape}, expected {self.num_classes} classes along axis "
                f"{self.axis}."
            )
        return argmax(values, self.axis)

    def _warn_of_cut_predictions(self, values: np.ndarray[Any, Any]) -> None:
        with np.errstate(invalid="ignore"):
            cut = (values != np.trunc(values)).any()
        if cut:
            warn_caller(
                f"{type(self).__name__}: y_pred must hold class numbers, found numbers that are not whole, which are cut: 0.9 "
                "counts as class 0. Use BinaryIoU(threshold=...) for the probability of one class, or sparse_y_pred=False for "
                "one score for each class."
            )

    def _weights(self, sample_weight: TensorLike, labels: Tensor) -> Tensor:
        """One weight for each label, of the matrix's dtype."""
        if sample_weight is None:
            weights = beside(labels, 1, self.dtype)
        else:
            weights = spread_weights(sample_weight, as_floats(labels, floatx()))
            if self.total_cm.dtype.is_integer and tensor(sample_weight).dtype.kind not in "biu":
                warn_caller(
                    f"{type(self).__name__}: weights are floats and the counts are {self.dtype}, so weights are cut to whole "
                    f"numbers. Give {type(self).__name__}(..., dtype='float32') to count with the weights as they are."
                )
            weights = cast(weights, self.dtype)
        return broadcast_to(weights, labels.shape)

    def result(self) -> Tensor:
        """The mean, 0 before any batch."""
        matrix = cast(self.total_cm.read_value(), self.dtype if self.total_cm.dtype.is_floating else floatx())
        shared = diag_part(matrix)
        union = reduce_sum(matrix, 0) + reduce_sum(matrix, 1) - shared
        wanted = [float(one in self.target_class_ids) * self.target_class_ids.count(one) for one in range(self.num_classes)]
        occurs = cast(union > 1e-9, matrix.dtype) * beside(matrix, wanted, matrix.dtype)
        return reduce_sum(occurs * shared / (union + epsilon())) / (reduce_sum(occurs) + epsilon())


def _within(classes: Tensor, count: int) -> Tensor:
    return logical_and(classes >= 0, classes < count)


@catalogue.add()
class BinaryIoU(IoU):
    """Intersection over union of predictions on either side of a threshold.

    Args:
        target_class_ids: 0, 1 or both.
        threshold: at or above which a prediction is class 1.

    >>> metric = tf.keras.metrics.BinaryIoU(threshold=0.3)
    >>> print(metric([0, 1, 0, 1], [0.1, 0.2, 0.4, 0.7]).numpy().round(4))
    0.3333
    """

    def __init__(
        self, target_class_ids: Sequence[int] = (0, 1), threshold: float = 0.5, name: str | None = None, dtype: DTypeLike = None
    ) -> None:
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> None:
        """Let a batch enter; arguments as in `IoU`, predictions are scores."""
        super().update_state(y_true, as_floats(y_pred, floatx()) >= self.threshold, sample_weight)


@catalogue.add()
class MeanIoU(IoU):
    """Intersection over union, averaged over all classes. Arguments as in `IoU`.

    >>> metric = tf.keras.metrics.MeanIoU(num_classes=2)
    >>> print(metric([0, 0, 1, 1], [0, 1, 0, 1]).numpy().round(4))
    0.3333
    """

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: DTypeLike = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, range(num_classes), name, dtype, ignore_class, sparse_y_true, sparse_y_pred, axis)


@catalogue.add()
class OneHotIoU(IoU):
    """Intersection over union for one-hot labels. Arguments as in `IoU`.

    >>> metric = tf.keras.metrics.OneHotIoU(num_classes=2, target_class_ids=[1])
    >>> print(metric([[1, 0], [0, 1]], [[0.9, 0.1], [0.6, 0.4]]).numpy())
    0.0
    """

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: DTypeLike = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, target_class_ids, name, dtype, ignore_class, False, sparse_y_pred, axis)


@catalogue.add()
class OneHotMeanIoU(MeanIoU):
    """Intersection over union for one-hot labels, averaged over all classes. Arguments as in `IoU`.

    >>> metric = tf.keras.metrics.OneHotMeanIoU(num_classes=2)
    >>> print(metric([[1, 0], [0, 1]], [[0.9, 0.1], [0.6, 0.4]]).numpy())
    0.25
    """

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: DTypeLike = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)


hide_imports(globals())
