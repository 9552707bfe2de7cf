"""NumericsCheck: an interpreter that stops at the first operation which makes a NaN or an infinity of finite values.

As long as it is on the stack, backward sweeps send their operations down the stack too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np

from ..core.arrays import to_numpy
from ..core.backward import sweep
from ..core.primitive import Primitive
from ..core.stack import Frame, Interpreter, current
from ..core.tensor import Operand
from ..core.warnings import call_place, describe
from ..errors import NotFiniteError


class NumericsCheck(Interpreter):
    """Checks every operation of this thread within its block, forward and backward."""

    __slots__ = ("__weakref__",)

    def __enter__(self) -> NumericsCheck:
        return self if self in active_checks() else super().__enter__()

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Check the results if the inputs are finite."""
        for output in outputs if type(outputs) is tuple else (outputs,):
            index = first_bad_index(output)
            if index is not None and all(first_bad_index(x) is None for x in inputs):
                raise NotFiniteError(_complaint(primitive, inputs, output, index))


def first_bad_index(operand: Any) -> tuple[int, ...] | None:
    """The index of the first element that is NaN or infinite; None if all are finite."""
    while hasattr(operand, "stacked"):
        operand = operand.stacked
    array = to_numpy(operand._array) if isinstance(operand, Operand) else operand
    if isinstance(array, (float, complex)):
        array = np.asarray(array)
    if not hasattr(array, "dtype") or array.dtype.kind not in "fc":
        return None
    # Adding up is the fastest test; only a sum that is not finite needs a look at each element.
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum(dtype=None)):
            return None
    bad = np.argwhere(~np.isfinite(array))
    return tuple(int(i) for i in bad[0]) if len(bad) else None


def active_checks() -> list[NumericsCheck]:
    """The checks on this thread's stack."""
    found, frame = [], current()
    while frame is not None:
        if isinstance(frame.interpreter, NumericsCheck):
            found.append(frame.interpreter)
        frame = frame.below
    return found


def _complaint(primitive: Primitive, inputs: Sequence[Any], output: Any, index: tuple[int, ...]) -> str:
    """What was made, of what, and where."""
    while hasattr(output, "stacked"):
        output = output.stacked
    value = to_numpy(output._array)[index]
    kind = "NaN" if np.isnan(value) else "Inf"
    layer, differentiated = _surroundings()
    return (
        f"{primitive.name} made {kind} at index {list(index)} of its result {describe(output)} from finite inputs "
        f"({', '.join(describe(x) for x in inputs)})"
        + (f", in the gradient of {differentiated}" if differentiated else "")
        + (f", in layer '{layer}'" if layer else "")
        + f", called at {call_place()}."
    )


def _surroundings() -> tuple[str | None, str | None]:
    """The innermost layer that is being called, and the operation that is being differentiated, if there are such."""
    layer, differentiated = None, None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is sweep.__code__ and differentiated is None:
            record = frame.f_locals["record"]
            differentiated = record.primitive.name
        owner: Any = frame.f_locals.get("self") if frame.f_code.co_name == "__call__" else None
        if layer is None and hasattr(owner, "call") and isinstance(getattr(owner, "name", None), str):
            layer = str(getattr(owner, "path", owner.name))
        frame = frame.f_back
    return layer, differentiated
