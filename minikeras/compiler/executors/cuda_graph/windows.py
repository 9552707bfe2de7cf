"""Pools and convolutions: for each result the sum, or another fold, of what lies under its window or reaches it from one.

Convolutions here have groups or leading axes; others are products of matrices.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ....core import Primitive, Record
from ....core.registry import operations
from ....types import Array
from ...ir import Program, Slot, slots_in
from ...passes.expansion import Writer
from .functions import computed, is_float, literal
from .kernels import Fold, Reduced, Source, Values, contiguous, fold_of, place, reduction_kernels, wide
from .moves import element_kernel
from .nodes import Kernel


class Geometry:
    """Where windows lie: for each axis the width of the window, its step, what is added in front, and the dilation."""

    def __init__(self, window: Sequence[int], params: dict[str, Any]) -> None:
        self.window = tuple(window)
        self._strides, self._dilation = params["strides"], params["dilation"]
        self._before = [before for before, _ in params["padding"]]

    def under(
        self, source: Source, places: Sequence[str], inside: Sequence[str], sizes: Sequence[int]
    ) -> tuple[str, list[str]]:
        """What lies under an element of the window at a place: whether there is anything, and its coordinates."""
        names, tests = [], []
        for axis, (at, within, size) in enumerate(zip(places, inside, sizes, strict=True)):
            name = f"p{axis}"
            source.do(
                f"const long long {name} = (long long){at} * {self._strides[axis]}"
                f" + (long long){within} * {self._dilation[axis]} - {self._before[axis]};"
            )
            tests.append(f"{name} >= 0 && {name} < {size}")
            names.append(name)
        return " && ".join(tests), names

    def reaching(
        self, source: Source, coordinates: Sequence[str], inside: Sequence[str], places: Sequence[int]
    ) -> tuple[str, list[str]]:
        """The place from which an element of the window reaches coordinates: whether there is one, and its own coordinates."""
        names, tests = [], []
        for axis, (at, within, count) in enumerate(zip(coordinates, inside, places, strict=True)):
            step, name = self._strides[axis], f"q{axis}"
            back = f"{self._before[axis]} - (long long){within} * {self._dilation[axis]}"
            source.do(f"const long long d{axis} = (long long){at} + {back};", f"const long long {name} = d{axis} / {step};")
            tests.append(f"d{axis} >= 0 && {name} < {count}" + (f" && d{axis} % {step} == 0" if step > 1 else ""))
            names.append(name)
        return " && ".join(tests), names


def _where(names: Sequence[str], shape: Sequence[int]) -> str:
    return place(0, contiguous(shape), names)


def _numbered(inside: Sequence[str], window: Sequence[int]) -> str:
    return f"(int)({_where(inside, window)})"


def _folded(emitter: Any, label: str, y: Slot, folded: tuple[int, ...], values: Values, fold: Fold) -> list[Kernel]:
    return reduction_kernels(label, y.shape, folded, values, False, [Reduced(0, fold, y)], emitter.temporary)


def _value(source: Source, dtype: Any, exists: str, value: str, missing: str) -> list[tuple[str, Any]]:
    """A value that may not be there; it is read only if it is."""
    source.do(f"{computed(dtype)} v = {missing};", f"if ({exists}) v = {value};")
    return [("v", dtype)]


# Pools ---------------------------------------------------------------------------------------------------------------------


def _pool(name: str) -> Callable[[Any, Record], list[Kernel] | None]:
    """Over the elements of each window; those of the padding are zeros, or what no maximum prefers."""

    def lower(emitter: Any, record: Record) -> list[Kernel] | None:
        x, y = record.inputs[0], record.outputs
        geometry = Geometry(record.params["window"], record.params)
        rank = len(geometry.window)
        picks = record.primitive is operations.pick_from_window
        fold = fold_of({"first": "argmax", "largest": "max"}.get(name, "sum"), x.dtype)
        lowest = fold_of("max", x.dtype).start if name in ("first", "largest") else "0"

        def values(source: Source, names: Sequence[str], inside: Sequence[str]) -> list[tuple[str, Any]]:
            lead, places, channel = names[: -rank - 1], names[-rank - 1 : -1], names[-1]
            exists, at = geometry.under(source, places, inside, x.shape[-rank - 1 : -1])
            if picks:
                chosen = source.load(record.inputs[1], _where(names, y.shape))
                exists += f" && {chosen} == {_numbered(inside, geometry.window)}"
            return _value(source, x.dtype, exists, source.load(x, _where([*lead, *at, channel], x.shape)), lowest)

        return _folded(emitter, record.primitive.name, y, geometry.window, values, fold)

    return lower


def _unpool(emitter: Any, record: Record) -> list[Kernel] | None:
    """Each element gets what the windows over it hold, or of those that chose it."""
    g, y = record.inputs[0], record.outputs
    geometry = Geometry(record.params["window"], record.params)
    rank = len(geometry.window)
    puts = record.primitive is operations.put_into_window

    def values(source: Source, names: Sequence[str], inside: Sequence[str]) -> list[tuple[str, Any]]:
        lead, coordinates, channel = names[: -rank - 1], names[-rank - 1 : -1], names[-1]
        exists, at = geometry.reaching(source, coordinates, inside, g.shape[-rank - 1 : -1])
        where = _where([*lead, *at, channel], g.shape)
        if puts:
            exists += f" && {source.load(record.inputs[1], where)} == {_numbered(inside, geometry.window)}"
        return _value(source, g.dtype, exists, source.load(g, where), "0")

    return _folded(emitter, record.primitive.name, y, geometry.window, values, fold_of("sum", g.dtype))


# Convolutions --------------------------------------------------------------------------------------------------------------


def _split(name: str, each: int) -> tuple[str, str]:
    """The group of a channel, and its number within."""
    return f"({name} / {each})", f"({name} % {each})"


def _convolve(emitter: Any, record: Record) -> list[Kernel] | None:
    (x, kernel), y, groups = record.inputs, record.outputs, record.params["groups"]
    rank = len(record.params["strides"])
    if len(x.shape) != rank + 2 or len(kernel.shape) != rank + 2:
        return None
    geometry = Geometry(kernel.shape[:rank], record.params)
    inner, outputs = kernel.shape[-2], kernel.shape[-1] // groups

    def values(source: Source, names: Sequence[str], inside: Sequence[str]) -> list[tuple[str, Any]]:
        exists, at = geometry.under(source, names[1:-1], inside[:-1], x.shape[1:-1])
        group, _ = _split(names[-1], outputs)
        channel = f"({group} * {inner} + {inside[-1]})" if groups > 1 else inside[-1]
        value = source.load(x, _where([names[0], *at, channel], x.shape))
        factor = source.load(kernel, _where([*inside, names[-1]], kernel.shape))
        return _value(source, wide(y.dtype), exists, f"{value} * {factor}", "0")

    return _folded(emitter, "convolve", y, (*geometry.window, inner), values, fold_of("sum", wide(y.dtype)))


def _spread(emitter: Any, record: Record) -> list[Kernel] | None:
    (g, kernel), y, groups = record.inputs, record.outputs, record.params["groups"]
    rank = len(record.params["strides"])
    if len(g.shape) != rank + 2 or len(kernel.shape) != rank + 2:
        return None
    geometry = Geometry(kernel.shape[:rank], record.params)
    inner, outputs = kernel.shape[-2], kernel.shape[-1] // groups

    def values(source: Source, names: Sequence[str], inside: Sequence[str]) -> list[tuple[str, Any]]:
        exists, at = geometry.reaching(source, names[1:-1], inside[:-1], g.shape[1:-1])
        group, channel = _split(names[-1], inner)
        output = f"({group} * {outputs} + {inside[-1]})" if groups > 1 else inside[-1]
        value = source.load(g, _where([names[0], *at, output], g.shape))
        factor = source.load(kernel, _where([*inside[:-1], channel, output], kernel.shape))
        return _value(source, wide(y.dtype), exists, f"{value} * {factor}", "0")

    return _folded(emitter, "spread_windows", y, (*geometry.window, outputs), values, fold_of("sum", wide(y.dtype)))


def _correlate(emitter: Any, record: Record) -> list[Kernel] | None:
    (x, g), y, groups = record.inputs, record.outputs, record.params["groups"]
    rank = len(record.params["strides"])
    if len(x.shape) != rank + 2 or len(g.shape) != rank + 2:
        return None
    geometry = Geometry(record.params["window"], record.params)
    inner, outputs = x.shape[-1] // groups, g.shape[-1] // groups

    def values(source: Source, names: Sequence[str], inside: Sequence[str]) -> list[tuple[str, Any]]:
        exists, at = geometry.under(source, inside[1:], names[:-2], x.shape[1:-1])
        group, _ = _split(names[-1], outputs)
        channel = f"({group} * {inner} + {names[-2]})" if groups > 1 else names[-2]
        value = source.load(x, _where([inside[0], *at, channel], x.shape))
        factor = source.load(g, _where([*inside, names[-1]], g.shape))
        return _value(source, wide(y.dtype), exists, f"{value} * {factor}", "0")

    return _folded(emitter, "correlate_windows", y, tuple(g.shape[:-1]), values, fold_of("sum", wide(y.dtype)))


# Convolutions as products -------------------------------------------------------------------------------------------------


def _windows_as_rows(emitter: Any, record: Record) -> list[Kernel] | None:
    x, y, params = record.inputs[0], record.outputs, record.params
    geometry, rank = Geometry(params["window"], params), len(params["window"])
    whole = Slot(y.key, (x.shape[0], *params["count"], *params["window"], x.shape[-1]), y.dtype)

    def value(source: Source, names: Sequence[str]) -> str:
        exists, at = geometry.under(source, names[1 : rank + 1], names[rank + 1 : -1], x.shape[1:-1])
        return f"{exists} ? {source.load(x, _where([names[0], *at, names[-1]], x.shape))} : {literal(0, x.dtype)}"

    return [element_kernel("windows", whole, value)._replace(outputs=(y,))]


def _add_rows_of_windows(emitter: Any, record: Record) -> list[Kernel] | None:
    rows, y, params = record.inputs[0], record.outputs, record.params
    geometry = Geometry(params["window"], params)
    shape = (y.shape[0], *params["count"], *params["window"], y.shape[-1])

    def values(source: Source, names: Sequence[str], inside: Sequence[str]) -> list[tuple[str, Any]]:
        exists, at = geometry.reaching(source, names[1:-1], inside, params["count"])
        return _value(source, y.dtype, exists, source.load(rows, _where([names[0], *at, *inside, names[-1]], shape)), "0")

    return _folded(emitter, "add_windows", y, geometry.window, values, fold_of("sum", y.dtype))


def rows() -> dict[Any, Callable[[Any, Record], list[Kernel] | None]]:
    """By primitive."""
    o = operations
    return {
        **{o.max_pool: _pool("largest"), o.first_largest_in_window: _pool("first"), o.window_sum: _pool("sum")},
        **{o.pick_from_window: _pool("sum"), o.put_into_window: _unpool, o.window_spread: _unpool},
        **{windows_as_rows: _windows_as_rows, add_rows_of_windows: _add_rows_of_windows},
        **{o.convolve: _convolve, o.spread_windows: _spread, o.correlate_windows: _correlate},
    }


# Convolutions become products of matrices, which the library carries out: windows are written out as rows, and added up again.
#
# Rows are written anew for the gradient of a kernel: kept from the forward pass they would take as many times the memory of
# their source as a window has elements.
#
# Source: Chellapilla, Puri and Simard (2006), High Performance Convolutional Neural Networks for Document Processing.

Sizes = tuple[int, ...]


def _parts(count: Sizes, window: Sizes, strides: Sizes, dilation: Sizes) -> Iterator[tuple[slice, ...]]:
    """For each element of the window, what lies under it in all places."""
    for position in itertools.product(*map(range, window)):
        firsts = [within * spread for within, spread in zip(position, dilation, strict=True)]
        yield tuple([slice(i, i + step * (n - 1) + 1, step) for i, step, n in zip(firsts, strides, count, strict=True)])


def _windows(xp: Any, x: Array, *, window: Sizes, count: Sizes, strides: Sizes, padding: Any, dilation: Sizes) -> Array:
    whole = xp.pad(x, ((0, 0), *padding, (0, 0)))
    parts = [whole[:, *key] for key in _parts(count, window, strides, dilation)]
    return xp.stack(parts, -2).reshape(-1, math.prod(window) * x.shape[-1])


def _add_windows(
    xp: Any, rows: Array, *, sizes: Sizes, window: Sizes, count: Sizes, strides: Sizes, padding: Any, dilation: Sizes
) -> Array:
    channels = rows.shape[-1] // math.prod(window)
    split = rows.reshape(-1, *count, math.prod(window), channels)
    padded = [n + sum(pair) for n, pair in zip(sizes, padding, strict=True)]
    whole = xp.zeros((len(split), *padded, channels), rows.dtype)
    for number, key in enumerate(_parts(count, window, strides, dilation)):
        whole[:, *key] += split[..., number, :]
    return whole[:, *[slice(before, before + n) for (before, _), n in zip(padding, sizes, strict=True)]]


def _unregistered(name: str, kernel: Callable[..., Array]) -> Primitive:
    return Primitive(name, lambda xp: functools.partial(kernel, xp), differentiable=False, uniform=False, registered=False)


windows_as_rows = _unregistered("windows_as_rows", _windows)
"""What lies under a window in all places, (batch * places, window * channels)."""
add_rows_of_windows = _unregistered("add_rows_of_windows", _add_windows)
"""The transpose: each element is the sum of those that were read from it."""


def lower_convolutions(program: Program) -> Program:
    """The program with products of matrices instead of convolutions of one group."""
    writer = Writer(program)
    for record in program.records:
        rule = _RULES.get(record.primitive)
        if rule is None or not _is_product(record):
            writer.keep(record)
        else:
            rule(writer, record)
    return program.with_records(writer.records)


def _is_product(record: Record) -> bool:
    rank, slots = len(record.params["strides"]) + 2, [*slots_in(record.inputs), record.outputs]
    simple = record.params["groups"] == 1 and len({x.dtype for x in slots}) == 1
    return simple and is_float(slots[0].dtype) and all(len(x.shape) == rank and 0 not in x.shape for x in slots)


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


_RULES: dict[Primitive, Callable[[Writer, Record], None]] = {
    operations.convolve: _convolve_by_product,
    operations.correlate_windows: _correlate_by_product,
    operations.spread_windows: _spread_by_product,
}
