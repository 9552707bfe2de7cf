"""Linear algebra over stacks of matrices, with gradients. Formulas and their source are in `ops/linalg.py`."""

from __future__ import annotations

import string
from typing import Any, NamedTuple

import numpy as np

from ..core import Tensor
from ..core.batch import all_values
from ..errors import ShapeError
from ..ops import arithmetic, contractions, linalg
from ..ops.reductions import identity_like
from ..types import TensorLike
from .elementwise import cast
from .publish import inexact, integer, tensor, tensors
from .reductions import reduce_max, reduce_sum
from .shaping import concat, reshape, transpose


def _matrices(name: str, value: TensorLike, square: bool = False) -> Tensor:
    """A stack of matrices, square ones if asked for."""
    x = inexact(name, tensor(value))
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        kind = "square matrices (..., n, n)" if square else "matrices (..., n, m)"
        raise ShapeError(f"{name}: needs {kind}, found shape {x.shape}.")
    return x


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


def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of each matrix. To solve an equation, `solve` is faster and more accurate.

    >>> print(tf.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).numpy().tolist())
    [[0.5, 0.0], [0.0, 0.25]]
    """
    a = _matrices("inv", input, square=True)
    return linalg.inverse(linalg.adjoint(a) if adjoint else a)


def det(input: TensorLike, name: str | None = None) -> Tensor:
    """The determinant of each matrix. Gradient: det(A) inv(A)^T, for invertible matrices.

    >>> print(round(float(tf.linalg.det([[1.0, 2.0], [3.0, 4.0]])), 4))
    -2.0
    """
    return linalg.determinant(_matrices("det", input, square=True))


class SignAndLogarithm(NamedTuple):
    """A determinant as its sign, and the logarithm of its absolute value."""

    sign: Tensor
    log_abs_determinant: Tensor


def slogdet(input: TensorLike, name: str | None = None) -> SignAndLogarithm:
    """Sign and logarithm of the absolute value of the determinant. Gradient: inv(A)^T.

    >>> sign, logarithm = tf.linalg.slogdet([[2.0, 0.0], [0.0, 0.5]])
    >>> print(sign.numpy(), abs(round(float(logarithm), 4)))
    1.0 0.0
    """
    return SignAndLogarithm(*linalg.log_determinant(_matrices("slogdet", input, square=True)))


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """Logarithm of the determinant of a positive definite matrix, from its Cholesky factor.

    >>> print(abs(round(float(tf.linalg.logdet([[2.0, 0.0], [0.0, 0.5]])), 4)))
    0.0
    """
    from .elementwise import log

    return 2.0 * reduce_sum(log(diag_part(cholesky(matrix))), -1)


def cholesky(input: TensorLike, name: str | None = None) -> Tensor:
    """Lower triangular L with L @ L^T = A for symmetric positive definite A; NaN if it is not positive definite.

    >>> print(tf.linalg.cholesky([[4.0, 0.0], [0.0, 9.0]]).numpy().tolist())
    [[2.0, 0.0], [0.0, 3.0]]
    """
    return linalg.cholesky(_matrices("cholesky", input, square=True))


def triangular_solve(
    matrix: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """X with T @ X = rhs, T the lower or upper triangle of `matrix`.

    >>> print(tf.linalg.triangular_solve([[2.0, 7.0], [0.0, 4.0]], [[2.0], [4.0]]).numpy().ravel())
    [1. 1.]
    """
    a, b = tensors(matrix, rhs)
    return linalg.triangular_solve(_matrices("triangular_solve", a, square=True), b, lower=lower, transposed=adjoint)


def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Tensor:
    """X with A @ X = rhs, given the Cholesky factor of A.

    >>> print(tf.linalg.cholesky_solve([[2.0]], [[8.0]]).numpy())
    [[2.]]
    """
    return triangular_solve(chol, triangular_solve(chol, rhs), adjoint=True)


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


def pinv(a: TensorLike, rcond: float | None = None, name: str | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse, from the singular value decomposition.

    >>> print(tf.linalg.pinv([[2.0, 0.0]]).numpy().tolist())
    [[0.5], [0.0]]
    """
    x = _matrices("pinv", a)
    s, u, v = svd(x)
    limit = rcond if rcond is not None else 10.0 * max(x.shape[-2:]) * float(np.finfo(x.dtype.numpy).eps)
    keep = s > limit * reduce_max(s, -1, True)
    inverse = arithmetic.select(keep, 1.0 / arithmetic.select(keep, s, 1.0), 0.0)
    return contractions.matrix_product(v * linalg.as_columns(cast(inverse, x.dtype)), linalg.adjoint(u))


class QR(NamedTuple):
    """The factors of a matrix: orthonormal columns, and an upper triangle."""

    q: Tensor
    r: Tensor


