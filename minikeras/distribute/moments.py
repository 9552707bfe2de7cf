"""Mean and variance of values that lie on several ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core import Tensor
from ..functions.creation import one_hot, ones_like
from ..functions.elementwise import cast, divide_no_nan, square
from ..functions.reductions import reduce_sum
from ..functions.shaping import reshape, stack, unstack
from ..nn_ops.nn import masked_fill
from .functions import all_reduce
from .replica import check_exchange
from .world import world


def moments_of_all_ranks(x: Tensor, axes: Sequence[int], weights: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Number, mean and population variance of the values of all ranks along axes, which are kept as axes of size 1.

    Each rank gives those of its own values, and they are put together in float64, so a variance that is small beside the mean
    loses no digits. That takes one collective operation, and its derivative another one.

    Args:
        x: floats; a rank may have none.
        axes: over which to take them; sizes along them may differ among the ranks.
        weights: None, or 0 and 1 of the shape of x, 0 for values that do not count.

    Source: Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance (1983), equation (1.5).
    """
    part, ranks = check_exchange("synchronized=True"), world()
    number: Any = float(math.prod([x.shape[axis] for axis in axes])) if weights is None else reduce_sum(weights, axes, True)
    mean = divide_no_nan(_sum(x, axes, weights), number)
    variance = divide_no_nan(_sum(square(x - mean), axes, weights), number)
    own = cast(stack([ones_like(mean) * number, mean, variance]), "float64")
    if part is not None and not part.rows:
        own = own * 0.0
    mine = reshape(one_hot(ranks.rank, ranks.size, dtype="float64"), (ranks.size, *[1] * own.ndim))
    numbers, means, variances = unstack(all_reduce(mine * own), axis=1)
    total = reduce_sum(numbers, 0)
    shares = divide_no_nan(numbers, total)
    middle = reduce_sum(shares * means, 0)
    spread = reduce_sum(shares * (variances + square(means - middle)), 0)
    return cast(total, x.dtype), cast(middle, x.dtype), cast(spread, x.dtype)


def _sum(values: Tensor, axes: Sequence[int], weights: Tensor | None) -> Tensor:
    """The sum of the values that count."""
    return reduce_sum(values if weights is None else masked_fill(weights != 0.0, values), axes, True)
