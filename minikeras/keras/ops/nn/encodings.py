"""Numbers of classes as rows of zeros and ones."""

from __future__ import annotations

import math
from typing import Any

from ....core import Tensor, convert_to_tensor
from ....functions import creation
from ....functions.elementwise import cast
from ....functions.reductions import reduce_max
from ....types import TensorLike, as_dtype
from ... import config
from ...symbolic.operation import operation

__all__ = ["multi_hot", "one_hot"]


def _cost(shapes: list[tuple[int, ...]], given: Any) -> tuple[int, int]:
    classes = given[-1].get("num_classes")
    result = math.prod(shapes[0]) * max(1, int(classes or 0))
    return result, result


def _settled(config: dict[str, Any]) -> dict[str, Any]:
    return config | {"dtype": _named(config["dtype"])}


def _named(dtype: Any) -> str:
    return config.floatx() if dtype is None else as_dtype(dtype).name


@operation(cost=_cost, settle=_settled)
def one_hot(x: TensorLike, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Tensor:
    """1 at the place of each number along a new axis, 0 elsewhere; nothing but zeros for numbers out of range.

    Args:
        x: integers of any shape.
        num_classes: size of the new axis.
        axis: where the new axis lies in the result.
        dtype: of the result; `floatx()` if None.

    Raises:
        ValueError: for sparse=True: tensors are dense here.

    >>> print(tf.keras.ops.one_hot([2, 0], 3).numpy())
    [[0. 0. 1.]
     [1. 0. 0.]]
    """
    if sparse:
        raise ValueError("one_hot: tensors are dense here; leave out sparse=.")
    return creation.one_hot(cast(convert_to_tensor(x), "int32"), num_classes, axis=axis, dtype=_named(dtype))


@operation(cost=_cost, settle=_settled)
def multi_hot(
    inputs: TensorLike, num_classes: int | None = None, axis: int = -1, dtype: Any = None, sparse: bool = False
) -> Tensor:
    """1 at the places of all numbers of a row, 0 elsewhere. Arguments and errors as in `one_hot`.

    >>> print(tf.keras.ops.multi_hot([[2, 0]], 4).numpy())
    [[1. 0. 1. 0.]]
    """
    if num_classes is None:
        raise ValueError("multi_hot: give num_classes, the size of the rows.")
    x = convert_to_tensor(inputs)
    return reduce_max(one_hot(x, num_classes, axis, dtype, sparse), 1 if x.ndim > 1 else 0)
