"""Rows of stacks: what the Variables of members hold whose values lie together, each in a row of a whole Variable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from ..core import Variable
from ..core.arrays import namespace
from ..types import Array


def with_rows(whole: Array, rows: Mapping[int, Array]) -> Array:
    """A stack with other rows at some places."""
    if len(rows) == whole.shape[0]:
        ordered = [rows[place] for place in range(whole.shape[0])]
        return namespace(whole).stack(ordered).astype(whole.dtype, copy=False)
    changed = whole.copy()
    for place, row in rows.items():
        changed[place] = row
    return changed


@contextmanager
def shown_rows(pairs: Iterable[tuple[Variable, int, Variable]]) -> Iterator[None]:
    """Within the block Variables hold their rows, given the whole and the place; what is assigned to them then is kept."""
    given = [(whole, place, own, whole._array[place, ...]) for whole, place, own in pairs]
    for _, _, own, row in given:
        own._array = row
    try:
        yield
    finally:
        changed: dict[int, tuple[Variable, dict[int, Array]]] = {}
        for whole, place, own, row in given:
            if own._array is not row:
                changed.setdefault(whole.key, (whole, {}))[1][place] = own._array
            own._array = without_memory(own._array)
        for whole, rows in changed.values():
            whole._array = with_rows(whole._array, rows)


def without_memory(array: Array) -> Array:
    """Zeros of the shape and dtype of an array, which take no memory: what a Variable holds whose value lies in a stack."""
    return np.ndarray(array.shape, array.dtype, _NOTHING, strides=(0,) * array.ndim)


_NOTHING = bytes(16)
