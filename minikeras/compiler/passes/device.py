"""Passes over the programs of a device: convolutions become products, softmax and its losses loops over rows, of which a group
makes one kernel. Values that lie on the host are found.

Windows are written out as rows for the matrix products of a library (im2col), and added up again. Rows are written anew for the
gradient of a kernel: kept from the forward pass they would take as many times the memory of their source as a window has
elements.

Source: Chellapilla, Puri and Simard (2006), High Performance Convolutional Neural Networks for Document Processing.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from ...core import Primitive, Record, is_short, namespace, operations, read_variable
from ...nn_ops.convolution import offsets
from ...types import Array
from ..ir import Program, Slot, instruction, outputs_of, slots_in
from ..loop_ir.reductions import copy_body, is_float, wide
from ..loops import loop
from .inlining import FOR_GRAPHS, TracedArray, Writer, inline

Sizes = tuple[int, ...]


def on_host(recorded: Program, twin: Program, optimized: Program) -> set[int]:
    """The keys of values that lie on the host in a program of a device: keys of random streams, counters.

    Args:
        recorded: the program as it was recorded.
        twin: the same over slots of NumPy.
        optimized: that after passes. They keep slots, but give keys that have become free to others.
    """
    pairs = [(old, new) for old, new in zip(recorded.slots(), twin.slots(), strict=True) if old.shape is not None]
    elsewhere = {id(new) for old, new in pairs if old.xp is not np}
    there = {id(new) for old, new in pairs if old.xp is np}
    recorded_ones = elsewhere | there
    found = {slot.key for slot in optimized.slots() if id(slot) in there}
    for record in optimized.records:
        operands = slots_in(record.inputs)
        host = all(x.key in found or x.array is not None for x in operands) and any(x.key in found for x in operands)
        if record.primitive.effect and not record.inputs:  # a value that Python makes for a pass
            host = all(id(y) not in recorded_ones and y.shape is not None for y in outputs_of(record))
        if record.primitive is read_variable:
            host = namespace(record.inputs[0].array) is np
        if host:
            found |= {y.key for y in outputs_of(record) if id(y) not in elsewhere}
    return found


# Convolutions ---------------------------------------------------------------------------------------------------------


@instruction()
def windows_as_rows(
    xp: ModuleType, x: Array, *, window: Sizes, count: Sizes, strides: Sizes, padding: Any, dilation: Sizes
) -> Array:
    """The elements under a window in all places, (batch * places, window * channels)."""
    whole = xp.pad(x, ((0, 0), *padding, (0, 0)))
    parts = [whole[key] for key in offsets(window, count, strides, dilation)]
    return xp.stack(parts, -2).reshape(-1, math.prod(window) * x.shape[-1])


@instruction()
def add_rows_of_windows(
    xp: ModuleType, rows: Array, *, sizes: Sizes, window: Sizes, count: Sizes, strides: Sizes, padding: Any, dilation: Sizes
) -> Array:
    """The transpose: each element is the sum over the windows that read it."""
    channels = rows.shape[-1] // math.prod(window)
    split = rows.reshape(-1, *count, math.prod(window), channels)
    padded = [n + sum(pair) for n, pair in zip(sizes, padding, strict=True)]
    whole = xp.zeros((len(split), *padded, channels), rows.dtype)
    for number, key in enumerate(offsets(window, count, strides, dilation)):
        whole[key] += split[..., number, :]
    return whole[:, *[slice(before, before + n) for (before, _), n in zip(padding, sizes, strict=True)]]


def lower_convolutions(program: Program) -> Program:
    """The program with products of matrices instead of convolutions of one group."""
    writer, transposed = Writer(program), (operations.correlate_windows, operations.spread_windows)
    for record in program.records:
        if record.primitive not in (operations.convolve, *transposed) or not _is_product(record):
            writer.records.append(record)
        elif record.primitive is operations.spread_windows:
            _spread_by_product(writer, record)
        else:
            _multiply_rows(writer, record)
    return program.with_records(writer.records)


def _is_product(record: Record) -> bool:
    rank, slots = len(record.params["strides"]) + 2, [*slots_in(record.inputs), record.outputs]
    simple = record.params["groups"] == 1 and len({x.dtype for x in slots}) == 1
    return (
        simple
        and (slots[0].dtype.kind == "f" or is_short(slots[0].dtype))
        and all(len(x.shape) == rank and 0 not in x.shape for x in slots)
    )


def _geometry(record: Record, window: Sizes, count: Sizes) -> dict[str, Any]:
    names = ("strides", "padding", "dilation")
    return {"window": tuple(window), "count": tuple(count)} | {name: record.params[name] for name in names}


def _multiply_rows(writer: Writer, record: Record) -> None:
    """Windows as rows, or their transpose for the gradient of a kernel, times a matrix."""
    (x, other), y = record.inputs, record.outputs
    is_forward = record.primitive is operations.convolve
    window, places = (other.shape[:-2], y.shape) if is_forward else (record.params["window"], other.shape)
    geometry = _geometry(record, window, places[1:-1])
    width = math.prod(window) * x.shape[-1]
    if not any(map(any, geometry["padding"])) and {*geometry["window"], *geometry["strides"]} == {1}:
        rows = TracedArray(writer, x).reshape(-1, width)
    else:
        rows = TracedArray(writer, writer.slot((x.shape[0] * math.prod(geometry["count"]), width), x.dtype))
        writer.write(windows_as_rows, [x], geometry, rows.slot)
    product = (rows if is_forward else _turned(rows)) @ TracedArray(writer, other).reshape(-1, other.shape[-1])
    writer.write(operations.reshape, [product.slot], {"shape": y.shape, "rank": 2}, y)


def _spread_by_product(writer: Writer, record: Record) -> None:
    g, kernel = [TracedArray(writer, x).reshape(-1, x.shape[-1]) for x in record.inputs]
    y, rows = record.outputs, g @ _turned(kernel)
    geometry = _geometry(record, record.inputs[1].shape[:-2], record.inputs[0].shape[1:-1])
    writer.write(add_rows_of_windows, [rows.slot], geometry | {"sizes": tuple(y.shape[1:-1])}, y)


def _turned(x: TracedArray) -> Any:
    return np.swapaxes(x, 0, 1)  # type: ignore[call-overload]


# Rows -----------------------------------------------------------------------------------------------------------------


def inline_widened(writer: Writer, record: Record) -> bool:
    """Write the operations of an instruction's kernel in its place, over operands of 32 bits; rows with labels as a matrix."""
    inputs, y = list(record.inputs), record.outputs
    if not all(isinstance(x, Slot) and 0 not in x.shape for x in inputs):
        return False
    shape = y.shape
    if record.primitive in _OF_LABELS:
        labels, logits = inputs
        lead, count = logits.shape[:-1], math.prod(logits.shape[:-1])
        if np.broadcast_shapes(labels.shape, lead) != lead:
            return False
        labels = _in_shape(writer, operations.broadcast_to, labels, lead)
        inputs = [_in_shape(writer, operations.reshape, x, (count, *x.shape[len(lead) :])) for x in (labels, logits)]
        shape = (count, *y.shape[len(lead) :])
    inputs = [x if x.dtype.itemsize > 2 else _cast(writer, x, wide(x.dtype) if is_float(x.dtype) else WHOLE) for x in inputs]
    own = writer.slot(shape, wide(y.dtype))
    if not inline(writer, Record(record.primitive, inputs, record.params, own)):
        return False
    found = _cast(writer, writer.renamed.pop(own.key), y.dtype)
    writer.renamed[y.key] = _in_shape(writer, operations.reshape, found, y.shape)
    return True


def _in_shape(writer: Writer, primitive: Primitive, x: Slot, shape: tuple[int, ...]) -> Slot:
    """Elements in another shape."""
    if x.shape == shape:
        return x
    return writer.write_once(primitive, [x], {"shape": shape, "rank": len(x.shape)}, shape, x.dtype)


def _cast(writer: Writer, x: Slot, dtype: np.dtype[Any]) -> Slot:
    """Elements in another dtype."""
    if x.dtype == dtype:
        return x
    y = writer.slot(x.shape, dtype)
    writer.write(loop, [x], {"body": copy_body(x.dtype, dtype)}, (y,))
    return y


WHOLE = np.dtype(np.int32)
_OF_LABELS = operations.sparse_softmax_cross_entropy, operations.sparse_softmax_cross_entropy_grad
FOR_GRAPHS |= dict.fromkeys((operations.softmax, operations.log_softmax, operations.softmax_cross_entropy), inline_widened)
FOR_GRAPHS |= dict.fromkeys(_OF_LABELS, inline_widened)
