"""How much a tape holds: `GradientTape.memory` and `summary`."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..core.tensor import Tensor
from .trace import variable_name


@dataclasses.dataclass(frozen=True, slots=True)
class TapeSummary:
    """How much a tape holds. str() is one line.

    Attributes:
        records: number of Records.
        bytes: held by the recording, each buffer counted once.
        variables: names of the watched Variables.
    """

    records: int
    bytes: int
    variables: tuple[str, ...]

    def __str__(self) -> str:
        names = ", ".join(self.variables) or "no variables"
        return f"{self.records} records, {self.bytes} bytes, watching {names}"


def bytes_of_tape(tape: Any) -> int:
    """Bytes of the arrays that the Records of a tape hold, each buffer counted once."""
    buffers: dict[int, int] = {}
    for record in tape._tape.records:
        outputs = record.outputs if type(record.outputs) is tuple else (record.outputs,)
        for value in (*record.inputs, *outputs, *record.params.values()):
            while hasattr(value, "stacked"):
                value = value.stacked
            array = value._array if isinstance(value, Tensor) else value
            if hasattr(array, "nbytes"):
                while hasattr(getattr(array, "base", None), "nbytes"):
                    array = array.base
                buffers[id(array)] = int(array.nbytes)
    return sum(buffers.values())


def summary_of_tape(tape: Any) -> TapeSummary:
    """The number of Records, the bytes that they hold and the watched Variables."""
    names = [variable_name(tape._tape.accessed[key]) for key in sorted(tape._tape.accessed)]
    return TapeSummary(len(tape._tape.records), bytes_of_tape(tape), tuple(names))
