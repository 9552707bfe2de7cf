"""What the layers of this folder take: columns of text or integers, as lists, arrays, tensors and data frames hold them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from ....core import Tensor, convert_to_tensor
from ....core.arrays import to_numpy
from ....core.batch import check_values
from ....core.tensor import Operand
from ....errors import DTypeError
from ....functions.elementwise import cast
from ....types import Array
from ...symbolic.keras_tensor import KerasTensor
from ...symbolic.shapes import is_data
from ..layer import Layer


class ColumnLayer(Layer):
    """Base of layers whose input is a column of text or integers."""

    _takes_text = True
    encoding = "utf-8"

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"autocast": False, **options})

    def __call__(self, inputs: Any, **options: Any) -> Any:
        return super().__call__(as_column(inputs), **options)


def as_column(values: Any) -> Any:
    """Values as a Tensor; a KerasTensor as it is, and integers that a data frame holds as objects as integers."""
    if isinstance(values, (Operand, KerasTensor)):
        return values
    if is_data(values) and (array := np.asarray(values)).dtype == object and array.size and type(array.flat[0]) is int:
        return convert_to_tensor(array.astype(np.int64) if set(map(type, array.flat)) == {int} else array)
    return convert_to_tensor(values)


def as_integers(layer: Layer, x: Tensor) -> Tensor:
    """Integers as int64, floats cut off.

    Raises:
        DTypeError: for text.
        ValueError: for NaN and infinity.
    """
    if x.dtype.name == "string" or x.dtype.is_complex:
        raise DTypeError(f"Layer '{layer.name}' ({type(layer).__name__}) takes integers, found {x.dtype.name}{list(x.shape)}.")
    if x.dtype.is_floating:
        check_values(x, _finite)
    return cast(x, "int64")


def _finite(values: Array) -> None:
    if not np.isfinite(values).all():
        raise ValueError(
            "a column to be read as integers holds NaN or infinity. Fill missing values in first: column.fillna(0)."
        )


def texts(x: Array, encoding: str = "utf-8") -> list[Any]:
    """The elements as Python's values, bytes as text."""
    found = x.ravel().tolist()
    if bytes in set(map(type, found)):
        return [one.decode(encoding) if isinstance(one, bytes) else one for one in found]
    return found  # type: ignore[no-any-return]


def batches(data: Any, steps: int | None, listed: bool) -> Iterator[Array]:
    """The batches that `adapt` is given, as arrays: one array is one batch of rows; of a Dataset or another iterable `steps`,
    all by default, and of pairs the first. `listed` says whether a list is one array.
    """
    if is_data(data) or (listed and isinstance(data, (list, tuple))):
        x = to_numpy(as_column(data)._array)
        yield x[:, None] if x.ndim == 1 else x
        return
    for batch in itertools.islice(data, steps):
        first = batch[0] if isinstance(batch, tuple) and batch and is_data(batch[0]) else batch
        yield to_numpy(as_column(first)._array)
