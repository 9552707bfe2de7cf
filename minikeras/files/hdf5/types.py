"""Datatypes of HDF5: numbers, truth values, and texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from ..tensors import named_dtype

INTEGER, FLOAT, TEXT, OPAQUE, ENUMERATION, VARIABLE = 0, 1, 3, 5, 8, 9

# (exponent location and size, mantissa location and size, bias) of each float
_FLOATS = {
    (10, 5, 0, 10, 15): "float16",
    (7, 8, 0, 7, 127): "bfloat16",
    (23, 8, 0, 23, 127): "float32",
    (52, 11, 0, 52, 1023): "float64",
}


class Datatype(NamedTuple):
    """One element: its size in the file, and the NumPy dtype, or None for texts."""

    kind: int
    size: int
    dtype: np.dtype[Any] | None = None
    is_text: bool = False


def decode(raw: bytes, refuse: Callable[[str], Exception]) -> Datatype:
    """A datatype from its message; compound types, references, times, bit fields and damaged ones are refused."""
    if len(raw) < 8:
        raise refuse("a datatype is cut off")
    kind, version = raw[0] & 15, raw[0] >> 4
    bits, size = int.from_bytes(raw[1:4], "little"), int.from_bytes(raw[4:8], "little")
    order: Literal["<", ">"] = ">" if bits & 1 else "<"
    rest = raw[8:]
    whole = rest[:4] == b"\0\0" + (8 * min(size, 8)).to_bytes(2, "little")  # all bits of all bytes are used
    if not 1 <= version <= 5:
        raise refuse(f"a datatype of version {version}")
    if kind == INTEGER and size in (1, 2, 4, 8) and whole:
        return Datatype(kind, size, np.dtype(f"{order}{'i' if bits & 8 else 'u'}{size}"))
    if kind == FLOAT and len(rest) >= 12 and bits & 0x40 == 0:
        fields = (*rest[4:8], int.from_bytes(rest[8:12], "little"))
        name = _FLOATS.get(fields)
        if name is not None and whole and bits >> 8 & 0xFF == 8 * size - 1:
            found = named_dtype(name)
            if found.itemsize == size:
                return Datatype(kind, size, found if name == "bfloat16" and order == "<" else found.newbyteorder(order))
    if kind == ENUMERATION and bits & 0xFFFF == 2 and size == 1 and b"FALSE" in rest and b"TRUE" in rest:
        return Datatype(kind, size, np.dtype(bool))
    if kind == OPAQUE and size == 2:  # how h5py stores bfloat16; Keras says so in an attribute
        return Datatype(kind, size, np.dtype("V2"))
    if kind == TEXT and 0 < size < 1 << 24:
        return Datatype(kind, size, is_text=True)
    if kind == VARIABLE and bits & 15 == 1 and size == 16:
        return Datatype(kind, size, is_text=True)
    raise refuse(f"a datatype of class {kind} and {size} bytes, which weights do not have")


def encode(dtype: np.dtype[Any]) -> bytes:
    """The message of a dtype; a TypeError for one that a file of weights cannot hold."""
    size = dtype.itemsize
    if dtype == np.bool_:
        names = b"".join(name.ljust(8, b"\0") for name in (b"FALSE", b"TRUE"))
        return _head(ENUMERATION, 2, 1) + encode(np.dtype("int8")) + names + bytes([0, 1])
    if dtype.name == "bfloat16":
        return _head(OPAQUE, 0, 2)
    if dtype.kind in "iu":
        return _head(INTEGER, 8 * (dtype.kind == "i"), size) + bytes([0, 0, 8 * size, 0])
    fields = next((fields for fields, name in _FLOATS.items() if name == dtype.name), None)
    if fields is None:
        raise TypeError(f"HDF5 files of weights hold numbers and truth values, found {dtype.name}.")
    head = _head(FLOAT, 0x20 | (8 * size - 1) << 8, size)
    return head + bytes([0, 0, 8 * size, 0, *fields[:4]]) + fields[4].to_bytes(4, "little")


def encode_text(length: int) -> bytes:
    """The message of a UTF-8 text of a fixed length, filled up with zeros."""
    return _head(TEXT, 0x11, length)


def _head(kind: int, bits: int, size: int) -> bytes:
    return bytes([0x10 | kind]) + bits.to_bytes(3, "little") + size.to_bytes(4, "little")
