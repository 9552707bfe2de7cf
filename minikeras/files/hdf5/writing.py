"""The writer: groups and arrays as h5py lays them out by default, with a SHA-256 over the whole file."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import reading
from .reading import DIGEST, NOWHERE, SIGNATURE

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
            (0x3, reading.encode(array.dtype)),
            (0x5, bytes([2, 2, 2, 1]) + bytes(4)),
            (0x8, b"\x03\x01" + _u64(start, values.nbytes)),
        ]
        if array.dtype.name == "bfloat16":
            messages.append((0xC, _attribute("dtype", "bfloat16")))
        return self.header(messages)


def _attribute(name: str, text: str) -> bytes:
    """An attribute that is a text."""
    value = text.encode() or b"\0"
    parts = [name.encode() + b"\0", reading.encode_text(len(value)), _space(())]
    sizes = b"".join(len(part).to_bytes(2, "little") for part in parts)
    return b"\x01\0" + sizes + b"".join(part + bytes(-len(part) % 8) for part in parts) + value


def _space(shape: tuple[int, ...]) -> bytes:
    return bytes([1, len(shape)]) + bytes(6) + _u64(*shape)


def _u64(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(8, "little") for number in numbers)
