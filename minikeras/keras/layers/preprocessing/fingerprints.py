"""The hash functions by which TensorFlow bins texts, the same on every machine: FarmHash's 64-bit fingerprint, SipHash-2-4 with
a key, and the one that joins two hashes. Texts of one length are hashed together.

Sources: Geoff Pike, FarmHash (2014), `farmhashna::Hash64`; Aumasson and Bernstein, SipHash (2012).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....types import Array

_K0, _K1, _K2 = np.uint64(0xC3A5C85C97CB3127), np.uint64(0xB492B66FBE98F273), np.uint64(0x9AE16A3B2F90404F)
_JOIN = np.uint64(0xC6A4A7935BD1E995)
_SIP_WORDS = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_LIMIT = 2**64
State = tuple[Array, Array, Array, tuple[Array, Array], tuple[Array, Array]]


def fingerprints(texts: Sequence[bytes], key: Sequence[int] | None = None) -> Array:
    """A hash of 64 bits for each text: FarmHash's fingerprint, or SipHash with a key of two integers.

    Returns:
        uint64, shape (len(texts),).

    >>> fingerprints([b"A", b"omar"]).tolist()
    [16915294056622060564, 3378277989609990986]
    >>> fingerprints([bytes(range(15))], (0x0706050403020100, 0x0F0E0D0C0B0A0908)).tolist() == [0xA129CA6149BE45E5]
    True
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    found = np.empty(len(texts), np.uint64)
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        joined = b"".join([texts[place] for place in places.tolist()])
        rows = np.frombuffer(joined, np.uint8).reshape(len(places), length)
        with np.errstate(over="ignore"):
            found[places] = _farmhash(rows, length) if key is None else _siphash(rows, length, key)
    return found


def joined(a: Array, b: Array) -> Array:
    """One hash for two: TensorFlow's `FingerprintCat64`, for arrays of uint64.

    >>> joined(np.uint64([1]), np.uint64([2])).tolist()
    [14454907135238785252]
    """
    mixed = ((a ^ _JOIN) ^ (_shift_mix(b * _JOIN) * _JOIN)) * _JOIN
    return _shift_mix(_shift_mix(mixed) * _JOIN)


def _rotate(x: Array, bits: int) -> Array:
    """Bits moved to the right, those that fall out put in on the left."""
    return (x >> bits) | (x << (64 - bits))


def _shift_mix(x: Array) -> Array:
    return x ^ (x >> 47)


def _reader(rows: Array, dtype: str) -> Callable[[int], Array]:
    """A function that reads a little-endian number of each row, from a place on."""
    size = np.dtype(dtype).itemsize
    return lambda at: np.ascontiguousarray(rows[:, at : at + size]).view(dtype)[:, 0].astype(np.uint64)


# FarmHash -----------------------------------------------------------------------------------------------------------------


def _mix(u: Array, v: Array, factor: Array) -> Array:
    a = _shift_mix((u ^ v) * factor)
    return _shift_mix((v ^ a) * factor) * factor


