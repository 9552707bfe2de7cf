"""Draws by Philox4x32-10 as in `nn_ops/philox4x32.py`, with the same bits: words of many blocks in scratch, then elements.

Gamma, beta, Poisson and binomial numbers have no nests: they are drawn on the host, see `nn_ops/draws.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import Record
from ...nn_ops.philox4x32 import INCREMENTS, MULTIPLIERS, QUANTILE, ROUNDS, WITHIN_TWO, threshold, words_of_integer
from ..ir import Slot
from .expression import Array, Axis, Expr, ScratchView, apply, cast, constant, converted, minimum, register, where
from .moves import Names, element_nest, whole
from .nest import Fold, For, Statement, Store
from .strided import Launch, NestWriter, contiguous, place

WHOLE = np.dtype(np.int32)
TWO = np.dtype(np.uint64)
"""The dtype of two words of 32 bits, and of products of two."""
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
LOW = (1 << 32) - 1
BLOCKS = 128
"""Blocks whose words are made before any is used: 2 KB, which stay in the nearest cache."""
FOR_GROUPS = 255
"""The same for a group of threads: with one more, of which only a part may be needed, a block for each."""

Piece = Callable[[Expr], Expr]
Element = Callable[[Piece, Expr], Expr]
"""An element of a draw, from what gives the piece of a number, as many bits as an element takes, and its own number."""


def _drawn(
    writer: NestWriter,
    record: Record,
    wide: int,
    element: Element,
    pair: Callable[[Expr, Expr], Sequence[Expr]] | None = None,
    x: Slot | None = None,
) -> list[Launch] | None:
    """The nest of a draw; None if each member of a stack has a key.

    Args:
        writer: of the nest.
        record: the instruction.
        wide: bits of an element.
        element: makes it.
        pair: makes of two neighbouring pieces two numbers, which `element` is given in their place.
        x: times which elements are taken.
    """
    key, y = record.inputs[-1], record.outputs
    if key.shape != (2,):
        return None
    count, start = writer.size(math.prod(y.shape)), writer.size(record.params.get("start", 0))
    blocks = FOR_GROUPS if writer.fixed else BLOCKS
    of_block, kind = 128 // wide, np.dtype(f"u{min(wide, 64) // 8}")
    words = Array("words", TWO, 2 * (blocks + 1))
    pieces, scratch = words, [words]
    if not writer.fixed and kind != TWO:
        pieces = ScratchView("pieces", kind, words)
        scratch.append(pieces)

    def cut(at: Expr) -> Expr:
        """A piece of so many bits of words of 64."""
        return cast(words[at // (64 // wide)] >> cast(at % (64 // wide) * wide, TWO), kind)

    piece = pieces.__getitem__ if pieces.dtype == kind else cut
    chunk, block = Axis((count + (blocks * of_block - 1)) // (blocks * of_block)), Axis(blocks + 1)
    begin: list[Statement] = []

    def kept(value: Expr) -> Expr:
        begin.append(Fold(known := register(TWO), "set", value))
        return known

    factor = None if x is None else writer.array(x)
    made = _words(writer.array(key), cast(chunk * blocks + block, TWO) + converted(start // of_block, TWO), kept)
    body: list[Statement] = [For(block, [Store(words, block * 2 + n, two) for n, two in enumerate(made)])]
    if pair is not None:
        half = Axis((blocks + 1) * (of_block // 2))
        both = pair(piece(half * 2), piece(half * 2 + 1))
        numbers = Array("numbers", both[0].dtype, (blocks + 1) * of_block)
        scratch.append(numbers)
        body.append(For(half, [Store(numbers, half * 2 + n, one) for n, one in enumerate(both)]))
        piece = numbers.__getitem__
    first = chunk * (blocks * of_block)
    i = Axis(minimum(count - first, blocks * of_block))
    value = element(piece, start % of_block + i)
    value = value if factor is None else factor[first + i] * converted(value, factor.dtype)
    body.append(For(i, [Store(writer.result(y), first + i, converted(value, y.dtype))]))
    return [writer.lowered(record.primitive.name, For(chunk, [*begin, *body]), scratch)]


def _words(keys: Array, number: Expr, kept: Callable[[Expr], Expr] = lambda x: x) -> list[Expr]:
    """The four words of a block in two pairs; what all blocks have in common can be kept."""
    seed, position = [cast(keys[n], TWO) for n in range(2)]
    halves, products = (_low(seed), _high(seed)), list[Expr]()
    x, z = [_low(number), kept(_low(position))], [_high(number), kept(_high(position))]
    for turn in range(ROUNDS):
        known = [kept(_low(word + (turn * step & LOW))) for word, step in zip(halves, INCREMENTS, strict=True)]
        products = [one * factor for one, factor in zip(x, MULTIPLIERS, strict=True)][::-1]
        x = [_high(product) ^ other ^ word for product, other, word in zip(products, z, known, strict=True)]
        z = [_low(product) for product in products]
    return [one | (other << 32) for one, other in zip(x, products, strict=True)]


def _low(x: Expr) -> Expr:
    return x & LOW


def _high(x: Expr) -> Expr:
    return x >> 32


# Numbers of pieces ----------------------------------------------------------------------------------------------------------


def _masked(writer: NestWriter, record: Record, half: Expr) -> Expr:
    """The element of a mask that 16 bits decide about: 0 or 1 / (1 - rate)."""
    rate = record.params["rate"]
    return where(
        cast(half, WHOLE) >= writer.number(threshold(rate), WHOLE), writer.number(1.0 / (1.0 - rate), record.outputs.dtype), 0.0
    )


def _fraction(digits: int, dtype: np.dtype[Any]) -> Element:
    """A number in [0, 1) with so many binary digits."""
    shift = 8 * dtype.itemsize - digits
    return lambda piece, at: cast(piece(at) >> shift, dtype) * 2.0**-digits


def _normals(a: Expr, b: Expr) -> list[Expr]:
    """Two normal numbers, by the Box-Muller transform."""
    kind, width = (DOUBLE, 64) if a.dtype == TWO else (SINGLE, 32)
    turn = 2.0 * math.pi * 2.0**-64 if kind == DOUBLE else float(np.float32(2.0 * math.pi)) * 2.0**-32
    log = apply("log", cast(a, kind) * 2.0**-width + 2.0 ** -(width + 1))
    radius, angle = apply("sqrt", -2.0 * log), cast(b, kind) * turn
    return [radius * Expr(name, (angle,), kind) for name in ("cos", "sin")]


def _truncated(piece: Piece, at: Expr) -> Expr:
    """A normal number within two standard deviations, by a polynomial for the quantile."""
    word = piece(at)
    wide = word.dtype == TWO
    kind, signed, width = (DOUBLE, np.dtype(np.int64), 63) if wide else (SINGLE, WHOLE, 31)
    scale = 2.0**-width * (WITHIN_TWO if wide else float(np.float32(WITHIN_TWO)))
    centre, first, *others = QUANTILE[wide]
    x = (cast(cast(word, signed), kind) + 0.5) * scale
    log = apply("log", (1.0 - x) * (1.0 + x))
    v = apply("negative", log) - centre
    p = constant(first, kind)
    for coefficient in others:
        p = p * v + coefficient
    z = p * x * math.sqrt(2.0)
    low, high = constant(-2.0, kind), constant(2.0, kind)
    return where(z < low, low, where(high < z, high, z))


def _upper_product(x: Expr, y: Expr) -> Expr:
    """The upper 64 of the 128 bits of a product."""
    middle = _high(x) * _low(y) + _high(_low(x) * _low(y))
    return _high(x) * _high(y) + _high(middle) + _high(_low(x) * _high(y) + _low(middle))


def _integer(words: int, span: int, piece: Piece, at: Expr) -> Expr:
    """One of `span` integers, from so many words; a span of 0 means 2**64."""
    if words == 1:
        return _high(cast(piece(at), TWO) * constant(span, TWO))
    last = piece(at if words == 2 else at * 2 + 1)
    if not span:
        return last
    upper, low = _upper_product(last, constant(span, TWO)), last * constant(span, TWO)
    if words == 2:
        return upper
    return upper + cast(low + _upper_product(piece(at * 2), constant(span, TWO)) < low, TWO)


# Instructions; sizes are constants if they are fixed -----------------------------------------------------------------------


def next_key(record: Record, fixed: bool = True) -> list[Launch]:
    """The keys of the draws that follow: the second integer is incremented; the first may be mixed with another one."""
    x, y, mix, writer = record.inputs[0], record.outputs, record.params.get("mix", 0) % 2**64, NestWriter(fixed)
    k, second = Axis(writer.size(math.prod(y.shape) // 2)), Axis(2)
    number = cast(writer.array(x)[k * 2 + second], TWO)
    following = cast(where(apply("equal", second, 1), number + 1, number ^ mix if mix else number), y.dtype)
    return [writer.lowered("next_key", For(k, [For(second, [Store(writer.result(y), k * 2 + second, following)])]))]


def dropout_mask(record: Record, fixed: bool = True, x: Slot | None = None) -> list[Launch] | None:
    """0 or 1 / (1 - rate), perhaps times x."""
    writer = NestWriter(fixed)
    return _drawn(writer, record, 16, lambda piece, at: _masked(writer, record, piece(at)), x=x)


def times_dropout_mask(record: Record) -> list[Launch] | None:
    """An array times a mask, which may be broadcast."""
    (x, key), y, shape = record.inputs, record.outputs, tuple(record.params["shape"])
    if shape == y.shape:
        return dropout_mask(record, x=x)
    if key.shape != (2,) or x.shape != y.shape or len(shape) != len(y.shape):
        return None

    def value(writer: NestWriter, names: Names) -> Expr:
        strides = [0 if own == 1 else stride for own, stride in zip(shape, contiguous(shape), strict=True)]
        at = cast(place(strides, names), TWO) + constant(record.params.get("start", 0), TWO)
        first, second = _words(writer.array(key), at >> 3)
        four = where(apply("equal", at & 4, 0), first, second)
        return whole(writer, x, names) * _masked(writer, record, cast(four >> (at & 3) * 16, np.uint16))

    return [element_nest(record.primitive.name, y, value)]


def random_uniform(record: Record, fixed: bool = True) -> list[Launch] | None:
    """Numbers in [0, 1) with all the binary digits that the dtype has."""
    digits = {"float32": 24, "float16": 11, "bfloat16": 8}.get(record.outputs.dtype.name)
    wide, element = (64, _fraction(53, DOUBLE)) if digits is None else (32, _fraction(digits, SINGLE))
    return _drawn(NestWriter(fixed), record, wide, element)


def _wide(record: Record) -> int:
    return 64 if record.outputs.dtype == DOUBLE else 32


def random_normal(record: Record) -> list[Launch] | None:
    """Numbers of the standard normal distribution."""
    return _drawn(NestWriter(), record, _wide(record), lambda piece, at: piece(at), _normals)


def random_truncated_normal(record: Record) -> list[Launch] | None:
    """Normal numbers within two standard deviations."""
    return _drawn(NestWriter(), record, _wide(record), _truncated)


def random_integers(record: Record) -> list[Launch] | None:
    """Integers from `low` on."""
    (low, span), words = [record.params[name] % 2**64 for name in ("low", "span")], words_of_integer(record.params["span"])
    return _drawn(NestWriter(), record, 32 * words, lambda piece, at: constant(low, TWO) + _integer(words, span, piece, at))


def times_gaussian(record: Record) -> list[Launch] | None:
    """An array times normal numbers around 1."""
    x, y, deviation = record.inputs[0], record.outputs, record.params["stddev"]
    if tuple(record.params["shape"]) != y.shape:
        return None
    return _drawn(NestWriter(), record, _wide(record), lambda piece, at: piece(at) * deviation + 1.0, _normals, x)
