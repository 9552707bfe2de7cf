"""Dataset: a pipeline of slices, shuffles and batches, as TensorFlow users write it.

Key idea: as long as a pipeline only reorders and groups the rows of arrays it carries row numbers, and a batch is one gather
from the arrays. `map` and everything after it works on elements. `Model.fit` reads arrays through the same class, so a custom
loop over `Dataset.from_tensor_slices(...).shuffle(...).batch(...)` sees the same batches.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from . import nest
from .arrays import is_array, to_device, to_numpy
from .arrays import random as streams
from .core import Tensor, convert_to_tensor
from .errors import ShapeError
from .types import Array

Rows = Callable[[], Iterator[Any]]


class _Table:
    """The arrays that row numbers point into."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure
        self.columns = [_column(leaf) for leaf in nest.flatten(structure)]
        lengths = {len(column) for column in self.columns}
        if len(lengths) != 1:
            shapes = [tuple(column.shape) for column in self.columns]
            raise ShapeError(f"from_tensor_slices: all arrays need the same number of rows, found shapes {shapes}.")
        self.length = lengths.pop()

    def take(self, rows: Any) -> Any:
        """The nest of Tensors for row numbers, one number, or a slice of consecutive rows."""
        return nest.pack(self.structure, [Tensor(to_device(_gathered(column, rows))) for column in self.columns])


