"""Whether any attribute of the package's objects was set since the last look: one number, for hundreds of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

Owner = TypeVar("Owner")

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


def watched(cls: type[Owner]) -> type[Owner]:
    """Class decorator: the clock moves whenever an attribute of an object of the class is set or deleted.

    A recorded step knows which of these attributes it read. Those that the class names in `_unwatched` come and go without any
    consequence for what the object holds and computes.
    """
    assign = cls.__dict__.get("__setattr__") or (lambda self, *pair: super(cls, self).__setattr__(*pair))

    def set_attribute(self: Any, name: str, value: Any) -> None:
        assign(self, name, value)
        if name not in self._unwatched:
            clock.tick()

    def delete_attribute(self: Any, name: str) -> None:
        super(cls, self).__delattr__(name)
        clock.tick()

    methods = {"__setattr__": set_attribute, "__delattr__": delete_attribute}
    for name, value in (methods | {"_unwatched": getattr(cls, "_unwatched", ())}).items():
        setattr(cls, name, value)
    return cls


def is_watched(value: Any) -> bool:
    """Whether the clock moves when an attribute of this object is set."""
    return hasattr(type(value), "_unwatched")


Live = TypeVar("Live", bound=Callable[..., Any])
live_code: set[CodeType] = set()


def live(function: Live) -> Live:
    """Mark a function that every replay calls again, so that nothing it reads is a fact of the recording."""
    live_code.add(function.__code__)
    return function
