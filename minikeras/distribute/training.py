"""Data parallelism for custom training loops, under Horovod's names: each rank computes on its rows, gradients are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import nest
from ..core import GradientTape, convert_to_tensor
from ..errors import InvalidArgumentError
from ..functions.elementwise import cast
from ..keras.arguments import whole
from ..keras.optimizers import Optimizer
from ..ranks import Communicator, rows_here
from ..types import Array, as_dtype
from .functions import all_reduce_together, exchanged
from .parts import OwnRows


class DistributedGradientTape:
    """A tape whose `gradient` is the mean, or the sum, over all ranks: one collective operation for all sources.

    With the mean of the loss over its rows on each rank, and as many rows on each, the mean is the gradient of the mean over
    all rows. With different numbers of rows give each rank the sum of its losses divided by the number of all rows, and
    op='sum'.

    Args:
        tape: a GradientTape, or None for a new one.
        op: 'mean' or 'sum'.

    >>> w = tf.Variable(3.0)
    >>> with tf.distribute.DistributedGradientTape() as tape:
    ...     loss = w * w
    >>> print(tape.gradient(loss, w).numpy())
    6.0
    """

    def __init__(self, tape: GradientTape | None = None, op: str = "mean") -> None:
        if op not in ("mean", "sum"):
            raise InvalidArgumentError(f"DistributedGradientTape: op must be 'mean' or 'sum', found {op!r}.")
        self._tape, self._op = GradientTape() if tape is None else tape, op

    def __enter__(self) -> DistributedGradientTape:
        self._tape.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._tape.__exit__(*exception)

    def watch(self, tensor: Any) -> None:
        """As `GradientTape.watch`."""
        self._tape.watch(tensor)

    def gradient(self, target: Any, sources: Any, *arguments: Any, **options: Any) -> Any:
        """As `GradientTape.gradient`, over all ranks. A source without gradient must have none on all of them."""
        if type(rows_here()) is OwnRows:
            raise InvalidArgumentError(
                "DistributedGradientTape: in `run` of a strategy optimizers add up the gradients of all ranks. Use "
                "tf.GradientTape there."
            )
        found = self._tape.gradient(target, sources, *arguments, **options)
        return nest.pack(found, all_reduce_together(nest.flatten(found), self._op))


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

    def __call__(self, grads: Sequence[Any]) -> list[Any]:
        """The gradients of all ranks."""
        given = [None if one is None else convert_to_tensor(one) for one in grads]
        if self.kind is None:
            return all_reduce_together(given, self.operation)
        sent = [None if one is None else cast(one, self.kind) for one in given]
        found = all_reduce_together(sent, self.operation)
        return [None if own is None else cast(one, own.dtype) for one, own in zip(found, given, strict=True)]

    def gathered(self, steps: int, sums: list[Array]) -> list[Array]:
        """The mean of gradients that were accumulated over several steps. If ranks exchange only these sums, by one collective
        operation for each dtype, the result is their sum or their mean.
        """
        if self.passes == 1:
            return [one / steps for one in sums]
        arrays = sums if self.divisor == 1 else [one / self.divisor for one in sums]
        kind = None if self.kind is None else as_dtype(self.kind).numpy

        def added_up(group: Communicator, flat: Array) -> Array:
            total = group.all_reduce(flat if kind is None else flat.astype(kind), "sum").astype(flat.dtype)
            return total / flat.dtype.type(group.size) if self.operation == "mean" else total

        return exchanged(arrays, added_up)


def DistributedOptimizer(
    optimizer: Any,
    backward_passes_per_step: int = 1,
    compression: str | None = None,
    op: str = "average",
    average_aggregated_gradients: bool = False,
) -> Any:
    """The optimizer itself, which from now on steps by the gradients of all ranks; each rank has rows of its own.

    Its configuration and what is saved of it stay its own, so a model that was trained so is loaded with a plain optimizer.
    Ranks count alike, however many rows they have: give them as many. A model of a strategy needs none of this.

    Args:
        optimizer: one that is given gradients, such as Adam; also in `compile`.
        backward_passes_per_step: update at every n-th step only, by the sum of n gradients, which are exchanged once. It
            becomes the `gradient_accumulation_steps` of the optimizer, which on its own steps by the mean.
        compression: None, 'bf16' or 'fp16': the dtype in which gradients are sent.
        op: 'average' or 'sum' over the ranks.
        average_aggregated_gradients: step by the mean of the n gradients instead.

    Raises:
        InvalidArgumentError: for other options, or an optimizer that is distributed already or asks for the loss itself.

    Source: Sergeev and Del Balso, Horovod (2018), section 3.

    >>> w = tf.Variable(3.0)
    >>> optimizer = tf.distribute.DistributedOptimizer(tf.keras.optimizers.SGD(0.5))
    >>> _ = optimizer.apply_gradients([(tf.constant(2.0), w)])
    >>> print(w.numpy())
    2.0
    """
    kinds, operations = {None: None, "bf16": "bfloat16", "fp16": "float16"}, {"average": "mean", "sum": "sum"}
    if compression not in kinds or op not in operations:
        raise InvalidArgumentError(
            "DistributedOptimizer: compression must be None, 'bf16' or 'fp16' and op 'average' or 'sum', found "
            f"{compression!r} and {op!r}."
        )
    if not isinstance(optimizer, Optimizer) or optimizer.exchange is not None or optimizer.needs_loss:
        raise InvalidArgumentError(
            "DistributedOptimizer: expected an optimizer of gradients, such as keras.optimizers.Adam, that is not distributed "
            f"yet, found {optimizer!r:.100}."
        )
    passes, known = backward_passes_per_step, optimizer.gradient_accumulation_steps
    whole("DistributedOptimizer: backward_passes_per_step", passes, 1)
    parts = hasattr(optimizer, "inner_optimizer") or hasattr(optimizer, "members")
    if passes > 1 and (known not in (None, passes) or optimizer.built or parts):
        raise InvalidArgumentError(
            f"DistributedOptimizer: backward_passes_per_step={passes} needs a single optimizer that was not used yet "
            f"and has no gradient_accumulation_steps of its own, found {optimizer!r:.100}."
        )
    if passes > 1:
        optimizer.gradient_accumulation_steps = passes
    optimizer.exchange = Exchange(operations[op], kinds[compression], passes, passes if average_aggregated_gradients else 1)
    return optimizer
