"""Labels as one-hot rows, rows of unit length, data in two parts; sequences of one length and windows of a series."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...boundary import explaining
from ...core import Tensor, convert_to_tensor, is_array
from ...data import INFINITE_CARDINALITY, Dataset
from ...data.table import RowTable, own_column
from ...functions import maximum, norm
from ...types import TensorLike
from ..config import epsilon


@explaining
def to_categorical(x: TensorLike, num_classes: int | None = None) -> Any:
    """Integer labels as one-hot rows, float32: an array, for a Tensor a Tensor.

    >>> to_categorical([0, 2]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]

    Raises:
        ValueError: if a label is not in [0, num_classes).
    """
    labels = np.asarray(x, dtype=np.int64)
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    count = int(labels.max()) + 1 if num_classes is None else num_classes
    if labels.size and (labels.min() < 0 or labels.max() >= count):
        raise ValueError(f"to_categorical: labels from {labels.min()} to {labels.max()} do not fit num_classes={count}.")
    rows = np.zeros((*labels.shape, count), np.float32)
    np.put_along_axis(rows, labels[..., None], 1, -1)
    return convert_to_tensor(rows) if isinstance(x, Tensor) else rows


@explaining
def normalize(x: Any, axis: Any = -1, order: Any = 2) -> Any:
    """x / norm(x): rows of length 1. An array, with rows of zeros as they are; for a Tensor a Tensor.

    Args:
        x: numbers.
        axis: along which the norm is taken.
        order: of the norm, such as 1, 2 or np.inf.

    >>> normalize([[3.0, 4.0], [0.0, 0.0]]).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    if isinstance(x, Tensor):
        return x / maximum(norm(x, order, axis, keepdims=True), epsilon())
    rows = np.asarray(x)
    lengths = np.linalg.norm(rows, order, axis, keepdims=True)
    return rows / np.where(lengths == 0, 1, lengths)


@explaining
def split_dataset(
    dataset: Any,
    left_size: float | None = None,
    right_size: float | None = None,
    shuffle: bool = False,
    seed: int | None = None,
    preferred_backend: str | None = None,
) -> tuple[Dataset, Dataset]:
    """The first and the last elements, for example to train and to test.

    Args:
        dataset: a Dataset, whose elements are made once and kept; the rows of batches are split. Or an array, or a tuple,
            list or dict of arrays.
        left_size: number of elements in the first part, or a float for their share; None for all but those of the second.
        right_size: as much for the second part.
        shuffle: whether in random order.
        seed: of the order.
        preferred_backend: None or 'tensorflow'.

    Raises:
        ValueError: if a part is empty, or both are larger than the whole.

    >>> left, right = split_dataset(np.arange(10), left_size=0.8)
    >>> len(left), [int(x) for x in right]
    (8, [8, 9])
    """
    if preferred_backend not in (None, "tensorflow"):
        raise ValueError(f"split_dataset: preferred_backend must be None or 'tensorflow', found {preferred_backend!r}.")
    whole, batch_size = _in_one_order(dataset)
    left, right = _sizes(left_size, right_size, len(whole))
    if shuffle:
        whole = whole.shuffle(len(whole), seed, reshuffle_each_iteration=False)
    parts = whole.take(left), whole.skip(len(whole) - right)
    return parts if batch_size is None else (parts[0].batch(batch_size), parts[1].batch(batch_size))


def _in_one_order(given: Any) -> tuple[Dataset, int | None]:
    """The elements, always the same, and the size of the batches in which they were."""
    if not isinstance(given, Dataset):
        plain = is_array(given) or isinstance(given, Tensor)
        return Dataset.from_columns(tuple(given) if isinstance(given, list) and not plain else given), None
    if int(given.cardinality()) == INFINITE_CARDINALITY:
        raise ValueError("split_dataset: the dataset has no end; take(n) gives a part of it.")
    size = given.batch_size
    elements = list((given if size is None else given.unbatch()).from_position())
    return Dataset(partial(iter, elements), len(elements)), size


def _sizes(left: float | None, right: float | None, total: int) -> tuple[int, int]:
    counts = [_count(*side, total) for side in (("left_size", left), ("right_size", right))]
    if None in counts:
        given = next((count for count in counts if count is not None), None)
        if given is None:
            raise ValueError("split_dataset: give left_size or right_size, a number of elements or a share of them.")
        counts = [total - given if count is None else count for count in counts]
    found = counts[0] or 0, counts[1] or 0
    if min(found) < 1 or sum(found) > total:
        raise ValueError(
            f"split_dataset: left_size={left} and right_size={right} are {found[0]} and {found[1]} of {total} elements. "
            "Each needs at least one, and both together at most all."
        )
    return found


def _count(name: str, size: float | None, total: int) -> int | None:
    if isinstance(size, (bool, str)) or not isinstance(size, (int, float, np.integer, np.floating, type(None))):
        raise TypeError(f"split_dataset: {name} must be an int, a float or None, found {size!r}.")
    if isinstance(size, (float, np.floating)) and not 0 < size < 1:
        raise ValueError(f"split_dataset: {name} as a float is a share between 0 and 1, found {size}.")
    return None if size is None else round(size * total) if isinstance(size, (float, np.floating)) else int(size)


