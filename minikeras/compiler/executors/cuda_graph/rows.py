"""Softmax and the losses made of it, a row for each group of threads: each element is read twice, nothing lies between."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core import Record
from ....core.registry import operations
from ...ir import Slot
from .functions import cast, computed
from .fusion import loss_and_gradient
from .kernels import Fold, Group, Source, begin_groups, contiguous, fold_lanes, fold_of, integer, place, spread, wide
from .moves import checked_index
from .nodes import Kernel


class Softmax:
    """Rows of logits, written in two passes: the largest element and the sum of exponentials, then the results."""

    def __init__(self, logits: Slot, axis: int) -> None:
        self.logits = logits
        self.dtype = wide(logits.dtype)
        self.lead, self.behind = math.prod(logits.shape[:axis]), math.prod(logits.shape[axis + 1 :])
        self.length = logits.shape[axis]
        self.count = self.lead * self.behind
        self.group = Group.of(self.count, self.length, self.behind == 1)
        self.source = Source()
        self.kind = integer(self.count * self.length)
        self.type = computed(self.dtype)

    def place(self, names: list[str], k: str) -> str:
        """Where an element of a row lies."""
        return place(0, (self.length * self.behind, self.behind, 1), (names[0], k, names[1]))

    def begin(self) -> list[str]:
        """The first pass; `peak` and `total` are known to all threads of a row afterwards."""
        source, fold = self.source, fold_of("logsumexp", self.logits.dtype)
        begin_groups(source, self.group, self.kind)
        names = source.coordinates("o", (self.lead, self.behind), "o", self.kind)
        source.do(f"{fold.type} s = {fold.start};", f"if (o < {self.count}) {{")
        self.each()
        element = fold.element.format(self.logit(names))
        source.do(f"s = {fold.combine.format('s', element)};", "}", "}")
        fold_lanes(source, [("s", fold)], self.group, everywhere=True)
        # An infinite or missing number makes all of its row NaN, as it does where the largest is subtracted first.
        source.do(f"const {self.type} peak = s.peak, total = s.sum + (s.peak - s.peak);")
        return names

    def each(self) -> None:
        """Begin a loop over the elements of a row."""
        self.source.do(f"for ({self.kind} k = lane; k < {self.length}; k += {self.group.lanes}) {{")

    def logit(self, names: list[str]) -> str:
        """The expression of an element of the row."""
        return self.source.load(self.logits, self.place(names, "k"))

    def write_rows(self, y: Slot, names: list[str], value: str) -> Kernel:
        """A second pass that writes each element, `value` of its logit `x`."""
        self.source.do(f"if (o < {self.count}) {{")
        self.each()
        self.source.do(f"const {self.type} x = {self.logit(names)};")
        self.source.store(y, self.place(names, "k"), cast(f"({value})", None, y.dtype))
        self.source.do("}", "}")
        return self.kernel()

    def kernel(self) -> Kernel:
        """The finished function."""
        return self.source.kernel("softmax", self.group.blocks, self.group.threads)


def softmax_kernel(record: Record) -> list[Kernel] | None:
    """What carries out softmax, its logarithm, or the cross-entropy of logits."""
    primitive, y = record.primitive, record.outputs
    if not all(isinstance(x, Slot) and 0 not in x.shape for x in record.inputs):
        return None
    logits = record.inputs[1 if primitive is loss_and_gradient else -1]
    if primitive in (operations.softmax, operations.log_softmax):
        rows = Softmax(logits, record.params["axis"] % len(logits.shape))
        names = rows.begin()
        logs = primitive is operations.log_softmax
        return [rows.write_rows(y, names, "x - peak - logarithm(total)" if logs else "exponential(x - peak) / total")]
    labels, rows = record.inputs[0], Softmax(logits, len(logits.shape) - 1)
    if primitive is operations.softmax_cross_entropy:
        return _cross_entropy(rows, labels, y) if labels.shape == logits.shape else None
    if labels.dtype.kind not in "iu" or np.broadcast_shapes(labels.shape, logits.shape[:-1]) != logits.shape[:-1]:
        return None
    if primitive is loss_and_gradient:
        return _sparse(rows, labels, *y, *record.inputs[2:])
    if primitive is operations.sparse_softmax_cross_entropy_grad:
        return _sparse(rows, labels, None, y)
    return _sparse(rows, labels, y, None)


def _cross_entropy(rows: Softmax, labels: Slot, y: Slot) -> list[Kernel]:
    """-sum of labels times logarithms; a label of zero adds nothing."""
    source, names = rows.source, rows.begin()
    fold: Fold = fold_of("sum", rows.dtype)
    source.do(f"{fold.type} loss = 0;", f"if (o < {rows.count}) {{")
    rows.each()
    source.do(f"const {computed(labels.dtype)} label = {source.load(labels, rows.place(names, 'k'))};")
    source.do(f"if (label != 0) loss = loss + label * ({rows.logit(names)} - peak - logarithm(total));", "}", "}")
    fold_lanes(source, [("loss", fold)], rows.group)
    source.do(f"if (lane == 0 && o < {rows.count}) {{")
    source.store(y, "o", cast("(0 - loss)", None, y.dtype))
    source.do("}")
    return [rows.kernel()]


def _sparse(
    rows: Softmax, labels: Slot, losses: Slot | None, gradients: Slot | None, factor: Slot | None = None
) -> list[Kernel]:
    """log(sum) - the label's logit; and its derivative, softmax less one at the label, times the row's factor."""
    source, names = rows.source, rows.begin()
    shape = rows.logits.shape[:-1]
    source.do(f"if (o < {rows.count}) {{")
    coordinates: Any = source.coordinates("o", shape, "b", rows.kind)
    where = place(0, spread(labels, shape).strides, coordinates)
    checked_index(source, "at", source.load(labels, where), rows.length)
    if losses is not None:
        value = f"(logarithm(total) - ({source.load(rows.logits, rows.place(names, 'at'))} - peak))"
        source.do("if (lane == 0) {")
        source.store(losses, place(0, contiguous(shape), coordinates), cast(value, None, losses.dtype))
        source.do("}")
    if gradients is not None:
        value = f"(exponential({rows.logit(names)} - peak) / total - (k == at ? 1 : 0))"
        if factor is not None:
            own = place(0, spread(Slot(factor.key, factor.shape[:-1], factor.dtype), shape).strides, coordinates)
            source.do(f"const {computed(factor.dtype)} factor = {source.load(factor, own)};")
            value = f"{cast(value, None, gradients.dtype)} * factor"
        rows.each()
        source.store(gradients, rows.place(names, "k"), cast(value, None, gradients.dtype))
        source.do("}")
    source.do("}")
    return [rows.kernel()]
