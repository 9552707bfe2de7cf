"""Draws as CUDA C: a thread makes the words of a block, and of them 8 elements of a mask, 4 numbers, or 2 in float64.

Gamma, beta, Poisson and binomial numbers have no kernels: they are drawn on the host, see `nn_ops/draws.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core import Record
from ....core.registry import operations as o
from ....nn_ops.philox4x32 import threshold, words_of_integer
from ...ir import Slot
from .functions import cast, literal
from .kernels import Source, blocks_for, contiguous, each_element
from .moves import element_kernel
from .nodes import Kernel

Row = Callable[[Any, Record], list[Kernel] | None]


def _next_key(emitter: Any, record: Record) -> list[Kernel]:
    """The second integer of each key moves on; the first may be mixed with another one."""
    key, y = record.inputs[0], record.outputs
    flat, mix = Slot(y.key, (math.prod(y.shape),), y.dtype), record.params.get("mix", 0)

    def value(source: Source, names: Any) -> str:
        word = source.load(key, "i")
        return f"(i & 1 ? {word} + 1 : {word} ^ {mix}ULL)"

    kernel = element_kernel(record.primitive.name, flat, value)
    return [kernel._replace(outputs=(y,))]


def _per_block(record: Record, count: int, write: Callable[[Source, Slot], str], x: Slot | None = None) -> list[Kernel] | None:
    """A kernel whose threads write `count` elements of each block; `write` gives the expression of element `j`."""
    key, y = record.inputs[-1], record.outputs
    if key.shape != (2,):
        return None
    size, source = math.prod(y.shape), Source()
    begin, before = divmod(record.params.get("start", 0), count)
    threads = -(-(before + size) // count)
    i, _ = each_element(source, threads)
    _words(source, key, f"{i} + {begin}ULL" if begin else i)
    value = write(source, y)
    source.do(f"for (int j = 0; j < {count}; ++j) {{")
    source.do(f"const unsigned long long at = {count}ULL * {i} + j{f' - {before}ULL' if before else ''};")
    if before or size % count:
        source.do(f"if (at >= {size}ULL) {'continue' if before else 'break'};")  # below 0 it wraps
    source.store(y, "at", value if x is None else f"{source.load(x, 'at')} * ({value})")
    source.do("}", "}")
    return [source.kernel(record.primitive.name, blocks_for(threads))]


def _words(source: Source, key: Slot, block: str) -> None:
    source.do("unsigned w[4];", f"philox({source.load(key, '0')}, {source.load(key, '1')}, {block}, w);")


def _kept(record: Record, dtype: Any, half: str) -> str:
    """The element of a mask that 16 bits decide about."""
    rate = record.params["rate"]
    scale = np.asarray(1.0 / (1.0 - rate), dtype)  # rounded once
    return f"{half} >= {threshold(rate)}u ? {literal(scale, dtype)} : 0"


def _mask(emitter: Any, record: Record) -> list[Kernel] | None:
    return _per_block(record, 8, lambda source, y: _kept(record, y.dtype, "half_of(w, j)"))


def _times_mask(emitter: Any, record: Record) -> list[Kernel] | None:
    x, key = record.inputs
    y, shape = record.outputs, tuple(record.params["shape"])
    if shape == y.shape:
        return _per_block(record, 8, lambda source, y: _kept(record, y.dtype, "half_of(w, j)"), x)
    if key.shape != (2,) or x.shape != y.shape or len(shape) != len(y.shape):
        return None

    def value(source: Source, names: Any) -> str:
        strides = [0 if own == 1 else stride for own, stride in zip(shape, contiguous(shape), strict=True)]
        terms = [f"{s}ULL * {n}" for s, n in zip(strides, names, strict=True)]
        start = record.params.get("start", 0)
        source.do(f"const unsigned long long at = {' + '.join([*terms, *[f'{start}ULL'] * bool(start)])};")
        _words(source, key, "at / 8")
        return f"{source.load(x, 'i')} * ({_kept(record, y.dtype, 'half_of(w, (int)(at % 8))')})"

    return [element_kernel(record.primitive.name, y, value)]


def _uniform(emitter: Any, record: Record) -> list[Kernel] | None:
    own = {"float32": 24, "float16": 11, "bfloat16": 8}.get(record.outputs.dtype.name)
    if own is None:
        return _per_block(record, 2, lambda source, y: "uniform_of(two_of(w, j))")
    return _per_block(record, 4, lambda source, y: f"uniform_of(w[j], {own})")


def _normals(source: Source, dtype: Any) -> int:
    """Write what makes the normal numbers `z` of a block; how many there are."""
    if dtype.itemsize == 8:
        source.do("double z[2];", "normal_of(two_of(w, 0), two_of(w, 1), z);")
        return 2
    source.do("float z[4];", "normal_of(w[0], w[1], z);", "normal_of(w[2], w[3], z + 2);")
    return 4


def _normal(emitter: Any, record: Record) -> list[Kernel] | None:
    def write(source: Source, y: Slot) -> str:
        _normals(source, y.dtype)
        return "z[j]"

    return _per_block(record, 2 if record.outputs.dtype.itemsize == 8 else 4, write)


def _truncated_normal(emitter: Any, record: Record) -> list[Kernel] | None:
    if record.outputs.dtype.itemsize == 8:
        return _per_block(record, 2, lambda source, y: "truncated_of((long long)two_of(w, j))")
    return _per_block(record, 4, lambda source, y: "truncated_of((int)w[j])")


def _integers(emitter: Any, record: Record) -> list[Kernel] | None:
    low, span = [record.params[name] % 2**64 for name in ("low", "span")]
    words = words_of_integer(record.params["span"])

    def write(source: Source, y: Slot) -> str:
        return cast(f"{low}ULL + integer_of(w + {words} * j, {words}, {span}ULL)", np.dtype("uint64"), y.dtype)

    return _per_block(record, 4 // words, write)


def _times_gaussian(emitter: Any, record: Record) -> list[Kernel] | None:
    x, y = record.inputs[0], record.outputs
    if tuple(record.params["shape"]) != y.shape:
        return None

    def write(source: Source, y: Slot) -> str:
        _normals(source, y.dtype)
        own = np.dtype("float64" if y.dtype.itemsize == 8 else "float32")
        return cast(f"z[j] * {literal(record.params['stddev'], own)} + 1", own, y.dtype)

    return _per_block(record, 2 if y.dtype.itemsize == 8 else 4, write, x)


def rows() -> dict[Any, Row]:
    """By primitive."""
    return {
        **{o.next_key: _next_key, o.operation_key: _next_key, o.random_integers: _integers},
        **{o.dropout_mask: _mask, o.times_dropout_mask: _times_mask, o.times_gaussian: _times_gaussian},
        **{o.random_uniform: _uniform, o.random_normal: _normal, o.random_truncated_normal: _truncated_normal},
    }
