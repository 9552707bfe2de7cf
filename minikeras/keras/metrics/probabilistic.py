"""Cross-entropies, divergences and hinges, averaged over batches: the loss functions as metrics."""

from __future__ import annotations

from typing import Any

from ...functions.publish import tensor
from ...types import TensorLike
from .. import losses
from ..losses.alignment import as_floats, both, class_labels, classes_last
from .metric import catalogue
from .reductions import MeanMetricWrapper


@catalogue.add("bce", "BCE")
class BinaryCrossentropy(MeanMetricWrapper):
    """The mean of `losses.binary_crossentropy`; options as there.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.BinaryCrossentropy()([[1.0]], [[0.5]]).numpy().round(4))
    0.6931
    """

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
    """The mean of `losses.categorical_crossentropy`; options as there.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.CategoricalCrossentropy()([[1.0, 0.0]], [[0.5, 0.5]]).numpy().round(4))
    0.6931
    """

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
    """The mean of `losses.sparse_categorical_crossentropy`; options as there. Rows of the ignored class do not count.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.SparseCategoricalCrossentropy()([1], [[0.5, 0.5]]).numpy().round(4))
    0.6931
    """

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
        """Let a batch enter, without the rows of the ignored class; arguments as in `MeanMetricWrapper`."""
        ignored = self._options["ignore_class"]
        if ignored is not None:
            predictions = classes_last(self.name, tensor(y_pred), self._options["axis"])
            counts = as_floats(class_labels(self.name, y_true, predictions) != ignored, self.dtype)
            sample_weight = both(sample_weight, counts, counts)
        super().update_state(y_true, y_pred, sample_weight)


@catalogue.add("kld", "KLD", "kullback_leibler_divergence")
class KLDivergence(MeanMetricWrapper):
    """The mean of `losses.kl_divergence`.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.KLDivergence()([[0.5, 0.5]], [[0.25, 0.75]]).numpy().round(4))
    0.1438
    """

    _direction = "down"

    def __init__(self, name: str | None = "kl_divergence", dtype: Any = None) -> None:
        super().__init__(losses.kl_divergence, name, dtype)


@catalogue.add()
class Poisson(MeanMetricWrapper):
    """The mean of `losses.poisson`.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.Poisson()([[3.0]], [[1.0]]).numpy().round(4))
    1.0
    """

    _direction = "down"

    def __init__(self, name: str | None = "poisson", dtype: Any = None) -> None:
        super().__init__(losses.poisson, name, dtype)


@catalogue.add()
class Hinge(MeanMetricWrapper):
    """The mean of `losses.hinge`.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.Hinge()([[1.0, -1.0]], [[0.5, -2.0]]).numpy())
    0.25
    """

    _direction = "down"

    def __init__(self, name: str | None = "hinge", dtype: Any = None) -> None:
        super().__init__(losses.hinge, name, dtype)


@catalogue.add()
class SquaredHinge(MeanMetricWrapper):
    """The mean of `losses.squared_hinge`.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.SquaredHinge()([[1.0, 0.0]], [[0.5, -2.0]]).numpy())
    0.125
    """

    _direction = "down"

    def __init__(self, name: str | None = "squared_hinge", dtype: Any = None) -> None:
        super().__init__(losses.squared_hinge, name, dtype)


@catalogue.add()
class CategoricalHinge(MeanMetricWrapper):
    """The mean of `losses.categorical_hinge`.

    >>> import minikeras as tf
    >>> print(tf.keras.metrics.CategoricalHinge()([[0.0, 1.0]], [[0.5, 1.0]]).numpy())
    0.5
    """

    _direction = "down"

    def __init__(self, name: str | None = "categorical_hinge", dtype: Any = None) -> None:
        super().__init__(losses.categorical_hinge, name, dtype)
