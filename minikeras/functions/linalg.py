"""Linear algebra over stacks of matrices, with gradients. Formulas and their source are in `nn_ops/linalg.py`."""

from __future__ import annotations

import math
import string
from typing import Any, NamedTuple

import numpy as np

from ..core import Tensor, all_values
from ..core.ops import arithmetic, contractions, indexing, reductions
from ..core.ops.reductions import identity_like
from ..errors import ShapeError
from ..nn_ops import linalg
from ..types import DTypeLike, TensorLike
from .catalogue import row
from .elementwise import cast, log
from .operands import beside, inexact, integer, rounded_once, static_shape, tensor, tensors
from .ordering import argsort
from .reductions import reduce_max, reduce_sum
from .shaping import reshape, transpose


def _matrices(name: str, value: TensorLike, square: bool = False) -> Tensor:
    """A stack of matrices, square ones if asked for."""
    x = inexact(name, tensor(value))
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        kind = "square matrices (..., n, n)" if square else "matrices (..., n, m)"
        raise ShapeError(f"{name}: needs {kind}, found shape {x.shape}.")
    return x


@rounded_once
def solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """X with matrix @ X = rhs, for matrices (..., n, n) and right-hand sides (..., n, k).

    Raises:
        InvalidArgumentError: if a matrix is singular.

    >>> print(tf.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [[2.0], [4.0]]).numpy().ravel())
    [1. 1.]
    """
    a, b = tensors(matrix, rhs)
    a = _matrices("solve", a, square=True)
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ShapeError(f"solve: matrix {a.shape} and rhs {b.shape}: rhs needs shape (..., {a.shape[-1]}, k).")
    return linalg.solve(linalg.adjoint(a) if adjoint else a, b)


@rounded_once
def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of each matrix. To solve an equation, `solve` is faster and more accurate.

    >>> print(tf.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).numpy().tolist())
    [[0.5, 0.0], [0.0, 0.25]]
    """
    a = _matrices("inv", input, square=True)
    return linalg.inverse(linalg.adjoint(a) if adjoint else a)


class SignAndLogarithm(NamedTuple):
    """A determinant as its sign, and the logarithm of its absolute value."""

    sign: Tensor
    log_abs_determinant: Tensor


@rounded_once
def slogdet(input: TensorLike, name: str | None = None) -> SignAndLogarithm:
    """Sign and logarithm of the absolute value of the determinant. Gradient: inv(A)^T.

    >>> sign, logarithm = tf.linalg.slogdet([[2.0, 0.0], [0.0, 0.5]])
    >>> print(sign.numpy(), abs(round(float(logarithm), 4)))
    1.0 0.0
    """
    return SignAndLogarithm(*linalg.log_determinant(_matrices("slogdet", input, square=True)))


@rounded_once
def triangular_solve(
    matrix: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """X with T @ X = rhs, T the lower or upper triangle of `matrix`.

    >>> print(tf.linalg.triangular_solve([[2.0, 7.0], [0.0, 4.0]], [[2.0], [4.0]]).numpy().ravel())
    [1. 1.]
    """
    a, b = tensors(matrix, rhs)
    return linalg.triangular_solve(_matrices("triangular_solve", a, square=True), b, lower=lower, transposed=adjoint)


@rounded_once
def lstsq(
    matrix: TensorLike, rhs: TensorLike, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """X that minimizes |matrix @ X - rhs|**2 + l2 |X|**2; of several, the smallest one.

    Args:
        matrix: (..., m, n).
        rhs: (..., m, k).
        l2_regularizer: l2, 0 or more.
        fast: solve the normal equations, which needs a matrix of full rank or l2 > 0. False: by singular values, for any rank;
            l2 is ignored then.

    Returns:
        (..., n, k).

    Raises:
        InvalidArgumentError: if the normal equations are singular.

    >>> print(tf.linalg.lstsq([[1.0], [1.0]], [[1.0], [3.0]]).numpy())
    [[2.]]
    """
    a, b = tensors(matrix, rhs)
    a, product = _matrices("lstsq", a), contractions.matrix_product
    if not fast:
        return product(pinv(a), b)
    turned, wide = linalg.adjoint(a), a.shape[-2] < a.shape[-1]
    gram = product(a, turned) if wide else product(turned, a)
    if l2_regularizer:
        gram = gram + l2_regularizer * identity_like(gram, n=gram.shape[-1], trailing=0)
    return product(turned, linalg.solve(gram, b)) if wide else linalg.solve(gram, product(turned, b))


@rounded_once
def pinv(a: TensorLike, rcond: float | None = None, name: str | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse, from the singular value decomposition.

    >>> print(tf.linalg.pinv([[2.0, 0.0]]).numpy().tolist())
    [[0.5], [0.0]]
    """
    x = _matrices("pinv", a)
    s, u, v = svd(x)
    limit = rcond if rcond is not None else 10.0 * max(x.shape[-2:]) * float(x.dtype.info.eps)
    keep = s > limit * reduce_max(s, -1, True)
    inverse = arithmetic.select(keep, 1.0 / arithmetic.select(keep, s, 1.0), 0.0)
    return contractions.matrix_product(v * linalg.as_columns(cast(inverse, x.dtype)), linalg.adjoint(u))


