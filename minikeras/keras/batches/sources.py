"""Sources: what was handed over, as batches that can be had from any position on. Arrays become a `Dataset`, so that `fit` and
a custom training loop see the same batches; a source draws its order from `order_stream()` alone.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ... import nest
from ...core import convert_to_tensor
from ...data import INFINITE_CARDINALITY, Dataset
from ...data.passes import order_stream, preserved_streams
from ...data.table import Table
from ...data.threads import in_order
from ...errors import kind_of
from ...nn_ops import streams
from ..config import floatx
from .columns import (
    as_columns,
    as_floatx,
    class_weights,
    count_rows,
    is_iterable_of_batches,
    pack_x_y_sample_weight,
    unpack_x_y_sample_weight,
)
from .py_dataset import PyDataset


class Source:
    """Batches.

    Attributes:
        steps: their number; None if it is unknown, infinity without end.
        checked: whether it is sure that every batch has rows.
        table: if batches are rows of arrays, these: a pass gives row numbers, of which `batch` makes batches.
        random_streams: those that belong to its order beside `order_stream()`.
        on_epoch_begin, on_epoch_end: called before and after each epoch.
    """

    checked = False
    table: Table | None = None

    def __init__(self, steps: float | None) -> None:
        self.steps = steps
        self.random_streams: list[streams.Stream] = []
        self.on_epoch_begin = self.on_epoch_end = _nothing

    def from_position(self, start: int) -> Iterator[Any]:
        """A pass over the batches, from number `start` on; what comes before is passed over at once."""
        raise NotImplementedError

    def batch(self, element: Any) -> Any:
        """The batch that an element of a pass stands for."""
        return element if self.table is None else self.table.take(element)

    def first(self) -> Any:
        """The first batch, without any effect on the passes that follow; None if there is none."""
        element = self.first_element()
        return None if element is None else self.batch(element)

    def first_element(self) -> Any:
        """What stands for it."""
        with preserved_streams(self.random_streams):
            return next(iter(self.from_position(0)), None)

    def rows(self, element: Any) -> int:
        """The number of rows of the batch that an element of a pass stands for."""
        if self.table is not None:
            return len(element)
        return next((int(leaf.shape[0]) for leaf in nest.flatten(element) if leaf is not None and leaf.ndim), 0)

    def cut(self, element: Any, rows: slice) -> Any:
        """What stands for some rows of that batch."""
        return element[rows] if self.table is not None else cut(element, rows)


def _nothing() -> None:
    pass


def cut(batch: Any, rows: slice) -> Any:
    """Some rows of a batch."""
    return nest.map_structure(lambda leaf: None if leaf is None else leaf[rows], batch)


class _DatasetSource(Source):
    """A Dataset."""

    def __init__(self, dataset: Dataset, checked: bool) -> None:
        length = int(dataset.cardinality())
        super().__init__(np.inf if length == INFINITE_CARDINALITY else None if length < 0 else length)
        self._dataset, self.checked, self.table = dataset, checked, dataset.table
        self.random_streams = dataset.random_streams

    def from_position(self, start: int) -> Iterator[Any]:
        return self._dataset.rows_from(start)


class _SequenceSource(Source):
    """Batches by number: a PyDataset, or anything else with a length and an index."""

    def __init__(self, sequence: Any, shuffle: bool) -> None:
        count = sequence.num_batches if isinstance(sequence, PyDataset) else len(sequence)
        super().__init__(np.inf if count is None else count)
        self._sequence, self._shuffle = sequence, shuffle
        self._workers, self._ahead = getattr(sequence, "workers", 1), getattr(sequence, "max_queue_size", 10)
        self.on_epoch_begin = getattr(sequence, "on_epoch_begin", _nothing)
        self.on_epoch_end = getattr(sequence, "on_epoch_end", _nothing)

    def from_position(self, start: int) -> Iterator[Any]:
        if self.steps == np.inf:
            numbers: Any = itertools.count(start)
        else:
            count = int(self.steps or 0)
            order = order_stream().generator().permutation(count).tolist() if self._shuffle else range(count)
            numbers = order[start:]
        made = lambda number: _converted(self._sequence[number])
        return in_order(made, numbers, self._workers, self._ahead) if self._workers > 1 else map(made, numbers)


class _IterableSource(Source):
    """Batches of an iterable: a generator, which gives one pass only, or a loader, which gives many."""

    def __init__(self, iterable: Any) -> None:
        super().__init__(len(iterable) if hasattr(iterable, "__len__") else None)
        self._iterable = iterable
        self._kept: list[Any] = []

    def from_position(self, start: int) -> Iterator[Any]:
        rest = iter(self._iterable)
        found = itertools.chain(self._kept, rest) if rest is self._iterable else rest
        next(itertools.islice(found, start, start), None)
        return map(_converted, self._given(found))

    def _given(self, found: Iterator[Any]) -> Iterator[Any]:
        """The elements; those looked at beforehand are let go."""
        for element in found:
            self._kept = []
            yield element

    def first_element(self) -> Any:
        found = iter(self._iterable)
        if found is not self._iterable:
            return super().first_element()
        if not self._kept:
            self._kept = list(itertools.islice(found, 1))
        return _converted(self._kept[0]) if self._kept else None


class _Weighted(Source):
    """Another source's batches, with a weight for each row from its class."""

    def __init__(self, inner: Source, table: Mapping[int, float]) -> None:
        super().__init__(inner.steps)
        self._inner, self._weights = inner, table
        self.checked, self.random_streams = inner.checked, inner.random_streams
        self.on_epoch_begin, self.on_epoch_end = inner.on_epoch_begin, inner.on_epoch_end

    def from_position(self, start: int) -> Iterator[Any]:
        return map(self._weighted, map(self._inner.batch, self._inner.from_position(start)))

    def _weighted(self, batch: Any) -> Any:
        x, y, weights = unpack_x_y_sample_weight(batch)
        if weights is not None:
            raise ValueError("You cannot `class_weight` and `sample_weight` at the same time; the batches hold weights.")
        leaf = nest.map_structure(lambda one: None if one is None else one._array, y)
        return x, y, convert_to_tensor(class_weights(leaf, self._weights))


