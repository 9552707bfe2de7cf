"""Facts of a recording: what it read of Python's state beside its arguments, and whether that is still the same.

Values are compared by identity first, in one pass in C. Attributes of the package's own objects are compared only if a clock
says that any was set.
"""

from __future__ import annotations

import array
import operator
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...core import Variable
from ...core.effects import clock, is_watched

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "nothing"})()
"""Stands for the value of a name that is not there."""

SCALARS = (bool, int, float, complex, str, bytes, type(None), range, slice)


BYTES = (bytearray, memoryview, array.array)


def same(one: Any, other: Any) -> bool:
    """Whether two values are one object, or equal and unable to change."""
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other):
        return False
    if kind is float or kind is complex:
        return repr(one) == repr(other)  # tells -0.0 from 0.0, and a NaN is itself
    if kind in SCALARS:
        return bool(one == other)
    if kind is tuple:
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, np.generic) and one.dtype == other.dtype and one.tobytes() == other.tobytes()


class NamedValue(NamedTuple):
    """A value that is found by name: `ask(subject, detail)`.

    Attributes:
        ask, subject, detail: a dict's `get`, a name and what to give if it is not there; or `getattr` and its arguments.
        value: the answer.
        where: how to call it in a message.
    """

    ask: Callable[..., Any]
    subject: Any
    detail: Any
    value: Any
    where: str


class Contents:
    """What a container, an array or a generator of random numbers holds.

    Attributes:
        holder: that object.
        content: as `content_of` gave it.
        where: how to call it in a message.
    """

    __slots__ = ("content", "holder", "where")

    def __init__(self, holder: Any, content: Any, where: str) -> None:
        self.holder, self.content, self.where = holder, content, where

    def changed(self) -> str | None:
        """How to call it, if it holds anything else."""
        now, then = content_of(self.holder), self.content
        if isinstance(then, bytes):
            return None if now == then else f"the values of {self.where}"
        if len(now) == len(then) and all(map(operator.is_, now, then)):
            return None
        if not alike(then, now):
            return f"the elements of {self.where}"
        self.content = now if isinstance(now, str) else tuple(now)  # not the list itself, which goes on to change
        return None


def alike(one: Any, other: Any) -> bool:
    """Whether two contents of one object are the same."""
    if isinstance(one, (bytes, str)):
        return bool(one == other)
    return len(one) == len(other) and all(map(same, one, other))


def content_of(value: Any) -> Any:
    """What is compared: elements, of a mapping keys and values; the bytes of an array; the state of a generator, as text."""
    kind = type(value)
    if kind is list or kind is tuple:
        return value
    if kind is dict or isinstance(value, Mapping):
        return [*value, *value.values()]
    if isinstance(value, np.ndarray):
        return list(value.flat) if value.dtype == object else value.tobytes()
    if isinstance(value, BYTES):
        return bytes(value)
    return _state(value) if is_generator(value) else list(value)


def is_generator(value: Any) -> bool:
    """Whether a value is a generator of random numbers, of NumPy or of Python. Neither module is loaded for the question.

    Another thread may be in the middle of that.
    """
    numpys: Any = sys.modules.get("numpy.random")
    pythons: Any = sys.modules.get("random")
    if hasattr(numpys, "RandomState") and isinstance(value, (numpys.Generator, numpys.RandomState)):
        return True
    return hasattr(pythons, "Random") and isinstance(value, pythons.Random)


def _state(generator: Any) -> str:
    if hasattr(generator, "bit_generator"):
        return repr(generator.bit_generator.state)
    if hasattr(generator, "get_state"):
        kind, key, *position = generator.get_state()
        return repr((kind, key.tobytes(), position))
    try:
        return repr(generator.getstate())
    except NotImplementedError:  # the system's: always another number
        return str(id(object()))


class ObjectFacts:
    """Attributes of one of the package's own objects.

    Args:
        owner: a watched object.
        names: in the code that ran. An attribute that it does not name counts if it holds state, since that is found by walks.
        where: how to call the object in a message.
    """

    __slots__ = ("_names", "_owner", "_size", "_values", "_vocabulary", "_where")

    def __init__(self, owner: Any, names: frozenset[str], where: str) -> None:
        held = vars(owner)
        self._owner = weakref.ref(owner)  # a model holds its recordings, and is freed with its last other reference
        self._vocabulary, self._where = names, where
        self._names = [name for name in held if self._counts(name, owner)]
        self._values = [held[name] for name in self._names]
        self._size = len(held)

    def changed(self) -> str | None:
        """Which attribute is another one."""
        owner = self._owner()
        if owner is None:
            return self._where
        held = vars(owner)
        if len(held) != self._size:
            for name in held:
                if name not in self._names and self._counts(name, owner):
                    return f"attribute '{name}' of {self._where}"
            self._size = len(held)
        now = [held.get(name, ABSENT) for name in self._names]
        for name, one, other in zip(self._names, self._values, now, strict=True):
            if one is not other and not same(one, other):
                return f"attribute '{name}' of {self._where}"
        self._values = now
        return None

    def _counts(self, name: str, owner: Any) -> bool:
        return name not in owner._unwatched and (name in self._vocabulary or holds_state(vars(owner)[name]))


