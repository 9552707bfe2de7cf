"""Convolutions become matrix products of a library (im2col): windows are written out as rows, and added up again.

Rows are written anew for the gradient of a kernel: kept from the forward pass they would take as many times the memory of
their source as a window has elements.

Source: Chellapilla, Puri and Simard (2006), High Performance Convolutional Neural Networks for Document Processing.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from ...core import Record, is_short, operations
from ...nn_ops.convolution import offsets
from ...types import Array
from ..ir import Program, instruction, slots_in
from .inlining import TracedArray, Writer

Sizes = tuple[int, ...]


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