def of_arrays(x: Any, y: Any, sample_weight: Any, rows: int, batch_size: int | None, shuffle: bool | str) -> Source:
    """Batches of columns; the last one may be smaller. `shuffle='batch'` shuffles whole batches and not rows."""
    dataset = Dataset.from_columns(pack_x_y_sample_weight(x, y, sample_weight), floatx())
    if shuffle and shuffle != "batch":
        dataset = dataset.shuffle(rows)
    size = 32 if batch_size is None else batch_size
    dataset = dataset.batch(size)
    if shuffle == "batch" and (full := rows // size):  # a short last batch stays the last
        dataset = dataset.take(full).shuffle(full).concatenate(dataset.skip(full))
    return _DatasetSource(dataset, checked=True)


def source(
    name: str,
    x: Any,
    y: Any,
    sample_weight: Any,
    batch_size: int | None,
    shuffle: bool | str,
    class_weight: Mapping[int, float] | None = None,
    whole: bool = False,
    text: bool = False,
) -> Source:
    """Batches from what was handed over; arrays as one batch if `whole`. With `text` columns of x may hold text."""
    if class_weight is not None and sample_weight is not None:
        raise ValueError("You cannot `class_weight` and `sample_weight` at the same time.")
    if not is_iterable_of_batches(x):
        x, y, sample_weight = as_columns(x, text), as_columns(y), as_columns(sample_weight)
        rows = count_rows(name, x, y, sample_weight)
        weights = sample_weight if class_weight is None else class_weights(y, class_weight)
        return of_arrays(x, y, weights, rows, rows if whole else batch_size, shuffle)
    if whole:
        raise TypeError(f"{name}: one batch of arrays is needed, found {kind_of(x)}.")
    if batch_size is not None:
        warnings.warn(f"{name}: batch_size={batch_size} is left out: {kind_of(x)} gives batches already.", stacklevel=5)
    for label, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise ValueError(f"{name}: `{label}` must be None when x is {kind_of(x)}; its elements hold it.")
    found = _iterated(x, bool(shuffle))
    return found if class_weight is None else _Weighted(found, class_weight)


def _iterated(x: Any, shuffle: bool) -> Source:
    """A source for an iterable of batches."""
    if isinstance(x, Dataset):
        return _DatasetSource(x, checked=False)
    if isinstance(x, PyDataset):
        return _SequenceSource(x, shuffle)
    return _IterableSource(x) if hasattr(x, "__iter__") else _SequenceSource(x, False)


def _converted(batch: Any) -> Any:
    """A batch made of Tensors; floats of the default dtype."""
    x, y, sample_weight = unpack_x_y_sample_weight(batch)
    columns = pack_x_y_sample_weight(as_columns(x, text=True), as_columns(y), as_columns(sample_weight))
    return nest.map_structure(lambda leaf: None if leaf is None else convert_to_tensor(as_floatx(leaf)), columns)
