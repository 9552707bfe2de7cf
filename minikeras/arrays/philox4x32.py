"""Philox4x32-10: uniform bits as a function of a seed and a place in its stream, the same on every device.

A block is four words of 32 bits, `philox(key, counter)`. The key is a seed of 64 bits. The counter is the number of the block
within its draw, and above it the position of the draw in the stream, 64 bits each. So a draw leaves nothing behind but the next
position, any part of it can be computed by itself, and a mask need not be kept to be seen again.

Source: Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3 (2011), section 3.3. `philox_cuda.py` is the
same function for devices, `compiler/executors/llvm/draws.py` the one for compiled steps.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..types import Array

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
INCREMENTS = 0x9E3779B9, 0xBB67AE85
"""Of the two words of the key, from round to round."""
ROUNDS = 10
HALVES = 1 << 16
"""A mask compares 16 bits of each element with its rate, which so counts in steps of 2**-16."""

CHUNK = 16384
"""Blocks in one pass of NumPy: the 50 calls of a pass cost 30 us beside 220 of work, and its arrays stay in the cache."""
AHEAD = 64
"""Draws that are computed together, if they follow one another."""
STREAMS = 64
"""Draws of so many sizes and seeds have words computed ahead, 256 KB each at most."""

_WORD, _LOW, _HALF = np.dtype("<u8"), np.uint64(0xFFFFFFFF), np.uint64(32)
_FACTORS = np.array(MULTIPLIERS, _WORD)[:, None]


class _Thread(threading.local):
    """What each thread that draws keeps.

    Attributes:
        memory: for the words of a chunk and what they are made of, 1 MB.
        ahead: by seed, first block and number of blocks, the words of some draws in a row: the first position, and a row for
            each.
    """

    def __init__(self) -> None:
        self.memory = np.empty(8 * CHUNK, _WORD)
        self.ahead: dict[tuple[int, int, int], tuple[int, Array]] = {}


_thread = _Thread()


def words(seed: int, position: int, count: int, begin: int = 0) -> Array:
    """The first `count` words of a draw from its block `begin` on, uint32; not to be written to.

    >>> [hex(word) for word in words(0, 0, 4)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    blocks = -(-count // 4)
    if blocks > CHUNK // 2:
        bounds = [(at, min(at + CHUNK, begin + blocks)) for at in range(begin, begin + blocks, CHUNK)]
        return np.concatenate([_words(seed, position, 1, *bound).copy() for bound in bounds], axis=1)[0, :count]
    key, ahead = (seed, begin, blocks), _thread.ahead
    first, rows = ahead.get(key, (position, ()))
    if not 0 <= position - first < len(rows):
        # Draws that follow one another are computed together, ever more of them: a pass costs as much for one as for many.
        follows = 0 <= position - first < 2 * len(rows) + 2
        positions = min(2 * len(rows), AHEAD, CHUNK // max(blocks, 1)) if follows and len(rows) else 1
        first, rows = position, _words(seed, position, positions, begin, begin + blocks).copy()
        ahead.pop(key, None)
        ahead[key] = first, rows
        if len(ahead) > STREAMS:
            del ahead[next(iter(ahead))]
    return rows[position - first, :count]


def _words(seed: int, first: int, positions: int, start: int, stop: int) -> Array:
    """Blocks `start` to `stop` of draws in a row, `CHUNK` at most: a row of words for each position, until the next call."""
    x, y, products, pairs = _thread.memory[: 8 * positions * (stop - start)].reshape(4, 2, positions, -1)
    block, position = np.arange(start, stop, dtype=_WORD), np.arange(positions, dtype=_WORD)[:, None] + np.uint64(first)
    x[0], y[0], x[1], y[1] = block & _LOW, block >> _HALF, position & _LOW, position >> _HALF
    _rounds(seed, x, y, products)
    found = pairs.reshape(positions, -1, 2)
    found[..., 0], found[..., 1] = x
    return found.view("<u4").reshape(positions, -1)


def _rounds(seed: int, x: Array, y: Array, products: Array) -> None:
    """The rounds of blocks whose words 0 and 2 are the rows of x, 1 and 3 those of y; then x has pairs of words in 64 bits."""
    x, y, products = [one.reshape(2, -1) for one in (x, y, products)]
    start = np.array([seed & 0xFFFFFFFF, seed >> 32], _WORD)
    keys = (start + np.arange(ROUNDS, dtype=_WORD)[:, None] * np.array(INCREMENTS, _WORD) & _LOW)[:, :, None]
    swapped = products[::-1]
    for number, key in enumerate(keys, 1):
        np.multiply(x, _FACTORS, products)
        np.right_shift(swapped, _HALF, x)
        np.bitwise_xor(x, y, x)
        np.bitwise_xor(x, key, x)
        if number < ROUNDS:
            np.bitwise_and(swapped, _LOW, y)
    np.bitwise_or(x, np.left_shift(swapped, _HALF, y), x)


def _drawn(
    key: Any, shape: tuple[int, ...], dtype: Any, per_block: int, convert: Callable[[Array, Array], None], start: int
) -> Array:
    """Elements that `convert(words, elements)` makes of words, so many of each block, from element `start` of the draw on."""
    seed, position = int(key[0]) & (2**64 - 1), int(key[1]) & (2**64 - 1)
    begin, before = divmod(start, per_block)
    size = before + math.prod(shape)
    blocks, elements = -(-size // per_block), np.empty(size, dtype)
    if blocks <= CHUNK // 2:
        convert(words(seed, position, 4 * blocks, begin), elements)
    else:
        for at in range(0, blocks, CHUNK):  # two threads take as long as one: the calls are too short
            end = min(at + CHUNK, blocks)
            convert(_words(seed, position, 1, begin + at, begin + end)[0], elements[at * per_block : end * per_block])
    return (elements[before:].copy() if before else elements).reshape(shape)


def threshold(rate: float) -> int:
    """What 16 bits must be at least for an element to be kept.

    >>> threshold(0.5), threshold(1e-9), threshold(1.0)
    (32768, 0, 65536)
    """
    return round(rate * HALVES)


def dropout_mask(key: Any, shape: tuple[int, ...], dtype: Any, rate: float, start: int = 0) -> Array:
    """0 with probability `rate`, 1 / (1 - rate) elsewhere. Element i is decided by 16 bits: word i // 2, the lower half first.

    Args:
        key: seed and position, two integers.
        shape, dtype: of the result.
        rate: below 1; it counts to the nearest multiple of 2**-16.
        start: the element of the draw that comes first: parts of a batch get the elements that they have in the whole.

    >>> sorted(set(dropout_mask((1, 0), (100,), "float32", 0.75).tolist()))
    [0.0, 4.0]
    """
    least, scale = threshold(rate), np.asarray(1.0 / (1.0 - rate), dtype)

    def convert(found: Array, elements: Array) -> None:
        kept = found.view("<u2")[: elements.size] >= least
        np.multiply(kept, scale, elements)

    return _drawn(key, shape, dtype, 8, convert, start)


def uniform(key: Any, shape: tuple[int, ...], dtype: Any, start: int = 0) -> Array:
    """Numbers in [0, 1), multiples of the spacing just below 1: the upper bits of a word, of two for float64.

    >>> float(uniform((0, 0), (1,), "float32")[0]) == (0x6627E8D5 >> 8) / 2**24
    True
    """
    kind = np.dtype(dtype)
    wide = kind.itemsize == 8
    own = {"float64": 53, "float32": 24, "float16": 11}.get(kind.name, 8)
    step = np.asarray(2.0**-own, "float64" if wide else "float32")

    def convert(found: Array, elements: Array) -> None:
        whole = found.view("<u8") if wide else found
        np.multiply((whole >> (64 if wide else 32) - own)[: elements.size], step, elements, casting="unsafe", dtype=step.dtype)

    return _drawn(key, shape, kind, 2 if wide else 4, convert, start)


def normal(key: Any, shape: tuple[int, ...], dtype: Any, start: int = 0) -> Array:
    """Standard normal numbers, two of each two words, in float64 two of each four.

    The bits of logarithm, sine and cosine are those of NumPy here, which in the last digit may differ from a device's.

    Source: Box and Muller, A Note on the Generation of Random Normal Deviates (1958).
    """
    kind = np.dtype(dtype)
    wide = kind.itemsize == 8
    own = np.dtype("float64" if wide else "float32")
    step = np.asarray(2.0**-64 if wide else 2.0**-32, own)

    def convert(found: Array, elements: Array) -> None:
        pairs = (found.view("<u8") if wide else found).astype(own).reshape(-1, 2)
        radius = np.sqrt(-2.0 * np.log(pairs[:, 0] * step + 0.5 * step))
        angle = pairs[:, 1] * (2.0 * math.pi * step)
        both = np.empty_like(pairs)
        both[:, 0], both[:, 1] = radius * np.cos(angle), radius * np.sin(angle)
        elements[...] = both.reshape(-1)[: elements.size]

    return _drawn(key, shape, kind, 2 if wide else 4, convert, start)
