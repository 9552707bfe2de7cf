"""The one door that every operation goes through, and the stack of interpreters behind it. Read this first.

A `Primitive` called on bare arrays computes at once. If a Tensor is among its inputs it goes to the top of the stack of
this thread. The bottom of the stack computes; what lies above either watches (a tape) or rewrites. Each interpreter asks
the one below it, so the order on the stack is the meaning: a tape inside a tape gives second derivatives.

    bind -> tape -> tape -> Evaluate

Next: `families.py`, where the rules of derivatives come from, and `tape.py`, which keeps the Records.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..arrays import BARE, is_array, namespace, quiet
from ..errors import MinikerasError
from ..types import Array
from .complaints import explained
from .precision import in_float32
from .registry import enter, operations
from .tensor import Tensor

Rule = Callable[..., Any]


class Primitive:
    """One operation: how to compute it, and how to move cotangents backward and tangents forward through it.

    Polymorphic: arrays in, arrays out; Tensors in, Tensors out. `params` are Python values. Kernels act on trailing
    axes only (axes are negative numbers), so that further leading axes are a batch.

    Attributes:
        name: its name in the registry, in Records and in messages.
        kernel: `kernel(xp)` is the function of arrays, for the library `xp`.
        vjp: `vjp(wanted, g, y, inputs, params)`, the cotangents of the inputs at the positions in `wanted`; None if
            the operation has no gradient although its result is floating.
        jvp: `jvp(tangents, y, inputs, params)`, the tangent of the result; tangents hold None where there is none.
        differentiable: False if the result does not depend smoothly on the inputs; then no Record is kept.
        uniform: True if all inputs must have one dtype.
        batching: how a stack of values goes through: the name of a rule of `Batch` ('align', 'keep', 'lead', 'fill',
            'constant', 'loop'), or `batching(batch, primitive, inputs, params)`.
        effect: True if it does more than compute its results: a program carries it out in each run, in its place, whether its
            results are used or not.
        reads, writes: the `State` (`effects.py`) that it depends on beside its inputs, and that it changes.
        escapes: True if its operands may be held after it by something else than the results: a Variable, Python.
        repeatable: False if it shows Python values that may be others in the next run, so that no program can repeat it.
        elementwise: True if each element of the result comes from the elements of the inputs in its place, broadcast.
        accumulates: True if many elements become one: the kernel computes in float32 for 16-bit floats, and rounds once.
        moves: True if it only moves elements, so that NumPy has nothing to warn of.
        weight: the position of the operand w in a product of rows x @ w; an operand behind it is added to each row. None for
            other operations.
        registered: True if it is in the registry: one of the package's own, whose kernel calls nothing of the user's.
    """

    __slots__ = (
        *("_on", "accumulates", "batching", "differentiable", "effect", "elementwise", "escapes", "jvp", "kernel", "name"),
        *("on_numpy", "reads", "registered", "repeatable", "uniform", "vjp", "weight", "writes"),
    )

    def __init__(
        self,
        name: str,
        kernel: Callable[[Any], Callable[..., Any]],
        *,
        vjp: Rule | None = None,
        jvp: Rule | None = None,
        differentiable: bool = True,
        uniform: bool = True,
        batching: str | Rule = "loop",
        effect: bool = False,
        reads: Sequence[Any] = (),
        writes: Sequence[Any] = (),
        escapes: bool = False,
        repeatable: bool = True,
        elementwise: bool = False,
        accumulates: bool = False,
        moves: bool = False,
        weight: int | None = None,
        registered: bool = True,
    ) -> None:
        self.name = name
        self.accumulates = accumulates
        self.batching = batching
        self.effect = effect
        self.registered = registered
        self.reads = tuple(reads)
        self.writes = tuple(writes)
        self.escapes = escapes
        self.repeatable = repeatable
        self.weight = weight
        self.elementwise = elementwise
        self.kernel: Callable[[Any], Callable[..., Any]] = (lambda xp: in_float32(kernel(xp))) if accumulates else kernel
        self.vjp = vjp
        self.jvp = jvp
        self.differentiable = differentiable
        self.uniform = uniform
        on_numpy = self.kernel(np)
        # An infinity, a NaN or an integer that wraps is a result like any other; NumPy's warning about it would be noise.
        self.on_numpy = on_numpy if moves or effect else quiet(on_numpy)
        self._on: dict[int, Callable[..., Any]] = {}
        if registered:
            enter(name, self)

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        for x in inputs:
            if type(x) not in BARE:
                return bind(self, inputs, params)
        return self.on_numpy(*inputs, **params)

    def on(self, xp: Any) -> Callable[..., Any]:
        """The function of arrays for library `xp`."""
        if xp is np:
            return self.on_numpy
        function = self._on.get(id(xp))
        if function is None:
            function = self._on[id(xp)] = self.kernel(xp)
        return function

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"


class Record:
    """Something happened: this primitive was applied to these inputs and gave these outputs."""

    __slots__ = ("inputs", "outputs", "params", "primitive")

    def __init__(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any) -> None:
        self.primitive = primitive
        self.inputs = inputs
        self.params = params
        self.outputs = outputs

    def __str__(self) -> str:
        outputs = self.outputs if type(self.outputs) is tuple else (self.outputs,)
        options = [f"{name}={_option(value)}" for name, value in self.params.items()]
        arguments = ", ".join([_short(x) for x in self.inputs] + options)
        return f"{', '.join(_short(y) for y in outputs)} = {self.primitive.name}({arguments})"


def _short(value: Any) -> str:
    """`%12:float32[3,2]` for a Tensor, the name for a Variable, the number itself else."""
    if not hasattr(value, "key") or value.shape is None:
        return repr(value)
    shape = ",".join(map(str, value.shape))
    return f"{getattr(value, 'name', None) or f'%{value.key}'}:{value.dtype.name}[{shape}]"


def _option(value: Any) -> str:
    """A plain value as it is, of anything else the name or the kind."""
    if isinstance(value, list):
        return f"[{', '.join(map(_option, value))}]"
    if isinstance(value, (str, int, float, tuple, slice, type(None))):
        return repr(value)
    return str(getattr(value, "name", None) or getattr(value, "__qualname__", type(value).__name__))


class Interpreter(Protocol):
    """What can lie on the stack."""

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Carry out the operation by asking `below`, and watch or rewrite it."""

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Take note of an operation that was carried out."""


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
        """The same stack with one interpreter taken out, wherever it lies; itself if it is not there."""
        if self.interpreter is interpreter:
            return self.below
        below = self.below.without(interpreter) if self.below else None
        return self if below is self.below else Frame(self.interpreter, below)


class Evaluate:
    """The bottom of the stack: NumPy or CuPy computes."""

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Any) -> Any:
        """Unwrap, compute, wrap."""
        arrays = [x._array if isinstance(x, Tensor) else x for x in inputs]
        compute = primitive.on_numpy
        for array in arrays:
            if type(array) not in BARE:
                compute = primitive.on(namespace(*arrays))
                break
        try:
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

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Any) -> None:
        """Nothing to note."""


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


def announce(frame: Frame, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any) -> None:
    """Let everyone on the stack take note of an operation whose results are known already."""
    if frame.below is not None:
        announce(frame.below, primitive, inputs, params, outputs)
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


enter("bind", bind)


def kernel(function: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    """Turn `function(xp, *arrays, **params)` into the form that Primitive takes."""
    return lambda xp: functools.partial(function, xp)


def arrays_of(values: Any) -> Array:
    """The bare array of a Tensor, or of each in a tuple; anything else as it is."""
    if isinstance(values, Tensor):
        return values._array
    if type(values) is tuple:
        return tuple([arrays_of(value) for value in values])
    return values