def _farmhash(rows: Array, length: int) -> Array:
    fetch, factor = _reader(rows, "<u8"), _K2 + 2 * length
    if length > 64:
        return _of_blocks(fetch, length)
    if length > 16:
        a, b = fetch(0) * (_K1 if length <= 32 else _K2), fetch(8)
        c, d = fetch(length - 8) * factor, fetch(length - 16) * _K2
        y = _rotate(a + b, 43) + _rotate(c, 30) + d
        z = _mix(y, a + _rotate(b + _K2, 18) + c, factor)
        if length <= 32:
            return z
        e, f = fetch(16) * factor, fetch(24)
        g, h = (y + fetch(length - 32)) * factor, (z + fetch(length - 24)) * factor
        return _mix(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, factor)
    if length >= 8:
        a, b = fetch(0) + _K2, fetch(length - 8)
        return _mix(_rotate(b, 37) * factor + a, (_rotate(a, 25) + b) * factor, factor)
    if length >= 4:
        fetch = _reader(rows, "<u4")
        return _mix(length + (fetch(0) << 3), fetch(length - 4), factor)
    if not length:
        return np.full(len(rows), _K2)
    first, middle, last = (rows[:, at].astype(np.uint64) for at in (0, length // 2, length - 1))
    y, z = first + (middle << 8), length + (last << 2)
    return _shift_mix((y * _K2) ^ (z * _K0)) * _K2


def _of_blocks(fetch: Callable[[int], Array], length: int) -> Array:
    """Texts of more than 64 bytes: blocks of 64, then the last 64 bytes once more."""
    y = 81 * _K1 + 113
    z = _shift_mix(y * _K2 + 113) * _K2
    x = 81 * _K2 + fetch(0)
    v = w = (np.uint64(0), np.uint64(0))
    rest = (length - 1) % 64
    for start in range(0, length - 1 - rest, 64):
        x, y, z, v, w = _block(fetch, start, _K1, (x, y, z, v, w))
    factor = _K1 + ((z & 0xFF) << 1)
    last = w[0] + rest
    v = (v[0] + last, v[1])
    w = (last + v[0], w[1])
    x, y, z, v, w = _block(fetch, length - 64, factor, (x, y, z, v, w), 9)
    first = _mix(v[0], w[0], factor) + _shift_mix(y) * _K0 + z
    return _mix(first, _mix(v[1], w[1], factor) + x, factor)


def _block(fetch: Callable[[int], Array], at: int, factor: Array, state: State, times: int = 1) -> State:
    """The state after 64 bytes more."""
    x, y, z, v, w = state
    x = _rotate(x + y + v[0] + fetch(at + 8), 37) * factor ^ w[1] * times
    y = _rotate(y + v[1] + fetch(at + 48), 42) * factor + v[0] * times + fetch(at + 40)
    z = _rotate(z + w[0], 33) * factor
    v = _half(fetch, at, v[1] * factor, x + w[0])
    w = _half(fetch, at + 32, z + w[1], y + fetch(at + 16))
    return z, y, x, v, w


def _half(fetch: Callable[[int], Array], at: int, a: Array, b: Array) -> tuple[Array, Array]:
    """Two numbers and 32 bytes as two numbers."""
    first = a + fetch(at)
    last = fetch(at + 24)
    middle = first + fetch(at + 8) + fetch(at + 16)
    return middle + last, _rotate(b + first + last, 21) + _rotate(middle, 44) + first


# SipHash ------------------------------------------------------------------------------------------------------------------


def _siphash(rows: Array, length: int, key: Sequence[int]) -> Array:
    padded = np.zeros((len(rows), length // 8 * 8 + 8), np.uint8)
    padded[:, :length] = rows
    padded[:, -1] = length % 256
    fetch = _reader(padded, "<u8")
    state: list[Any] = [np.full(len(rows), word ^ key[place % 2] % _LIMIT, np.uint64) for place, word in enumerate(_SIP_WORDS)]
    for at in range(0, padded.shape[1], 8):
        word = fetch(at)
        state[3] = state[3] ^ word
        _sip_rounds(state, 2)
        state[0] = state[0] ^ word
    state[2] = state[2] ^ 0xFF
    _sip_rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_rounds(v: list[Any], count: int) -> None:
    """Rounds on a state of four numbers, in place."""
    for _ in range(count):
        v[0], v[2] = v[0] + v[1], v[2] + v[3]
        v[1], v[3] = _rotate(v[1], 51) ^ v[0], _rotate(v[3], 48) ^ v[2]
        v[0] = _rotate(v[0], 32)
        v[2], v[0] = v[2] + v[1], v[0] + v[3]
        v[1], v[3] = _rotate(v[1], 47) ^ v[2], _rotate(v[3], 43) ^ v[0]
        v[2] = _rotate(v[2], 32)
