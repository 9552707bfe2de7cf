"""Facts of a recording: the values that it read of Python's state, and whether they are still the same.

Values are compared by identity first, in one pass in C. Attributes of the package's own objects are compared only if a clock
says that any was set. Generators of random numbers must have the same state after a run.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from itertools import chain
from operator import call, is_
from typing import Any, NamedTuple

import numpy as np

from ...core.effects import clock

MOST_FACTS = 1_000
"""Values that are compared before a replay, in 80 us; an eager step takes longer than that."""

PLAIN = (bool, int, float, complex, str, bytes, type(None), range, slice)
END = (object(),)
"""A sentinel after the elements of a container without length, so that a different number of elements is a difference."""

REMEDY = "draw with tf.random, keep in a tf.Variable what changes from call to call, or give it as an argument"

_GENERATORS = ("random", "numpy.random.mtrand", "numpy.random._generator")


class Unguarded(Exception):
    """Raised where a function reaches a value that cannot be compared before each replay; the message names it."""


def same(one: Any, other: Any) -> bool:
    """True if two values are one object, or equal, of one type and immutable."""
    if one is other or type(one) is not type(other):
        return one is other
    if type(one) in (float, complex):
        return repr(one) == repr(other)  # tells -0.0 from 0.0, and a NaN is itself
    if type(one) is tuple:
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.generic):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return type(one) in PLAIN and bool(one == other)


def kept(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same reader, but it returns one object for equal values, so that the comparison by identity in C holds."""
    last = None

    def found(holder: Any) -> Any:
        nonlocal last
        now = read(holder)
        last = last if now == last else now
        return last

    return found


def length_of(held: Sized) -> Callable[[Any], Any]:
    """A reader of the length: Python makes a new object for each int above 256."""
    return len if len(held) <= 256 else kept(len)


class Fact(NamedTuple):
    """The value of `read(holder)`, or its values by name.

    Attributes:
        read, holder: the function that reads, and its argument.
        names: of the values that are read; none for the elements of a container.
        where: its name in a message, with `{}` for the name of a value.
        counts: for the number of names in a namespace: true for added names that matter, as they may hide others.
    """

    read: Callable[[Any], Any]
    holder: Any
    names: Sequence[Any]
    where: str
    counts: Callable[[str], bool] | None = None

    @property
    def is_single(self) -> bool:
        """True if it is read as one value."""
        return self.counts is not None or len(self.names) == 1

    def now(self) -> list[Any]:
        """The present values; none if a name is gone."""
        try:
            return [self.read(self.holder)] if self.is_single else list(self.read(self.holder))
        except Exception:
            return []

    def difference(self, then: Sequence[Any]) -> str | None:
        """The name, for a message, of the first value that differs; None if all are the same."""
        now = self.now()
        if len(now) == len(then) and all(map(same, now, then)):
            return None
        if self.counts is not None and now:
            held = self.holder if isinstance(self.holder, Mapping) else vars(self.holder())
            added = (name for name in held if name not in self.names and self.counts(name))
            return next((self.where.replace("{}", f"'{name}'") for name in added), None)
        changed = [name for name, one, other in zip(self.names, then, now, strict=False) if not same(one, other)]
        return self.where.replace("{}", f"'{[*changed, *self.names, ''][0]}'")


class FactGroup:
    """Facts that are compared together: by identity in one pass in C, and one by one only where that differs."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._facts = sorted(facts, key=lambda fact: not fact.is_single)
        count = sum(fact.is_single for fact in facts)
        reads, holders = [fact.read for fact in self._facts], [fact.holder for fact in self._facts]
        self._single, self._single_of = reads[:count], holders[:count]
        self._several, self._several_of = reads[count:], holders[count:]
        self._refresh()

    def _refresh(self) -> None:  # equal values may be new objects
        self._then = [fact.now() for fact in self._facts]
        self.expected = list(chain(*self._then))

    def changed(self) -> str | None:
        """The name, for a message, of the first fact that no longer holds; None if all hold."""
        found: Iterable[Any] = map(call, self._single, self._single_of)
        if self._several:
            found = chain(found, chain.from_iterable(map(call, self._several, self._several_of)))
        try:
            if all(map(is_, found, self.expected)):
                return None
        except Exception:
            pass
        for fact, then in zip(self._facts, self._then, strict=True):
            if (difference := fact.difference(then)) is not None:
                return difference
        self._refresh()
        return None


class Guards:
    """The facts of one recording.

    Args:
        plain: facts that are compared before each replay.
        tracked: facts about the package's own objects; compared if the clock has moved.
        generators: the states of the generators found; a run must not change them.

    Attributes:
        options: of the program; each says whether it still holds, and depends on attributes of the package's objects alone.
    """

    def __init__(self, plain: Sequence[Fact], tracked: Sequence[Fact], generators: Sequence[Fact]) -> None:
        self.options: Sequence[Callable[[], bool]] = ()
        self.generators = generators
        self._plain, self._tracked = FactGroup(plain), FactGroup(tracked)
        self._version, self._setting = clock.now, clock.setting
        if (count := len(self._plain.expected)) > MOST_FACTS:
            raise Unguarded(f"it reads {count} values in Python, too many to compare at each call")

    def changed(self, thorough: bool = False) -> str | None:
        """The name, for a message, of the first fact that no longer holds; None if all hold. `thorough` ignores the clock."""
        if self._version != clock.now or thorough:
            now = clock.now
            if self._setting != clock.setting:
                return "a setting of the package"
            if not all([holds() for holds in self.options]):
                return "an option of an optimizer"
            if (found := self._tracked.changed()) is not None:
                return found
            self._version = now
        return self._plain.changed()


def is_generator(value: object) -> bool:
    """True if a value has a state that decides what it returns: a generator of random numbers, or a file to read from."""
    if isinstance(value, io.IOBase):
        return not value.closed and value.readable()
    return any(base.__module__ in _GENERATORS for base in type(value).__mro__)


def draws(others: Iterable[Fact] = ()) -> FactGroup:
    """The states of generators: of those of `np.random` and `random`, if these are loaded, and of others."""
    numpys: Any = getattr(sys.modules.get("numpy.random"), "mtrand", None)
    shared = (
        ("np.random", getattr(numpys, "_rand", None)),
        ("Python's random", getattr(sys.modules.get("random"), "_inst", None)),
    )
    return FactGroup([*[Fact(state_of, one, ("",), name) for name, one in shared if one is not None], *others])


def state_of(generator: Any) -> Any:
    """The state of a generator or the position in a file; a new object each time where it cannot be read."""
    if hasattr(generator, "bit_generator"):
        return repr(generator.bit_generator.state)
    try:
        if isinstance(generator, io.IOBase):
            return generator.tell() - len(getattr(generator, "getvalue", str)())  # text that is appended in memory is not read
        kind, key, *rest = generator.get_state() if hasattr(generator, "get_state") else generator.getstate()
        return kind, bytes(key) if isinstance(key, np.ndarray) else key, *rest
    except (NotImplementedError, OSError, ValueError):
        return object()
