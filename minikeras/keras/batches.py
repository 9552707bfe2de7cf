"""Batches (x, y, sample_weight) from what users hand to `fit`: its columns as arrays; a Source, which gives batches from any
position on; and Feed, one epoch after another.

Arrays become a `Dataset`, so that `fit` and a custom training loop see the same batches; a source draws its order from
`order_stream()` alone.
"""

from __future__ import annotations

import itertools
import math
import mmap
import operator
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .. import nest
from ..core import Operand, array_of, convert_to_tensor, is_array, to_numpy, warn_caller
from ..data import INFINITE_CARDINALITY, Dataset
from ..data.elements import in_order
from ..data.pipeline import Passes, order_stream, preserved_streams
from ..data.table import RowTable
from ..errors import DTypeError, ShapeError, kind_of
from ..nn_ops import streams
from ..types import TensorLike
from .config import floatx, max_steps_per_epoch


def unpack_x_y_sample_weight(data: Any) -> tuple[Any, Any, Any]:
    """(x, y, sample_weight) from a batch: x alone, (x,), (x, y) or (x, y, sample_weight).

    >>> unpack_x_y_sample_weight((1, 2))
    (1, 2, None)
    """
    if isinstance(data, list):
        data = tuple(data)
    if not isinstance(data, tuple):
        return data, None, None
    if len(data) > 3:
        raise ValueError(f"A batch should be `x`, `(x, y)` or `(x, y, sample_weight)`, found a tuple of {len(data)}.")
    x, y, weight = (*data, None, None)[:3]
    return x, y, weight


def pack_x_y_sample_weight(x: TensorLike, y: TensorLike = None, sample_weight: TensorLike = None) -> Any:
    """A batch as steps get it: x alone, (x, y) or (x, y, sample_weight); a tuple or list of inputs alone is (x,).

    >>> pack_x_y_sample_weight(1), pack_x_y_sample_weight(1, 2), pack_x_y_sample_weight([1, 2])
    (1, (1, 2), ([1, 2],))
    """
    if sample_weight is not None:
        return x, y, sample_weight
    if y is not None:
        return x, y
    return (x,) if isinstance(x, (list, tuple)) else x


def is_iterable_of_batches(x: Any) -> bool:
    """True for Datasets, generators and sequences that make batches, not for arrays, lists and dicts of arrays."""
    if isinstance(x, Dataset):
        return True
    plain = is_array(x) or isinstance(x, (Operand, list, tuple, Mapping)) or hasattr(x, "__array__") or _is_sparse(x)
    return not plain and (hasattr(x, "__iter__") or hasattr(x, "__getitem__"))


def as_columns(structure: Any, text: bool = False) -> Any:
    """Arrays, Tensors, data frames and nested lists as arrays, of numbers, or of text where it is allowed; float64 becomes the
    default float dtype, in arrays that lie in files not before rows are taken. A data frame of text and numbers is a dict of
    its columns; a column of a frame has the shape (rows, 1).
    """
    if structure is None:
        return None
    if isinstance(structure, Mapping):
        return {key: as_columns(value, text) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)) and structure and not _is_row_list(structure):
        parts = [as_columns(value, text) for value in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)
    if text and len({kind in "biuf" for kind in _kinds(structure)}) == 2:
        return {name: as_columns(structure[name], text) for name in structure}
    whole = isinstance(structure, Operand) or is_array(structure)
    array = array_of(structure) if whole else _as_array(structure, text)
    if hasattr(structure, "dtypes") and array.ndim == 1:
        array = array[:, None]
    if text and array.dtype.kind in "OUS":
        return convert_to_tensor(array).array
    if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
        raise DTypeError(
            f"the data holds {array.dtype} values of shape {array.shape}, numbers are needed. Encode them first (for data "
            "frames: frame.to_numpy(float); for text labels: indices of the classes)."
        )
    return array if _lies_in_a_file(array) else as_floatx(array)


def as_floatx(array: Any) -> Any:
    """An array in the default float dtype if it is float64."""
    return array.astype(floatx()) if array.dtype == np.float64 and floatx() != "float64" else array


