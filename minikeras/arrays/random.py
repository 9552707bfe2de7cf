"""Streams of random numbers whose whole state is two integers: a seed and a position in Philox, a counter-based generator.

Numbers are drawn on the host, so they do not depend on the device.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..types import Array
from .devices import to_device

_UINT64 = 2**64 - 1
_lock = threading.Lock()
"""Held while a position moves on. One for all streams, so that a forked process has one to make anew."""


def _after_fork() -> None:
    """Another thread may have held the lock, and a child process has no other threads."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


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
        with _lock:
            position = self.position
            self.position += 1
        return generator_at(self.seed, position)

    def key(self) -> Array:
        """Seed and position of the next draw; the position moves on."""
        with _lock:
            position = self.position
            self.position += 1
        return np.array([self.seed & _UINT64, position & _UINT64], np.uint64)

    def fork(self) -> Stream:
        """A new independent stream that depends only on this one's state."""
        return Stream(int(self.generator().integers(2**63)))


def generator_at(seed: int, position: int) -> np.random.Generator:
    """The generator for draw number `position` of the stream with this seed."""
    from .philox import generator

    return generator(seed & _UINT64, position)


def normal(generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Standard normal numbers on the current device."""
    wide = np.dtype(dtype) if np.dtype(dtype) in (np.dtype("float32"), np.dtype("float64")) else np.dtype("float32")
    return to_device(np.asarray(generator.standard_normal(shape, dtype=wide)).astype(dtype, copy=False))


def truncated_normal(generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Standard normal numbers redrawn until they lie within two standard deviations."""
    values = np.asarray(generator.standard_normal(shape))
    while (outside := np.abs(values) > 2.0).any():
        values[outside] = generator.standard_normal(int(outside.sum()))
    return to_device(values.astype(dtype))


def uniform(generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Numbers in [0, 1) on the current device, multiples of the spacing just below 1."""
    kind = np.dtype(dtype)
    if kind in (np.dtype("float32"), np.dtype("float64")):
        return to_device(np.asarray(generator.random(shape, dtype=kind)))
    steps = 2.0 ** (11 if kind == np.dtype("float16") else 8)  # not rounded from float32, which would give 1 now and then
    return to_device(np.asarray(np.floor(generator.random(shape, dtype=np.float32) * steps) / steps).astype(kind))


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
    """Within the block this thread has random streams of its own, which stand where those of the process do."""
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
    """Whether the global seed was set, and not taken from the system."""
    return _here.seeded[0]


def named_stream(name: str) -> Stream:
    """The stream for one purpose: fixed by the global seed and its name, whatever else is drawn in between."""
    named = _here.named
    if name not in named:
        named[name] = Stream(_seed_of(name))
    return named[name]


def _seed_of(name: str) -> int:
    digest = hashlib.blake2b(f"{_here.main.seed}/{name}".encode(), digest_size=7).digest()
    return int.from_bytes(digest, "little")


def set_global_seed(seed: int | None) -> None:
    """Start the global stream and all named ones anew; None takes a seed from the system."""
    _here.main.state = (_from_system() if seed is None else int(seed), 0)
    _here.seeded[0] = seed is not None
    for name, stream in _here.named.items():
        stream.state = (_seed_of(name), 0)


def states() -> dict[str, tuple[int, int]]:
    """The state of the global stream, under '', and of each named one."""
    named = {name: (stream.seed, stream.position) for name, stream in _here.named.items()}
    return {"": (_here.main.seed, _here.main.position), **named}


def set_states(states: Mapping[str, Sequence[int]]) -> None:
    """Have all streams as `states` told; a named one that it does not know had not been drawn from."""
    _here.main.state = _pair(states.get("", _here.main.state))
    for name in {*_here.named, *states} - {""}:
        stream, told = named_stream(name), states.get(name)
        if stream.state != told:  # of thousands, after a symbolic call hardly one
            stream.state = (_seed_of(name), 0) if told is None else _pair(told)


def _pair(state: Sequence[int]) -> tuple[int, int]:
    return int(state[0]), int(state[1])
