"""Methods of Dataset that make one element, or a Dataset, of several: batches, windows, groups by key, Datasets in turns."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import nest
from ..core import Tensor, convert_to_tensor
from ..core.arrays import namespace
from ..errors import InvalidArgumentError
from ..types import TensorSpec, int64
from .elements import (
    AUTOTUNE,
    UNKNOWN_CARDINALITY,
    DatasetSpec,
    at_least_one,
    called,
    made_dataset,
    need_datasets,
    need_function,
    of_either,
    total_length,
)
from .passes import random_order
from .table import Table
from .threads import prefetched

if TYPE_CHECKING:
    from .dataset import Dataset


def padded_batch(
    self: Dataset, batch_size: int, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: bool = False
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
    pad = lambda group: padded(group, padded_shapes, padding_values)
    rows = lambda: map(pad, windows(self.from_position(), size, size, 1, drop_remainder))
    length = window_count(self._cardinality, size, size, 1, drop_remainder)
    kept = size if drop_remainder else None
    return self._made(rows, length, lambda: padded_spec(self.element_spec, padded_shapes, kept))


def window(self: Dataset, size: int, shift: int | None = None, stride: int = 1, drop_remainder: bool = False) -> Dataset:
    """Datasets of `size` elements; elements that are tuples or dicts become tuples or dicts of such datasets.

    Args:
        size: number of elements of a window.
        shift: from the beginning of one window to that of the next; None for `size`.
        stride: from one element of a window to the next.
        drop_remainder: leave out windows at the end that are shorter.

    >>> windows = tf.data.Dataset.range(5).window(3, shift=1, drop_remainder=True)
    >>> [row.numpy().tolist() for row in windows.flat_map(lambda window: window.batch(3))]
    [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    """
    shift = size if shift is None else shift
    given = (("size", size), ("shift", shift), ("stride", stride))
    size, shift, stride = [at_least_one("window", name, number) for name, number in given]
    length = window_count(self._cardinality, size, shift, stride, drop_remainder)
    spec = lambda: nest.map_structure(DatasetSpec, self.element_spec)
    tables = None if self.table is None else [one if one is None else Table(one) for one in self.table.columns]
    made = partial(_window, self, tables)
    return self._made(lambda: map(made, windows(self._rows(), size, shift, stride, drop_remainder)), length, spec)


def _window(self: Dataset, tables: list[Table | None] | None, group: list[Any]) -> Any:
    """A nest like the elements, of a Dataset for each leaf: of the leaves of a group, or of rows of `tables`."""
    kind = type(self)
    if tables is None:
        return nest.pack(group[0], [kind(partial(iter, leaves), len(leaves)) for leaves in nest.pair(*group)])
    numbers = None if self._numbers is None else partial(np.asarray, group)
    parts = [one and kind(partial(iter, group), len(group), table=one, numbers=numbers) for one in tables]
    return nest.pack(self.table.structure, parts)  # type: ignore[union-attr]


def group_by_window(
    self: Dataset,
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
        for key, group in keyed(self.from_position(), partial(called, key_func), size_of):
            rows = type(self)(partial(iter, group), len(group), spec=lambda: self.element_spec)
            yield made_dataset("group_by_window", reduce_func, (convert_to_tensor(key, int64), rows))

    return self._joined(parts)


def bucket_by_sequence_length(
    self: Dataset,
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
            shapes = filled_shapes(spec(), padded_shapes, bounds[bucket] - 1)
        return rows.padded_batch(sizes[bucket], shapes, padding_values, drop_remainder)

    keys = lambda *element: bisect_right(bounds, int(element_length_func(*element)))
    return self.group_by_window(keys, batched, window_size_func=lambda key: sizes[int(key)])


def windows(elements: Iterator[Any], size: int, shift: int, stride: int, whole: bool) -> Iterator[list[Any]]:
    """Lists of `size` elements, `stride` apart, that begin `shift` apart; without shorter ones at the end if `whole`.

    >>> list(windows(iter(range(7)), size=3, shift=2, stride=2, whole=False))
    [[0, 2, 4], [2, 4, 6], [4, 6], [6]]
    """
    span = (size - 1) * stride + 1
    held: list[Any] = []
    while True:
        held += itertools.islice(elements, span - len(held))
        if not held or (whole and len(held) < span):
            return
        yield held[::stride]
        beyond = shift - len(held)
        next(itertools.islice(elements, beyond, beyond), None) if beyond > 0 else None
        del held[:shift]


def window_count(length: int, size: int, shift: int, stride: int, whole: bool) -> int:
    """How many `windows` there are; a negative length is unknown or infinite, and the answer the same."""
    if length < 0:
        return length
    starts = length - (size - 1) * stride if whole else length
    return max(0, -(-starts // shift))


def keyed(
    elements: Iterable[Any], key_of: Callable[[Any], Any], size_of: Callable[[Any], Any]
) -> Iterator[tuple[int, list[Any]]]:
    """Keys and lists of elements with that key, each as soon as it is full; what is left comes last, by key."""
    groups: dict[int, list[Any]] = {}
    for element in elements:
        key = int(key_of(element))
        group = groups.setdefault(key, [])
        group.append(element)
        if len(group) >= int(size_of(key)):
            yield key, groups.pop(key)
    yield from sorted(groups.items())


def padded(group: list[Any], shapes: Any, values: Any) -> Any:
    """Elements stacked, each leaf first filled up to the longest of each axis, or to what `shapes` tells."""
    columns = nest.pair(*group)
    wanted = _of_leaves("padded_shapes", group[0], shapes)
    fillers = _of_leaves("padding_values", group[0], values) if nest.is_nested(values) else [values] * len(columns)
    return nest.pack(group[0], [_padded_leaf(*one) for one in zip(columns, wanted, fillers, strict=True)])


def _of_leaves(name: str, element: Any, given: Any) -> list[Any]:
    if given is None:
        return [None] * len(nest.flatten(element))
    try:
        return nest.flatten_up_to(element, given)
    except ValueError as problem:
        raise ValueError(f"padded_batch: {name} must be nested like the elements. {problem}") from None


def _sizes(shape: Any, rank: int) -> list[int | None]:
    """The sizes that a padded shape has; None is for the longest."""
    given = [None] * rank if shape is None else [shape] if isinstance(shape, (int, np.integer)) else list(shape)
    return [None if size in (None, -1) else int(size) for size in given]


def _padded_leaf(column: Sequence[Any], shape: Any, value: Any) -> Any:
    """The leaves of one place, stacked."""
    if column[0] is None:
        return None
    arrays = [convert_to_tensor(leaf)._array for leaf in column]
    sizes = _sizes(shape, arrays[0].ndim)
    if any(one.ndim != len(sizes) for one in arrays):
        raise InvalidArgumentError(
            f"padded_batch: elements with {len(sizes)} axes are needed, found shapes {sorted({one.shape for one in arrays})}. "
            "padded_shapes tells the size of each axis of one element, or None for the longest."
        )
    longest = [max(one.shape[axis] for one in arrays) for axis in range(len(sizes))]
    final = [most if size is None else size for size, most in zip(sizes, longest, strict=True)]
    if any(most > size for size, most in zip(final, longest, strict=True)):
        raise InvalidArgumentError(
            f"padded_batch: padded_shapes allows {final}, found elements of up to {longest}. Give None for the longest, or cut "
            "elements with map."
        )
    dtype = arrays[0].dtype
    if value is None:
        value = "" if dtype.kind in "OUS" else 0
    stacked = namespace(arrays[0]).full((len(arrays), *final), _filler(value, dtype), object if dtype.kind in "US" else dtype)
    for row, one in enumerate(arrays):
        stacked[(row, *map(slice, one.shape))] = one
    return Tensor(stacked)


def padded_spec(spec: Any, shapes: Any, size: int | None) -> Any:
    """The spec of padded batches of elements that have one themselves."""
    wanted = _of_leaves("padded_shapes", spec, shapes)
    return nest.pack(spec, [_padded_leaf_spec(*one, size) for one in zip(nest.flatten(spec), wanted, strict=True)])


def _padded_leaf_spec(leaf: Any, shape: Any, size: int | None) -> Any:
    open_rank = leaf is None or (leaf.shape is None and shape is None)
    return leaf if open_rank else TensorSpec([size, *_sizes(shape, len(leaf.shape or ()))], leaf.dtype)


def filled_shapes(spec: Any, shapes: Any, size: int) -> Any:
    """Padded shapes with `size` for each axis that is open: in `shapes`, or else in the spec of the elements."""
    given = [leaf.shape for leaf in nest.flatten(spec)] if shapes is None else _of_leaves("padded_shapes", spec, shapes)
    found = [_sizes(shape, 0) for shape in given]
    if not any(None in shape for shape in found):
        raise ValueError(
            "bucket_by_sequence_length: pad_to_bucket_boundary fills up axes of unknown size, but there is none in "
            f"{given}. Give padded_shapes with None for such an axis."
        )
    return nest.pack(spec, [[size if one is None else one for one in shape] for shape in found])


def _filler(value: Any, dtype: Any) -> Any:
    """A padding value as a Python scalar; refused if the elements' dtype cannot hold it."""
    plain = value.numpy() if isinstance(value, Tensor) else value
    if dtype.kind in "OUS":
        return plain
    try:
        held = dtype.type(plain)
    except (OverflowError, ValueError):
        held = None
    if held is None or (dtype.kind in "biu" and held != plain):
        raise InvalidArgumentError(f"padded_batch: padding value {plain!r} is not of the elements' dtype {dtype}.")
    return held.item()


_END = object()


def interleave(
    self: Dataset,
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
        return interleaved((prefetched(one, block) for one in opened) if num_parallel_calls else opened, cycle, block)

    return self._made(rows, spec=lambda: self._made(parts)._first().element_spec)


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
    shares = np.ones(len(parts)) if weights is None else np.asarray(weights, np.float64)
    if shares.shape != (len(parts),) or not (np.isfinite(shares) & (shares >= 0)).all() or not shares.any():
        raise ValueError(
            f"sample_from_datasets: weights must be {len(parts)} finite numbers of at least 0, not all 0, found "
            f"{weights!r:.200}."
        )
    parts, shares = [part for part, share in zip(parts, shares, strict=True) if share], shares[shares > 0]
    bounds = np.cumsum(shares / shares.sum())[:-1]
    own, generator = random_order(seed, bool(rerandomize_each_iteration))

    def rows() -> Iterator[Any]:
        draws = generator()
        choices = (np.searchsorted(bounds, draws.random(), "right") for _ in itertools.count())
        return chosen([part.from_position() for part in parts], choices, stop_on_empty_dataset)

    length = UNKNOWN_CARDINALITY if stop_on_empty_dataset else total_length(part._cardinality for part in parts)
    return type(parts[0])(rows, length, tuple(parts), stream=own, spec=partial(of_either, parts))


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = True) -> Dataset:
    """Elements of several datasets, each from that whose number `choice_dataset` gives.

    Args:
        datasets: with elements of one structure.
        choice_dataset: of integers from 0 to `len(datasets) - 1`.
        stop_on_empty_dataset: stop when the dataset that is chosen is at its end, instead of passing such choices over.
    """
    parts = list(datasets)
    need_datasets("choose_from_datasets", *parts)
    need_datasets("choose_from_datasets", choice_dataset)
    stop = stop_on_empty_dataset
    rows = lambda: chosen([part.from_position() for part in parts], choice_dataset.from_position(), stop)
    return type(parts[0])(rows, UNKNOWN_CARDINALITY, (*parts, choice_dataset), spec=partial(of_either, parts))


def interleaved(datasets: Iterator[Iterator[Any]], cycle: int, block: int) -> Iterator[Any]:
    """Elements of `cycle` iterators at a time, `block` of each in turn; one that is done makes place for the next."""
    places: list[Iterator[Any] | None] = [None] * cycle
    for place in itertools.cycle(range(cycle)):
        if places[place] is None:
            places[place] = next(datasets, None)
        current = places[place]
        if current is None:
            if not any(places):
                return
            continue
        count = 0
        for element in itertools.islice(current, block):
            yield element
            count += 1
        if count < block:
            places[place] = None


def chosen(iterators: Sequence[Iterator[Any]], choices: Iterable[Any], stop: bool) -> Iterator[Any]:
    """The next element of the iterator that each choice names; `stop` at the first that has none, or pass it over."""
    left = set(range(len(iterators)))
    for choice in choices:
        index = int(choice)
        if not 0 <= index < len(iterators):
            raise InvalidArgumentError(
                f"choose_from_datasets: a choice must be a number from 0 to {len(iterators) - 1}, found {index}."
            )
        element = next(iterators[index], _END) if index in left else _END
        if element is not _END:
            yield element
            continue
        left.discard(index)
        if stop or not left:
            return
