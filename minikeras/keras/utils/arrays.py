"""Labels as one-hot rows, rows of unit length, and data in two parts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...boundary import explaining
from ...core import Tensor, convert_to_tensor
from ...core.arrays import is_array
from ...data import INFINITE_CARDINALITY, Dataset
from ...functions.elementwise import maximum
from ...functions.reductions import norm
from ..config import epsilon


@explaining
def to_categorical(x: Any, num_classes: int | None = None) -> Any:
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
    """Numbers of elements of two parts."""
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