class QR(NamedTuple):
    """The factors of a matrix: orthonormal columns, and an upper triangle."""

    q: Tensor
    r: Tensor


@rounded_once
def qr(input: TensorLike, full_matrices: bool = False, name: str | None = None) -> QR:
    """Orthogonal Q and upper triangular R with Q @ R = A.

    Gradients take the first columns of A to be independent. The columns that only `full_matrices` adds are any that stand at
    right angles to the others: differentiate only what does not depend on which.

    >>> q, r = tf.linalg.qr([[1.0, 2.0], [3.0, 4.0]])
    >>> bool(tf.reduce_max(tf.abs(q @ r - [[1.0, 2.0], [3.0, 4.0]])) < 1e-5)
    True
    """
    return QR(*linalg.qr(_matrices("qr", input), full=full_matrices))


@rounded_once
def svd(tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Singular values s (descending), U and V with A = U @ diag(s) @ V^T; only s with `compute_uv=False`.

    Gradients for distinct singular values. Pairs of complex columns have no angle of their own, and the columns that only
    `full_matrices` adds are any that stand at right angles to the others: differentiate only what does not depend on these.

    >>> print(tf.linalg.svd([[3.0, 0.0], [0.0, 2.0]], compute_uv=False).numpy())
    [3. 2.]
    """
    x = _matrices("svd", tensor)
    return linalg.svd(x, full=full_matrices) if compute_uv else linalg.singular_values(x)


def diag(
    diagonal: TensorLike,
    name: str = "diag",
    k: Any = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: float = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with the last axis on a diagonal, or the rows of the last two axes on several.

    Args:
        diagonal: (..., n), or (..., number of diagonals, length of the longest) from the highest to the lowest.
        k: which diagonal: 0 for the main one, above it if positive; or a pair (lowest, highest).
        num_rows, num_cols: sizes of the matrices; -1 for the smallest that fit, square if both are.
        padding_value: stands off the diagonals.
        align: the side of their rows at which shorter diagonals lie: those above the main one, '_', those below.

    >>> print(tf.linalg.diag([1.0, 2.0]).numpy().tolist())
    [[1.0, 0.0], [0.0, 2.0]]
    >>> print(tf.linalg.diag([1.0, 2.0], k=1).numpy().tolist())
    [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    """
    x = tensor(diagonal)
    if not x.ndim:
        raise ShapeError("diag: a number has no axis to lay on a diagonal; give vectors (..., n).")
    low, high = _band("diag", k)
    if (low, high) == (0, 0) and num_rows == num_cols == -1 and not padding_value:
        columns = linalg.as_columns(x)
        on_diagonal = cast(identity_like(x, n=x.shape[-1], trailing=0), "bool")
        return arithmetic.select(on_diagonal, columns, arithmetic.zeros_like(columns))
    least = x.shape[-1] - min(high, 0), x.shape[-1] + max(low, 0)
    rows, columns_ = integer(num_rows), integer(num_cols)
    if rows == columns_ == -1:
        rows = columns_ = max(least)
    shape = least[0] if rows == -1 else rows, least[1] if columns_ == -1 else columns_
    where = _places("diag", shape, low, high, align)
    return _laid("diag", x, where, shape, _padding(x, padding_value))


def _band(name: str, k: Any) -> tuple[int, int]:
    """The lowest and the highest diagonal."""
    found = static_shape(k)
    if len(found) not in (1, 2) or found[0] > found[-1]:
        raise ShapeError(f"{name}: k must be a diagonal or a pair (lowest, highest), found {k!r}.")
    return found[0], found[-1]


def _places(name: str, shape: tuple[int, int], low: int, high: int, align: str) -> np.ndarray[Any, Any]:
    """Flat indices of the elements of diagonals in a matrix; one row for each diagonal from the highest on, padded by -1."""
    rows, columns = shape
    sides = str(align).upper().split("_")
    within = low == high == 0 or -rows < low <= high < columns
    if len(sides) != 2 or {*sides} - {"LEFT", "RIGHT"} or not within:
        raise ShapeError(
            f"{name}: k from {low} to {high} in matrices of {rows} x {columns}, align={align!r}: the diagonals must lie in the "
            "matrix, and align be like 'RIGHT_LEFT'."
        )
    longest = min(rows + min(high, 0), columns - max(low, 0))
    where = np.full((high - low + 1, longest), -1)
    for line, offset in zip(where, range(high, low - 1, -1), strict=True):
        length = min(columns - max(offset, 0), rows + min(offset, 0))
        start = longest - length if sides[offset < 0] == "RIGHT" else 0
        line[start : start + length] = (np.arange(length) + max(-offset, 0)) * columns + np.arange(length) + max(offset, 0)
    return where


def _laid(name: str, x: Tensor, where: np.ndarray[Any, Any], shape: tuple[int, int], rest: Tensor) -> Tensor:
    """Matrices with the rows of `x` on their diagonals, and `rest` elsewhere."""
    several = len(where) > 1
    wanted = where.shape if several else where.shape[1:]
    if x.shape[-len(wanted) :] != wanted or (rest.ndim and x.shape[: -len(wanted)] not in ((), rest.shape[:-2])):
        raise ShapeError(f"{name}: needs diagonals (..., {', '.join(map(str, wanted))}) for {rest.shape}, found {x.shape}.")
    source = np.full(shape[0] * shape[1], -1)
    source[where[where >= 0]] = np.flatnonzero(where >= 0)
    flat = reshape(x, (*x.shape[: x.ndim - 1 - several], where.size))
    there = beside(x, source.reshape(shape))
    return arithmetic.select(there >= 0, indexing.gather_rows(flat, arithmetic.maximum(there, 0), axis=-1), rest)


def _padding(x: Tensor, value: TensorLike) -> Tensor:
    """The value off the diagonals; of bools false for 0."""
    return beside(x, bool(value) if x.dtype.is_bool else value, x.dtype)


def diag_part(
    input: TensorLike, name: str = "diag_part", k: Any = 0, padding_value: float = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """A diagonal of each matrix, or several as rows of a matrix. Arguments as for `diag`.

    >>> print(tf.linalg.diag_part([[1.0, 2.0], [3.0, 4.0]]).numpy())
    [1. 4.]
    >>> print(tf.linalg.diag_part([[1.0, 2.0], [3.0, 4.0]], k=(-1, 0)).numpy().tolist())
    [[1.0, 4.0], [3.0, 0.0]]
    """
    x = tensor(input)
    if x.ndim < 2:
        raise ShapeError(f"diag_part: needs matrices (..., n, m), found shape {x.shape}.")
    low, high = _band("diag_part", k)
    if low == high == 0:
        n = min(x.shape[-2:])
        batch = string.ascii_uppercase[: x.ndim - 2]
        return contractions.einsum(x[..., :n, :n], terms=(batch + "ii",), result=batch + "i")
    where = _places("diag_part", (x.shape[-2], x.shape[-1]), low, high, align)
    there = beside(x, where[0] if low == high else where)
    picked = indexing.gather_rows(reshape(x, (*x.shape[:-2], -1)), arithmetic.maximum(there, 0), axis=-1)
    return arithmetic.select(there >= 0, picked, _padding(x, padding_value))


def set_diag(input: TensorLike, diagonal: TensorLike, name: str = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Matrices (..., n, m) with their diagonal, which is min(n, m) long, or several replaced. Arguments as for `diag`.

    >>> print(tf.linalg.set_diag([[1.0, 2.0], [3.0, 4.0]], [0.0, 0.0]).numpy().tolist())
    [[0.0, 2.0], [3.0, 0.0]]
    """
    x, values = tensors(input, diagonal)
    if x.ndim < 2:
        raise ShapeError(f"set_diag: needs matrices (..., n, m), found {x.shape}.")
    shape = x.shape[-2], x.shape[-1]
    return _laid("set_diag", values, _places("set_diag", shape, *_band("set_diag", k), align), shape, x)


def band_part(input: TensorLike, num_lower: int, num_upper: int, name: str | None = None) -> Tensor:
    """The matrix without what lies more than `num_lower` below or `num_upper` above the diagonal; -1 keeps all.

    >>> print(tf.linalg.band_part([[1.0, 2.0], [3.0, 4.0]], 0, -1).numpy().tolist())
    [[1.0, 2.0], [0.0, 4.0]]
    """
    x, below, above = tensor(input), integer(num_lower), integer(num_upper)
    if below >= 0:
        x = linalg.triangle(x, lower=False, offset=-below)
    if above >= 0:
        x = linalg.triangle(x, lower=True, offset=above)
    return x


def matrix_transpose(a: TensorLike, name: str | None = None, conjugate: bool = False) -> Tensor:
    """The transpose of each matrix.

    >>> print(tf.linalg.matrix_transpose([[1.0, 2.0]]).numpy().tolist())
    [[1.0], [2.0]]
    """
    x = tensor(a)
    order = [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2]
    return transpose(x, order, conjugate)


def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> Tensor:
    """The cross product of vectors of length 3 in the last axis.

    >>> print(tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]).numpy())
    [0. 0. 1.]
    """
    from .shaping import stack

    x, y = tensors(a, b)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ShapeError(f"cross: the last axes must have size 3, found {x.shape} and {y.shape}.")
    parts = [x[..., i] * y[..., j] - x[..., j] * y[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return stack(parts, axis=-1)


@rounded_once
def expm(input: TensorLike, name: str | None = None) -> Tensor:
    """The matrix exponential, by scaling and squaring a Taylor polynomial of degree 16.

    Source: Higham, Functions of Matrices (2008), section 10.3, with Taylor in place of Pade.

    >>> print(tf.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).numpy().tolist())
    [[1.0, 1.0], [0.0, 1.0]]
    """
    x = _matrices("expm", input, square=True)
    sizes = np.abs(all_values(x)).astype("float64").sum(-1)
    size = float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))  # NaN and infinity become NaN in the products
    halvings = max(0, math.ceil(math.log2(size)) + 1) if size > 0 else 0
    scaled = x * 2.0**-halvings
    identity = cast(identity_like(x, n=x.shape[-1], trailing=0), x.dtype)
    result = identity
    for order in range(16, 0, -1):
        result = identity + contractions.matrix_product(scaled, result) * (1.0 / order)
    for _ in range(halvings):
        result = contractions.matrix_product(result, result)
    return result


@rounded_once
def sqrtm(input: TensorLike, name: str | None = None) -> Tensor:
    """The principal square root X of each matrix, with X @ X = A; NaN for a real matrix that has no real one.

    Source: Higham, Functions of Matrices (2008), section 6.3.

    Raises:
        InvalidArgumentError: if a matrix is singular.

    >>> print(tf.linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]]).numpy().round(4).tolist())
    [[2.0, 0.0], [0.0, 3.0]]
    """
    return linalg.square_root(_matrices("sqrtm", input, square=True))


@rounded_once
def logm(input: TensorLike, name: str | None = None) -> Tensor:
    """The principal logarithm X of each matrix, with expm(X) = A; NaN for a real matrix that has no real one.

    Square roots are taken until little is left beside the identity; of that the logarithm is integrated by Gauss's rule.
    Source: Higham, Functions of Matrices (2008), section 11.4.

    Raises:
        InvalidArgumentError: if a matrix is singular.

    >>> print(abs(tf.linalg.logm([[1.0, 0.0], [0.0, 1.0]])).numpy().tolist())
    [[0.0, 0.0], [0.0, 0.0]]
    """
    x = _matrices("logm", input, square=True)
    one = cast(identity_like(x, n=x.shape[-1], trailing=0), x.dtype)
    rest, doublings = x - one, 0
    while (np.abs(all_values(rest)).astype("float64").sum(-2) > 0.5).any() and doublings < 60:
        x, doublings = linalg.square_root(x), doublings + 1
        rest = x - one
    nodes, weights = np.polynomial.legendre.leggauss(12)
    parts = [
        linalg.solve(one + rest * (0.5 * (node + 1.0)), rest) * (0.5 * weight)
        for node, weight in zip(nodes, weights, strict=True)
    ]
    return reductions.total(parts) * 2.0**doublings


@rounded_once
def eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors (columns of length 1) of square matrices, complex for real matrices too, in LAPACK's order.

    Gradients for distinct eigenvalues. An eigenvector has no angle of its own: differentiate only what does not depend on it.

    >>> values, vectors = tf.linalg.eig([[0.0, 1.0], [-1.0, 0.0]])
    >>> print(sorted(values.numpy().imag.round(4).tolist()))
    [-1.0, 1.0]
    """
    return linalg.eig(_matrices("eig", tensor, square=True))


