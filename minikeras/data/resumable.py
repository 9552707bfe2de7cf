"""Resumable: a Dataset that knows where in which pass it stands, and can be saved and restored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .dataset import Dataset
from .passes import Passes


class Resumable:
    """The elements of a Dataset, pass after pass, with a position that a `tf.train.Checkpoint` saves.

    A loop that was left in the middle goes on there at the next `for`. Restoring the position restores all random streams too.

    Args:
        dataset: elements that come in the same order from the same random streams.

    Attributes:
        epoch: number of passes that are complete.
        batch: number of elements taken in the pass under way.

    >>> import minikeras as tf
    >>> data = tf.data.Resumable(tf.data.Dataset.range(3))
    >>> for element in data:
    ...     if data.batch == 2:
    ...         break
    >>> [int(element) for element in data], data.epoch
    ([2], 1)
    """

    def __init__(self, dataset: Dataset) -> None:
        self._passes = Passes(dataset)
        self.epoch = 0

    @property
    def batch(self) -> int:
        """Number of elements taken in the pass under way."""
        return self._passes.taken

    def __iter__(self) -> Iterator[Any]:
        if not self._passes.under_way:
            self._passes.begin()
        yield from self._passes.rest()
        self.epoch += 1

    def get_state(self) -> dict[str, Any]:
        """Where it stands, as plain data: random streams now and when the pass began, passes and elements taken."""
        return {"epoch": self.epoch} | self._passes.state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Stand where another one with the same data stood.

        Raises:
            ValueError: if the data has another number of shuffles with a seed.
        """
        self._passes.resume(state)
        self.epoch = int(state["epoch"])
