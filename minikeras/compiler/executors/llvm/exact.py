"""Long loops of plain arithmetic for programs that NumPy carries out: machine code with NumPy's bits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....parallel import thread_count
from ....types import Array
from ...loop_ir.matrices import Kind, Output, Result, given_literals
from ...loops import Body
from . import jit
from .calls import bits, known, loop_kernel
from .runner import Job

EXACT = {
    *("add", "subtract", "multiply", "divide", "negative", "square", "reciprocal", "sqrt", "absolute", "astype", "where"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_not"),
}
"""Functions with one right result, as IEEE 754 has it. It leaves open the sign of a maximum of 0.0 and -0.0."""


class ExactLoop:
    """A body over flat arrays, by as many threads as there are. Several calls at once are carried out side by side.

    Args:
        body: the operations on each element.
        kinds: of its inputs, FULL or SCALAR.
    """

    def __init__(self, body: Body, kinds: Sequence[Kind]) -> None:
        outputs = tuple([Output(register, Result.STORE) for register in body.outputs])
        (self._address,) = jit.addresses([loop_kernel(body, tuple(kinds), outputs, False)])
        self._literals = [bits(float(number)) for _, number in given_literals(body)]
        self._idle: dict[Any, list[Job]] = defaultdict(list)

    def __call__(self, *arrays: Any) -> bool:
        """Write the outputs, which come last and may have the memory of FULL operands; False if an array has gaps."""
        held = [np.asarray(float(x) if type(x) is int else x) for x in arrays]
        if not all([array.flags.c_contiguous for array in held]):
            return False
        idle = self._idle[arrays[-1].size, thread_count()]
        job = idle.pop() if idle else self._job(len(arrays), arrays[-1].size)
        job.addresses[:] = [array.__array_interface__["data"][0] for array in held]
        job()
        idle.append(job)
        return True

    def _job(self, count: int, size: int) -> Job:
        operands = [*range(count), 1, size, *self._literals]
        return Job([(self._address, operands, thread_count())], np.zeros(count, np.int64))


def exact_loop(body: Body, operands: Sequence[Any], outputs: Sequence[Array]) -> ExactLoop | None:
    """The loop of a body over such arrays; None where they are not flat, or the body has more than plain arithmetic."""
    shape = outputs[0].shape
    kinds = [Kind.SCALAR if np.size(x) == 1 else Kind.FULL for x in operands]
    arrays = [*outputs, *[x for x, kind in zip(operands, kinds, strict=True) if kind is Kind.FULL]]
    is_flat = len(shape) == 1 and all(x.shape == shape and x.flags.c_contiguous for x in arrays)
    plain = all(step.function in EXACT and step.dtype.kind in "fb" for step in body.steps)
    return ExactLoop(body, kinds) if is_flat and plain and known(body) else None
