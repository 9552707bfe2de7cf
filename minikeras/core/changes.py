"""Whether any attribute was set since somebody looked: one number for all objects of the package.

A compiled step depends on attributes of layers, losses, metrics, regularizers and the like, hundreds of them. If this number is
what it was at the last step, none of them has changed, and one comparison has said so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

_numbers = itertools.count(1)


class Clock:
    """What tells whether anything was set.

    Attributes:
        now: another number after each change. Two threads never set the same one.
        setting: another number after each change of a setting of the whole package.
    """

    __slots__ = ("now", "setting")

    def __init__(self) -> None:
        self.now = self.setting = 0

    def tick(self) -> None:
        """Something has changed."""
        self.now = next(_numbers)

    def set(self) -> None:
        """A setting of the whole package has changed."""
        self.now = self.setting = next(_numbers)


clock = Clock()


class Watched:
    """An object of which a recorded step knows which attributes it read, and notices when they are set."""

    _passing: tuple[str, ...] = ()
    """Attributes that come and go without any consequence for what the object holds and computes."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name not in self._passing:
            clock.tick()

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        clock.tick()


Live = TypeVar("Live", bound=Callable[..., Any])
live_code: set[CodeType] = set()


def live(function: Live) -> Live:
    """Mark a function that every replay calls again, so that nothing it reads is a fact of the recording."""
    live_code.add(function.__code__)  # type: ignore[attr-defined]
    return function
