"""safetensors: named arrays in one file.

The `safetensors` package writes. Reading is stricter and needs nothing: the header accounts for every byte of the file.

    8 bytes  length n of the header, little-endian
    n bytes  JSON: name -> {"dtype", "shape", "data_offsets"}, and "__metadata__": texts
    rest     the arrays, one after another
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from io import BytesIO, FileIO
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..extras import imported
from ..types import as_dtype
from . import excerpt, memory_for, opened, read_exactly, refuse_if, refused, strict_json
from .durable import write_file

MOST_TENSORS = 100_000
LONGEST_NAME = 1024
DIGEST = "minikeras_sha256"
"""Name of the metadata that holds, in files written here, the SHA-256 of the file, taken with zeros in its place."""

_ZEROS = "0" * 64

_DTYPES = {
    "BOOL": "bool",
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "BF16": "bfloat16",
    "C64": "complex64",
}

Arrays = dict[str, NDArray[Any]]


class Entry(NamedTuple):
    """One array: what it is, and where it lies in the section of data."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


def encode(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None) -> bytes | bytearray:
    """The bytes of a safetensors file, with its SHA-256 among the metadata; a TypeError for a dtype without a code."""
    writer = imported("safetensors.numpy", "writing checkpoints and .safetensors files needs the package safetensors")
    for name, array in arrays.items():
        if array.dtype.name not in _DTYPES.values():
            raise TypeError(f"safetensors: '{name}' has dtype {array.dtype.name}, one of {sorted(_DTYPES.values())} is needed.")
    if not arrays:
        text = strict_json.dumps({"__metadata__": {**(metadata or {}), DIGEST: _ZEROS}})
        text += b" " * (-len(text) % 8)
        empty = len(text).to_bytes(8, "little") + text
        return empty.replace(_ZEROS.encode(), hashlib.sha256(empty).hexdigest().encode())
    contiguous = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    content = bytearray(writer.save(contiguous, metadata={**(metadata or {}), DIGEST: _ZEROS}))
    place = _place_of_digest(content[: 8 + int.from_bytes(content[:8], "little")], _ZEROS)
    content[place : place + 64] = hashlib.sha256(content).hexdigest().encode()
    return content


def _place_of_digest(header: bytes | bytearray, digest: str) -> int:
    """The position of the digest in the header."""
    return header.index(f'"{digest}"'.encode(), header.index(f'"{DIGEST}"'.encode())) + 1


def save(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays as one file, whole or not at all."""
    write_file(path, encode(arrays, metadata))


def load(path: str | os.PathLike[str], sha256: str | None = None, follow: bool = True) -> tuple[Arrays, dict[str, str]]:
    """Arrays by name, and the metadata, of a file; `follow` says whether the path may be a symbolic link."""
    with opened(path, follow) as (stream, size):
        return decode(stream, size, path, sha256)


def decode(stream: FileIO | BytesIO, size: int, path: Any, sha256: str | None = None) -> tuple[Arrays, dict[str, str]]:
    """Arrays by name, and the metadata; a LoadError if a byte is missing, superfluous or wrong.

    Args:
        stream, size: the bytes, and how many there are.
        path: named in errors.
        sha256: the hash that the whole file must have; if None, the one in the metadata is compared, if there is one.
    """
    entries, metadata, text = read_header(stream, size, path)
    stated = metadata.get(DIGEST)
    if sha256 is None and stated is not None:
        place = _place_of_digest(text, stated) if f'"{DIGEST}":"{stated}"'.encode() in text else 0
        text = text[:place] + _ZEROS.encode() + text[place + 64 :]
    digest = hashlib.sha256(text)
    arrays: Arrays = {}
    for name, entry in entries.items():
        with memory_for(entry.stop - entry.start, path):
            array = np.empty(entry.shape, entry.dtype)
        raw = array.reshape(-1).view(np.uint8)
        read_exactly(stream, raw.data, path)
        digest.update(raw.data)
        refuse_if(entry.dtype == np.bool_ and raw.max(initial=0) > 1, path, f"data: {name}", "truth values are 0 or 1")
        arrays[name] = array
    expected = sha256 or stated
    if expected is not None and digest.hexdigest() != expected:
        found = digest.hexdigest()
        raise refused(path, "", f"is damaged: its SHA-256 is {found[:16]}..., expected is {excerpt(expected, 16)}")
    return arrays, {name: value for name, value in metadata.items() if name != DIGEST}


def read_header(stream: FileIO | BytesIO, size: int, file: object) -> tuple[dict[str, Entry], dict[str, str], bytes]:
    """Arrays and metadata, verified to be exactly the bytes of the file, and the header; the stream then stands at the data."""
    refuse_if(size < 10, file, "", f"holds {size} bytes, too few for safetensors")
    prefix = bytearray(8)
    read_exactly(stream, memoryview(prefix), file)
    length = int.from_bytes(prefix, "little")
    if length > min(size - 8, strict_json.LARGEST):
        raise refused(file, "header", f"declares {length} bytes, {min(size - 8, strict_json.LARGEST)} are possible")
    text = bytearray(length)
    read_exactly(stream, memoryview(text), file)
    refuse_if(not text.startswith(b"{"), file, "header", "does not start with '{'")
    tree = strict_json.loads(text, file, "header")
    metadata = tree.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise refused(file, "header: __metadata__", "must map texts to texts")
    refuse_if(len(tree) > MOST_TENSORS, file, "header", f"declares {len(tree)} arrays, at most {MOST_TENSORS} are allowed")
    entries = {name: _entry(name, value, file) for name, value in tree.items()}
    end = 0
    ordered = dict(sorted(entries.items(), key=lambda item: (item[1].start, item[1].stop)))
    for name, entry in ordered.items():
        if entry.start != end:
            raise refused(file, f"header: {name}", f"starts at byte {entry.start} of the data, the array before ends at {end}")
        end = entry.stop
    refuse_if(8 + length + end != size, file, "header", f"declares {8 + length + end} bytes, the file holds {size}")
    return ordered, metadata, bytes(prefix + text)


def _entry(name: str, value: Any, file: object) -> Entry:
    place = f"header: {name}"
    if not name.isprintable() or not name or len(name) > LONGEST_NAME:
        raise refused(file, place, f"names must be printable and at most {LONGEST_NAME} characters long")
    if name.startswith("/") or "\\" in name or ".." in name.split("/"):
        raise refused(file, place, "a name that would leave its folder, were it that of a file")
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise refused(file, place, "must hold dtype, shape and data_offsets, and nothing else")
    if not isinstance(value["dtype"], str) or value["dtype"] not in _DTYPES:
        raise refused(file, place, f"unknown dtype {excerpt(value['dtype'])}")
    shape, offsets = value["shape"], value["data_offsets"]
    if not _counts(shape) or not _counts(offsets) or len(shape) > 32 or len(offsets) != 2:
        raise refused(file, place, "shape and data_offsets must be lists of counts, at most 32 and exactly 2")
    dtype = as_dtype(_DTYPES[value["dtype"]]).numpy
    needed = math.prod(shape) * dtype.itemsize
    if offsets[1] - offsets[0] != needed:
        raise refused(file, place, f"{dtype.name} of shape {tuple(shape)} needs {needed} bytes, data_offsets give {offsets}")
    return Entry(dtype, tuple(shape), offsets[0], offsets[1])


def _counts(value: object) -> bool:
    return isinstance(value, list) and all(type(count) is int and 0 <= count < 2**48 for count in value)
