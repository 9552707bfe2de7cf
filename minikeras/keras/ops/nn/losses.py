"""Numbers of classes as rows of zeros and ones, and losses of each element or row, before any mean."""

from __future__ import annotations

import math
from typing import Any

from ....core import Tensor, convert_to_tensor
from ....errors import ShapeError
from ....functions import creation
from ....functions.elementwise import cast, log
from ....functions.nn import sigmoid_cross_entropy_with_logits
from ....functions.reductions import reduce_max, reduce_mean
from ....types import TensorLike, as_dtype
from ... import config
from ...losses import crossentropy
from ...promotion import floating, promoted
from ...symbolic.operation import operation

__all__ = ["binary_crossentropy", "categorical_crossentropy", "multi_hot", "one_hot", "psnr", "sparse_categorical_crossentropy"]


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


def _of_one_shape(name: str, first: TensorLike, second: TensorLike) -> list[Tensor]:
    """Both as floats of one dtype."""
    tensors = [floating(one) for one in promoted(first, second)]
    if tensors[0].shape != tensors[1].shape:
        raise ShapeError(f"{name}: both must have one shape, found {tensors[0].shape} and {tensors[1].shape}.")
    return tensors


@operation
def binary_crossentropy(target: TensorLike, output: TensorLike, from_logits: bool = False) -> Tensor:
    """-(y log p + (1 - y) log(1 - p)) for each element.

    Args:
        target: labels y in [0, 1].
        output: probabilities p, kept epsilon away from 0 and 1, or logits with `from_logits`, which is more accurate.

    >>> print(tf.keras.ops.binary_crossentropy([1.0, 0.0], [0.5, 0.25]).numpy().round(4))
    [0.6931 0.2877]
    """
    y, p = _of_one_shape("binary_crossentropy", target, output)
    if from_logits:
        return sigmoid_cross_entropy_with_logits(y, p)
    return crossentropy.binary_terms(y, crossentropy.clip_probabilities(p))


@operation
def categorical_crossentropy(target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1) -> Tensor:
    """-sum(y log p) over the classes, which lie along an axis.

    Args:
        target: probabilities y, such as one-hot labels.
        output: probabilities p, divided by their sum first, or logits with `from_logits`, which is more accurate.

    >>> print(tf.keras.ops.categorical_crossentropy([[1.0, 0.0]], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    y, p = _of_one_shape("categorical_crossentropy", target, output)
    return crossentropy.categorical_crossentropy(y, p, from_logits, axis=axis)


@operation
def sparse_categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """-log p[label] over the classes.

    Args:
        target: integer labels (...) or (..., 1) in [0, classes).
        output: probabilities or logits as in `categorical_crossentropy`.

    Raises:
        InvalidArgumentError: if a label is out of range.

    >>> print(tf.keras.ops.sparse_categorical_crossentropy([1], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    labels = cast(convert_to_tensor(target), "int32")
    return crossentropy.sparse_categorical_crossentropy(labels, floating(output), from_logits, axis=axis)


@operation(name="PSNR")
def psnr(x1: TensorLike, x2: TensorLike, max_val: float) -> Tensor:
    """Peak signal-to-noise ratio in decibels: 20 log10(max_val) - 10 log10(mean((x1 - x2)**2)).

    >>> print(f"{tf.keras.ops.psnr([0.0, 1.0], [0.1, 0.9], max_val=1.0):.2f}")
    20.00
    """
    x, y = _of_one_shape("psnr", x1, x2)
    return log(max_val**2 / reduce_mean((x - y) ** 2)) * (10.0 / math.log(10.0))
