"""Programs as kernels that LLVM compiles for this processor, carried out by threads of our own.

llvmlite and SciPy are imported only by the modules of this folder, and these only when a program is to be compiled.
"""

from __future__ import annotations

import importlib.util

NEEDED = {"llvmlite": "llvmlite", "scipy": "SciPy"}
"""Modules and their names: llvmlite brings LLVM, SciPy a BLAS whose functions have addresses."""


def missing() -> list[str]:
    """The packages that kernels need and that are not installed.

    >>> set(missing()) <= {"llvmlite", "SciPy"}
    True
    """
    return [name for module, name in NEEDED.items() if importlib.util.find_spec(module) is None]


def installed() -> bool:
    """True if all packages that kernels need are installed.

    >>> installed() == (not missing())
    True
    """
    return not missing()
