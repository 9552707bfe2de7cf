"""Primitives with nests: from an instruction to nests with their operands, by dtypes, shapes and parameters alone."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import Record, operations
from ..ir import Slot
from ..passes.inlining import add_at, take_at
from . import contractions, draws, indexed, pools, windows
from .elements import copy_launch
from .expression import Axis
from .nest import For, Nest, Store
from .reductions import arg_nest
from .strided import Access, Launch, NestWriter, Temporary, contiguous, pieces_of
from .windows import Windows


def launches(record: Record, temporary: Temporary) -> list[Launch] | None:
    """The launches of an instruction; None if there is no nest for it."""
    find = _rows().get(record.primitive)
    slots = [x for x in record.inputs if isinstance(x, Slot)]
    if find is None or len(slots) != len(record.inputs) or type(record.outputs) is tuple:
        return None
    if any(x.shape is None or 0 in x.shape for x in (*slots, record.outputs)):
        return None
    return find(record, temporary)


def _floats(record: Record, count: int | None = None) -> bool:
    """True if the result and the first operands are floats of one dtype that nests support."""
    dtype = record.outputs.dtype
    return dtype in (np.float32, np.float64) and all(x.dtype == dtype for x in record.inputs[:count])


def _members(shape: Sequence[int], rank: int) -> int:
    return math.prod(shape[: len(shape) - rank])


def _convolution(record: Record, of: str) -> tuple[Windows, int, windows.Tile, int] | None:
    """Windows, outputs, tiles and the batch of a convolution or of a transpose of it."""
    first, second = record.inputs
    image, places = {"y": (first, record.outputs), "x": (record.outputs, first), "kernel": (first, second)}[of]
    kernel = record.outputs if of == "kernel" else second
    rank = len(record.params["strides"])
    outputs = kernel.shape[-1]
    w = windows.windows_of(record, kernel.shape[-2 - rank : -2], image.shape, places.shape)
    tile = windows.tile_of(w, record.outputs.dtype.itemsize)
    if not _floats(record) or tile is None or (w.is_depthwise and w.taps > pools.MOST_TAPS):
        return None
    return w, outputs, tile, int(places.shape[-rank - 2])


def _seconds(w: Windows, outputs: int, batch: int, itemsize: int) -> float:
    """The time of products and patches, roughly."""
    places, inner = batch * w.lines * w.wide, w.taps * w.channels
    return places * inner * (outputs / w.groups * itemsize / 2e11 + itemsize / 2e10)


def _of_windows(of: str, by_products: Any, by_channels: Any, record: Record, temporary: Temporary) -> list[Launch] | None:
    """The launches of an operation from an array with a batch axis and a kernel to another array with a batch axis."""
    found = _convolution(record, of)
    if found is None:
        return None
    w, outputs, tile, batch = found
    (x, kernel), y, rank = record.inputs, record.outputs, len(w.window) + 2
    members, own = _members(y.shape, rank), _members(kernel.shape, rank)
    if _members(x.shape, rank) != members or own not in (1, members):
        return None
    if own == 1:
        batch, members = batch * members, 1
    seconds = members * _seconds(w, outputs, batch, y.dtype.itemsize)
    times = outputs // w.groups
    nest = by_channels(w, times, y.dtype) if w.is_depthwise else by_products(w, outputs, tile, y.dtype)
    return [Launch(nest, [x, kernel], [y], [batch], seconds, members, [True, own > 1])]


def _correlate(record: Record, temporary: Temporary) -> list[Launch] | None:
    found = _convolution(record, "kernel")
    if found is None:
        return None
    w, outputs, tile, batch = found
    (x, g), y, rank = record.inputs, record.outputs, len(w.window) + 2
    members, length = _members(y.shape, rank), math.prod(y.shape[-rank:])
    if {_members(one.shape, rank) for one in (x, g)} - {1, members}:
        return None
    parts = min(max(windows.PARTIAL // (length * y.dtype.itemsize), 4), 16)
    sums = temporary((*y.shape[:-rank], parts, *y.shape[-rank:]), y.dtype)
    seconds = members * _seconds(w, outputs, batch, y.dtype.itemsize)
    if w.is_depthwise:
        nest = pools.channels_by_kernel(w, outputs // w.groups, y.dtype, parts)
    else:
        nest = windows.by_kernel(w, outputs, tile, y.dtype, parts)
    return [
        Launch(nest, [x, g], [sums], [batch], seconds, members, [_members(one.shape, rank) > 1 for one in (x, g)]),
        Launch(windows.total(parts, length, y.dtype), [sums], [y], [], members * parts * length / 4e9, members, [True]),
    ]


def _pool(op: str, back: bool = False) -> Callable[[Record, Temporary], list[Launch] | None]:
    """A rule for folds of the elements under windows, or with `back` for their gradient."""

    def find(record: Record, temporary: Temporary) -> list[Launch] | None:
        x, y, window = record.inputs[0], record.outputs, record.params["window"]
        image, places = (y, x) if back else (x, y)
        rank = len(window) + 1
        if x.dtype not in (np.float32, np.float64) or math.prod(window) > pools.MOST_TAPS:
            return None
        if len({_members(one.shape, rank) for one in (*record.inputs, y)}) > 1:
            return None
        w = windows.windows_of(record, window, image.shape, places.shape)
        nest = pools.put(w, x.dtype, op == "pick") if back else pools.fold(w, op, x.dtype)
        traffic = sum(one.bytes for one in (*record.inputs, y)) * (2 if back else 1)
        return [Launch(nest, record.inputs, [y], [_members(x.shape, rank)], traffic / 1e10)]

    return find


def contraction(record: Record) -> tuple[contractions.Contraction, list[Slot]] | None:
    """An `einsum` of two arrays as products, and the arrays in the order of their factors."""
    if len(record.inputs) != 2 or not _floats(record):
        return None
    found = contractions.contraction_of(record.params["terms"], record.params["result"], [x.shape for x in record.inputs])
    return None if found is None else (found[0], list(record.inputs)[:: -1 if found[1] else 1])


def _einsum(record: Record, temporary: Temporary) -> list[Launch] | None:
    found = contraction(record)
    return None if found is None else [found[0].launch(found[1], record.outputs)]


def _table(nest: Callable[..., Nest], back: bool) -> Callable[[Record, Temporary], list[Launch] | None]:
    """A rule for gathering rows of a table, or with `back` for adding rows to it."""

    def find(record: Record, temporary: Temporary) -> list[Launch] | None:
        (x, indices), y = record.inputs, record.outputs
        table, rank = y if back else x, len(indices.shape)
        at = len(table.shape) + record.params["axis"]
        if x.dtype not in (np.float32, np.float64) or indices.dtype not in (np.int32, np.int64) or at < 0:
            return None
        outer, width = math.prod(table.shape[:at]), math.prod(table.shape[at + 1 :])
        if (x if back else y).shape != (*table.shape[:at], *indices.shape, *table.shape[at + 1 :]) or not rank:
            return None
        names = indexed.OUTER if outer > 1 else 1, indexed.COUNT, indexed.ROWS, width
        found = nest(names, x.dtype, indices.dtype, [indexed.OUTER, indexed.COUNT, indexed.ROWS])
        return [
            Launch(found, [x, indices], [y], [outer, math.prod(indices.shape), table.shape[at]], (x.bytes + y.bytes) / 1e10)
        ]

    return find


def _placed(record: Record, temporary: Temporary) -> list[Launch] | None:
    """Copies of arrays to parts of the result, and behind them a number in its gaps, or before them everywhere."""
    y, pieces, gaps = record.outputs, pieces_of(record), list[tuple[int, int]]()
    if any(x.dtype != y.dtype for x in record.inputs):
        return None
    if record.primitive in (operations.pad, operations.put_slice):
        if not _floats(record):
            return None
        ((x, shape, access),), whole = pieces, math.prod(y.shape)
        gaps = [(0, access.offset), (access.offset + math.prod(shape), whole)]
        gaps = gaps if access.strides == contiguous(shape) else [(0, whole)]
    found = list[Launch]()
    for first, last in gaps:
        if first < last:
            writer = NestWriter(fixed=False)
            i, number = Axis(writer.size(last - first)), writer.number(float(record.params.get("value", 0)), y.dtype)
            found.append(writer.lowered("fill", For(i, [Store(writer.result(y), writer.size(first) + i, number)])))
    for x, shape, access in pieces:
        found.append(copy_launch(Access(x, 0, contiguous(shape)), y, shape, (access.offset, access.strides)))
    return [one._replace(seconds=0.0) for one in found] if gaps else found  # then two threads take as long as one


def _at_columns(record: Record, temporary: Temporary) -> list[Launch] | None:
    """An element of each row, read or added to."""
    (x, columns), y = record.inputs, record.outputs
    if x.dtype not in (np.float32, np.float64) or columns.dtype.kind not in "iu" or len(x.shape) != 2:
        return None
    index, adds = columns.dtype if columns.dtype in (np.int32, np.int64) else np.dtype(np.int64), record.primitive is add_at
    if not adds:
        return [Launch(indexed.take_nest(x.dtype, index), [x, columns], [y], x.shape, y.bytes / 1e10)]
    nest = indexed.add_number_nest(x.dtype, index, record.params["number"], x.shape[1])
    return [Launch(nest, [x, columns], [y], x.shape, y.bytes / 1e10, may_alias=[(0,)])]


def _argmax(record: Record, temporary: Temporary) -> list[Launch] | None:
    x, y = record.inputs[0], record.outputs
    axis, dtype = record.params["axis"], np.dtype(record.params["dtype"])
    last = isinstance(axis, int) and axis % max(len(x.shape), 1) == len(x.shape) - 1
    if not last or x.dtype.kind not in "fi" or x.dtype.itemsize < 4 or dtype not in (np.int32, np.int64) or y.shape == ():
        return None
    shape = math.prod(x.shape[:-1]), x.shape[-1]
    found = arg_nest("argmax", x, (*shape, 1), y, fixed=False)
    return [found._replace(seconds=math.prod(shape) * 1.5e-9)]


def _next_key(record: Record, temporary: Temporary) -> list[Launch] | None:
    return None if record.params.get("mix", 0) else draws.next_key(record, fixed=False)


def _drawn(rule: Callable[..., list[Launch] | None]) -> Callable[[Record, Temporary], list[Launch] | None]:
    """A rule for a draw of floats, from one key or from that of each member of a stack."""

    def find(record: Record, temporary: Temporary) -> list[Launch] | None:
        (key,), y = record.inputs, record.outputs
        is_known = y.dtype in (np.float32, np.float64) and len(y.shape) >= len(key.shape) and len(key.shape) < 3
        if not is_known or record.params["xp"] is not np:
            return None
        if key.shape == (2,):
            return rule(record, fixed=False)
        own = Record(record.primitive, [Slot(key.key, (2,), key.dtype)], record.params, Slot(y.key, y.shape[1:], y.dtype))
        members, found = key.shape[0], rule(own, fixed=False) or ()
        return [one._replace(operands=[key], results=[y], members=members, moving=[True]) for one in found] or None

    return find


@functools.cache
def _rows() -> dict[Any, Callable[[Record, Temporary], list[Launch] | None]]:
    return {
        operations.concat: _placed,
        operations.pad: _placed,
        operations.put_slice: _placed,
        operations.stack_along: _placed,
        take_at: _at_columns,
        add_at: _at_columns,
        operations.argmax: _argmax,
        operations.next_key: _next_key,
        operations.dropout_mask: _drawn(draws.dropout_mask),
        operations.random_uniform: _drawn(draws.random_uniform),
        operations.convolve: functools.partial(_of_windows, "y", windows.convolution, pools.convolution_of_channels),
        operations.spread_windows: functools.partial(_of_windows, "x", windows.by_input, pools.channels_by_input),
        operations.correlate_windows: _correlate,
        operations.einsum: _einsum,
        operations.gather_rows: _table(indexed.gather_nest, back=False),
        operations.look_up: _table(indexed.gather_nest, back=False),
        operations.add_rows: _table(indexed.add_nest, back=True),
        operations.max_pool: _pool("maximum"),
        operations.window_sum: _pool("add"),
        operations.first_largest_in_window: _pool("first"),
        operations.pick_from_window: _pool("pick"),
        operations.put_into_window: _pool("pick", back=True),
        operations.window_spread: _pool("add", back=True),
    }
