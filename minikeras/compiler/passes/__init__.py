"""The passes over a program before it is compiled, in their order. Each takes a program and returns one with the same bits."""

from __future__ import annotations

from collections.abc import Callable

from ..ir import Program
from ..loops import KINDS
from .forward_state import forward_state, read_together
from .fusion import fuse
from .inlining import inline_composites
from .simplification import eliminate_common_subexpressions, eliminate_dead_code, fold_constants, remove_identities

SIMPLIFICATIONS: tuple[Callable[[Program], Program], ...] = (
    remove_identities,
    fold_constants,
    eliminate_common_subexpressions,
    eliminate_dead_code,
)
PASSES = (*SIMPLIFICATIONS, inline_composites, read_together, forward_state, fuse)


def simplified(program: Program) -> Program:
    """The program without redundant computations."""
    for run_pass in SIMPLIFICATIONS:
        program = run_pass(program)
    return program


def optimized(program: Program, kinds: str = KINDS, graphs: bool = False, native: bool = False) -> Program:
    """The program after all passes.

    Args:
        kinds: the kinds of dtypes that the executor has loops for.
        graphs: whether each instruction costs a kernel launch: elementwise neighbours become one loop even if they share no
            value, and sums over each of several flattened arrays become one.
        native: whether loops become kernels, in which a select costs nothing.
    """
    program = read_together(inline_composites(simplified(program), graphs, native))
    return fuse(forward_state(program, graphs), kinds, graphs)
