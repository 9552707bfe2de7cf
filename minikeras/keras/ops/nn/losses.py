"""Losses of each element or row, before any mean: the formulas of `keras.losses`."""

from __future__ import annotations

import math

from ....core import Tensor, convert_to_tensor
from ....errors import ShapeError
from ....functions.elementwise import cast, log
from ....functions.nn import sigmoid_cross_entropy_with_logits
from ....functions.reductions import reduce_mean
from ....types import TensorLike
from ...losses import crossentropy
from ...promotion import floating, promoted
from ...symbolic.operation import operation

__all__ = ["binary_crossentropy", "categorical_crossentropy", "psnr", "sparse_categorical_crossentropy"]


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
