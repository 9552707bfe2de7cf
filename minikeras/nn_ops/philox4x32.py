"""Philox4x32-10: uniform bits as a function of a seed and a place in its stream, the same on every device.

A block is four words of 32 bits, `philox(key, counter)`. The key is a seed of 64 bits. The counter is the number of the block
within its draw, and above it the position of the draw in the stream, 64 bits each. So a draw leaves nothing behind but the next
position, any part of it can be computed by itself, and a mask need not be kept to be seen again.

Source: Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3 (2011), section 3.3. `philox_cuda.py` is the
same function for devices, `compiler/loop_ir/draws.py` the one for compiled steps.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..parallel import in_parallel
from ..types import Array

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
INCREMENTS = 0x9E3779B9, 0xBB67AE85
"""Increments of the two words of the key, from round to round."""
ROUNDS = 10
HALVES = 1 << 16
"""A mask compares 16 bits of each element with its rate, which so counts in steps of 2**-16."""

CHUNK = 16384
"""Blocks in one pass of NumPy: the 50 calls of a pass cost 30 us beside 160 of work, and its arrays stay in the cache."""
SHARED = 65536
"""Blocks in one pass beside another thread, see `threads.CALL`: with `CHUNK` two threads take longer than one."""
AHEAD = 64
"""Draws that are computed together, if they follow one another."""
STREAMS = 64
"""Draws of so many sizes and seeds have words computed ahead, 256 KB each at most."""

WITHIN_TWO = math.erf(math.sqrt(2.0))
"""The probability that a normal number lies within two standard deviations."""
QUANTILE = (
    (
        *(2.5, 2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503),
        *(-0.00417768164, 0.246640727, 1.50140941),
    ),
    (
        *(3.125, -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18, 1.115787767802518096e-17),
        *(-1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15, -4.0545662729752068639e-14),
        *(-8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11),
        *(1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07),
        *(-1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352, -0.00074070253416626697512),
        *(-0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356),
    ),
)
"""For float32 and float64: where a polynomial of -log((1 - x) (1 + x)) is centred, and its coefficients by falling powers. Its
product with x is the inverse of the error function."""

_DIGITS = {np.dtype("float64"): 53, np.dtype("float32"): 24, np.dtype("float16"): 11}
"""Binary ones of a float; bfloat16 has 8."""
_WORD, _LOW, _HALF = np.dtype("<u8"), np.uint64(0xFFFFFFFF), np.uint64(32)
_FACTORS = np.array(MULTIPLIERS, _WORD)[:, None]


class _Thread(threading.local):
    """The buffers of a thread that draws.

    Attributes:
        memory: for the words of a chunk, what they are made of and what becomes of them, 3 MB. It begins with a line of the
            cache: 10 % of the time.
        ahead: by seed, first block and number of blocks, the words of some draws in a row: the first position, and a row for
            each.
    """

    def __init__(self) -> None:
        memory = np.empty(6 * SHARED + 7, _WORD)
        first = -memory.ctypes.data // 8 % 8
        self.memory = memory[first : first + 6 * SHARED]
        self.ahead: dict[tuple[int, int, int], tuple[int, Array]] = {}


_thread = _Thread()


def words(seed: int, position: int, count: int, begin: int = 0) -> Array:
    """The first `count` words of a draw from its block `begin` on, uint32; not to be written to.

    >>> [hex(word) for word in words(0, 0, 4)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    blocks = -(-count // 4)
    if blocks > CHUNK // 2:
        return _drawn((seed, position), (count,), "<u4", 4, lambda found, into: np.copyto(into, found[: into.size]), 4 * begin)
    key, ahead = (seed, begin, blocks), _thread.ahead
    first, rows = ahead.get(key, (position, ()))
    if not 0 <= position - first < len(rows):
        # Draws that follow one another are computed together, ever more of them: a pass costs as much for one as for many.
        follows = 0 <= position - first < 2 * len(rows) + 2
        positions = min(2 * len(rows), AHEAD, CHUNK // max(blocks, 1)) if follows and len(rows) else 1
        first, rows = position, _words(seed, position, positions, _numbers(begin, begin + blocks)).copy()
        ahead.pop(key, None)
        ahead[key] = first, rows
        if len(ahead) > STREAMS:
            del ahead[next(iter(ahead))]
    return rows[position - first, :count]


def words_of_blocks(key: Array, numbers: Array) -> Array:
    """The words of blocks of a draw, `SHARED` at most: in one row the first two of each block, in another the last two.

    The memory is the thread's, until the next call.

    >>> hex(words_of_blocks((0, 0), np.array([1, 0], np.uint64))[0, 1, 1])
    '0xe169c58d'
    """
    seed, position = _integers_of(key)
    return _halves(_pairs(seed, position, 1, numbers))[:, 0]


def _numbers(start: int, stop: int) -> Array:
    return np.arange(start, stop, dtype=_WORD)


def _words(seed: int, first: int, positions: int, numbers: Array) -> Array:
    """Blocks of draws in a row, `SHARED` at most: a row of words for each position, until the next call."""
    pairs = _pairs(seed, first, positions, numbers)
    found = _thread.memory[2 * pairs.size : 3 * pairs.size].view("<u4").reshape(positions, -1, 4)
    for row, halves in enumerate(_halves(pairs)):
        found[..., 2 * row], found[..., 2 * row + 1] = halves[..., 0], halves[..., 1]
    return found.reshape(positions, -1)


def _halves(pairs: Array) -> Array:
    """The two words of each pair."""
    return pairs.view("<u4").reshape(*pairs.shape, 2)[..., ::-1]


def _pairs(seed: int, first: int, positions: int, numbers: Array) -> Array:
    """Two pairs of words for each block, the first word of a pair in the upper half of 64 bits: rows for the positions."""
    pairs, products = _thread.memory[: 4 * positions * len(numbers)].reshape(2, 2, positions, -1)
    position = _numbers(0, positions)[:, None] + np.uint64(first)
    np.left_shift(numbers, _HALF, products[0])
    np.right_shift(numbers, _HALF, products[1])
    np.bitwise_or(products[0], products[1], pairs[0])
    pairs[1] = position << _HALF | position >> _HALF
    _rounds(seed, pairs.reshape(2, -1), products.reshape(2, -1))
    return pairs


def _rounds(seed: int, pairs: Array, products: Array) -> None:
    """All rounds, in place. A word is mixed with one of the key's before it becomes the upper one of its pair or after."""
    keys = np.zeros((2, ROUNDS + 2), _WORD)
    start = np.array([seed & 0xFFFFFFFF, seed >> 32], _WORD)[:, None]
    keys[:, 1:-1] = start + np.arange(ROUNDS, dtype=_WORD) * np.array(INCREMENTS, _WORD)[:, None] & _LOW
    before, *later = (keys[:, ::2] << _HALF | keys[:, 1::2]).T[:, :, None]
    np.bitwise_xor(pairs, before, pairs)
    for key in later:
        for _ in range(2):
            np.right_shift(pairs, _HALF, products)
            np.multiply(products, _FACTORS, products)
            np.left_shift(pairs, _HALF, pairs)
            np.bitwise_xor(pairs, products[::-1], pairs)
        np.bitwise_xor(pairs, key, pairs)


def _integers_of(key: Array) -> tuple[int, int]:
    return int(key[0]) & (2**64 - 1), int(key[1]) & (2**64 - 1)


def _scratch(rows: int, size: int, dtype: np.dtype[Any]) -> Array:
    """Memory of this thread in which a chunk of words has been made: fresh memory takes longer than what is written there."""
    return _thread.memory.view(dtype)[: rows * size].reshape(rows, size)


def _drawn(
    key: Array, shape: tuple[int, ...], dtype: Any, per_block: int, convert: Callable[[Array, Array], None], start: int
) -> Array:
    """Elements that `convert(words, elements)` makes of words, so many of each block, from element `start` of the draw on.

    The words may be written to.
    """
    seed, position = _integers_of(key)
    begin, before = divmod(start, per_block)
    size = before + math.prod(shape)
    blocks, elements = -(-size // per_block), np.empty(size, dtype)
    if blocks <= CHUNK // 2:
        convert(words(seed, position, 4 * blocks, begin).copy(), elements)
    else:

        def draw(first: int, last: int) -> None:
            chunk = CHUNK if last - first == blocks else SHARED
            for at in range(first, last, chunk):
                end = min(at + chunk, last)
                found = _words(seed, position, 1, _numbers(begin + at, begin + end))[0]
                convert(found, elements[at * per_block : end * per_block])

        in_parallel(draw, blocks, least=SHARED)
    return (elements[before:].copy() if before else elements).reshape(shape)


def threshold(rate: float) -> int:
    """The least 16-bit number for which an element is kept.

    >>> threshold(0.5), threshold(1e-9), threshold(1.0)
    (32768, 0, 65536)
    """
    return round(rate * HALVES)


def dropout_mask(key: Array, shape: tuple[int, ...], dtype: Any, rate: float, start: int = 0) -> Array:
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


def uniform(key: Array, shape: tuple[int, ...], dtype: Any, start: int = 0) -> Array:
    """Numbers in [0, 1), multiples of the spacing just below 1: the upper bits of a word, of two for float64.

    >>> float(uniform((0, 0), (1,), "float32")[0]) == (0x6627E8D5 >> 8) / 2**24
    True
    """
    kind = np.dtype(dtype)
    wide = kind.itemsize == 8
    own = _DIGITS.get(kind, 8)
    unsigned, signed = ("<u8", "<i8") if wide else ("<u4", "<i4")  # which NumPy converts faster than unsigned integers

    def convert(found: Array, elements: Array) -> None:
        whole = found.view(unsigned)
        whole >>= 8 * whole.itemsize - own
        elements[:] = whole[: elements.size].view(signed)
        elements *= kind.type(2.0**-own)

    return _drawn(key, shape, kind, 2 if wide else 4, convert, start)


def normal(key: Array, shape: tuple[int, ...], dtype: Any, start: int = 0) -> Array:
    """Standard normal numbers, two of each two words, in float64 two of each four.

    The bits of logarithm, sine and cosine are those of NumPy here, which in the last digit may differ from a device's.

    Source: Box and Muller, A Note on the Generation of Random Normal Deviates (1958).
    """
    kind = np.dtype(dtype)
    wide = kind.itemsize == 8
    own = np.dtype("float64" if wide else "float32")
    step = np.asarray(2.0**-64 if wide else 2.0**-32, own)

    def convert(found: Array, elements: Array) -> None:
        units = found.view("<u8") if wide else found
        radius, angle, turned = _scratch(3, units.size // 2, own)
        radius[:], angle[:] = units[::2], units[1::2]
        radius *= step
        radius += 0.5 * step
        np.sqrt(np.multiply(np.log(radius, radius), -2.0, radius), radius)
        angle *= 2.0 * math.pi * step
        for turn, part in ((np.cos, elements[::2]), (np.sin, elements[1::2])):
            turn(angle, turned)
            turned *= radius
            part[:] = turned[: part.size]

    return _drawn(key, shape, kind, 2 if wide else 4, convert, start)


def truncated_normal(key: Array, shape: tuple[int, ...], dtype: Any, start: int = 0) -> Array:
    """Standard normal numbers within two standard deviations: the quantiles of uniform numbers, each of a word or of two.

    Source: Giles, Approximating the erfinv Function (2010): on the interval that is needed, a polynomial in a logarithm.
    """
    kind = np.dtype(dtype)
    wide = kind.itemsize == 8
    own, signed = (np.dtype("float64"), np.dtype("<i8")) if wide else (np.dtype("float32"), np.dtype("<i4"))
    centre, *coefficients = [own.type(one) for one in QUANTILE[wide]]

    def convert(found: Array, elements: Array) -> None:
        x = found.view(own)
        np.copyto(x, found.view(signed), casting="unsafe")
        x += own.type(0.5)
        x *= own.type(WITHIN_TWO) * own.type(2.0 ** (1 - 8 * own.itemsize))
        w, polynomial = _scratch(2, x.size, own)
        np.multiply(np.subtract(1, x, w), np.add(1, x, polynomial), w)
        np.negative(np.log(w, w), w)
        w -= centre
        polynomial[:] = coefficients[0]
        for coefficient in coefficients[1:]:
            polynomial *= w
            polynomial += coefficient
        polynomial *= x
        polynomial *= own.type(math.sqrt(2.0))
        elements[:] = np.clip(polynomial, own.type(-2.0), own.type(2.0), polynomial)[: elements.size]

    return _drawn(key, shape, kind, 2 if wide else 4, convert, start)


def words_of_integer(span: int) -> int:
    """The number of words that one integer is made of, if there are `span` integers to choose from.

    Those of a power of two are equally probable; the others differ by less than 2**-16 of their probability.

    >>> [words_of_integer(span) for span in (10, 2**32, 2**32 - 1, 2**64, 2**64 - 1)]
    [1, 1, 2, 2, 4]
    """
    exact = span & (span - 1) == 0
    return 1 if span <= 2**32 and (exact or span <= 2**16) else 2 if span <= 2**32 or exact else 4


def integers(key: Array, shape: tuple[int, ...], dtype: Any, low: int, span: int, start: int = 0) -> Array:
    """Integers from `low` on, one of `span`: the upper part of the product of `span` with the bits as a fraction.

    >>> sorted(set(integers((1, 0), (100,), "int32", -1, 3).tolist()))
    [-1, 0, 1]
    """
    count, kind = words_of_integer(span), np.dtype(dtype)

    def convert(found: Array, elements: Array) -> None:
        if count == 1:
            (products,) = _scratch(1, found.size, _WORD)
            chosen = np.multiply(found, np.uint64(span), products).view("<u4")[1::2]
        else:
            fractions = found.view(_WORD).reshape(-1, count // 2)
            chosen = upper_product(fractions[:, -1], span)
            if count == 4:  # of the lower fraction only its carry counts
                low_product = fractions[:, 1] * np.uint64(span)
                chosen += low_product + upper_product(fractions[:, 0], span) < low_product
        elements[:] = chosen[: elements.size]
        if low:
            elements += np.uint64(low % 2**64).astype(kind)

    return _drawn(key, shape, kind, 4 // count, convert, start)


def upper_product(x: Array, factor: int) -> Array:
    """The upper 64 bits of products of 64-bit numbers, from products of their halves.

    >>> int(upper_product(np.array([2**63], np.uint64), 2**40 + 2)[0]) == (2**63 * (2**40 + 2)) >> 64
    True
    """
    if factor & (factor - 1) == 0:
        return x >> np.uint64(65 - factor.bit_length())
    low, high = x & _LOW, x >> _HALF
    own_low, own_high = np.uint64(factor & 0xFFFFFFFF), np.uint64(factor >> 32)
    middle = high * own_low
    middle += low * own_low >> _HALF
    if not own_high:
        middle >>= _HALF
        return middle
    return high * own_high + (middle >> _HALF) + (low * own_high + (middle & _LOW) >> _HALF)
