"""Sequences of one length: lists filled up, and windows of a series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...boundary import explaining
from ...core import Tensor
from ...data import Dataset
from ...data.table import Table, own_column

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
    targets: Any,
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
    start, end = _bounds(len(data), start_index, end_index)
    for name, number in (("sequence_stride", sequence_stride), ("sampling_rate", sampling_rate)):
        if not 0 < number < len(data):
            raise ValueError(f"timeseries_dataset_from_array: {name} must be from 1 to {len(data) - 1}, found {number}.")
    if sequence_length < 1 or format != "tf":
        raise ValueError(
            "timeseries_dataset_from_array: sequence_length must be at least 1 and format 'tf', found "
            f"{sequence_length} and {format!r}."
        )
    rows = Table(own_column(data[start:end]))
    labels = None if targets is None else Table(own_column(targets[start:end]))
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


def _bounds(length: int, start: int | None, end: int | None) -> tuple[int, int]:
    first, last = start or 0, length if end is None else end
    if not 0 <= first < last <= length:
        raise ValueError(
            f"timeseries_dataset_from_array: start_index, end_index must be rows of {length} in order, found {start} and {end}."
        )
    return first, last