class LU(NamedTuple):
    """The triangles of a factored matrix in one, and the rows in their new order."""

    lu: Tensor
    p: Tensor


@rounded_once
def lu(input: TensorLike, output_idx_type: DTypeLike = "int32", name: str | None = None) -> LU:
    """Factors with L @ U = A[p]: L, without its ones, below the diagonal of one matrix, U above, and the order p of the rows.

    >>> factors, order = tf.linalg.lu([[1.0, 2.0], [4.0, 4.0]])
    >>> print(factors.numpy().tolist(), order.numpy())
    [[4.0, 4.0], [0.25, 1.0]] [1 0]
    """
    packed, order = linalg.lu(_matrices("lu", input))
    return LU(packed, cast(order, output_idx_type))


def lu_reconstruct(lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The matrix that `lu` factored.

    >>> print(tf.linalg.lu_reconstruct(*tf.linalg.lu([[1.0, 2.0], [4.0, 4.0]])).numpy().tolist())
    [[1.0, 2.0], [4.0, 4.0]]
    """
    packed = _matrices("lu_reconstruct", lower_upper)
    n = min(packed.shape[-2:])
    below, above = linalg.lower_and_upper(packed)
    product = contractions.matrix_product(below[..., :n], above[..., :n, :])
    return linalg.rows_in_order(product, argsort(beside(packed, perm)))


@rounded_once
def lu_solve(
    lower_upper: TensorLike, perm: TensorLike, rhs: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """X with A @ X = rhs for the matrix A that `lu` factored.

    >>> print(tf.linalg.lu_solve(*tf.linalg.lu([[0.0, 2.0], [4.0, 4.0]]), [[2.0], [8.0]]).numpy().tolist())
    [[1.0], [1.0]]
    """
    packed, b = tensors(lower_upper, rhs)
    below, above = linalg.lower_and_upper(_matrices("lu_solve", packed, square=True))
    inner = linalg.triangular_solve(below, linalg.rows_in_order(b, beside(packed, perm)), lower=True, transposed=False)
    return linalg.triangular_solve(above, inner, lower=False, transposed=False)


def lu_matrix_inverse(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The inverse of the matrix that `lu` factored.

    >>> print(tf.linalg.lu_matrix_inverse(*tf.linalg.lu([[0.0, 2.0], [4.0, 0.0]])).numpy().tolist())
    [[0.0, 0.25], [0.5, 0.0]]
    """
    packed = tensor(lower_upper)
    one = cast(identity_like(packed, n=packed.shape[-1], trailing=0), packed.dtype)
    return lu_solve(packed, perm, arithmetic.zeros_like(packed) + one)


def matrix_rank(a: TensorLike, tol: TensorLike = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The number of singular values above `tol`, by default the largest one times max(n, m) times the dtype's precision.

    >>> print(tf.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).numpy())
    1
    """
    x = _matrices("matrix_rank", a)
    s = svd(x, compute_uv=False)
    if tol is None:
        limit = reduce_max(s, -1, True) * (max(x.shape[-2:]) * float(x.dtype.info.eps))
    else:
        limit = tensors(s, tol)[1][..., None]
    return reduce_sum(cast(s > limit, "int32"), -1)


def tensor_diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """The diagonal of a tensor whose shape is one shape twice: the inverse of `tensor_diag`.

    >>> print(tf.linalg.tensor_diag_part([[1.0, 2.0], [3.0, 4.0]]).numpy())
    [1. 4.]
    """
    x = tensor(input)
    half = tuple(x.shape[: x.ndim // 2])
    if tuple(x.shape) != half * 2:
        raise ShapeError(f"tensor_diag_part: needs a shape that is one shape twice, found {x.shape}.")
    count = int(np.prod(half))
    return reshape(diag_part(reshape(x, (count, count))), half)


# fmt: off
det = row("det", rounded_once(lambda input, name=None: linalg.determinant(_matrices("det", input, square=True))),
    "The determinant of each matrix. Gradient: det(A) inv(A)^T, for invertible matrices.",
    "print(round(float(tf.linalg.det([[1.0, 2.0], [3.0, 4.0]])), 4)) -> -2.0")
cholesky = row("cholesky", rounded_once(lambda input, name=None: linalg.cholesky(_matrices("cholesky", input, square=True))),
    "Lower triangular L with L @ L^T = A for symmetric positive definite A; NaN if it is not positive definite.",
    "print(tf.linalg.cholesky([[4.0, 0.0], [0.0, 9.0]]).numpy().tolist()) -> [[2.0, 0.0], [0.0, 3.0]]")
logdet = row("logdet", lambda matrix, name=None: 2.0 * reduce_sum(log(diag_part(cholesky(matrix))), -1),
    "Logarithm of the determinant of a positive definite matrix, from its Cholesky factor.",
    "print(abs(round(float(tf.linalg.logdet([[2.0, 0.0], [0.0, 0.5]])), 4))) -> 0.0")
cholesky_solve = row("cholesky_solve",
    lambda chol, rhs, name=None: triangular_solve(chol, triangular_solve(chol, rhs), adjoint=True),
    "X with A @ X = rhs, given the Cholesky factor of A.",
    "print(tf.linalg.cholesky_solve([[2.0]], [[8.0]]).numpy()) -> [[2.]]")
eigh = row("eigh", rounded_once(lambda tensor, name=None: linalg.eigh(_matrices("eigh", tensor, square=True))),
    "Eigenvalues (ascending) and eigenvectors (columns) of symmetric matrices; the lower triangle is read.",
    "print(tf.linalg.eigh([[2.0, 0.0], [0.0, 1.0]])[0].numpy()) -> [1. 2.]", returns="tuple[Tensor, Tensor]")
eigvalsh = row("eigvalsh", lambda tensor, name=None: eigh(tensor)[0], "Eigenvalues (ascending) of symmetric matrices.",
    "print(tf.linalg.eigvalsh([[2.0, 0.0], [0.0, 1.0]]).numpy()) -> [1. 2.]")
trace = row("trace", lambda x, name=None: reduce_sum(diag_part(x), -1), "The sum of the diagonal of each matrix.",
    "print(tf.linalg.trace([[1.0, 2.0], [3.0, 4.0]]).numpy()) -> 5.0")
eigvals = row("eigvals", lambda tensor, name=None: eig(tensor)[0],
    "Eigenvalues of square matrices, complex for real matrices too, in LAPACK's order.",
    "print(sorted(tf.linalg.eigvals([[2.0, 5.0], [0.0, 1.0]]).numpy().real.tolist())) -> [1.0, 2.0]")
adjoint = row("adjoint", lambda matrix, name=None: matrix_transpose(matrix, conjugate=True),
    "The conjugate transpose of each matrix.", "print(tf.linalg.adjoint([[1 + 2j, 3.0]]).numpy().ravel()) -> [1.-2.j 3.-0.j]")
tensor_diag = row("tensor_diag",
    lambda diagonal, name=None: reshape(diag(reshape(x := tensor(diagonal), (-1,))), (*x.shape, *x.shape)),
    "A tensor of twice the rank with `diagonal` on its diagonal.",
    "tf.linalg.tensor_diag([1.0, 2.0]).shape -> TensorShape([2, 2])")
# fmt: on
