"""Systems of equations with a symmetric positive definite matrix: L L^T x = b, and word if the matrix is not that.

Nearly all of it is large matrix products, several times faster than LAPACK's own factorization as NumPy is built.
Source: Golub and Van Loan, Matrix Computations (2013), sections 4.2.7 (blocks) and 3.1.3 (substitution).
"""

from __future__ import annotations

import numpy as np

from ....arrays import namespace, to_numpy
from ....types import Array

WHOLE, WIDTH = 512, 128
SUBSTITUTED = 64


def positive_solve(matrix: Array, vector: Array) -> Array | None:
    """x with A x = b; None if A is not positive definite, up to rounding."""
    if not len(matrix):
        return vector
    try:
        factor = factored(matrix)
    except np.linalg.LinAlgError:
        return None
    x = substituted(factor, vector)
    # A GPU's library does not say that it failed; then the equations do not hold.
    rest = matrix @ x - vector
    largest = abs(namespace(matrix).einsum("ii->i", matrix)).max()
    size = len(matrix) * largest * abs(x).max() + abs(vector).max()
    small = float(np.finfo(matrix.dtype).eps) ** 0.5
    return x if bool(to_numpy(abs(rest).max() <= small * size)) else None


def factored(matrix: Array) -> Array:
    """L in the lower triangle, of a copy; what stands above the diagonal means nothing.

    Raises:
        numpy.linalg.LinAlgError: if the matrix is not positive definite.
    """
    xp, count = namespace(matrix), len(matrix)
    width = WIDTH if count > WHOLE else count
    a = matrix.copy()
    for start in range(0, count, max(width, 1)):
        stop = min(start + width, count)
        corner = a[start:stop, start:stop] = xp.linalg.cholesky(a[start:stop, start:stop])
        if stop == count:
            break
        # The corner's inverse makes one fast product of what would be one substitution for each row below.
        a[stop:, start:stop] = a[stop:, start:stop] @ xp.linalg.inv(corner).swapaxes(0, 1)
        for left in range(stop, count, 4 * width):
            right = min(left + 4 * width, count)
            a[left:, left:right] -= a[left:, start:stop] @ a[left:right, start:stop].swapaxes(0, 1)
    return a


def substituted(factor: Array, vector: Array) -> Array:
    """x with L L^T x = b: forward, then back."""
    xp, count = namespace(factor), len(factor)
    x = vector.copy()
    for start in range(0, count, SUBSTITUTED):
        stop = min(start + SUBSTITUTED, count)
        corner = xp.tril(factor[start:stop, start:stop])
        x[start:stop] = xp.linalg.solve(corner, x[start:stop] - factor[start:stop, :start] @ x[:start])
    for start in reversed(range(0, count, SUBSTITUTED)):
        stop = min(start + SUBSTITUTED, count)
        corner = xp.tril(factor[start:stop, start:stop]).swapaxes(0, 1)
        x[start:stop] = xp.linalg.solve(corner, x[start:stop] - factor[stop:, start:stop].swapaxes(0, 1) @ x[stop:])
    return x