def _lies_in_a_file(array: Any) -> bool:
    """True for memory maps and views of them, which are to be read row by row."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)


def _as_array(value: Any, text: bool) -> Any:
    """An array of a data frame, a column of one, or nested lists."""
    if _is_sparse(value):
        raise DTypeError(
            f"the data is a sparse {type(value).__name__} of shape {value.shape}; sparse arrays are not supported. Use "
            "x.toarray(), or a generator that does so for each batch."
        )
    if not hasattr(value, "dtypes") or (text and np.asarray(value).dtype == object):
        return np.asarray(value)
    kinds = {value.name: value.dtypes} if len(value.shape) == 1 else dict(zip(value.columns, value.dtypes, strict=True))
    other = {str(name): str(dtype) for name, dtype in kinds.items() if getattr(dtype, "kind", "f") not in "biuf"}
    if other:
        raise DTypeError(f"columns {other} of the data frame hold no numbers. Encode them first, or leave them out.")
    array = np.asarray(value)
    return array if array.dtype != object else value.to_numpy(dtype=floatx(), na_value=np.nan)  # several kinds of numbers


def _kinds(value: Any) -> list[str]:
    """The kinds of the columns of a data frame, by NumPy's letters; none for other data."""
    is_frame = hasattr(value, "dtypes") and hasattr(value, "columns")
    return [getattr(dtype, "kind", "O") for dtype in value.dtypes] if is_frame else []


def _is_sparse(value: object) -> bool:
    """True for SciPy's sparse arrays."""
    return hasattr(value, "tocoo") and hasattr(value, "toarray")


def _is_row_list(value: Any) -> bool:
    """True for lists of numbers or text: one array, not a list of inputs."""
    first = value[0]
    return isinstance(first, (int, float, bool, np.number, str, bytes)) or (
        isinstance(first, (list, tuple)) and bool(first) and _is_row_list(first)
    )


def count_rows(name: str, *columns: Any) -> int:
    """The common number of rows; refused if the numbers differ or there are none."""
    leaves = [leaf for column in columns for leaf in nest.flatten(column) if leaf is not None]
    if not leaves:
        raise ValueError(f"{name}: there is no data, x is None. Give arrays, a Dataset or another source of batches.")
    sizes = {int(leaf.shape[0]) if len(leaf.shape) else -1 for leaf in leaves}
    if len(sizes) != 1 or min(sizes) <= 0:
        shapes = [tuple(leaf.shape) for leaf in leaves[:9]]
        if sizes == {0}:
            raise ShapeError(f"{name}: the data has no rows (shapes {shapes}). Check how it was loaded or filtered.")
        rows = " A list of arrays is one of inputs; of rows, np.array(rows) makes one array." if len(leaves) > 3 else ""
        raise ShapeError(f"{name}: make sure all arrays contain the same number of samples; found shapes {shapes}.{rows}")
    return sizes.pop()


def check_rows(name: str, number: int, batch: Any) -> None:
    """Refuse a batch without rows: its mean loss would be NaN."""
    leaves = [leaf for leaf in nest.flatten(batch) if leaf is not None]
    if not leaves or any(leaf.shape[:1] == (0,) for leaf in leaves):
        shapes = [tuple(leaf.shape) for leaf in leaves]
        raise ShapeError(f"{name}: batch {number} has no rows (shapes {shapes}). Leave empty batches out of the data.")


