"""Matrix products, tensor products and Einstein sums."""

from __future__ import annotations

import math
import string
from typing import Any

from ..core import Tensor
from ..core.ops import arithmetic, contractions, shaping
from ..errors import InvalidArgumentError, ShapeError
from ..types import Array, TensorLike
from .operands import beside, integer, negative_axis, static_shape, tensors
from .shaping import expand_dims, reshape, squeeze, transpose


def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Matrix product over the last two axes; leading axes are broadcast.

    Args:
        a: shape (..., n, k).
        b: shape (..., k, m).
        transpose_a, transpose_b: transpose the last two axes first.
        adjoint_a, adjoint_b: transpose and conjugate first.

    Returns:
        Shape (..., n, m).

    Raises:
        ShapeError: if the inner sizes differ or an operand has fewer than two axes.
        ValueError: if an operand is to be both transposed and adjoint.

    >>> print(tf.matmul([[1.0, 2.0]], [[3.0], [4.0]]).numpy())
    [[11.]]
    """
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise ValueError("matmul: of transpose_a and adjoint_a, as of transpose_b and adjoint_b, only one may be True.")
    left, right = tensors(a, b)
    if transpose_a or adjoint_a:
        left = _turned(left, adjoint_a)
    if transpose_b or adjoint_b:
        right = _turned(right, adjoint_b)
    return contractions.matrix_product(left, right)


def _turned(x: Tensor, conjugate: bool) -> Tensor:
    if x.ndim < 2:
        raise ShapeError(f"matmul: In[0] ndims must be >= 2, found shape {x.shape}.")
    turned = shaping.swap_last(x)
    return arithmetic.conj(turned) if conjugate and x.dtype.is_complex else turned


def matvec(a: TensorLike, b: TensorLike, transpose_a: bool = False, adjoint_a: bool = False, name: str | None = None) -> Tensor:
    """Matrix (..., n, k) times vector (..., k).

    >>> print(tf.linalg.matvec([[1.0, 2.0]], [3.0, 4.0]).numpy())
    [11.]
    """
    left, right = tensors(a, b)
    return squeeze(matmul(left, expand_dims(right, -1), transpose_a, False, adjoint_a), [-1])


def tensordot(a: TensorLike, b: TensorLike, axes: Any, name: str | None = None) -> Tensor:
    """The sum over products along shared axes.

    Args:
        a, b: tensors of one dtype.
        axes: a number n (the last n of `a` with the first n of `b`), or two lists of axes.

    Returns:
        The free axes of `a`, then those of `b`.

    >>> print(tf.tensordot([1.0, 2.0], [3.0, 4.0], 1).numpy())
    11.0
    """
    left, right = tensors(a, b)
    if hasattr(axes, "numpy"):
        axes = axes.numpy()
    if hasattr(axes, "tolist"):
        axes = axes.tolist()
    if not isinstance(axes, (list, tuple)):
        count = integer(axes)
        if not 0 <= count <= min(left.ndim, right.ndim):
            raise ShapeError(f"tensordot: axes={count} for shapes {left.shape} and {right.shape}.")
        summed_left, summed_right = list(range(left.ndim - count, left.ndim)), list(range(count))
    else:
        pairs = [static_shape(one) for one in axes]
        if len(pairs) != 2 or len(pairs[0]) != len(pairs[1]):
            raise ShapeError(f"tensordot: axes must be an integer or two lists of equally many axes, found {axes}.")
        summed_left = [negative_axis(axis, left.ndim, "tensordot") + left.ndim for axis in pairs[0]]
        summed_right = [negative_axis(axis, right.ndim, "tensordot") + right.ndim for axis in pairs[1]]
    sizes = [left.shape[axis] for axis in summed_left], [right.shape[axis] for axis in summed_right]
    if sizes[0] != sizes[1]:
        raise ShapeError(
            f"tensordot: {left.shape} and {right.shape}: sizes {sizes[0]} and {sizes[1]} along axes {axes} differ."
        )
    free_left = [axis for axis in range(left.ndim) if axis not in summed_left]
    free_right = [axis for axis in range(right.ndim) if axis not in summed_right]
    rows, columns = ([x.shape[axis] for axis in free] for x, free in ((left, free_left), (right, free_right)))
    inner = math.prod(sizes[0])
    first = reshape(_ordered(left, free_left + summed_left), (math.prod(rows), inner))
    second = reshape(_ordered(right, summed_right + free_right), (inner, math.prod(columns)))
    return reshape(contractions.matrix_product(first, second), rows + columns)


def _ordered(x: Tensor, order: list[int]) -> Tensor:
    return x if order == list(range(x.ndim)) else transpose(x, order)


def along_axis(matrix: Array, x: Tensor, axis: int) -> Tensor:
    """A matrix (m, n) times the n elements of each row along an axis."""
    shape = tuple(x.shape)
    lead, (n, *rest) = shape[:axis], shape[axis:]
    y = matmul(beside(x, matrix, x.dtype), reshape(x, (math.prod(lead), n, math.prod(rest))))
    return reshape(y, (*lead, matrix.shape[0], *rest))


def einsum(equation: str, *inputs: TensorLike, **options: Any) -> Tensor:
    """Einstein's sum: products over labelled axes, summed over the labels that the result lacks.

    Args:
        equation: such as 'ij,jk->ik'; '...' stands for broadcast axes; a label twice in one operand reads a diagonal.
        inputs: one tensor for each operand of the equation.
        options: accepted for compatibility, ignored.

    Raises:
        InvalidArgumentError: if labels and shapes do not fit.

    >>> print(tf.einsum("ii->i", [[1.0, 2.0], [3.0, 4.0]]).numpy())
    [1. 4.]
    """
    values = tensors(*inputs)
    terms, result = _terms(equation, values)
    sizes: dict[str, int] = {}
    for term, x in zip(terms, values, strict=True):
        for label, size in zip(term, x.shape, strict=True):
            if sizes.setdefault(label, size) not in (size, 1) and size != 1:
                shapes = [list(value.shape) for value in values]
                raise InvalidArgumentError(
                    f"einsum '{equation}': label '{label}' has size {sizes[label]} and size {size} (shapes {shapes})."
                )
    if any(
        size != sizes[label] and term.count(label) > 1
        for term, x in zip(terms, values, strict=True)
        for label, size in zip(term, x.shape, strict=True)
    ):
        raise InvalidArgumentError(
            f"einsum '{equation}': a repeated label needs equal sizes, found shapes {[list(v.shape) for v in values]}."
        )
    squeezed, kept = [], []
    for term, x in zip(terms, values, strict=True):
        wide = {label for label, size in zip(term, x.shape, strict=True) if size == sizes_max(label, terms, values)}
        kept.append("".join(label for label in term if label in wide))
        squeezed.append(
            x
            if len(kept[-1]) == len(term)
            else reshape(x, [size for label, size in zip(term, x.shape, strict=True) if label in wide])
        )
    return contractions.einsum(*squeezed, terms=tuple(kept), result=result)


def sizes_max(label: str, terms: list[str], values: list[Tensor]) -> int:
    """The size of a label over all operands; axes of size 1 are broadcast to it."""
    return max(
        size for term, x in zip(terms, values, strict=True) for one, size in zip(term, x.shape, strict=True) if one == label
    )


def _terms(equation: str, values: list[Tensor]) -> tuple[list[str], str]:
    """The labels of each operand and of the result, with '...' replaced by labels of their own."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(values):
        raise InvalidArgumentError(f"einsum '{equation}': {len(terms)} operands in the equation, {len(values)} tensors given.")
    labels = [*(term.replace("...", "", 1) for term in terms), *([right.replace("...", "", 1)] if arrow else [])]
    if not all(label.isascii() and (label.isalpha() or not label) for label in labels):
        raise InvalidArgumentError(
            f"einsum '{equation}': operands and the result are letters, with '...' once, as in '...ij,jk->...ik'."
        )
    if arrow and (len(set(labels[-1])) < len(labels[-1]) or not set(labels[-1]) <= set("".join(labels[:-1]))):
        raise InvalidArgumentError(
            f"einsum '{equation}': the labels of the result must differ and occur among the operands, found '{labels[-1]}'."
        )
    unused = [label for label in string.ascii_uppercase + string.ascii_lowercase if label not in text]
    hidden = [x.ndim - len(term.replace("...", "")) if "..." in term else 0 for term, x in zip(terms, values, strict=True)]
    dots = "".join(unused[: max(hidden, default=0)])
    full = [term.replace("...", dots[len(dots) - count :]) for term, count in zip(terms, hidden, strict=True)]
    for term, x in zip(full, values, strict=True):
        if len(term) != x.ndim:
            raise InvalidArgumentError(
                f"einsum '{equation}': operand '{term}' names {len(term)} axes, its tensor has shape {x.shape}."
            )
    if arrow:
        return full, right.replace("...", dots)
    joined = "".join(full)
    return full, dots + "".join(sorted(label for label in set(joined) - set(dots) if joined.count(label) == 1))
