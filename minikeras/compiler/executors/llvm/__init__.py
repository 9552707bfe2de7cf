"""Programs as kernels that LLVM compiles for the processor at hand, carried out by threads of our own. Read `kernels.py` first.

llvmlite and SciPy are imported only by the modules of this folder, and these only when a program is to be compiled.
"""

from __future__ import annotations

import importlib.util

NEEDED = {"llvmlite": "llvmlite", "scipy": "SciPy"}
"""Modules and their names: llvmlite brings LLVM, SciPy a BLAS whose functions have addresses."""


def missing() -> list[str]:
    """What is not installed of that which kernels need.

    >>> set(missing()) <= {"llvmlite", "SciPy"}
    True
    """
    return [name for module, name in NEEDED.items() if importlib.util.find_spec(module) is None]


def installed() -> bool:
    """Whether all is installed that kernels need.

    >>> installed() == (not missing())
    True
    """
    return not missing()
