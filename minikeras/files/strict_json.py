"""JSON from untrusted files: what Python's parser lets pass (repeated keys, NaN, enormous integers) is an error here."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np

from . import MEGABYTE, excerpt, refuse_if, refused

LARGEST = 16 * MEGABYTE
DEEPEST = 64
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)


def loads(content: bytes | bytearray | memoryview, file: object, place: str = "") -> Any:
    """The value of a JSON text: UTF-8, at most 16 MiB and 64 levels, distinct keys, finite numbers, integers of 64 bits."""
    raw = bytes(content)
    refuse_if(len(raw) > LARGEST, file, place, f"JSON of {len(raw)} bytes, at most {LARGEST} are allowed")
    refuse_if(_depth(raw) > DEEPEST, file, place, f"JSON nested deeper than {DEEPEST} levels")

    def integer(text: str) -> int:
        if len(text) > 20 or not -(2**63) <= (value := int(text)) < 2**64:
            raise refused(file, place, f"the integer {excerpt(text, 24)} is too large")
        return value

    def number(text: str) -> float:
        value = float(text)
        refuse_if(value in (float("inf"), float("-inf")), file, place, f"the number {excerpt(text, 24)} is too large")
        return value

    def constant(text: str) -> Any:
        raise refused(file, place, f"{text} is not JSON")

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
            raise refused(file, place, f"the key '{excerpt(twice)}' appears twice")
        return result

    try:
        value = json.loads(
            raw.decode("utf-8"), parse_int=integer, parse_float=number, parse_constant=constant, object_pairs_hook=mapping
        )
        if b"\\ud" in raw.lower():  # an escape that may be one half of a character without the other
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except (UnicodeError, json.JSONDecodeError, RecursionError) as error:
        raise refused(file, place, f"damaged JSON ({excerpt(error, 80)})") from None


def dumps(value: Any) -> bytes:
    """The JSON text of plain values, always the same for the same value."""
    return json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":")).encode("utf-8")


def dumps_in_order(value: Any) -> bytes:
    """The JSON text of plain values, keys in the order in which they are."""
    return json.dumps(value, allow_nan=False).encode("utf-8")


def _depth(raw: bytes) -> int:
    """The depth of nested brackets, outside of strings."""
    brackets = np.frombuffer(_STRINGS.sub(b"", raw).translate(_STEPS, _NO_BRACKETS), np.int8)
    return int(np.cumsum(brackets, dtype=np.int64).max(initial=0))
