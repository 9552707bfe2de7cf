"""Who carries out programs on the CPU: NumPy, which is always there, or the machine that Numba compiles.

Key idea: both carry out the same instructions; they differ in how those become calls. The machine costs seconds when it is
compiled, once on a computer, and a fraction of one when it is loaded in a process, so it is for who asks for it, or for runs
that are long enough (`earns`).
"""

from __future__ import annotations

import functools

from ..core.notices import logger
from . import native
from .lower import Lowering
from .program import Program
from .replay import Replay

COMPILING = 10.0
"""Seconds that the machine costs where it was never compiled; one where it is found on disk."""
SAVED = 0.3
"""The part of a step that it saves at least."""


def replay(program: Program, fast: bool) -> Replay:
    """A program, ready to run; with `fast` by the machine if it can be had, else by NumPy."""
    return Replay(program, _words() if fast and available() else Lowering)


@functools.cache
def available() -> bool:
    """Whether the machine can be had. The first question that is answered no says what to install."""
    if native.available():
        return True
    logger.warning(
        "jit_compile=True: Numba and SciPy are not installed, so NumPy carries out compiled functions. For the machine that "
        "Numba compiles: pip install 'minikeras[jit]'."
    )
    return False


def earns(seconds: float) -> bool:
    """Whether a run that would take NumPy so many seconds is long enough for the machine to pay.

    That it may be on disk already is not asked: the same run is to give the same bits the second time.
    """
    return seconds * SAVED > COMPILING and native.available()


def _words() -> type[Lowering]:
    from .native.encode import Encoding

    return Encoding
