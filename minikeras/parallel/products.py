"""Products of matrices by BLAS, long ones in parts for several threads.

A BLAS library shares a product among threads that wait actively for one another: where another process wants a processor too,
a product takes ten times as long. So the library has one thread for a product here, and a long one is cut in parts for threads
that do not wait (`threads.py`), unless the user has set a number. Other calls of the library keep its own number of threads.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ..core.ops.contractions import LONG
from ..types import Array
from .blas import on_one_thread, set_by_environment
from .threads import get_intra_op_parallelism_threads, in_parallel

PART = 1 << 23
"""Multiplications of a part from which another thread pays: to hand it over takes 60 us, the part 250."""


def chosen_by_user() -> bool:
    """Whether the user has said how many threads BLAS has, by the environment or `tf.config.threading`."""
    return set_by_environment() or get_intra_op_parallelism_threads() > 0


def quiet_blas() -> contextlib.AbstractContextManager[Any]:
    """A block in which BLAS has one thread, unless the user has given it a number, or it cannot be told."""
    return contextlib.nullcontext() if chosen_by_user() else on_one_thread() or contextlib.nullcontext()


def product(a: Array, b: Array, out: Array | None = None) -> Array:
    """`numpy.matmul` of matrices or stacks of them.

    The bits of a long product depend on the number of threads, as those of a BLAS library do, and on nothing else.
    """
    count = max(a.size * b.shape[-1], b.size * a.shape[-2])
    if count < LONG or chosen_by_user() or (one_thread := on_one_thread()) is None:
        return np.matmul(a, b, out=out)
    with one_thread:
        if count < 2 * PART or a.ndim > 2 or b.ndim > 2:
            return np.matmul(a, b, out=out)
        rows = len(a)
        whole = np.empty((rows, b.shape[1]), np.result_type(a, b)) if out is None else out

        def multiply(start: int, stop: int) -> None:
            np.matmul(a[start:stop], b, out=whole[start:stop])

        in_parallel(multiply, rows, -(-rows * PART // count))
        return whole
