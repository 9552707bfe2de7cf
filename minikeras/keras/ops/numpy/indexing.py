"""Elements picked and put, under Keras's names."""

from __future__ import annotations

from typing import Any

from ....core import convert_to_tensor
from ....functions.indexing import getitem
from ....types import TensorLike
from ...symbolic.operation import operation

__all__ = ["get_item"]


@operation
def get_item(x: TensorLike, key: TensorLike) -> Any:
    """The part x[key]: integers, slices, None, Ellipsis, tensors of integers or bools, or a tuple of these.

    >>> print(tf.keras.ops.get_item([[1, 2], [3, 4]], (0, slice(1, None))).numpy())
    [2]
    """
    return getitem(convert_to_tensor(x), tuple(key) if isinstance(key, list) else key)
