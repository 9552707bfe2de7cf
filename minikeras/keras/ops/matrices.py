"""`keras.ops.linalg`: linear algebra over stacks of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import nest
from ...core import ForwardAccumulator, Tensor, all_values, check_values, convert_to_tensor
from ...errors import MatrixError
from ...functions import abs, cast, expand_dims, eye, negative_axes, pow, reductions, squeeze
from ...functions import linalg as tf
from ...types import TensorLike
from ..promotion import floating, promoted
from ..symbolic.operation import operation
from ..symbolic.trial import cost_of_matrices, identities
from .rows import floats, row


@operation(cost=cost_of_matrices, example=identities, same=tf.cholesky)
def cholesky(x: TensorLike, upper: bool = False) -> Tensor:
    """Lower triangular L with L @ L^T = A for symmetric positive definite A, or its transpose.

    Raises:
        MatrixError: if a matrix is not positive definite.

    >>> print(tf.keras.ops.cholesky([[4.0, 0.0], [0.0, 9.0]]).numpy().tolist())
    [[2.0, 0.0], [0.0, 3.0]]
    """
    factor = tf.cholesky(floating(x))

    def refuse(values: np.ndarray[Any, Any]) -> None:
        if np.isnan(values).any():
            raise MatrixError("cholesky: a matrix is not positive definite. Add a small multiple of keras.ops.eye(n).")

    check_values(factor, refuse)
    return tf.matrix_transpose(factor, conjugate=True) if upper else factor


@operation(cost=cost_of_matrices, example=identities)
def lu_factor(x: TensorLike) -> tuple[Tensor, Tensor]:
    """The factors of each matrix by elimination, L below the diagonal and U above in one, and the rows that were swapped.

    >>> factors, pivots = tf.keras.ops.lu_factor([[1.0, 2.0], [2.0, 2.0]])
    >>> print(factors.numpy().tolist(), pivots.numpy())
    [[2.0, 2.0], [0.5, 1.0]] [1 1]
    """
    x = floating(x)
    factors, rows = tf.lu(x)
    orders = all_values(rows)
    swaps = np.empty(orders.shape, "int32")
    for place in np.ndindex(*orders.shape[:-1]):
        swaps[place] = _swaps(orders[place])
    return factors, convert_to_tensor(swaps[..., : x.shape[-1]])


def _swaps(order: Any) -> list[int]:
    """The pivots of a permutation of rows: for each row in turn the number of the row that it was swapped with."""
    now, swaps = list(range(len(order))), []
    for place, wanted in enumerate(order):
        found = now.index(wanted)
        now[place], now[found] = now[found], now[place]
        swaps.append(found)
    return swaps


@operation(cost=cost_of_matrices)
def norm(x: TensorLike, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Norm of vectors, matrices, or of all elements.

    Args:
        x: tensor of any shape.
        ord: of vectors any number, inf and -inf; of matrices 1, -1, 2, -2, inf, -inf, 'fro' and 'nuc'; None: the square root
            of the sum of the squares.
        axis: of the vectors, a pair for matrices; all axes if None.
        keepdims: keep these axes with size 1.

    >>> print(tf.keras.ops.norm([3.0, -4.0]).numpy(), tf.keras.ops.norm([3.0, -4.0], ord=1).numpy())
    5.0 7.0
    """
    x = floating(x)
    if ord is None:
        return reductions.norm(x, axis=axis, keepdims=keepdims)
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    negative_axes(axes, x.ndim, "norm")
    if len(axes) == 1:
        return _of_vectors(x, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError(f"norm: ord={ord!r} is of vectors or matrices, found axis={axis!r} for shape {x.shape}. Give axis=.")
    if ord == "fro":
        return reductions.norm(x, axis=axes, keepdims=keepdims)
    if ord not in (1, -1, 2, -2, math.inf, -math.inf, "nuc"):
        raise ValueError(f"norm: ord of matrices must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', found {ord!r}.")
    return reductions.matrix_norm(x, ord, [one % x.ndim - x.ndim for one in axes], keepdims)


def _of_vectors(x: Tensor, ord: Any, axis: int, keepdims: bool) -> Tensor:
    if isinstance(ord, str):
        raise ValueError(f"norm: ord={ord!r} is of matrices, found one axis. Give a pair of axes, or leave ord= out.")
    if ord == -math.inf:
        return reductions.reduce_min(abs(x), axis, keepdims)
    if ord == 0:
        return reductions.reduce_sum(cast(x != 0, abs(x).dtype), axis, keepdims)
    if isinstance(ord, (int, float)) and ord < 0:
        return pow(reductions.reduce_sum(pow(abs(x), float(ord)), axis, keepdims), 1.0 / ord)
    return reductions.norm(x, ord, axis, keepdims)


@operation(cost=cost_of_matrices)
def qr(x: TensorLike, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Orthogonal Q and upper triangular R with Q @ R = A; Q has as many columns as A with mode 'reduced', else it is square.

    >>> tf.keras.ops.qr(tf.ones([3, 2]), mode="complete")[0].shape
    TensorShape([3, 3])
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode must be 'reduced' or 'complete', found {mode!r}.")
    return tf.qr(floating(x), mode == "complete")


def _with_columns(function: Callable[..., Tensor], a: TensorLike, b: TensorLike) -> Tensor:
    """A function of matrices, of one column if the right-hand side is a vector for each matrix."""
    matrix, right = map(floating, promoted(a, b))
    if right.ndim == 1 or right.ndim == matrix.ndim - 1:
        return squeeze(function(matrix, expand_dims(right, -1)), -1)
    return function(matrix, right)


@operation(name="SVD", cost=cost_of_matrices)
def svd(x: TensorLike, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """U, singular values s (descending) and V^T with A = U @ diag(s) @ V^T; only s with `compute_uv=False`.

    >>> print(tf.keras.ops.svd([[3.0, 0.0], [0.0, 2.0]], compute_uv=False).numpy())
    [3. 2.]
    """
    x = floating(x)
    if not compute_uv:
        return tf.svd(x, compute_uv=False)
    values, left, right = tf.svd(x, full_matrices)
    return left, values, tf.matrix_transpose(right, conjugate=True)


@operation(cost=cost_of_matrices)
def lstsq(a: TensorLike, b: TensorLike, rcond: float | None = None) -> Tensor:
    """X that minimizes |A @ X - B|**2, by singular values; of several, the smallest one.

    Args:
        a: (m, n).
        b: (m,) or (m, k).
        rcond: singular values below this part of the largest count as 0; the precision times max(m, n) if None.

    >>> print(tf.keras.ops.lstsq([[1.0], [1.0]], [1.0, 3.0]).numpy().round(4))
    [2.]
    """
    return _with_columns(lambda matrix, right: pinv(matrix, _least(matrix) if rcond is None else rcond) @ right, a, b)


def _least(x: Tensor) -> float:
    """The share of the largest singular value up to which rounding errors of 0 reach."""
    return max(x.shape[-2:]) * float(x.dtype.info.eps)


@operation(cost=cost_of_matrices)
def matrix_rank(x: TensorLike, tol: Any = None) -> Tensor:
    """Number of singular values larger than `tol`, or than the largest times max(n, m) times the precision if None.

    >>> print(tf.keras.ops.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).numpy())
    1
    """
    x = floating(x)
    values = tf.svd(x, compute_uv=False)
    least = reductions.reduce_max(values, -1, True) * _least(x) if tol is None else cast(tol, values.dtype)
    return reductions.reduce_sum(cast(values > least, "int32"), -1)


@operation(cost=cost_of_matrices)
def pinv(x: TensorLike, rcond: float | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse of each matrix, by singular values.

    Args:
        x: (..., n, m).
        rcond: singular values below this part of the largest count as 0; 10 times the precision times max(n, m) if None.

    >>> print(tf.keras.ops.pinv([[2.0, 0.0]]).numpy().tolist())
    [[0.5], [0.0]]
    """
    return tf.pinv(floating(x), rcond)


@operation(name="JVP", given="fun")
def jvp(fun: Callable[..., Any], primals: TensorLike, tangents: TensorLike, has_aux: bool = False) -> Any:
    """Values of a function and its derivative in a direction.

    Args:
        fun: a function of tensors.
        primals: its arguments, a list or tuple.
        tangents: the direction, one for each argument.
        has_aux: whether `fun` gives a pair whose second part is passed on beside the derivative.

    Returns:
        The values and the derivatives; with `has_aux` the second part as a third one.

    >>> value, slope = tf.keras.ops.jvp(lambda x: x * x, (tf.constant(3.0),), (tf.constant(1.0),))
    >>> print(value.numpy(), slope.numpy())
    9.0 6.0
    """
    arguments = [convert_to_tensor(one) for one in primals]
    with ForwardAccumulator(arguments, [convert_to_tensor(one) for one in tangents]) as accumulator:
        result = fun(*arguments)
    values, *rest = result if has_aux else (result,)
    return values, nest.map_structure(lambda one: accumulator.jvp(one, "zero"), values), *rest


# fmt: off
det = row("det", lambda x: tf.det(floating(x)), "The determinant of each matrix.",
    'print(f"{tf.keras.ops.det([[1.0, 2.0], [3.0, 4.0]]):.4f}") -> -2.0000', cost=cost_of_matrices, example=identities,
    same=tf.det)
eig = row("eig", lambda x: tf.eig(floating(x)), "Complex eigenvalues and eigenvectors (columns) of square matrices.",
    "print(tf.keras.ops.eig([[2.0, 0.0], [0.0, 1.0]])[0].numpy()) -> [2.+0.j 1.+0.j]", returns="tuple[Tensor, Tensor]",
    cost=cost_of_matrices, example=identities, same=tf.eig)
eigh = row("eigh", lambda x: tf.eigh(floating(x)),
    "Eigenvalues (ascending) and eigenvectors (columns) of symmetric matrices; the lower triangle is read.",
    "print(tf.keras.ops.eigh([[2.0, 0.0], [0.0, 1.0]])[0].numpy()) -> [1. 2.]", returns="tuple[Tensor, Tensor]",
    cost=cost_of_matrices, same=tf.eigh)
inv = row("inv", lambda x: tf.inv(floating(x)), "The inverse of each matrix.",
    "print(tf.keras.ops.inv([[2.0, 0.0], [0.0, 4.0]]).numpy().tolist()) -> [[0.5, 0.0], [0.0, 0.25]]",
    cost=cost_of_matrices, example=identities, same=tf.inv)
solve = row("solve", lambda a, b: _with_columns(tf.solve, a, b),
    "X with A @ X = B, for square matrices (..., n, n) and B of matrices (..., n, k) or vectors (..., n).",
    "print(tf.keras.ops.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 4.0]).numpy()) -> [1. 1.]",
    cost=cost_of_matrices, example=identities)
solve_triangular = row("solve_triangular",
    lambda a, b, lower=False: _with_columns(lambda matrix, right: tf.triangular_solve(matrix, right, lower=lower), a, b),
    "X with T @ X = B, for T the upper or the lower triangle of A, and B as in `solve`.",
    "print(tf.keras.ops.solve_triangular([[2.0, 0.0], [7.0, 4.0]], [2.0, 4.0]).numpy()) -> [1. 1.]",
    types={"lower": "bool"}, cost=cost_of_matrices, example=identities)
cholesky_inverse = row("cholesky_inverse",
    lambda x, upper=False: tf.cholesky_solve(tf.matrix_transpose(x) if upper else x, eye(x.shape[-1], dtype=x.dtype)),
    "The inverse of A, given its Cholesky factor.",
    "print(tf.keras.ops.cholesky_inverse([[2.0, 0.0], [0.0, 4.0]]).numpy().tolist()) -> [[0.25, 0.0], [0.0, 0.0625]]",
    takes=floats, types={"upper": "bool"}, cost=cost_of_matrices, example=identities)
# fmt: on
