"""What is done to a program before it is replayed, in this order. Each step is a file of its own and gives the same bits.

Key idea: a step takes a program and returns another one; none knows of the others. Read them in the order of `STEPS`.
"""

from __future__ import annotations

from collections.abc import Callable

from .common import common_results
from .constants import constant_results
from .dead import without_dead
from .expand import expanded
from .fuse import fused
from .program import Program
from .views import without_identities

STEPS: tuple[Callable[[Program], Program], ...] = (
    without_identities,
    constant_results,
    common_results,
    without_dead,
    expanded,
    fused,
)


def improved(program: Program) -> Program:
    """The program after all steps."""
    for step in STEPS:
        program = step(program)
    return program
