"""Dispatch: `bind` sends an operation on Tensors to the top of this thread's stack of interpreters.

Each interpreter asks the one below, and the lowest computes: a tape above a tape gives second derivatives.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from ..errors import MinikerasError
from ..types import TensorLike
from .arrays import BARE, brought_together, is_array, namespace, quiet_context
from .primitive import Primitive
from .registry import operations, register
from .tensor import Tensor, next_key
from .warnings import explained


class Interpreter:
    """Base of the interpreters on the stack: override `observe` to watch operations, `process` to rewrite them.

    `with interpreter:` puts it on the stack of this thread. Outputs are a Tensor, or a tuple of several.
    """

    __slots__ = ()
    sees_all = False
    """True if it sees the operations within a custom gradient, rather than the custom gradient alone."""
    only_shapes = False
    """True if it needs shapes and dtypes alone: the values need not be plausible data."""
    unrolls_loops = False
    """True if it needs each step of a loop, not the loop as one operation."""
    keeps_run = False
    """True if it records the run, to repeat it with other values."""
    keeps_step = False
    """True if it records one step of a loop; where Python reads values, other steps may differ from it."""

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
        """Take note of an operation that was carried out, or whose results `notify` reports."""

    def assign(self, variable: Any, value: TensorLike, how: Any, below: Frame) -> bool:
        """Carry out an assignment by other means; True if that was done."""
        return False

    def is_fixed(self, x: Tensor) -> bool:
        """True if a Tensor has the same value each time that the recording is repeated."""
        return True


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
        return evaluate(primitive, inputs, params)


def evaluate(primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """Unwrap, compute, wrap: what an operation does where no interpreter is above the bottom."""
    try:
        outputs = _computed(primitive, inputs, params)
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
    tensor = _new(Tensor)  # without the call of __init__: 0.05 us less
    tensor.array, tensor.attached, tensor.key = outputs, None, next_key()
    return tensor


_new = object.__new__


def _computed(primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """The bare results of an operation on any operands, by NumPy or by another library.

    One or two operands without parameters are spelt out: 0.2 us less than by way of lists.
    """
    if not params and primitive.may_warn:
        count = len(inputs)
        if count == 2:
            a, b = inputs
            a = a.array if isinstance(a, Tensor) else a
            b = b.array if isinstance(b, Tensor) else b
            if type(a) in BARE and type(b) in BARE:
                return quiet_context().run(primitive.on_numpy, a, b)
        elif count == 1:
            (a,) = inputs
            a = a.array if isinstance(a, Tensor) else a
            if type(a) in BARE:
                return quiet_context().run(primitive.on_numpy, a)
    arrays, bare = [], True
    for x in inputs:
        array = x.array if isinstance(x, Tensor) else x
        arrays.append(array)
        if type(array) not in BARE:
            bare = False
    if not bare:
        xp, there = (namespace(*arrays), arrays) if primitive.mixed else brought_together(primitive.name, arrays)
        return primitive.on(xp)(*there, **params)
    if primitive.may_warn:
        return quiet_context().run(primitive.on_numpy, *arrays, **params)
    return primitive.on_numpy(*arrays, **params)


BOTTOM = Frame(Evaluate(), None)


class _Thread(threading.local):
    frame = BOTTOM


_thread = _Thread()


def current() -> Frame:
    """The top of this thread's stack."""
    return _thread.frame


def only_shapes() -> bool:
    """True if an interpreter on this thread's stack needs shapes and dtypes alone."""
    return any([one.only_shapes for one in interpreters()])


def unrolls_loops() -> bool:
    """True if an interpreter on this thread's stack needs each step of a loop."""
    return any([one.unrolls_loops for one in interpreters()])


def is_in_step() -> bool:
    """True if an interpreter on this thread's stack records one step of a loop."""
    return any([one.keeps_step for one in interpreters()])


def interpreters() -> Iterator[Interpreter]:
    """The interpreters on this thread's stack, from the top."""
    frame = _thread.frame
    while frame is not BOTTOM:
        yield frame.interpreter
        frame = frame.below


def switch(frame: Frame) -> None:
    """Make `frame` the top of this thread's stack."""
    _thread.frame = frame


class on_top:
    """Within the block, `frame` is the top of this thread's stack."""

    __slots__ = ("_frame", "_outer")

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __enter__(self) -> None:
        self._outer, _thread.frame = _thread.frame, self._frame

    def __exit__(self, *exception: object) -> None:
        _thread.frame = self._outer


def perform(primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """Send an operation whose inputs are ready to the top of the stack."""
    frame = _thread.frame
    if frame is BOTTOM:
        return evaluate(primitive, inputs, params)
    return frame.interpreter.process(primitive, inputs, params, frame.below)


def notify(frame: Frame, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any) -> None:
    """Let every interpreter on the stack observe an operation whose results are known already, the lowest first."""
    if frame.below is not None:
        notify(frame.below, primitive, inputs, params, outputs)
        frame.interpreter.observe(primitive, inputs, params, outputs, frame.below)


def redirected(variable: Any, value: Any, how: Any) -> bool:
    """Let the interpreters carry out an assignment by other means, the highest first; True if one has."""
    frame = _thread.frame
    while frame is not BOTTOM:
        if frame.interpreter.assign(variable, value, how, frame.below):
            return True
        frame = frame.below
    return False


def _are_ready(primitive: Primitive, inputs: Sequence[Any]) -> bool:
    """True if all are Tensors of one dtype, or floating Tensors beside real numbers; other inputs need `operands`."""
    if len(inputs) == 2:  # the usual ones, spelt out
        a, b = inputs
        if type(a) is Tensor:
            if type(b) is Tensor:
                return a.array.dtype is b.array.dtype or not primitive.uniform
            if type(b) is float:
                return a.array.dtype.kind in "fc"
    dtype = None
    number = False
    for x in inputs:
        if isinstance(x, Tensor):
            if dtype is None:
                dtype = x.array.dtype
            elif x.array.dtype is not dtype and primitive.uniform:
                return False
        elif type(x) is float or type(x) is int:
            number = True
        else:
            return False
    return dtype is not None and (not number or dtype.kind in "fc")


def bind(primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], reflected: str | None = None) -> Any:
    """Make the inputs ready (Tensors of one dtype, or Python numbers beside one) and perform the operation.

    `reflected` names the method, such as `__radd__`, with which Python goes on if the last input is no tensor but has it.
    """
    if _are_ready(primitive, inputs):
        frame = _thread.frame
        if frame is BOTTOM:
            return evaluate(primitive, inputs, params)
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
