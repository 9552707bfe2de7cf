"""Programs as kernels that LLVM compiles for the processor at hand, carried out by threads of our own. Read `kernels.py` first.

llvmlite and SciPy are imported only by the modules of this folder, and these only when a program is to be compiled.
"""

from __future__ import annotations

import importlib.util


def installed() -> bool:
    """Whether llvmlite is installed, which brings LLVM, and SciPy, which brings a BLAS whose functions have addresses.

    >>> installed() in (True, False)
    True
    """
    return all(importlib.util.find_spec(name) is not None for name in ("llvmlite", "scipy"))
