"""The gradient sync among ranks before an optimizer steps: on parts of a batch, and by `DistributedOptimizer`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core import convert_to_tensor
from ...core.arrays import namespace, to_device, to_numpy
from ...distribute.functions import all_reduce_together, exchanged
from ...distribute.replica import adds_up, check_exchange, current_part
from ...distribute.world import world
from ...functions.elementwise import cast
from ...types import Array, as_dtype
from .state import Stepper


class Exchange(NamedTuple):
    """The reduction of the gradients of ranks, each of which has rows of its own.

    Attributes:
        operation: 'mean' or 'sum'.
        kind: the dtype in which they are sent; None for their own.
        passes: the number of gradients that each rank accumulates first.
        divisor: of that sum, 1 or `passes`.
    """

    operation: str = "mean"
    kind: str | None = None
    passes: int = 1
    divisor: int = 1


def is_distributed(optimizer: Any) -> bool:
    """True if `DistributedOptimizer` was given this optimizer, or the one within this loss scale."""
    return any(getattr(one, "exchange", None) is not None for one in (optimizer, getattr(optimizer, "inner_optimizer", None)))


def needs_exchange(optimizer: Any) -> bool:
    """True if the gradients of a step are those of several ranks."""
    return current_part() is not None or adds_up() or is_distributed(optimizer)


def exchange_of(optimizer: Stepper) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """The function from a rank's own gradients to those that it steps by; None if these are the same.

    On a part of a batch it gives the mean over all parts, weighted by their rows; in `run` of a strategy the sum over all
    ranks.
    """
    part = check_exchange("a step of an optimizer")
    if part is not None:
        return lambda grads: all_reduce_together(
            [None if one is None else convert_to_tensor(one) * part.share for one in grads]
        )
    exchange, inner = optimizer.exchange, getattr(optimizer, "inner_optimizer", None)
    held = [member.optimizer for member in getattr(optimizer, "members", ()) if member.optimizer is not None]  # None freezes
    if any(one.exchange is not None for one in held):
        raise ValueError(
            f"apply: '{optimizer.name}' holds a DistributedOptimizer, whose gradients are not exchanged there. Put "
            "DistributedOptimizer around the whole."
        )
    if inner is not None and inner.exchange is not None:
        exchange = inner.exchange
        if exchange.passes > 1:
            raise ValueError(
                f"apply: '{optimizer.name}' would scale the loss before the gradients of "
                f"backward_passes_per_step={exchange.passes} are exchanged. Use 1 with mixed_float16, or mixed_bfloat16."
            )
    if exchange is None:
        return all_reduce_together if adds_up() else None
    return None if exchange.passes > 1 else functools.partial(_over_ranks, exchange)


def _over_ranks(exchange: Exchange, grads: Sequence[Any]) -> list[Any]:
    given = [None if one is None else convert_to_tensor(one) for one in grads]
    if exchange.kind is None:
        return all_reduce_together(given, exchange.operation)
    sent = [None if one is None else cast(one, exchange.kind) for one in given]
    found = all_reduce_together(sent, exchange.operation)
    return [None if own is None else cast(one, own.dtype) for one, own in zip(found, given, strict=True)]


def gathered_over(steps: int, sums: list[Array], exchange: Exchange | None) -> list[Array]:
    """The mean of gradients that were accumulated over several steps. If ranks exchange only these sums, by one collective
    operation for each dtype, the result is their sum or their mean, as `exchange` says.
    """
    if exchange is None or exchange.passes == 1:
        return [one / steps for one in sums]
    arrays = sums if exchange.divisor == 1 else [one / exchange.divisor for one in sums]
    ranks, kind = world(), None if exchange.kind is None else as_dtype(exchange.kind).numpy

    def added_up(flat: Array) -> Array:
        total = ranks.all_reduce(flat if kind is None else flat.astype(kind), "sum").astype(flat.dtype)
        return total / flat.dtype.type(ranks.size) if exchange.operation == "mean" else total

    found = exchanged([to_numpy(array) for array in arrays], added_up)
    return [to_device(one, namespace(array)) for one, array in zip(found, arrays, strict=True)]
