"""Kernels over flat arrays whose blocks know their part: a block owns a chunk of one part, and adds up what it is asked to."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ....core import Record
from ....layout import Layout
from ...ir import Slot, outputs_of, slots_in
from ...loops import Body, Sum, is_of_parts
from .functions import Element, cast, computed
from .kernels import THREADS, Group, Shape, Source, fold_lanes, fold_of, wide
from .nodes import Kernel

CHUNK = 16 * THREADS
"""Elements of a block."""
_BLOCK = Group(1, THREADS, True, 1)


def parts_kernels(record: Record, temporary: Callable[[Shape, Any], Slot]) -> list[Kernel]:
    """What carries out a loop over parts, with the sums that it asks for.

    Raises:
        NoKernel: if a function or a dtype is not known.
    """
    layout, sums, outputs = record.params["layout"], record.params["sums"], outputs_of(record)
    operands, body = slots_in(record.inputs), record.params["body"]
    if sums is None:
        return [_loop(layout, body, operands, outputs)]
    chunks = _chunks(layout)
    between = [temporary((chunks[-1],), wide(y.dtype)) for y in outputs]
    ranges = list(itertools.pairwise(chunks)) if sums is Sum.PART else [(0, chunks[-1])]
    return [_partial(layout, body, operands, between), _rest(ranges, between, outputs)]


def _chunks(layout: Layout) -> list[int]:
    """The number of the first chunk of each part, and how many there are."""
    counts = [-(-math.prod(shape) // CHUNK) for shape in layout.shapes]
    return list(itertools.accumulate(counts, initial=0))


def _table(name: str, numbers: Sequence[int]) -> str:
    return f"static const unsigned {name}[] = {{{', '.join(map(str, numbers))}}};"


def _begin(source: Source, layout: Layout, operands: Sequence[Slot]) -> None:
    """The part of a block, its first and its last element, and the numbers of the part."""
    source.do(_table("chunk", _chunks(layout)), _table("begin", layout.starts))
    source.do(_table("end", [one.stop for one in layout.slices]))
    source.do(f"unsigned part = 0, beyond = {len(layout.shapes)};", "while (beyond - part > 1) {")
    source.do("const unsigned middle = (part + beyond) / 2;", "(chunk[middle] <= blockIdx.x ? part : beyond) = middle;", "}")
    source.do(f"const unsigned first = begin[part] + (blockIdx.x - chunk[part]) * {CHUNK};")
    source.do(f"const unsigned last = first + {CHUNK} < end[part] ? first + {CHUNK} : end[part];")
    for number, x in enumerate(operands):
        if x.shape != (layout.size,):
            where = "part" if is_of_parts(x.shape) else "0"
            source.do(f"const {computed(x.dtype)} x{number} = {source.load(x, where)};")


def _each(source: Source, layout: Layout, body: Body, operands: Sequence[Slot]) -> Element:
    """Begin the loop over the elements of a chunk."""
    source.do(f"for (unsigned i = first + threadIdx.x; i < last; i += {THREADS}) {{")
    for number, x in enumerate(operands):
        if x.shape == (layout.size,):
            source.do(f"const {computed(x.dtype)} x{number} = {source.load(x, 'i')};")
    element = Element(body, [f"x{number}" for number in range(len(operands))])
    source.do(*element.lines)
    return element


def _loop(layout: Layout, body: Body, operands: Sequence[Slot], outputs: Sequence[Slot]) -> Kernel:
    source = Source()
    _begin(source, layout, operands)
    element = _each(source, layout, body, operands)
    for y, (value, dtype) in zip(outputs, element.outputs, strict=True):
        source.store(y, "i", cast(value, dtype, y.dtype))
    source.do("}")
    flat = [number for number, x in enumerate(source.inputs) if x.shape == (layout.size,)]
    alias = tuple([tuple([n for n in flat if source.inputs[n].dtype.itemsize == y.dtype.itemsize]) for y in source.outputs])
    return source.kernel("parts", _chunks(layout)[-1], may_alias=alias)


def _partial(layout: Layout, body: Body, operands: Sequence[Slot], totals: Sequence[Slot]) -> Kernel:
    """The sums of each chunk."""
    source, fold = Source(), fold_of("sum", totals[0].dtype)
    _begin(source, layout, operands)
    names = [f"s{number}" for number in range(len(totals))]
    source.do(*[f"{fold.type} {name} = {fold.start};" for name in names])
    element = _each(source, layout, body, operands)
    for name, (value, _) in zip(names, element.outputs, strict=True):
        source.do(f"{name} = {name} + {value};")
    source.do("}", "const unsigned lane = threadIdx.x;")
    fold_lanes(source, [(name, fold) for name in names], _BLOCK)
    source.do("if (lane == 0) {")
    for name, y in zip(names, totals, strict=True):
        source.store(y, "blockIdx.x", name)
    source.do("}")
    return source.kernel("parts", _chunks(layout)[-1])


def _rest(ranges: Sequence[tuple[int, int]], totals: Sequence[Slot], outputs: Sequence[Slot]) -> Kernel:
    """The sums of ranges of chunks, one for each block."""
    source, fold = Source(), fold_of("sum", totals[0].dtype)
    source.do(_table("begin", [first for first, _ in ranges]), _table("end", [last for _, last in ranges]))
    names = [f"s{number}" for number in range(len(totals))]
    source.do(*[f"{fold.type} {name} = {fold.start};" for name in names])
    source.do(f"for (unsigned k = begin[blockIdx.x] + threadIdx.x; k < end[blockIdx.x]; k += {THREADS}) {{")
    source.do(*[f"{name} = {name} + {source.load(x, 'k')};" for name, x in zip(names, totals, strict=True)])
    source.do("}", "const unsigned lane = threadIdx.x;")
    fold_lanes(source, [(name, fold) for name in names], _BLOCK)
    source.do("if (lane == 0) {")
    for name, y in zip(names, outputs, strict=True):
        source.store(y, "blockIdx.x", cast(name, totals[0].dtype, y.dtype))
    source.do("}")
    return source.kernel("parts_rest", len(ranges))
