"""Random numbers of layers: a tree of named streams, and their state in Variables that are saved and rolled back. A layer's
seed is derived from that of the layer around it and its name, so what other layers draw makes no difference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core import Tensor
from ..core.effects import Write, decide, draw_key
from ..core.registry import operations
from ..nn_ops import streams
from .arguments import as_call
from .calls import context
from .weight import HostVariable


def default_seed() -> int:
    """A seed drawn from the global stream: fixed by `set_random_seed` and the order of creation."""
    return streams.global_stream().integer() % (2**31 - 1)


def derived_seed(*parts: Any) -> int:
    """A seed that is fixed by the parts, such as a seed, a name and a number.

    >>> derived_seed(1, "dropout", 0) == derived_seed(1, "dropout", 0) != derived_seed(1, "dropout", 1)
    True
    """
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little")


def outermost_seed(label: str) -> int:
    """The seed of the next layer of this name that lies in no other, counted since the global seed was set."""
    stream = streams.named_stream(f"layer {label}")
    stream.position += 1
    return derived_seed(stream.seed, stream.position)


def set_random_seed(seed: int) -> None:
    """Start all random streams anew: this package's, NumPy's global one and Python's.

    Args:
        seed: an int of at least 0.

    What a layer draws, first weights and noise, then depends on the seed, the names of the layers around it and its own (the
    class, if it was given none), and how many of that name there were before it in the same place.

    >>> def kernel(*names):
    ...     tf.keras.utils.set_random_seed(1)
    ...     layers = {name: tf.keras.layers.Dense(2, name=name) for name in names}
    ...     return layers["b"](tf.ones([1, 3])).numpy().tolist()
    >>> kernel("a", "b") == kernel("b")
    True
    """
    import random

    if not isinstance(seed, int) or seed < 0:
        raise ValueError(f"set_random_seed: expected an int of at least 0, found {seed!r}.")
    random.seed(seed)
    np.random.seed(seed % 2**32)
    streams.set_global_seed(seed)


def keys_of(seed: Any) -> Callable[[], Tensor]:
    """Keys of draws: an int gives the same one each time, a SeedGenerator its next ones, None those of the global stream.

    Raises:
        ValueError: for anything else.
    """
    if isinstance(seed, SeedGenerator):
        return seed.key
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        return lambda: Tensor(streams.Stream(int(seed)).key())
    if seed is not None:
        raise ValueError(f"random: seed must be an int, a SeedGenerator or None, found {seed!r:.100}.")
    return lambda: draw_key(streams.global_stream().key)


class SeedState(HostVariable):
    """The Variable of a SeedGenerator: state of a layer, but none of its weights."""

    __slots__ = ()


class SeedGenerator:
    """A random stream of a layer: `state` is a Variable that holds seed and position.

    Args:
        seed: an int repeats. None: held by a layer, it follows the layer's name; by itself, it draws from the global stream.
        name: of the state.

    >>> generator = SeedGenerator(seed=1)
    >>> generator.next()
    array([1, 0], dtype=uint32)
    >>> generator.next()
    array([1, 1], dtype=uint32)
    """

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
            raise ValueError(f"SeedGenerator: seed must be an int of at least 0 or None, found {seed!r}.")
        self._given_seed = seed
        self.name = name or "seed_generator"
        start = default_seed() if seed is None else int(seed) % 2**32
        state = np.array([start, 0], dtype=np.uint32)
        path = context.path(self.name, "seed_generator_state")
        self.state = SeedState(state, trainable=False, name=name or "seed_generator_state", path=path)
        self._first: Any = self.state.array if seed is None else None

    def follow(self, seed: int) -> None:
        """Start from the seed that its layer has for it, unless it was given one or its state has changed since."""
        if self._first is not None and self.state.array is self._first:
            first = np.array([seed, 0], dtype=np.uint32)
            self.state.note_assignment(None, first, Write.FIRST)
            self.state.array = first

    def checkpoint_children(self) -> Iterator[tuple[str, Any]]:
        yield "state", self.state

    def next(self, ordered: bool = True) -> Any:
        """Seed and position of the next draw; the position moves on, in order whatever `ordered` says."""
        decide(self.state)
        state = np.array(self.state.array)
        self.state.assign(Tensor(state + np.array([0, 1], dtype=np.uint32)))
        return state

    def key(self) -> Tensor:
        """Seed and position of the next draw, as a Tensor: a read and an assignment, which a compiled step repeats."""
        state = self.state.read_value()
        self.state.assign(operations.next_key(state), read_value=False)
        return state

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"seed": self._given_seed, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeedGenerator:
        """A generator from `get_config`."""
        return cls(**config)

    __repr__ = as_call
