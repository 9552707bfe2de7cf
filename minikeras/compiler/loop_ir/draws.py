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
from .bodies import constant, converted
from .expression import Array, Axis, Expr, ScratchView, apply, bits, cast, lift, minimum, register, size, where
from .moves import Names, element_nest, whole
from .nest import Fold, For, Nest, Statement, Store
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

COUNT, START, LEAST, SCALE = [size(one) for one in ("count", "start", "least", "scale")]

Piece = Callable[[Expr], Expr]
Element = Callable[[Piece, Expr], Expr]
"""An element of a draw, from what gives the piece of a number, as many bits as an element takes, and its own number."""


def moved(keys: Any, dtype: np.dtype[Any], count: Any, mix: int = 0) -> Nest:
    """The next keys: the second integer of each is incremented; the first may be mixed with another one."""
    x, y, k, second = Array("keys", keys), Array("y", dtype), Axis(count), Axis(2)
    number = cast(x[k * 2 + second], TWO)
    first = apply("bitwise_xor", number, mix) if mix else number
    following = cast(where(apply("equal", second, 1), number + 1, first), dtype)
    sizes = [count] if isinstance(count, Expr) else []
    return Nest("next_key", [x, y], sizes, For(k, [For(second, [Store(y, k * 2 + second, following)])]))


def mask(key: Any, dtype: np.dtype[Any]) -> Nest:
    """A mask of dropout: SCALE, the bits of a float64, where 16 bits are at least LEAST, else 0."""
    least, scale = cast(LEAST, WHOLE), cast(bits(SCALE), dtype)
    element: Element = lambda piece, at: _masked(piece(at), least, scale)
    return _drawn("dropout_mask", Array("key", key), Array("y", dtype), 16, element, sizes=[COUNT, START, LEAST, SCALE])


def uniform(key: Any, dtype: np.dtype[Any]) -> Nest:
    """Numbers in [0, 1)."""
    wide, element = (64, _fraction(53, DOUBLE)) if dtype == DOUBLE else (32, _fraction(24, SINGLE))
    return _drawn("uniform", Array("key", key), Array("y", dtype), wide, element, sizes=[COUNT, START])


