"""Plain data as JSON and arrays: what callbacks, random streams and data positions say of their state.

Arrays go beside the JSON under names; what JSON cannot say (tuples, NaN, keys that are no texts) becomes a dict with one key
that starts with '$'. The way back builds these few types and nothing else.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.arrays import is_array, to_numpy
from ..core.tensor import Operand
from ..errors import kind_of
from ..files.reading import refused


def split(value: Any, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """The JSON of a value; arrays in it are added to `arrays` under names that start with `name`. TypeError for other data."""
    if isinstance(value, np.generic):
        value = np.asarray(value)
        return {"$scalar": _stored(value, name, arrays)}
    if isinstance(value, Operand) or is_array(value):
        return {"$array": _stored(to_numpy(getattr(value, "_array", value)), name, arrays)}
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else {"$int": hex(value)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, (list, tuple)):
        parts = [split(part, f"{name}/{number}", arrays) for number, part in enumerate(value)]
        return {"$tuple": parts} if isinstance(value, tuple) else parts
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: split(part, f"{name}/{key}", arrays) for key, part in value.items()}
        return {"$items": [split([key, part], f"{name}/{number}", arrays) for number, (key, part) in enumerate(value.items())]}
    raise TypeError(f"The state to save holds {kind_of(value)} at {name}; numbers, text and arrays can be kept.")


def _stored(array: NDArray[Any], name: str, arrays: dict[str, NDArray[Any]]) -> str:
    key = name
    while key in arrays:
        key += "+"
    arrays[key] = array
    return key


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], (str, int, float, tuple))


def join(tree: Any, arrays: Mapping[str, NDArray[Any]], file: object, place: str) -> Any:
    """The value that `split` was given, with copies of its arrays; a LoadError for JSON that `split` does not write."""
    if isinstance(tree, list):
        return [join(part, arrays, file, place) for part in tree]
    if not isinstance(tree, dict):
        return tree
    marks = [key for key in tree if key.startswith("$")]
    if not marks:
        return {key: join(part, arrays, file, f"{place}/{key}") for key, part in tree.items()}
    mark, content = (marks[0], tree[marks[0]]) if len(tree) == 1 else ("", None)
    if mark in ("$array", "$scalar") and isinstance(content, str) and content in arrays:
        array = arrays[content].copy()
        return array if mark == "$array" else array[()]
    if mark == "$float" and content in ("nan", "inf", "-inf"):
        return float(content)
    parts = join(content, arrays, file, place) if isinstance(content, list) else []
    if mark == "$tuple" and isinstance(content, list):
        return tuple(parts)
    with contextlib.suppress(TypeError, ValueError):  # a key that is a tuple of lists; a text that is no number
        if mark == "$int" and isinstance(content, str) and len(content) < 1000:
            return int(content, 16)
        if mark == "$items" and isinstance(content, list) and all(map(_is_pair, parts)):
            return {key: part for key, part in parts}
    raise refused(file, place, f"damaged state, {marks[0]} with an unexpected value")
