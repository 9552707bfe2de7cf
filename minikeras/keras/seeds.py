"""Random state of layers, kept in Variables so that it is saved, restored and rolled back like any other state."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import random as streams
from ..arrays import to_numpy
from ..core import Variable


def default_seed() -> int:
    """A seed drawn from the global stream: fixed by `set_random_seed` and the order of creation."""
    return int(streams.global_stream().generator().integers(2**31 - 1))


def set_random_seed(seed: int) -> None:
    """Start all random streams anew: this package's, NumPy's global one and Python's.

    Args:
        seed: an int of at least 0.

    >>> set_random_seed(1)
    """
    import random

    if not isinstance(seed, int) or seed < 0:
        raise ValueError(f"set_random_seed: expected an int of at least 0, found {seed!r}.")
    random.seed(seed)
    np.random.seed(seed % 2**32)
    streams.set_global_seed(seed)


class SeedState(Variable):
    """The Variable of a SeedGenerator: state of a layer, but none of its weights."""

    __slots__ = ()


class SeedGenerator:
    """A random stream of a layer: `state` is a Variable that holds seed and position.

    Args:
        seed: an int repeats; None draws one from the global stream.

    >>> generator = SeedGenerator(seed=1)
    >>> generator.next()
    array([1, 0], dtype=uint32)
    >>> generator.next()
    array([1, 1], dtype=uint32)
    """

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        self._given_seed = seed
        start = default_seed() if seed is None else int(seed)
        self.state = SeedState(np.array([start, 0], dtype=np.uint32), trainable=False, name=name or "seed_generator_state")

    def next(self) -> Any:
        """Seed and position of the next draw; the position moves on."""
        state = np.array(to_numpy(self.state._array))
        self.state.assign(state + np.array([0, 1], dtype=np.uint32))
        return state

    def generator(self) -> np.random.Generator:
        """A NumPy generator for the next draw."""
        seed, position = self.next()
        return streams.generator_at(int(seed), int(position))

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"seed": self._given_seed}
