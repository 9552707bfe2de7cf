"""Dispatch: `bind` sends an operation on Tensors to the top of this thread's stack of interpreters.

Each interpreter asks the one below, and the lowest computes: a tape above a tape gives second derivatives.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..arrays import BARE, is_array, namespace, quiet_context
from ..errors import MinikerasError
from .operation_errors import explained
from .registry import operations, register
from .tensor import Tensor

if TYPE_CHECKING:
    from .primitive import Primitive


class Interpreter:
    """Base of what can be on the stack: override `observe` to watch operations, `process` to rewrite them.

    `with interpreter:` puts it on the stack of this thread. Outputs are a Tensor, or a tuple of several.
    """

    __slots__ = ()
    sees_all = False
    """Whether it sees what happens within a custom gradient, rather than the custom gradient alone."""

    def __enter__(self) -> Self:
        switch(Frame(self, current()))
        return self

    def __exit__(self, *exception: object) -> None:
        switch(current().without(self))

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Carry out an operation, by asking the level below."""
        outputs = below.interpreter.process(primitive, inputs, params, below.below)
        self.observe(primitive, inputs, params, outputs, below)
        return outputs

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Take note of an operation that was carried out, or of whose results `notify` tells."""


class Frame:
    """One level of the stack: an interpreter and the levels below it."""

    __slots__ = ("below", "interpreter")

    def __init__(self, interpreter: Interpreter, below: Frame | None) -> None:
        self.interpreter = interpreter
        self.below: Any = below

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        """Let this level and those below it carry out the operation."""
        return self.interpreter.process(primitive, inputs, params, self.below)

    def without(self, interpreter: Interpreter) -> Frame:
        """The same stack with one interpreter taken out, wherever it is; itself if it is not there."""
        if self.interpreter is interpreter:
            return self.below
        below = self.below.without(interpreter) if self.below else None
        return self if below is self.below else Frame(self.interpreter, below)


class Evaluate(Interpreter):
    """The bottom of the stack: NumPy or CuPy computes."""

    __slots__ = ()

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Any) -> Any:
        """Unwrap, compute, wrap."""
        arrays, bare = [], True
        for x in inputs:
            array = x._array if isinstance(x, Tensor) else x
            arrays.append(array)
            if type(array) not in BARE:
                bare = False
        compute = primitive.on_numpy if bare else primitive.on(namespace(*arrays))
        try:
            if bare and primitive.may_warn:
                outputs = quiet_context().run(compute, *arrays, **params)
            else:
                outputs = compute(*arrays, **params)
        except MinikerasError:
            raise
        except (ValueError, TypeError, OverflowError, np.linalg.LinAlgError) as error:
            if primitive.effect:
                raise
            raise explained(primitive, inputs, params, error) from error
        kind = type(outputs)
        if kind is tuple:
            return tuple([Tensor(array) for array in outputs])
        if kind is str or kind is bytes:  # NumPy gives the bare element of an array of text without axes
            outputs = np.array(outputs, dtype=object)
        return Tensor(outputs)


BOTTOM = Frame(Evaluate(), None)


class _Thread(threading.local):
    frame = BOTTOM


_thread = _Thread()


def current() -> Frame:
    """The top of this thread's stack."""
    return _thread.frame


def switch(frame: Frame) -> None:
    """Make `frame` the top of this thread's stack."""
    _thread.frame = frame


def perform(primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """Send an operation whose inputs are ready to the top of the stack."""
    frame = _thread.frame
    return frame.interpreter.process(primitive, inputs, params, frame.below)


def notify(frame: Frame, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any) -> None:
    """Let every interpreter on the stack observe an operation whose results are known already, the lowest first."""
    if frame.below is not None:
        notify(frame.below, primitive, inputs, params, outputs)
        frame.interpreter.observe(primitive, inputs, params, outputs, frame.below)


def bind(primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], reflected: str | None = None) -> Any:
    """Make the inputs ready (Tensors of one dtype, or Python numbers beside one) and perform the operation.

    `reflected` names the method, such as `__radd__`, with which Python goes on if the last input is no tensor but has it.
    """
    dtype = None
    number = False
    for x in inputs:
        if isinstance(x, Tensor):
            if dtype is None:
                dtype = x._array.dtype
            elif primitive.uniform and x._array.dtype is not dtype:
                break
        elif type(x) is float or type(x) is int:
            number = True
        else:
            break
    else:
        # Floating tensors take any real number beside them; the other cases need the checks of `operands`.
        if dtype is not None and (not number or dtype.kind in "fc"):
            frame = _thread.frame
            return frame.interpreter.process(primitive, inputs, params, frame.below)
    if all(type(x) in BARE or is_array(x) for x in inputs):
        return primitive.on(namespace(*inputs))(*inputs, **params)  # bare arrays of another library, inside a rule
    try:
        inputs = operations.operands(primitive, inputs)
    except ValueError:
        if reflected and not isinstance(inputs[-1], (list, tuple)) and hasattr(inputs[-1], reflected):
            return NotImplemented
        raise
    return perform(primitive, inputs, params)


register("bind", bind)