def qr(input: TensorLike, full_matrices: bool = False, name: str | None = None) -> QR:
    """Orthogonal Q and upper triangular R with Q @ R = A. Gradients for matrices with rows >= columns, reduced form.

    >>> q, r = tf.linalg.qr([[1.0, 2.0], [3.0, 4.0]])
    >>> bool(tf.reduce_max(tf.abs(q @ r - [[1.0, 2.0], [3.0, 4.0]])) < 1e-5)
    True
    """
    return QR(*linalg.qr(_matrices("qr", input), full=full_matrices))


def svd(tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Singular values s (descending), U and V with A = U @ diag(s) @ V^T; only s with `compute_uv=False`.

    Gradients for distinct singular values; of U and V in the reduced form.

    >>> print(tf.linalg.svd([[3.0, 0.0], [0.0, 2.0]], compute_uv=False).numpy())
    [3. 2.]
    """
    x = _matrices("svd", tensor)
    return linalg.svd(x, full=full_matrices) if compute_uv else linalg.singular_values(x)


def eigh(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues (ascending) and eigenvectors (columns) of symmetric matrices; the lower triangle is read.

    >>> print(tf.linalg.eigh([[2.0, 0.0], [0.0, 1.0]])[0].numpy())
    [1. 2.]
    """
    return linalg.eigh(_matrices("eigh", tensor, square=True))


def eigvalsh(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Eigenvalues (ascending) of symmetric matrices.

    >>> print(tf.linalg.eigvalsh([[2.0, 0.0], [0.0, 1.0]]).numpy())
    [1. 2.]
    """
    return eigh(tensor)[0]


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """The sum of the diagonal of each matrix.

    >>> print(tf.linalg.trace([[1.0, 2.0], [3.0, 4.0]]).numpy())
    5.0
    """
    return reduce_sum(diag_part(x), -1)


def diag(diagonal: TensorLike, name: str = "diag") -> Tensor:
    """Square matrices with the last axis on their diagonal.

    >>> print(tf.linalg.diag([1.0, 2.0]).numpy().tolist())
    [[1.0, 0.0], [0.0, 2.0]]
    """
    x = tensor(diagonal)
    if not x.ndim:
        raise ShapeError("diag: a number has no axis to lay on a diagonal; give vectors (..., n).")
    columns = linalg.as_columns(x)
    return arithmetic.select(_on_diagonal(x), columns, arithmetic.zeros_like(columns))


def _on_diagonal(x: Tensor) -> Tensor:
    """A square bool matrix, true on its diagonal, with as many rows as the last axis of `x` is long."""
    return identity_like(x, n=x.shape[-1], trailing=0) == 1


def diag_part(input: TensorLike, name: str = "diag_part") -> Tensor:
    """The diagonal of each matrix.

    >>> print(tf.linalg.diag_part([[1.0, 2.0], [3.0, 4.0]]).numpy())
    [1. 4.]
    """
    x = tensor(input)
    if x.ndim < 2:
        raise ShapeError(f"diag_part: needs matrices (..., n, m), found shape {x.shape}.")
    n = min(x.shape[-2:])
    batch = string.ascii_uppercase[: x.ndim - 2]
    return contractions.einsum(x[..., :n, :n], terms=(batch + "ii",), result=batch + "i")


def set_diag(input: TensorLike, diagonal: TensorLike, name: str = "set_diag") -> Tensor:
    """Matrices (..., n, m) with their diagonal, which is min(n, m) long, replaced.

    >>> print(tf.linalg.set_diag([[1.0, 2.0], [3.0, 4.0]], [0.0, 0.0]).numpy().tolist())
    [[0.0, 2.0], [3.0, 0.0]]
    """
    x, values = tensors(input, diagonal)
    if x.ndim < 2 or values.ndim < 1 or values.shape[-1] != min(x.shape[-2:]):
        raise ShapeError(
            f"set_diag: needs matrices (..., n, m) and diagonals (..., min(n, m)), found {x.shape} and {values.shape}."
        )
    n = values.shape[-1]
    corner = arithmetic.select(_on_diagonal(values), linalg.as_columns(values), x[..., :n, :n])
    if x.shape[-2:] == (n, n):
        return corner
    return concat([concat([corner, x[..., :n, n:]], -1), x[..., n:, :]], -2)


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


def tensor_diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of twice the rank with `diagonal` on its diagonal.

    >>> tf.linalg.tensor_diag([1.0, 2.0]).shape
    TensorShape([2, 2])
    """
    x = tensor(diagonal)
    return reshape(diag(reshape(x, (-1,))), (*x.shape, *x.shape))


def expm(input: TensorLike, name: str | None = None) -> Tensor:
    """The matrix exponential, by scaling and squaring a Taylor polynomial of degree 16.

    Source: Higham, Functions of Matrices (2008), section 10.3, with Taylor in place of Pade.

    >>> print(tf.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).numpy().tolist())
    [[1.0, 1.0], [0.0, 1.0]]
    """
    import math

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
