"""From the loss values of rows to one number: weights and masks multiply; the reduction says by what the sum is divided."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...functions.elementwise import divide_no_nan
from ...functions.reductions import reduce_mean, reduce_sum
from ...types import TensorLike
from .alignment import spread_weights

REDUCTIONS = ("sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none", None)


def checked_reduction(reduction: str | None) -> str | None:
    """The reduction itself, refused if there is none of that name."""
    if reduction not in REDUCTIONS:
        raise ValueError(
            f"Invalid value for argument `reduction`. Expected one of {list(REDUCTIONS)}. Received: reduction={reduction!r}."
        )
    return reduction


def reduced(values: Tensor, sample_weight: TensorLike, reduction: str | None, mask: Any = None) -> Tensor:
    """Loss values of rows, weighted and reduced.

    sum_over_batch_size and mean: sum / number of values, those that a mask leaves; sum: sum; mean_with_sample_weight: sum / sum
    of weights, 0 if that is 0; none: as is.
    """
    weights = None if sample_weight is None else spread_weights(sample_weight, values)
    if mask is not None:
        valid = spread_weights(mask, values, "mask")
        if reduction in ("sum_over_batch_size", "mean"):
            valid = valid * divide_no_nan(float(valid.shape.num_elements()), reduce_sum(valid))
        weights = valid if weights is None else weights * valid
    weighted = values if weights is None else values * weights
    if reduction in (None, "none"):
        return weighted
    if reduction == "sum" or not weighted.ndim:
        return reduce_sum(weighted)
    if reduction == "mean_with_sample_weight" and weights is not None:
        return divide_no_nan(reduce_sum(weighted), reduce_sum(weights))
    return reduce_mean(weighted)
