"""Tape: an interpreter that keeps a Record of each operation that depends on what it watches, to sweep back over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .backward import sweep
from .primitive import Primitive, Record
from .registry import find_hook
from .stack import BOTTOM, Frame, Interpreter, current, evaluate
from .tensor import Operand, Tensor
from .variable import Variable, read_variable


class Tape(Interpreter):
    """The record of operations on watched values. `GradientTape` adds TensorFlow's rules: nests, one use or many, errors.

    Args:
        watch_accessed: whether trainable Variables are watched when they are read.

    Attributes:
        records: the operations that depend on what is watched, in the order in which they happened.
        tracked: keys of what is watched, and of what depends on it. They keep no Tensor alive.
        accessed: the watched Variables, by key.
        lifted: whether rules need Tensors: a bare bfloat16 array beside a number would turn into float32.
    """

    __slots__ = ("accessed", "lifted", "records", "tracked", "watch_accessed")

    def __init__(self, watch_accessed: bool = True) -> None:
        self.watch_accessed = watch_accessed
        self.lifted = False
        self.clear()

    def clear(self) -> None:
        """Forget all Records, and what is watched."""
        self.records: list[Record] = []
        self.tracked: set[int] = set()
        self.accessed: dict[int, Variable] = {}

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Ask below, and observe."""
        if below is not BOTTOM:
            outputs = below.interpreter.process(primitive, inputs, params, below.below)
        elif primitive is read_variable:
            outputs = Tensor(inputs[0].array)
        else:
            outputs = evaluate(primitive, inputs, params)
        self.observe(primitive, inputs, params, outputs, below)
        return outputs

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Keep a Record if an input is tracked, and track the results; of steps the results alone: paths begin there."""
        whole = type(outputs) is Tensor and outputs.array.dtype.kind in "biu"
        if not primitive.differentiable and (whole or primitive.vjp is None):
            return
        tracked = self.tracked
        if primitive is read_variable and self.watch_accessed and inputs[0]._trainable:
            self.accessed[inputs[0].key] = inputs[0]
            tracked.add(inputs[0].key)
        for x in inputs:
            if isinstance(x, Operand) and x.key in tracked:
                if type(outputs) is Tensor and outputs.array.dtype.kind in "fc":
                    tracked.add(outputs.key)
                    if primitive.differentiable:
                        self.records.append(Record(primitive, inputs, params, outputs))
                else:
                    self._keep(primitive, inputs, params, outputs)
                return

    def _keep(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any) -> None:
        """Keep a Record of an operation with several results or unusual ones, if it has any that may carry a gradient."""
        results = outputs if type(outputs) is tuple else (outputs,)
        smooth = [y.key for y in results if y.array.dtype.kind in "fc"]
        if not smooth:  # worth a Record though NumPy calls none a float: bfloat16, and results that refuse a gradient
            smooth = [y.key for y in results if y.dtype.is_differentiable]
            self.lifted = self.lifted or bool(smooth)
            smooth = smooth if primitive.vjp is not None else [y.key for y in results]
        self.tracked.update(smooth)
        if smooth and primitive.differentiable:
            self.records.append(Record(primitive, inputs, params, outputs))

    @property
    def bare(self) -> bool:
        """True if rules may run on bare arrays: no interpreter is there to see what they compute."""
        return current() is BOTTOM and not self.lifted

    def planned(self, targets: Sequence[Any], sources: Sequence[Any]) -> list[Any] | None:
        """The cotangents of sources, Tensors or None, for seeds of ones; None if the sweep has no plan."""
        plan = find_hook("planned_gradients")
        return None if plan is None else plan(self.records, targets, sources, self.tracked)

    def gradients(
        self, seeds: dict[int, Any], sources: Iterable[int], bare: bool, refused: list[tuple[Record, int]] | None = None
    ) -> dict[int, Any]:
        """The cotangents of sources, by key, for the seeds of targets; see `backward.sweep`."""
        # An operand without a watch may be in a Record beside one that is watched; it gets no gradient.
        known = [key for key in sources if key in self.tracked or key in seeds]
        with np.errstate(all="ignore"):
            return sweep(self.records, seeds, known, bare, refused)
