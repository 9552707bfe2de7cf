"""Data parallelism for custom training loops, under Horovod's names: each rank computes on its rows, gradients are averaged."""

from __future__ import annotations

from typing import Any

from .. import nest
from ..core import GradientTape
from ..errors import InvalidArgumentError
from .functions import all_reduce_together


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
        found = self._tape.gradient(target, sources, *arguments, **options)
        leaves = nest.flatten(found)
        return nest.pack(found, all_reduce_together(leaves, self._op))