_SIDES = ("pre", "post")


@explaining
def pad_sequences(
    sequences: Sequence[Any],
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> np.ndarray[Any, Any]:
    """Lists of different lengths as one array.

    Args:
        sequences: lists of numbers, or of rows of one shape.
        maxlen: length that all get; None for that of the longest.
        dtype: of the result; object for strings.
        padding: 'pre' or 'post', the side that is filled up.
        truncating: the side at which longer sequences are cut.
        value: to fill up with.

    Returns:
        An array (len(sequences), maxlen, ...).

    Raises:
        ValueError: if a sequence is none, or its elements have another shape than those of the first one.

    >>> pad_sequences([[1], [2, 3], [4, 5, 6]], maxlen=2).tolist()
    [[0, 1], [2, 3], [5, 6]]
    """
    for name, side in (("padding", padding), ("truncating", truncating)):
        if side not in _SIDES:
            raise ValueError(f"pad_sequences: {name} must be 'pre' or 'post', found {side!r}.")
    if not hasattr(sequences, "__len__") or not all(hasattr(one, "__len__") for one in sequences):
        raise ValueError(f"pad_sequences: `sequences` must be a list of lists or arrays, found {sequences!r:.200}.")
    if isinstance(value, str) and np.dtype(dtype).kind not in "OUS":
        raise ValueError(f"pad_sequences: value {value!r} needs dtype=object, found dtype {dtype!r}.")
    length = max(map(len, sequences), default=0) if maxlen is None else maxlen
    shape = next((np.asarray(one).shape[1:] for one in sequences if len(one)), ())
    padded = np.full((len(sequences), length, *shape), value, dtype)
    for number, one in enumerate(sequences):
        if not len(one) or not length:
            continue
        row = np.asarray(one[-length:] if truncating == "pre" else one[:length], dtype)
        if row.shape[1:] != shape:
            raise ValueError(
                f"pad_sequences: elements of sequence {number} have shape {row.shape[1:]}, the first ones {shape}."
            )
        if padding == "pre":
            padded[number, length - len(row) :] = row
        else:
            padded[number, : len(row)] = row
    return padded


@explaining
def timeseries_dataset_from_array(
    data: Any,
    targets: TensorLike,
    sequence_length: int,
    sequence_stride: int = 1,
    sampling_rate: int = 1,
    batch_size: int | None = 128,
    shuffle: bool = False,
    seed: int | None = None,
    start_index: int | None = None,
    end_index: int | None = None,
    format: str = "tf",
) -> Dataset:
    """Windows of a series: (windows, targets) in batches, or windows alone.

        window[n] = data[start_index + n * sequence_stride + [0, 1, ..., sequence_length - 1] * sampling_rate]
        target[n] = targets[start_index + n * sequence_stride]

    Args:
        data: array (time, ...).
        targets: array with a row for the beginning of each window; None for windows alone.
        sequence_length: rows in a window.
        sequence_stride: from the beginning of one window to that of the next.
        sampling_rate: from one row of a window to the next.
        batch_size: windows in a batch; None for single ones.
        shuffle: whether windows come in random order, drawn anew for each iteration.
        seed: of the order.
        start_index: rows before it are left out.
        end_index: this row and those after it are left out.
        format: 'tf'.

    Raises:
        ValueError: for numbers that do not fit the length of the data.

    >>> series = np.arange(12)
    >>> for x, y in timeseries_dataset_from_array(series[:-3], series[3:], sequence_length=3, sequence_stride=4):
    ...     print(x.numpy().tolist(), y.numpy())
    [[0, 1, 2], [4, 5, 6]] [3 7]
    """
    start, end = start_index or 0, len(data) if end_index is None else end_index
    if not 0 <= start < end <= len(data):
        raise ValueError(
            f"timeseries_dataset_from_array: start_index, end_index must be rows of {len(data)} in order, found {start_index} "
            f"and {end_index}."
        )
    for name, number in (("sequence_stride", sequence_stride), ("sampling_rate", sampling_rate)):
        if not 0 < number < len(data):
            raise ValueError(f"timeseries_dataset_from_array: {name} must be from 1 to {len(data) - 1}, found {number}.")
    if sequence_length < 1 or format != "tf":
        raise ValueError(
            "timeseries_dataset_from_array: sequence_length must be at least 1 and format 'tf', found "
            f"{sequence_length} and {format!r}."
        )
    rows = RowTable(own_column(data[start:end]))
    labels = None if targets is None else RowTable(own_column(targets[start:end]))
    count = rows.length - (sequence_length - 1) * sampling_rate
    firsts = np.arange(0, count if labels is None else min(count, labels.length), sequence_stride)
    steps = np.arange(sequence_length) * sampling_rate

    def windows(begin: Tensor) -> Any:
        first = begin.numpy()
        x = rows.take(np.add.outer(first, steps))
        return x if labels is None else (x, labels.take(first))

    dataset = Dataset.from_tensor_slices(firsts)
    if shuffle and len(firsts):
        dataset = dataset.shuffle(len(firsts), seed)
    found = (dataset if batch_size is None else dataset.batch(batch_size)).map(windows)
    found.batch_size = batch_size
    return found
