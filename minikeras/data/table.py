"""The arrays that row numbers point into: a batch is one gather from each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import nest
from ..core import Tensor, cached_property, convert_to_tensor
from ..core.arrays import creation_namespace, current_device, is_array, is_on_host, namespace, to_device
from ..core.arrays.devices import free_bytes
from ..errors import ShapeError
from ..types import Array


class RowTable:
    """A nest of arrays with one number of rows; None in it stays None. Errors begin with the `name` of a function. Rows of
    float64 are taken as `float64_as`, if that is given.
    """

    def __init__(self, structure: Any, name: str = "from_tensor_slices", float64_as: str | None = None) -> None:
        self.structure, self._float64_as = structure, float64_as
        self.columns = [None if leaf is None else column(leaf, name) for leaf in nest.flatten(structure)]
        present = [one for one in self.columns if one is not None]
        lengths = {len(one) for one in present}
        if len(lengths) != 1:
            shapes = [tuple(one.shape) for one in present]
            raise ShapeError(f"{name}: all arrays need the same number of rows, found shapes {shapes}.")
        self.length = lengths.pop()
        self._resident: dict[str, list[Any]] = {}
        self._is_flat_tuple = type(structure) is tuple and not any(map(nest.is_nested, structure))

    def take(self, rows: Any) -> Any:
        """The nest of Tensors for row numbers: one, an array, or a range of consecutive ones."""
        leaves = [None if array is None else Tensor(array) for array in self.arrays(rows)]
        return tuple(leaves) if self._is_flat_tuple else nest.pack(self.structure, leaves)

    def arrays(self, rows: Any) -> list[Array | None]:
        """The arrays for row numbers, on the current device: None where a column is none."""
        if creation_namespace() is np or isinstance(rows, (int, np.integer)):
            return [None if one is None else to_device(self.converted(_gathered(one, rows))) for one in self.columns]
        columns = self.here()
        moves = not isinstance(rows, range) and not all(one is None or is_on_host(one) for one in columns)
        there = to_device(rows) if moves else rows
        return [
            None if one is None else to_device(self.converted(_gathered(one, rows if is_on_host(one) else there)))
            for one in columns
        ]

    def converted(self, rows: Array) -> Array:
        """Rows of a column, in the dtype in which they are taken."""
        return rows if self._float64_as is None or rows.dtype != np.float64 else rows.astype(self._float64_as, copy=False)

    def here(self) -> list[Any]:
        """The columns from which batches are gathered: on the current device, copied once, if they may stay there."""
        device = current_device()
        if device == "CPU:0":
            return self.columns
        if device not in self._resident:
            size = sum(one.nbytes for one in self.columns if one is not None)
            moved = lambda one: None if one is None else self.converted(to_device(one))
            self._resident[device] = [*map(moved, self.columns)] if size <= get_resident_data_limit() else self.columns
        return self._resident[device]


BLOCK = 1 << 18
"""Small batches are gathered together, so many bytes at a time: they stay in the cache, and one gather takes 0.7 us."""


class RowBatches:
    """Batches that are gathered as they are needed: rows of columns, by number, as many in each.

    Args:
        table: the columns.
        numbers: for each batch the numbers of its rows, an array or a range; or the number of one row, whose axis is dropped.

    Iterated, it gives the arrays of one batch after another, in the order of the leaves.

    >>> table = RowTable((np.arange(6.0), np.arange(6)))
    >>> batches = RowBatches(table, [np.array([4, 1]), range(2, 4)])
    >>> [x.tolist() for x, _ in batches], batches.rows.tolist()
    ([[4.0, 1.0], [2.0, 3.0]], [[4, 1], [2, 3]])
    """

    def __init__(self, table: RowTable, numbers: Sequence[Any]) -> None:
        self._table, self._numbers = table, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def columns(self) -> list[Array]:
        """The arrays that row numbers point into."""
        return [one for one in self._table.here() if one is not None]

    def converted(self, rows: Array) -> Array:
        """Rows of a column as batches hold them."""
        return self._table.converted(rows)

    @cached_property
    def rows(self) -> Array:
        """The row numbers, batch by batch: int64, with shape (batches, rows of each), or (batches,) for single rows."""
        first = self._numbers[0]
        if isinstance(first, range):
            starts = np.array([one.start for one in self._numbers], np.int64)
            return starts[:, None] + np.arange(0, len(first) * first.step, first.step)
        return np.array(self._numbers, np.int64)

    @cached_property
    def first(self) -> Any:
        """The first batch, as the nest of Tensors that a call is given."""
        return self._table.take(self._numbers[0])

    def arguments(self, number: int) -> list[Array]:
        """The arrays of one batch."""
        if not number:
            return [leaf.array for leaf in nest.flatten(self.first) if leaf is not None]
        return self._arrays(self._numbers[number])

    def _arrays(self, rows: Any) -> list[Array]:
        return [one for one in self._table.arrays(rows) if one is not None]

    def __iter__(self) -> Iterator[list[Array]]:
        first = self.arguments(0)
        yield first
        columns, count = self.columns, BLOCK // (1 + sum(one.nbytes for one in first))
        if count < 2 or any(type(one) is not np.ndarray for one in (*first, *columns)):
            yield from map(self._arrays, self._numbers[1:])
            return
        for start in range(1, len(self), count):
            rows = self.rows[start : start + count]
            block = [self.converted(one.take(rows, axis=0)) for one in columns]
            for number in range(len(rows)):
                yield [one[number, ...] for one in block]


def of_one_size(numbers: Sequence[Any]) -> Iterator[list[Any]]:
    """Row numbers of batches in their order, in lists of neighbours with as many rows."""
    # Batches, batches of batches and single rows may come in turns.
    size_of = lambda rows: (type(rows), len(rows) if type(rows) is range else getattr(rows, "shape", ()))
    for _, alike in itertools.groupby(numbers, size_of):
        yield list(alike)


def with_lists_as_tensors(structure: Any, convert: Callable[[Any], Any]) -> Any:
    """Each tensor converted. Tuples and dicts are a structure, lists are nested numbers, as in TensorFlow."""
    if isinstance(structure, Mapping):
        return {key: with_lists_as_tensors(value, convert) for key, value in structure.items()}
    if isinstance(structure, tuple):
        parts = [with_lists_as_tensors(value, convert) for value in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return convert(structure)


def column(leaf: Any, name: str = "from_tensor_slices") -> Array:
    """An array with a first axis; arrays of the caller are not copied, since batches are."""
    array = leaf if is_array(leaf) else convert_to_tensor(leaf).array
    if not array.ndim:
        raise ShapeError(f"{name}: a scalar has no rows; give arrays with at least one axis.")
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
    return array.take(rows, axis=0) if is_on_host(array) else namespace(array).take(array, rows, axis=0)


def numbered(rows: range | Array) -> Array:
    """Row numbers as an array."""
    return np.arange(rows.start, rows.stop, rows.step) if isinstance(rows, range) else rows


def numbers_at(rows: range | Array, places: Array) -> Array:
    """The row numbers at some places among others."""
    return places if isinstance(rows, range) and rows == range(places.size) else numbered(rows)[places]


# The limit on data sets that stay on a device as a whole ------------------------------------------------------------------

_SHARE = 0.25
"""The default limit, as a share of the device's free memory."""

_limit: float | None = None


def get_resident_data_limit() -> float:
    """The most bytes of one data set that are copied to the current device as a whole.

    By default a quarter of the memory that is free there at that moment.

    >>> tf.config.set_resident_data_limit(2**30)
    >>> tf.config.get_resident_data_limit()
    1073741824
    >>> tf.config.set_resident_data_limit(None)
    """
    return _SHARE * free_bytes() if _limit is None else _limit


def set_resident_data_limit(limit: float | None) -> None:
    """Set how many bytes of one data set may be copied to a device as a whole; larger sets are moved batch by batch.

    Args:
        limit: in bytes; 0 moves every set batch by batch, None is the default.

    Raises:
        ValueError: if it is negative or no number.

    >>> tf.config.set_resident_data_limit(0)
    >>> tf.config.set_resident_data_limit(None)
    """
    global _limit
    if limit is not None and not (isinstance(limit, (int, float)) and limit >= 0):
        raise ValueError(f"set_resident_data_limit: a number of bytes from 0 on or None is needed, found {limit!r}.")
    _limit = limit
