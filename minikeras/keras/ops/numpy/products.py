"""Products of vectors and matrices under Keras's names."""

from __future__ import annotations

from typing import Any

from ....core import Tensor
from ....functions import contractions as tf
from ....types import TensorLike
from ...promotion import promoted
from ...symbolic.operation import operation
from ...symbolic.rules import cost_of_anything, cost_of_product

__all__ = ["einsum", "matmul", "tensordot"]


@operation(cost=cost_of_product)
def matmul(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Product of matrices, of stacks of them, and of vectors, which have one axis: sum over k of x1[..., i, k] x2[..., k, j].

    >>> print(tf.keras.ops.matmul([[1.0, 2.0]], [[3.0], [4.0]]).numpy())
    [[11.]]
    """
    a, b = promoted(x1, x2)
    return a @ b


@operation(cost=cost_of_anything)
def tensordot(x1: TensorLike, x2: TensorLike, axes: Any = 2) -> Tensor:
    """Sum of products over axes of both: the last `axes` of x1 and the first of x2, or a list of axes for each.

    >>> print(tf.keras.ops.tensordot([1.0, 2.0], [3.0, 4.0], axes=1).numpy())
    11.0
    """
    a, b = promoted(x1, x2)
    return tf.tensordot(a, b, axes)


@operation(name="Einsum", cost=cost_of_anything)
def _einsum(*operands: TensorLike, subscripts: str) -> Tensor:
    return tf.einsum(subscripts, *promoted(*operands))


def einsum(subscripts: str, *operands: TensorLike, **kwargs: Any) -> Tensor:
    """Sum of products in Einstein's notation, such as 'ij,jk->ik'.

    Args:
        subscripts: the axes of each operand, separated by commas, and behind '->' those of the result.
        operands: tensors; different dtypes meet in one that holds all.
        kwargs: options of other backends, which have no meaning here.

    >>> print(tf.keras.ops.einsum("i,i->", [1.0, 2.0], [3.0, 4.0]).numpy())
    11.0
    """
    return _einsum(*operands, subscripts=subscripts)
