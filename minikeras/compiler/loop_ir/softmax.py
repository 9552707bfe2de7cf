"""Softmax and the losses made of it, row by row: the largest element, the sum of exponentials, then the results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import Record
from ...core.registry import operations
from ...types import Array as NumPyArray
from ..ir import Slot, instruction
from .bodies import constant, converted
from .expression import INDEX, TRUTH, Axis, Expr, all_of, cast, where
from .nest import For, Statement, Store
from .reductions import folded_over, wide
from .strided import Launch, NestWriter, coordinates, place, spread


@instruction()
def loss_and_gradient(xp: Any, labels: NumPyArray, logits: NumPyArray, *factor: NumPyArray) -> tuple[NumPyArray, NumPyArray]:
    """The cross-entropy of rows of logits, and its derivative: softmax less one at the label, perhaps times a row's factor."""
    both = operations.sparse_softmax_cross_entropy, operations.sparse_softmax_cross_entropy_grad
    loss, gradient = [primitive.kernel(xp)(labels, logits) for primitive in both]
    return loss, gradient * factor[0] if factor else gradient


def checked(number: Expr, size: int) -> Expr:
    """An index within an axis; a negative one counts from its end, one beyond it becomes 0."""
    number = cast(number, INDEX)
    at = where(number < 0, number + size, number)
    return where(all_of([at >= 0, at < size]), at, 0)


class _Rows:
    """Rows of logits along an axis: the common part of all nests with a softmax.

    An infinite number or NaN makes all of its row NaN, as it does where the largest is subtracted first.
    """

    def __init__(self, logits: Slot, axis: int) -> None:
        self.logits, self.dtype = logits, wide(logits.dtype)
        self.lead, self.behind = math.prod(logits.shape[:axis]), math.prod(logits.shape[axis + 1 :])
        self.length = logits.shape[axis]
        self.writer, self.o = NestWriter(), Axis(self.lead * self.behind)
        self.names = coordinates(self.o, (self.lead, self.behind))
        j, k = [Axis(self.length, "reduced") for _ in range(2)]
        self.peak, first = folded_over(j, "maximum", self.logit(j))
        self.total, second = folded_over(k, "add", Expr("exp", (self.logit(k) - self.peak,), self.dtype))
        self.body: list[Statement] = [*first, *second]

    def place(self, k: Expr) -> Expr:
        """The place of an element of a row."""
        return place((self.length * self.behind, self.behind, 1), (self.names[0], k, self.names[1]))

    def logit(self, k: Expr) -> Expr:
        """An element of a row."""
        return cast(self.writer.array(self.logits)[self.place(k)], self.dtype)

    def log(self) -> Expr:
        """The logarithm of the sum."""
        return Expr("log", (self.total,), self.dtype)

    def share(self, k: Expr) -> Expr:
        """The softmax of an element."""
        return Expr("exp", (self.logit(k) - self.peak,), self.dtype) / self.total

    def write(self, y: Slot, at: Expr, value: Expr) -> Store:
        """A result."""
        return Store(self.writer.result(y), at, converted(value, y.dtype))

    def lowered(self) -> list[Launch]:
        """The finished nest."""
        return [self.writer.lowered("softmax", For(self.o, self.body))]


def softmax_nests(record: Record) -> list[Launch] | None:
    """The nests of softmax, its logarithm, or the cross-entropy of logits; None if labels do not fit the logits."""
    primitive, y = record.primitive, record.outputs
    if not all(isinstance(x, Slot) and 0 not in x.shape for x in record.inputs):
        return None
    logits = record.inputs[1 if primitive is loss_and_gradient else -1]
    if primitive in (operations.softmax, operations.log_softmax):
        rows, k = _Rows(logits, record.params["axis"] % len(logits.shape)), Axis(logits.shape[record.params["axis"]])
        value = rows.share(k) if primitive is operations.softmax else rows.logit(k) - rows.peak - rows.log()
        rows.body.append(For(k, [rows.write(y, rows.place(k), value)]))
        return rows.lowered()
    labels = record.inputs[0]
    if primitive is operations.softmax_cross_entropy:
        return _cross_entropy(logits, labels, y) if labels.shape == logits.shape else None
    if labels.dtype.kind not in "iu" or np.broadcast_shapes(labels.shape, logits.shape[:-1]) != logits.shape[:-1]:
        return None
    if primitive is loss_and_gradient:
        return _sparse(logits, labels, *y, *record.inputs[2:])
    both = (None, y) if primitive is operations.sparse_softmax_cross_entropy_grad else (y, None)
    return _sparse(logits, labels, *both)


def _cross_entropy(logits: Slot, labels: Slot, y: Slot) -> list[Launch]:
    """-sum of labels times logarithms; a label of zero adds nothing."""
    rows, k = _Rows(logits, len(logits.shape) - 1), Axis(logits.shape[-1], "reduced")
    label = converted(rows.writer.array(labels)[rows.place(k)], rows.dtype)
    term = label * (rows.logit(k) - rows.peak - rows.log())
    there = Expr("not_equal", (label, constant(0, rows.dtype)), TRUTH)
    loss, statements = folded_over(k, "add", where(there, term, 0.0))
    rows.body += [*statements, rows.write(y, rows.o, 0.0 - loss)]
    return rows.lowered()


def _sparse(
    logits: Slot, labels: Slot, losses: Slot | None, gradients: Slot | None, factor: Slot | None = None
) -> list[Launch]:
    """log(sum) - the label's logit; and its derivative, softmax less one at the label, times the row's factor."""
    shape = logits.shape[:-1]
    rows, k = _Rows(logits, len(shape)), Axis(logits.shape[-1])
    names = coordinates(rows.o, shape)
    label = checked(rows.writer.load(spread(labels, shape), names), rows.length)
    if losses is not None:
        rows.body.append(rows.write(losses, rows.o, rows.log() - (rows.logit(label) - rows.peak)))
    if gradients is not None:
        value = rows.share(k) - where(Expr("equal", (k, label), TRUTH), constant(1, rows.dtype), 0.0)
        if factor is not None:
            own = spread(Slot(factor.key, factor.shape[:-1], factor.dtype), shape)
            load = rows.writer.array(factor)[place(own.strides, names)]
            value = converted(converted(value, gradients.dtype), load.dtype) * load
        rows.body.append(For(k, [rows.write(gradients, rows.place(k), value)]))
    return rows.lowered()
