"""Labels, predictions and weights of shapes that fit together; and the reduction of loss values to one number.

Key idea: nothing is broadcast in silence. Labels and predictions must have one shape, save that (n,) and (n, 1) stand for each
other, and there is one weight for each row. Next: `functions.py`.
"""

from __future__ import annotations

from typing import Any

from ...core import Tensor, convert_to_tensor
from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...functions.elementwise import cast
from ...functions.publish import tensor
from ...functions.reductions import reduce_any, reduce_mean, reduce_sum
from ...functions.shaping import expand_dims, reshape, squeeze
from ...types import TensorLike, as_dtype
from ..config import epsilon


def as_floats(value: TensorLike, dtype: Any) -> Tensor:
    """A Tensor of a float dtype; numbers in lists are read in it, not in float32 first.

    Raises:
        DTypeError: for strings.
    """
    if type(value) is Tensor and value._array.dtype is as_dtype(dtype).numpy:
        return value
    if hasattr(value, "dtype"):
        kind = as_dtype(value.dtype).kind
        if kind not in "biuf":
            raise DTypeError(f"labels, predictions and weights must be numbers, found dtype {value.dtype}. Encode them first.")
        return cast(value, dtype)
    return convert_to_tensor(value, dtype)


def aligned(name: str, y_true: TensorLike, y_pred: TensorLike) -> tuple[Tensor, Tensor]:
    """Labels and predictions as Tensors of one shape and of the predictions' dtype.

    Raises:
        ShapeError: if the shapes differ by more than one axis of size 1 at the end.
    """
    predictions = tensor(y_pred)
    labels = as_floats(y_true, predictions.dtype)
    if labels.shape == predictions.shape:
        return labels, predictions
    if labels.ndim == predictions.ndim - 1 and predictions.shape == (*labels.shape, 1):
        return expand_dims(labels, -1), predictions
    if predictions.ndim == labels.ndim - 1 and labels.shape == (*predictions.shape, 1):
        return squeeze(labels, -1), predictions
    raise ShapeError(
        f"{name}: y_true has shape {labels.shape} and y_pred {predictions.shape}; they must be equal (or (n,) and (n, 1)). "
        "Nothing is broadcast here: check the number of units of the last layer, or one-hot encode the labels."
    )


def as_integers(name: str, labels: Tensor) -> Tensor:
    """Labels as integers; whole numbers may come as floats.

    Raises:
        InvalidArgumentError: for other numbers, which are probabilities rather than labels.
    """
    if labels.dtype.is_integer:
        return labels
    whole = cast(labels, "int64")
    if not labels.dtype.is_floating or bool(reduce_any(cast(whole, labels.dtype) != labels)):
        raise InvalidArgumentError(
            f"{name}: y_true must hold integer labels, found {labels.dtype.name} values such as {labels.numpy().flat[0]!r}. "
            "For probabilities or one-hot rows use categorical_crossentropy."
        )
    return whole


def reduced(values: Tensor, sample_weight: TensorLike, reduction: str | None, mask: Any = None) -> Tensor:
    """Loss values of rows, weighted and reduced.

    sum_over_batch_size and mean: sum / number of values; sum: sum; mean_with_sample_weight: sum / sum of weights; none: as is.
    """
    weights = None if sample_weight is None else spread_weights(sample_weight, values)
    if mask is not None:
        valid = spread_weights(mask, values)
        if reduction in ("sum_over_batch_size", "mean", "mean_with_sample_weight"):
            total = float(values.shape.num_elements())
            valid = valid * (total / (reduce_sum(valid) + epsilon()))
        weights = valid if weights is None else weights * valid
    weighted = values if weights is None else values * weights
    if reduction in (None, "none"):
        return weighted
    if reduction == "sum" or not weighted.ndim:
        return reduce_sum(weighted)
    if reduction == "mean_with_sample_weight" and weights is not None:
        return reduce_sum(weighted) / (reduce_sum(weights) + epsilon())  # type: ignore[no-any-return]
    return reduce_mean(weighted)


def spread_weights(sample_weight: TensorLike, values: Tensor) -> Tensor:
    """A number, or weights (n,), (n, 1) or like the values, ready to multiply the values with.

    Raises:
        ShapeError: if there is not one weight for each row.
    """
    weights = as_floats(sample_weight, values.dtype)
    shape = tuple(weights.shape)
    if len(shape) == values.ndim + 1 and shape[-1] == 1:
        shape = shape[:-1]
    shape = (*shape, *[1] * (values.ndim - len(shape)))
    fits = len(shape) == values.ndim and all(size in (1, whole) for size, whole in zip(shape, values.shape, strict=True))
    if weights.ndim and (not fits or shape[:1] != tuple(values.shape[:1])):
        raise ShapeError(
            f"sample_weight has shape {weights.shape}, the values to weight have shape {values.shape}. Give one weight for "
            f"each row, shape ({values.shape[0] if values.ndim else 1},), or one for each value."
        )
    return reshape(weights, shape)
