"""Calls on KerasTensors: a layer is built and tried on small zeros to find what it gives; what two trials differ in is unknown.
Nothing of a trial stays but what building made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import nest
from ...core import Tensor
from ...core.effects import State, Write
from ...core.stack import BOTTOM, Frame, Interpreter, current, on_top
from ...core.state import restore, snapshot
from ...errors import ShapeError
from ...files import limits
from ...functions.creation import zeros
from ...nn_ops import streams
from ...types import DType, as_dtype
from ..calls import context
from .keras_tensor import KerasTensor, Node, Spec
from .rules import by_rule, check_trial, masked, rank_of_mask, with_mask
from .shapes import map_shapes

_SIZES = ((2, 64), (4, 128))
"""For the batch axis and for other axes of unknown size: what a trial uses, twice."""
_SMALLER = (((2, 16), (4, 24)), ((2, 4), (4, 6)))
"""If these fail: a table of positions may have fewer rows."""


def call_symbolically(operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The KerasTensors that a layer, model or Operation gives for KerasTensors."""
    specs, structure = _tried(operation, args, kwargs)
    return Node(operation, args, kwargs, specs, structure).outputs


def output_shapes(layer: Any, input_shape: Any) -> Any:
    """The shapes of the outputs of a layer for inputs of given shapes; nothing of the trial stays."""
    trial, random_state = Trial(layer), streams.states()
    specs, structure = _tried(layer, (_placeholders(input_shape, as_dtype(layer.compute_dtype)),), {}, by_rules=False)
    trial.undo()
    streams.set_states(random_state)
    return nest.map_structure(lambda position: specs[position].shape, structure)


def _placeholders(shapes: Any, dtype: DType) -> Any:
    """A KerasTensor for each shape of a nest of shapes."""
    return map_shapes(lambda shape: KerasTensor(Node(Placeholder(), (), {}, [Spec(tuple(shape), dtype)], 0)), shapes)


class Placeholder:
    """Where a KerasTensor comes from that stands for a shape alone."""

    name = "placeholder"


def _tried(operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any], by_rules: bool = True) -> tuple[list[Spec], Any]:
    """Shape and dtype of each output, and the nest that they form."""
    trial = Trial(operation)
    try:
        trial.build(args, kwargs)
        limits.spend_work(limits.CALL, f"calls such as that of '{operation.name}'")
        if (spec := _told(operation, args)) is not None:
            return with_mask(operation, args, [spec]), 0
        costly = limits.is_loading() or hasattr(operation, "scores_shape")  # attention: the square of the number of steps
        if by_rules and costly and (ruled := by_rule(operation, args, kwargs)) is not None:
            return ruled
        found = _found(trial, operation, args, kwargs)
    except BaseException:
        trial.undo()
        raise
    leaves = [nest.flatten(outputs) for outputs in found]
    for leaf in leaves[0]:
        if leaf is None:
            raise ValueError(returned_none(operation))
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"All outputs of '{operation.name}' must be tensors to be part of a model; it returned {leaf!r:.80}."
            )
    if len(leaves[0]) != len(leaves[-1]):
        raise ShapeError(f"'{operation.name}' gives more or fewer tensors for other sizes of axes that may have any size.")
    specs = [_merged(operation, *outputs) for outputs in zip(*leaves, strict=True)]
    return specs, nest.pack(found[0], list(range(len(specs))))


def _told(operation: Any, args: tuple[Any, ...]) -> Spec | None:
    """What a layer itself says of its output, where a trial could not find it out."""
    knows = hasattr(operation, "output_spec") and args and all(map(_is_symbol, nest.flatten(args[0])))
    return operation.output_spec(args[0]) if knows else None


