"""Hashing and HashedCrossing: a bin for each value, without a vocabulary, by the hash functions of TensorFlow.

Bins are the same on every machine: FarmHash's 64-bit fingerprint, SipHash-2-4 with a key, and the one that joins two hashes.
Texts of one length are hashed together.

Sources: Geoff Pike, FarmHash (2014), `farmhashna::Hash64`; Aumasson and Bernstein, SipHash (2012).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from ...core import Tensor, by_elements
from ...errors import DTypeError, ShapeError
from ...types import Array, DTypeLike, ShapeLike, TensorLike
from ..config import floatx
from .encoding import ColumnLayer, EncodedLayer, Shape, as_column, encode, encoded_shape, texts
from .inputs import called
from .options import Kept, Size

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
    x, y, z, v, w = state
    x = _rotate(x + y + v[0] + fetch(at + 8), 37) * factor ^ w[1] * times
    y = _rotate(y + v[1] + fetch(at + 48), 42) * factor + v[0] * times + fetch(at + 40)
    z = _rotate(z + w[0], 33) * factor
    v = _half(fetch, at, v[1] * factor, x + w[0])
    w = _half(fetch, at + 32, z + w[1], y + fetch(at + 16))
    return z, y, x, v, w


def _half(fetch: Callable[[int], Array], at: int, a: Array, b: Array) -> tuple[Array, Array]:
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


_FIRST = 0xDECAFCAFFE
"""The first fingerprint of a crossing, as in TensorFlow."""


def hashes(values: list[Any], key: list[int] | None = None) -> Array:
    """64 bits for each value: of text by its bytes, of an integer by its digits. Equal values are hashed once."""
    distinct = list(dict.fromkeys(values))
    table = dict(zip(distinct, fingerprints(list(map(_bytes, distinct)), key).tolist(), strict=True))
    return np.fromiter(map(table.__getitem__, values), np.uint64, len(values))


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else str(value).lower()).encode()  # true and false, as TensorFlow writes them


def bins_of(x: Array, bins: int, key: list[int] | None = None, mask: TensorLike = None) -> Array:
    """The bin of each element: its hash modulo their number. With a mask bin 0 is kept for it."""
    first = int(mask is not None and bins > 1)
    found = (hashes(x.ravel().tolist(), key) % (bins - first)).astype(np.int64).reshape(x.shape) + first
    return np.where(np.array([one == mask for one in texts(x)], bool).reshape(x.shape), 0, found) if first else found


_bins = by_elements("hash_bins", bins_of)


def checked_salt(kind: str, salt: Any) -> list[int] | None:
    """Two integers from two, one or None."""
    salt = [salt, salt] if isinstance(salt, int) else salt
    if salt is None or (isinstance(salt, (list, tuple)) and len(salt) == 2 and all(isinstance(one, int) for one in salt)):
        return None if salt is None else list(salt)
    raise ValueError(
        f"The `salt` argument for `{kind}` can only be a tuple of size 2 integers, or a single integer. Received: {salt!r}."
    )


def _dtype(mode: str, dtype: DTypeLike) -> Any:
    """The dtype of the result: int64 or the default float dtype if none is given."""
    return dtype if dtype is not None else "int64" if mode == "int" else floatx()


class Hashing(ColumnLayer, described=True, makes_nothing=True):
    """A bin for each text or integer, by its hash modulo the number of bins.

    The hash is FarmHash's fingerprint of the text (of an integer, of its digits), or SipHash with a salt, as in TensorFlow: the
    same on every machine and in every run.

    Args:
        num_bins: how many bins there are.
        mask_value: a value that gets bin 0 for itself; all others then share `num_bins` - 1.
        salt: an integer or two, the key of SipHash; None for FarmHash.
        output_mode: 'int', 'one_hot', 'multi_hot' or 'count', as in `CategoryEncoding`.
        options: `name`; `dtype`, of the result: int64 in mode 'int' by default, else the default float dtype.

    Raises:
        ValueError: for fewer than one bin, another salt or mode, or a float dtype in mode 'int'.

    >>> print(tf.keras.layers.Hashing(3)([["A"], ["B"], ["E"]]).numpy().T)
    [[1 0 2]]
    >>> print(tf.keras.layers.Hashing(3, salt=[133, 137])([["A"], ["B"], ["D"]]).numpy().T)
    [[1 2 0]]
    """

    def __init__(
        self,
        num_bins: Size,
        mask_value: Kept[Any] = None,
        salt: Any = None,
        output_mode: str = "int",
        sparse: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**{**options, "dtype": _dtype(output_mode, options.get("dtype"))})
        self.salt = checked_salt("Hashing", salt)
        self.output_mode, self.sparse = self._check_mode(output_mode, ("int", "one_hot", "multi_hot", "count"), sparse), False
        if self.output_mode == "int" and self.dtype not in ("int32", "int64"):
            raise ValueError(
                "When `output_mode=\"int\"`, `dtype` should be an integer type, 'int32' or 'int64'. "
                f"Received: dtype={self.dtype}"
            )

    _depth = property(attrgetter("num_bins"))

    def call(self, inputs: Tensor) -> Tensor:
        text = inputs.dtype.name == "string"
        if self.mask_value is not None and isinstance(self.mask_value, str) != text:
            raise DTypeError(
                f"{called(self)}: mask_value={self.mask_value!r} cannot be found among {inputs.dtype.name} values. Give a mask "
                "of their kind."
            )
        x = self._as_integers(inputs) if inputs.dtype.is_floating else inputs
        found = _bins(x, bins=self.num_bins, key=self.salt, mask=self.mask_value)
        return encode(found, self.output_mode, self.num_bins, self.compute_dtype)


def _crossed(*columns: Array, bins: int) -> Array:
    found = np.full(columns[0].size, _FIRST, np.uint64)
    for column in columns:
        text = column.dtype.kind in "OSU"
        found = joined(found, hashes(column.ravel().tolist()) if text else column.ravel().astype(np.int64).view(np.uint64))
    return (found % bins).astype(np.int64).reshape(columns[0].shape)


_cross = by_elements("cross_hashed", _crossed)


class HashedCrossing(EncodedLayer, described=True, makes_nothing=True):
    """A bin for each combination of values of several columns, by a hash of all of them modulo the number of bins.

    Args:
        num_bins: how many bins there are.
        output_mode: 'int' or 'one_hot'.
        options: `name`; `dtype`, of the result: int64 in mode 'int' by default, else the default float dtype.

    Called on a list or tuple of at least two columns of integers or text, all of shape (), (batch,) or (batch, 1).

    >>> print(tf.keras.layers.HashedCrossing(5)((["A", "B", "A", "B", "A"], [101, 101, 101, 102, 102])).numpy())
    [1 4 1 1 3]
    """

    def __init__(self, num_bins: Size, output_mode: str = "int", sparse: bool = False, **options: Any) -> None:
        super().__init__(**{**options, "dtype": _dtype(output_mode, options.get("dtype"))})
        self.output_mode, self.sparse = self._check_mode(output_mode, ("int", "one_hot"), sparse), False

    def __call__(self, inputs: TensorLike, **options: Any) -> Any:
        if not isinstance(inputs, (list, tuple)):
            raise ValueError(f"`HashedCrossing` should be called on a list or tuple of inputs. Received: {inputs!r:.80}")
        if len(inputs) < 2:
            raise ValueError(f"`HashedCrossing` should be called on at least two inputs. Received: {inputs!r:.80}")
        return super().__call__([as_column(one) for one in inputs], **options)

    def call(self, inputs: TensorLike) -> Tensor:
        self.compute_output_shape([one.shape for one in inputs])
        if wrong := [one.dtype.name for one in inputs if not (one.dtype.is_integer or one.dtype.name == "string")]:
            raise ValueError(f"All `HashedCrossing` inputs should have an integer or string dtype. Found: {', '.join(wrong)}.")
        return encode(_cross(*inputs, bins=self.num_bins), self.output_mode, self.num_bins, self.compute_dtype)

    def compute_output_shape(self, input_shape: ShapeLike) -> Shape:
        """The shape of one column, and in mode 'one_hot' that of a row of bins for each of its elements."""
        first, *others = map(tuple, input_shape)
        if len(first) > 2 or (len(first) == 2 and first[1] != 1):
            raise ShapeError(
                "All `HashedCrossing` inputs should have shape `()`, `(batch_size)` or `(batch_size, 1)`. "
                f"Received: {[first, *others]}"
            )
        if any(one != first for one in others):
            raise ShapeError(f"All `HashedCrossing` inputs should have equal shape. Received: {[first, *others]}")
        return encoded_shape(first, self.output_mode, self.num_bins)
