"""Windows element by element: each result folds the elements under its window, or those that reach it; no two points write one.

Convolutions here have groups or leading axes; elsewhere they are products of matrices, whose factors are made here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core import Record
from ...core.registry import operations
from ..ir import Slot
from .bodies import constant, converted
from .expression import Axis, Expr, all_of, apply, cast, register, where
from .moves import Names, element_nest, whole
from .nest import Fold, For, Statement, Store
from .reductions import Pieces, Reduced, Values, neutral, reduction_nests, reduction_of, wide
from .strided import Launch, NestWriter, Shape, Temporary, contiguous, coordinates, place
from .windows import Windows, windows_of


def _there(writer: NestWriter, x: Slot, exists: Expr, names: Names, missing: Any) -> Expr:
    """An element of an array, read only if it exists, else a number."""
    return writer.array(x).where(exists, place(contiguous(x.shape), names), constant(missing, x.dtype))


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
        x, y, largest = record.inputs[0], record.outputs, record.primitive is operations.max_pool
        w = windows_of(record, record.params["window"], x.shape, y.shape)
        rank, dtype = len(w.window), x.dtype
        picks = record.primitive is operations.pick_from_window

        def value(writer: NestWriter, names: Names, inside: Names) -> Expr:
            exists, at = w.under_all(names[-rank - 1 : -1], inside)
            if picks:
                chosen = whole(writer, record.inputs[1], names)
                exists = all_of([exists, _is_tap(chosen, w, inside)])
            return _there(writer, x, exists, [*names[: -rank - 1], *at, names[-1]], neutral("maximum", dtype) if largest else 0)

        return self._folded(record.primitive.name, y, w.window, value, "max" if largest else "sum")

    def first_largest(self, record: Record) -> list[Launch]:
        """The number of the first largest element of each window; NaN is larger than none, and none is larger than NaN."""
        x, y = record.inputs[0], record.outputs
        w = windows_of(record, record.params["window"], x.shape, y.shape)
        rank, dtype = len(w.window), wide(x.dtype)
        writer, i = NestWriter(), Axis(math.prod(y.shape))
        names, t = coordinates(i, y.shape), Axis(w.taps, "sequential")
        exists, at = w.under_all(names[-rank - 1 : -1], coordinates(t, w.window))
        own = cast(_there(writer, x, exists, [*names[: -rank - 1], *at, names[-1]], neutral("maximum", x.dtype)), dtype)
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
        rank = len(w.window)

        def value(writer: NestWriter, names: Names, inside: Names) -> Expr:
            exists, at = w.reaching(names[-rank - 1 : -1], inside)
            own = [*names[: -rank - 1], *at, names[-1]]
            if record.primitive is operations.put_into_window:
                chosen = record.inputs[1]
                given = writer.array(chosen)[where(exists, place(contiguous(g.shape), own), 0)]
                exists = all_of([exists, _is_tap(given, w, inside)])
            return _there(writer, g, exists, own, 0)

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
        (own, given), find = ((inner, outputs), w.reaching) if spreads else ((outputs, inner), w.under_all)

        def value(writer: NestWriter, names: Names, inside: Names) -> Expr:
            exists, at = find(names[1:-1], inside[:-1])
            channel = names[-1] // own * given + inside[-1] if groups > 1 else inside[-1]
            pair = [names[-1] % inner, channel] if spreads else [inside[-1], names[-1]]
            factor = whole(writer, kernel, [*inside[:-1], *pair])
            return _product(_there(writer, x, exists, [names[0], *at, channel], 0), factor, y)

        return self._folded(record.primitive.name, y, (*w.window, given), value)

    def correlate(self, record: Record) -> list[Launch] | None:
        """The transpose by the kernel: a sum over all places."""
        (x, g), y, groups = record.inputs, record.outputs, record.params["groups"]
        if not _are_plain(record, x, g):
            return None
        w = windows_of(record, record.params["window"], x.shape, g.shape)
        inner, outputs = x.shape[-1] // groups, g.shape[-1] // groups

        def value(writer: NestWriter, names: Names, inside: Names) -> Expr:
            exists, at = w.under_all(inside[1:], names[:-2])
            channel = names[-1] // outputs * inner + names[-2] if groups > 1 else names[-2]
            factor = whole(writer, g, [*inside, names[-1]])
            return _product(_there(writer, x, exists, [inside[0], *at, channel], 0), factor, y)

        return self._folded("correlate_windows", y, tuple(g.shape[:-1]), value)

    # Convolutions as products -------------------------------------------------------------------------------------------------

    def windows_as_rows(self, record: Record) -> list[Launch]:
        """The elements under a window in all places, as rows of a matrix."""
        x, y, params = record.inputs[0], record.outputs, record.params
        w, rank = windows_of(record, params["window"], x.shape, (*params["count"], 1)), len(params["window"])

        def value(writer: NestWriter, names: Names) -> Expr:
            exists, at = w.under_all(names[1 : rank + 1], names[rank + 1 : -1])
            return _there(writer, x, exists, [names[0], *at, names[-1]], 0)

        return [element_nest("windows", y, value, (x.shape[0], *params["count"], *params["window"], x.shape[-1]))]

    def add_rows_of_windows(self, record: Record) -> list[Launch]:
        """The transpose: each element is the sum over the windows that read it."""
        rows, y, params = record.inputs[0], record.outputs, record.params
        w = windows_of(record, params["window"], y.shape, (*params["count"], 1))
        x = Slot(rows.key, (y.shape[0], *params["count"], *params["window"], y.shape[-1]), rows.dtype)

        def value(writer: NestWriter, names: Names, inside: Names) -> Expr:
            exists, at = w.reaching(names[1:-1], inside)
            return _there(writer, x, exists, [names[0], *at, *inside, names[-1]], 0)

        nests = self._folded("add_windows", y, w.window, value)
        return [one._replace(operands=tuple([rows if x.key == rows.key else x for x in one.operands])) for one in nests]


def _is_tap(chosen: Expr, w: Windows, inside: Names) -> Expr:
    """True where an element of the window is the chosen one."""
    return apply("equal", chosen, cast(place(contiguous(w.window), inside), chosen.dtype))


def _are_plain(record: Record, *operands: Slot) -> bool:
    """True if arrays have no leading axes but that of the batch."""
    return all(len(x.shape) == len(record.params["strides"]) + 2 for x in operands)


def _product(a: Expr, b: Expr, y: Slot) -> Expr:
    dtype = wide(y.dtype)
    return converted(a, dtype) * converted(b, dtype)
