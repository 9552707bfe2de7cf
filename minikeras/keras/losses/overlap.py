"""Losses of masks: how little two regions overlap."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...distribute.functions import sum_of_all_parts
from ...distribute.replica import current_part
from ...functions.reductions import reduce_sum
from ...functions.shaping import stack, unstack
from ...types import TensorLike
from ..config import epsilon
from .alignment import aligned
from .loss import LossFunctionWrapper, catalogue


def dice(y_true: TensorLike, y_pred: TensorLike, axis: Any = None) -> Tensor:
    """1 - 2 sum(y_true y_pred) / (sum(y_true) + sum(y_pred)).

    Args:
        y_true, y_pred: memberships in [0, 1], of one shape.
        axis: over which to add; None for all. All but the first gives one value for each image.

    Source: Milletari, Navab and Ahmadi (2016), V-Net, section 3; here without squares in the denominator.

    >>> print(tf.keras.losses.dice([[1.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]]).numpy().round(4))
    0.3333
    """
    labels, predictions = aligned("dice", y_true, y_pred)
    common, true, found = _sums([labels * predictions, labels, predictions], axis)
    return 1.0 - 2.0 * common / (true + found + epsilon())


def tversky(y_true: TensorLike, y_pred: TensorLike, alpha: float = 0.5, beta: float = 0.5, axis: Any = None) -> Tensor:
    """1 - s / (s + alpha sum((1 - y_true) y_pred) + beta sum(y_true (1 - y_pred))), for s = sum(y_true y_pred).

    Args:
        y_true, y_pred: memberships in [0, 1], of one shape.
        alpha: weight of what is too much, the false positives.
        beta: weight of what is missing, the false negatives.
        axis: over which to add; None for all.

    Source: Salehi, Erdogmus and Gholipour (2017), Tversky Loss Function, equation (3).

    >>> print(tf.keras.losses.tversky([[1.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]]).numpy().round(4))
    0.3333
    """
    labels, predictions = aligned("tversky", y_true, y_pred)
    terms = [labels * predictions, (1.0 - labels) * predictions, labels * (1.0 - predictions)]
    common, surplus, missing = _sums(terms, axis)
    return 1.0 - common / (common + alpha * surplus + beta * missing + epsilon())


def _sums(terms: list[Tensor], axis: Any) -> list[Tensor]:
    """The sums over an axis; where that is the axis of the rows, over those of the whole batch."""
    sums = [reduce_sum(term, axis) for term in terms]
    rank = terms[0].ndim
    over_rows = axis is None or any(one % rank == 0 for one in (axis if isinstance(axis, (list, tuple)) else (axis,)))
    return unstack(sum_of_all_parts(stack(sums))) if over_rows and current_part() is not None else sums


@catalogue.add()
class Dice(LossFunctionWrapper):
    """1 - Dice's coefficient. Options as in `dice`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.Dice()([[1.0, 0.0]], [[1.0, 1.0]]).numpy().round(4))
    0.3333
    """

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str | None = "dice", axis: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(dice, reduction, name, dtype, axis=axis)


@catalogue.add()
class Tversky(LossFunctionWrapper):
    """1 - Tversky's index. Options as in `tversky`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.Tversky(alpha=0.25, beta=0.75)([[1.0, 0.0]], [[1.0, 1.0]]).numpy().round(4))
    0.2
    """

    def __init__(
        self,
        alpha: float = 0.5,
        beta: float = 0.5,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "tversky",
        axis: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(tversky, reduction, name, dtype, alpha=alpha, beta=beta, axis=axis)
