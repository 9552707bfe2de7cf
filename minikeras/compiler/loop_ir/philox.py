"""Draws by Philox4x32-10 as in `nn_ops/philox4x32.py`, with the same bits: words of many blocks in scratch, then elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...nn_ops.philox4x32 import INCREMENTS, MULTIPLIERS, ROUNDS
from .expression import Array, Axis, Expr, View, apply, bits, cast, minimum, register, size, where
from .nest import Fold, For, Nest, Statement, Store

WORD = np.dtype(np.uint64)
"""Of two words of 32 bits, and of products of two."""
LOW = (1 << 32) - 1
BLOCKS = 128
"""Blocks whose words are made before any is looked at: 2 KB, which stay in the nearest cache."""

COUNT, START, LEAST, SCALE = size("count"), size("start"), size("least"), size("scale")


def next_key(dtype: Any) -> Nest:
    """The keys of the draws that follow: the second integer of each is one more."""
    keys, y, k, second = Array("keys", dtype), Array("y", dtype), Axis(COUNT), Axis(2)
    word = keys[k * 2 + second]
    moved = where(apply("equal", second, 1), word + 1, word)
    return Nest("next_key", [keys, y], [COUNT], For(k, [For(second, [Store(y, k * 2 + second, moved)])]))


def mask(key: Any, dtype: Any) -> Nest:
    """A mask of dropout: SCALE, the bits of a float64, where 16 bits are at least LEAST, else 0."""
    least, scale = cast(LEAST, np.int32), cast(bits(SCALE), dtype)
    return _draw("dropout_mask", key, dtype, 16, [LEAST, SCALE], lambda raw: where(cast(raw, np.int32) >= least, scale, 0.0))


def uniform(key: Any, dtype: Any) -> Nest:
    """Numbers in [0, 1)."""
    wide = 8 * np.dtype(dtype).itemsize
    own = 24 if wide == 32 else 53
    return _draw("uniform", key, dtype, wide, [], lambda raw: cast(apply("right_shift", raw, wide - own), dtype) * 2.0**-own)


def _draw(name: str, key: Any, dtype: Any, wide: int, sizes: list[Expr], element: Callable[[Expr], Expr]) -> Nest:
    """COUNT elements of so many bits each, from the START-th of a draw on."""
    keys, y = Array("key", key), Array("y", dtype)
    words = Array("words", WORD, 2 * (BLOCKS + 1))
    pieces = View("pieces", np.dtype(f"u{wide // 8}"), words)
    of_block, each = 128 // wide, BLOCKS * (128 // wide)
    chunk, block = Axis((COUNT + (each - 1)) // each), Axis(BLOCKS + 1)
    i = Axis(minimum(COUNT - chunk * each, each))
    begin: list[Statement] = []
    seed, position = [cast(keys[number], WORD) for number in range(2)]
    x1, y1 = [_kept(part(position), begin) for part in (_low, _high)]
    number = cast(START // of_block + chunk * BLOCKS + block, WORD)
    x, z = [_low(number), x1], [_high(number), y1]
    products: list[Expr] = []
    for turn in range(ROUNDS):
        known = [
            _kept(_low(word + (turn * step & LOW)), begin)
            for word, step in zip((_low(seed), _high(seed)), INCREMENTS, strict=True)
        ]
        products = [one * factor for one, factor in zip(x, MULTIPLIERS, strict=True)][::-1]
        mixed = [_xor(_high(product), other) for product, other in zip(products, z, strict=True)]
        x, z = [_xor(one, word) for one, word in zip(mixed, known, strict=True)], [_low(product) for product in products]
    pairs = [apply("bitwise_or", one, apply("left_shift", other, 32)) for one, other in zip(x, products, strict=True)]
    made = For(block, [Store(words, block * 2 + n, pair) for n, pair in enumerate(pairs)])
    read = For(i, [Store(y, chunk * each + i, element(pieces[START % of_block + i]))])
    return Nest(name, [keys, y], [COUNT, START, *sizes], For(chunk, [*begin, made, read]), [words, pieces])


def _kept(x: Expr, before: list[Statement]) -> Expr:
    known = register(WORD)
    before.append(Fold(known, "set", x))
    return known


def _low(x: Expr) -> Expr:
    return apply("bitwise_and", x, LOW)


def _high(x: Expr) -> Expr:
    return apply("right_shift", x, 32)


def _xor(x: Expr, y: Expr) -> Expr:
    return apply("bitwise_xor", x, y)