def _found(trial: Trial, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The results for each of the sizes that unknown axes are tried with; if these fail, for sizes of known axes of other
    inputs, and for smaller ones.
    """
    symbols = [leaf for leaf in nest.flatten([args, kwargs]) if _is_symbol(leaf)]
    if not any(None in symbol.shape for symbol in symbols):
        check_trial(operation, args, kwargs, _SIZES[0])
        return [trial.run(functools.partial(_call, operation, args, kwargs, _SIZES[0]))]
    known = {size for symbol in symbols for size in symbol.shape[1:] if size is not None}
    alike = [tuple((batch, size) for batch, _ in _SIZES) for size in sorted(known)] if len(symbols) > 1 else []
    failures: list[Exception] = []
    for sizes in (_SIZES, *alike, *_SMALLER):
        check_trial(operation, args, kwargs, sizes[-1])
        try:
            return [trial.run(functools.partial(_call, operation, args, kwargs, size)) for size in sizes]
        except Exception as error:
            failures.append(error)
            trial.undo()
            trial.build(args, kwargs)
    raise failures[0]


def _is_symbol(leaf: Any) -> bool:
    return isinstance(leaf, KerasTensor)


def _call(operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any], sizes: tuple[int, int]) -> Any:
    """The results for zeros, or for what the operation asks for instead."""
    example = getattr(operation, "example", zeros)

    def filled(leaf: Any) -> Any:
        if not _is_symbol(leaf):
            return leaf
        shape = [(sizes[min(axis, 1)] if size is None else size) for axis, size in enumerate(leaf.shape)]
        return masked(example(shape, leaf.dtype), leaf.spec.mask_rank)

    given, named = nest.map_structure(filled, [args, kwargs])
    try:
        return operation(*given, **named)
    except Exception as error:
        symbols = [leaf for leaf in nest.flatten([args, kwargs]) if _is_symbol(leaf)]
        error.add_note(
            f"This happened when '{operation.name}' ({type(operation).__name__}) was tried on zeros to find the shape of its "
            f"output for {', '.join(map(repr, symbols))}."
        )
        raise


def _merged(operation: Any, first: Tensor, second: Tensor | None = None) -> Spec:
    """Shape and dtype of an output; None where two trials differ."""
    if second is None:
        return Spec(tuple(first.shape), first.dtype, rank_of_mask(first))
    if len(first.shape) != len(second.shape):
        raise ShapeError(
            f"'{operation.name}' gives {first.shape} or {second.shape}: its number of axes depends on the batch size."
        )
    shape = tuple([a if a == b else None for a, b in zip(first.shape, second.shape, strict=True)])
    return Spec(shape, first.dtype, rank_of_mask(first))


class Trial(Interpreter):
    """Calls of a layer, model or Operation that leave no trace. An interpreter: it notes what values Variables are made
    with.
    """

    def __init__(self, operation: Any) -> None:
        self._operation = operation
        self._holders = _holders(operation)
        self._unbuilt = [(layer, dict(layer.__dict__)) for layer in self._holders if not layer._built]
        self._born: dict[int, tuple[Any, Any]] = {}
        self._building: dict[int, Any] = {}

    def build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Make the weights of a layer for the shapes of the KerasTensors, None for axes of any size."""
        if not (self._operation.built and getattr(self._operation, "_built", True)):
            training, context.training = context.training, False
            try:
                self._operation._build_on_call(args, kwargs)
            finally:
                context.training = training

    def undo(self) -> None:
        """Have layers that this trial has built unbuilt again."""
        for layer, attributes in self._unbuilt:
            layer._restore(attributes)

    def run(self, call: Callable[[], Any], below: Frame = BOTTOM) -> Any:
        """The result of a call on top of `below`; state is put back."""
        kept = snapshot(_variables(self._operation))
        losses = [(layer, list(layer._losses)) for layer in self._holders]
        complete = all(layer.built for layer in self._holders)
        random_state, training = streams.states(), context.training
        self._born.clear()
        self._building.clear()
        context.training = False
        try:
            with on_top(Frame(self, below)), np.errstate(all="ignore"):
                return call()
        finally:
            context.training = training
            restore((*kept, *self._born.values(), *snapshot(self._building.values())))
            for layer in _holders(self._operation):
                layer._losses.clear()
            for layer, values in losses:
                layer._losses.extend(values)
            if complete:  # else the first weights have drawn from the streams, and what comes next must not draw the same
                streams.set_states(random_state)

    def observe(self, primitive: Any, inputs: Any, params: Any, outputs: Any, below: Any) -> None:
        """Note the value that a Variable is made with, or has once its layer is built. Assignments come after this."""
        if State.OPERANDS not in primitive.writes:
            return
        key = outputs.key
        if params["conversion"] is Write.INITIAL:
            self._born[key] = (outputs, outputs._array)
        elif context.caller is not None and context.caller._building:
            self._building[key] = outputs
        elif key in self._building:
            self._born[key] = (self._building.pop(key), outputs._array)


def is_trial() -> bool:
    """Whether this thread tries a call on zeros, which need not be values that data may have."""
    frame: Any = current()
    while frame and not isinstance(frame.interpreter, Trial):
        frame = frame.below
    return bool(frame)


def _holders(operation: Any) -> list[Any]:
    """The layer and all within it; none for an Operation."""
    return [operation, *operation._collect().sublayers] if hasattr(operation, "_collect") else []


def _variables(operation: Any) -> list[Any]:
    """All Variables of a layer, those of its metrics included."""
    if not hasattr(operation, "_collect"):
        return []
    contents = operation._collect()
    return [*contents.variables, *(variable for metric in contents.metrics for variable in metric.variables)]


def returned_none(layer: Any) -> str:
    """What to say where a layer or model should have given a tensor."""
    return f"'{layer.name}' ({type(layer).__name__}) returned None, a tensor is needed. Does its `call` end without `return`?"
