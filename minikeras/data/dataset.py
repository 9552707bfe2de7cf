"""Dataset: a pipeline of slices, shuffles and batches, as TensorFlow users write it; `Model.fit` reads arrays through it."""

from __future__ import annotations

import glob
import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from .. import nest
from ..boundary import explaining_methods
from ..core import Tensor, convert_to_tensor
from ..errors import InvalidArgumentError, NotFoundError
from ..types import DTypeLike, TensorSpec, as_dtype, int64
from . import elements
from .elements import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, at_least_one, called, need_datasets, need_function
from .pipeline import ElementStream, Numbers, Rows, random_order
from .table import RowTable, numbers_at, own_column, with_lists_as_tensors


@explaining_methods
class Dataset(ElementStream):
    """A sequence of elements that can be iterated again and again.

    Made by `from_tensor_slices`, `from_generator`, `range` and the like; every other method gives a new Dataset.

    >>> dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]).batch(2)
    >>> [batch.numpy().tolist() for batch in dataset]
    [[1.0, 2.0], [3.0]]
    """

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
        table = RowTable(columns, float64_as=float64_as)
        spec = lambda: nest.pack(
            columns,
            [one if one is None else TensorSpec(one.shape[1:], table.converted(one[:0]).dtype) for one in table.columns],
        )
        return Dataset(None, table.length, table=table, numbers=lambda: range(table.length), spec=spec)

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element: all of it."""
        return Dataset([with_lists_as_tensors(tensors, convert_to_tensor)].__iter__, 1)

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
        kinds, shapes, spec = elements.announced(output_types, output_shapes, output_signature)
        as_told = partial(elements.as_announced, types=kinds, shapes=shapes)
        rows = lambda: map(as_told, generator(*(args or ())))
        return Dataset(rows, UNKNOWN_CARDINALITY, spec=spec)

    @staticmethod
    def range(*bounds: int, output_type: Any = int64) -> Dataset:
        """Integers, as int64 scalars unless another dtype is asked for: `range(stop)`, or `range(start, stop, step)`."""
        if bounds[2:] and not bounds[2]:
            raise InvalidArgumentError(f"Dataset.range: step must not be zero, found {bounds[2]}.")
        return Dataset.from_tensor_slices(np.arange(*bounds, dtype=as_dtype(output_type).numpy))

    @staticmethod
    def counter(start: int = 0, step: int = 1, dtype: DTypeLike = int64) -> Dataset:
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

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[Dataset],
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:
        """Elements of several datasets, each from one that is drawn at random.

        Args:
            datasets: with elements of one structure.
            weights: of the datasets, which need not sum to 1; None for equal ones.
            seed: of the draws.
            stop_on_empty_dataset: stop when the dataset that is drawn is at its end, instead of going on with the others.
            rerandomize_each_iteration: draw anew in each iteration.

        Raises:
            ValueError: for weights that are negative, not finite, all 0, or not one for each dataset.
        """
        parts = list(datasets)
        need_datasets("sample_from_datasets", *parts)
        shares = elements.shares_of(weights, len(parts))
        parts, shares = [part for part, share in zip(parts, shares, strict=True) if share], shares[shares > 0]
        own, generator = random_order(seed, bool(rerandomize_each_iteration))
        rows = lambda: elements.chosen(
            [part.from_position() for part in parts], elements.drawn(shares, generator()), stop_on_empty_dataset
        )
        length = UNKNOWN_CARDINALITY if stop_on_empty_dataset else elements.total_length(part._cardinality for part in parts)
        return Dataset(rows, length, tuple(parts), stream=own, spec=partial(elements.of_either, parts))

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = True
    ) -> Dataset:
        """Elements of several datasets, each from that whose number `choice_dataset` gives.

        Args:
            datasets: with elements of one structure.
            choice_dataset: of integers from 0 to `len(datasets) - 1`.
            stop_on_empty_dataset: stop when the dataset that is chosen is at its end, instead of passing such choices over.
        """
        parts = list(datasets)
        need_datasets("choose_from_datasets", *parts)
        need_datasets("choose_from_datasets", choice_dataset)
        rows = lambda: elements.chosen(
            [part.from_position() for part in parts], choice_dataset.from_position(), stop_on_empty_dataset
        )
        return Dataset(rows, UNKNOWN_CARDINALITY, (*parts, choice_dataset), spec=partial(elements.of_either, parts))

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
            permuted = lambda: numbers_at(order(), generator().permutation(self._cardinality))
            return self._reordered(None, self._cardinality, permuted, stream=own)
        return self._reordered(lambda: elements.buffered(self._rows(), buffer_size, generator()), self._cardinality, stream=own)

    def batch(
        self, batch_size: int, drop_remainder: bool = False, num_parallel_calls: Any = None, deterministic: Any = None
    ) -> Dataset:
        """Groups of `batch_size` elements, stacked; the last one may be smaller.

        Raises:
            ValueError: for a batch size below 1.
        """
        size = at_least_one("batch", "batch_size", batch_size)
        length = elements.window_count(self._cardinality, size, size, 1, drop_remainder)
        spec = lambda: elements.with_shapes(self.element_spec, lambda shape: [size if drop_remainder else None, *shape])
        numbers = self._numbers

        def rows() -> Iterator[Any]:
            if numbers is None:
                join = np.asarray if self.table is not None else elements.stacked
                return map(join, elements.windows(self._rows(), size, size, 1, drop_remainder))
            order = numbers()
            return (order[start : start + size] for start in range(0, length * size, size))

        return self._reordered(rows, length, spec=spec, batch_size=size)

    def padded_batch(
        self, batch_size: int, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: bool = False
    ) -> Dataset:
        """As `batch`, for elements of different lengths: each is filled up at its end.

        Args:
            batch_size: number of elements in a batch.
            padded_shapes: a nest like the elements of the shapes that they get, with None or -1 for the longest of the batch.
                None: the longest of each axis.
            padding_values: one value, or a nest of them; None for zeros, False and empty strings.
            drop_remainder: leave out a last batch that is smaller.

        Raises:
            InvalidArgumentError: while iterating, for elements that are longer or have other axes.

        >>> rows = tf.data.Dataset.range(1, 4).map(lambda n: tf.fill([n], n))
        >>> [batch.numpy().tolist() for batch in rows.padded_batch(2)]
        [[[1, 0], [2, 2]], [[3, 3, 3]]]
        """
        size = at_least_one("padded_batch", "batch_size", batch_size)
        pad = lambda group: elements.padded(group, padded_shapes, padding_values)
        rows = lambda: map(pad, elements.windows(self.from_position(), size, size, 1, drop_remainder))
        length = elements.window_count(self._cardinality, size, size, 1, drop_remainder)
        kept = size if drop_remainder else None
        return self._made(rows, length, lambda: elements.padded_spec(self.element_spec, padded_shapes, kept))

    def window(self, size: int, shift: int | None = None, stride: int = 1, drop_remainder: bool = False) -> Dataset:
        """Datasets of `size` elements; elements that are tuples or dicts become tuples or dicts of such datasets.

        Args:
            size: number of elements of a window.
            shift: from the beginning of one window to the beginning of the next; None for `size`.
            stride: from one element of a window to the next.
            drop_remainder: leave out windows at the end that are shorter.

        >>> windows = tf.data.Dataset.range(5).window(3, shift=1, drop_remainder=True)
        >>> [row.numpy().tolist() for row in windows.flat_map(lambda window: window.batch(3))]
        [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        """
        shift = size if shift is None else shift
        given = (("size", size), ("shift", shift), ("stride", stride))
        size, shift, stride = [at_least_one("window", name, number) for name, number in given]
        length = elements.window_count(self._cardinality, size, shift, stride, drop_remainder)
        spec = lambda: nest.map_structure(elements.DatasetSpec, self.element_spec)
        tables = None if self.table is None else [one if one is None else RowTable(one) for one in self.table.columns]
        made = partial(self._window, tables)
        return self._made(lambda: map(made, elements.windows(self._rows(), size, shift, stride, drop_remainder)), length, spec)

    def _window(self, tables: list[RowTable | None] | None, group: list[Any]) -> Any:
        """A nest like the elements, of a Dataset for each leaf: of the leaves of a group, or of rows of `tables`."""
        if tables is None or self.table is None:
            return nest.pack(group[0], [Dataset(partial(iter, leaves), len(leaves)) for leaves in nest.pair(*group)])
        numbers = None if self._numbers is None else partial(np.asarray, group)
        parts = [one and Dataset(partial(iter, group), len(group), table=one, numbers=numbers) for one in tables]
        return nest.pack(self.table.structure, parts)

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Dataset], Dataset],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
    ) -> Dataset:
        """The elements of the datasets that a function makes of each group of elements with one key.

        Args:
            key_func: the integer key of an element.
            reduce_func: gets a key and a Dataset of at most as many elements as a group may have; gives a Dataset.
            window_size: number of elements of a full group; incomplete ones come last.
            window_size_func: gives that number for a key, instead.
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError("group_by_window: give either window_size or window_size_func.")
        for one in (key_func, reduce_func, window_size_func or len):
            need_function("group_by_window", one)
        if window_size is not None:
            at_least_one("group_by_window", "window_size", window_size)
        size_of = window_size_func or (lambda key: window_size)

        def parts() -> Iterator[Dataset]:
            for key, group in elements.keyed(self.from_position(), partial(called, key_func), size_of):
                rows = Dataset(partial(iter, group), len(group), spec=lambda: self.element_spec)
                yield elements.made_dataset("group_by_window", reduce_func, (convert_to_tensor(key, int64), rows))

        return self._joined(parts)

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Padded batches of elements of about the same length.

        Args:
            element_length_func: the length of an element.
            bucket_boundaries: lengths at which the next bucket begins, in rising order.
            bucket_batch_sizes: of each bucket; one more than there are boundaries.
            padded_shapes, padding_values, drop_remainder: as for `padded_batch`.
            pad_to_bucket_boundary: fill up to one less than the boundary, where `padded_shapes` or `element_spec` has None.
            no_padding: stack elements as they are, which have to be of one length then.

        >>> rows = tf.data.Dataset.range(1, 5).map(lambda n: tf.fill([n], n))
        >>> [b.numpy().tolist() for b in rows.bucket_by_sequence_length(len, [3], [2, 2])]
        [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]]]
        """
        bounds, sizes = list(bucket_boundaries), list(bucket_batch_sizes)
        if bounds != sorted(set(bounds)) or len(sizes) != len(bounds) + 1:
            raise ValueError(
                "bucket_by_sequence_length: boundaries must rise, and there must be one more batch size than there are "
                f"boundaries, found {bounds} and {sizes}."
            )

        spec = cache(lambda: self.element_spec)

        def batched(key: Any, rows: Dataset) -> Dataset:
            bucket = int(key)
            if no_padding:
                return rows.batch(sizes[bucket], drop_remainder)
            shapes = padded_shapes
            if pad_to_bucket_boundary:
                if bucket == len(bounds):
                    raise InvalidArgumentError(
                        f"bucket_by_sequence_length: with pad_to_bucket_boundary elements must be shorter than {bounds[-1:]}."
                    )
                shapes = elements.filled_shapes(spec(), padded_shapes, bounds[bucket] - 1)
            return rows.padded_batch(sizes[bucket], shapes, padding_values, drop_remainder)

        keys = lambda *element: bisect_right(bounds, int(element_length_func(*element)))
        return self.group_by_window(keys, batched, window_size_func=lambda key: sizes[int(key)])

    def unbatch(self) -> Dataset:
        """The rows of the elements one by one."""
        return self._made(
            lambda: elements.unbatched(self.from_position()),
            spec=lambda: elements.with_shapes(self.element_spec, lambda shape: shape[1:]),
        )

    def rebatch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """Batches of another size."""
        return self.unbatch().batch(batch_size, drop_remainder)

    def repeat(self, count: int | None = None) -> Dataset:
        """The whole sequence `count` times, or without end."""
        times = -1 if count is None else elements.whole_number("repeat", "count", count)
        own = self._cardinality
        length = own if own < 0 or own == 0 else INFINITE_CARDINALITY if times < 0 else own * times
        return self._reordered(lambda: elements.repeated(self._rows, times), length if times else 0)

    def take(self, count: int) -> Dataset:
        """The first `count` elements; all for a negative count."""
        count = elements.whole_number("take", "count", count)
        if count < 0:
            return self
        own = self._cardinality
        return self._part(0, count, count if own == INFINITE_CARDINALITY else own if own < 0 else min(own, count))

    def skip(self, count: int) -> Dataset:
        """All but the first `count` elements; none are left for a negative count."""
        count = elements.whole_number("skip", "count", count)
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
        length = elements.total_length((self._cardinality, dataset._cardinality))
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
            return self._made(lambda: elements.in_order(call, self.from_position(), threads, threads), self._cardinality)
        return self._made(lambda: map(call, self.from_position()), self._cardinality)

    def flat_map(self, map_func: Callable[..., Dataset]) -> Dataset:
        """The elements of the datasets that a function makes of each element, in turn."""
        need_function("flat_map", map_func)
        return self._joined(lambda: self._datasets("flat_map", map_func))

    def _datasets(self, method: str, function: Callable[..., Dataset]) -> Iterator[Dataset]:
        return map(partial(elements.made_dataset, method, function), self.from_position())

    def _joined(self, parts: Callable[[], Iterator[Dataset]]) -> Dataset:
        """The elements of datasets, in turn."""
        rows = lambda: itertools.chain.from_iterable(part.from_position() for part in parts())
        return self._made(rows, spec=lambda: self._made(parts).first_element().element_spec)

    def interleave(
        self,
        map_func: Callable[..., Dataset],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Dataset:
        """The elements of the datasets that a function makes of each element, of several at a time, some of each in turn.

        Args:
            map_func: gives a Dataset.
            cycle_length: how many datasets take turns; 4 for None and AUTOTUNE.
            block_length: how many elements one gives in its turn; 1 for None.
            num_parallel_calls: if there is such a number, each open dataset makes elements ahead in a thread of its own.
            deterministic: accepted for compatibility; the order is kept in any case.

        >>> rows = tf.data.Dataset.range(1, 4).interleave(lambda n: tf.data.Dataset.from_tensors(n).repeat(3), 2, 2)
        >>> [int(row) for row in rows]
        [1, 1, 2, 2, 1, 2, 3, 3, 3]
        """
        need_function("interleave", map_func)
        cycle = at_least_one("interleave", "cycle_length", 4 if cycle_length in (None, AUTOTUNE) else cycle_length)
        block = at_least_one("interleave", "block_length", 1 if block_length is None else block_length)
        parts = partial(self._datasets, "interleave", map_func)

        def rows() -> Iterator[Any]:
            opened = (part.from_position() for part in parts())
            ahead = (elements.prefetched(one, block) for one in opened) if num_parallel_calls else opened
            return elements.interleaved(ahead, cycle, block)

        return self._made(rows, spec=lambda: self._made(parts).first_element().element_spec)

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
        return self._made(lambda: elements.distinct(self.from_position()), spec=lambda: self.element_spec)

    def scan(self, initial_state: Any, scan_func: Callable[[Any, Any], tuple[Any, Any]]) -> Dataset:
        """The results that `scan_func(state, element)` gives for each element beside the next state.

        >>> sums = tf.data.Dataset.range(4).scan(np.int64(0), lambda total, x: (total + x, total + x))
        >>> [int(total) for total in sums]
        [0, 1, 3, 6]
        """
        need_function("scan", scan_func)
        first = nest.map_structure(convert_to_tensor, initial_state)
        return self._made(lambda: elements.scanned(self.from_position(), first, scan_func), self._cardinality)

    def enumerate(self, start: int = 0) -> Dataset:
        """Pairs of number, an int64 Tensor, and element."""
        return Dataset.zip(Dataset.counter(start), self)

    def cache(self, filename: str = "") -> Dataset:
        """The elements kept in memory once an iteration has come to its end."""
        if filename:
            raise NotImplementedError("cache: files are not available; call cache() to keep the elements in memory.")
        kept: list[list[Any]] = []
        return self._reordered(lambda: elements.remembered(self._rows, kept), self._cardinality)

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
        return self._made(lambda: elements.prefetched(self.from_position(), ahead), self._cardinality, spec, self.batch_size)

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """`transformation_func(self)`, for chains."""
        need_function("apply", transformation_func)
        return transformation_func(self)
