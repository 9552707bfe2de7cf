"""From the instructions of a program to kernels; what has no kernel is left to other executors."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....core import Record
from ....core.registry import operations
from ....types import as_dtype
from ...ir import Slot, outputs_of, slots_in, slots_of
from ...loops import Code, elementwise_body, loop_of_parts
from ...passes.expansion import add_at, take_at
from ...planning.flat_variables import flatten, part
from . import draws, moves, windows
from .functions import DTYPES, NoKernel, cast, computed, is_float, is_known, literal
from .fusion import group, loss_and_gradient
from .groups import group_kernels, parts_kernels, softmax_kernel
from .kernels import (
    Access,
    Reduced,
    Shape,
    Source,
    body_values,
    contiguous,
    copy_body,
    fold_of,
    loop_kernel,
    place,
    reduction_kernels,
    spread,
)
from .moves import Piece, Rows, checked_index, element_kernel, placed_kernel, view_of
from .nodes import Kernel

MOST_ELEMENTS = 1 << 31
"""Of an array: places within it are numbers of 32 bits."""
LONGEST_SORT = 1 << 14
"""Elements of a line that is sorted by comparing all pairs."""


class Emitter:
    """Writes kernels for instructions.

    Args:
        keys: for new slots.
    """

    def __init__(self, keys: Iterator[int]) -> None:
        self._keys = keys

    def temporary(self, shape: Shape, dtype: Any) -> Slot:
        """A slot for what lies between two kernels of one instruction."""
        return Slot(next(self._keys), shape, np.dtype(dtype))

    def kernels(self, record: Record) -> list[Kernel] | None:
        """What carries out an instruction, in order: nothing if its results have no elements; None if there is no kernel."""
        outputs = outputs_of(record)
        slots = slots_of(record)
        if not outputs or any(not is_known(x.dtype) or math.prod(x.shape or ()) >= MOST_ELEMENTS for x in slots):
            return None
        try:
            if any(y.shape is None for y in outputs):
                return None
            if all(0 in y.shape for y in outputs):
                return []
            found = _rows().get(record.primitive)
            return _elementwise(self, record) if found is None else found(self, record)
        except NoKernel:
            return None


def _elementwise(emitter: Emitter, record: Record) -> list[Kernel] | None:
    shape, body = elementwise_body(record, DTYPES)
    if body is None:
        return None
    accesses = [spread(x, shape) for x in slots_in(record.inputs)]
    return [loop_kernel(record.primitive.name, shape, body, accesses, outputs_of(record))]


def _power(emitter: Emitter, record: Record) -> list[Kernel] | None:
    """Where the kernel cannot be traced, the function that it is for floats."""
    y, found = record.outputs, _elementwise(emitter, record)
    if found is not None:
        return found
    if not all(is_float(x.dtype) for x in slots_of(record)) or any(x.shape is None for x in slots_of(record)):
        return None
    code = Code([x.dtype for x in slots_in(record.inputs)])
    elements = iter(code.elements())
    operands = [next(elements) if isinstance(x, Slot) else x for x in record.inputs]
    body = code.body([code.apply("power", *operands)])
    return [loop_kernel("power", y.shape, body, [spread(x, y.shape) for x in slots_in(record.inputs)], [y])]


# Movement ------------------------------------------------------------------------------------------------------------------


def copy_kernel(label: str, access: Access, y: Slot) -> Kernel:
    """Elements brought together, in another dtype if y has one."""
    return loop_kernel(label, y.shape, copy_body(access.slot.dtype, y.dtype), [access], [y])


def _view(emitter: Emitter, record: Record) -> list[Kernel] | None:
    access = view_of(record)
    return None if access is None else [copy_kernel(record.primitive.name, access, record.outputs)]


def _real(emitter: Emitter, record: Record) -> list[Kernel] | None:
    x, y = record.inputs[0], record.outputs
    return [copy_kernel(record.primitive.name, spread(x, y.shape), y)]


def _flatten(emitter: Emitter, record: Record) -> list[Kernel]:
    y, pieces, start = record.outputs, [], 0
    y = y[0] if type(y) is tuple else y
    for x in record.inputs:
        size = math.prod(x.shape)
        if size:
            pieces.append(Piece(x, ((start, 1, size),), (1,)))
        start += size
    return [placed_kernel("flatten", pieces, 0, y)]


def _concat(emitter: Emitter, record: Record) -> list[Kernel]:
    y, axis, start, pieces = record.outputs, record.params["axis"], 0, []
    for x in record.inputs:
        ranges = [(0, 1, size) for size in y.shape]
        ranges[axis] = start, 1, x.shape[axis]
        start += x.shape[axis]
        if 0 not in x.shape:
            pieces.append(Piece(x, tuple(ranges), contiguous(x.shape)))
    return [placed_kernel("concat", pieces, 0, y)]


def _stack(emitter: Emitter, record: Record) -> list[Kernel]:
    y, axis = record.outputs, record.params["axis"] % len(record.outputs.shape)
    pieces = []
    for number, x in enumerate(record.inputs):
        ranges = [(0, 1, size) for size in y.shape]
        ranges[axis] = number, 1, 1
        own = contiguous(x.shape)
        pieces.append(Piece(x, tuple(ranges), (*own[:axis], 0, *own[axis:])))
    return [placed_kernel("stack", pieces, 0, y)]


def _pad(emitter: Emitter, record: Record) -> list[Kernel]:
    (x, *_), y, paddings = record.inputs, record.outputs, record.params["paddings"]
    lead = [(0, 1, size) for size in x.shape[: len(x.shape) - len(paddings)]]
    rest = [(before, 1, size) for (before, _), size in zip(paddings, x.shape[len(lead) :], strict=True)]
    pieces = [] if 0 in x.shape else [Piece(x, (*lead, *rest), contiguous(x.shape))]
    return [placed_kernel("pad", pieces, record.params["value"], y)]


def _put_slice(emitter: Emitter, record: Record) -> list[Kernel] | None:
    """The slice of the result that the key takes, traced back to ranges along its axes."""
    g, y, key = record.inputs[0], record.outputs, record.params["key"]
    described = sum(1 for one in key if one is not None and one is not Ellipsis)
    before = key.index(Ellipsis) if Ellipsis in key else len(key)
    kept = (slice(None),) * (len(y.shape) - described)
    whole = (*key[:before], *kept, *key[before + 1 :])
    ranges, strides, own, axis = [], [], list(contiguous(g.shape)), 0
    for one in whole:
        if one is None:
            own.pop(0)
            continue
        size = y.shape[axis]
        axis += 1
        if isinstance(one, slice):
            start, stop, step = one.indices(size)
            ranges.append((start, step, len(range(start, stop, step))))
            strides.append(own.pop(0))
        else:
            ranges.append((int(one) % size, 1, 1))
            strides.append(0)
    pieces = [] if 0 in g.shape else [Piece(g, tuple(ranges), tuple(strides))]
    return [placed_kernel("put_slice", pieces, 0, y)]


def _tile(emitter: Emitter, record: Record) -> list[Kernel] | None:
    x, y = record.inputs[0], record.outputs
    if len(x.shape) != len(y.shape):
        return None

    def value(source: Source, names: Sequence[str]) -> str:
        inside = [f"({name} % {size})" for name, size in zip(names, x.shape, strict=True)]
        return source.load(x, place(0, contiguous(x.shape), inside))

    return [element_kernel("tile", y, value)]


def _roll(emitter: Emitter, record: Record) -> list[Kernel]:
    x, y = record.inputs[0], record.outputs
    shifts, axes = record.params["shift"], record.params["axis"]
    pairs = zip(shifts, axes, strict=True) if isinstance(axes, tuple) else [(shifts, axes)]
    total = [0] * len(x.shape)
    for shift, axis in pairs:
        total[axis] += shift

    def value(source: Source, names: Sequence[str]) -> str:
        inside = [f"(({name} + {-by % n}) % {n})" for name, by, n in zip(names, total, x.shape, strict=True)]
        return source.load(x, place(0, contiguous(x.shape), inside))

    return [element_kernel("roll", y, value)]


def _triangle(emitter: Emitter, record: Record) -> list[Kernel]:
    x, y, offset = record.inputs[0], record.outputs, record.params["offset"]
    sign = "<=" if record.params["lower"] else ">="

    def value(source: Source, names: Sequence[str]) -> str:
        keeps = f"(long long){names[-1]} - (long long){names[-2]} {sign} {offset}"
        return f"{keeps} ? {source.load(x, place(0, contiguous(x.shape), names))} : {literal(0, x.dtype)}"

    return [element_kernel("triangle", y, value, ((0,),))]


def _identity_like(emitter: Emitter, record: Record) -> list[Kernel]:
    y = record.outputs

    def value(source: Source, names: Sequence[str]) -> str:
        return f"{names[0]} == {names[1]} ? {literal(1, y.dtype)} : {literal(0, y.dtype)}"

    return [element_kernel("identity", y, value)]


def _one_hot(emitter: Emitter, record: Record) -> list[Kernel] | None:
    indices, y = record.inputs[0], record.outputs
    on, off = (literal(record.params[name], y.dtype) for name in ("on", "off"))
    kind = "double" if is_float(indices.dtype) else "long long"

    def value(source: Source, names: Sequence[str]) -> str:
        given = source.load(indices, place(0, contiguous(indices.shape), names[:-1]))
        return f"({kind})({given}) == ({kind}){names[-1]} ? {on} : {off}"

    return [element_kernel("one_hot", y, value)]


# Gather and scatter ----------------------------------------------------------------------------------------------------------


def _gather_rows(emitter: Emitter, record: Record) -> list[Kernel] | None:
    x, indices = record.inputs
    axis = record.params["axis"] + len(x.shape)
    if not (isinstance(x, Slot) and isinstance(indices, Slot)) or not x.shape[axis] or indices.dtype.kind not in "iu":
        return None
    return [moves.gather_kernel("gather", x, indices, axis, record.outputs)]


_COMBINED: dict[str, tuple[str, Callable[[Any], str]]] = {
    "add_rows": ("{0} + {1}", lambda dtype: literal(0, dtype)),
    "segment_max": ("larger({0}, {1})", lambda dtype: _end(dtype, "min")),
    "segment_min": ("smaller({0}, {1})", lambda dtype: _end(dtype, "max")),
    "segment_prod": ("{0} * {1}", lambda dtype: literal(1, dtype)),
}


def _end(dtype: Any, name: str) -> str:
    return literal(getattr(as_dtype(dtype), name), dtype)


def _scatter_rows(emitter: Emitter, record: Record) -> list[Kernel] | None:
    x, indices = record.inputs
    axis, size, y = record.params["axis"], record.params["size"], record.outputs
    last = len(x.shape) + axis
    first = last - len(indices.shape) + 1
    if indices.dtype.kind not in "iu":
        return None
    combine, start = _COMBINED[record.primitive.name]

    def index(source: Source, k: str) -> None:
        checked_index(source, "at", source.load(indices, k), size)

    lead, behind = math.prod(x.shape[:first]), math.prod(x.shape[last + 1 :])
    rows = Rows(x, y, lead, math.prod(indices.shape), size, behind, index, combine, lambda source, own: start(x.dtype))
    return [moves.scatter_kernel("scatter", rows)]


def _take_at(emitter: Emitter, record: Record) -> list[Kernel]:
    (x, columns), y = record.inputs, record.outputs

    def value(source: Source, names: Sequence[str]) -> str:
        checked_index(source, "at", source.load(columns, names[0]), x.shape[1])
        return source.load(x, place(0, (x.shape[1], 1), (names[0], "at")))

    return [element_kernel("take_at", y, value)]


def _add_at(emitter: Emitter, record: Record) -> list[Kernel]:
    (x, columns), y = record.inputs, record.outputs
    number = literal(record.params["number"], x.dtype)

    def value(source: Source, names: Sequence[str]) -> str:
        checked_index(source, "at", source.load(columns, names[0]), x.shape[1])
        source.do(f"const {computed(x.dtype)} x = {source.load(x, place(0, contiguous(x.shape), names))};")
        return cast(f"(at == (long long){names[1]} ? x + {number} : x)", None, y.dtype)

    return [element_kernel("add_at", y, value, ((0,), ()))]


def _take_along(emitter: Emitter, record: Record) -> list[Kernel] | None:
    x, indices = record.inputs
    axis = record.params["axis"] + len(x.shape)
    if len(x.shape) != len(indices.shape) or not x.shape[axis] or indices.dtype.kind not in "iu":
        return None
    return [moves.take_along_kernel("take_along", x, indices, axis, record.outputs)]


def _add_along(emitter: Emitter, record: Record) -> list[Kernel] | None:
    g, indices = record.inputs
    if len(g.shape) != len(indices.shape) or indices.dtype.kind not in "iu":
        return None
    return [moves.sum_at_kernel("add_along", g, indices, record.params["axis"] + len(g.shape), record.outputs)]


def _addressed(indices: Slot, shape: Shape) -> Callable[[Source, str], None]:
    """Writes the number of the row that a tuple of coordinates addresses."""
    width = indices.shape[-1]

    def index(source: Source, k: str) -> None:
        for one in range(width):
            checked_index(source, f"at{one}", source.load(indices, f"{k} * {width} + {one}"), shape[one])
        source.do(f"const long long at = {place(0, contiguous(shape[:width]), [f'at{one}' for one in range(width)])};")

    return index


def _gather_nd(emitter: Emitter, record: Record) -> list[Kernel] | None:
    (x, indices), y = record.inputs, record.outputs
    width = indices.shape[-1]
    if not width or 0 in x.shape or indices.dtype.kind not in "iu":
        return None
    count, behind = math.prod(indices.shape[:-1]), math.prod(x.shape[width:])
    index = _addressed(indices, x.shape)

    def value(source: Source, names: Sequence[str]) -> str:
        index(source, names[0])
        return source.load(x, place(0, (behind, 1), ("at", names[1])))

    kernel = element_kernel("gather_nd", Slot(y.key, (count, behind), y.dtype), value)
    return [kernel._replace(outputs=(y,))]


def _scatter_nd(emitter: Emitter, record: Record) -> list[Kernel] | None:
    """`scatter_nd` adds to zeros; `overwrite_nd` lets the last of several updates stand."""
    overwrites = record.primitive is operations.overwrite_nd
    (*base, indices, updates) = record.inputs if overwrites else (*record.inputs[1:], record.inputs[0])
    y, width = record.outputs, indices.shape[-1]
    count, behind = math.prod(indices.shape[:-1]), math.prod(y.shape[width:])
    if not width or indices.dtype.kind not in "iu" or updates.shape != (*indices.shape[:-1], *y.shape[width:]):
        return None

    def start(source: Source, own: str) -> str:
        return source.load(base[0], own) if overwrites else literal(0, y.dtype)

    size, combine = math.prod(y.shape[:width]), "{1}" if overwrites else "{0} + {1}"
    rows = Rows(updates, y, 1, count, size, behind, _addressed(indices, y.shape), combine, start)
    return [moves.scatter_kernel("scatter_nd", rows)]


# Reductions ------------------------------------------------------------------------------------------------------------------


def _reduction(name: str) -> Callable[[Emitter, Record], list[Kernel] | None]:
    def lower(emitter: Emitter, record: Record) -> list[Kernel] | None:
        x, y = record.inputs[0], record.outputs
        given = record.params["axes"] if "axes" in record.params else (record.params["axis"],)
        axes = range(len(x.shape)) if given is None else sorted(axis % len(x.shape) for axis in given)
        if not isinstance(x, Slot):
            return None
        return reduced(emitter, name, x, list(axes), y)

    return lower


def reduced(emitter: Emitter, name: str, x: Slot, axes: Sequence[int], y: Slot) -> list[Kernel]:
    """A slot reduced over some of its axes."""
    kept = [axis for axis in range(len(x.shape)) if axis not in axes]
    order, own = [*kept, *axes], contiguous(x.shape)
    access = Access(x, 0, tuple([own[axis] for axis in order]))
    folded = tuple([x.shape[axis] for axis in axes])
    if name in ("argmax", "argmin") and not math.prod(folded):
        raise NoKernel(f"{name} of nothing")
    fold = fold_of(name, x.dtype, math.prod(folded), y.dtype)
    shapes = tuple([x.shape[axis] for axis in kept]), folded
    outer, inner, values, along = body_values(*shapes, copy_body(x.dtype, x.dtype), [access])
    return reduction_kernels(name, outer, inner, values, along, [Reduced(0, fold, y)], emitter.temporary)


def _einsum(emitter: Emitter, record: Record) -> list[Kernel] | None:
    """The sum of products over the labels that the result does not have."""
    xs, y, terms, result = record.inputs, record.outputs, record.params["terms"], record.params["result"]
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
    return _sum_of_products(emitter, "einsum", shapes, accesses, y)


def _matrix_product(emitter: Emitter, record: Record) -> list[Kernel] | None:
    """For small products, and where there is no library."""
    a, b = record.inputs[:2]
    y = record.outputs
    if min(len(a.shape), len(b.shape)) < 2:
        return None
    lead, (rows, columns), inner = y.shape[:-2], y.shape[-2:], a.shape[-1]
    left = spread(Slot(a.key, a.shape[:-2], a.dtype), lead).strides
    right = spread(Slot(b.key, b.shape[:-2], b.dtype), lead).strides
    accesses = [
        Access(a, 0, (*[n * rows * inner for n in left], inner, 0, 1)),
        Access(b, 0, (*[n * inner * columns for n in right], 0, 1, columns)),
    ]
    return _sum_of_products(emitter, "product", ((*lead, rows, columns), (inner,)), accesses, y)


def _sum_of_products(
    emitter: Emitter, label: str, shapes: tuple[Shape, Shape], accesses: Sequence[Access], y: Slot
) -> list[Kernel]:
    wide = np.dtype(np.float32) if is_float(y.dtype) and y.dtype.itemsize == 2 else y.dtype
    code = Code([access.slot.dtype for access in accesses])
    product: Any = functools.reduce(operator.mul, [x.astype(wide) for x in code.elements()])
    outer, inner, values, along = body_values(*shapes, code.body([product]), accesses)
    along = along and math.prod(shapes[0]) < 1 << 12  # else neighbouring results share what they read
    fold = fold_of("sum", wide, 0, y.dtype)
    return reduction_kernels(label, outer, inner, values, along, [Reduced(0, fold, y)], emitter.temporary)


# Along lines -----------------------------------------------------------------------------------------------------------------


def _scan(start: float, combine: str) -> Callable[[Emitter, Record], list[Kernel] | None]:
    def lower(emitter: Emitter, record: Record) -> list[Kernel] | None:
        x, params = record.inputs[0], record.params
        if x.dtype.kind == "b" or (is_float(x.dtype) and x.dtype.itemsize == 2):
            return None
        axis, options = params["axis"] + len(x.shape), (params.get("exclusive", False), params.get("reverse", False))
        first = literal(start, x.dtype)
        return [moves.scan_kernel(record.primitive.name, x, record.outputs, axis, first, combine, *options)]

    return lower


def _rank(positions: bool) -> Callable[[Emitter, Record], list[Kernel] | None]:
    def lower(emitter: Emitter, record: Record) -> list[Kernel] | None:
        x, params = record.inputs[0], record.params
        axis = params["axis"] + len(x.shape)
        if x.shape[axis] > LONGEST_SORT:
            return None
        label = record.primitive.name
        return [moves.rank_kernel(label, x, record.outputs, axis, params["descending"], positions)]

    return lower


def _searchsorted(emitter: Emitter, record: Record) -> list[Kernel] | None:
    sequence, values = record.inputs
    if not sequence.shape[-1] or sequence.shape[:-1] != values.shape[:-1]:
        return None
    return [moves.search_kernel("search", sequence, values, record.params["side"], record.outputs)]


@functools.cache
def _rows() -> dict[Any, Callable[[Emitter, Record], list[Kernel] | None]]:
    """By primitive; what is not here is a loop or has no kernel."""
    o = operations
    softmax = lambda emitter, record: softmax_kernel(record)
    folds = {"sum", "mean", "max", "min", "prod", "any", "all", "logsumexp"}
    return {
        **dict.fromkeys((o.reshape, o.transpose, o.broadcast_to, o.strided_slice, part), _view),
        **dict.fromkeys((o.real, o.conj), _real),
        **{getattr(o, f"reduce_{name}"): _reduction(name) for name in folds},
        **{o.reduce_euclidean_norm: _reduction("euclid"), o.argmax: _reduction("argmax"), o.argmin: _reduction("argmin")},
        **{flatten: _flatten, o.concat: _concat, o.stack_along: _stack, o.pad: _pad, o.put_slice: _put_slice},
        **{o.tile: _tile, o.roll: _roll, o.triangle: _triangle, o.identity_like: _identity_like, o.one_hot: _one_hot},
        **dict.fromkeys((o.gather_rows, o.look_up), _gather_rows),
        **dict.fromkeys((o.add_rows, o.segment_max, o.segment_min, o.segment_prod), _scatter_rows),
        **{take_at: _take_at, add_at: _add_at, o.take_along: _take_along, o.add_along: _add_along},
        **{o.gather_nd: _gather_nd, o.scatter_nd: _scatter_nd, o.overwrite_nd: _scatter_nd},
        **{o.cumsum: _scan(0, "{0} + {1}"), o.cumprod: _scan(1, "{0} * {1}")},
        o.running_logsumexp: _scan(-math.inf, "log_of_sum({0}, {1})"),
        **{o.argsort: _rank(True), o.sort: _rank(False), o.searchsorted: _searchsorted},
        group: lambda emitter, record: group_kernels(record, emitter.temporary),
        loop_of_parts: lambda emitter, record: parts_kernels(record, emitter.temporary),
        **{o.einsum: _einsum, o.matrix_product: _matrix_product, o.power: _power},
        **dict.fromkeys((o.softmax, o.log_softmax, o.softmax_cross_entropy), softmax),
        **dict.fromkeys((o.sparse_softmax_cross_entropy, o.sparse_softmax_cross_entropy_grad, loss_and_gradient), softmax),
        **windows.rows(),
        **draws.rows(),
    }
