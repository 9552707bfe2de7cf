"""Dataset: a pipeline of slices, shuffles and batches, as TensorFlow users write it; `Model.fit` reads arrays through it too.

While a pipeline only reorders and groups rows of arrays it carries row numbers, and a batch is one gather (`table.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .. import nest
from ..arrays import random as streams
from ..arrays import to_numpy
from ..boundary import explaining_methods
from ..core import Tensor, convert_to_tensor
from ..errors import InvalidArgumentError
from ..types import Array
from .elements import as_announced, buffered, stacked
from .table import Table, numbered, own_column, with_lists_as_tensors
from .threads import in_order, prefetched

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2

Rows = Callable[[], Iterator[Any]]
Numbers = Callable[[], "range | Array"]


ORDER = "data order"


def order_stream() -> streams.Stream:
    """The stream that shuffles without a seed draw from."""
    return streams.named_stream(ORDER)


def _need_function(method: str, given: Any) -> None:
    if not callable(given):
        raise TypeError(f"Dataset.{method}: expected a function, found {given!r:.200}.")


def _need_datasets(method: str, *given: Any) -> None:
    for one in given:
        if not isinstance(one, Dataset):
            raise TypeError(f"Dataset.{method}: expected Datasets, found {one!r:.200}. Dataset.from_tensor_slices makes one.")


@explaining_methods
class Dataset:
    """A sequence of elements that can be iterated again and again.

    Made by `from_tensor_slices`, `from_generator`, `range` and the like; every other method gives a new Dataset.

    >>> dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]).batch(2)
    >>> [batch.numpy().tolist() for batch in dataset]
    [[1.0, 2.0], [3.0]]
    """

    def __init__(
        self,
        rows: Rows | None,
        cardinality: int,
        parents: tuple[Dataset, ...] = (),
        table: Table | None = None,
        numbers: Numbers | None = None,
        stream: streams.Stream | None = None,
    ) -> None:
        self._rows: Rows = rows if rows is not None else lambda: iter(numbers())  # type: ignore[misc]
        self._cardinality = cardinality
        self.table = table
        """The arrays whose rows the elements are; None if they are made otherwise."""
        self._numbers = numbers
        above = [one for parent in parents for one in parent.random_streams]
        self.random_streams: list[streams.Stream] = above if stream is None else [*above, stream]
        """The streams that belong to shuffles with a seed; with `order_stream()` they are all the state of the order."""

    # Making ------------------------------------------------------------------------------------------------------------

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """The rows of an array, or of a tuple or dict of arrays with the same number of rows.

        Arrays are copied, unless they are read-only (as those of `np.load(..., mmap_mode="r")`): what is written to them later
        does not reach the dataset.

        Raises:
            ShapeError: if the numbers of rows differ, or something has no rows.
        """
        return Dataset.from_columns(with_lists_as_tensors(tensors, own_column))

    @staticmethod
    def from_columns(columns: Any) -> Dataset:
        """The rows of a nest of arrays; lists are part of the nest, while `from_tensor_slices` takes them for tensors."""
        table = Table(columns)
        return Dataset(None, table.length, table=table, numbers=lambda: range(table.length))

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element: all of it."""
        element = with_lists_as_tensors(tensors, convert_to_tensor)
        return Dataset(lambda: iter([element]), 1)

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = (),
        output_signature: Any = None,
    ) -> Dataset:
        """The elements of an iterable that a function makes for each iteration.

        Args:
            generator: called with `args` for each iteration.
            output_types: dtypes of the leaves of an element; otherwise as found.
            output_shapes: their shapes, None for what may vary; checked.
            args: arguments of `generator`.
            output_signature: a nest of objects with `dtype` and `shape`, instead of both.

        Raises:
            InvalidArgumentError: while iterating, for an element that is not as announced.
        """
        _need_function("from_generator", generator)
        if output_signature is not None:
            output_types = nest.map_structure(lambda one: one.dtype, output_signature)
            output_shapes = [getattr(one, "shape", None) for one in nest.flatten(output_signature)]
        elif output_shapes is not None:
            output_shapes = nest.flatten_up_to(output_types, output_shapes)

        def rows() -> Iterator[Any]:
            for element in generator(*(args or ())):
                if output_types is None:
                    yield nest.map_structure(convert_to_tensor, element)
                else:
                    yield as_announced(element, output_types, output_shapes)

        return Dataset(rows, UNKNOWN_CARDINALITY)

    @staticmethod
    def range(*bounds: int) -> Dataset:
        """Integers, as int64 scalars."""
        return Dataset.from_tensor_slices(np.arange(*bounds, dtype=np.int64))

    @staticmethod
    def zip(*datasets: Any) -> Dataset:
        """Elements of several datasets side by side, as long as all have one.

        Args:
            datasets: several, or one tuple or dict of them, whose structure the elements get.
        """
        structure = datasets[0] if len(datasets) == 1 else datasets
        parts = nest.flatten(structure)
        _need_datasets("zip", *parts)
        finite = [part._cardinality for part in parts if part._cardinality != INFINITE_CARDINALITY]
        length = min(finite, default=INFINITE_CARDINALITY)  # an unknown length is less than any other
        packed = partial(nest.pack, structure)
        return Dataset(lambda: map(packed, map(list, zip(*parts, strict=False))), length, tuple(parts))

    # Iterating -----------------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        return self.from_position(0)

    def from_position(self, start: int) -> Iterator[Any]:
        """The elements after the first `start` ones; those are passed over at once, and rows of arrays are not even made."""
        rows = self.rows_from(start)
        return rows if self.table is None else map(self.table.take, rows)

    def rows_from(self, start: int) -> Iterator[Any]:
        """As `from_position`; of a dataset with a `table` the row numbers of each element, which `table.take` makes one of."""
        rows = self._rows()
        next(itertools.islice(rows, start, start), None)
        return rows

    def __len__(self) -> int:
        if self._cardinality < 0:
            raise TypeError("The dataset's length is unknown or infinite. Count the elements, or limit it: dataset.take(n).")
        return self._cardinality

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        words = {INFINITE_CARDINALITY: "endless", UNKNOWN_CARDINALITY: "of unknown length"}
        return f"<Dataset, {words.get(self._cardinality, f'{self._cardinality} elements')}>"

    def cardinality(self) -> int:
        """The length; `INFINITE_CARDINALITY` (-1) without end, `UNKNOWN_CARDINALITY` (-2) if it is unknown."""
        return self._cardinality

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The elements as NumPy arrays."""
        return (nest.map_structure(_as_numpy, element) for element in self)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """The state that is left when `reduce_func(state, element)` has seen all elements."""
        _need_function("reduce", reduce_func)
        state = nest.map_structure(convert_to_tensor, initial_state)
        for element in self:
            following = reduce_func(state, element)
            nest.assert_same_structure(state, following)
            state = following
        return state

    # Order and groups ----------------------------------------------------------------------------------------------------

    def _reordered(self, rows: Rows | None, length: int, numbers: Numbers | None = None, **options: Any) -> Dataset:
        """A dataset of the same elements in another order, other groups or another number."""
        return Dataset(rows, length, (self,), self.table, numbers, **options)

    def shuffle(self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool = True) -> Dataset:
        """The elements in random order: each is drawn from a buffer of the next `buffer_size` ones.

        With a buffer of at least the dataset's length the order is a permutation. It is drawn anew for each iteration, from
        a stream that `set_random_seed` fixes, or from one of its own with `seed`.

        Args:
            buffer_size: at least 1; `len(dataset)` for a full shuffle.
            seed: of the order.
            reshuffle_each_iteration: if False, all iterations have one order.

        Raises:
            ValueError: for a buffer size below 1.
        """
        if buffer_size < 1:
            raise ValueError(f"shuffle: buffer_size must be at least 1, found {buffer_size}.")
        own = streams.Stream(seed) if seed is not None else None if reshuffle_each_iteration else order_stream().fork()

        def generator() -> np.random.Generator:
            stream = own or order_stream()
            return stream.generator() if reshuffle_each_iteration else streams.generator_at(*stream.state)

        numbers = self._numbers
        if numbers is not None and buffer_size >= self._cardinality:
            order = numbers
            permuted = lambda: numbered(order())[generator().permutation(self._cardinality)]
            return self._reordered(None, self._cardinality, permuted, stream=own)
        return self._reordered(lambda: buffered(self._rows(), buffer_size, generator()), self._cardinality, stream=own)

    def batch(
        self, batch_size: int, drop_remainder: bool = False, num_parallel_calls: Any = None, deterministic: Any = None
    ) -> Dataset:
        """Groups of `batch_size` elements, stacked; the last one may be smaller.

        Raises:
            ValueError: for a batch size below 1.
        """
        if not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise ValueError(f"batch: batch_size must be an int of at least 1, found {batch_size!r}.")
        size = int(batch_size)
        count = self._cardinality
        length = count if count < 0 else count // size if drop_remainder else -(-count // size)
        if self._numbers is not None:
            numbers = self._numbers

            def slices() -> Iterator[Any]:
                order = numbers()
                return (order[start : start + size] for start in range(0, length * size, size))

            return self._reordered(slices, length)

        def groups() -> Iterator[Any]:
            elements = self._rows()
            while group := list(itertools.islice(elements, size)):
                if len(group) == size or not drop_remainder:
                    yield np.asarray(group) if self.table is not None else stacked(group)

        return self._reordered(groups, length)

    def unbatch(self) -> Dataset:
        """The rows of the elements one by one."""

        def rows() -> Iterator[Any]:
            for element in self:
                leaves = nest.flatten(element)
                count = next(len(leaf) for leaf in leaves if leaf is not None)
                for row in range(count):
                    yield nest.pack(element, [None if leaf is None else leaf[row] for leaf in leaves])

        return Dataset(rows, UNKNOWN_CARDINALITY, (self,))

    def repeat(self, count: int | None = None) -> Dataset:
        """The whole sequence `count` times, or without end."""
        endless = count is None or count < 0
        own = self._cardinality
        length = own if own < 0 or own == 0 else INFINITE_CARDINALITY if endless else own * int(count or 0)

        def rows() -> Iterator[Any]:
            for _ in itertools.count() if endless else range(int(count or 0)):
                elements = self._rows()
                first = list(itertools.islice(elements, 1))
                if not first:  # nor would there be one in the next pass
                    return
                yield from first
                yield from elements

        return self._reordered(rows, 0 if count == 0 else length)

    def take(self, count: int) -> Dataset:
        """The first `count` elements; all for a negative count."""
        if count < 0:
            return self
        own = self._cardinality
        return self._part(0, count, count if own == INFINITE_CARDINALITY else own if own < 0 else min(own, count))

    def skip(self, count: int) -> Dataset:
        """All but the first `count` elements; none are left for a negative count."""
        if count < 0:
            return self.take(0)
        own = self._cardinality
        return self._part(count, None, own if own < 0 else max(own - count, 0))

    def _part(self, start: int, stop: int | None, length: int) -> Dataset:
        numbers = self._numbers
        if numbers is not None:
            return self._reordered(None, length, lambda: numbers()[start:stop])
        return self._reordered(lambda: itertools.islice(self._rows(), start, stop), length)

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Every `num_shards`-th element, from number `index` on.

        Raises:
            InvalidArgumentError: if the index is not in [0, num_shards).
        """
        if not 0 <= index < num_shards:
            raise InvalidArgumentError(f"shard: index must be in [0, {num_shards}), found {index}.")
        own = self._cardinality
        length = own if own < 0 else len(range(index, own, num_shards))
        return self._reordered(lambda: itertools.islice(self._rows(), index, None, num_shards), length)

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this dataset, then those of the other."""
        _need_datasets("concatenate", dataset)
        lengths = self._cardinality, dataset._cardinality
        unknown = INFINITE_CARDINALITY if INFINITE_CARDINALITY in lengths else UNKNOWN_CARDINALITY
        length = unknown if min(lengths) < 0 else sum(lengths)
        if self.table is not None and self.table is dataset.table:
            return Dataset(lambda: itertools.chain(self._rows(), dataset._rows()), length, (self, dataset), self.table)
        return Dataset(lambda: itertools.chain(self, dataset), length, (self, dataset))

    # Elements ------------------------------------------------------------------------------------------------------------

    def map(
        self, map_func: Callable[..., Any], num_parallel_calls: int | None = None, deterministic: bool | None = None
    ) -> Dataset:
        """Each element through a function; a tuple is handed over as several arguments.

        Args:
            map_func: gets and gives a nest of Tensors.
            num_parallel_calls: number of threads; the order of elements stays. None and AUTOTUNE: in the caller's thread.
            deterministic: accepted for compatibility; the order is kept in any case.
        """
        _need_function("map", map_func)

        call = partial(_called, map_func)
        threads = num_parallel_calls or 0
        if threads > 1:
            return Dataset(lambda: in_order(call, self, threads, threads), self._cardinality, (self,))
        return Dataset(lambda: map(call, self), self._cardinality, (self,))

    def flat_map(self, map_func: Callable[..., Dataset]) -> Dataset:
        """The elements of the datasets that a function makes of each element, in turn."""
        _need_function("flat_map", map_func)
        return Dataset(lambda: itertools.chain.from_iterable(self.map(map_func)), UNKNOWN_CARDINALITY, (self,))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which a predicate holds."""
        _need_function("filter", predicate)

        return Dataset(lambda: filter(partial(_called, predicate), self), UNKNOWN_CARDINALITY, (self,))

    def enumerate(self, start: int = 0) -> Dataset:
        """Pairs of number and element."""
        return Dataset(lambda: enumerate(self, start), self._cardinality, (self,))

    def cache(self, filename: str = "") -> Dataset:
        """The elements kept in memory once an iteration has come to its end."""
        if filename:
            raise NotImplementedError("cache: files are not available; call cache() to keep the elements in memory.")
        kept: list[list[Any]] = []

        def rows() -> Iterator[Any]:
            if kept:
                yield from kept[0]
                return
            seen = []
            for element in self._rows():  # of rows of arrays their numbers
                seen.append(element)
                yield element
            kept[:] = [seen]

        return self._reordered(rows, self._cardinality)

    def prefetch(self, buffer_size: int | None = None) -> Dataset:
        """The same elements, up to `buffer_size` (2 for None and AUTOTUNE) made ahead of their use in another thread. Rows of
        arrays in memory are not: they are taken when they are needed, or where they lie.

        Random draws of a `map` before it happen in that thread, at times that vary against those of the model; give such a
        function a generator of its own, for example `tf.random.Generator`.
        """
        ahead = 2 if buffer_size is None or buffer_size < 0 else int(buffer_size)
        in_memory = self.table is not None and all(one is None or type(one) is np.ndarray for one in self.table.columns)
        if not ahead or in_memory:
            return self
        return Dataset(lambda: prefetched(iter(self), ahead), self._cardinality, (self,))

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """`transformation_func(self)`, for chains."""
        _need_function("apply", transformation_func)
        return transformation_func(self)


def _called(function: Callable[..., Any], element: Any) -> Any:
    """The function of an element; a tuple is handed over as several arguments."""
    return function(*element) if isinstance(element, tuple) else function(element)


def _as_numpy(leaf: Any) -> Any:
    return to_numpy(leaf._array) if isinstance(leaf, Tensor) else leaf
