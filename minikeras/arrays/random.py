"""Streams of random numbers whose whole state is two integers: a seed and a position.

Key idea: a counter-based generator (Philox). A draw is a function of seed and position, so a stream is saved and
restored exactly, and the numbers do not depend on the device: they are drawn on the host and then moved.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from ..types import Array
from .devices import to_device


class Stream:
    """A sequence of draws; `state` is all there is to save.

    Args:
        seed: any integer.
        position: number of draws made so far.
    """

    __slots__ = ("_lock", "position", "seed")

    def __init__(self, seed: int, position: int = 0) -> None:
        self.seed = int(seed)
        self.position = int(position)
        self._lock = threading.Lock()

    @property
    def state(self) -> tuple[int, int]:
        """Seed and position."""
        return self.seed, self.position

    @state.setter
    def state(self, value: tuple[int, int]) -> None:
        self.seed, self.position = value

    def generator(self) -> np.random.Generator:
        """A NumPy generator for the next draw; the position moves on."""
        with self._lock:
            position = self.position
            self.position += 1
        return generator_at(self.seed, position)

    def fork(self) -> Stream:
        """A new independent stream that depends only on this one's state."""
        return Stream(int(self.generator().integers(2**63)))


def generator_at(seed: int, position: int) -> np.random.Generator:
    """The generator for draw number `position` of the stream with this seed."""
    key = np.array([seed & (2**64 - 1), position], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


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
    """Numbers in [0, 1) on the current device."""
    wide = np.dtype(dtype) if np.dtype(dtype) in (np.dtype("float32"), np.dtype("float64")) else np.dtype("float32")
    return to_device(np.asarray(generator.random(shape, dtype=wide)).astype(dtype, copy=False))


_global = Stream(int.from_bytes(os.urandom(7), "little"))


def global_stream() -> Stream:
    """The stream behind every draw that names no generator of its own."""
    return _global


def set_global_seed(seed: int) -> None:
    """Start the global stream anew."""
    _global.state = (int(seed), 0)
