"""Columns: the arrays that make up x, y and sample_weight."""

from __future__ import annotations

import math
import mmap
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import nest
from ...core import convert_to_tensor
from ...core.arrays import is_array, to_numpy
from ...core.tensor import Operand, array_of
from ...data import Dataset
from ...errors import DTypeError, ShapeError
from ..config import floatx


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


def pack_x_y_sample_weight(x: Any, y: Any = None, sample_weight: Any = None) -> Any:
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


def _is_sparse(value: Any) -> bool:
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
        shapes = [tuple(leaf.shape) for leaf in leaves]
        if sizes == {0}:
            raise ShapeError(f"{name}: the data has no rows (shapes {shapes}). Check how it was loaded or filtered.")
        raise ShapeError(f"{name}: make sure all arrays contain the same number of samples; found shapes {shapes}.")
    return sizes.pop()


def check_rows(name: str, number: int, batch: Any) -> None:
    """Refuse a batch without rows: its mean loss would be NaN."""
    leaves = [leaf for leaf in nest.flatten(batch) if leaf is not None]
    if not leaves or any(leaf.shape[:1] == (0,) for leaf in leaves):
        shapes = [tuple(leaf.shape) for leaf in leaves]
        raise ShapeError(f"{name}: batch {number} has no rows (shapes {shapes}). Leave empty batches out of the data.")


def batching_hint(batch: Any) -> str:
    """The advice after an element of a Dataset or generator, which is taken for a batch, did not fit."""
    shapes = [tuple(leaf.shape) for leaf in nest.flatten(batch) if leaf is not None]
    return f" The data gave a batch of shapes {shapes}; if that is a single row, use dataset.batch(32)."


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


def class_weights(y: Any, weights: Mapping[int, float]) -> Any:
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
