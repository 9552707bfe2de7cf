"""Plain data as JSON and arrays: what callbacks, random streams and data positions say of their state.

Key idea: numbers, texts, lists and dicts become JSON; arrays go beside it under names; what JSON cannot say (tuples, NaN, keys
that are no texts) becomes a dict with one key that starts with '$'. The way back builds these few types and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import is_array, to_numpy
from ..core.operand import Operand
from ..errors import kind_of
from ..files.reading import refused


def split(value: Any, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """The JSON of a value; arrays in it are added to `arrays` under names that start with `name`.

    Raises:
        TypeError: for anything that is no plain data.
    """
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


def join(tree: Any, arrays: Mapping[str, NDArray[Any]], file: object, place: str) -> Any:
    """The value that `split` was given; arrays are copied.

    Raises:
        LoadError: if the JSON is none of `split`, or an array is missing.
    """
    if isinstance(tree, list):
        return [join(part, arrays, file, place) for part in tree]
    if not isinstance(tree, dict):
        return tree
    marks = [key for key in tree if key.startswith("$")]
    if not marks:
        return {key: join(part, arrays, file, f"{place}/{key}") for key, part in tree.items()}
    mark, content = marks[0], tree[marks[0]]
    if len(tree) == 1 and mark in ("$array", "$scalar") and isinstance(content, str) and content in arrays:
        array = arrays[content].copy()
        return array if mark == "$array" else array[()]
    if len(tree) == 1 and mark == "$float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if len(tree) == 1 and mark == "$int" and isinstance(content, str) and len(content) < 1000:
        try:
            return int(content, 16)
        except ValueError:
            pass
    if len(tree) == 1 and mark == "$tuple" and isinstance(content, list):
        return tuple(join(part, arrays, file, place) for part in content)
    if len(tree) == 1 and mark == "$items" and isinstance(content, list):
        pairs = [join(pair, arrays, file, place) for pair in content]
        if all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], (str, int, float, tuple)) for pair in pairs):
            try:
                return {key: part for key, part in pairs}
            except TypeError:  # a key that is a tuple of lists
                pass
    raise refused(file, place, f"damaged state, {mark} with an unexpected value")
