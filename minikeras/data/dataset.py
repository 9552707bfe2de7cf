"""Dataset: a pipeline of slices, shuffles and batches, as TensorFlow users write it; `Model.fit` reads arrays through it too.

While a pipeline only reorders and groups rows of arrays it carries row numbers, and a batch is one gather (`table.py`).
"""

from __future__ import annotations

import copy
import glob
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .. import nest
from ..boundary import explaining_methods
from ..core import Tensor, convert_to_tensor
from ..errors import InvalidArgumentError, NotFoundError
from ..nn_ops import streams
from ..types import Array, TensorSpec, as_dtype, int64
from . import elements, groups, passes
from .elements import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Options,
    as_announced,
    at_least_one,
    buffered,
    called,
    made_dataset,
    need_datasets,
    need_function,
    stacked,
    total_length,
    value_of,
    whole_number,
)
from .passes import random_order
from .table import Table, numbered, own_column, with_lists_as_tensors
from .threads import in_order, prefetched

Rows = Callable[[], Iterator[Any]]
Numbers = Callable[[], "range | Array"]


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
        spec: Callable[[], Any] | None = None,
        batch_size: int | None = None,
    ) -> None:
        self._rows: Rows = rows if rows is not None else lambda: iter(numbers())  # type: ignore[misc]
        self._cardinality = cardinality
        self.table = table
        """The arrays whose rows the elements are; None if they are made otherwise."""
        self._numbers = numbers
        self._parents, self._spec = parents, spec
        self.batch_size = batch_size
        """The number of elements in a batch, if these are batches."""
        self._options: Options | None = parents[0]._options if parents else None
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
    def from_columns(columns: Any, float64_as: str | None = None) -> Dataset:
        """The rows of a nest of arrays, float64 as another dtype if that is given; lists are part of the nest, while
        `from_tensor_slices` takes them for tensors.
        """
        table = Table(columns, float64_as=float64_as)
        spec = lambda: nest.pack(
            columns,
            [one if one is None else TensorSpec(one.shape[1:], table.converted(one[:0]).dtype) for one in table.columns],
        )
        return Dataset(None, table.length, table=table, numbers=lambda: range(table.length), spec=spec)

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
        need_function("from_generator", generator)
        spec = None
        if output_signature is not None:
            output_types = nest.map_structure(lambda one: one.dtype, output_signature)
            output_shapes = [getattr(one, "shape", None) for one in nest.flatten(output_signature)]
        elif output_shapes is not None:
            output_shapes = nest.flatten_up_to(output_types, output_shapes)
        if output_types is not None:
            kinds = nest.flatten(output_types)
            leaves = [TensorSpec(*one) for one in zip(output_shapes or [None] * len(kinds), kinds, strict=True)]
            spec = lambda: nest.pack(output_types, leaves)

        def rows() -> Iterator[Any]:
            for element in generator(*(args or ())):
                if output_types is None:
                    yield nest.map_structure(convert_to_tensor, element)
                else:
                    yield as_announced(element, output_types, output_shapes)

        return Dataset(rows, UNKNOWN_CARDINALITY, spec=spec)

    @staticmethod
    def range(*bounds: int, output_type: Any = int64) -> Dataset:
        """Integers, as int64 scalars unless another dtype is asked for: `range(stop)`, or `range(start, stop, step)`."""
        return Dataset.from_tensor_slices(np.arange(*bounds, dtype=as_dtype(output_type).numpy))

    @staticmethod
    def counter(start: int = 0, step: int = 1, dtype: Any = int64) -> Dataset:
        """Integers without end.

        >>> [int(number) for number in tf.data.Dataset.counter(3, 2).take(2)]
        [3, 5]
        """
        numbers = lambda: (convert_to_tensor(number, dtype) for number in itertools.count(start, step))
        return Dataset(numbers, INFINITE_CARDINALITY)

    @staticmethod
    def random(seed: int | None = None, rerandomize_each_iteration: bool | None = None) -> Dataset:
        """Random int64 numbers in [0, 2**32) without end, the same in each iteration unless told otherwise."""
        own, generator = random_order(seed, bool(rerandomize_each_iteration))

        def rows() -> Iterator[Any]:
            draws = generator()
            while True:
                yield convert_to_tensor(draws.integers(2**32))

        return Dataset(rows, INFINITE_CARDINALITY, stream=own)

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: int | None = None) -> Dataset:
        """Paths of the files that match a pattern such as 'images/*.png', or several; shuffled unless `shuffle` is False.

        Raises:
            NotFoundError: if there is no such file.
        """
        patterns = np.ravel(file_pattern.numpy() if isinstance(file_pattern, Tensor) else file_pattern).tolist()
        files = sorted({path for pattern in patterns for path in glob.glob(pattern)})
        if not files:
            raise NotFoundError(f"list_files: no file matches {patterns}. The current folder is where relative patterns begin.")
        found = Dataset.from_tensor_slices(files)
        return found if shuffle is False else found.shuffle(len(files), seed)

    @staticmethod
    def zip(*datasets: Any) -> Dataset:
        """Elements of several datasets side by side, as long as all have one.

        Args:
            datasets: several, or one tuple or dict of them, whose structure the elements get.
        """
        structure = datasets[0] if len(datasets) == 1 else datasets
        parts = nest.flatten(structure)
        need_datasets("zip", *parts)
        finite = [part._cardinality for part in parts if part._cardinality != INFINITE_CARDINALITY]
        length = min(finite, default=INFINITE_CARDINALITY)  # an unknown length is less than any other
        packed = partial(nest.pack, structure)
        rows = lambda: map(packed, map(list, zip(*(part.from_position() for part in parts), strict=False)))
        return Dataset(rows, length, tuple(parts), spec=lambda: packed([part.element_spec for part in parts]))

    sample_from_datasets = staticmethod(groups.sample_from_datasets)
    choose_from_datasets = staticmethod(groups.choose_from_datasets)

    # Iterating -----------------------------------------------------------------------------------------------------------

    def __iter__(self) -> passes.Iterator:
        return passes.Iterator(self)

    def from_position(self, start: int = 0) -> Iterator[Any]:
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
        words = {INFINITE_CARDINALITY: "infinite", UNKNOWN_CARDINALITY: "unknown"}
        spec = f"element_spec={self.element_spec}, " if self._states_spec() else ""
        return f"<Dataset {spec}cardinality={words.get(self._cardinality, self._cardinality)}>"

    def _states_spec(self) -> bool:
        """Whether no function has to make an element to tell what elements are like."""
        return self._spec is not None and all(parent._states_spec() for parent in self._parents)

    def cardinality(self) -> Tensor:
        """The length, int64; `INFINITE_CARDINALITY` (-1) without end, `UNKNOWN_CARDINALITY` (-2) if it is unknown."""
        return convert_to_tensor(self._cardinality, int64)

    @property
    def element_spec(self) -> Any:
        """A nest of TensorSpecs, like an element; None is an axis whose size may vary, such as the first one of batches.

        What functions make is known by the first element, which is made for it; random streams stay where they are.

        Raises:
            InvalidArgumentError: if there is no first element.

        >>> tf.data.Dataset.range(5).batch(2).element_spec
        TensorSpec(shape=(None,), dtype=tf.int64)
        """
        if self._spec is not None:
            return self._spec()
        return elements.of_element(self._first(), any(elements.varies(parent.element_spec) for parent in self._parents))

    def _first(self) -> Any:
        """The first element, without any effect on iterations that follow."""
        with passes.preserved_streams(self.random_streams):
            for element in self.from_position():
                return element
        raise InvalidArgumentError("element_spec: the dataset has no elements by which it could be known.")

    def get_single_element(self) -> Any:
        """The only element.

        Raises:
            InvalidArgumentError: if there is none, or more than one.
        """
        found = list(itertools.islice(self.from_position(), 2))
        if len(found) != 1:
            count = "none" if not found else "more"
            raise InvalidArgumentError(f"get_single_element: one element is needed, found {count}; take(1) gives the first.")
        return found[0]

    def options(self) -> Options:
        """What `with_options` was given, or what the first dataset that this one is made of was."""
        return self._options or Options()

    def with_options(self, options: Options) -> Dataset:
        """The same elements; see `Options`."""
        if not isinstance(options, Options):
            raise TypeError(f"with_options: expected tf.data.Options, found {options!r:.200}.")
        changed = copy.copy(self)
        changed._options = options
        return changed

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The elements as NumPy arrays."""
        return (nest.map_structure(_as_numpy, element) for element in self)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """The state that is left when `reduce_func(state, element)` has seen all elements."""
        need_function("reduce", reduce_func)
        state = nest.map_structure(convert_to_tensor, initial_state)
        for element in self.from_position():
            following = reduce_func(state, element)
            nest.assert_same_structure(state, following)
            state = following
        return state

    # Order and groups ----------------------------------------------------------------------------------------------------

    def _reordered(self, rows: Rows | None, length: int, numbers: Numbers | None = None, **options: Any) -> Dataset:
        """A dataset of the same elements in another order, other groups (with their `spec`) or another number."""
        options = {"spec": lambda: self.element_spec, "batch_size": self.batch_size} | options
        return Dataset(rows, length, (self,), self.table, numbers, **options)

    def _made(self, rows: Rows, length: int = UNKNOWN_CARDINALITY, spec: Any = None, batch_size: int | None = None) -> Dataset:
        """A dataset of elements that are made of these."""
        return Dataset(rows, length, (self,), spec=spec, batch_size=batch_size)

    def shuffle(self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool | None = True) -> Dataset:
        """The elements in random order: each is drawn from a buffer of the next `buffer_size` ones.

        With a buffer of at least the dataset's length the order is a permutation. It is drawn anew for each iteration, from
        a stream that `set_random_seed` fixes, or from one of its own with `seed`.

        Args:
            buffer_size: at least 1; `len(dataset)` for a full shuffle.
            seed: of the order.
            reshuffle_each_iteration: if False, all iterations have one order; None is True.

        Raises:
            ValueError: for a buffer size below 1.
        """
        buffer_size = at_least_one("shuffle", "buffer_size", buffer_size)
        own, generator = random_order(seed, reshuffle_each_iteration is not False)
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
        size = at_least_one("batch", "batch_size", batch_size)
        length = groups.window_count(self._cardinality, size, size, 1, drop_remainder)
        spec = lambda: elements.with_shapes(self.element_spec, lambda shape: [size if drop_remainder else None, *shape])
        numbers = self._numbers

        def rows() -> Iterator[Any]:
            if numbers is None:
                join = np.asarray if self.table is not None else stacked
                return map(join, groups.windows(self._rows(), size, size, 1, drop_remainder))
            order = numbers()
            return (order[start : start + size] for start in range(0, length * size, size))

        return self._reordered(rows, length, spec=spec, batch_size=size)

    padded_batch = groups.padded_batch
    window = groups.window
    group_by_window = groups.group_by_window
    bucket_by_sequence_length = groups.bucket_by_sequence_length

    def unbatch(self) -> Dataset:
        """The rows of the elements one by one."""

        def rows() -> Iterator[Any]:
            for element in self.from_position():
                leaves = nest.flatten(element)
                shapes = [leaf.shape for leaf in leaves if leaf is not None]
                if len({tuple(shape[:1]) for shape in shapes}) != 1 or not shapes[0]:
                    raise InvalidArgumentError(f"unbatch: all leaves need the same number of rows, found shapes {shapes}.")
                for row in range(shapes[0][0]):
                    yield nest.pack(element, [None if leaf is None else leaf[row] for leaf in leaves])

        return self._made(rows, spec=lambda: elements.with_shapes(self.element_spec, lambda shape: shape[1:]))

    def rebatch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """Batches of another size."""
        return self.unbatch().batch(batch_size, drop_remainder)

    def repeat(self, count: int | None = None) -> Dataset:
        """The whole sequence `count` times, or without end."""
        times = -1 if count is None else whole_number("repeat", "count", count)
        own = self._cardinality
        length = own if own < 0 or own == 0 else INFINITE_CARDINALITY if times < 0 else own * times

        def rows() -> Iterator[Any]:
            for _ in itertools.count() if times < 0 else range(times):
                elements = self._rows()
                first = list(itertools.islice(elements, 1))
                if not first:  # nor would there be one in the next pass
                    return
                yield from first
                yield from elements

        return self._reordered(rows, length if times else 0)

    def take(self, count: int) -> Dataset:
        """The first `count` elements; all for a negative count."""
        count = whole_number("take", "count", count)
        if count < 0:
            return self
        own = self._cardinality
        return self._part(0, count, count if own == INFINITE_CARDINALITY else own if own < 0 else min(own, count))

    def skip(self, count: int) -> Dataset:
        """All but the first `count` elements; none are left for a negative count."""
        count = whole_number("skip", "count", count)
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
        need_datasets("concatenate", dataset)
        length = total_length((self._cardinality, dataset._cardinality))
        spec = partial(elements.of_either, (self, dataset))
        if self.table is not None and self.table is dataset.table:
            rows = lambda: itertools.chain(self._rows(), dataset._rows())
            return Dataset(rows, length, (self, dataset), self.table, spec=spec)
        rows = lambda: itertools.chain(self.from_position(), dataset.from_position())
        return Dataset(rows, length, (self, dataset), spec=spec)

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
        need_function("map", map_func)

        call = partial(called, map_func)
        threads = num_parallel_calls or 0
        if threads > 1:
            return self._made(lambda: in_order(call, self.from_position(), threads, threads), self._cardinality)
        return self._made(lambda: map(call, self.from_position()), self._cardinality)

    def flat_map(self, map_func: Callable[..., Dataset]) -> Dataset:
        """The elements of the datasets that a function makes of each element, in turn."""
        need_function("flat_map", map_func)
        return self._joined(lambda: self._datasets("flat_map", map_func))

    def _datasets(self, method: str, function: Callable[..., Dataset]) -> Iterator[Dataset]:
        return map(partial(made_dataset, method, function), self.from_position())

    def _joined(self, parts: Callable[[], Iterator[Dataset]]) -> Dataset:
        """The elements of datasets, in turn."""
        rows = lambda: itertools.chain.from_iterable(part.from_position() for part in parts())
        return self._made(rows, spec=lambda: self._made(parts)._first().element_spec)

    interleave = groups.interleave

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which a predicate holds."""
        need_function("filter", predicate)
        return self._made(lambda: filter(partial(called, predicate), self.from_position()), spec=lambda: self.element_spec)

    def take_while(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements before the first one for which a predicate does not hold."""
        need_function("take_while", predicate)
        rows = lambda: itertools.takewhile(partial(called, predicate), self.from_position())
        return self._made(rows, spec=lambda: self.element_spec)

    def unique(self) -> Dataset:
        """The elements without those that came before; they are equal in dtype, shape and value."""

        def rows() -> Iterator[Any]:
            seen = set()
            for element in self.from_position():
                value = value_of(element)
                if value not in seen:
                    seen.add(value)
                    yield element

        return self._made(rows, spec=lambda: self.element_spec)

    def scan(self, initial_state: Any, scan_func: Callable[[Any, Any], tuple[Any, Any]]) -> Dataset:
        """What `scan_func(state, element)` gives for each element beside the next state.

        >>> sums = tf.data.Dataset.range(4).scan(np.int64(0), lambda total, x: (total + x, total + x))
        >>> [int(total) for total in sums]
        [0, 1, 3, 6]
        """
        need_function("scan", scan_func)
        first = nest.map_structure(convert_to_tensor, initial_state)

        def rows() -> Iterator[Any]:
            state = first
            for element in self.from_position():
                following, output = scan_func(state, element)
                nest.assert_same_structure(state, following)
                state = following
                yield output

        return self._made(rows, self._cardinality)

    def enumerate(self, start: int = 0) -> Dataset:
        """Pairs of number, an int64 Tensor, and element."""
        return Dataset.zip(Dataset.counter(start), self)

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
        spec = lambda: self.element_spec
        return self._made(lambda: prefetched(self.from_position(), ahead), self._cardinality, spec, self.batch_size)

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """`transformation_func(self)`, for chains."""
        need_function("apply", transformation_func)
        return transformation_func(self)


def _as_numpy(leaf: Any) -> Any:
    return leaf.numpy() if isinstance(leaf, Tensor) else leaf
