"""Primitive, an operation, and Record, an operation that was carried out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from .arrays import BARE, quiet, quiet_context
from .precision import in_float32
from .registry import operations, register

Rule = Callable[..., Any]


class Primitive:
    """One operation: how to compute it, and how to move cotangents backward and tangents forward through it.

    Polymorphic: arrays in, arrays out; Tensors in, Tensors out. `params` are Python values. Kernels act on trailing
    axes only (axes are negative numbers), so that further leading axes are a batch.

    Attributes:
        name: its name in the registry, in Records and in messages.
        kernel: `kernel(xp)` is the function of arrays, for the library `xp`.
        vjp: `vjp(wanted, g, y, inputs, params)`, the cotangents of the inputs at the positions in `wanted`; None if
            the operation has no gradient although its result is floating, or if its result counts as a constant.
        jvp: `jvp(tangents, y, inputs, params)`, the tangent of the result; tangents hold None where there is none.
        differentiable: False if the result does not depend smoothly on the inputs; then no Record is kept, and no gradient
            passes. What follows may still be differentiated by the result, unless it counts as a constant.
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
        mixed: True if operands may lie on the host beside others on a device: keys of draws, text.
        partial: True if the VJP of several results takes None for the cotangent of one that nothing depends on.
        registered: True if it is in the registry: one of the package's own, whose kernel calls nothing of the user's.
    """

    __slots__ = (
        *("_on", "accumulates", "batching", "differentiable", "effect", "elementwise", "escapes", "jvp", "kernel", "may_warn"),
        *("mixed", "name", "on_numpy", "partial", "reads", "registered", "repeatable", "uniform", "vjp", "weight", "writes"),
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
        mixed: bool = False,
        partial: bool = False,
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
        self.partial = partial
        self.mixed = mixed or effect
        self.elementwise = elementwise
        self.kernel: Callable[[Any], Callable[..., Any]] = (lambda xp: in_float32(kernel(xp))) if accumulates else kernel
        self.vjp = vjp
        self.jvp = jvp
        self.differentiable = differentiable
        self.uniform = uniform
        # An infinity, a NaN or an integer that wraps is a result like any other; NumPy's warning about it would be noise.
        self.may_warn = not (moves or effect)
        self.on_numpy = self.kernel(np)
        self._on = {id(np): quiet(self.on_numpy) if self.may_warn else self.on_numpy}
        if registered:
            register(name, self)

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        for x in inputs:
            if type(x) not in BARE:
                return operations.bind(self, inputs, params)
        if self.may_warn:
            return quiet_context().run(self.on_numpy, *inputs, **params)
        return self.on_numpy(*inputs, **params)

    def on(self, xp: ModuleType) -> Callable[..., Any]:
        """The function of arrays for library `xp`."""
        function = self._on.get(id(xp))
        if function is None:
            function = self._on[id(xp)] = self.kernel(xp)
        return function

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"


class Record:
    """This primitive was applied to these inputs and gave these outputs. str() is a line of a program."""

    __slots__ = ("inputs", "outputs", "params", "primitive")

    def __init__(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any) -> None:
        self.primitive = primitive
        self.inputs = inputs
        self.params = params
        self.outputs = outputs

    def __str__(self) -> str:
        outputs = self.outputs if type(self.outputs) is tuple else (self.outputs,)
        options = [f"{name}={_option(value)}" for name, value in self.params.items()]
        arguments = ", ".join([_operand(x) for x in self.inputs] + options)
        return f"{', '.join(_operand(y) for y in outputs)} = {self.primitive.name}({arguments})"


def _operand(value: Any) -> str:
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
    name = getattr(value, "name", None) or getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return str(name or type(value).__name__)