def _with_lists_as_tensors(structure: Any) -> Any:
    """Tuples and dicts are a structure, lists are nested numbers, as in TensorFlow."""
    if isinstance(structure, Mapping):
        return {key: _with_lists_as_tensors(value) for key, value in structure.items()}
    if isinstance(structure, tuple):
        parts = [_with_lists_as_tensors(value) for value in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return _column(structure)


def _column(leaf: Any) -> Array:
    """An array with a first axis; arrays of the caller are not copied, since batches are."""
    array = leaf if is_array(leaf) else convert_to_tensor(leaf)._array
    if not array.ndim:
        raise ShapeError("from_tensor_slices: a scalar has no rows; give arrays with at least one axis.")
    return array


def _gathered(column: Array, rows: Any) -> Array:
    return column[rows].copy() if isinstance(rows, (slice, int)) else column.take(rows, axis=0)


class Dataset:
    """A sequence of elements that can be iterated again and again.

    >>> import minikeras as tf
    >>> dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]).batch(2)
    >>> [batch.numpy().tolist() for batch in dataset]
    [[1.0, 2.0], [3.0]]
    """

    def __init__(self, rows: Rows, length: int | None, table: _Table | None = None) -> None:
        self._rows = rows
        self._length = length
        self._table = table

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """The rows of an array, or of a tuple or dict of arrays with the same number of rows.

        Raises:
            ShapeError: if the numbers of rows differ, or something has no rows.
        """
        return Dataset.from_columns(_with_lists_as_tensors(tensors))

    @staticmethod
    def from_columns(columns: Any) -> Dataset:
        """The rows of a nest of arrays; lists are part of the nest, while `from_tensor_slices` takes them for tensors."""
        table = _Table(columns)
        return Dataset(lambda: iter(range(table.length)), table.length, table)

    @staticmethod
    def from_generator(generator: Callable[[], Iterable[Any]], **options: Any) -> Dataset:
        """The elements of an iterable that a function makes for each iteration."""
        return Dataset(lambda: iter(nest.map_structure(convert_to_tensor, element) for element in generator()), None)

    @staticmethod
    def range(*bounds: int) -> Dataset:
        """Integers, as int64 scalars."""
        return Dataset.from_tensor_slices(np.arange(*bounds, dtype=np.int64))

    def __iter__(self) -> Iterator[Any]:
        if self._table is None:
            return self._rows()
        return map(self._table.take, self._rows())

    def __len__(self) -> int:
        if self._length is None:
            raise TypeError("The dataset's length is unknown or infinite. Count the elements, or limit it: dataset.take(n).")
        return self._length

    def shuffle(self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool = True) -> Dataset:
        """The elements in random order: each is drawn from a buffer of the next `buffer_size` ones.

        With a buffer of at least the dataset's length the order is a permutation, drawn from the global stream (or from a
        stream of its own with `seed`), anew for each iteration unless `reshuffle_each_iteration` is False.

        Raises:
            ValueError: for a buffer size below 1.
        """
        if buffer_size < 1:
            raise ValueError(f"shuffle: buffer_size must be at least 1, found {buffer_size}.")
        own = streams.Stream(seed) if seed is not None else None if reshuffle_each_iteration else streams.global_stream().fork()

        def rows() -> Iterator[Any]:
            stream = own or streams.global_stream()
            generator = stream.generator() if reshuffle_each_iteration else streams.generator_at(*stream.state)
            if self._table is not None and self._length is not None and buffer_size >= self._length:
                ordered = np.fromiter(self._rows(), dtype=np.int64, count=self._length)
                return iter(ordered[generator.permutation(self._length)])
            return _buffered(self._rows(), buffer_size, generator)

        return Dataset(rows, self._length, self._table)

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """Groups of `batch_size` elements, stacked; the last one may be smaller.

        Raises:
            ValueError: for a batch size below 1.
        """
        if not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise ValueError(f"batch: batch_size must be an int of at least 1, found {batch_size!r}.")
        size = int(batch_size)
        length = None if self._length is None else self._length // size if drop_remainder else -(-self._length // size)

        def rows() -> Iterator[Any]:
            elements = self._rows()
            while group := list(itertools.islice(elements, size)):
                if len(group) == size or not drop_remainder:
                    yield np.asarray(group) if self._table is not None else _stacked(group)

        return Dataset(rows, length, self._table)

    def repeat(self, count: int | None = None) -> Dataset:
        """The whole sequence `count` times, or without end."""
        endless = count is None or count < 0
        length = None if endless or self._length is None or count is None else self._length * count

        def rows() -> Iterator[Any]:
            for _ in itertools.count() if endless or count is None else range(count):
                yield from self._rows()

        return Dataset(rows, length, self._table)

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Dataset:
        """Each element through a function; a tuple is handed over as several arguments."""

        def rows() -> Iterator[Any]:
            for element in self:
                yield map_func(*element) if isinstance(element, tuple) else map_func(element)

        return Dataset(rows, self._length)

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which a predicate holds."""

        def rows() -> Iterator[Any]:
            for element in self:
                if bool(predicate(*element) if isinstance(element, tuple) else predicate(element)):
                    yield element

        return Dataset(rows, None)

    def take(self, count: int) -> Dataset:
        """The first `count` elements; all for a negative count."""
        if count < 0:
            return self
        length = None if self._length is None else min(self._length, count)
        return Dataset(lambda: itertools.islice(self._rows(), count), length, self._table)

    def skip(self, count: int) -> Dataset:
        """All but the first `count` elements; none are left for a negative count."""
        if count < 0:
            return self.take(0)
        length = None if self._length is None else max(self._length - count, 0)
        return Dataset(lambda: itertools.islice(self._rows(), count, None), length, self._table)

    def enumerate(self, start: int = 0) -> Dataset:
        """Pairs of number and element."""
        return Dataset(lambda: iter(enumerate(self, start)), self._length)

    def cache(self, filename: str = "") -> Dataset:
        """The elements kept in memory after the first iteration."""
        if filename:
            raise NotImplementedError("cache: files are not available; call cache() to keep the elements in memory.")
        kept: list[Any] = []

        def rows() -> Iterator[Any]:
            if not kept:
                kept.extend(self)
            return iter(kept)

        return Dataset(rows, self._length)

    def prefetch(self, buffer_size: int | None = None) -> Dataset:
        """The same dataset: batches are made when they are asked for."""
        return self

    def cardinality(self) -> int:
        """The length, -2 if it is unknown."""
        return -2 if self._length is None else self._length

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The elements as NumPy arrays."""
        return (nest.map_structure(lambda leaf: to_numpy(leaf._array), element) for element in self)


def _buffered(elements: Iterator[Any], size: int, generator: np.random.Generator) -> Iterator[Any]:
    """Each element drawn at random from a buffer that the next one then fills up."""
    buffer = list(itertools.islice(elements, size))
    for element in elements:
        place = int(generator.integers(len(buffer)))
        yield buffer[place]
        buffer[place] = element
    order = generator.permutation(len(buffer))
    yield from (buffer[place] for place in order)


def _stacked(group: list[Any]) -> Any:
    """One nest whose leaves are the stacked leaves of many."""
    from .functions.shaping import stack

    columns = zip(*(nest.flatten(element) for element in group), strict=True)
    return nest.pack(group[0], [stack(list(column)) for column in columns])


AUTOTUNE = -1
