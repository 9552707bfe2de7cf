"""Lists of ints out of NumPy's file of an array of objects, which is a pickle: read as data, so that nothing in it is called.

Only the instructions of such files are known, of protocols 2 and 3; any other refuses the file. Of what they make only ints and
lists matter: a tuple counts as its last item, an object as the state that it is given, anything else as None.
"""

import re
from typing import Any

from ...errors import LoadError

_INTS = re.compile(rb"(?:K.|M..|J....)+", re.DOTALL)
_INT = re.compile(rb"K(.)|M(..)|J(....)", re.DOTALL)
_VALUES = {
    **{b"\x80": (1, 0, 0), b"q": (1, 0, 0), b"r": (4, 0, 0)},  # the protocol; put into the memory
    **{b"h": (1, 0, 1), b"j": (4, 0, 1), b"N": (0, 0, 1), b"\x88": (0, 0, 1), b"\x89": (0, 0, 1), b")": (0, 0, 1)},
    **{b"R": (0, 2, 1)},  # the result of a call
}
"""Bytes that follow an instruction, values that it takes off the stack, values that it puts there: all of them None."""
_TEXTS = {b"U": 1, b"C": 1, b"X": 4}
"""Bytes of the length of a text that follows an instruction."""
_TUPLES = {b"\x85": 1, b"\x86": 2, b"\x87": 3}


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
        rows = _read(content, 10 + int.from_bytes(content[8:10], "little"))
    except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
        raise refused from error
    if not isinstance(rows, list) or not all(type(row) is list and set(map(type, row)) <= {int} for row in rows):
        raise refused
    return rows


def _read(data: bytes, at: int) -> Any:
    """The value that the instructions from `at` on leave on their stack."""
    stack: list[Any] = []
    marks: list[int] = []
    while (code := data[at : at + 1]) != b".":
        if ints := _INTS.match(data, at):
            stack += [int.from_bytes(k or m or j, "little", signed=bool(j)) for k, m, j in _INT.findall(ints[0])]
            at = ints.end()
            continue
        at += 1
        if code in _VALUES:
            follow, taken, put = _VALUES[code]
            at += follow
            stack[len(stack) - taken :] = [None] * put
        elif code == b"c":  # a function, by two lines
            at = data.index(b"\n", data.index(b"\n", at) + 1) + 1
            stack.append(None)
        elif code in _TUPLES:
            stack[-_TUPLES[code] :] = [stack[-1]]
        elif code == b"\x8a":  # a long int
            stack.append(int.from_bytes(data[at + 1 : at + 1 + data[at]], "little", signed=True))
            at += 1 + data[at]
        elif code == b"(":
            marks.append(len(stack))
        elif code == b"]":
            stack.append([])
        elif code == b"a":
            value = stack.pop()
            stack[-1].append(value)
        elif code == b"e":
            start = marks.pop()
            items, stack[start:] = stack[start:], []
            stack[-1].extend(items)
        elif code == b"t":
            stack[marks.pop() :] = [stack[-1]]
        elif code == b"b":
            stack[-2:] = [stack[-1]]
        else:
            at += _TEXTS[code] + int.from_bytes(data[at : at + _TEXTS[code]], "little")
            stack.append(None)
    return stack.pop()
