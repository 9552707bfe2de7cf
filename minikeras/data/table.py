"""The arrays that row numbers point into: a batch is one gather from each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import nest
from ..arrays import is_array, to_device
from ..core import Tensor, convert_to_tensor
from ..errors import ShapeError
from ..types import Array


class Table:
    """A nest of arrays with one number of rows; None in it stays None."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure
        self.columns = [None if leaf is None else column(leaf) for leaf in nest.flatten(structure)]
        present = [one for one in self.columns if one is not None]
        lengths = {len(one) for one in present}
        if len(lengths) != 1:
            shapes = [tuple(one.shape) for one in present]
            raise ShapeError(f"from_tensor_slices: all arrays need the same number of rows, found shapes {shapes}.")
        self.length = lengths.pop()
        self._is_flat_tuple = type(structure) is tuple and not any(map(nest.is_nested, structure))

    def take(self, rows: Any) -> Any:
        """The nest of Tensors for row numbers: one, an array, or a range of consecutive ones."""
        leaves = [None if one is None else Tensor(to_device(_gathered(one, rows))) for one in self.columns]
        return tuple(leaves) if self._is_flat_tuple else nest.pack(self.structure, leaves)


def with_lists_as_tensors(structure: Any, convert: Callable[[Any], Any]) -> Any:
    """Each tensor converted. Tuples and dicts are a structure, lists are nested numbers, as in TensorFlow."""
    if isinstance(structure, Mapping):
        return {key: with_lists_as_tensors(value, convert) for key, value in structure.items()}
    if isinstance(structure, tuple):
        parts = [with_lists_as_tensors(value, convert) for value in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return convert(structure)


def column(leaf: Any) -> Array:
    """An array with a first axis; arrays of the caller are not copied, since batches are."""
    array = leaf if is_array(leaf) else convert_to_tensor(leaf)._array
    if not array.ndim:
        raise ShapeError("from_tensor_slices: a scalar has no rows; give arrays with at least one axis.")
    return array


def own_column(leaf: Any) -> Array:
    """As `column`; an array that the caller may write to is copied."""
    array = column(leaf)
    return array.copy() if array is leaf and getattr(array.flags, "writeable", True) else array


def _gathered(array: Array, rows: Any) -> Array:
    if isinstance(rows, range):  # a slice needs no list of numbers
        return array[rows.start : rows.stop].copy()
    if isinstance(rows, (int, np.integer)):  # a row of an array of strings is an array too
        return array[rows : rows + 1].reshape(array.shape[1:]).copy()
    return array.take(rows, axis=0)


def numbered(rows: range | Array) -> Array:
    """Row numbers as an array."""
    return np.arange(rows.start, rows.stop, rows.step) if isinstance(rows, range) else rows
