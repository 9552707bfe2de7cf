"""Preparation of a program of a device before its nodes are made."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core import Primitive, Record, namespace, operations, read_variable
from ...ir import Program, Slot, outputs_of, slots_in
from ...loop_ir.reductions import copy_body, is_float, wide
from ...loops import loop, traced
from ...passes.inlining import FOR_GRAPHS, Writer, add_at, inline, take_at
from ...planning import DEVICE_ALIGNMENT


def rounded(size: int) -> int:
    """A size rounded up to the alignment of pieces of memory."""
    return -(-size // DEVICE_ALIGNMENT) * DEVICE_ALIGNMENT


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


# Softmax and its losses as loops and reductions over rows, of which a group makes one kernel --------------------------------


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


def compare_columns(program: Program) -> Program:
    """The program without elements of rows at columns: each element compares its column, so that it can join a group."""
    writer, places = Writer(program), dict[int, Slot]()
    for record in program.records:
        if record.primitive not in (take_at, add_at):
            writer.records.append(record)
            continue
        (x, columns), y = record.inputs, record.outputs
        shape, count, number = (x.shape[0], 1), x.shape[1], record.params.get("number")
        if count not in places:
            places[count] = writer.slot((count,), np.dtype(np.int64))
            places[count].array = np.arange(count)
        own = writer.write_once(operations.reshape, [columns], {"shape": shape, "rank": 1}, shape, columns.dtype)

        def chosen(x: Any, column: Any, place: Any, count: int = count, number: Any = number) -> Any:
            at = column.astype(place.dtype)
            hit = np.where(at < 0, at + count, at) == place
            return np.where(hit, x, 0) if number is None else np.where(hit, x + number, x)

        body = traced(chosen, [x.dtype, columns.dtype, np.dtype(np.int64)])
        elements = y if number is not None else writer.slot(x.shape, x.dtype)
        writer.write(loop, [x, own, places[count]], {"body": body}, (elements,))
        if number is None:
            writer.write(operations.reduce_sum, [elements], {"axes": (-1,), "keepdims": False}, y)
    return program.with_records(writer.records)
