"""Feed: the batches of one epoch after another, and where in the data it stands (`data/passes.py`)."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...data.passes import Passes
from ..config import max_steps_per_epoch
from .sources import Source


class Feed:
    """The batches of `source` for `fit`, `evaluate` or `predict`: `steps` an epoch, of which one goes on where the last one
    stopped; whole passes if None. `wanted` are the steps asked for, `steps` the batches an epoch if that is known.
    """

    def __init__(self, source: Source, steps: int | None = None) -> None:
        limit = max_steps_per_epoch()
        given = source.steps if steps is None else steps
        if limit is not None and (given is None or given > limit):
            warnings.warn(f"Limiting steps_per_epoch to {limit}, see keras.config.set_max_steps_per_epoch.", stacklevel=4)
            steps = limit
        if source.steps == np.inf and steps is None:
            raise ValueError("The data has no end: say how many batches an epoch has, with `steps_per_epoch` or `steps`.")
        self.source = source
        self.wanted = steps
        self.steps: int | None = steps if steps is not None else None if source.steps is None else int(source.steps)
        self._passes = Passes(source)

    def epoch(self, done: int = 0) -> Iterator[Any]:
        """What stands for the batches of an epoch of which `done` were taken before; `source.batch` makes them."""
        if not done:
            self.source.on_epoch_begin()
        if self.wanted is not None:
            yield from itertools.islice(self._without_end(), self.wanted - done)
        else:
            if not done:
                self._passes.begin()
            yield from self._passes.rest()
        self.source.on_epoch_end()

    def _without_end(self) -> Iterator[Any]:
        """One pass after another, if the source has a length, else what is left of its only one."""
        if not self._passes.under_way:
            self._passes.begin()
        yield from self._passes.rest()
        while self.source.steps:
            self._passes.begin()
            yield from self._passes.rest()

    def state(self) -> dict[str, Any]:
        """Where it stands, as plain values."""
        return self._passes.state()

    def resume(self, state: Mapping[str, Any]) -> None:
        """Stand where a feed of the same data stood, random streams included."""
        self._passes.resume(state)
