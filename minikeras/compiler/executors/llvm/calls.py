"""Kernels with their operands: places in a list of addresses, which are known once all calls are, then sizes and numbers.

A stack has members along its first axes; a kernel does for each member what it does for one array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ....core import Record
from ...ir import Slot
from ...loop_ir.elements import elements_nest
from ...loop_ir.expression import NoNest
from ...loop_ir.nest import Nest
from ...loop_ir.strided import Launch
from ...loops import Body
from ...render.llvm import NestKernel
from ..numpy.lowering import Call
from . import products
from .functions import LIBRARY, is_known

SHARED = 10e-6
"""The least seconds of an instruction whose parts threads share, which costs up to 1 us."""


class KernelCall(Call):
    """A nest, for each member of a stack if there is one.

    Its operands and results lie in memory whose address is known; results that leave the program are copied.

    Args:
        launch: the nest with its results and sizes.
        operands: those of the launch, or slots that have the same values.
        record: the instruction.

    Attributes:
        function: writes its text; a segment carries it out.
        seconds: its time on one thread, roughly; 0 for one that cannot be shared.
    """

    function: Any
    addressed = True

    def __init__(self, launch: Launch, operands: Sequence[Slot], record: Record) -> None:
        results, multiplies = list(launch.results), False
        self._numbers, self.seconds = list(launch.sizes), launch.seconds
        for one in launch.nest.products[:1]:
            way = products.way_of(results[0].dtype, launch.most or one.most)
            self._numbers += way
            multiplies = bool(way.blas)
            self.seconds = 0.0 if multiplies and products.on_one_thread() is None else self.seconds
        if launch.members > 1:
            moving = [*zip(operands, launch.moving, strict=True), *[(y, True) for y in results]]
            self._numbers += [launch.members, *[x.bytes // launch.members if moves else 0 for x, moves in moving]]
        kernel: Any = _kernel_of(launch.nest, multiplies, launch.members > 1)
        super().__init__(kernel, operands, results, record, launch.may_alias)

    def places(self, address: Callable[[Slot], int]) -> list[int]:
        """The operands of its kernel, from the places of slots in the list of addresses."""
        return [*map(address, (*self.operands, *self.results)), *self._numbers]


@functools.lru_cache(1024)
def _kernel_of(nest: Nest, multiplies: bool, is_stack: bool) -> NestKernel:
    """The kernel of a nest, whose text is written once."""
    return NestKernel(nest, multiplies, is_stack)


# Loops -------------------------------------------------------------------------------------------------------------------

LARGEST_LIBRARY = 1 << 12
"""Elements of the largest loop with a function that only NumPy has in vectorized form."""


@functools.lru_cache(4096)
def known(body: Body) -> bool:
    """True if there is a kernel for a body of any size."""
    dtypes = [*[dtype for dtype in body.inputs if dtype is not float], *[step.dtype for step in body.steps]]
    read = tuple([0 if dtype is float else 1 for dtype in body.inputs])
    made = tuple([(register, False, 1) for register in body.outputs])
    try:
        return all(map(is_known, dtypes)) and bool(_kernel_of(elements_nest(body, read, made, 0, 0), False, False).text)
    except (KeyError, NoNest):
        return False


def can_loop(body: Body, size: int) -> bool:
    """True if there is a kernel for a body over so many elements."""
    if size > LARGEST_LIBRARY and any(step.function in LIBRARY for step in body.steps):
        return False
    return known(body)
