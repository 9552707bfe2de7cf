"""Elimination, eigenvalues of any square matrix, and the principal square root. Formulas and sources stand above each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.arrays import to_numpy
from ..core.families import is_complex, primitive
from ..core.ops.arithmetic import add, conj, multiply, real, subtract, zeros_like
from ..core.ops.contractions import matrix_product
from ..core.ops.indexing import take_along
from ..core.ops.reductions import argsort, identity_like
from ..core.ops.shaping import _part, broadcast_to, concat, pad, reshape
from ..core.primitive import Primitive
from ..types import Array
from .linalg import (
    _checked,
    _inverse_gaps,
    _like,
    _unless_nan,
    adjoint,
    as_columns,
    diagonal_part,
    inverse,
    triangle,
    triangular_solve,
)

# P A = L U: JAX, jax/_src/lax/linalg.py, _lu_jvp_rule ------------------------------------------------------------------

_PANEL = 32


def _lu(xp: Any, a: Array) -> tuple[Array, Array]:
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
        below, above = _part(below, -1, 0, m), pad(above, paddings=((0, n - m), (0, 0)), value=0)
    elif m > n:
        below, above = pad(below, paddings=((0, 0), (0, m - n)), value=0), _part(above, -2, 0, n)
    ones = identity_like(above, n=n, trailing=0)
    rest = subtract(ones, pad(identity_like(above, n=min(m, n), trailing=0), paddings=((0, max(n - m, 0)),) * 2, value=0))
    return add(below, identity_like(below, n=m, trailing=0)), add(above, rest)


def rows_in_order(x: Any, order: Any) -> Any:
    """The rows of each matrix of a stack as its `order` names them."""
    column = reshape(order, shape=(*order.shape, 1), rank=len(order.shape))
    return take_along(x, broadcast_to(column, shape=(*order.shape, x.shape[-1]), rank=len(column.shape)), axis=-2)


def _lu_vjp(wanted: Any, g: Any, y: Any, inputs: Any, params: Any) -> list[Any]:
    below, above = lower_and_upper(y[0])
    left = triangle(matrix_product(adjoint(below), g[0]), lower=True, offset=-1)
    inner = add(left, triangle(matrix_product(g[0], adjoint(above)), lower=False, offset=0))
    inner = triangular_solve(below, inner, lower=True, transposed=True)
    inner = adjoint(triangular_solve(above, adjoint(inner), lower=False, transposed=False))
    return [rows_in_order(inner, argsort(y[1], axis=-1, descending=False))]


def _lu_jvp(tangents: Any, y: Any, inputs: Any, params: Any) -> Any:
    below, above = lower_and_upper(y[0])
    inner = triangular_solve(below, rows_in_order(tangents[0], y[1]), lower=True, transposed=False)
    inner = adjoint(triangular_solve(above, adjoint(inner), lower=False, transposed=True))
    left = matrix_product(below, triangle(inner, lower=True, offset=-1))
    return add(left, matrix_product(triangle(inner, lower=False, offset=0), above)), None


lu = primitive("lu", _checked(_lu), vjp=_lu_vjp, jvp=_lu_jvp, batching="keep")

# A V = V diag(w), columns of V of length 1: C. Boeddeker et al., On the computation of complex-valued gradients with
# application to statistically optimum beamforming (2017), 4.77 ----------------------------------------------------------


def _eig(xp: Any, a: Array) -> tuple[Array, ...]:
    """Complex for real matrices too, and on the host: CuPy has no eigenvalues of unsymmetric matrices."""
    wide = np.result_type(a.dtype, "complex64")
    return tuple(xp.asarray(part.astype(wide)) for part in np.linalg.eig(to_numpy(a)))


def _eig_vjp(g: Any, y: Any, a: Any) -> Any:
    values, vectors = y
    turned = adjoint(vectors)
    along = diagonal_part(matrix_product(turned, g[1]))
    change = subtract(matrix_product(turned, g[1]), matrix_product(matrix_product(turned, vectors), _like(real(along), along)))
    scaled = multiply(identity_like(vectors, n=vectors.shape[-1], trailing=0), as_columns(g[0]))
    whole = matrix_product(matrix_product(inverse(turned), add(multiply(conj(_inverse_gaps(values)), change), scaled)), turned)
    return whole if is_complex(a) else real(whole)


eig = primitive("eig", _unless_nan(_eig, "isfinite"), _eig_vjp, batching="keep")

# X X = A: Denman and Beavers' iteration as a product, with scaling: N. J. Higham, Functions of Matrices (2008), (6.29) -------


def _square_root(xp: Any, a: Array) -> Array:
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


def _square_root_vjp(g: Any, y: Any, a: Any) -> Any:
    """The derivative of a function of matrices is a block of its value for [[A, E], [0, A]]: Higham, theorem 3.6."""
    turned = adjoint(a)
    above, below = concat(turned, g, axis=-1), concat(zeros_like(turned), turned, axis=-1)
    n = a.shape[-1]
    return _part(_part(square_root(concat(above, below, axis=-2)), -2, 0, n), -1, n, 2 * n)


square_root: Primitive = primitive(
    "square_root", _unless_nan(_checked(_square_root), "isfinite"), _square_root_vjp, batching="keep"
)