def holds_state(value: Any, within: tuple[int, ...] = ()) -> bool:
    """Whether a value is a Variable or an object of the package, or a container with one inside; it may hold itself."""
    if isinstance(value, (list, tuple, dict)) and id(value) not in within:
        inside = value.values() if isinstance(value, dict) else value
        return any(holds_state(one, (*within, id(value))) for one in inside)
    return isinstance(value, Variable) or is_watched(value)


class Outdated(Exception):
    """Raised in a replay by an instruction that finds, in numbers, that the recording does not hold any more; says what."""


def _parts_of(container: Any) -> list[Any]:
    """What gives the elements of a list, a tuple or a dict as they are at each time, and its end."""
    return [container, container.values(), _END] if type(container) is dict else [container, _END]


_END = (object(),)
"""Stands behind the elements of a container, so that one of another length is another one."""


class NoProgram(NamedTuple):
    """Takes the place of a program where a run left none.

    Attributes:
        cause: for a message.
        permanent: whether the next run will be no other; if not, it is recorded.
    """

    cause: str
    permanent: bool

    @property
    def reason(self) -> str | None:
        """Why the function runs eagerly for this signature; None if the next run is recorded."""
        return self.cause if self.permanent else None

    def __str__(self) -> str:
        return f"no program: {self.cause if self.permanent else f'{self.cause}; the next run is recorded'}"


class Facts:
    """All that a recording read.

    Args:
        questions: values that are found by name: globals, attributes, variables of functions around.
        contents: of containers and arrays.
        owned: facts about the package's own objects; compared if the clock has moved.
        variables: Variables of which it matters whether they are trained.

    Attributes:
        guards: of the program; each depends on attributes of the package's objects alone.
    """

    __slots__ = (
        *("guards", "_ask", "_contents", "_details", "_elements", "_now", "_others", "_owned", "_setting"),
        *("_parts", "_subjects", "_trained", "_values", "_variables", "_where"),
    )

    def __init__(
        self,
        questions: Sequence[NamedValue],
        contents: Sequence[Contents],
        owned: Sequence[ObjectFacts],
        variables: Sequence[Variable],
    ) -> None:
        columns: Any = zip(*questions, strict=True) if questions else ((),) * 5
        self.guards: Sequence[Callable[[], bool]] = ()
        self._ask, self._subjects, self._details, self._values, self._where = columns
        self._contents = [content for content in contents if type(content.holder) in (list, tuple, dict)]
        self._others = [content for content in contents if type(content.holder) not in (list, tuple, dict)]
        self._parts = [part for content in self._contents for part in _parts_of(content.holder)]
        self._note_elements()
        self._owned, self._variables = owned, variables
        self._trained = [variable._trainable for variable in variables]
        self._now, self._setting = clock.now, clock.setting

    def changed(self) -> str | None:
        """How to call the first fact that does not hold any more; None if all do."""
        if self._now != clock.now:
            now = clock.now
            if (found := self._changed_owned()) is not None:
                return found
            self._now = now
        try:
            # Questions are asked and answers compared in one pass in C, 80 ns each.
            alike = all(map(operator.is_, map(operator.call, self._ask, self._subjects, self._details), self._values))
            if not alike and (found := self._changed_name()) is not None:
                return found
        except ValueError:  # of a cell
            return "a variable around a function, which was deleted,"
        # So are the elements of containers, each with its end.
        alike = all(map(operator.is_, chain.from_iterable(self._parts), self._elements))
        if not alike and (found := self._changed_elements()) is not None:
            return found
        for content in self._others:
            if (found := content.changed()) is not None:
                return found
        return None

    def _note_elements(self) -> None:
        self._elements = [one for content in self._contents for one in (*content.content, *_END)]

    def _changed_elements(self) -> str | None:
        for content in self._contents:
            if (found := content.changed()) is not None:
                return found
        self._note_elements()
        return None

    def _changed_name(self) -> str | None:
        now = tuple(map(operator.call, self._ask, self._subjects, self._details))
        for one, other, where in zip(self._values, now, self._where, strict=True):
            if not same(one, other):
                return where
        self._values = now
        return None

    def _changed_owned(self) -> str | None:
        if self._setting != clock.setting:
            return "a setting of the package"
        if not all([guard() for guard in self.guards]):
            return "an option of an optimizer"
        for fact in self._owned:
            if (found := fact.changed()) is not None:
                return found
        for variable, trained in zip(self._variables, self._trained, strict=True):
            if variable._trainable is not trained:
                return f"whether variable '{variable.name}' is trained"
        return None
