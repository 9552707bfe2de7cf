"""Streams of random numbers whose whole state is two integers: a seed and a position. Both together are the key of a draw.

What tensors hold is drawn by `philox4x32.py`. Only the orders of data sets come from NumPy's generators (`Stream.generator`):
they are decided on the host, and a buffer asks for one integer after the other, which NumPy gives many times as fast.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.locks import ForkSafeLock, importing
from ..types import Array
from .philox4x32 import words

_UINT64 = 2**64 - 1
_lock = ForkSafeLock()
"""Held while a position moves on; one for all streams."""


class Stream:
    """A sequence of draws; `state` is all there is to save.

    Args:
        seed: any integer.
        position: number of draws made so far.
    """

    __slots__ = ("position", "seed")

    def __init__(self, seed: int, position: int = 0) -> None:
        self.seed = int(seed)
        self.position = int(position)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy draws what comes next here, by itself."""
        return type(self), self.state

    @property
    def state(self) -> tuple[int, int]:
        """Seed and position."""
        return self.seed, self.position

    @state.setter
    def state(self, value: tuple[int, int]) -> None:
        self.seed, self.position = value

    def generator(self) -> np.random.Generator:
        """A NumPy generator for the next draw; the position moves on."""
        seed, position = self.key().tolist()
        return generator_at(seed, position)

    def integer(self) -> int:
        """64 random bits; the position moves on."""
        seed, position = self.key().tolist()
        return int(words(seed, position, 2).view(np.uint64)[0])

    def key(self) -> Array:
        """Seed and position of the next draw; the position moves on."""
        with _lock:
            position = self.position
            self.position += 1
        return np.array([self.seed & _UINT64, position & _UINT64], np.uint64)

    def fork(self) -> Stream:
        """A new independent stream that depends only on this one's state."""
        return Stream(self.integer() >> 1)


def generator_at(seed: int, position: int) -> np.random.Generator:
    """The generator for draw number `position` of the stream with this seed."""
    with importing:  # at the first draw, as NumPy loads its random module
        from numpy.random import Generator, Philox
    return Generator(Philox(key=np.array([seed & _UINT64, position], np.uint64)))


def _from_system() -> int:
    """A seed from the operating system."""
    return int.from_bytes(os.urandom(7), "little")


class _Streams(threading.local):
    """The global stream and the named ones. All threads share those of the process, unless `own_streams` gives them others."""

    def __init__(self) -> None:
        self.main, self.named, self.seeded = _process


_process: tuple[Stream, dict[str, Stream], list[bool]] = Stream(_from_system()), {}, [False]
_here = _Streams()


@contextlib.contextmanager
def own_streams() -> Iterator[None]:
    """Within the block this thread has random streams of its own, which begin at the positions of the process's streams."""
    before = _here.main, _here.named, _here.seeded
    main, named, seeded = _process
    copies = {name: Stream(*stream.state) for name, stream in named.items()}
    _here.main, _here.named, _here.seeded = Stream(*main.state), copies, list(seeded)
    try:
        yield
    finally:
        _here.main, _here.named, _here.seeded = before


def global_stream() -> Stream:
    """The stream behind every draw that names no generator of its own."""
    return _here.main


def is_seeded() -> bool:
    """True if the global seed was set, not taken from the system."""
    return _here.seeded[0]


def named_stream(name: str) -> Stream:
    """The stream for one purpose: fixed by the global seed and its name, whatever else is drawn in between."""
    named = _here.named
    if (found := named.get(name)) is None:
        digest = hashlib.blake2b(f"{_here.main.seed}/{name}".encode(), digest_size=7).digest()
        found = named.setdefault(name, Stream(int.from_bytes(digest, "little")))
    return found


def set_global_seed(seed: int | None) -> None:
    """Start the global stream and all named ones anew; None takes a seed from the system."""
    _here.main.state = (_from_system() if seed is None else int(seed), 0)
    _here.seeded[0] = seed is not None
    _here.named.clear()


def states() -> dict[str, tuple[int, int]]:
    """The state of the global stream, under '', and of each named one."""
    named = {name: (stream.seed, stream.position) for name, stream in _here.named.copy().items()}
    return {"": (_here.main.seed, _here.main.position), **named}


def set_states(states: Mapping[str, Sequence[int]]) -> None:
    """Set all streams to `states`; a named one that is not in it is forgotten, and starts anew when it is asked for."""
    _here.main.state = _pair(states.get("", _here.main.state))
    for name in _here.named.keys() - states.keys():
        _here.named.pop(name, None)
    for name in states.keys() - {""}:
        stream, told = named_stream(name), states[name]
        if stream.state != told:  # of many, hardly one differs after a symbolic call
            stream.state = _pair(told)


def _pair(state: Sequence[int]) -> tuple[int, int]:
    return int(state[0]), int(state[1])
