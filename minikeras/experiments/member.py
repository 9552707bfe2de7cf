"""Member: one of many models that are trained together, and the random streams that are its own."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..errors import kind_of
from ..keras.models import Model
from ..keras.symbolic.trial import Trial
from ..nn_ops import streams
from .session import fresh_session, takes_seed


class Member:
    """A model that was built after `set_random_seed(seed)`, as a script would that trains it alone.

    Attributes:
        model: an ordinary model.
        seed: what its random streams began with.
        streams: where they stand, so that orders of batches are those of a single run.
        ready: whether all weights are made and the streams of all layers settled.
    """

    def __init__(self, model: Model, seed: int, states: Any) -> None:
        self.model, self.seed, self.streams = model, seed, states
        self.ready = False

    def make_ready(self, x: Any) -> None:
        """Have the model make its weights, and settle the streams of layers that were not called yet, by a trial on inputs."""
        layers = (self.model, *self.model._collect().sublayers)
        if not self.ready and x is not None and any(not one.built or one._stream is None for one in layers):
            with self.drawing():
                Trial(self.model).run(functools.partial(self.model, x, training=False))
        self.ready = self.ready or x is not None

    @classmethod
    def built(cls, build: Callable[..., Any], seed: int) -> Member:
        """Call `build` as in a new process after `set_random_seed(seed)`; the caller's streams and names go on as they were.

        The seed is its argument if it has a parameter without default.
        """
        with fresh_session(seed):
            model = build(seed) if takes_seed(build) else build()
            if not isinstance(model, Model):
                raise TypeError(f"build: a keras.Model is needed, found {kind_of(model)}.")
            return cls(model, seed, streams.states())

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


def check_apart(members: Sequence[Member]) -> None:
    """Refuse members that share Variables: training one of them would change another.

    Raises:
        ValueError: with the name of such a Variable.
    """
    owners: dict[int, int] = {}
    for place, member in enumerate(members):
        for variable in member.model._collect().variables:
            owner = owners.setdefault(variable.key, place)
            if owner != place:
                raise ValueError(
                    f"the members {owner} and {place} of an ensemble share the variable '{variable.name}'. `build` must make "
                    "a new model with new layers each time it is called."
                )
