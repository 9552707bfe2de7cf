"""Symmetric positive definite matrices, whole or block-diagonal, and the systems of equations of Newton's steps.

Nearly all of it is large matrix products, several times faster than LAPACK's own factorization as NumPy is built.
Source: Golub and Van Loan, Matrix Computations (2013), sections 4.2.7 (blocks) and 3.1.3 (substitution).

Source: Nocedal and Wright, Numerical Optimization (2006), sections 3.4 (modified Hessians) and 4.3 (the trust-region problem).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.arrays import namespace, to_device, to_numpy
from ....nn_ops import philox4x32
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
    """Overwrite the lower triangle with L; the elements above the diagonal then mean nothing.

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
    """Inverse of a small lower triangular matrix, by halves: [[A, 0], [B, C]] has [[A', 0], [-C' B A', C']]: all products."""
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


class BlockMatrix:
    """Symmetric blocks, and the places of their rows in the whole vector.

    Args:
        blocks: arrays of shape (n_b, n_b).
        places: arrays of n_b indices each, together 0 to P - 1.
    """

    def __init__(self, blocks: Sequence[Array], places: Sequence[Array]) -> None:
        self.blocks = list(blocks)
        self.places = [to_device(place, namespace(block)) for block, place in zip(blocks, places, strict=True)]
        self._eigen: list[tuple[Array, Array]] | None = None

    def __matmul__(self, vector: Array) -> Array:
        return self._each(vector, lambda i, part: self.blocks[i] @ part)

    def _each(self, vector: Array, function: Callable[..., Any]) -> Array:
        """A function of block number and part of the vector, its results put together."""
        if len(self.blocks) == 1:
            return function(0, vector)
        result = namespace(vector).zeros_like(vector)
        for i, place in enumerate(self.places):
            result[place] = function(i, vector[place])
        return result

    def diagonal(self) -> Array:
        """The diagonal of the whole matrix."""
        xp = namespace(self.blocks[0])
        result = xp.concatenate([xp.einsum("ii->i", block) for block in self.blocks])
        result[xp.concatenate(self.places)] = result.copy()
        return result

    def eigen(self) -> list[tuple[Array, Array]]:
        """Eigenvalues, ascending, and eigenvectors of each block."""
        if self._eigen is None:
            self._eigen = [tuple(namespace(block).linalg.eigh(block)) for block in self.blocks]
        return self._eigen

    def solve(self, vector: Array, damping: float, repair: str = "shift") -> tuple[Array, int]:
        """x with (A + damping) x = vector, where A is repaired if it is not positive definite.

        A block is repaired if its lowest eigenvalue l is not above 0 after damping: 'shift' adds 1.1 |l| and a little to its
        diagonal, more if that is not enough; 'eigenvalues' takes absolute values, with a floor of sqrt(eps) times the largest.
        The first costs forty products and another factorization, the second 9 n**3 multiplications, and leaves saddle points
        faster.

        Returns:
            The solution, and the number of blocks that were repaired.

        Raises:
            numpy.linalg.LinAlgError: for a block that is not finite.

        Source: Nocedal and Wright (2006), algorithm 3.3; Dauphin et al., Identifying and attacking the saddle point problem
        (2014), equation (7), for absolute values.
        """
        repaired = 0

        def solved(i: int, part: Array) -> Array:
            nonlocal repaired
            block = self.blocks[i]
            found = positive_solve(block, part, damping)
            if found is not None:
                return found
            lowest, largest = extreme_eigenvalues(block)
            largest = largest or 1.0
            small = math.sqrt(float(np.finfo(block.dtype).eps)) * largest
            repaired += lowest + damping <= 0
            if repair == "eigenvalues" and lowest + damping <= 0:
                values, vectors = self.eigen()[i]
                xp = namespace(block)
                return vectors @ ((vectors.swapaxes(0, 1) @ part) / xp.maximum(xp.abs(values + damping), small))
            shift = max(damping, -1.1 * lowest) + small
            while (found := positive_solve(block, part, shift)) is None and shift < 1e3 * largest:
                shift *= 4.0
            if found is None:
                raise np.linalg.LinAlgError(f"a block of {len(block)} rows has eigenvalues of about {largest}")
            return found

        return self._each(vector, solved), repaired

    def trust_region(self, gradient: Array, radius: float) -> tuple[Array, float]:
        """The step s of norm at most `radius` that minimizes g^T s + s^T A s / 2, and its multiplier.

        In the eigenvectors' coordinates s_i = -g_i / (l_i + m) with the least m >= max(0, -l_min) that keeps the norm within
        the radius; m is found by Newton's method on 1/radius - 1/|s(m)|. In the hard case (no component of g along the lowest
        eigenvector) that eigenvector is added.

        Source: Nocedal and Wright (2006), algorithm 4.3 and section "the hard case".
        """
        eigen = self.eigen()
        values = np.concatenate([to_numpy(value).astype(np.float64) for value, _ in eigen])
        turned = [vectors.swapaxes(0, 1) @ gradient[place] for (_, vectors), place in zip(eigen, self.places, strict=True)]
        g = np.concatenate([to_numpy(part).astype(np.float64) for part in turned])
        coordinates, multiplier = _trust_region(values, g, radius)
        parts = iter(np.split(coordinates.astype(gradient.dtype), np.cumsum([len(place) for place in self.places])[:-1]))
        found = self._each(gradient, lambda i, _: eigen[i][1] @ namespace(gradient).asarray(next(parts)))
        return found, multiplier