def split(columns: tuple[Any, Any, Any], share: float) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Training rows, the first floor(n (1 - share)), and validation rows, the rest, in their given order."""
    if not 0 < share < 1:
        raise ValueError(f"`validation_split` must be between 0 and 1, received: {share}.")
    rows = count_rows("validation_split", *columns)
    at = math.floor(rows * (1.0 - share))
    if at in (0, rows):
        raise ValueError(
            f"Training data contains {rows} samples, which is not sufficient to split it with validation_split={share}."
        )
    parts = [
        nest.map_structure(lambda leaf, where=where: None if leaf is None else leaf[where], columns)
        for where in (slice(at), slice(at, None))
    ]
    return parts[0], parts[1]


def _class_table(weights: Any) -> dict[int, float]:
    """The weights by class; anything but a dict of integers and numbers is refused."""
    try:
        return {operator.index(key): float(value) for key, value in weights.items()}
    except (AttributeError, TypeError, ValueError):
        if isinstance(weights, str):
            advice = "For weights that balance the classes: dict(enumerate(len(y) / (classes * np.bincount(y))))."
        elif isinstance(weights, Mapping):
            advice = "Its keys are the integers by which y names the classes."
        else:
            advice = "For a list of weights: dict(enumerate(weights))."
        raise TypeError(
            f"class_weight: expected a dict from classes to weights, such as {{0: 1.0, 1: 2.5}}, found {weights!r}. {advice}"
        ) from None


def class_weights(y: TensorLike, weights: Mapping[int, float]) -> Any:
    """A weight for each row from its class; one-hot labels count by their largest element, missing classes 1.0."""
    table = _class_table(weights)
    leaves = [leaf for leaf in nest.flatten(y) if leaf is not None]
    if not leaves:
        raise ValueError("class_weight needs labels: give y, or weight the rows with sample_weight.")
    if len(leaves) > 1:
        raise ValueError("`class_weight` is only supported for models with a single output. Use sample_weight for others.")
    labels = np.asarray(to_numpy(leaves[0]))
    if labels.ndim > 1 and labels.shape[-1] > 1:
        labels = labels.argmax(axis=-1)
    labels = labels.reshape(len(labels), -1)[:, 0].astype(int)
    classes, places = np.unique(labels, return_inverse=True)
    return np.array([table.get(int(one), 1.0) for one in classes], dtype=floatx())[places]


# Sources ---------------------------------------------------------------------------------------------------------------


class Source:
    """Batches.

    Attributes:
        steps: their number; None if it is unknown, infinity without end.
        checked: whether it is sure that every batch has rows.
        table: the arrays, if batches are rows of arrays: a pass gives row numbers, and `batch` takes these rows.
        random_streams: the streams that its order draws from beside `order_stream()`.
        on_epoch_begin, on_epoch_end: called before and after each epoch.
    """

    checked = False
    table: RowTable | None = None

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
        """The element that stands for the first batch."""
        with preserved_streams(self.random_streams):
            return next(iter(self.from_position(0)), None)

    def rows(self, element: Any) -> int:
        """The number of rows of the batch that an element of a pass stands for."""
        if self.table is not None:
            return len(element)
        return next((int(leaf.shape[0]) for leaf in nest.flatten(element) if leaf is not None and leaf.ndim), 0)

    def cut(self, element: Any, rows: slice) -> Any:
        """The element that stands for some rows of the batch of an element."""
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
        leaf = nest.map_structure(lambda one: None if one is None else one.array, y)
        return x, y, convert_to_tensor(class_weights(leaf, self._weights))


def of_arrays(
    x: TensorLike, y: TensorLike, sample_weight: TensorLike, rows: int, batch_size: int | None, shuffle: bool | str
) -> Source:
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
    y: TensorLike,
    sample_weight: TensorLike,
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
        warn_caller(f"{name}: batch_size={batch_size} is left out: {kind_of(x)} gives batches already.")
    for label, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise ValueError(f"{name}: `{label}` must be None when x is {kind_of(x)}; its elements hold it.")
    if isinstance(x, Dataset):
        found: Source = _DatasetSource(x, checked=False)
    elif isinstance(x, PyDataset) or not hasattr(x, "__iter__"):
        found = _SequenceSource(x, bool(shuffle) and isinstance(x, PyDataset))
    else:
        found = _IterableSource(x)
    return found if class_weight is None else _Weighted(found, class_weight)


def _converted(batch: Any) -> Any:
    """A batch made of Tensors; floats of the default dtype."""
    x, y, sample_weight = unpack_x_y_sample_weight(batch)
    columns = pack_x_y_sample_weight(as_columns(x, text=True), as_columns(y), as_columns(sample_weight))
    return nest.map_structure(lambda leaf: None if leaf is None else convert_to_tensor(as_floatx(leaf)), columns)


class Feed:
    """The batches of `source` for `fit`, `evaluate` or `predict`: `wanted` steps an epoch, each epoch from where the last one
    stopped, or whole passes if None. The attribute `steps` is the number of batches an epoch, None if it is unknown.
    """

    def __init__(self, source: Source, steps: int | None = None) -> None:
        limit = max_steps_per_epoch()
        given = source.steps if steps is None else steps
        if limit is not None and (given is None or given > limit):
            warn_caller(f"Limiting steps_per_epoch to {limit}, see keras.config.set_max_steps_per_epoch.")
            steps = limit
        if source.steps == np.inf and steps is None:
            raise ValueError("The data has no end: say how many batches an epoch has, with `steps_per_epoch` or `steps`.")
        self.source = source
        self.wanted = steps
        self.steps: int | None = steps if steps is not None else None if source.steps is None else int(source.steps)
        self._passes = Passes(source)

    def epoch(self, done: int = 0) -> Iterator[Any]:
        """The elements that stand for the batches of an epoch of which `done` were taken before; `source.batch` makes them."""
        if not done:
            self.source.on_epoch_begin()
        if self.wanted is not None:
            yield from itertools.islice(self._without_end(), self.wanted - done)
        else:
            if not done:
                self._passes.begin()
            yield from self._passes.rest()
        self.source.on_epoch_end()

    def _without_end(self) -> Iterator[Any]:
        """One pass after another, if the source has a length, else the rest of its only pass."""
        if not self._passes.under_way:
            self._passes.begin()
        yield from self._passes.rest()
        while self.source.steps:
            self._passes.begin()
            yield from self._passes.rest()

    def state(self) -> dict[str, Any]:
        """The position of the feed, as plain values."""
        return self._passes.state()

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go to the position of another feed of the same data, random streams included."""
        self._passes.resume(state)


