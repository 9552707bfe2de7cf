"""Solving, inverting and factoring stacks of matrices, by differentiating the defining equation.

Source: M. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..core import Primitive, Tensor, all_values, array_of, decide, namespace, to_numpy
from ..core.families import is_complex, linear, primitive, unbroadcast
from ..core.ops.arithmetic import (
    add,
    cast,
    conj,
    conj_if_complex,
    divide,
    equal,
    imag,
    multiply,
    negative,
    real,
    select,
    subtract,
    zeros_like,
)
from ..core.ops.contractions import matrix_product
from ..core.ops.indexing import add_rows, gather_rows, take_along
from ..core.ops.reductions import argsort, identity_like, reduce_sum
from ..core.ops.shaping import broadcast_to, concat, cut, pad, reshape, swap_last, transpose
from ..types import Array, TensorLike


def adjoint(x: TensorLike) -> Any:
    """Conjugate transpose of each matrix."""
    return swap_last(conj_if_complex(x))


def as_matrix(value: Any) -> Any:
    """A stack of scalars with two axes of size 1, to scale matrices with."""
    return reshape(value, shape=(*value.shape, 1, 1), rank=len(value.shape))


def as_columns(value: Any) -> Any:
    """A stack of vectors as rows of size 1, to scale the columns of matrices with."""
    return reshape(value, shape=(*value.shape[:-1], 1, value.shape[-1]), rank=len(value.shape))


def _checked(function: Callable[..., Any]) -> Any:
    """NumPy raises at a singular matrix; CuPy has to be asked to."""

    def kernel(xp: ModuleType, *arrays: Array, **params: Any) -> Array:
        if not hasattr(xp, "cuda"):
            return function(xp, *arrays, **params)
        import cupyx

        with cupyx.errstate(linalg="raise"):
            return function(xp, *arrays, **params)

    return kernel


def _unless_nan(function: Callable[..., Any], undefined: str = "isnan") -> Any:
    """Results are NaN for a matrix that holds NaN: LAPACK returns numbers for some such matrices, and fails for others.

    Args:
        function: kernel of a stack of matrices.
        undefined: the elements that leave nothing to compute, "isnan", or "isfinite" for NaN and infinity.
    """

    def kernel(xp: ModuleType, a: Array, **params: Any) -> Any:
        good = (xp.isfinite(a) if undefined == "isfinite" else ~xp.isnan(a)).all((-2, -1))
        if xp is np and good.all():  # to ask a device would stop it
            return function(xp, a, **params)
        result = function(xp, xp.where(good[..., None, None], a, xp.eye(*a.shape[-2:], dtype=a.dtype)), **params)
        parts = result if isinstance(result, tuple) else (result,)
        marked = [xp.where(good.reshape(good.shape + (1,) * (x.ndim - good.ndim)), x, x * np.nan) for x in parts]
        return tuple(marked) if isinstance(result, tuple) else marked[0]

    return kernel


# A X = B: Giles 2.2.1 and 2.3.1 -------------------------------------------------------------------------------------


solve: Primitive = primitive(
    "solve",
    _checked(lambda xp, a, b: xp.linalg.solve(a, b)),
    lambda g, y, a, b: unbroadcast(negative(matrix_product(solve(adjoint(a), g), adjoint(y))), a),
    lambda g, y, a, b: unbroadcast(solve(adjoint(a), g), b),
    batching="align",
)
inverse = primitive(
    "inverse",
    _checked(lambda xp, a: xp.linalg.inv(a)),
    lambda g, y, a: negative(matrix_product(matrix_product(adjoint(y), g), adjoint(y))),
    batching="keep",
)


def _triangular_solve(xp: ModuleType, a: Array, b: Array, lower: bool, transposed: bool) -> Array:
    triangle = xp.tril(a) if lower else xp.triu(a)
    return xp.linalg.solve(xp.swapaxes(triangle, -1, -2).conj() if transposed else triangle, b)


def _triangular_left(g: TensorLike, y: TensorLike, a: TensorLike, b: TensorLike, lower: bool, transposed: bool) -> Any:
    inner = triangular_solve(a, g, lower=lower, transposed=not transposed)
    product = matrix_product(y, adjoint(inner)) if transposed else matrix_product(inner, adjoint(y))
    return unbroadcast(negative(triangle(product, lower=lower, offset=0)), a)


triangle: Primitive = linear(
    "triangle",
    lambda xp, x, lower, offset: xp.tril(x, offset) if lower else xp.triu(x, offset),
    lambda g, x, lower, offset: triangle(g, lower=lower, offset=offset),
    moves=True,
)
triangular_solve: Primitive = primitive(
    "triangular_solve",
    _checked(_triangular_solve),
    _triangular_left,
    lambda g, y, a, b, lower, transposed: unbroadcast(triangular_solve(a, g, lower=lower, transposed=not transposed), b),
    batching="align",
)

# Determinants: Giles 2.2.4 --------------------------------------------------------------------------------------------

determinant = primitive(
    "determinant",
    _unless_nan(lambda xp, a: xp.linalg.det(a)),
    lambda g, y, a: multiply(as_matrix(g), conj_if_complex(cofactors(a))),
    batching="keep",
)


def _log_determinant_vjp(g: TensorLike, y: TensorLike, a: TensorLike) -> Any:
    """g_1 A^-H; of complex numbers the sign turns with the imaginary part of tr(A^-1 dA)."""
    slope = _like(g[1], a)
    if is_complex(a):
        slope = subtract(slope, multiply(_like(imag(multiply(conj(g[0]), y[0])), a), 1j))
    return multiply(as_matrix(slope), adjoint(inverse(a)))


log_determinant = primitive(
    "slogdet", _unless_nan(lambda xp, a: tuple(xp.linalg.slogdet(a))), _log_determinant_vjp, batching="keep"
)

# Cofactors: the derivative of a determinant, also where the matrix is singular and has no inverse --------------------------


def _is_regular(xp: ModuleType, a: Array, inverted: Array) -> bool:
    """True if all matrices are far enough from singular for half of the digits of their inverses to be right."""
    size = abs(a).sum(axis=-1).max(axis=-1) * abs(inverted).sum(axis=-1).max(axis=-1)
    return bool(to_numpy((size < float(np.finfo(a.dtype).eps) ** -0.5).all()))


def _inverse_if_regular(xp: ModuleType, a: Array) -> Array | None:
    if not a.size:
        return a
    try:
        inverted = _checked(lambda xp, a: xp.linalg.inv(a))(xp, a)
    except Exception as error:  # each library has its own class for a singular matrix
        if type(error).__name__ != "LinAlgError":
            raise
        return None
    return inverted if _is_regular(xp, a, inverted) else None


def _cofactors(xp: ModuleType, a: Array) -> Array:
    """det(A) A^-T, or det(U V^H) conj(U) diag(products of all other singular values) V^T."""
    inverted = _inverse_if_regular(xp, a)
    if inverted is not None:
        return xp.linalg.det(a)[..., None, None] * xp.swapaxes(inverted, -1, -2)
    u, s, vh = xp.linalg.svd(a, full_matrices=False)
    others = xp.where(xp.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]).prod(axis=-1)
    turned = (xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]
    return turned * ((u.conj() * others[..., None, :]) @ vh.conj())


def _cofactors_vjp(g: TensorLike, y: TensorLike, a: TensorLike) -> Any:
    """By the inverse where there is one; else cofactor by cofactor, each the determinant of a minor: n**2 times the work."""
    array = all_values(a) if isinstance(a, Tensor) else a
    if isinstance(a, Tensor):
        decide(a)
    if _inverse_if_regular(namespace(array), array) is None:
        return _through_minors(g, a)
    adjugate, inverted = conj_if_complex(y), adjoint(inverse(a))
    along = reduce_sum(multiply(g, adjugate), axes=(-2, -1), keepdims=True)
    return subtract(multiply(along, inverted), matrix_product(matrix_product(adjugate, swap_last(g)), inverted))


def _through_minors(g: TensorLike, a: TensorLike) -> Any:
    n = a.shape[-1]
    if n == 1:
        return zeros_like(a)
    rest = np.array([[k for k in range(n) if k != i] for i in range(n)])
    rest, signs = (_beside(a, one) for one in (rest, (-1.0) ** np.add.outer(np.arange(n), np.arange(n))))
    minors = transpose(gather_rows(gather_rows(a, rest, axis=-2), rest, axis=-1), perm=(-4, -2, -3, -1))
    shares = multiply(conj_if_complex(cofactors(minors)), as_matrix(multiply(g, cast(signs, dtype=g.dtype.name))))
    columns = add_rows(transpose(shares, perm=(-4, -2, -3, -1)), rest, axis=-1, size=n)
    return add_rows(columns, rest, axis=-2, size=n)


def _beside(a: TensorLike, values: Any) -> Any:
    """Numbers where `a` is: a Tensor beside a Tensor, an array beside an array."""
    array = namespace(array_of(a)).asarray(values)
    return Tensor(array) if isinstance(a, Tensor) else array


cofactors: Primitive = primitive("cofactors", _unless_nan(_cofactors, "isfinite"), _cofactors_vjp, batching="keep")

# Cholesky: I. Murray, Differentiation of the Cholesky decomposition (2016), equation (10) ----------------------------


def _cholesky(xp: ModuleType, a: Array) -> Array:
    try:
        return xp.linalg.cholesky(a)
    except Exception as error:  # each library has its own class for "not positive definite"
        if type(error).__name__ != "LinAlgError":
            raise
        if a.ndim == 2:
            return a * float("nan")
        each = a.reshape(-1, *a.shape[-2:])
        return xp.stack([_cholesky(xp, each[number]) for number in range(len(each))]).reshape(a.shape)


def diagonal_part(x: TensorLike) -> Any:
    """The matrix with everything off the diagonal set to zero."""
    return multiply(x, identity_like(x, n=x.shape[-1], trailing=0))


def _cholesky_vjp(g: TensorLike, y: TensorLike, a: TensorLike) -> Any:
    product = matrix_product(adjoint(y), g)
    inner = subtract(triangle(product, lower=True, offset=0), multiply(diagonal_part(product), 0.5))  # the diagonal halved
    right = triangular_solve(y, adjoint(inner), lower=True, transposed=True)
    whole = triangular_solve(y, adjoint(right), lower=True, transposed=True)
    return multiply(add(whole, adjoint(whole)), 0.5)


cholesky = primitive("cholesky", _checked(_cholesky), _cholesky_vjp, batching="keep")

# Eigenvalues of symmetric matrices: Giles 3.1 -------------------------------------------------------------------------


def _inverse_gaps(values: Any) -> Any:
    """1 / (w_j - w_i), zero on the diagonal and between equal eigenvalues."""
    column = reshape(values, shape=(*values.shape, 1), rank=len(values.shape))
    gaps = subtract(as_columns(values), column)
    same = equal(gaps, 0)
    return select(same, zeros_like(gaps), divide(1.0, select(same, add(zeros_like(gaps), 1.0), gaps)))


def _eigh_vjp(g: TensorLike, y: TensorLike, a: TensorLike) -> Any:
    values, vectors = y
    turned = multiply(_like(_inverse_gaps(values), vectors), matrix_product(adjoint(vectors), g[1]))
    scaled = multiply(identity_like(vectors, n=vectors.shape[-1], trailing=0), _like(as_columns(g[0]), vectors))
    whole = matrix_product(matrix_product(vectors, add(turned, scaled)), adjoint(vectors))
    return multiply(add(whole, adjoint(whole)), 0.5)


def _like(value: Any, other: Any) -> Any:
    return cast(value, dtype=other.dtype.name) if is_complex(other) else value


eigh = primitive("eigh", _unless_nan(lambda xp, a: tuple(xp.linalg.eigh(a)), "isfinite"), _eigh_vjp, batching="keep")

# QR: J.-G. Liu, the pull-back of QR (2019) -----------------------------------------------------------------------------


def _qr_vjp(g: TensorLike, y: TensorLike, a: TensorLike) -> Any:
    """Columns beyond the rows are products with Q; rows and columns that only full matrices have turn with the others."""
    (q, r), (gq, gr) = y, g
    rows, columns = a.shape[-2:]
    if q.shape[-1] > columns:
        gq, q = _turned_along(gq, q, columns), cut(q, -1, 0, columns)
        gr, r = cut(gr, -2, 0, columns), cut(r, -2, 0, columns)
    if rows >= columns:
        return _tall_qr_vjp(gq, gr, q, r)
    beyond, change = cut(a, -1, rows, columns), cut(gr, -1, rows, columns)
    gq = add(gq, matrix_product(beyond, adjoint(change)))
    square = _tall_qr_vjp(gq, cut(gr, -1, 0, rows), q, cut(r, -1, 0, rows))
    return concat(square, matrix_product(q, change), axis=-1)


def _turned_along(g: TensorLike, q: Any, count: int) -> Any:
    """The cotangent of the first columns of Q, with what the others add that stay at right angles to them."""
    first, others, change = cut(q, -1, 0, count), cut(q, -1, count, q.shape[-1]), cut(g, -1, count, q.shape[-1])
    return subtract(cut(g, -1, 0, count), matrix_product(others, matrix_product(adjoint(change), first)))


def _tall_qr_vjp(gq: Any, gr: Any, q: Any, r: Any) -> Any:
    m = subtract(matrix_product(r, adjoint(gr)), matrix_product(adjoint(gq), q))
    below = triangle(m, lower=True, offset=-1)
    kept = _like(real(m), m) if is_complex(m) else m  # the diagonal of R is real
    symmetric = add(add(below, adjoint(below)), diagonal_part(kept))
    return adjoint(solve(r, adjoint(add(gq, matrix_product(q, symmetric)))))


qr = primitive(
    "qr",
    lambda xp, a, full: tuple(xp.linalg.qr(a, mode="complete" if full else "reduced")),
    lambda g, y, a, full: _qr_vjp(g, y, a),
    batching="keep",
)

# Singular values: J. Townsend, Differentiating the singular value decomposition (2016) ---------------------------------


def _svd(xp: ModuleType, a: Array, full: bool) -> tuple[Array, ...]:
    u, s, vh = xp.linalg.svd(a, full_matrices=full)
    return s, u, xp.swapaxes(vh, -1, -2).conj()


def _svd_vjp(g: TensorLike, y: TensorLike, a: TensorLike) -> Any:
    """Pairs of complex vectors may be turned by any angle: a turn of A is taken for one of U."""
    (s, u, v), (gs, gu, gv) = y, g
    n = s.shape[-1]
    if u.shape[-1] > n:
        gu, u = _turned_along(gu, u, n), cut(u, -1, 0, n)
    if v.shape[-1] > n:
        gv, v = _turned_along(gv, v, n), cut(v, -1, 0, n)
    squares, scale = _like(_inverse_gaps(multiply(s, s)), u), _like(as_columns(s), u)
    by_u, by_v = matrix_product(adjoint(u), gu), matrix_product(adjoint(v), gv)
    uu, vv = multiply(squares, by_u), multiply(squares, by_v)
    left = multiply(add(uu, adjoint(uu)), scale)
    right = multiply(swap_last(scale), add(vv, adjoint(vv)))
    inverse_scale = divide(1.0, scale)
    diagonal = _like(as_columns(gs), u)
    if is_complex(a):
        diagonal = add(diagonal, multiply(multiply(_like(imag(by_u), u), 1j), inverse_scale))
    middle = add(add(left, right), multiply(identity_like(u, n=n, trailing=0), diagonal))
    result = matrix_product(matrix_product(u, middle), adjoint(v))
    if u.shape[-2] > n:
        rest = subtract(gu, matrix_product(u, by_u))
        result = add(result, matrix_product(multiply(rest, inverse_scale), adjoint(v)))
    if v.shape[-2] > n:
        rest = subtract(gv, matrix_product(v, by_v))
        result = add(result, matrix_product(multiply(u, inverse_scale), adjoint(rest)))
    return result


svd = primitive("svd", _unless_nan(_svd, "isfinite"), lambda g, y, a, full: _svd_vjp(g, y, a), batching="keep")
singular_values = primitive(
    "singular_values",
    _unless_nan(lambda xp, a: xp.linalg.svd(a, compute_uv=False), "isfinite"),
    lambda g, y, a: _singular_values_vjp(g, *svd(a, full=False)),
    batching="keep",
)


def _singular_values_vjp(g: TensorLike, s: Any, u: Any, v: Any) -> Any:
    """U diag(g) V^H."""
    return matrix_product(multiply(u, _like(as_columns(g), u)), adjoint(v))


# Decompositions -------------------------------------------------------------------------------------------------------

# Elimination, eigenvalues of any square matrix, and the principal square root. Formulas and sources stand above each.

# P A = L U: JAX, jax/_src/lax/linalg.py, _lu_jvp_rule ------------------------------------------------------------------

_PANEL = 32


def _lu(xp: ModuleType, a: Array) -> tuple[Array, Array]:
    """L below the diagonal and U above it, and the order of the rows, by panels of columns with products right of them."""
    *lead, m, n = a.shape
    whole = a.reshape(math.prod(lead), m, n).copy()
    stack = xp.arange(len(whole))
    rows = xp.zeros((len(whole), 1), dtype="int32") + xp.arange(m, dtype="int32")
    for start in range(0, min(m, n), _PANEL):
        stop = min(start + _PANEL, m, n)
        for j in range(start, stop):
            column = whole[:, j:, j]
            size = abs(column.real) + abs(column.imag) if a.dtype.kind == "c" else abs(column)  # as LAPACK
            chosen = size.argmax(axis=-1) + j
            for values in (whole, rows):
                values[stack, chosen], values[:, j] = values[:, j].copy(), values[stack, chosen]
            pivot = whole[:, j, j, None]
            whole[:, j + 1 :, j] /= xp.where(pivot == 0, 1, pivot)
            whole[:, j + 1 :, j + 1 : stop] -= whole[:, j + 1 :, j, None] * whole[:, j, None, j + 1 : stop]
        if stop < n:
            corner = xp.tril(whole[:, start:stop, start:stop], -1) + xp.eye(stop - start, dtype=a.dtype)
            whole[:, start:stop, stop:] = xp.linalg.solve(corner, whole[:, start:stop, stop:])
            whole[:, stop:, stop:] -= whole[:, stop:, start:stop] @ whole[:, start:stop, stop:]
    return whole.reshape(a.shape), rows.reshape(*lead, m)


def lower_and_upper(packed: Any) -> tuple[Any, Any]:
    """L with as many columns as rows and U with as many rows as columns, filled up by ones on the diagonal."""
    m, n = packed.shape[-2:]
    below, above = triangle(packed, lower=True, offset=-1), triangle(packed, lower=False, offset=0)
    if n > m:
        below, above = cut(below, -1, 0, m), pad(above, paddings=((0, n - m), (0, 0)), value=0)
    elif m > n:
        below, above = pad(below, paddings=((0, 0), (0, m - n)), value=0), cut(above, -2, 0, n)
    ones = identity_like(above, n=n, trailing=0)
    rest = subtract(ones, pad(identity_like(above, n=min(m, n), trailing=0), paddings=((0, max(n - m, 0)),) * 2, value=0))
    return add(below, identity_like(below, n=m, trailing=0)), add(above, rest)


def rows_in_order(x: TensorLike, order: Any) -> Any:
    """The rows of each matrix of a stack as its `order` names them."""
    column = reshape(order, shape=(*order.shape, 1), rank=len(order.shape))
    return take_along(x, broadcast_to(column, shape=(*order.shape, x.shape[-1]), rank=len(column.shape)), axis=-2)


def _lu_vjp(wanted: Sequence[int], g: TensorLike, y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    below, above = lower_and_upper(y[0])
    left = triangle(matrix_product(adjoint(below), g[0]), lower=True, offset=-1)
    inner = add(left, triangle(matrix_product(g[0], adjoint(above)), lower=False, offset=0))
    inner = triangular_solve(below, inner, lower=True, transposed=True)
    inner = adjoint(triangular_solve(above, adjoint(inner), lower=False, transposed=False))
    return [rows_in_order(inner, argsort(y[1], axis=-1, descending=False))]


def _lu_jvp(tangents: Sequence[Any], y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    below, above = lower_and_upper(y[0])
    inner = triangular_solve(below, rows_in_order(tangents[0], y[1]), lower=True, transposed=False)
    inner = adjoint(triangular_solve(above, adjoint(inner), lower=False, transposed=True))
    left = matrix_product(below, triangle(inner, lower=True, offset=-1))
    return add(left, matrix_product(triangle(inner, lower=False, offset=0), above)), None


lu = primitive("lu", _checked(_lu), vjp=_lu_vjp, jvp=_lu_jvp, batching="keep")

# A V = V diag(w), columns of V of length 1: C. Boeddeker et al., On the computation of complex-valued gradients with
# application to statistically optimum beamforming (2017), 4.77 ----------------------------------------------------------


def _eig(xp: ModuleType, a: Array) -> tuple[Array, ...]:
    """Complex for real matrices too, and on the host: CuPy has no eigenvalues of unsymmetric matrices."""
    wide = np.result_type(a.dtype, "complex64")
    return tuple(xp.asarray(part.astype(wide)) for part in np.linalg.eig(to_numpy(a)))


def _eig_vjp(g: TensorLike, y: TensorLike, a: TensorLike) -> Any:
    values, vectors = y
    turned = adjoint(vectors)
    along = diagonal_part(matrix_product(turned, g[1]))
    change = subtract(matrix_product(turned, g[1]), matrix_product(matrix_product(turned, vectors), _like(real(along), along)))
    scaled = multiply(identity_like(vectors, n=vectors.shape[-1], trailing=0), as_columns(g[0]))
    whole = matrix_product(matrix_product(inverse(turned), add(multiply(conj(_inverse_gaps(values)), change), scaled)), turned)
    return whole if is_complex(a) else real(whole)


eig = primitive("eig", _unless_nan(_eig, "isfinite"), _eig_vjp, batching="keep")

# X X = A: Denman and Beavers' iteration as a product, with scaling: N. J. Higham, Functions of Matrices (2008), (6.29) -------


def _square_root(xp: ModuleType, a: Array) -> Array:
    n, precision = a.shape[-1], float(np.finfo(a.dtype).eps)
    if not a.size:
        return a
    one = xp.eye(n, dtype=a.dtype)
    x = m = a
    far = True
    for _ in range(100):
        if far:
            scale = abs(xp.linalg.det(m)) ** (-0.5 / n)
            scale = xp.where(xp.isfinite(scale) & (scale > 0), scale, 1)[..., None, None].astype(a.real.dtype)
        else:
            scale = 1.0
        inverted = xp.linalg.inv(m) / (scale * scale)
        x = 0.5 * scale * (x + x @ inverted)
        m = 0.5 * (one + 0.5 * (scale * scale * m + inverted))
        distance = to_numpy(abs(m - one).max())
        far = bool(distance > 1e-2)
        if distance <= 4 * n * precision:
            break
    return xp.where((abs(m - one).max((-2, -1)) < precision**0.5)[..., None, None], x, float("nan"))


def _square_root_vjp(g: TensorLike, y: TensorLike, a: TensorLike) -> Any:
    """The derivative of a function of matrices is a block of its value for [[A, E], [0, A]]: Higham, theorem 3.6."""
    turned = adjoint(a)
    above, below = concat(turned, g, axis=-1), concat(zeros_like(turned), turned, axis=-1)
    n = a.shape[-1]
    return cut(cut(square_root(concat(above, below, axis=-2)), -2, 0, n), -1, n, 2 * n)


square_root: Primitive = primitive(
    "square_root", _unless_nan(_checked(_square_root), "isfinite"), _square_root_vjp, batching="keep"
)
