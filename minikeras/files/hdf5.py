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

from .reading import excerpt, refused
from .tensors import named_dtype

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


def decode_dtype(raw: bytes, refuse: Callable[[str], Exception]) -> Datatype:
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


def encode_dtype(dtype: np.dtype[Any]) -> bytes:
    """The message of a dtype; a TypeError for one that a file of weights cannot hold."""
    size = dtype.itemsize
    if dtype == np.bool_:
        names = b"".join(name.ljust(8, b"\0") for name in (b"FALSE", b"TRUE"))
        return _head(ENUMERATION, 2, 1) + encode_dtype(np.dtype("int8")) + names + bytes([0, 1])
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

    def attribute(self, name: str) -> Any:
        """A text, a list of texts, or an array; None if there is no such attribute."""
        return self.attributes.get(name)

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
        """The value of an attribute, or None."""
        if name not in self.parts:
            return None
        raw_type, raw_space, data, _ = self.parts[name]
        file, place = self._file, f"{self._path}@{name}"
        kind = decode_dtype(bytes(raw_type), lambda reason: file.refuse(place, reason))
        shape = file.shape(raw_space, place)
        count = math.prod(shape)
        if count * kind.size > len(data):
            raise file.refuse(place, f"declares {count * kind.size} bytes, the attribute holds {len(data)}")
        if not kind.is_text:
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

    def number(self, start: int, length: int, place: str, what: str) -> int:
        """An unsigned integer."""
        return int.from_bytes(self.part(start, length, place, what), "little")

    def once(self, address: int, place: str) -> None:
        """Refuse to come to a structure a second time: a hard link or a circle."""
        if address in self.visited:
            raise self.refuse(place, f"the structure at byte {address} is reached twice")
        self.visited.add(address)
        self.refuse_if(len(self.visited) > 4 * MOST_OBJECTS, place, f"holds more than {MOST_OBJECTS} objects")

    # Objects -------------------------------------------------------------------------------------------------------------

    def root(self) -> StoredGroup:
        """The tree from the superblock on."""
        self.refuse_if(bytes(self.content[:8]) != SIGNATURE, "", "is no HDF5 file")
        block = bytes(self.part(0, 96, "", "the superblock"))
        self.refuse_if(block[8] != 0, "", f"HDF5 superblock of version {block[8]}; h5py writes version 0 unless libver is set")
        if block[13:15] != b"\x08\x08" or any(block[24:32]):
            raise self.refuse("", "HDF5 with unusual sizes of offsets or a base address")
        end = int.from_bytes(block[40:48], "little")
        self.refuse_if(end > len(self.content), "", f"is cut off: declares {end} bytes, holds {len(self.content)}")
        self.refuse_if(end < len(self.content), "", f"declares {end} bytes, holds {len(self.content)}")
        found = self.object(int.from_bytes(block[64:72], "little"), "", 0)
        if not isinstance(found, StoredGroup):
            raise self.refuse("", "the root is no group")
        return found

    def object(self, address: int, path: str, depth: int) -> StoredGroup | StoredArray:
        """The group or dataset whose header is at an address."""
        self.refuse_if(depth > DEEPEST, path, f"nested deeper than {DEEPEST} groups")
        self.once(address, path)
        messages = self.messages(address, path)
        kinds = {message.kind: message for message in messages}
        for kind, name in _NEW_GROUP.items():
            if kind in kinds:
                raise self.refuse(path, f"a structure of newer HDF5 ({name}); h5py writes the older one unless libver is set")
        attributes = Attributes(self, path, messages)
        if _SYMBOLS in kinds:
            return StoredGroup(path, self.members(kinds[_SYMBOLS], path, depth), attributes)
        return self.dataset(kinds, path, attributes)

    def messages(self, address: int, path: str) -> list[_Message]:
        """The messages of an object header, continuations included."""
        if self.number(address, 1, path, "an object header") != 1:
            raise self.refuse(path, "an object header of a version that h5py does not write by default")
        blocks = [(address + 16, self.number(address + 8, 4, path, "an object header"))]
        found: list[_Message] = []
        while blocks:
            start, length = blocks.pop(0)
            self.part(start, length, path, "an object header")
            stop = start + length
            while start + 8 <= stop:
                kind, size = self.number(start, 2, path, "a message"), self.number(start + 2, 2, path, "a message")
                flags = self.number(start + 4, 1, path, "a message")
                if start + 8 + size > stop:
                    raise self.refuse(path, "a message is longer than its header")
                data = self.part(start + 8, size, path, "a message")
                if flags & 2:
                    raise self.refuse(path, "a shared message")
                if kind == _CONTINUATION:
                    at = int.from_bytes(data[:8], "little")
                    self.once(at, path)
                    blocks.append((at, int.from_bytes(data[8:16], "little")))
                found.append(_Message(kind, data, start + 8))
                if len(found) > MOST_MESSAGES:
                    raise self.refuse(path, f"more than {MOST_MESSAGES} messages")
                start += 8 + size
        return found

    # Groups --------------------------------------------------------------------------------------------------------------

    def members(self, table: _Message, path: str, depth: int) -> dict[str, StoredGroup | StoredArray]:
        """The members of a group, by name."""
        self.refuse_if(len(table.data) < 16, path, "a symbol table is cut off")
        tree, heap = int.from_bytes(table.data[:8], "little"), int.from_bytes(table.data[8:16], "little")
        header = bytes(self.part(heap, 32, path, "a heap of names"))
        self.refuse_if(header[:5] != b"HEAP\0", path, "damaged heap of names")
        size, start = int.from_bytes(header[8:16], "little"), int.from_bytes(header[24:32], "little")
        names = self.part(start, size, path, "a heap of names")
        found: dict[str, StoredGroup | StoredArray] = {}
        for name_at, address, cached in self.entries(tree, path, 0):
            raw = bytes(names[name_at : name_at + 1025])
            text, terminated, _ = raw.partition(b"\0")
            try:
                name = text.decode("utf-8")
            except UnicodeDecodeError:
                name = ""
            if not terminated or not name or "/" in name or name in (".", "..") or not name.isprintable():
                raise self.refuse(path, f"a name that is not allowed ({excerpt(text)})")
            if name in found:
                raise self.refuse(path, f"'{excerpt(name)}' appears twice")
            self.refuse_if(cached == 2, f"{path}/{name}", "a soft link")
            found[name] = self.object(address, f"{path}/{name}", depth + 1)
        return found

    def entries(self, address: int, path: str, level: int) -> Iterator[tuple[int, int, int]]:
        """Offset of the name, address and kind of each member, from the B-tree of a group."""
        self.refuse_if(level > 16, path, "a B-tree that is too deep")
        self.once(address, path)
        head = bytes(self.part(address, 24, path, "a B-tree"))
        self.refuse_if(head[:4] != b"TREE" or head[4] != 0, path, "damaged B-tree")
        used = int.from_bytes(head[6:8], "little")
        self.part(address + 24, used * 16 + 8, path, "a B-tree")
        for number in range(used):
            child = self.number(address + 32 + number * 16, 8, path, "a B-tree")
            if head[5]:
                yield from self.entries(child, path, level + 1)
                continue
            self.once(child, path)
            node = bytes(self.part(child, 8, path, "a symbol table"))
            self.refuse_if(node[:5] != b"SNOD\x01", path, "damaged symbol table")
            count = int.from_bytes(node[6:8], "little")
            rows = bytes(self.part(child + 8, count * 40, path, "a symbol table"))
            for name_at, child, cached in struct.iter_unpack("<QQI20x", rows):
                yield name_at, child, cached

    # Datasets ------------------------------------------------------------------------------------------------------------

    def dataset(self, kinds: dict[int, _Message], path: str, attributes: Attributes) -> StoredArray:
        """An array: its type and shape, and the bytes that belong to it."""
        self.refuse_if(_EXTERNAL in kinds, path, "data in another file")
        self.refuse_if(_FILTERS in kinds, path, "compressed or filtered data; weights are stored as they are")
        self.refuse_if(not {_TYPE, _SPACE, _LAYOUT} <= set(kinds), path, "neither a group nor an array")
        kind = decode_dtype(bytes(kinds[_TYPE].data), lambda reason: self.refuse(path, reason))
        if kind.dtype is None:
            raise self.refuse(path, "an array of texts, numbers are expected")
        shape = self.shape(kinds[_SPACE].data, path)
        size = math.prod(shape) * kind.size
        raw = self.stored(bytes(kinds[_LAYOUT].data), size, path)
        dtype = kind.dtype
        if kind.kind == OPAQUE:
            self.refuse_if(attributes.get("dtype") != "bfloat16", path, "opaque data that is not said to be bfloat16")
            dtype = named_dtype("bfloat16")
        return StoredArray(path, np.frombuffer(raw, dtype).reshape(shape))

    def stored(self, layout: bytes, size: int, path: str) -> memoryview:
        """The bytes of an array, which must be exactly as many as its shape needs."""
        if layout[:1] != b"\x03" or len(layout) < 4 or layout[1] not in (0, 1):
            names = {2: "in chunks", 3: "virtual"}
            raise self.refuse(path, f"data stored {names.get(layout[1], 'unusually') if len(layout) > 1 else 'nowhere'}")
        if layout[1] == 0:
            start, length = 4, int.from_bytes(layout[2:4], "little")
            if length != size or start + length > len(layout):
                raise self.refuse(path, f"the shape needs {size} bytes, {length} are stored")
            return memoryview(layout)[start : start + length]
        address, length = int.from_bytes(layout[2:10], "little"), int.from_bytes(layout[10:18], "little")
        self.refuse_if(length != size, path, f"the shape needs {size} bytes, {length} are stored")
        if not size:
            return memoryview(b"")
        self.refuse_if(address == NOWHERE, path, "an array that was never written")
        return self.part(address, length, path, "an array")

    def shape(self, raw: memoryview, path: str) -> tuple[int, ...]:
        """The shape of a dataspace."""
        version, rank = (raw[0], raw[1]) if len(raw) >= 4 else (0, 0)
        start = {1: 8, 2: 4}.get(version)
        if start is None or rank > 32 or len(raw) < start + 8 * rank or (version == 2 and raw[3] == 2):
            raise self.refuse(path, "a dataspace that is damaged or unusual")
        shape = tuple(int.from_bytes(raw[at : at + 8], "little") for at in range(start, start + 8 * rank, 8))
        if math.prod(size or 1 for size in shape) > 2**48:
            raise self.refuse(path, f"the shape {excerpt(shape, 60)} is too large")
        return shape

    # Attributes ----------------------------------------------------------------------------------------------------------

    def attribute_parts(self, message: _Message, path: str) -> tuple[str, memoryview, memoryview, memoryview, int]:
        """Name, datatype, dataspace, value and its address of an attribute message."""
        data = message.data
        version = data[0] if len(data) >= 8 else 0
        self.refuse_if(version not in (1, 2, 3) or (version > 1 and data[1]), path, "an attribute that is damaged or shared")
        sizes = [int.from_bytes(data[at : at + 2], "little") for at in (2, 4, 6)]
        at = 9 if version == 3 else 8
        pieces = []
        for size in sizes:
            pieces.append(data[at : at + size])
            at += -(-size // 8) * 8 if version == 1 else size
        self.refuse_if(at > len(data), path, "an attribute is cut off")
        name = bytes(pieces[0]).split(b"\0")[0].decode("utf-8", "replace")
        return name, pieces[1], pieces[2], data[at:], message.at + at

    def global_text(self, reference: bytes, place: str) -> bytes:
        """A text from the global heap: length, address of the collection, number within it."""
        length, address = int.from_bytes(reference[:4], "little"), int.from_bytes(reference[4:12], "little")
        wanted = int.from_bytes(reference[12:16], "little")
        if not length:
            return b""
        self.refuse_if(bytes(self.part(address, 5, place, "a heap of texts")) != b"GCOL\x01", place, "damaged heap of texts")
        stop = address + self.number(address + 8, 8, place, "a heap of texts")
        self.part(address, stop - address, place, "a heap of texts")
        at = address + 16
        while at + 16 <= stop:
            index, size = self.number(at, 2, place, "a text"), self.number(at + 8, 8, place, "a text")
            if index == wanted:
                self.refuse_if(length > size, place, f"a text of {length} bytes, {size} are stored")
                return bytes(self.part(at + 16, length, place, "a text"))
            if not index:
                break
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
        self.content[:96] = b"".join(
            [
                SIGNATURE,
                bytes([0, 0, 0, 0, 0, 8, 8, 0]),
                self.leaf_k.to_bytes(2, "little") + _TREE_K.to_bytes(2, "little") + bytes(4),
                _u64(0, NOWHERE, len(self.content), NOWHERE),
                _u64(0, header) + bytes([1, 0, 0, 0, 0, 0, 0, 0]) + _u64(tree, heap),
            ]
        )
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
            body += kind.to_bytes(2, "little") + len(data).to_bytes(2, "little") + bytes(4) + data
        counts = len(messages).to_bytes(2, "little") + (1).to_bytes(4, "little") + len(body).to_bytes(4, "little")
        return self.place(bytes([1, 0]), counts, bytes(4), body)

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
            head = b"SNOD\x01\0" + len(batch).to_bytes(2, "little")
            nodes.append(self.place(head, row_bytes, bytes(40 * size - len(row_bytes))))
            keys.append(batch[-1][0])
        links = b"".join(_u64(key, node) for key, node in zip(keys, nodes, strict=False)) + _u64(keys[-1] if nodes else 0)
        head = b"TREE\0\0" + len(nodes).to_bytes(2, "little") + _u64(NOWHERE, NOWHERE)
        tree = self.place(head, links, bytes(16 * 2 * _TREE_K + 8 - len(links)))
        data = self.place(names)
        heap = self.place(b"HEAP\0\0\0\0", _u64(len(names), 1, data))
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
    parts = [name.encode() + b"\0", encode_text(len(value)), _space(())]
    sizes = b"".join(len(part).to_bytes(2, "little") for part in parts)
    return b"\x01\0" + sizes + b"".join(part + bytes(-len(part) % 8) for part in parts) + value


def _space(shape: tuple[int, ...]) -> bytes:
    return bytes([1, len(shape)]) + bytes(6) + _u64(*shape)


def _u64(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(8, "little") for number in numbers)
