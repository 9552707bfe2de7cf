"""Convolutions become products of matrices, which a library carries out: windows are written out as rows, and added up again.

Rows are written anew for the gradient of a kernel: kept from the forward pass they would take as many times the memory of
their source as a window has elements.

Source: Chellapilla, Puri and Simard (2006), High Performance Convolutional Neural Networks for Document Processing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

from ...core import Primitive, Record
from ...core.precision import is_short
from ...core.registry import operations
from ...types import Array
from ..ir import Program, Slot, instruction, slots_in
from .expansion import Writer

Sizes = tuple[int, ...]


def _parts(count: Sizes, window: Sizes, strides: Sizes, dilation: Sizes) -> Iterator[tuple[slice, ...]]:
    """For each element of the window, what lies under it in all places."""
    for position in itertools.product(*map(range, window)):
        firsts = [within * spread for within, spread in zip(position, dilation, strict=True)]
        yield tuple([slice(i, i + step * (n - 1) + 1, step) for i, step, n in zip(firsts, strides, count, strict=True)])


@instruction()
def windows_as_rows(xp: Any, x: Array, *, window: Sizes, count: Sizes, strides: Sizes, padding: Any, dilation: Sizes) -> Array:
    """What lies under a window in all places, (batch * places, window * channels)."""
    whole = xp.pad(x, ((0, 0), *padding, (0, 0)))
    parts = [whole[:, *key] for key in _parts(count, window, strides, dilation)]
    return xp.stack(parts, -2).reshape(-1, math.prod(window) * x.shape[-1])


@instruction()
def add_rows_of_windows(
    xp: Any, rows: Array, *, sizes: Sizes, window: Sizes, count: Sizes, strides: Sizes, padding: Any, dilation: Sizes
) -> Array:
    """The transpose: each element is the sum of those that were read from it."""
    channels = rows.shape[-1] // math.prod(window)
    split = rows.reshape(-1, *count, math.prod(window), channels)
    padded = [n + sum(pair) for n, pair in zip(sizes, padding, strict=True)]
    whole = xp.zeros((len(split), *padded, channels), rows.dtype)
    for number, key in enumerate(_parts(count, window, strides, dilation)):
        whole[:, *key] += split[..., number, :]
    return whole[:, *[slice(before, before + n) for (before, _), n in zip(padding, sizes, strict=True)]]


def lower_convolutions(program: Program) -> Program:
    """The program with products of matrices instead of convolutions of one group."""
    writer, rules = Writer(program), _rules()
    for record in program.records:
        rule = rules.get(record.primitive)
        if rule is None or not _is_product(record):
            writer.keep(record)
        else:
            rule(writer, record)
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


def _matrix(writer: Writer, x: Slot, columns: int) -> Slot:
    """An array as a matrix of so many columns."""
    shape = math.prod(x.shape) // columns, columns
    matrix = writer.slot(shape, x.dtype)
    writer.write(operations.reshape, [x], {"shape": shape, "rank": len(x.shape)}, matrix)
    return matrix


def _transposed(writer: Writer, x: Slot) -> Slot:
    turned = writer.slot(x.shape[::-1], x.dtype)
    writer.write(operations.transpose, [x], {"perm": (-1, -2)}, turned)
    return turned


def _product(writer: Writer, a: Slot, b: Slot) -> Slot:
    product = writer.slot((a.shape[0], b.shape[1]), a.dtype)
    writer.write(operations.matrix_product, [a, b], {}, product)
    return product


def _reshaped(writer: Writer, x: Slot, y: Slot) -> None:
    writer.write(operations.reshape, [x], {"shape": y.shape, "rank": len(x.shape)}, y)


def _as_rows(writer: Writer, x: Slot, geometry: dict[str, Any]) -> Slot:
    width = math.prod(geometry["window"]) * x.shape[-1]
    if not any(map(any, geometry["padding"])) and set(geometry["window"]) | set(geometry["strides"]) == {1}:
        return _matrix(writer, x, width)
    rows = writer.slot((x.shape[0] * math.prod(geometry["count"]), width), x.dtype)
    writer.write(windows_as_rows, [x], geometry, rows)
    return rows


def _convolve_by_product(writer: Writer, record: Record) -> None:
    (x, kernel), y = record.inputs, record.outputs
    rows = _as_rows(writer, x, _geometry(record, kernel.shape[:-2], y.shape[1:-1]))
    _reshaped(writer, _product(writer, rows, _matrix(writer, kernel, kernel.shape[-1])), y)


def _correlate_by_product(writer: Writer, record: Record) -> None:
    (x, g), y = record.inputs, record.outputs
    rows = _as_rows(writer, x, _geometry(record, record.params["window"], g.shape[1:-1]))
    _reshaped(writer, _product(writer, _transposed(writer, rows), _matrix(writer, g, g.shape[-1])), y)


def _spread_by_product(writer: Writer, record: Record) -> None:
    (g, kernel), y = record.inputs, record.outputs
    matrix = _transposed(writer, _matrix(writer, kernel, kernel.shape[-1]))
    rows = _product(writer, _matrix(writer, g, g.shape[-1]), matrix)
    geometry = _geometry(record, kernel.shape[:-2], g.shape[1:-1])
    writer.write(add_rows_of_windows, [rows], geometry | {"sizes": tuple(y.shape[1:-1])}, y)


def _rules() -> dict[Primitive, Callable[[Writer, Record], None]]:
    return {
        operations.convolve: _convolve_by_product,
        operations.correlate_windows: _correlate_by_product,
        operations.spread_windows: _spread_by_product,
    }
