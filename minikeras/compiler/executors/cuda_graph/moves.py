"""Kernels that move elements, gather and scatter them: each result is written by one thread, or one block, that owns it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ....core import Record
from ...ir import Slot
from .functions import cast, computed, is_float, literal, stored, to_store
from .kernels import THREADS, Access, Shape, Source, blocks_for, contiguous, each_element, integer, place
from .nodes import Kernel


def view_of(record: Record) -> Access | None:
    """Where the elements of a result lie in the operand that it would be a view of; None if it would not.

    The primitive's own kernel says so: it is shown an array of the operand's shape that has no memory.
    """
    x, y = record.inputs[0], record.outputs
    dummy: Any = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), x.shape, contiguous(x.shape))
    view = record.primitive.kernel(np)(dummy, **record.params)
    if view.shape != y.shape:
        return None
    return Access(x, view.__array_interface__["data"][0] - dummy.__array_interface__["data"][0], view.strides)


class Piece(NamedTuple):
    """A slot whose elements come to lie within a result.

    Attributes:
        ranges: for each axis of the result the first coordinate, the step and the count of those that are from here.
        strides: of the slot, for each axis of the result.
    """

    slot: Slot
    ranges: tuple[tuple[int, int, int], ...]
    strides: Shape


def placed_kernel(label: str, pieces: Sequence[Piece], value: Any, y: Slot) -> Kernel:
    """Pieces at their places, a number elsewhere."""
    source = Source()
    i, kind = each_element(source, math.prod(y.shape))
    names = source.coordinates(i, y.shape, "i", kind)
    source.do(f"{computed(y.dtype)} r = {literal(value, y.dtype)};")
    for number, piece in enumerate(pieces):
        tests, inner = [], []
        for name, size, (first, step, count) in zip(names, y.shape, piece.ranges, strict=True):
            beyond = name if first == 0 and step > 0 else f"({name} - {first}u)" if step > 0 else f"({first}u - {name})"
            inner.append(beyond if abs(step) == 1 else f"({beyond} / {abs(step)})")
            tests += [f"{beyond} % {abs(step)} == 0"] * (abs(step) != 1)
            tests += [f"{inner[-1]} < {count}u"] * ((first, step, count) != (0, 1, size))
        value_there = cast(source.load(piece.slot, place(0, piece.strides, inner)), piece.slot.dtype, y.dtype)
        source.do(f"{'else ' * (number > 0)}if ({' && '.join(tests) or 'true'}) r = {value_there};")
    source.store(y, i, "r")
    source.do("}")
    return source.kernel(label, blocks_for(math.prod(y.shape)))


def element_kernel(label: str, y: Slot, value: Callable[[Source, Sequence[str]], str], may_alias: Any = ()) -> Kernel:
    """Each element of a result from its coordinates; `value` writes lines and returns the expression."""
    source = Source()
    i, kind = each_element(source, math.prod(y.shape))
    found = value(source, source.coordinates(i, y.shape, "i", kind))
    source.store(y, i, found)
    source.do("}")
    return source.kernel(label, blocks_for(math.prod(y.shape)), may_alias=may_alias)


def checked_index(source: Source, name: str, value: str, size: int) -> None:
    """An index within an axis; a negative one counts from its end, one beyond it becomes 0."""
    source.do(
        f"long long {name} = {value};",
        f"if ({name} < 0) {name} += {size};",
        f"if ({name} < 0 || {name} >= {size}) {name} = 0;",
    )


def gather_kernel(label: str, x: Slot, indices: Slot, axis: int, y: Slot) -> Kernel:
    """Slices of x at indices along one of its axes."""
    lead, behind, count = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :]), math.prod(indices.shape)
    flat = Slot(y.key, (lead, count, behind), y.dtype)

    def value(source: Source, names: Sequence[str]) -> str:
        checked_index(source, "at", source.load(indices, names[1]), x.shape[axis])
        size = x.shape[axis]
        return source.load(x, place(0, (size * behind, behind, 1), (names[0], "at", names[2])))

    kernel = element_kernel(label, flat, value)
    return kernel._replace(outputs=(y,))


@dataclass(frozen=True)
class Rows:
    """What a scatter adds where: x as (lead, count, behind), y as (lead, size, behind).

    Attributes:
        index: writes the row of element `k` into the variable `at`.
        combine: of the value so far {0} and an element {1}.
        start: the value of an element of y before, from its place {at}.
    """

    x: Slot
    y: Slot
    lead: int
    count: int
    size: int
    behind: int
    index: Callable[[Source, str], None]
    combine: str
    start: Callable[[Source, str], str]


def scatter_kernel(label: str, rows: Rows) -> Kernel:
    """Each block owns columns of one row of the result, and goes through all indices in their order.

    A tile of indices without the row costs one comparison a thread and a barrier.
    """
    x, y, width = rows.x, rows.y, rows.lead * rows.behind
    chunks = -(-width // THREADS)
    source = Source()
    kind = integer(rows.lead * rows.count * rows.behind, rows.lead * rows.size * rows.behind, rows.size * chunks)
    row = f"blockIdx.x / {chunks}" if chunks > 1 else "blockIdx.x"
    column = f"blockIdx.x % {chunks} * {THREADS} + threadIdx.x" if chunks > 1 else "threadIdx.x"
    source.do(f"__shared__ bool here[{THREADS}];", f"const {kind} row = {row}, column = {column};")
    names = source.coordinates("column", (rows.lead, rows.behind), "c", kind)
    own = place(0, (rows.size * rows.behind, rows.behind, 1), (names[0], "row", names[1]))
    inner = place(0, (rows.count * rows.behind, rows.behind, 1), (names[0], "(first + m)", names[1]))
    wide = "float" if is_float(x.dtype) and x.dtype.itemsize == 2 else computed(x.dtype)
    source.do(f"{wide} total = 0;", f"if (column < {width}) total = {rows.start(source, own)};")
    source.do(f"for ({kind} first = 0; first < {rows.count}; first += {THREADS}) {{")
    source.do("bool found = false;", f"if (first + threadIdx.x < {rows.count}) {{", f"const {kind} k = first + threadIdx.x;")
    rows.index(source, "k")
    source.do("found = at == (long long)row;", "}", "here[threadIdx.x] = found;")
    source.do(f"if (__syncthreads_or(found) && column < {width}) {{", f"for (unsigned m = 0; m < {THREADS}; ++m) {{")
    source.do(f"if (here[m]) total = {rows.combine.format('total', source.load(x, inner))};", "}", "}", "__syncthreads();", "}")
    source.do(f"if (column < {width}) {source.output(y)}[{own}] = {to_store(cast('total', None, y.dtype), y.dtype)};")
    return source.kernel(label, rows.size * chunks)


def sum_at_kernel(label: str, g: Slot, indices: Slot, axis: int, y: Slot) -> Kernel:
    """Each element of y is the sum of those of g along an axis whose index is its own coordinate there."""

    def value(source: Source, names: Sequence[str]) -> str:
        own, at = contiguous(g.shape), _broadcast_strides(indices.shape, g.shape)
        inside = [*names[:axis], "k", *names[axis + 1 :]]
        wide = "float" if is_float(g.dtype) and g.dtype.itemsize == 2 else computed(g.dtype)
        source.do(f"{wide} total = 0;", f"for (unsigned k = 0; k < {g.shape[axis]}; ++k) {{")
        checked_index(source, "at", source.load(indices, place(0, at, inside)), y.shape[axis])
        source.do(f"if (at == (long long){names[axis]}) total = total + {source.load(g, place(0, own, inside))};", "}")
        return cast("total", None, y.dtype)

    return element_kernel(label, y, value)


def _broadcast_strides(shape: Shape, whole: Shape) -> Shape:
    """The strides of an array of as many axes that is broadcast."""
    return tuple(
        [0 if size == 1 != full else stride for size, full, stride in zip(shape, whole, contiguous(shape), strict=True)]
    )


def take_along_kernel(label: str, x: Slot, indices: Slot, axis: int, y: Slot) -> Kernel:
    """Elements of x at indices along one axis; the other coordinates are those of the result."""

    def value(source: Source, names: Sequence[str]) -> str:
        checked_index(
            source, "at", source.load(indices, place(0, _broadcast_strides(indices.shape, y.shape), names)), x.shape[axis]
        )
        own = [stride if one == axis or x.shape[one] > 1 else 0 for one, stride in enumerate(contiguous(x.shape))]
        return source.load(x, place(0, own, [*names[:axis], "at", *names[axis + 1 :]]))

    return element_kernel(label, y, value)


def scan_kernel(label: str, x: Slot, y: Slot, axis: int, start: str, combine: str, exclusive: bool, reverse: bool) -> Kernel:
    """Running sums or products along an axis, a line for each thread."""
    lead, count, behind = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    source = Source()
    i, kind = each_element(source, lead * behind)
    names = source.coordinates(i, (lead, behind), "i", kind)
    source.do(f"{computed(x.dtype)} total = {start};", f"for ({kind} k = 0; k < {count}; ++k) {{")
    along = f"({count - 1} - k)" if reverse else "k"
    source.do(f"const {kind} at = {place(0, (count * behind, behind, 1), (names[0], along, names[1]))};")
    follow = f"total = {combine.format('total', source.load(x, 'at'))};"
    source.do(*[] if exclusive else [follow])
    value = "total"
    if exclusive:
        source.do(f"const {computed(x.dtype)} before = total;", follow)
        value = "before"
    source.store(y, "at", value)
    source.do("}", "}")
    return source.kernel(label, blocks_for(lead * behind))


def rank_kernel(label: str, x: Slot, y: Slot, axis: int, descending: bool, positions: bool) -> Kernel:
    """Each element goes to the place of its rank, equal ones in their order and NaN last, or there goes its position."""
    lead, count, behind = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    source = Source()
    i, kind = each_element(source, lead * count * behind)
    names = source.coordinates(i, (lead, count, behind), "i", kind)
    strides = (count * behind, behind, 1)
    source.do(f"const {computed(x.dtype)} own = {source.load(x, place(0, strides, names))};", f"{kind} rank = 0;")
    source.do(f"for ({kind} k = 0; k < {count}; ++k) {{")
    source.do(f"const {computed(x.dtype)} other = {source.load(x, place(0, strides, (names[0], 'k', names[2])))};")
    nan, sign = ("other", ">") if descending else ("own", "<")
    apart = f"other {sign} own || (is_nan({nan}) && is_nan(own) != is_nan(other))"
    equal = "(other == own || (is_nan(own) && is_nan(other)))"
    source.do(f"rank += {apart} || (k < {names[1]} && {equal});", "}")
    source.store(y, place(0, strides, (names[0], "rank", names[2])), f"({stored(y.dtype)}){names[1]}" if positions else "own")
    source.do("}")
    return source.kernel(label, blocks_for(lead * count * behind))


def search_kernel(label: str, sequence: Slot, values: Slot, side: str, y: Slot) -> Kernel:
    """In each row of a sorted sequence, by bisection, how many elements lie in front of a value."""
    count = sequence.shape[-1]
    less = "(x < v || (v != v && x == x))" if side == "left" else "(x <= v || v != v)"

    def value(source: Source, names: Sequence[str]) -> str:
        own = computed(np.result_type(sequence.dtype, values.dtype))
        row = place(0, contiguous(values.shape[:-1]), names[:-1])
        source.do(f"const {own} v = {source.load(values, place(0, contiguous(values.shape), names))};")
        source.do(
            "long long low = 0, high = " + f"{count};", "while (low < high) {", "const long long middle = (low + high) / 2;"
        )
        source.do(f"const {own} x = {source.load(sequence, f'({row}) * {count} + middle')};")
        source.do(f"if {less} low = middle + 1; else high = middle;", "}")
        return "low"

    return element_kernel(label, y, value)
