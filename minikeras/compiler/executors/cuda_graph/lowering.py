"""From the instructions of a program to kernels; instructions without a kernel are left to other executors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ....core import Record
from ...ir import Slot, slots_of
from ...loop_ir.bodies import NoNest
from ...loop_ir.lowering import Lowering
from ...loop_ir.reductions import loop_nest
from ...loop_ir.strided import Lowered, spread
from ...loops import Body
from ...render.cuda import CUDA, Schedule
from ...render.cuda_functions import is_known
from .nodes import CudaKernel

MOST_ELEMENTS = 1 << 31
"""The limit for the elements of an array."""


class Emitter:
    """Writes kernels for instructions.

    Args:
        keys: for new slots.
    """

    def __init__(self, keys: Iterator[int]) -> None:
        self._keys = keys
        self._lowering = Lowering(self._temporary, lambda lowered: Schedule(lowered.nest).pieces)

    def _temporary(self, shape: tuple[int, ...], dtype: Any) -> Slot:
        """A slot for an intermediate value between two kernels of one instruction."""
        return Slot(next(self._keys), shape, np.dtype(dtype))

    def kernels(self, record: Record) -> list[CudaKernel] | None:
        """The kernels of an instruction, in order: none if its results have no elements; None if there is no kernel."""
        if any(not is_known(x.dtype) or math.prod(x.shape or ()) >= MOST_ELEMENTS for x in slots_of(record)):
            return None
        nests = self._lowering.nests(record)
        try:
            return None if nests is None else list(map(kernel_of, nests))
        except NoNest:
            return None


def kernel_of(lowered: Lowered) -> CudaKernel:
    """The kernel of a nest.

    Raises:
        NoNest: if a function or a dtype is not known.
    """
    nest, operands, results = lowered
    found = CUDA(nest, elements=max([math.prod(x.shape or ()) for x in (*operands, *results)])).text()
    return CudaKernel(nest.name, found.text, operands, results, found.blocks, found.threads, found.may_alias)


def is_written(body: Body) -> bool:
    """True if there are functions and types for all steps of a body."""
    operands = [Slot(key, (2,) if dtype is not float else None, dtype) for key, dtype in enumerate(body.inputs)]
    results = [Slot(len(operands) + key, (2,), body.dtypes[register]) for key, register in enumerate(body.outputs)]
    try:
        kernel_of(loop_nest("loop", (2,), body, [spread(x, (2,)) for x in operands], results))
    except NoNest:
        return False
    return all(is_known(dtype) for dtype in body.dtypes.values())
