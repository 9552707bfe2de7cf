"""Losses as objects: a function of labels and predictions, and how to reduce its values.

Next: `metrics.py`, which follows the same functions over many batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core import Tensor, convert_to_tensor
from ...functions.elementwise import logical_and
from ...functions.shaping import squeeze
from ...module import snake_case
from ...types import TensorLike
from ..config import floatx
from .alignment import reduced
from .functions import (
    binary_crossentropy,
    catalogue,
    categorical_crossentropy,
    mean_absolute_error,
    mean_squared_error,
    sparse_categorical_crossentropy,
)

_REDUCTIONS = ("sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none", None)


class Loss:
    """Base class: a function of labels and predictions, and how to reduce its values.

    Args:
        name: shown in logs.
        reduction: 'sum_over_batch_size' (default), 'sum', 'mean', 'mean_with_sample_weight', or 'none'.
        dtype: of the result; the default float dtype if None.

    >>> import minikeras as tf
    >>> class Cubic(tf.keras.losses.Loss):
    ...     def call(self, y_true, y_pred):
    ...         return tf.reduce_mean(tf.abs(y_true - y_pred) ** 3, axis=-1)
    >>> print(Cubic()([[0.0]], [[2.0]]).numpy())
    8.0
    """

    def __init__(self, name: str | None = None, reduction: str | None = "sum_over_batch_size", dtype: Any = None) -> None:
        if reduction not in _REDUCTIONS:
            raise ValueError(
                f"Invalid value for argument `reduction`. Expected one of {list(_REDUCTIONS)}. Received: "
                f"reduction={reduction!r}."
            )
        self.name = name or snake_case(type(self).__name__)
        self.reduction = reduction
        self.dtype = dtype

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """Loss values, one for each row. Override it."""
        raise NotImplementedError(f"{type(self).__name__} must implement call(y_true, y_pred).")

    def __call__(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None, mask: Any = None) -> Tensor:
        """The reduced loss."""
        kind = self.dtype or floatx()
        predictions = y_pred if type(y_pred) is Tensor else convert_to_tensor(y_pred, dtype_hint=kind)
        labels = y_true if type(y_true) is Tensor else convert_to_tensor(y_true)
        if not hasattr(y_true, "dtype") and labels.dtype.is_floating:
            labels = convert_to_tensor(y_true, kind)
        mask = getattr(y_pred, "_keras_mask", None) if mask is None else mask
        return reduced(self.call(labels, predictions), sample_weight, self.reduction, mask)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Loss:
        """A loss from `get_config`."""
        return cls(**config)


class LossFunctionWrapper(Loss):
    """A loss made of a function and options that are handed to it."""

    def __init__(
        self,
        fn: Callable[..., Tensor],
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(name or getattr(fn, "__name__", None), reduction, dtype)
        self.fn = fn
        self.options = options

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        return self.fn(y_true, y_pred, **self.options)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.options}


@catalogue.add()
class MeanSquaredError(LossFunctionWrapper):
    """mean((y_true - y_pred)**2).

    >>> import minikeras as tf
    >>> print(tf.keras.losses.MeanSquaredError()([[0.0, 2.0]], [[1.0, 4.0]]).numpy())
    2.5
    """

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str | None = "mean_squared_error", dtype: Any = None
    ) -> None:
        super().__init__(mean_squared_error, reduction, name, dtype)


@catalogue.add()
class MeanAbsoluteError(LossFunctionWrapper):
    """mean(|y_true - y_pred|).

    >>> import minikeras as tf
    >>> print(tf.keras.losses.MeanAbsoluteError()([[0.0, 2.0]], [[1.0, 4.0]]).numpy())
    1.5
    """

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str | None = "mean_absolute_error", dtype: Any = None
    ) -> None:
        super().__init__(mean_absolute_error, reduction, name, dtype)


@catalogue.add()
class BinaryCrossentropy(LossFunctionWrapper):
    """Cross-entropy of yes or no. Options as in `binary_crossentropy`.

    >>> import minikeras as tf
    >>> print(tf.keras.losses.BinaryCrossentropy(from_logits=True)([[1.0]], [[0.0]]).numpy().round(4))
    0.6931
    """

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "binary_crossentropy",
        dtype: Any = None,
    ) -> None:
        super().__init__(
            binary_crossentropy,
            reduction,
            name,
            dtype,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
        )


@catalogue.add()
class CategoricalCrossentropy(LossFunctionWrapper):
    """Cross-entropy of one-hot labels. Options as in `categorical_crossentropy`.

    >>> import minikeras as tf
    >>> print(tf.keras.losses.CategoricalCrossentropy(from_logits=True)([[1.0, 0.0]], [[0.0, 0.0]]).numpy().round(4))
    0.6931
    """

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "categorical_crossentropy",
        dtype: Any = None,
    ) -> None:
        super().__init__(
            categorical_crossentropy,
            reduction,
            name,
            dtype,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
        )


@catalogue.add()
class SparseCategoricalCrossentropy(LossFunctionWrapper):
    """Cross-entropy of integer labels. Options as in `sparse_categorical_crossentropy`.

    >>> import minikeras as tf
    >>> print(tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)([1], [[0.0, 0.0]]).numpy().round(4))
    0.6931
    """

    def __init__(
        self,
        from_logits: bool = False,
        ignore_class: int | None = None,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "sparse_categorical_crossentropy",
        dtype: Any = None,
    ) -> None:
        super().__init__(
            sparse_categorical_crossentropy,
            reduction,
            name,
            dtype,
            from_logits=from_logits,
            ignore_class=ignore_class,
            axis=axis,
        )

    def __call__(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None, mask: Any = None) -> Tensor:
        """The reduced loss; rows of the ignored class do not count for the mean."""
        ignored = self.options["ignore_class"]
        if ignored is not None:
            labels = convert_to_tensor(y_true)
            if labels.ndim == convert_to_tensor(y_pred).ndim:
                labels = squeeze(labels, -1)
            valid = labels != ignored
            mask = valid if mask is None else logical_and(valid, mask)
        return super().__call__(y_true, y_pred, sample_weight, mask)


def get(identifier: Any) -> Any:
    """The `Loss` for a name, a function, a class or an object; None stays None."""
    found = catalogue.get(identifier)
    return found if found is None or isinstance(found, Loss) else LossFunctionWrapper(found)
