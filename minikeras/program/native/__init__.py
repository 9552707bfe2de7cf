"""Programs as numbers for one compiled machine: what Numba does for compiled steps, if it is there.

May import what `program` may import, and NumPy; Numba and SciPy only within `machine.py`, which is imported when it is wanted.
Read `machine.py` first.
"""

from __future__ import annotations

import importlib.util


def available() -> bool:
    """Whether the machine can be had: Numba is installed, and SciPy, which brings the BLAS that Numba calls.

    >>> available() in (True, False)
    True
    """
    return all(importlib.util.find_spec(name) is not None for name in ("numba", "scipy"))
