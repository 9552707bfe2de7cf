"""From what users hand to `fit` to batches (x, y, sample_weight).

Key idea: everything becomes a `Dataset`, so that `fit` over arrays and a custom loop over a Dataset see the same batches.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import nest
from ..arrays import is_array, to_numpy
from ..core import convert_to_tensor
from ..core.operand import Operand
from ..data import Dataset
from ..errors import DTypeError, ShapeError
from .config import floatx


class Source(NamedTuple):
    """An iterable of batches, and their number if it is known."""

    batches: Any
    steps: int | None


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


def as_columns(structure: Any) -> Any:
    """Arrays, Tensors, data frames and nested lists of numbers as arrays; float64 becomes the default float dtype."""
    if structure is None:
        return None
    if isinstance(structure, Mapping):
        return {key: as_columns(value) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)) and structure and not _is_row_list(structure):
        return type(structure)(as_columns(value) for value in structure)
    array = structure._array if isinstance(structure, Operand) else structure if is_array(structure) else np.asarray(structure)
    if array.dtype.kind not in "biuf":
        raise DTypeError(
            f"the data holds {array.dtype} values of shape {array.shape}, numbers are needed. Encode them first (for data "
            "frames: frame.to_numpy(float); for text labels: indices of the classes)."
        )
    return array.astype(floatx()) if array.dtype == np.float64 and floatx() != "float64" else array


def _is_row_list(value: Any) -> bool:
    """True for lists of numbers: one array, not a list of inputs."""
    first = value[0]
    return isinstance(first, (int, float, bool, np.number)) or (
        isinstance(first, (list, tuple)) and bool(first) and _is_row_list(first)
    )


def count_rows(name: str, *columns: Any) -> int:
    """The common number of rows.

    Raises:
        ValueError: if the numbers differ or there are none.
    """
    leaves = [leaf for column in columns for leaf in nest.flatten(column) if leaf is not None]
    sizes = sorted({int(leaf.shape[0]) if len(leaf.shape) else -1 for leaf in leaves})
    shapes = [tuple(leaf.shape) for leaf in leaves]
    if len(sizes) != 1 or sizes[0] < 0:
        raise ShapeError(f"{name}: make sure all arrays contain the same number of samples; found shapes {shapes}.")
    if sizes[0] == 0:
        raise ShapeError(f"{name}: the data has no rows (shapes {shapes}). Check how it was loaded or filtered.")
    return sizes[0]


def from_arrays(name: str, x: Any, y: Any, sample_weight: Any, batch_size: int | None, shuffle: bool) -> Source:
    """Batches of arrays; the last one may be smaller."""
    rows = count_rows(name, x, y, sample_weight)
    size = 32 if batch_size is None else batch_size
    columns = (x,) if y is None else (x, y) if sample_weight is None else (x, y, sample_weight)
    dataset = Dataset.from_columns(columns)
    if shuffle:
        dataset = dataset.shuffle(rows)
    return Source(dataset.batch(size), math.ceil(rows / size))


def is_iterable_of_batches(x: Any) -> bool:
    """True for Datasets, generators and sequences that make batches, not for arrays, lists and dicts of arrays."""
    if isinstance(x, Dataset):
        return True
    plain = is_array(x) or isinstance(x, (Operand, list, tuple, Mapping)) or hasattr(x, "__array__")
    return not plain and (hasattr(x, "__iter__") or hasattr(x, "__getitem__"))


def source(name: str, x: Any, y: Any, sample_weight: Any, batch_size: int | None, shuffle: bool) -> Source:
    """Batches from whatever was handed over.

    Raises:
        ValueError: for y, sample_weight or batch_size beside an iterable of batches, or no rows.
    """
    if not is_iterable_of_batches(x):
        return from_arrays(name, as_columns(x), as_columns(y), as_columns(sample_weight), batch_size, shuffle)
    for label, value in (("y", y), ("sample_weight", sample_weight), ("batch_size", batch_size)):
        if value is not None:
            raise ValueError(f"{name}: `{label}` must be None when x is a {type(x).__name__}; its elements hold it.")
    try:
        steps = len(x)
    except TypeError:
        steps = None
    return Source(x if isinstance(x, Dataset) else _Converted(x), steps)


class _Converted:
    """The batches of a generator, list or sequence, each made of Tensors; floats of the default dtype."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        if hasattr(self._batches, "__iter__"):
            return map(_converted, self._batches)
        return (_converted(self._batches[number]) for number in range(len(self._batches)))


def _converted(batch: Any) -> Any:
    columns = tuple(as_columns(part) for part in unpack_x_y_sample_weight(batch))
    return nest.map_structure(lambda leaf: None if leaf is None else convert_to_tensor(leaf), columns)


def passes(source: Source, steps: int | None) -> Callable[[], Iterator[Any]]:
    """A function that gives the batches of one pass after another: fresh ones, or `steps` of a run that goes on."""
    if steps is None:
        return lambda: iter(source.batches)
    run = _without_end(source.batches) if source.steps else iter(source.batches)
    return lambda: itertools.islice(run, steps)


def _without_end(batches: Any) -> Iterator[Any]:
    while True:
        yield from batches


def check_rows(name: str, number: int, batch: Any) -> None:
    """Refuse a batch without rows: its mean loss would be NaN.

    Raises:
        ShapeError: naming the batch and the shapes.
    """
    leaves = [leaf for leaf in nest.flatten(batch) if leaf is not None]
    if not leaves or any(leaf.shape[:1] == (0,) for leaf in leaves):
        shapes = [tuple(leaf.shape) for leaf in leaves]
        raise ShapeError(f"{name}: batch {number} has no rows (shapes {shapes}). Leave empty batches out of the data.")


def split(columns: tuple[Any, Any, Any], share: float) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Training rows, the first floor(n (1 - share)), and validation rows, the rest, in their given order.

    Raises:
        ValueError: if `share` is not between 0 and 1, or a part would be empty.
    """
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


def class_weights(y: Any, weights: Mapping[int, float]) -> Any:
    """A weight for each row from its class; one-hot labels count by their largest element, missing classes 1.0."""
    if y is None:
        raise ValueError("class_weight needs labels: give y, or weight the rows with sample_weight.")
    labels = np.asarray(to_numpy(y))
    if labels.ndim > 1 and labels.shape[-1] > 1:
        labels = labels.argmax(axis=-1)
    labels = labels.reshape(len(labels), -1)[:, 0].astype(int)
    table = {int(key): float(value) for key, value in weights.items()}
    return np.array([table.get(int(label), 1.0) for label in labels], dtype=floatx())
