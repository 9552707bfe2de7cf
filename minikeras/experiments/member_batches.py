"""The batches of members that go through one table of rows, each in its own order or with its own rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..data.table import numbered
from ..keras.batches.sources import Source, of_arrays
from ..keras.seeds import derived_seed
from ..nn_ops.streams import generator_at
from ..types import Array
from .member import Member


class MemberSource(Source):
    """Row numbers of shape (members, rows of a batch): `batch` gives arrays of shape (members, rows of a batch, ...).

    Args:
        whole: the rows, as a source.
        members: those whose random streams draw the orders, as a single `fit` of each would.
        rows: for each member the numbers of its rows, as many for each; None for all rows.
        batch_size, shuffle: as in `fit`.
    """

    checked = True

    def __init__(
        self,
        whole: Source,
        members: Sequence[Member],
        rows: Sequence[Array] | None,
        batch_size: int | None,
        shuffle: bool | str,
    ) -> None:
        assert whole.table is not None
        self.table, self._members, self._rows = whole.table, members, rows
        count = self.table.length if rows is None else len(rows[0])
        self._size = 32 if batch_size is None else batch_size
        numbers, drawn = np.arange(count), self._size if shuffle == "batch" else count
        self._orders = []
        for member in members:
            with member.drawing():
                self._orders.append(of_arrays(numbers, None, None, count, drawn, shuffle))
        super().__init__(-(-count // self._size))
        self._chosen = list(range(len(members)))
        self._ended: set[int] = set()

    def end(self, places: Iterable[int]) -> None:
        """Let the random streams of these members stay where they are, whatever is still drawn for their rows."""
        self._ended.update(places)

    def choose(self, places: Sequence[int]) -> None:
        """Give batches to these members only."""
        self._chosen = list(places)

    def from_position(self, start: int) -> Iterator[Any]:
        orders = []
        for place, (member, source) in enumerate(zip(self._members, self._orders, strict=True)):
            before = member.streams
            with member.drawing():
                orders.append(np.concatenate([numbered(part) for part in source.from_position(0)]))
            if place in self._ended:
                member.streams = before
        whole = np.stack([orders[place] for place in self._chosen])
        if self._rows is not None:
            whole = np.take_along_axis(np.stack([self._rows[place] for place in self._chosen]), whole, axis=1)
        for first in range(start * self._size, whole.shape[1], self._size):
            yield whole[:, first : first + self._size]


def _length(source: Source) -> int:
    assert source.table is not None, "arrays have a table"
    return source.table.length


def resampled(source: Source, members: Sequence[Member]) -> list[Array]:
    """For each member as many rows as there are, drawn with replacement; which ones follows from its seed.

    Source: Breiman, Bagging predictors (1996), section 2.
    """
    count = _length(source)
    return [generator_at(derived_seed(member.seed, "bootstrap"), 0).integers(count, size=count) for member in members]


def folds_of(source: Source, folds: int, members: int) -> tuple[list[Array], list[Array]]:
    """Rows to train on and rows to validate on: member i leaves out part i modulo `folds` of the rows.

    Raises:
        ValueError: if there are fewer members than folds, or the rows do not divide into as many parts of one size.
    """
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= members:
        raise ValueError(f"fit: folds must be a number from 2 to that of the members, {members}; found {folds!r}.")
    count = _length(source)
    size, rest = divmod(count, folds)
    if not size or rest:
        raise ValueError(
            f"fit: {count} rows do not divide into {folds} folds of one size, so members would train on different numbers of "
            f"rows. Leave out {rest}, such as the last: x[:{count - rest}]."
        )
    parts = np.arange(count).reshape(folds, size)
    held_out = [parts[member % folds] for member in range(members)]
    return [np.delete(parts, member % folds, axis=0).reshape(-1) for member in range(members)], held_out
