"""Executors carry out programs: NumPy, which is always there, LLVM where it is installed, CUDA graphs on a GPU.

An executor is a function from a program to an executable, a function of arrays. Instructions without a kernel stay calls of
NumPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...core import importing, logger
from ...types import Array
from ..ir import Program
from ..loops import Body
from ..passes import optimized
from . import llvm
from .numpy.blocks import Uses
from .numpy.builder import build
from .numpy.lowering import lowered

if TYPE_CHECKING:
    from ...data.table import RowBatches

COMPILING = 1.0
"""Seconds that LLVM takes at most to be loaded and to compile the kernels of a usual step."""
SAVED = 0.3
"""The fraction of a step that LLVM saves at least."""


class Executable(Protocol):
    """A program, ready to run any number of times, also in several threads at once."""

    program: Program
    exact: bool
    """True if it gives the bits of an eager run."""
    whole: bool
    """True if each run happens whole or not at all, whatever raises."""
    seconds: float
    """The time of a run by NumPy, roughly."""
    kernels: int
    """Calls from Python in each run; on a GPU also kernels, products and copies."""
    buffers: int
    """Pieces of memory that are kept from run to run, Variables not counted."""
    bytes: int
    """The size of all buffers together."""

    def __call__(self, arguments: Sequence[Array]) -> list[Any]:
        """The leaves of the result: Tensors, and other values as they are. State is read, drawn and assigned anew."""
        ...

    def run_many(self, batches: RowBatches, keep_state: Callable[[], None], stacked: bool) -> list[Any]:
        """Several runs in turn, each with the next batch as its arguments, and with the bits of as many calls.

        If a run fails, those before it are done and its error is raised.

        Args:
            batches: at least one. Iterating gives the arguments of each run; `columns` and `rows` are for an executable that
                gathers by itself.
            keep_state: called before each run that may leave traces if it fails, so that the caller can go back. An executable
                whose runs happen as a whole or not at all need not call it.
            stacked: whether Tensors of the result have the results of all runs, along a new first axis; else those of the last.
        """
        ...


def by_numpy(program: Program) -> Executable:
    """The program as calls of NumPy functions that write into given memory; of CuPy's for values on a GPU."""
    return build(program, lowered(program))


def by_llvm(program: Program) -> Executable:
    """The program as kernels that LLVM compiles, on several threads; NumPy does the rest."""
    with importing:
        from .llvm.encode import encode, has_kernels, in_usual_order
        from .llvm.in_a_row import link
    ordered = in_usual_order(program)
    calls = encode(ordered)
    return build(ordered, calls, link) if has_kernels(calls) else by_numpy(program)


def _compiled_loop(body: Body, shape: tuple[int, ...], operands: Sequence[Any]) -> Callable[..., bool] | None:
    with importing:
        from .llvm.exact import compiled_loop
    return compiled_loop(body, shape, operands)


Uses.compiler, Uses.has_compiler = _compiled_loop, functools.cache(llvm.installed)


def on_device(program: Program) -> Executable | None:
    """A recorded program as graphs, if all its values lie on one GPU that can carry it out; None otherwise, with a warning."""
    if program.library in (None, np):
        return None
    from .cuda_graph.device import device_of
    from .cuda_graph.runner import GraphExecutable
    from .cuda_graph.schedule import Unsupported

    device = device_of(program.library)
    if device is None:
        return None
    try:
        executable = GraphExecutable(program, device)
        executable.prepare()
    except Exception as error:  # a compiler or a library that fails, in kinds of CuPy's own; the operations still run
        reason = str(error) if isinstance(error, Unsupported) else f"{type(error).__name__}: {str(error)[:300]}"
        logger.warning("A function runs on the GPU operation by operation, not as a CUDA graph: %s.", reason)
        return None
    return executable


def natively(program: Program) -> Executable:
    """The program, optimized and ready to run: by LLVM, if it is available, otherwise by NumPy."""
    native = available()
    program = optimized(program, native=native)
    return by_llvm(program) if native else by_numpy(program)


@functools.cache
def available() -> bool:
    """True if LLVM is available. The first call that returns False logs what to install."""
    missing = llvm.missing()
    if missing:
        logger.warning(
            "jit_compile=True: %s not installed, so NumPy carries out compiled functions. To have LLVM compile them: "
            "pip install 'minikeras[jit]'.",
            " and ".join(missing) + (" is" if len(missing) == 1 else " are"),
        )
    return not missing


def is_worth_compiling(seconds: float) -> bool:
    """True if a run that would take NumPy so many seconds is long enough for LLVM to pay.

    It does not matter whether the kernels are compiled already: the same run must give the same bits the second time.
    """
    return seconds * SAVED > COMPILING and llvm.installed()
