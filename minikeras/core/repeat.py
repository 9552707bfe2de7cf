"""A function that may be run again and again as if for the first time.

Key idea: second-order methods run a loss many times in one step: at trial points, for products, for searches along a line.
Layers with state must not notice. The first run is watched for the Variables that it assigns; every later run starts from the
state before the first one, so random masks are the same in all of them, and leaves the state that the first one left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..arrays import random as streams
from . import effects
from .primitive import Primitive
from .stack import Frame, Interpreter
from .state import State, restore, snapshot


class Repeatable:
    """A function without arguments whose every run starts from the same state.

    Args:
        function: what to run.

    >>> import minikeras as tf
    >>> from minikeras.core.repeat import Repeatable
    >>> count = tf.Variable(0)
    >>> run = Repeatable(lambda: count.assign_add(1).numpy())
    >>> int(run()), int(run()), int(count)
    (1, 1, 1)
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._before: State = []
        self._after: State = []
        self._stream: tuple[Any, Any] | None = None

    def __call__(self) -> Any:
        """Run the function."""
        return self.again(self._function) if self._stream is not None else self._first()

    def start(self) -> None:
        """Run it, unless it was run already."""
        if self._stream is None:
            self._first()

    def _first(self) -> Any:
        stream = streams.global_stream()
        start, watcher = stream.state, _Assignments()
        try:
            with watcher:
                result = self._function()
        except BaseException:
            restore(watcher.before)
            stream.state = start
            raise
        self._before = watcher.before
        self._after = snapshot(variable for variable, _ in watcher.before)
        self._stream = start, stream.state
        return result

    def again(self, function: Callable[[], Any]) -> Any:
        """Run another function, a part of the first one, from the state before the first run."""
        self.start()
        assert self._stream is not None
        stream = streams.global_stream()
        restore(self._before)
        stream.state, end = self._stream
        try:
            return function()
        finally:
            restore(self._after)
            stream.state = end


class _Assignments(Interpreter):
    """An interpreter that notes which Variables are assigned, and what they held before."""

    def __init__(self) -> None:
        self.before: State = []
        self._known: set[int] = set()

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Note an assignment that is about to happen, or the first value of a Variable made within the run."""
        if effects.State.OPERANDS in primitive.writes and outputs.key not in self._known:
            self._known.add(outputs.key)
            self.before.append((outputs, outputs._array))
