"""Batch: an interpreter that turns an operation on stacks into one operation with one more leading axis.

Kernels act on trailing axes, so all there is to do is to line up inputs that are stacks with inputs that are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidArgumentError
from ..types import Array, TensorLike
from .arrays import namespace, to_numpy
from .effects import check, decide
from .primitive import Primitive
from .registry import operations
from .stack import Frame, Interpreter, on_top
from .tensor import Tensor, next_key

loop_fallbacks: Counter[str] = Counter()
"""The number of times that an operation without a batching rule was carried out value by value, by name."""


class BatchedTensor(Tensor):
    """One value that stands for many: shape and dtype are those of one, `stacked` holds them all along a first axis."""

    __slots__ = ("batch", "stacked")

    def __init__(self, stacked: Tensor, batch: Batch) -> None:
        self.stacked = stacked
        self.batch = batch
        self.attached = None
        self.key = next_key()

    @property
    def array(self) -> Array:
        """One of the values, for its shape and dtype."""
        whole = self.stacked.array
        return whole[0, ...] if whole.shape[0] else namespace(whole).zeros(whole.shape[1:], dtype=whole.dtype)

    def _refuse(self, *arguments: Any, **options: Any) -> Any:
        raise InvalidArgumentError(
            f"a tensor of shape {self.shape} stands for {self.stacked.shape[0]} values at once, so it has no single value to "
            "read. Inside vectorized_map and in a model of an ensemble use tf operations such as tf.where instead of Python's "
            "if, float() or .numpy()."
        )

    numpy = __bool__ = __float__ = __int__ = __index__ = __complex__ = _shared = _refuse

    def __str__(self) -> str:
        return f"tf.Tensor(<{self.stacked.shape[0]} values>, shape={self.shape}, dtype={self.dtype.name})"

    __repr__ = __str__


def all_values(x: Tensor) -> np.ndarray[Any, Any]:
    """Every number that a tensor stands for, on the host: for choices that are made once for a whole stack."""
    decide(x)
    return _values(x)


def check_values(x: Tensor, test: Callable[[np.ndarray[Any, Any]], None]) -> None:
    """Let a test see every number that a tensor stands for, on the host, and refuse them."""
    check(x, test, _values(x))


def innermost(x: Tensor) -> Tensor:
    """The tensor that holds all that one stands for."""
    while isinstance(x, BatchedTensor):
        x = x.stacked
    return x


def _values(x: Tensor) -> np.ndarray[Any, Any]:
    return to_numpy(innermost(x).array)


def own_values(x: Tensor) -> np.ndarray[Any, Any]:
    """The numbers of one tensor, on the host: for results whose shape depends on them. A stack is refused."""
    decide(x)
    return x.numpy() if isinstance(x, BatchedTensor) else to_numpy(x.array)


class Batch(Interpreter):
    """The interpreter for one stack size.

    Args:
        size: number of values in each stack.
    """

    __slots__ = ("__weakref__", "size")
    sees_all = True

    def __init__(self, size: int) -> None:
        self.size = size

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Send the operation on whole stacks below."""
        if not any(self.holds(x) for x in inputs):
            return below.process(primitive, inputs, params)
        rule = primitive.batching
        with on_top(below):
            if isinstance(rule, str):
                outputs = getattr(self, rule)(primitive, inputs, params)
            else:
                outputs = rule(self, primitive, inputs, params)
        if outputs is None:
            return below.process(primitive, [self.example(x) for x in inputs], params)
        if type(outputs) is tuple:
            return tuple([BatchedTensor(output, self) for output in outputs])
        return BatchedTensor(outputs, self)

    def holds(self, x: TensorLike) -> bool:
        """True for stacks of this batch."""
        return type(x) is BatchedTensor and x.batch is self

    def whole(self, x: TensorLike) -> Any:
        """The tensor below a stack of this batch; anything else with a first axis of size 1."""
        if self.holds(x):
            return x.stacked
        if not isinstance(x, Tensor):
            return x
        return operations.reshape(x, shape=(1, *x.shape), rank=len(x.shape))

    def full(self, x: TensorLike) -> Any:
        """As `whole`, repeated to the size of the batch."""
        if self.holds(x) or not isinstance(x, Tensor):
            return self.whole(x)
        return operations.broadcast_to(x, shape=(self.size, *x.shape), rank=len(x.shape))

    def example(self, x: TensorLike) -> Any:
        """One value of a stack, where only the shape and dtype count."""
        return Tensor(x.array) if self.holds(x) else x

    def stack_of(self, x: TensorLike) -> Tensor:
        """A result as a tensor with a batch axis: its values, or its one value broadcast along that axis."""
        return x.stacked if self.holds(x) else operations.broadcast_to(x, shape=(self.size, *x.shape), rank=len(x.shape))

    # The rules that a primitive may name ---------------------------------------------------------------------------------

    def keep(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        """Inputs as they are: the kernel takes what lies in front of the axes it knows as a batch."""
        return primitive(*[x.stacked if self.holds(x) else x for x in inputs], **params)

    def lead(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        """Inputs that are not broadcast by themselves: each gets a first axis."""
        return primitive(*[self.whole(x) for x in inputs], **params)

    def fill(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        """Inputs that need equal sizes: each is repeated along the first axis."""
        return primitive(*[self.full(x) for x in inputs], **params)

    def constant(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        """A result that depends on shape and dtype only: one for all."""
        return None

    def align(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        """Inputs that are broadcast against one another: axes of size 1 go behind the first axis of shorter ones."""
        rank = max(len(x.shape) for x in inputs if isinstance(x, Tensor))
        ready = []
        for x in inputs:
            if self.holds(x):
                missing = (1,) * (rank - len(x.shape))
                whole = x.stacked
                x = (
                    operations.reshape(whole, shape=(self.size, *missing, *x.shape), rank=len(whole.shape))
                    if missing
                    else whole
                )
            ready.append(x)
        return primitive(*ready, **params)

    def loop(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        """Value by value, counted in `loop_fallbacks`."""
        loop_fallbacks[primitive.name] += 1
        columns = [[operations.getitem(x.stacked, i) for i in range(self.size)] if self.holds(x) else x for x in inputs]
        results = [
            primitive(*[column[i] if self.holds(x) else x for x, column in zip(inputs, columns, strict=True)], **params)
            for i in range(self.size)
        ]
        if type(results[0]) is tuple:
            return tuple(operations.stack(list(parts)) for parts in zip(*results, strict=True))
        return operations.stack(results)
