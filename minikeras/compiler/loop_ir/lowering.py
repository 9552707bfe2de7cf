"""From an instruction to nests of which no two points write the same element, for targets that run many points at once."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ...core import Record
from ...core import operations as o
from ..ir import Slot, outputs_of, slots_in, slots_of
from ..loops import Code, elementwise_body, loop_of_parts
from ..passes.device import add_rows_of_windows, windows_as_rows
from ..variable_storage import flatten, part
from . import draws, indexed, moves
from .expression import DTYPES, NoNest
from .groups import group, group_nests
from .reaching import Windowed
from .reductions import (
    Reduced,
    arg_nest,
    body_values,
    copy_body,
    is_float,
    logsumexp_nest,
    loop_nest,
    parts_nests,
    reduction_nests,
    reduction_of,
    wide,
)
from .strided import Access, Launch, contiguous, spread

LONGEST_SORT = 1 << 14
"""Elements of a line that is sorted by comparing all pairs."""

Rule = Callable[[Record], Sequence[Launch] | None]


class Lowering(Windowed):
    """The nests of a program's instructions, for a target."""

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

    @functools.cached_property
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
            **{o.max_pool: self.pool, o.window_sum: self.pool, o.pick_from_window: self.pool},
            **{o.first_largest_in_window: self.first_largest, o.put_into_window: self.unpool},
            **{o.window_spread: self.unpool, o.convolve: self.convolve, o.spread_windows: self.convolve},
            **{o.correlate_windows: self.correlate, windows_as_rows: self.windows_as_rows},
            add_rows_of_windows: self.add_rows_of_windows,
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


def _short(rule: Rule) -> Rule:
    """A rule for lines that are short enough to compare all pairs."""

    def lower(record: Record) -> Sequence[Launch] | None:
        return rule(record) if record.inputs[0].shape[record.params["axis"]] <= LONGEST_SORT else None

    return lower
