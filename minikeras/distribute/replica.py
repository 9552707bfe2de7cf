"""The rows of a global batch that a thread computes on, for sums over a batch and draws for its samples."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
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
        """The part of the global batch that these rows are: the weight of what is computed on them in the global mean."""
        return self.rows / self.total if self.total else 0.0


class _Here(threading.local):
    part: BatchPart | None = None


_here = _Here()


def current_part() -> BatchPart | None:
    """The rows that this thread computes on; None if it computes on whole batches."""
    return _here.part


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