def extreme_eigenvalues(matrix: Array, steps: int = 40) -> tuple[float, float]:
    """The lowest eigenvalue, and the largest in size, of a symmetric matrix, by products with vectors alone.

    Lanczos's method with full orthogonalization from a fixed start: after k products the extreme eigenvalues of the k x k
    tridiagonal matrix. The outermost ones come first; of an eigenvalue just below 0 among many larger ones it may see a value
    just above.

    Source: Golub and Van Loan, Matrix Computations (2013), section 10.1.
    """
    xp, size = namespace(matrix), len(matrix)
    start = philox4x32.normal((size, 0), (size,), "float64")
    q = xp.asarray((start / np.linalg.norm(start)).astype(matrix.dtype))
    basis, diagonal, beside = [q], [], []
    for _ in range(min(steps, size)):
        image = matrix @ basis[-1]
        diagonal.append(float(to_numpy(basis[-1] @ image)))
        stacked = xp.stack(basis)
        for _ in range(2):
            image = image - stacked.swapaxes(0, 1) @ (stacked @ image)
        norm = float(to_numpy(image @ image)) ** 0.5
        if not norm > 1e-6 * max(map(abs, diagonal)):
            break
        beside.append(norm)
        basis.append(image / norm)
    count = len(diagonal)
    values = np.linalg.eigvalsh(np.diag(diagonal) + np.diag(beside[: count - 1], 1) + np.diag(beside[: count - 1], -1))
    return float(values[0]), float(np.abs(values).max())


def _trust_region(values: np.ndarray, g: np.ndarray, radius: float) -> tuple[np.ndarray, float]:
    """`BlockMatrix.trust_region` in the coordinates of the eigenvectors."""
    lowest = float(values.min())
    scale = max(float(np.abs(values).max()), 1e-30)
    if lowest > 1e-12 * scale:
        s = -g / values
        if np.linalg.norm(s) <= radius:
            return s, 0.0
    edge = max(0.0, -lowest) + 1e-12 * scale
    low = values - lowest <= 1e-12 * scale

    def length(m: float) -> float:
        return float(np.linalg.norm(g / (values + m)))

    if length(edge) <= radius:  # the hard case, or a flat direction: walk along the lowest eigenvector to the boundary
        s = np.where(low, 0.0, -g / np.where(low, 1.0, values + edge))
        rest = math.sqrt(max(radius**2 - float(s @ s), 0.0))
        direction = np.zeros_like(s)
        direction[int(np.argmin(values))] = 1.0 if g[int(np.argmin(values))] <= 0 else -1.0
        return s + rest * direction, edge
    lower, upper = edge, edge + float(np.linalg.norm(g)) / radius
    m = lower
    for _ in range(100):
        size = length(m)
        if abs(size - radius) <= 1e-10 * radius:
            break
        lower, upper = (m, upper) if size > radius else (lower, m)
        slope = float(np.sum(g**2 / (values + m) ** 3)) / size**2
        m = m + (size - radius) / radius / slope
        if not lower < m < upper:
            m = 0.5 * (lower + upper)
    return -g / (values + m), m
