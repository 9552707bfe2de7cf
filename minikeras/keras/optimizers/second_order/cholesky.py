"""Systems of equations with a symmetric positive definite matrix: L L^T x = b, and word if the matrix is not that.

Nearly all of it is large matrix products, several times faster than LAPACK's own factorization as NumPy is built.
Source: Golub and Van Loan, Matrix Computations (2013), sections 4.2.7 (blocks) and 3.1.3 (substitution).
"""

from __future__ import annotations

import numpy as np

from ....core.arrays import namespace, to_numpy
from ....types import Array

WHOLE = 512
"""Rows up to which LAPACK factors the matrix as a whole."""
WIDTH = 96
"""Columns of a block: one product for all that lies left of them, so that each number is written once, not once a block."""
SUBSTITUTED = 64
"""Rows that are substituted together, by elimination: inverses of corners lose ten times as much to rounding, and methods that
approach a minimum in float32 stop earlier for it."""


def positive_solve(matrix: Array, vector: Array, shift: float = 0.0) -> Array | None:
    """x with (A + shift) x = b; None if A + shift is not positive definite, up to rounding."""
    if not len(matrix):
        return vector
    shifted = matrix.copy()
    diagonal = shifted.reshape(-1)[:: len(matrix) + 1]
    diagonal[...] += shift
    largest = abs(diagonal).max()
    try:
        factored(shifted)
        x = substituted(shifted, vector)
    except np.linalg.LinAlgError:
        return None
    # A GPU's library does not say that it failed; then the equations do not hold.
    rest = matrix @ x + (shift * x - vector)
    size = len(matrix) * largest * abs(x).max() + abs(vector).max()
    small = float(np.finfo(matrix.dtype).eps) ** 0.5
    return x if bool(to_numpy(abs(rest).max() <= small * size)) else None


def factored(a: Array) -> None:
    """Writes L over the lower triangle; what stands above the diagonal then means nothing.

    Raises:
        numpy.linalg.LinAlgError: if the matrix is not positive definite.
    """
    xp, count = namespace(a), len(a)
    width = WIDTH if count > WHOLE else max(count, 1)
    for start in range(0, count, width):
        stop = min(start + width, count)
        if start:
            a[start:, start:stop] -= a[start:, :start] @ a[start:stop, :start].swapaxes(0, 1)
        a[start:stop, start:stop] = corner = xp.linalg.cholesky(a[start:stop, start:stop])
        if stop < count:
            # The corner's inverse makes one fast product of what would be one substitution for each row below.
            a[stop:, start:stop] = a[stop:, start:stop] @ inverse(corner).swapaxes(0, 1)


def inverse(lower: Array) -> Array:
    """Of a small lower triangular matrix, by halves: [[A, 0], [B, C]] has [[A', 0], [-C' B A', C']], which are products."""
    xp, half = namespace(lower), len(lower) // 2
    if half < 16:
        return xp.linalg.inv(lower)
    found = xp.zeros_like(lower)
    first = found[:half, :half] = inverse(lower[:half, :half])
    last = found[half:, half:] = inverse(lower[half:, half:])
    found[half:, :half] = -(last @ (lower[half:, :half] @ first))
    return found


def substituted(factor: Array, vector: Array) -> Array:
    """x with L L^T x = b: forward, then back."""
    xp, count, x = namespace(factor), len(factor), vector.copy()
    parts = [slice(start, min(start + SUBSTITUTED, count)) for start in range(0, count, SUBSTITUTED)]
    corners = [factor[part, part] for part in parts]
    if count > WHOLE:  # else LAPACK has left zeros above the diagonal
        corners = [xp.tril(corner) for corner in corners]
    for part, corner in zip(parts, corners, strict=True):
        known = factor[part, : part.start] @ x[: part.start] if part.start else 0.0
        x[part] = xp.linalg.solve(corner, x[part] - known)
    for part, corner in zip(reversed(parts), reversed(corners), strict=True):
        known = factor[part.stop :, part].swapaxes(0, 1) @ x[part.stop :] if part.stop < count else 0.0
        x[part] = xp.linalg.solve(corner.swapaxes(0, 1), x[part] - known)
    return x
