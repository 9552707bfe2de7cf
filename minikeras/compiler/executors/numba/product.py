"""PRODUCT: matrix products by BLAS, which Numba finds in SciPy. It was faster than plain loops also for 8 by 8 matrices."""

from __future__ import annotations

import numpy as np

from ....types import Array
from .memory import compiled, fill, view


@compiled
def product(code: Array, pointers: Array, scratch: Array) -> None:
    """Carries out one PRODUCT."""
    m, n, k, transpose_a, transpose_b = code[5], code[6], code[7], code[8], code[9]
    out = view(pointers[code[2]], (m, n), scratch)
    a = view(pointers[code[3]], (k, m) if transpose_a else (m, k), scratch)
    b = view(pointers[code[4]], (n, k) if transpose_b else (k, n), scratch)
    if m * n * k == 0:
        fill(out.reshape(m * n), 0.0)
    elif transpose_a and transpose_b:
        np.dot(a.T, b.T, out)
    elif transpose_a:
        np.dot(a.T, b, out)
    elif transpose_b:
        np.dot(a, b.T, out)
    else:
        np.dot(a, b, out)