def _drawn(
    name: str,
    keys: Array,
    y: Array,
    wide: int,
    element: Element,
    extent: tuple[Any, Any] = (COUNT, START),
    pair: Callable[[Expr, Expr], Sequence[Expr]] | None = None,
    x: Array | None = None,
    sizes: Sequence[Expr] = (),
) -> Nest:
    """Elements of a draw.

    Args:
        name: of the operation.
        keys, y: the key and the result.
        wide: bits of an element.
        element: makes it.
        extent: how many there are, and which of the draw is the first.
        pair: makes of two neighbouring pieces two numbers, which `element` is given in their place.
        x: times which elements are taken.
        sizes: none for threads in groups, for which all is constant.
    """
    count, start, blocks = *map(lift, extent), BLOCKS if sizes else FOR_GROUPS
    of_block, kind = 128 // wide, np.dtype(f"u{min(wide, 64) // 8}")
    words = Array("words", TWO, 2 * (blocks + 1))
    pieces, scratch = words, [words]
    if sizes and kind != TWO:
        pieces = ScratchView("pieces", kind, words)
        scratch.append(pieces)

    def cut(at: Expr) -> Expr:
        """A piece of so many bits of words of 64."""
        return cast(apply("right_shift", words[at // (64 // wide)], cast(at % (64 // wide) * wide, TWO)), kind)

    piece = pieces.__getitem__ if pieces.dtype == kind else cut
    chunk, block = Axis((count + (blocks * of_block - 1)) // (blocks * of_block)), Axis(blocks + 1)
    begin: list[Statement] = []

    def kept(value: Expr) -> Expr:
        begin.append(Fold(known := register(TWO), "set", value))
        return known

    made = _words(keys, cast(chunk * blocks + block, TWO) + converted(start // of_block, TWO), kept)
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
    value = value if x is None else x[first + i] * converted(value, x.dtype)
    body.append(For(i, [Store(y, first + i, converted(value, y.dtype))]))
    return Nest(name, [keys, y] if x is None else [x, keys, y], sizes, For(chunk, [*begin, *body]), scratch)


def _words(keys: Array, number: Expr, kept: Callable[[Expr], Expr] = lambda x: x) -> list[Expr]:
    """The four words of a block in two pairs; what all blocks have in common can be kept."""
    seed, position = [cast(keys[n], TWO) for n in range(2)]
    halves, products = (_low(seed), _high(seed)), list[Expr]()
    x, z = [_low(number), kept(_low(position))], [_high(number), kept(_high(position))]
    for turn in range(ROUNDS):
        known = [kept(_low(word + (turn * step & LOW))) for word, step in zip(halves, INCREMENTS, strict=True)]
        products = [one * factor for one, factor in zip(x, MULTIPLIERS, strict=True)][::-1]
        mixed = [apply("bitwise_xor", _high(product), other) for product, other in zip(products, z, strict=True)]
        x = [apply("bitwise_xor", one, word) for one, word in zip(mixed, known, strict=True)]
        z = [_low(product) for product in products]
    return [apply("bitwise_or", one, apply("left_shift", other, 32)) for one, other in zip(x, products, strict=True)]


def _low(x: Expr) -> Expr:
    return apply("bitwise_and", x, LOW)


def _high(x: Expr) -> Expr:
    return apply("right_shift", x, 32)


# Numbers of pieces ----------------------------------------------------------------------------------------------------------


def _masked(half: Expr, least: Expr, scale: Expr) -> Expr:
    """The element of a mask that 16 bits decide about."""
    return where(cast(half, WHOLE) >= least, scale, 0.0)


def _fraction(digits: int, dtype: np.dtype[Any]) -> Element:
    """A number in [0, 1) with so many binary digits."""
    shift = 8 * dtype.itemsize - digits
    return lambda piece, at: cast(apply("right_shift", piece(at), shift), dtype) * 2.0**-digits


def _normals(a: Expr, b: Expr) -> list[Expr]:
    """Two normal numbers, by the Box-Muller transform."""
    kind, width = (DOUBLE, 64) if a.dtype == TWO else (SINGLE, 32)
    turn = 2.0 * math.pi * 2.0**-64 if kind == DOUBLE else float(np.float32(2.0 * math.pi)) * 2.0**-32
    log = Expr("log", (cast(a, kind) * 2.0**-width + 2.0 ** -(width + 1),), kind)
    radius, angle = Expr("sqrt", (-2.0 * log,), kind), cast(b, kind) * turn
    return [radius * Expr(name, (angle,), kind) for name in ("cos", "sin")]


def _truncated(piece: Piece, at: Expr) -> Expr:
    """A normal number within two standard deviations, by a polynomial for the quantile."""
    word = piece(at)
    wide = word.dtype == TWO
    kind, signed, width = (DOUBLE, np.dtype(np.int64), 63) if wide else (SINGLE, WHOLE, 31)
    scale = 2.0**-width * (WITHIN_TWO if wide else float(np.float32(WITHIN_TWO)))
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


# Instructions, all of whose sizes are constants ------------------------------------------------------------------------------


def next_key(record: Record) -> list[Launch]:
    """The keys of the draws that follow."""
    key, y, mix = record.inputs[0], record.outputs, record.params.get("mix", 0)
    return [Launch(moved(key.dtype, y.dtype, math.prod(y.shape) // 2, mix % 2**64), (key,), (y,))]


def _of(record: Record, wide: int, element: Element, pair: Any = None, x: Slot | None = None) -> list[Launch] | None:
    """The nest of a draw, perhaps times x."""
    key, y, extent = record.inputs[-1], record.outputs, (math.prod(record.outputs.shape), record.params.get("start", 0))
    if key.shape != (2,):
        return None
    factor = None if x is None else Array("x", x.dtype)
    nest = _drawn(record.primitive.name, Array("key", key.dtype), Array("y", y.dtype), wide, element, extent, pair, factor)
    return [Launch(nest, (key,) if x is None else (x, key), (y,))]


def _mask_of(record: Record, half: Expr) -> Expr:
    """The element of a mask that 16 bits decide about."""
    rate, dtype = record.params["rate"], record.outputs.dtype
    scale = constant(np.asarray(1.0 / (1.0 - rate), dtype), dtype)  # rounded once
    return _masked(half, constant(threshold(rate), WHOLE), scale)


def dropout_mask(record: Record, x: Slot | None = None) -> list[Launch] | None:
    """0 or 1 / (1 - rate), perhaps times x."""
    return _of(record, 16, lambda piece, at: _mask_of(record, piece(at)), x=x)


def times_dropout_mask(record: Record) -> list[Launch] | None:
    """An array times a mask, which may be broadcast."""
    (x, key), y, shape = record.inputs, record.outputs, tuple(record.params["shape"])
    if shape == y.shape:
        return dropout_mask(record, x)
    if key.shape != (2,) or x.shape != y.shape or len(shape) != len(y.shape):
        return None

    def value(writer: NestWriter, names: Names) -> Expr:
        strides = [0 if own == 1 else stride for own, stride in zip(shape, contiguous(shape), strict=True)]
        at = cast(place(strides, names), TWO) + constant(record.params.get("start", 0), TWO)
        first, second = _words(writer.array(key), apply("right_shift", at, 3))
        four = where(apply("equal", apply("bitwise_and", at, 4), 0), first, second)
        half = cast(apply("right_shift", four, apply("bitwise_and", at, 3) * 16), np.uint16)
        return whole(writer, x, names) * _mask_of(record, half)

    return [element_nest(record.primitive.name, y, value)]


def random_uniform(record: Record) -> list[Launch] | None:
    """Numbers in [0, 1) with all the binary digits that the dtype has."""
    digits = {"float32": 24, "float16": 11, "bfloat16": 8}.get(record.outputs.dtype.name)
    return _of(record, 64, _fraction(53, DOUBLE)) if digits is None else _of(record, 32, _fraction(digits, SINGLE))


def _wide(record: Record) -> int:
    return 64 if record.outputs.dtype == DOUBLE else 32


def random_normal(record: Record) -> list[Launch] | None:
    """Numbers of the standard normal distribution."""
    return _of(record, _wide(record), lambda piece, at: piece(at), _normals)


def random_truncated_normal(record: Record) -> list[Launch] | None:
    """Normal numbers within two standard deviations."""
    return _of(record, _wide(record), _truncated)


def random_integers(record: Record) -> list[Launch] | None:
    """Integers from `low` on."""
    (low, span), words = [record.params[name] % 2**64 for name in ("low", "span")], words_of_integer(record.params["span"])
    return _of(record, 32 * words, lambda piece, at: constant(low, TWO) + _integer(words, span, piece, at))


def times_gaussian(record: Record) -> list[Launch] | None:
    """An array times normal numbers around 1."""
    x, y, deviation = record.inputs[0], record.outputs, record.params["stddev"]
    if tuple(record.params["shape"]) != y.shape:
        return None
    return _of(record, _wide(record), lambda piece, at: piece(at) * deviation + 1.0, _normals, x)
