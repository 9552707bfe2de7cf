"""Cross-entropies, divergences and hinges, averaged over batches: the loss functions as metrics."""

from __future__ import annotations

from typing import Any

from ...functions.publish import tensor
from ...types import TensorLike
from .. import losses
from ..losses.alignment import as_floats, class_labels, classes_last, combine_weights
from .metric import catalogue
from .reductions import FunctionMetric, MeanMetricWrapper


@catalogue.add("bce", "BCE")
class BinaryCrossentropy(MeanMetricWrapper):
    """The mean of `losses.binary_crossentropy`; options as there."""

    _direction = "down"

    def __init__(
        self,
        name: str | None = "binary_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
    ) -> None:
        options = {"from_logits": from_logits, "label_smoothing": label_smoothing}
        super().__init__(losses.binary_crossentropy, name, dtype, **options)


@catalogue.add("cce", "CCE")
class CategoricalCrossentropy(MeanMetricWrapper):
    """The mean of `losses.categorical_crossentropy`; options as there."""

    _direction = "down"

    def __init__(
        self,
        name: str | None = "categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
    ) -> None:
        options = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(losses.categorical_crossentropy, name, dtype, **options)


@catalogue.add("scce")
class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """The mean of `losses.sparse_categorical_crossentropy`; options as there. Rows of the ignored class do not count."""

    _direction = "down"

    def __init__(
        self,
        name: str | None = "sparse_categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        ignore_class: int | None = None,
        axis: int = -1,
    ) -> None:
        options = {"from_logits": from_logits, "ignore_class": ignore_class, "axis": axis}
        super().__init__(losses.sparse_categorical_crossentropy, name, dtype, **options)

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> None:  # type: ignore[override]
        ignored = self._options["ignore_class"]
        if ignored is not None:
            predictions = classes_last(self.name, tensor(y_pred), self._options["axis"])
            counts = as_floats(class_labels(self.name, y_true, predictions) != ignored, self.dtype)
            sample_weight = combine_weights(sample_weight, counts, counts)
        super().update_state(y_true, y_pred, sample_weight)


@catalogue.add("kld", "KLD", "kullback_leibler_divergence")
class KLDivergence(FunctionMetric, fn=losses.kl_divergence):
    """The mean of `losses.kl_divergence`."""


@catalogue.add()
class Poisson(FunctionMetric, fn=losses.poisson):
    """The mean of `losses.poisson`."""


@catalogue.add()
class Hinge(FunctionMetric, fn=losses.hinge):
    """The mean of `losses.hinge`."""


@catalogue.add()
class SquaredHinge(FunctionMetric, fn=losses.squared_hinge):
    """The mean of `losses.squared_hinge`."""


@catalogue.add()
class CategoricalHinge(FunctionMetric, fn=losses.categorical_hinge):
    """The mean of `losses.categorical_hinge`."""
