"""Products of vectors and matrices, differences and integrals, under Keras's names."""

from __future__ import annotations

from typing import Any

from ....core import Tensor, convert_to_tensor
from ....errors import ShapeError
from ....functions import contractions as tf
from ....functions import linalg
from ....functions.creation import zeros_like
from ....functions.elementwise import cast, conj
from ....functions.reductions import reduce_sum
from ....functions.shaping import reshape, squeeze, stack, unstack
from ....types import TensorLike
from ...promotion import floating, promoted
from ...symbolic.operation import operation
from ...symbolic.trial import cost_of_anything, cost_of_product
from ..rows import floats, row
from .shaping import moveaxis


@operation(cost=cost_of_product, same=tf.matmul)
def matmul(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Product of matrices, of stacks of them, and of vectors, which have one axis: sum over k of x1[..., i, k] x2[..., k, j].

    >>> print(tf.keras.ops.matmul([[1.0, 2.0]], [[3.0], [4.0]]).numpy())
    [[11.]]
    """
    a, b = _counted((x1, x2))
    if b.ndim == 1:
        return tf.tensordot(a, b, 1)
    return squeeze(a[None] @ b, -2) if a.ndim == 1 else a @ b


@operation(name="Einsum", cost=cost_of_anything)
def _einsum(*operands: TensorLike, subscripts: str) -> Tensor:
    return tf.einsum(subscripts, *_counted(operands))


def _counted(operands: Any) -> list[Tensor]:
    """Operands of a sum in one dtype; int8, whose sums overflow, as int32."""
    met = promoted(*operands)
    return [cast(one, "int32") for one in met] if met[0].dtype == "int8" else met


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


@operation(cost=cost_of_product)
def dot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Sum of products over the last axis of x1 and the last but one of x2, or its only one; of a number a plain product.

    >>> print(tf.keras.ops.dot([1, 2], [3, 4]).numpy())
    11
    """
    a, b = promoted(x1, x2)
    if not a.ndim or not b.ndim:
        return a * b
    return tf.tensordot(a, b, [[a.ndim - 1], [max(0, b.ndim - 2)]])


@operation(cost=cost_of_anything)
def kron(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Kronecker's product: every element of x1 times all of x2, in blocks.

    >>> print(tf.keras.ops.kron([1, 2], [3, 4]).numpy())
    [3 4 6 8]
    """
    a, b = promoted(x1, x2)
    rank = max(a.ndim, b.ndim)
    rows, columns = ([*[1] * (rank - one.ndim), *one.shape] for one in (a, b))
    a = reshape(a, [part for size in rows for part in (size, 1)])
    b = reshape(b, [part for size in columns for part in (1, size)])
    return reshape(a * b, [first * second for first, second in zip(rows, columns, strict=True)])


@operation
def cross(x1: TensorLike, x2: TensorLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """Vector product of vectors with two or three components; of two with two its third component.

    Args:
        x1, x2: tensors that are broadcast.
        axisa, axisb, axisc: the axis of the components in x1, x2 and the result.
        axis: for all three.

    >>> print(tf.keras.ops.cross([1, 0, 0], [0, 1, 0]).numpy())
    [0 0 1]
    """
    first, second, third = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    a, b = promoted(x1, x2)
    parts = [unstack(moveaxis(one, place, 0)) for one, place in ((a, first), (b, second))]
    if {len(part) for part in parts} - {2, 3}:
        raise ShapeError(f"cross: vectors must have 2 or 3 components, found {a.shape} and {b.shape}.")
    (a1, a2, a3), (b1, b2, b3) = ([*part, zeros_like(part[0])][:3] for part in parts)
    z = a1 * b2 - a2 * b1
    if len(parts[0]) == len(parts[1]) == 2:
        return z
    return moveaxis(stack([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, z]), 0, third)


# Differences and integrals -------------------------------------------------------------------------------------------------


@operation
def diff(a: TensorLike, n: int = 1, axis: int = -1) -> Tensor:
    """Differences of neighbours along an axis, n times.

    >>> print(tf.keras.ops.diff([1, 2, 4, 7]).numpy())
    [1 2 3]
    """
    x = moveaxis(convert_to_tensor(a), axis, 0)
    for _ in range(min(n, x.shape[0])):  # then nothing is left
        x = x[1:] - x[:-1] if not x.dtype.is_bool else x[1:] != x[:-1]
    return moveaxis(x, 0, axis)


@operation
def trapezoid(y: TensorLike, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Integral by trapezoids: sum of (y[i] + y[i + 1]) / 2 times the distance of the two places.

    Args:
        y: values of the function.
        x: the places, of the shape of `y` or along `axis` only; at the distance `dx` if None.
        dx: the distance.
        axis: along which is integrated.

    >>> print(tf.keras.ops.trapezoid([1, 2, 3]).numpy())
    4.0
    """
    values = moveaxis(floating(y), axis, -1)
    if x is None:
        distance = cast(dx, values.dtype)
    else:
        places = cast(convert_to_tensor(x), values.dtype)
        places = moveaxis(places, axis, -1) if places.ndim == values.ndim else places
        distance = places[..., 1:] - places[..., :-1]
    return reduce_sum((values[..., 1:] + values[..., :-1]) * distance, -1) / 2.0


# fmt: off
inner = row("inner",
    lambda x1, x2: x1 * x2 if not x1.ndim or not x2.ndim else tf.tensordot(x1, x2, [[x1.ndim - 1], [x2.ndim - 1]]),
    "Sum of products over the last axis of both.", "print(tf.keras.ops.inner([1, 2], [3, 4]).numpy()) -> 11",
    takes=promoted, cost=cost_of_anything)
vdot = row("vdot",
    lambda x1, x2: tf.tensordot(reshape(conj(x1) if x1.dtype.is_complex else x1, [-1]), reshape(x2, [-1]), 1),
    "Sum of products of all elements, those of x1 conjugated.",
    "print(tf.keras.ops.vdot([[1, 2]], [[3, 4]]).numpy()) -> 11", takes=promoted)
outer = row("outer", lambda x1, x2: reshape(x1, [-1, 1]) * reshape(x2, [1, -1]),
    "Every product of an element of x1, the rows, and one of x2, the columns.",
    "print(tf.keras.ops.outer([1, 2], [3, 4]).numpy().tolist()) -> [[3, 4], [6, 8]]", takes=promoted, cost=cost_of_anything)
tensordot = row("tensordot", lambda x1, x2, axes=2: tf.tensordot(x1, x2, axes),
    "Sum of products over axes of both: the last `axes` of x1 and the first of x2, or a list of axes for each.",
    "print(tf.keras.ops.tensordot([1.0, 2.0], [3.0, 4.0], axes=1).numpy()) -> 11.0",
    takes=promoted, types={"axes": "Any"}, cost=cost_of_anything, same=tf.tensordot)
slogdet = row("slogdet", lambda x: tuple(linalg.slogdet(x)),
    "Sign and logarithm of the absolute value of the determinants of matrices.",
    "print(*[one.numpy() for one in tf.keras.ops.slogdet([[2.0, 0.0], [0.0, -0.5]])]) -> -1.0 0.0",
    takes=floats, returns="tuple[Tensor, Tensor]")
# fmt: on
