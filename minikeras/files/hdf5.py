"""HDF5, as far as Keras's files use it, in Python: groups, plain arrays, texts as attributes.

HDF5's C library trusts what it reads. The reader knows the few structures that Keras writes, those of version 0 of the format
(symbol tables, contiguous arrays), and refuses links into other files, filters and all else. Every offset is checked before it
is followed, nothing is followed twice, and arrays are views of the file. All goes through `_File.part`, which refuses what lies
outside the file: damage leads to an error or to wrong numbers, and in files written here, which carry a SHA-256 over all their
bytes, to an error. The writer lays groups and arrays out as h5py does by default.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..types import as_dtype
from . import excerpt, refused

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


def decode_dtype(raw: bytes, refuse: Callable[[str], Exception]) -> Datatype:
    """A datatype from its message; compound types, references, times, bit fields and damaged ones are refused."""
    if len(raw) < 8:
        raise refuse("a datatype is cut off")
    (first, size), rest = struct.unpack_from("<II", raw), raw[8:]
    kind, version, bits = first & 15, first >> 4 & 15, first >> 8
    order: Literal["<", ">"] = ">" if bits & 1 else "<"
    whole = rest[:4] == struct.pack("<HH", 0, 8 * min(size, 8))  # all bits of all bytes are used
    if not 1 <= version <= 5:
        raise refuse(f"a datatype of version {version}")
    if kind == INTEGER and size in (1, 2, 4, 8) and whole:
        return Datatype(kind, size, np.dtype(f"{order}{'i' if bits & 8 else 'u'}{size}"))
    if kind == FLOAT and len(rest) >= 12 and bits & 0x40 == 0:
        name = _FLOATS.get(struct.unpack_from("<4x4BI", rest))
        if name is not None and whole and bits >> 8 & 0xFF == 8 * size - 1:
            found = as_dtype(name).numpy
            if found.itemsize == size:
                return Datatype(kind, size, found if name == "bfloat16" and order == "<" else found.newbyteorder(order))
    if kind == ENUMERATION and bits & 0xFFFF == 2 and size == 1 and b"FALSE" in rest and b"TRUE" in rest:
        return Datatype(kind, size, np.dtype(bool))
    if kind == OPAQUE and size == 2:  # how h5py stores bfloat16; Keras says so in an attribute
        return Datatype(kind, size, np.dtype("V2"))
    if kind == TEXT and 0 < size < 1 << 24:
        return Datatype(kind, size)
    if kind == VARIABLE and bits & 15 == 1 and size == 16:
        return Datatype(kind, size)
    raise refuse(f"a datatype of class {kind} and {size} bytes, which weights do not have")


def encode_dtype(dtype: np.dtype[Any]) -> bytes:
    """The message of a dtype; a TypeError for one that a file of weights cannot hold."""
    size = dtype.itemsize
    if dtype == np.bool_:
        names = b"".join(name.ljust(8, b"\0") for name in (b"FALSE", b"TRUE"))
        return _head(ENUMERATION, 2, 1) + encode_dtype(np.dtype("int8")) + names + bytes([0, 1])
    if dtype.name == "bfloat16":
        return _head(OPAQUE, 0, 2)
    if dtype.kind in "iu":
        return _head(INTEGER, 8 * (dtype.kind == "i"), size) + struct.pack("<HH", 0, 8 * size)
    fields = next((fields for fields, name in _FLOATS.items() if name == dtype.name), None)
    if fields is None:
        raise TypeError(f"HDF5 files of weights hold numbers and truth values, found {dtype.name}.")
    return _head(FLOAT, 0x20 | (8 * size - 1) << 8, size) + struct.pack("<HH4BI", 0, 8 * size, *fields)


def _head(kind: int, bits: int, size: int) -> bytes:
    return struct.pack("<II", 0x10 | kind | bits << 8, size)


DIGEST = "minikeras_sha256"
"""Attribute of the root that holds the SHA-256 of the file, taken with zeros in its place."""

SIGNATURE = b"\x89HDF\r\n\x1a\n"
NOWHERE = 2**64 - 1
DEEPEST = 32
MOST_OBJECTS = 100_000
MOST_MESSAGES = 10_000
LONGEST_TEXT = 1 << 24

_SPACE, _TYPE, _EXTERNAL, _LAYOUT, _FILTERS, _ATTRIBUTE, _CONTINUATION, _SYMBOLS = 0x1, 0x3, 0x7, 0x8, 0xB, 0xC, 0x10, 0x11
_NEW_GROUP = {0x2: "link info", 0x6: "link", 0x15: "attribute info"}


class StoredArray(NamedTuple):
    """An array in a file: where it is, and a view of the bytes of the file."""

    path: str
    array: NDArray[Any]


class StoredGroup(NamedTuple):
    """A folder within a file: where it is, and groups and datasets by name."""

    path: str
    members: dict[str, StoredGroup | StoredArray]
    attributes: Attributes

    def get(self, path: str) -> StoredGroup | StoredArray | None:
        """The group or array at a path such as 'layers/dense/vars/0'; None if there is nothing."""
        found: StoredGroup | StoredArray | None = self
        for name in path.split("/"):
            found = found.members.get(name) if isinstance(found, StoredGroup) else None
        return found

    def datasets(self) -> Iterator[StoredArray]:
        """All datasets below."""
        for member in self.members.values():
            yield from member.datasets() if isinstance(member, StoredGroup) else [member]


class _Message(NamedTuple):
    kind: int
    data: memoryview
    at: int


class Attributes:
    """The attributes of an object, decoded when they are asked for."""

    def __init__(self, file: _File, path: str, messages: list[_Message]) -> None:
        self._file, self._path = file, path
        self.parts: dict[str, list[Any]] = {}
        for message in messages:
            if message.kind == _ATTRIBUTE:
                name, *rest = file.attribute_parts(message, path)
                if name in self.parts:
                    raise file.refuse(path, f"the attribute '{excerpt(name)}' appears twice")
                self.parts[name] = rest

    def get(self, name: str) -> Any:
        """A text, a list of texts, or an array; None if there is no such attribute."""
        if name not in self.parts:
            return None
        raw_type, raw_space, data, _ = self.parts[name]
        file, place = self._file, f"{self._path}@{name}"
        kind = decode_dtype(bytes(raw_type), lambda reason: file.refuse(place, reason))
        shape = file.shape(raw_space, place)
        count = math.prod(shape)
        if count * kind.size > len(data):
            raise file.refuse(place, f"declares {count * kind.size} bytes, the attribute holds {len(data)}")
        if kind.dtype is not None:
            return np.frombuffer(data, kind.dtype, count).reshape(shape)
        texts, left = [], LONGEST_TEXT
        for number in range(count):
            raw = bytes(data[number * kind.size : (number + 1) * kind.size])
            raw = file.global_text(raw, place) if kind.kind == VARIABLE else raw.split(b"\0")[0]
            left -= len(raw)
            file.refuse_if(left < 0, place, f"texts of more than {LONGEST_TEXT} bytes")
            try:
                texts.append(raw.decode("utf-8"))
            except UnicodeDecodeError:
                raise file.refuse(place, "a text that is not UTF-8") from None
        return texts if shape else texts[0]


def read(content: bytes | bytearray | memoryview, file: object) -> StoredGroup:
    """The tree of a file; its arrays are views of `content`.

    Raises:
        LoadError: for anything but groups and plain arrays, what lies outside the file or is reached twice, a wrong SHA-256.
    """
    reader = _File(memoryview(content).cast("B").toreadonly(), file)
    root = reader.root()
    if DIGEST in root.attributes.parts:
        place = root.attributes.parts[DIGEST][3]
        stated = bytes(reader.part(place, 64, "/", "its SHA-256"))
        digest = hashlib.sha256(reader.content[:place])
        for rest in (b"0" * 64, reader.content[place + 64 :]):
            digest.update(rest)
        if digest.hexdigest().encode() != stated:
            raise reader.refuse("", "is damaged: its content does not have the SHA-256 that it states")
    return root


class _File:
    """The bytes of a file, and what was met in them."""

    def __init__(self, content: memoryview, name: object) -> None:
        self.content, self.name = content, name
        self.visited: set[int] = set()

    def refuse(self, place: str, reason: str) -> Exception:
        """The error to raise."""
        return refused(self.name, place, reason)

    def refuse_if(self, problem: object, place: str, reason: str) -> None:
        """Raise that error if there is a problem."""
        if problem:
            raise refused(self.name, place, reason)

    def part(self, start: int, length: int, place: str, what: str) -> memoryview:
        """Bytes of the file, or an error if they are not all there."""
        if start < 0 or length < 0 or start + length > len(self.content):
            raise self.refuse(place, f"{what} lies outside the file (bytes {start} to {start + length} of {len(self.content)})")
        return self.content[start : start + length]

    def fields(self, layout: str, start: int, place: str, what: str) -> tuple[Any, ...]:
        """The values at a place of the file, by a format of `struct`."""
        return struct.unpack(layout, self.part(start, struct.calcsize(layout), place, what))

    def within(self, layout: str, data: memoryview, place: str, at: int = 0) -> tuple[Any, ...]:
        """The values at a place of a message, or an error if it ends before."""
        self.refuse_if(len(data) < at + struct.calcsize(layout), place, "a message is cut off")
        return struct.unpack_from(layout, data, at)

    def once(self, address: int, place: str) -> None:
        """Refuse to come to a structure a second time: a hard link or a circle."""
        self.refuse_if(address in self.visited, place, f"the structure at byte {address} is reached twice")
        self.visited.add(address)
        self.refuse_if(len(self.visited) > 4 * MOST_OBJECTS, place, f"holds more than {MOST_OBJECTS} objects")

    # Objects -------------------------------------------------------------------------------------------------------------

    def root(self) -> StoredGroup:
        """The tree from the superblock on."""
        self.refuse_if(bytes(self.content[:8]) != SIGNATURE, "", "is no HDF5 file")
        version, sizes, base, end, address = self.fields("<8xB4x2s9xQ8xQ16xQ24x", 0, "", "the superblock")
        self.refuse_if(version, "", f"HDF5 superblock of version {version}; h5py writes version 0 unless libver is set")
        self.refuse_if(sizes != b"\x08\x08" or base, "", "HDF5 with unusual sizes of offsets or a base address")
        cut = "is cut off: " if end > len(self.content) else ""
        self.refuse_if(end != len(self.content), "", f"{cut}declares {end} bytes, holds {len(self.content)}")
        found = self.object(address, "", 0)
        if not isinstance(found, StoredGroup):
            raise self.refuse("", "the root is no group")
        return found

    def object(self, address: int, path: str, depth: int) -> StoredGroup | StoredArray:
        """The group or dataset whose header is at an address."""
        self.refuse_if(depth > DEEPEST, path, f"nested deeper than {DEEPEST} groups")
        self.once(address, path)
        messages = self.messages(address, path)
        kinds = {message.kind: message.data for message in messages}
        for kind, name in _NEW_GROUP.items():
            newer = f"a structure of newer HDF5 ({name}); h5py writes the older one unless libver is set"
            self.refuse_if(kind in kinds, path, newer)
        attributes = Attributes(self, path, messages)
        if _SYMBOLS in kinds:
            return StoredGroup(path, self.members(kinds[_SYMBOLS], path, depth), attributes)
        return self.dataset(kinds, path, attributes)

    def messages(self, address: int, path: str) -> list[_Message]:
        """The messages of an object header, continuations included."""
        version, length = self.fields("<B7xI4x", address, path, "an object header")
        self.refuse_if(version != 1, path, "an object header of a version that h5py does not write by default")
        blocks, found = [(address + 16, length)], list[_Message]()
        while blocks:
            start, length = blocks.pop(0)
            self.part(start, length, path, "an object header")
            stop = start + length
            while start + 8 <= stop:
                kind, size, flags = self.fields("<HHB3x", start, path, "a message")
                self.refuse_if(start + 8 + size > stop, path, "a message is longer than its header")
                self.refuse_if(flags & 2, path, "a shared message")
                data = self.part(start + 8, size, path, "a message")
                if kind == _CONTINUATION:
                    blocks.append(self.within("<QQ", data, path))
                    self.once(blocks[-1][0], path)
                found.append(_Message(kind, data, start + 8))
                self.refuse_if(len(found) > MOST_MESSAGES, path, f"more than {MOST_MESSAGES} messages")
                start += 8 + size
        return found

    # Groups --------------------------------------------------------------------------------------------------------------

    def members(self, table: memoryview, path: str, depth: int) -> dict[str, StoredGroup | StoredArray]:
        """The members of a group, by name."""
        tree, heap = self.within("<QQ", table, path)
        mark, size, start = self.fields("<5s3xQ8xQ", heap, path, "a heap of names")
        self.refuse_if(mark != b"HEAP\0", path, "damaged heap of names")
        names = self.part(start, size, path, "a heap of names")
        found: dict[str, StoredGroup | StoredArray] = {}
        for name_at, address, cached in self.entries(tree, path, 0):
            text, terminated, _ = bytes(names[name_at : name_at + 1025]).partition(b"\0")
            name = text.decode("utf-8", "surrogateescape")  # what is no UTF-8 is not printable
            unfit = not terminated or not name or "/" in name or name in (".", "..") or not name.isprintable()
            self.refuse_if(unfit, path, f"a name that is not allowed ({excerpt(text)})")
            self.refuse_if(name in found, path, f"'{excerpt(name)}' appears twice")
            self.refuse_if(cached == 2, f"{path}/{name}", "a soft link")
            found[name] = self.object(address, f"{path}/{name}", depth + 1)
        return found

    def entries(self, address: int, path: str, level: int) -> Iterator[tuple[int, int, int]]:
        """Offset of the name, address and kind of each member, from the B-tree of a group."""
        self.refuse_if(level > 16, path, "a B-tree that is too deep")
        self.once(address, path)
        mark, above, used = self.fields("<5sBH16x", address, path, "a B-tree")
        self.refuse_if(mark != b"TREE\0", path, "damaged B-tree")
        for _, child in struct.iter_unpack("<QQ", self.part(address + 24, used * 16 + 8, path, "a B-tree")[:-8]):
            if above:
                yield from self.entries(child, path, level + 1)
                continue
            self.once(child, path)
            mark, count = self.fields("<5sxH", child, path, "a symbol table")
            self.refuse_if(mark != b"SNOD\x01", path, "damaged symbol table")
            yield from struct.iter_unpack("<QQI20x", self.part(child + 8, count * 40, path, "a symbol table"))

    # Datasets ------------------------------------------------------------------------------------------------------------

    def dataset(self, kinds: dict[int, memoryview], path: str, attributes: Attributes) -> StoredArray:
        """An array: its type and shape, and the bytes that belong to it."""
        self.refuse_if(_EXTERNAL in kinds, path, "data in another file")
        self.refuse_if(_FILTERS in kinds, path, "compressed or filtered data; weights are stored as they are")
        self.refuse_if(not {_TYPE, _SPACE, _LAYOUT} <= set(kinds), path, "neither a group nor an array")
        kind = decode_dtype(bytes(kinds[_TYPE]), lambda reason: self.refuse(path, reason))
        if (dtype := kind.dtype) is None:
            raise self.refuse(path, "an array of texts, numbers are expected")
        shape = self.shape(kinds[_SPACE], path)
        raw = self.stored(kinds[_LAYOUT], math.prod(shape) * kind.size, path)
        if kind.kind == OPAQUE:
            self.refuse_if(attributes.get("dtype") != "bfloat16", path, "opaque data that is not said to be bfloat16")
            dtype = as_dtype("bfloat16").numpy
        return StoredArray(path, np.frombuffer(raw, dtype).reshape(shape))

    def stored(self, layout: memoryview, size: int, path: str) -> memoryview:
        """The bytes of an array, which must be exactly as many as its shape needs."""
        version, kind = self.within("<BB", layout, path)
        how = {2: "in chunks", 3: "virtual"}.get(kind, "unusually")
        self.refuse_if(version != 3 or kind > 1, path, f"data stored {how}")
        address, length = self.within("<QQ", layout, path, 2) if kind else (4, *self.within("<H", layout, path, 2))
        self.refuse_if(length != size, path, f"the shape needs {size} bytes, {length} are stored")
        if not kind or not size:
            self.refuse_if(not kind and len(layout) < 4 + size, path, "an array is cut off")
            return layout[4 : 4 + size]
        self.refuse_if(address == NOWHERE, path, "an array that was never written")
        return self.part(address, length, path, "an array")

    def shape(self, raw: memoryview, path: str) -> tuple[int, ...]:
        """The shape of a dataspace."""
        version, rank, _, kind = self.within("<4B", raw, path)
        start = {1: 8, 2: 4}.get(version, len(raw))
        if rank > 32 or len(raw) < start + 8 * rank or version not in (1, 2) or (version == 2 and kind == 2):
            raise self.refuse(path, "a dataspace that is damaged or unusual")
        shape = struct.unpack_from(f"<{rank}Q", raw, start)
        self.refuse_if(math.prod(size or 1 for size in shape) > 2**48, path, f"the shape {excerpt(shape, 60)} is too large")
        return shape

    # Attributes ----------------------------------------------------------------------------------------------------------

    def attribute_parts(self, message: _Message, path: str) -> tuple[str, memoryview, memoryview, memoryview, int]:
        """Name, datatype, dataspace, value and its address of an attribute message."""
        data = message.data
        version, shared, *sizes = self.within("<BB3H", data, path)
        self.refuse_if(version not in (1, 2, 3) or (version > 1 and shared), path, "an attribute that is damaged or shared")
        at, pieces = 9 if version == 3 else 8, []
        for size in sizes:
            pieces.append(data[at : at + size])
            at += -(-size // 8) * 8 if version == 1 else size
        self.refuse_if(at > len(data), path, "an attribute is cut off")
        name = bytes(pieces[0]).split(b"\0")[0].decode("utf-8", "replace")
        return name, pieces[1], pieces[2], data[at:], message.at + at

    def global_text(self, reference: bytes, place: str) -> bytes:
        """A text from the global heap: length, address of the collection, number within it."""
        length, address, wanted = struct.unpack("<IQI", reference)
        if not length:
            return b""
        mark, end = self.fields("<5s3xQ", address, place, "a heap of texts")
        self.refuse_if(mark != b"GCOL\x01", place, "damaged heap of texts")
        heap, at, index = self.part(address, end, place, "a heap of texts"), 16, -1
        while at + 16 <= end and index:
            index, size = self.within("<H6xQ", heap, place, at)
            if index == wanted:
                self.refuse_if(length > size, place, f"a text of {length} bytes, {size} are stored")
                return bytes(self.part(address + at + 16, length, place, "a text"))
            at += 16 + -(-size // 8) * 8
        raise self.refuse(place, "a text that is not in its heap")


# Writing -------------------------------------------------------------------------------------------------------------------

_TREE_K = 16
"""Half the number of symbol tables that the B-tree of a group can point to."""


class NewGroup:
    """A group to be written: groups, arrays and attributes (texts) by name."""

    def __init__(self) -> None:
        self.groups: dict[str, NewGroup] = {}
        self.arrays: dict[str, NDArray[Any]] = {}
        self.attributes: dict[str, str] = {}

    def below(self, path: str) -> NewGroup:
        """The group at a path, made if it is not there; '' is this one."""
        node = self
        for name in path.split("/") if path else ():
            node = node.groups.setdefault(name, NewGroup())
        return node

    def largest(self) -> int:
        """The largest number of members of one group."""
        return max([len(self.groups) + len(self.arrays), *(group.largest() for group in self.groups.values())])


def encode(root: NewGroup) -> bytes:
    """The bytes of a file with this tree; a TypeError for arrays that hold no numbers, a ValueError for too long a text."""
    return _Writer(root).finish(root)


class _Writer:
    def __init__(self, root: NewGroup) -> None:
        self.content = bytearray(96)
        self.leaf_k = max(4, -(-root.largest() // (4 * _TREE_K)))

    def finish(self, root: NewGroup) -> bytes:
        """Write the tree, then the superblock that points to it, then the digest of both."""
        root.attributes = {**root.attributes, DIGEST: "0" * 64}
        header, tree, heap = self.group(root)
        self.content += bytes(-len(self.content) % 8)
        head = SIGNATURE, 8, 8, self.leaf_k, _TREE_K, 0, NOWHERE, len(self.content), NOWHERE, 0, header, 1, tree, heap
        self.content[:96] = struct.pack("<8s5xBBxHH4x6QI4xQQ", *head)
        place = self.content.rindex(b"0" * 64, header)
        self.content[place : place + 64] = hashlib.sha256(self.content).hexdigest().encode()
        return bytes(self.content)

    def place(self, *parts: Any) -> int:
        """Append bytes at a multiple of 8; where they begin."""
        self.content += bytes(-len(self.content) % 8)
        start = len(self.content)
        for part in parts:
            self.content += part
        return start

    def header(self, messages: list[tuple[int, bytes]]) -> int:
        """An object header."""
        body = b""
        for kind, data in messages:
            data += bytes(-len(data) % 8)
            if len(data) > 0xFFF8:
                raise ValueError(f"HDF5: an attribute of {len(data)} bytes, at most 65,528 are possible.")
            body += struct.pack("<HH4x", kind, len(data)) + data
        return self.place(struct.pack("<BxHII4x", 1, len(messages), 1, len(body)), body)

    def group(self, node: NewGroup) -> tuple[int, int, int]:
        """A group: addresses of its header, B-tree and heap of names."""
        members = {name: self.dataset(array) for name, array in node.arrays.items()}
        members |= {name: self.group(child)[0] for name, child in node.groups.items()}
        names = bytearray(8)
        rows: list[tuple[int, bytes]] = []
        for name in sorted(members, key=str.encode):
            rows.append((len(names), _u64(len(names), members[name]) + bytes(24)))
            names += name.encode() + b"\0"
            names += bytes(-len(names) % 8)
        size = 2 * self.leaf_k
        nodes, keys = [], [0]
        for start in range(0, len(rows), size):
            batch = rows[start : start + size]
            row_bytes = b"".join(row for _, row in batch)
            nodes.append(self.place(struct.pack("<6sH", b"SNOD\x01", len(batch)), row_bytes, bytes(40 * size - len(row_bytes))))
            keys.append(batch[-1][0])
        links = b"".join(_u64(key, node) for key, node in zip(keys, nodes, strict=False)) + _u64(keys[-1] if nodes else 0)
        tree = self.place(
            struct.pack("<6sHQQ", b"TREE", len(nodes), NOWHERE, NOWHERE), links, bytes(16 * 2 * _TREE_K + 8 - len(links))
        )
        heap = self.place(b"HEAP\0\0\0\0", _u64(len(names), 1, self.place(names)))
        attributes = [(0xC, _attribute(name, text)) for name, text in node.attributes.items()]
        return self.header([(0x11, _u64(tree, heap)), *attributes]), tree, heap

    def dataset(self, array: NDArray[Any]) -> int:
        """An array: address of its header."""
        plain = array.astype(array.dtype.newbyteorder("<"), copy=False) if array.dtype.kind in "iuf" else array
        values = np.ascontiguousarray(plain)
        start = self.place(values.reshape(-1).view(np.uint8).data) if values.nbytes else NOWHERE
        messages = [
            (0x1, _space(array.shape)),
            (0x3, encode_dtype(array.dtype)),
            (0x5, bytes([2, 2, 2, 1]) + bytes(4)),
            (0x8, b"\x03\x01" + _u64(start, values.nbytes)),
        ]
        if array.dtype.name == "bfloat16":
            messages.append((0xC, _attribute("dtype", "bfloat16")))
        return self.header(messages)


def _attribute(name: str, text: str) -> bytes:
    """An attribute that is a text."""
    value = text.encode() or b"\0"
    parts = [name.encode() + b"\0", _head(TEXT, 0x11, len(value)), _space(())]  # UTF-8 of a fixed length
    return struct.pack("<BxHHH", 1, *map(len, parts)) + b"".join(part + bytes(-len(part) % 8) for part in parts) + value


def _space(shape: tuple[int, ...]) -> bytes:
    return struct.pack(f"<BB6x{len(shape)}Q", 1, len(shape), *shape)


def _u64(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)
