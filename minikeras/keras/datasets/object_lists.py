"""Lists of ints out of NumPy's file of an array of objects, which is a pickle: read as data, so that nothing in it is called.

Only the instructions of such files are known, of protocols 2 and 3; any other refuses the file.
"""

import re
from collections.abc import Callable
from typing import Any

from minikeras.errors import LoadError

_INTS = re.compile(rb"(?:K.|M..|J....)+", re.DOTALL)
_INT = re.compile(rb"K(.)|M(..)|J(....)", re.DOTALL)


class _Made:
    """What the file says is made by a call, and the state that it is given afterwards."""

    state: Any = None


class _Reader:
    """The instructions in turn, on a stack."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def take(self, count: int) -> bytes:
        """The next bytes."""
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, count: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(count), "little", signed=signed)

    def line(self) -> bytes:
        return self.take(self.data.index(b"\n", self.at) + 1 - self.at)

    def since_mark(self) -> list[Any]:
        """What was put on the stack since the last mark."""
        start = self.marks.pop()
        items, self.stack[start:] = self.stack[start:], []
        return items

    def last(self, count: int) -> tuple[Any, ...]:
        items = tuple(self.stack[-count:])
        del self.stack[-count:]
        return items

    def run(self) -> Any:
        """The value that the instructions leave."""
        while (code := self.data[self.at : self.at + 1]) != b".":
            if code in b"KMJ" and code:
                found = _INTS.match(self.data, self.at)
                if found is None:
                    raise ValueError("cut short")
                self.at = found.end()
                self.stack.extend(int.from_bytes(k or m or j, "little", signed=bool(j)) for k, m, j in _INT.findall(found[0]))
            else:
                self.at += 1
                _INSTRUCTIONS[code](self)
        return self.stack.pop()


def _put(reader: _Reader, value: Any) -> None:
    reader.stack.append(value)


def _call(reader: _Reader) -> None:
    reader.last(2)
    _put(reader, _Made())


def _build(reader: _Reader) -> None:
    state = reader.stack.pop()
    reader.stack[-1].state = state


def _append(reader: _Reader) -> None:
    value = reader.stack.pop()
    reader.stack[-1].append(value)


def _extend(reader: _Reader) -> None:
    items = reader.since_mark()
    reader.stack[-1].extend(items)


_INSTRUCTIONS: dict[bytes, Callable[[_Reader], Any]] = {
    b"\x80": lambda reader: reader.take(1),  # the protocol
    b"c": lambda reader: _put(reader, reader.line() + reader.line()),  # a function by its name
    b"q": lambda reader: reader.memo.update({reader.number(1): reader.stack[-1]}),
    b"r": lambda reader: reader.memo.update({reader.number(4): reader.stack[-1]}),
    b"h": lambda reader: _put(reader, reader.memo[reader.number(1)]),
    b"j": lambda reader: _put(reader, reader.memo[reader.number(4)]),
    b"(": lambda reader: reader.marks.append(len(reader.stack)),
    b"]": lambda reader: _put(reader, []),
    b")": lambda reader: _put(reader, ()),
    b"a": _append,
    b"e": _extend,
    b"t": lambda reader: _put(reader, tuple(reader.since_mark())),
    b"\x85": lambda reader: _put(reader, reader.last(1)),
    b"\x86": lambda reader: _put(reader, reader.last(2)),
    b"\x87": lambda reader: _put(reader, reader.last(3)),
    b"U": lambda reader: _put(reader, reader.take(reader.number(1))),
    b"C": lambda reader: _put(reader, reader.take(reader.number(1))),
    b"X": lambda reader: _put(reader, reader.take(reader.number(4))),
    b"N": lambda reader: _put(reader, None),
    b"\x88": lambda reader: _put(reader, True),
    b"\x89": lambda reader: _put(reader, False),
    b"\x8a": lambda reader: _put(reader, reader.number(reader.number(1), signed=True)),
    b"R": _call,
    b"b": _build,
}


def parse_object_lists(content: bytes, name: str) -> list[list[int]]:
    """The lists in an .npy file of an array of objects; LoadError for anything else.

    >>> parse_object_lists(b"no file", "x.npy")
    Traceback (most recent call last):
        ...
    minikeras.errors.LoadError: x.npy: not an array of lists of ints
    """
    refused = LoadError(f"{name}: not an array of lists of ints")
    if not content.startswith(b"\x93NUMPY\x01\x00") or b"'descr': '|O'" not in content[:128]:
        raise refused
    try:
        rows = _Reader(content[10 + int.from_bytes(content[8:10], "little") :]).run().state[4]
    except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
        raise refused from error
    if not isinstance(rows, list) or not all(type(row) is list and set(map(type, row)) <= {int} for row in rows):
        raise refused
    return rows
