"""Windows element by element: each result folds the elements under its window, or those that reach it; no two points write one.

Convolutions here have groups or leading axes; elsewhere they are products of matrices, whose factors are made here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...core import Record, operations
from ..ir import Slot
from .expression import Axis, Expr, apply, cast, constant, converted, register, where
from .moves import Names, element_nest, whole
from .nest import Fold, For, Statement, Store
from .pools import pooled
from .reductions import Pieces, Reduced, Values, neutral, reduction_nests, reduction_of, wide
from .strided import Launch, NestWriter, Shape, Temporary, contiguous, coordinates, place
from .windows import Windows, windows_of

POOLS = {operations.max_pool: "maximum", operations.window_sum: "add", operations.pick_from_window: "pick"}


class Windowed:
    """Nests over windows, for a target.

    Args:
        temporary: makes slots for intermediate values between two nests.
        pieces: gives the number of pieces into which the target wants to cut long sums.
    """

    def __init__(self, temporary: Temporary, pieces: Pieces) -> None:
        self._temporary, self._pieces = temporary, pieces

    def _folded(
        self, name: str, y: Slot, folded: Shape, value: Callable[[NestWriter, Names, Names], Expr], how: str = "sum"
    ) -> list[Launch]:
        reduction = reduction_of(how, wide(y.dtype), 0, y.dtype)
        values: Values = lambda writer, names, inside: ([value(writer, names, inside)], [])
        return reduction_nests(name, y.shape, folded, values, [Reduced(0, reduction, y)], self._temporary, self._pieces)

    # Pools ------------------------------------------------------------------------------------------------------------------

    def pool(self, record: Record) -> list[Launch]:
        """The sum of each window, its chosen element, or its largest one; padding adds nothing."""
        x, y, op = record.inputs[0], record.outputs, POOLS[record.primitive]
        w = windows_of(record, record.params["window"], x.shape, y.shape)

        def value(writer: NestWriter, names: Names, inside: Names) -> Expr:
            array, *chosen = map(writer.array, record.inputs)
            return pooled(w, op, array, _images(w, y, names), inside, *chosen)

        return self._folded(record.primitive.name, y, w.window, value, "max" if op == "maximum" else "sum")

    def first_largest(self, record: Record) -> list[Launch]:
        """The number of the first largest element of each window; NaN is larger than none, and none is larger than NaN."""
        x, y = record.inputs[0], record.outputs
        w = windows_of(record, record.params["window"], x.shape, y.shape)
        writer, i, dtype = NestWriter(), Axis(math.prod(y.shape)), wide(x.dtype)
        names, t = _images(w, y, coordinates(i, y.shape)), Axis(w.taps, "sequential")
        own = cast(pooled(w, "first", writer.array(x), names, coordinates(t, w.window)), dtype)
        peak, first = register(dtype), register(y.dtype)
        larger = apply("equal", t, 0) | (peak < own)
        body: list[Statement] = [
            Fold(peak, "set", constant(neutral("maximum", dtype), dtype)),
            Fold(first, "set", constant(0, y.dtype)),
            For(t, [Fold(peak, "set", where(larger, own, peak)), Fold(first, "set", where(larger, cast(t, y.dtype), first))]),
            Store(writer.result(y), i, first),
        ]
        return [writer.lowered("first_largest_in_window", For(i, body))]

    def unpool(self, record: Record) -> list[Launch]:
        """Each element gets the sum of the windows over it, or of those that chose it."""
        g, y = record.inputs[0], record.outputs
        w = windows_of(record, record.params["window"], y.shape, g.shape)

        def value(writer: NestWriter, names: Names, inside: Names) -> Expr:
            array, *chosen = map(writer.array, record.inputs)
            own = w.reached(array, _images(w, y, names), inside, [w.channels])
            for one in chosen:
                picked = w.reached(one, _images(w, y, names), inside, [w.channels])
                own = where(apply("equal", picked, w.number(inside, one.dtype)), own, 0)
            return own

        return self._folded(record.primitive.name, y, w.window, value)

    # Convolutions -------------------------------------------------------------------------------------------------------------

    def convolve(self, record: Record) -> list[Launch] | None:
        """A sum over a window and a group's channels; of the transpose by the array each element sums the terms reaching it."""
        (x, kernel), y, groups = record.inputs, record.outputs, record.params["groups"]
        if not _are_plain(record, x, kernel):
            return None
        spreads = record.primitive is operations.spread_windows
        w = windows_of(record, kernel.shape[:-2], *((y.shape, x.shape) if spreads else (x.shape, y.shape)))
        inner, outputs = kernel.shape[-2], kernel.shape[-1] // groups
        own, given = (inner, outputs) if spreads else (outputs, inner)

        def value(writer: NestWriter, names: Names, inside: Names) -> Expr:
            channel = names[-1] // own * given + inside[-1] if groups > 1 else inside[-1]
            pair = [names[-1] % inner, channel] if spreads else [inside[-1], names[-1]]
            factor = whole(writer, kernel, [*inside[:-1], *pair])
            at, taps, array = [*names[:-1], channel], inside[:-1], writer.array(x)
            return _product(w.reached(array, at, taps, x.shape[-1:]) if spreads else w.element(array, at, taps), factor, y)

        return self._folded(record.primitive.name, y, (*w.window, given), value)

    def correlate(self, record: Record) -> list[Launch] | None:
        """The transpose by the kernel: a sum over all places."""
        (x, g), y, groups = record.inputs, record.outputs, record.params["groups"]
        if not _are_plain(record, x, g):
            return None
        w = windows_of(record, record.params["window"], x.shape, g.shape)
        inner, outputs = x.shape[-1] // groups, g.shape[-1] // groups

        def value(writer: NestWriter, names: Names, inside: Names) -> Expr:
            channel = names[-1] // outputs * inner + names[-2] if groups > 1 else names[-2]
            factor = whole(writer, g, [*inside, names[-1]])
            return _product(w.element(writer.array(x), [*inside, channel], names[:-2]), factor, y)

        return self._folded("correlate_windows", y, tuple(g.shape[:-1]), value)

    # Convolutions as products -------------------------------------------------------------------------------------------------

    def windows_as_rows(self, record: Record) -> list[Launch]:
        """The elements under a window in all places, as rows of a matrix."""
        x, y, params = record.inputs[0], record.outputs, record.params
        w, rank = windows_of(record, params["window"], x.shape, (*params["count"], 1)), len(params["window"])

        def value(writer: NestWriter, names: Names) -> Expr:
            return w.element(writer.array(x), [*names[: rank + 1], names[-1]], names[rank + 1 : -1])

        return [element_nest("windows", y, value, (x.shape[0], *params["count"], *params["window"], x.shape[-1]))]

    def add_rows_of_windows(self, record: Record) -> list[Launch]:
        """The transpose: each element is the sum over the windows that read it."""
        rows, y, params = record.inputs[0], record.outputs, record.params
        w = windows_of(record, params["window"], y.shape, (*params["count"], 1))

        def value(writer: NestWriter, names: Names, inside: Names) -> Expr:
            return w.reached(writer.array(rows), [*names[:-1], *inside, names[-1]], inside, [*w.window, y.shape[-1]])

        return self._folded("add_windows", y, w.window, value)


def _images(w: Windows, y: Slot, names: Names) -> Names:
    """The coordinates of an element, those along all axes before the windows' as one."""
    rank = len(w.window) + 1
    return [place(contiguous(y.shape[:-rank]), names[:-rank]), *names[-rank:]]


def _are_plain(record: Record, *operands: Slot) -> bool:
    """True if arrays have no leading axes but that of the batch."""
    return all(len(x.shape) == len(record.params["strides"]) + 2 for x in operands)


def _product(a: Expr, b: Expr, y: Slot) -> Expr:
    dtype = wide(y.dtype)
    return converted(a, dtype) * converted(b, dtype)
