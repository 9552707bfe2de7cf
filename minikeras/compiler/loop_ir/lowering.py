"""From an instruction to nests of which no two points write the same element, for targets that run many points at once.

Each result over windows folds the elements under its window, or those that reach it. Convolutions here have groups or leading
axes; elsewhere they are products of matrices, whose factors are made here.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ...core import Record, cached_property
from ...core import operations as o
from ..ir import Slot, outputs_of, slots_in, slots_of
from ..loops import Code, elementwise_body, loop_of_parts
from ..passes.device import add_rows_of_windows, windows_as_rows
from ..variable_storage import flatten, part
from . import draws, indexed, moves
from .expression import DTYPES, Axis, Expr, NoNest, apply, cast, constant, converted, register, where
from .groups import group, group_nests
from .nest import Fold, For, Statement, Store
from .pools import pooled
from .reductions import (
    Pieces,
    Reduced,
    Values,
    arg_nest,
    body_values,
    copy_body,
    is_float,
    logsumexp_nest,
    loop_nest,
    neutral,
    parts_nests,
    reduction_nests,
    reduction_of,
    wide,
)
from .strided import Access, Launch, NestWriter, Shape, Temporary, contiguous, coordinates, place, spread
from .windows import Windows, windows_of

_POOLS = {o.max_pool: "maximum", o.window_sum: "add", o.pick_from_window: "pick"}
LONGEST_SORT = 1 << 14
"""Elements of a line that is sorted by comparing all pairs."""

Rule = Callable[[Record], Sequence[Launch] | None]


class Lowering:
    """The nests of a program's instructions, for a target.

    Args:
        temporary: makes slots for intermediate values between two nests.
        pieces: gives the number of pieces into which the target wants to cut long sums.
    """

    def __init__(self, temporary: Temporary, pieces: Pieces) -> None:
        self._temporary, self._pieces = temporary, pieces

    def nests(self, record: Record) -> Sequence[Launch] | None:
        """The nests of an instruction, in order: none if its results have no elements; None if there is no nest for it."""
        outputs = outputs_of(record)
        if not outputs or any(y.shape is None for y in outputs):
            return None
        if all(0 in y.shape for y in outputs):
            return []
        try:
            return self._rules.get(record.primitive, self._loop)(record)
        except NoNest:
            return None

    @cached_property
    def _rules(self) -> dict[Any, Rule]:
        """The rules by primitive; an instruction without one is a loop or has no nest."""
        folds = {f"reduce_{name}": name for name in ("sum", "mean", "max", "min", "prod", "any", "all", "logsumexp")}
        folds |= {"reduce_euclidean_norm": "euclid", "argmax": "argmax", "argmin": "argmin"}
        rules: dict[Any, Rule] = {
            **dict.fromkeys((o.reshape, o.transpose, o.broadcast_to, o.strided_slice, part), moves.view),
            **dict.fromkeys((o.real, o.conj), moves.real),
            **dict.fromkeys((o.concat, o.stack_along, o.pad, o.put_slice), moves.placed),
            **{flatten: moves.flatten, o.tile: moves.tile, o.roll: moves.roll, o.triangle: moves.triangle},
            **{o.identity_like: moves.identity_like, o.searchsorted: moves.searchsorted},
            **{o.cumsum: moves.scan("add", 0), o.cumprod: moves.scan("multiply", 1)},
            o.running_logsumexp: moves.scan("logaddexp", -math.inf),
            **{o.argsort: _short(moves.rank(True)), o.sort: _short(moves.rank(False))},
            **dict.fromkeys((o.gather_rows, o.look_up), indexed.gather),
            **dict.fromkeys((o.add_rows, o.segment_max, o.segment_min, o.segment_prod), indexed.scatter_rows),
            **{o.take_along: indexed.take_along, o.add_along: indexed.add_along},
            **{o.gather_nd: indexed.gather_nd, o.scatter_nd: indexed.scatter_nd, o.overwrite_nd: indexed.scatter_nd},
            **{loop_of_parts: lambda record: parts_nests(record, self._temporary)},
            group: lambda record: group_nests(record, self._temporary, self._pieces),
            **{o.einsum: self._einsum, o.matrix_product: self._matrix_product, o.power: self._power},
            **{o.max_pool: self._pool, o.window_sum: self._pool, o.pick_from_window: self._pool},
            **{o.first_largest_in_window: self._first_largest, o.put_into_window: self._unpool},
            **{o.window_spread: self._unpool, o.convolve: self._convolve, o.spread_windows: self._convolve},
            **{o.correlate_windows: self._correlate, windows_as_rows: self._windows_as_rows},
            add_rows_of_windows: self._add_rows_of_windows,
            **{o.next_key: draws.next_key, o.operation_key: draws.next_key, o.random_integers: draws.random_integers},
            **{o.dropout_mask: draws.dropout_mask, o.times_dropout_mask: draws.times_dropout_mask},
            **{o.times_gaussian: draws.times_gaussian, o.random_uniform: draws.random_uniform},
            **{o.random_normal: draws.random_normal, o.random_truncated_normal: draws.random_truncated_normal},
        }
        return rules | {getattr(o, name): self._reduction(fold) for name, fold in folds.items()}

    # Loops ------------------------------------------------------------------------------------------------------------------

    def _loop(self, record: Record) -> list[Launch] | None:
        shape, body = elementwise_body(record, DTYPES)
        if body is None:
            return None
        accesses = [spread(x, shape) for x in slots_in(record.inputs)]
        return [loop_nest(record.primitive.name, shape, body, accesses, outputs_of(record))]

    def _power(self, record: Record) -> list[Launch] | None:
        """A loop; where the kernel cannot be traced, of the function `power` for floats."""
        y, found = record.outputs, self._loop(record)
        if found is not None:
            return found
        if not all(is_float(x.dtype) for x in slots_of(record)) or any(x.shape is None for x in slots_of(record)):
            return None
        code = Code([x.dtype for x in slots_in(record.inputs)])
        elements = iter(code.elements())
        operands = [next(elements) if isinstance(x, Slot) else x for x in record.inputs]
        body = code.body([code.apply("power", *operands)])
        return [loop_nest("power", y.shape, body, [spread(x, y.shape) for x in slots_in(record.inputs)], [y])]

    # Reductions -------------------------------------------------------------------------------------------------------------

    def _reduction(self, name: str) -> Rule:
        def lower(record: Record) -> list[Launch] | None:
            x, y = record.inputs[0], record.outputs
            given = record.params["axes"] if "axes" in record.params else (record.params["axis"],)
            axes = range(len(x.shape)) if given is None else sorted(axis % len(x.shape) for axis in given)
            return self._reduced(name, x, list(axes), y) if isinstance(x, Slot) else None

        return lower

    def _reduced(self, name: str, x: Slot, axes: Sequence[int], y: Slot) -> list[Launch]:
        """A slot reduced over some of its axes."""
        kept, own = [axis for axis in range(len(x.shape)) if axis not in axes], contiguous(x.shape)
        access = Access(x, 0, tuple([own[axis] for axis in (*kept, *axes)]))
        outer, inner = [tuple([x.shape[axis] for axis in some]) for some in (kept, axes)]
        if name.startswith("arg"):
            (axis,) = axes
            return [arg_nest(name, x, (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])), y)]
        if name == "logsumexp":
            return [logsumexp_nest(x, outer, inner, access, y)]
        reduction = reduction_of(name, x.dtype, math.prod(inner), y.dtype)
        values = body_values(outer, inner, copy_body(x.dtype, x.dtype), [access])
        return reduction_nests(name, *values, [Reduced(0, reduction, y)], self._temporary, self._pieces)

    def _folded(
        self, name: str, y: Slot, folded: Shape, value: Callable[[NestWriter, moves.Names, moves.Names], Expr], how: str = "sum"
    ) -> list[Launch]:
        reduction = reduction_of(how, wide(y.dtype), 0, y.dtype)
        values: Values = lambda writer, names, inside: ([value(writer, names, inside)], [])
        return reduction_nests(name, y.shape, folded, values, [Reduced(0, reduction, y)], self._temporary, self._pieces)

    # Products ---------------------------------------------------------------------------------------------------------------

    def _einsum(self, record: Record) -> list[Launch]:
        """The sum of products over the labels that the result does not have."""
        return self._contracted("einsum", record.inputs, record.outputs, **record.params)

    def _matrix_product(self, record: Record) -> list[Launch] | None:
        """A nest for small products, and where there is no library."""
        factors = record.inputs[:2]
        ranks = [len(x.shape) for x in factors]
        return self._contracted("product", factors, record.outputs, ("ij", "jk"), "ik") if min(ranks) > 1 else None

    def _contracted(self, name: str, xs: Sequence[Slot], y: Slot, terms: Sequence[str], result: str) -> list[Launch]:
        lead = max(len(x.shape) - len(term) for x, term in zip(xs, terms, strict=True))
        labels = [chr(0x3B1 + number) for number in range(lead)]
        whole = [[*labels[lead - len(x.shape) + len(term) :], *term] for x, term in zip(xs, terms, strict=True)]
        sizes: dict[str, int] = {}
        for x, own in zip(xs, whole, strict=True):
            for label, size in zip(own, x.shape, strict=True):
                sizes[label] = max(size, sizes.get(label, 1)) if size else 0
        kept = [*labels, *result]
        folded = [label for label in sizes if label not in kept]
        accesses = []
        for x, own in zip(xs, whole, strict=True):
            strides = dict.fromkeys(sizes, 0)
            for label, size, stride in zip(own, x.shape, contiguous(x.shape), strict=True):
                strides[label] += stride if size > 1 else 0
            accesses.append(Access(x, 0, tuple([strides[label] for label in (*kept, *folded)])))
        shapes = tuple([sizes[label] for label in kept]), tuple([sizes[label] for label in folded])
        dtype = wide(y.dtype)
        code = Code([access.slot.dtype for access in accesses])
        product: Any = functools.reduce(operator.mul, [x.astype(dtype) for x in code.elements()])
        values = body_values(*shapes, code.body([product]), accesses)
        results = [Reduced(0, reduction_of("sum", dtype, 0, y.dtype), y)]
        return reduction_nests(name, *values, results, self._temporary, self._pieces)

    # Pools ------------------------------------------------------------------------------------------------------------------

    def _pool(self, record: Record) -> list[Launch]:
        """The sum of each window, its chosen element, or its largest one; padding adds nothing."""
        x, y, op = record.inputs[0], record.outputs, _POOLS[record.primitive]
        w = windows_of(record, record.params["window"], x.shape, y.shape)

        def value(writer: NestWriter, names: moves.Names, inside: moves.Names) -> Expr:
            array, *chosen = map(writer.array, record.inputs)
            return pooled(w, op, array, _images(w, y, names), inside, *chosen)

        return self._folded(record.primitive.name, y, w.window, value, "max" if op == "maximum" else "sum")

    def _first_largest(self, record: Record) -> list[Launch]:
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

    def _unpool(self, record: Record) -> list[Launch]:
        """Each element gets the sum of the windows over it, or of those that chose it."""
        g, y = record.inputs[0], record.outputs
        w = windows_of(record, record.params["window"], y.shape, g.shape)

        def value(writer: NestWriter, names: moves.Names, inside: moves.Names) -> Expr:
            array, *chosen = map(writer.array, record.inputs)
            own = w.reached(array, _images(w, y, names), inside, [w.channels])
            for one in chosen:
                picked = w.reached(one, _images(w, y, names), inside, [w.channels])
                own = where(apply("equal", picked, w.number(inside, one.dtype)), own, 0)
            return own

        return self._folded(record.primitive.name, y, w.window, value)

    # Convolutions -------------------------------------------------------------------------------------------------------------

    def _convolve(self, record: Record) -> list[Launch] | None:
        """A sum over a window and a group's channels; of the transpose by the array each element sums the terms reaching it."""
        (x, kernel), y, groups = record.inputs, record.outputs, record.params["groups"]
        if not _are_plain(record, x, kernel):
            return None
        spreads = record.primitive is o.spread_windows
        w = windows_of(record, kernel.shape[:-2], *((y.shape, x.shape) if spreads else (x.shape, y.shape)))
        inner, outputs = kernel.shape[-2], kernel.shape[-1] // groups
        own, given = (inner, outputs) if spreads else (outputs, inner)

        def value(writer: NestWriter, names: moves.Names, inside: moves.Names) -> Expr:
            channel = names[-1] // own * given + inside[-1] if groups > 1 else inside[-1]
            pair = [names[-1] % inner, channel] if spreads else [inside[-1], names[-1]]
            factor = moves.whole(writer, kernel, [*inside[:-1], *pair])
            at, taps, array = [*names[:-1], channel], inside[:-1], writer.array(x)
            return _product(w.reached(array, at, taps, x.shape[-1:]) if spreads else w.element(array, at, taps), factor, y)

        return self._folded(record.primitive.name, y, (*w.window, given), value)

    def _correlate(self, record: Record) -> list[Launch] | None:
        """The transpose by the kernel: a sum over all places."""
        (x, g), y, groups = record.inputs, record.outputs, record.params["groups"]
        if not _are_plain(record, x, g):
            return None
        w = windows_of(record, record.params["window"], x.shape, g.shape)
        inner, outputs = x.shape[-1] // groups, g.shape[-1] // groups

        def value(writer: NestWriter, names: moves.Names, inside: moves.Names) -> Expr:
            channel = names[-1] // outputs * inner + names[-2] if groups > 1 else names[-2]
            factor = moves.whole(writer, g, [*inside, names[-1]])
            return _product(w.element(writer.array(x), [*inside, channel], names[:-2]), factor, y)

        return self._folded("correlate_windows", y, tuple(g.shape[:-1]), value)

    # Convolutions as products -------------------------------------------------------------------------------------------------

    def _windows_as_rows(self, record: Record) -> list[Launch]:
        """The elements under a window in all places, as rows of a matrix."""
        x, y, params = record.inputs[0], record.outputs, record.params
        w, rank = windows_of(record, params["window"], x.shape, (*params["count"], 1)), len(params["window"])

        def value(writer: NestWriter, names: moves.Names) -> Expr:
            return w.element(writer.array(x), [*names[: rank + 1], names[-1]], names[rank + 1 : -1])

        return [moves.element_nest("windows", y, value, (x.shape[0], *params["count"], *params["window"], x.shape[-1]))]

    def _add_rows_of_windows(self, record: Record) -> list[Launch]:
        """The transpose: each element is the sum over the windows that read it."""
        rows, y, params = record.inputs[0], record.outputs, record.params
        w = windows_of(record, params["window"], y.shape, (*params["count"], 1))

        def value(writer: NestWriter, names: moves.Names, inside: moves.Names) -> Expr:
            return w.reached(writer.array(rows), [*names[:-1], *inside, names[-1]], inside, [*w.window, y.shape[-1]])

        return self._folded("add_windows", y, w.window, value)


def _images(w: Windows, y: Slot, names: moves.Names) -> moves.Names:
    """The coordinates of an element, those along all axes before the windows' as one."""
    rank = len(w.window) + 1
    return [place(contiguous(y.shape[:-rank]), names[:-rank]), *names[-rank:]]


def _are_plain(record: Record, *operands: Slot) -> bool:
    """True if arrays have no leading axes but that of the batch."""
    return all(len(x.shape) == len(record.params["strides"]) + 2 for x in operands)


def _product(a: Expr, b: Expr, y: Slot) -> Expr:
    dtype = wide(y.dtype)
    return converted(a, dtype) * converted(b, dtype)


def _short(rule: Rule) -> Rule:
    """A rule for lines that are short enough to compare all pairs."""

    def lower(record: Record) -> Sequence[Launch] | None:
        return rule(record) if record.inputs[0].shape[record.params["axis"]] <= LONGEST_SORT else None

    return lower
