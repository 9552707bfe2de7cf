"""Trace: an interpreter below the tape that notes all that happens, by keys, names and lines, for `explain.py`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..core.custom import is_custom
from ..core.effects import State
from ..core.primitive import Primitive, Record
from ..core.stack import Frame, Interpreter
from ..core.tensor import Operand, Tensor, next_key
from ..core.warnings import call_place


class Event(NamedTuple):
    """One thing that happened.

    Attributes:
        name: of the operation, conversion or assignment.
        inputs: keys of the Tensors and Variables that went in.
        numbers: Python numbers that went in.
        outputs: keys of what came out; of a Variable, if it was assigned; none for a conversion to Python or NumPy.
        cut: the reason why no gradient passes, one of the codes in `explain.py`; None if it does.
        detail: what the explanation adds to the reason.
        where: 'file:line' of the user's code.
        moment: a serial number; a Tensor with a higher key was made later.
        custom: whether the user wrote the rule.
        value: the number that a conversion gave, or None.
    """

    name: str
    inputs: tuple[int, ...]
    numbers: tuple[Any, ...]
    outputs: tuple[int, ...]
    cut: str | None = None
    detail: str = ""
    where: str | None = None
    moment: int = 0
    custom: bool = False
    value: Any = None


class Trace(Interpreter):
    """The interpreter that keeps Events. It stays on the stack while its tape stops recording."""

    __slots__ = ("events", "names")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.names: dict[int, str] = {}

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Note what went in, what came out and where; of effects, conversions to Python and assignments."""
        if primitive.effect and (not primitive.escapes or State.VARIABLES in primitive.writes):
            return
        results = outputs if type(outputs) is tuple else (outputs,)
        for x in inputs:
            if hasattr(x, "read_value"):
                self.names[x.key] = variable_name(x)
        cut, detail = _cut(primitive, inputs, params, results)
        event = _event(primitive, inputs, results, params)
        moment, where = next_key(), call_place()
        self.events.append(event._replace(cut=cut, detail=detail, where=where, moment=moment, value=params.get("value")))

    def where_made(self, key: int) -> str | None:
        """The line that made a Tensor, if it was seen."""
        return next((event.where for event in reversed(self.events) if key in event.outputs), None)

    def note_line(self, error: LookupError) -> None:
        """Add to the error about an operation without gradient the line that called it, if it was seen."""
        where = self.line_of(getattr(error, "operation", ""))
        if where:
            error.add_note(f"The operation was called at {where}.")

    def line_of(self, name: str) -> str | None:
        """The last line that called an operation, if there is one."""
        return next((event.where for event in reversed(self.events) if event.name == name), None)


def events_of(records: Iterable[Record]) -> list[Event]:
    """The Events that the Records of a tape without a Trace amount to: no lines, and nothing that was not recorded."""
    return [
        _event(
            record.primitive,
            record.inputs,
            record.outputs if type(record.outputs) is tuple else (record.outputs,),
            record.params,
        )
        for record in records
    ]


def variable_name(variable: Any) -> str:
    """The path of a layer's weight, the name of another Variable."""
    return str(getattr(variable, "path", None) or variable.name)


def _event(primitive: Primitive, inputs: Sequence[Any], results: Sequence[Any], params: dict[str, Any]) -> Event:
    return Event(
        str(params.get("conversion", primitive.name)),
        tuple([x.key for x in inputs if hasattr(x, "key")]),
        tuple([x for x in inputs if type(x) in (int, float, complex)]),
        tuple([y.key for y in results]),
        custom=is_custom(primitive),
    )


def _cut(primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], results: Sequence[Any]) -> tuple[str | None, str]:
    """The reason why no gradient passes an operation, and a detail; None if one does, or none arrives from its inputs."""
    if primitive.escapes:
        return "through_assignment" if primitive.writes else "left_through_numpy", ", ".join(map(variable_name, results))
    if not any(isinstance(x, Operand) and x.dtype.is_differentiable for x in inputs):
        return None, ""
    if not primitive.differentiable:
        return ("stopped" if primitive.name == "stop_gradient" else "non_differentiable_op"), ""
    if not any(y.dtype.is_differentiable for y in results):
        return "integer_dtype", f"the operation {primitive.name} made a tensor of dtype {results[0].dtype.name}"
    return None, ""


# How much a tape holds: `GradientTape.memory` and `summary`.


@dataclasses.dataclass(frozen=True, slots=True)
class TapeSummary:
    """The size of a tape's recording. str() is one line.

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
    for record in tape.tape.records:
        outputs = record.outputs if type(record.outputs) is tuple else (record.outputs,)
        for value in (*record.inputs, *outputs, *record.params.values()):
            while hasattr(value, "stacked"):
                value = value.stacked
            array = value.array if isinstance(value, Tensor) else value
            if hasattr(array, "nbytes"):
                while hasattr(getattr(array, "base", None), "nbytes"):
                    array = array.base
                buffers[id(array)] = int(array.nbytes)
    return sum(buffers.values())


def summary_of_tape(tape: Any) -> TapeSummary:
    """The number of Records, the bytes that they hold and the watched Variables."""
    names = [variable_name(tape.tape.accessed[key]) for key in sorted(tape.tape.accessed)]
    return TapeSummary(len(tape.tape.records), bytes_of_tape(tape), tuple(names))
