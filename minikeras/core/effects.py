"""Effects, the fifth family of operations: those that do more than compute their results.

Recorders, passes and executors ask for the properties of an effect, never for its name.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from enum import Enum, StrEnum
from typing import Any, TypeVar

import numpy as np

from ..types import Array
from .arrays import to_numpy
from .primitive import Primitive
from .registry import register
from .stack import BOTTOM, current, notify, perform
from .tensor import Tensor


class State(Enum):
    """The state that effects read and write."""

    OPERANDS = "the Variables among the operands"
    VARIABLES = "any Variables"
    STREAM = "a random stream"
    RANKS = "what other ranks give"


class Write(StrEnum):
    """The ways in which a value gets into a Variable."""

    INITIAL = "an initial value"
    FIRST = "a first value"
    ASSIGN = "assign"
    ADD = "assign_add"
    SUBTRACT = "assign_sub"
    SCATTER = "scatter"
    PART = "assign to a part"

    @property
    def makes(self) -> bool:
        """True if the Variable held nothing before."""
        return self in (Write.INITIAL, Write.FIRST)

    def __repr__(self) -> str:
        return repr(self.value)


def effect(
    name: str,
    run: Callable[..., Any],
    *,
    reads: Sequence[State] = (),
    writes: Sequence[State] = (),
    escapes: bool = False,
    repeatable: bool = True,
) -> Primitive:
    """An operation without derivative that a program carries out in each run, in its place.

    Args:
        name: shown in programs and messages.
        run: `run(*arrays, **params)`; Variables among the operands are given as they are.
        reads: the state that it depends on.
        writes: the state that it changes.
        escapes: whether its operands may be held afterwards by something else than its results.
        repeatable: whether a program can carry it out with other values; if not, the stack is only notified of it.
    """
    return Primitive(
        name,
        lambda xp: run,
        differentiable=False,
        uniform=False,
        registered=False,
        effect=True,
        reads=reads,
        writes=writes,
        escapes=escapes,
        repeatable=repeatable,
    )


def only_checks(primitive: Primitive) -> bool:
    """True if an effect can only refuse its operands: for constant operands, one run is enough."""
    state = primitive.reads or primitive.writes
    return primitive.effect and primitive.repeatable and not state and not primitive.escapes


def is_told(primitive: Primitive) -> bool:
    """True if an effect only writes output that cannot be taken back: it prints."""
    return primitive.effect and primitive.repeatable and primitive.escapes and not (primitive.reads or primitive.writes)


def _never(*arrays: Any) -> Any:
    raise AssertionError("the stack is notified of what leaves for Python, it is not computed")


left = effect("leave", _never, escapes=True, repeatable=False)
"""Stands on the stack for a conversion to Python or NumPy, of which the derivatives see nothing."""

decided = effect("decide", _never, repeatable=False)
"""Stands on the stack for values that decide what is computed next, such as the shape of a result."""

checked = effect("check", lambda values, *, test: test(to_numpy(values)) or ())
"""Stands on the stack for a test that may refuse values."""


class Outdated(Exception):
    """Raised in a replay by an instruction whose operands show that the recording no longer holds; the message says why."""


drawn_key = effect("draw_key", lambda *, source: source(), reads=(State.STREAM,), writes=(State.STREAM,))


def leave(operand: Any, conversion: str, value: Any = None) -> None:
    """Tell the interpreters that an operand is converted to Python or NumPy."""
    frame = current()
    if frame is not BOTTOM:
        notify(frame, left, (operand,), {"conversion": conversion, "value": value}, ())


register("leave", leave)


def check(operand: Any, test: Callable[[np.ndarray[Any, Any]], None], values: np.ndarray[Any, Any]) -> None:
    """Let `test` see an operand's values on the host and refuse them; a program that repeats this run tests the new ones."""
    test(values)
    frame = current()
    if frame is not BOTTOM:
        notify(frame, checked, (operand,), {"test": test}, ())


def decide(operand: Any) -> None:
    """Tell the interpreters that the operand's values decide what is computed next."""
    frame = current()
    if frame is not BOTTOM:
        notify(frame, decided, (operand,), {}, ())


def draw_key(source: Callable[[], Array]) -> Tensor:
    """The key that `source` gives, another one each time: seed and position, which the draws of `nn_ops/draws.py` depend on."""
    result: Tensor = perform(drawn_key, (), {"source": source})
    return result


# Whether any attribute of the package's objects was set since the last look: one number, for hundreds of them.

Owner = TypeVar("Owner")

_numbers = itertools.count(1)


class Clock:
    """A counter that changes whenever something is set.

    Attributes:
        now: another number after each change. Two threads never set the same one.
        setting: another number after each change of a setting of the whole package.
    """

    __slots__ = ("now", "setting")

    def __init__(self) -> None:
        self.now = self.setting = 0

    def tick(self) -> None:
        """Note that something has changed."""
        self.now = next(_numbers)

    def set(self) -> None:
        """Note that a setting of the whole package has changed."""
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


def is_watched(value: object) -> bool:
    """True if the clock ticks when an attribute of this object is set."""
    return hasattr(type(value), "_unwatched")
