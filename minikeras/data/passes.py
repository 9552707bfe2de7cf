"""Passes: going through data again and again, with a position that can be saved and found again.

It is the random streams of when the pass began, which fix its order, and the number of elements taken since.
"""

from __future__ import annotations

import collections.abc
import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..nn_ops import streams

ORDER = "data order"


def order_stream() -> streams.Stream:
    """The stream that shuffles without a seed draw from."""
    return streams.named_stream(ORDER)


def random_order(seed: int | None, anew: bool) -> tuple[streams.Stream | None, Callable[[], np.random.Generator]]:
    """The stream of a random order, if it has one of its own, and the function that gives the generator of an iteration."""
    own = streams.Stream(seed) if seed is not None else None if anew else order_stream().fork()

    def generator() -> np.random.Generator:
        stream = own or order_stream()
        return stream.generator() if anew else streams.generator_at(*stream.state)

    return own, generator


@contextlib.contextmanager
def preserved_streams(own: Sequence[streams.Stream]) -> Generator[None]:
    """Keep all random streams, and those in `own`, where they are: draws within the block leave no trace."""
    before = streams.states(), [stream.state for stream in own]
    try:
        yield
    finally:
        streams.set_states(before[0])
        for stream, state in zip(own, before[1], strict=True):
            stream.state = state


class Passable(Protocol):
    """The data that passes go through: a Dataset, or the batches that `fit` takes."""

    random_streams: list[streams.Stream]

    def from_position(self, start: int) -> collections.abc.Iterator[Any]:
        """The elements after the first `start` ones."""


class Passes:
    """One pass after another over a source.

    Attributes:
        taken: number of elements taken from the pass under way.
        under_way: whether one is.
    """

    def __init__(self, source: Passable) -> None:
        self.source = source
        self.taken = 0
        self._began: Mapping[str, Any] = {}
        self._pass: collections.abc.Iterator[Any] | None = None

    @property
    def under_way(self) -> bool:
        """True if a pass has begun and not ended."""
        return self._pass is not None

    def begin(self) -> None:
        """Start a pass."""
        self._began, self.taken = self._streams(), 0
        self._pass = iter(self.source.from_position(0))

    def rest(self) -> collections.abc.Iterator[Any]:
        """The rest of the pass under way."""
        for element in self._pass or ():
            self.taken += 1
            yield element
        self._pass, self.taken = None, 0

    def take(self) -> Any:
        """The next element of the pass under way; StopIteration after the last one."""
        for element in self._pass or ():
            self.taken += 1
            return element
        self._pass, self.taken = None, 0
        raise StopIteration

    def state(self) -> dict[str, Any]:
        """The position, as plain values: random streams now and at the beginning of the pass under way, elements taken."""
        began = {"began": self._began, "taken": self.taken} if self.under_way else {}
        return self._streams() | began

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on where another one over the same data stood, random streams too. ValueError, and no change, for other data."""
        own = self.source.random_streams
        if len(own) != len(state["own"]):
            raise ValueError(f"The data has {len(own)} shuffles with a seed, that of the saved state had {len(state['own'])}.")
        self._pass, self.taken = None, 0  # threads that make its elements ahead draw no more
        if "began" not in state:
            self._set(state)
            return
        self._set(state["began"])
        self._began, self.taken = state["began"], int(state["taken"])
        self._pass = iter(self.source.from_position(self.taken))
        # The order was drawn again just now; with prefetching, the saved stream of orders may be further on.
        streams.set_states({**state["streams"], ORDER: order_stream().state})

    def _streams(self) -> dict[str, Any]:
        return {"streams": streams.states(), "own": [stream.state for stream in self.source.random_streams]}

    def _set(self, state: Mapping[str, Any]) -> None:
        streams.set_states(state["streams"])
        for stream, (seed, position) in zip(self.source.random_streams, state["own"], strict=True):
            stream.state = int(seed), int(position)


class Resumable:
    """The elements of a Dataset, pass after pass, with a position that a `tf.train.Checkpoint` saves.

    A loop that was left in the middle goes on there at the next `for`. Restoring the position restores all random streams too.

    Args:
        dataset: elements that come in the same order from the same random streams.

    Attributes:
        epoch: number of passes that are complete.
        batch: number of elements taken in the pass under way.

    >>> data = tf.data.Resumable(tf.data.Dataset.range(3))
    >>> for element in data:
    ...     if data.batch == 2:
    ...         break
    >>> [int(element) for element in data], data.epoch
    ([2], 1)
    """

    def __init__(self, dataset: Passable) -> None:
        self._passes = Passes(dataset)
        self.epoch = 0

    @property
    def batch(self) -> int:
        return self._passes.taken

    def __iter__(self) -> collections.abc.Iterator[Any]:
        if not self._passes.under_way:
            self._passes.begin()
        yield from self._passes.rest()
        self.epoch += 1

    def get_state(self) -> dict[str, Any]:
        """The position, as plain data: random streams now and when the pass began, passes and elements taken."""
        return {"epoch": self.epoch} | self._passes.state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on where another one with the same data stood; ValueError for another number of shuffles with a seed."""
        self._passes.resume(state)
        self.epoch = int(state["epoch"])