class PyDataset:
    """A sequence of batches: subclass it and write `__len__` and `__getitem__`.

    With `shuffle=True`, `fit` asks for the batches in an order that is drawn anew for each epoch.

    Args:
        workers: threads that make batches ahead of their use; with 1 each is made when it is asked for.
        use_multiprocessing: left out with a warning: arrays would have to be copied between processes.
        max_queue_size: how many batches are made ahead.

    >>> import numpy as np
    >>> class Squares(tf.keras.utils.PyDataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, index):
    ...         x = np.arange(4.0).reshape(4, 1) + 4 * index
    ...         return x, x**2
    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> model.compile(tf.keras.optimizers.Adam(0.01), "mse")
    >>> len(model.fit(Squares(), epochs=2, verbose=0).history["loss"])
    2
    """

    def __init__(self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10) -> None:
        if use_multiprocessing:
            text = "PyDataset: use_multiprocessing is left out; workers=n makes batches in n threads of this process."
            warn_caller(text)
        self.workers = workers
        self.use_multiprocessing = use_multiprocessing
        self.max_queue_size = max_queue_size

    def __getitem__(self, index: int) -> Any:
        """Batch number `index`: x, (x, y) or (x, y, sample_weight)."""
        raise NotImplementedError(f"{type(self).__name__} must implement __getitem__(index).")

    def __len__(self) -> int:
        """The number of batches."""
        if self.num_batches is None:
            raise TypeError(f"{type(self).__name__} has no end; give fit a number of steps_per_epoch.")
        return self.num_batches

    @property
    def num_batches(self) -> int | None:
        """The number of batches; None for no end."""
        if type(self).__len__ is not PyDataset.__len__:
            return len(self)
        raise NotImplementedError(f"{type(self).__name__} must implement __len__().")

    def on_epoch_begin(self) -> None:
        """Called before each epoch."""

    def on_epoch_end(self) -> None:
        """Called after each epoch, for example to draw other rows for the next one."""

    def __iter__(self) -> Iterator[Any]:
        try:
            count = self.num_batches
        except NotImplementedError:  # its length is not known
            count = None
        for index in itertools.count() if count is None else range(count):
            yield self[index]
