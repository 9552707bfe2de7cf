"""Programs as numbers for one compiled machine: what Numba does for compiled steps, if it is there.

Numba and SciPy are imported only within `interpreter.py`, which is imported when it is wanted. Read it first.
"""

from __future__ import annotations

import importlib.util


def installed() -> bool:
    """Whether the machine can be had: Numba is installed, and SciPy, which brings the BLAS that Numba calls.

    >>> installed() in (True, False)
    True
    """
    return all(importlib.util.find_spec(name) is not None for name in ("numba", "scipy"))
