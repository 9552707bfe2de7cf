"""Programs as bytecode for one interpreter that Numba compiles. Read `interpreter.py` first.

Numba and SciPy are imported only by the modules of this folder, and these only when a program is to be compiled.
"""

from __future__ import annotations

import importlib.util


def installed() -> bool:
    """Whether Numba is installed, and SciPy, which brings the BLAS that Numba calls.

    >>> installed() in (True, False)
    True
    """
    return all(importlib.util.find_spec(name) is not None for name in ("numba", "scipy"))
