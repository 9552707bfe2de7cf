"""The rows of a global batch that a thread computes on, for sums over a batch and draws for its samples; and whether it runs a
step of a custom loop for a strategy.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class BatchPart(NamedTuple):
    """The rows from `first` to `first + rows` of a global batch of `total` rows.

    Attributes:
        first, rows, total: see above.
        shards: the parts that a rank computes one after another; above 1 they cannot exchange sums with each other.
    """

    first: int
    rows: int
    total: int
    shards: int = 1

    @property
    def share(self) -> float:
        """The share of these rows in the global batch: the weight of their results in the global mean."""
        return self.rows / self.total if self.total else 0.0


class _Here(threading.local):
    part: BatchPart | None = None
    adds_up = False


_here = _Here()


def current_part() -> BatchPart | None:
    """The rows that this thread computes on; None if it computes on whole batches."""
    return _here.part


def part_of_draw(shape: Sequence[int], exactly: bool = False) -> dict[str, int]:
    """The option by which a draw of this shape, for the rows of a part, is a part of the whole batch's draw: its first element.

    Rows come first, the steps of a series or other repetitions of them right behind. A draw of another number of them is one
    that all parts share.

    Args:
        shape: of the draw.
        exactly: whether its first axis is to have as many elements as there are rows, not a multiple of them.
    """
    part = _here.part
    if part is None or not part.rows or not shape or shape[0] % part.rows or (exactly and shape[0] != part.rows):
        return {}
    start = part.first * (math.prod(shape) // part.rows)
    return {"start": start} if start else {}


@contextlib.contextmanager
def computing_on(part: BatchPart | None) -> Iterator[None]:
    """Within the block this thread computes on these rows."""
    before, _here.part = _here.part, part
    try:
        yield
    finally:
        _here.part = before


def check_exchange(what: str) -> BatchPart | None:
    """The rows that this thread computes on, or None.

    Raises:
        RuntimeError: if they are one of several shards, which a rank computes one after another: none can wait for the next.
    """
    part = _here.part
    if part is not None and part.shards > 1:
        raise RuntimeError(
            f"{what} needs sums over all ranks within a step, but each rank computes {part.shards} virtual shards one after "
            "another. Use virtual_shards=None, or as many as there are ranks."
        )
    return part


def adds_up() -> bool:
    """True if optimizers of this thread step by the sum of the gradients of all ranks."""
    return _here.adds_up


@contextlib.contextmanager
def adding_up() -> Iterator[None]:
    """Within the block optimizers of this thread step by that sum."""
    before, _here.adds_up = _here.adds_up, True
    try:
        yield
    finally:
        _here.adds_up = before
