"""A function that may run again and again from one state, so that random masks and layers with state are the same."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from ...core import effects
from ...core.primitive import Primitive
from ...core.stack import BOTTOM, Frame, Interpreter, evaluate
from ...core.variable import Snapshot, Variable, restore, snapshot
from ...nn_ops import streams


class Repeatable:
    """A function without arguments whose every run starts from the same state.

    Args:
        function: what to run.
        assigned: the Variables that it assigns, if they are known; else the first run is watched.

    Attributes:
        before: what those Variables held before the first run.

    >>> from minikeras.keras.optimizers.repeat import Repeatable
    >>> count = tf.Variable(0)
    >>> run = Repeatable(lambda: count.assign_add(1).numpy())
    >>> int(run()), int(run()), int(count)
    (1, 1, 1)
    """

    def __init__(self, function: Callable[[], Any], assigned: Sequence[Variable] | None = None) -> None:
        self._function, self._assigned = function, assigned
        self.before: Snapshot = []
        self._after: Snapshot = []
        self._stream: tuple[Any, Any] | None = None

    def __call__(self) -> Any:
        """Run the function."""
        return self.again(self._function)

    def _first(self, function: Callable[[], Any]) -> Any:
        stream = streams.global_stream()
        start, watcher = stream.state, _Assignments(self._assigned or ())
        try:
            with watcher if self._assigned is None else contextlib.nullcontext():
                result = function()
        except BaseException:
            restore(watcher.before)
            stream.state = start
            raise
        self.before = watcher.before
        self._after = snapshot(variable for variable, _ in watcher.before)
        self._stream = start, stream.state
        return result

    def again(self, function: Callable[[], Any]) -> Any:
        """Run another function, such as a part of the first one, from the state before the first run."""
        if self._stream is None:
            return self._first(function)
        stream = streams.global_stream()
        restore(self.before)
        stream.state, end = self._stream
        try:
            return function()
        finally:
            restore(self._after)
            stream.state = end


class _Assignments(Interpreter):
    """An interpreter that notes which Variables are assigned, and what they held before."""

    def __init__(self, assigned: Sequence[Variable]) -> None:
        self.before = snapshot(assigned)
        self._known: set[int] = set()

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Ask below: an assignment is no operation, the stack is only notified of it."""
        if below is BOTTOM and not primitive.effect:
            return evaluate(primitive, inputs, params)
        return below.interpreter.process(primitive, inputs, params, below.below)

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Note an assignment that is about to happen, or the first value of a Variable made within the run."""
        if effects.State.OPERANDS in primitive.writes and outputs.key not in self._known:
            self._known.add(outputs.key)
            self.before.append((outputs, outputs.array))
