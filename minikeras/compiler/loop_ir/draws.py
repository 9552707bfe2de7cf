"""Draws: a point makes the words of a block, and of them 8 elements of a mask, 4 numbers, or 2 in float64.

Gamma, beta, Poisson and binomial numbers have no nests: they are drawn on the host, see `nn_ops/draws.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import Record
from ...nn_ops.philox4x32 import QUANTILE, WITHIN_TWO, threshold, words_of_integer
from ..ir import Slot
from .bodies import constant, converted
from .expression import Axis, Expr, apply, cast, lift, maximum, minimum, register, where
from .moves import Names, element_nest
from .nest import Fold, For, Store
from .strided import Lowered, NestWriter, contiguous, place

WORD, TWO = np.dtype(np.uint32), np.dtype(np.uint64)
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def next_key(record: Record) -> list[Lowered]:
    """The second integer of each key moves on; the first may be mixed with another one."""
    key, y, mix = record.inputs[0], record.outputs, record.params.get("mix", 0)

    def value(writer: NestWriter, names: Names) -> Expr:
        number = cast(writer.array(key)[names[0]], TWO)
        second = apply("equal", names[0] % 2, 1)
        return where(second, number + 1, apply("bitwise_xor", number, constant(mix, TWO)))

    return [element_nest(record.primitive.name, y, value, (math.prod(y.shape),))]


def _words(writer: NestWriter, key: Slot, block: Expr) -> list[Expr]:
    seed, position = [cast(writer.array(key)[n], TWO) for n in range(2)]
    made = Expr("philox", (seed, position, block), WORD)
    return [Expr("word", (made,), WORD, n) for n in range(4)]


def _per_block(
    record: Record, count: int, values: Callable[[Sequence[Expr]], Sequence[Expr]], x: Slot | None = None
) -> list[Lowered] | None:
    """A nest whose points write `count` elements each: those that `values` makes of the words of a block, times those of x."""
    key, y = record.inputs[-1], record.outputs
    if key.shape != (2,):
        return None
    size, writer = math.prod(y.shape), NestWriter()
    begin, before = divmod(record.params.get("start", 0), count)
    b = Axis(-(-(before + size) // count))
    words = _words(writer, key, cast(b, TWO) + constant(begin, TWO))
    made = [converted(value, y.dtype) for value in values(words)]
    kept = [register(y.dtype) for _ in made]
    first = maximum(before - b * count, 0) if before else lift(0)
    j = Axis(minimum(before + size - b * count, count) - first, "sequential")
    chosen = kept[-1]
    for number, value in reversed(list(enumerate(kept[:-1]))):
        chosen = where(apply("equal", first + j, number), value, chosen)
    at = b * count + first + j - before
    result = chosen if x is None else writer.array(x)[at] * chosen
    store = For(j, [Store(writer.result(y), at, converted(result, y.dtype))])
    makes = [Fold(to, "set", value) for to, value in zip(kept, made, strict=True)]
    return [writer.lowered(record.primitive.name, For(b, [*makes, store]))]


# Numbers of words -----------------------------------------------------------------------------------------------------------


def _two(words: Sequence[Expr]) -> list[Expr]:
    """Words of 64 bits."""
    pairs = zip(words[::2], words[1::2], strict=True)
    high = constant(32, TWO)
    return [apply("bitwise_or", cast(low, TWO), apply("left_shift", cast(upper, TWO), high)) for low, upper in pairs]


def _half(words: Sequence[Expr], j: Expr | int) -> Expr:
    """The 16 bits that decide about element j of the 8 of a block."""
    if isinstance(j, int):
        return apply("bitwise_and", apply("right_shift", words[j // 2], j % 2 * 16), 0xFFFF)
    halves = [_half(words, number) for number in range(8)]
    found = halves[-1]
    for number, half in enumerate(halves[:-1]):
        found = where(apply("equal", j, number), half, found)
    return found


def _kept(record: Record, dtype: Any, half: Expr) -> Expr:
    """The element of a mask that 16 bits decide about."""
    rate = record.params["rate"]
    scale = np.asarray(1.0 / (1.0 - rate), dtype)  # rounded once
    return where(half >= threshold(rate), constant(scale, dtype), constant(0, dtype))


def _normals(dtype: Any, words: Sequence[Expr]) -> list[Expr]:
    """Two normal numbers of two words, after Box and Muller."""
    kind, bits, words = (DOUBLE, 64, _two(words)) if dtype.itemsize == 8 else (SINGLE, 32, words)
    turn = 2.0 * math.pi * 2.0**-64 if kind == DOUBLE else float(np.float32(2.0 * math.pi)) * 2.0**-32
    found = []
    for a, b in zip(words[::2], words[1::2], strict=True):
        log = Expr("log", (cast(a, kind) * 2.0**-bits + 2.0 ** -(bits + 1),), kind)
        radius, angle = Expr("sqrt", (-2.0 * log,), kind), cast(b, kind) * turn
        found += [radius * Expr(name, (angle,), kind) for name in ("cos", "sin")]
    return found


def _truncated(wide: bool, word: Expr) -> Expr:
    """A normal number within two standard deviations, by a polynomial for the quantile."""
    kind, signed, bits = (DOUBLE, np.dtype(np.int64), 63) if wide else (SINGLE, np.dtype(np.int32), 31)
    scale = 2.0**-bits * (WITHIN_TWO if wide else float(np.float32(WITHIN_TWO)))
    centre, first, *others = QUANTILE[wide]
    x = (cast(cast(word, signed), kind) + 0.5) * scale
    log = Expr("log", ((1.0 - x) * (1.0 + x),), kind)
    v = Expr("negative", (log,), kind) - centre
    p = constant(first, kind)
    for coefficient in others:
        p = p * v + coefficient
    z = p * x * math.sqrt(2.0)
    low, high = constant(-2.0, kind), constant(2.0, kind)
    return where(z < low, low, where(high < z, high, z))


def _upper_product(x: Expr, y: Expr) -> Expr:
    """The upper 64 of the 128 bits of a product."""

    def low(a: Expr) -> Expr:
        return apply("bitwise_and", a, 0xFFFFFFFF)

    def high(a: Expr) -> Expr:
        return apply("right_shift", a, 32)

    middle = high(x) * low(y) + high(low(x) * low(y))
    return high(x) * high(y) + high(middle) + high(low(x) * high(y) + low(middle))


def _integer(words: Sequence[Expr], span: int) -> Expr:
    """One of `span` integers, of so many words; a span of 0 stands for 2**64."""
    if len(words) == 1:
        return apply("right_shift", cast(words[0], TWO) * constant(span, TWO), 32)
    numbers = _two(words)
    if not span % 2**64:
        return numbers[-1]
    upper, low = _upper_product(numbers[-1], constant(span, TWO)), numbers[-1] * constant(span, TWO)
    if len(words) == 2:
        return upper
    carried = low + _upper_product(numbers[0], constant(span, TWO))
    return upper + cast(carried < low, TWO)


# Instructions ----------------------------------------------------------------------------------------------------------------


def dropout_mask(record: Record, x: Slot | None = None) -> list[Lowered] | None:
    """0 or 1 / (1 - rate), perhaps times x."""
    y = record.outputs
    return _per_block(record, 8, lambda words: [_kept(record, y.dtype, _half(words, j)) for j in range(8)], x)


def times_dropout_mask(record: Record) -> list[Lowered] | None:
    """An array times a mask, which may be broadcast."""
    (x, key), y, shape = record.inputs, record.outputs, tuple(record.params["shape"])
    if shape == y.shape:
        return dropout_mask(record, x)
    if key.shape != (2,) or x.shape != y.shape or len(shape) != len(y.shape):
        return None

    def value(writer: NestWriter, names: Names) -> Expr:
        strides = [0 if own == 1 else stride for own, stride in zip(shape, contiguous(shape), strict=True)]
        at = cast(place(strides, names), TWO) + constant(record.params.get("start", 0), TWO)
        words = _words(writer, key, apply("right_shift", at, 3))
        mask = _kept(record, y.dtype, _half(words, apply("bitwise_and", at, 7)))
        return writer.array(x)[place(contiguous(y.shape), names)] * mask

    return [element_nest(record.primitive.name, y, value)]


def random_uniform(record: Record) -> list[Lowered] | None:
    """Numbers in [0, 1) with all the binary digits that the dtype has."""
    digits = {"float32": 24, "float16": 11, "bfloat16": 8}.get(record.outputs.dtype.name)
    if digits is None:
        return _per_block(record, 2, lambda words: [cast(apply("right_shift", w, 11), DOUBLE) * 2.0**-53 for w in _two(words)])
    of = lambda w: cast(apply("right_shift", w, 32 - digits), SINGLE) * 2.0**-digits
    return _per_block(record, 4, lambda words: list(map(of, words)))


def random_normal(record: Record) -> list[Lowered] | None:
    """Numbers of the standard normal distribution."""
    dtype = record.outputs.dtype
    return _per_block(record, 2 if dtype.itemsize == 8 else 4, functools.partial(_normals, dtype))


def random_truncated_normal(record: Record) -> list[Lowered] | None:
    """Those within two standard deviations."""
    if record.outputs.dtype.itemsize == 8:
        return _per_block(record, 2, lambda words: [_truncated(True, w) for w in _two(words)])
    return _per_block(record, 4, lambda words: [_truncated(False, w) for w in words])


def random_integers(record: Record) -> list[Lowered] | None:
    """Integers from `low` on."""
    low, span = [record.params[name] % 2**64 for name in ("low", "span")]
    n = words_of_integer(record.params["span"])
    of = lambda words: [constant(low, TWO) + _integer(words[j : j + n], span) for j in range(0, 4, n)]
    return _per_block(record, 4 // n, of)


def times_gaussian(record: Record) -> list[Lowered] | None:
    """An array times normal numbers around 1."""
    x, y = record.inputs[0], record.outputs
    if tuple(record.params["shape"]) != y.shape:
        return None
    kind = DOUBLE if y.dtype.itemsize == 8 else SINGLE
    deviation = constant(record.params["stddev"], kind)
    return _per_block(
        record, 2 if kind == DOUBLE else 4, lambda words: [z * deviation + 1.0 for z in _normals(y.dtype, words)], x
    )
