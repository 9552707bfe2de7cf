"""Member: one of many models that are trained together, and the random streams that are its own."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..arrays import random as streams
from ..errors import kind_of
from ..keras.models import Model
from ..keras.seeds import set_random_seed
from .session import takes_seed


class Member:
    """A model that was built after `set_random_seed(seed)`, as a script would that trains it alone.

    Attributes:
        model: an ordinary model.
        seed: what its random streams began with.
        streams: where they stand, so that orders of batches are those of a single run.
    """

    def __init__(self, model: Model, seed: int, states: Any) -> None:
        self.model, self.seed, self.streams = model, seed, states

    @classmethod
    def built(cls, build: Callable[..., Any], seed: int) -> Member:
        """Call `build` with random streams that begin with the seed; those of the caller are where they were afterwards.

        The seed is its argument if it has a parameter without default.
        """
        before = streams.states(), random.getstate(), np.random.get_state()
        try:
            set_random_seed(seed)
            model = build(seed) if takes_seed(build) else build()
            if not isinstance(model, Model):
                raise TypeError(f"build: a keras.Model is needed, found {kind_of(model)}.")
            return cls(model, seed, streams.states())
        finally:
            streams.set_states(before[0])
            random.setstate(before[1])
            np.random.set_state(before[2])

    @contextlib.contextmanager
    def drawing(self) -> Iterator[None]:
        """Within the block random streams are the member's own."""
        outer = streams.states()
        streams.set_states(self.streams)
        try:
            yield
        finally:
            self.streams = streams.states()
            streams.set_states(outer)
