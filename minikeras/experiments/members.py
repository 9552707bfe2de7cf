"""Members: an interpreter under which one model stands for many of its kind, whose weights lie stacked along a first axis.

What the model computes it computes for all members at once: reading a Variable gives the stack of theirs, assigning it writes
the stack, and a random layer draws for each from the member's own stream.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import Tensor, Variable, convert_to_tensor
from ..core.arrays import namespace
from ..core.batch import Batch, BatchedTensor
from ..core.effects import Write, clock, drawn_key
from ..core.primitive import Primitive
from ..core.stack import Frame, on_top
from ..core.variable import read_variable
from ..errors import InvalidArgumentError, ShapeError
from ..functions.indexing import gather
from ..functions.shaping import concat
from ..keras.weight import HostVariable, KerasVariable
from ..nn_ops import streams as random
from ..types import Array
from .hyperparameters import MemberNumber


class Members(Batch):
    """The interpreter for `size` members.

    Attributes:
        stacks: for the key of a Variable of the model, that Variable and the one that holds all members' values. Never changed
            in place. A Variable that is not there holds one value for all.
        streams: the global random streams of the members: rows of seed and position.
    """

    __slots__ = ("__dict__", "stacks", "streams")

    def __init__(self, states: Sequence[tuple[int, int]]) -> None:
        super().__init__(len(states))
        self.stacks: dict[int, tuple[Variable, Variable]] = {}
        self.streams = HostVariable(np.array(states, np.uint64), trainable=False, name="streams")

    def stack(self, variable: Variable, values: Any) -> Variable:
        """Let a Variable of the model stand for these values, one for each member along the first axis."""
        whole = KerasVariable(Tensor(values), trainable=variable.trainable, name=variable.name)
        self.stacks = self.stacks | {variable.key: (variable, whole)}
        clock.tick()
        return whole

    def whole_of(self, variable: Variable) -> Variable:
        """The Variable that holds the values of all members; made if there was but one value so far."""
        if variable.key in self.stacks:
            return self.stacks[variable.key][1]
        value = variable._array
        return self.stack(variable, namespace(value).broadcast_to(value, (self.size, *value.shape)).copy())

    # Reading and assigning -----------------------------------------------------------------------------------------------

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Send the operation on whole stacks below."""
        if primitive is read_variable:
            found = self.stacks.get(inputs[0].key)
            if found is not None:
                return BatchedTensor(below.process(read_variable, (found[1],), {}), self)
        elif primitive is drawn_key:
            keys = functools.partial(self._global_keys, params["source"])
            return BatchedTensor(below.process(drawn_key, (), {"source": keys}), self)
        if any(type(value) is MemberNumber for value in params.values()):
            return self._by_number(primitive, inputs, params, below)
        return super().process(primitive, inputs, params, below)

    def _by_number(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """An operation with numbers that differ among its parameters, once for the members that have the same ones."""
        own = {name: value.values for name, value in params.items() if type(value) is MemberNumber}
        places: dict[tuple[float, ...], list[int]] = {}
        for place, values in enumerate(zip(*own.values(), strict=True)):
            places.setdefault(values, []).append(place)
        parts = []
        with on_top(below):
            for values, chosen in places.items():
                batch = Batch(len(chosen))
                rows = [BatchedTensor(gather(self.stack_of(x), chosen), batch) if isinstance(x, Tensor) else x for x in inputs]
                found = batch.process(primitive, rows, params | dict(zip(own, values, strict=True)), below)
                parts.append(batch.stack_of(found))
            order = np.argsort([place for chosen in places.values() for place in chosen])
            return BatchedTensor(gather(concat(parts, 0), order), self)

    def assign(self, variable: Variable, value: Any, how: Write, below: Frame) -> bool:
        """Write the stack; one value for all stays one value."""
        if how is Write.SCATTER:
            if variable.key in self.stacks:
                raise InvalidArgumentError(
                    f"members of an ensemble assign whole Variables, and a part of '{variable.name}' is to be written. Use "
                    "assign with tf.tensor_scatter_nd_update, tf.where or a sum of one-hot rows."
                )
            return False
        value = convert_to_tensor(value() if callable(value) and not hasattr(value, "key") else value, variable.dtype)
        if variable.key not in self.stacks and not self.holds(value):
            return False
        if tuple(value.shape) != tuple(variable.shape):
            raise ShapeError(
                f"{how}: variable '{variable.name}' has shape {variable.shape}, the value has shape {tuple(value.shape)}."
            )
        whole = self.whole_of(variable)
        with on_top(below):
            getattr(whole, how)(self.stack_of(value))
        return True

    def _global_keys(self, source: Callable[[], Any]) -> Array:
        """Keys of all members for a draw from the global stream: `source` is asked with each one's in its place."""
        stream, found, rows = random.global_stream(), [], self.streams._array.tolist()
        outer = stream.state
        try:
            for place, state in enumerate(rows):
                stream.state = tuple(state)
                found.append(source())
                rows[place] = stream.state
        finally:
            stream.state = outer
        self.streams.assign(Tensor(np.array(rows, np.uint64)))
        return np.stack(found)
