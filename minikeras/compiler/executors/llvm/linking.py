"""From the steps of a program to segments: kernels that follow one another are one call, what writes in place is a commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...ir import Program
from ...planning.flat_variables import flats_of, variables_of
from ..numpy.builder import Builder, Linked, Step, is_quiet
from ..numpy.lowering import AssignFlat
from ..numpy.replay import Closure, exporting
from .calls import KernelCall
from .in_a_row import InARow, layout_of
from .phases import is_counted
from .segment import Commit, Segment

HOLDING = 4e-3
"""Seconds that kernels take at most for Python's other threads to wait until all have ended: they wait 5 ms for their turn.

What writes in place has to be waited for, so that no thread sees a value change; in longer steps it is a call of its own.
"""


def link(program: Program, steps: Sequence[Step], builder: Builder) -> Linked:
    """The steps of a program, kernels that follow one another as one segment, and what writes in place as a commit."""
    trains = any("optimizer" in record.params for record in program.records)
    joined = list(_in_segments(steps, builder, trains))
    segments = [number for number, (calls, _) in enumerate(joined) if isinstance(calls[0], KernelCall)]
    flat = [call for call, _ in steps if isinstance(call, AssignFlat)]
    if len(segments) != 1:  # a view of an empty array is made by Python, between kernels
        for call in flat:
            call.in_place = False
    if not any(call.in_place for call in flat):
        return Linked([(calls[0], closure) for calls, closure in joined])
    (at,) = segments
    first = next(number for number in range(at + 1) if all(is_counted(calls[0]) for calls, _ in joined[number:at]))
    before = [(calls[0], closure) for calls, closure in joined[:first]]
    (calls, _), flats = joined[at], {x.key for call in flat for x in flats_of(call.record)}
    long = sum(call.seconds for call in calls) > HOLDING
    computing = [call for call in calls if long and not {y.key for y in call.results} <= flats]
    writing = Segment([call for call in calls if call not in computing], builder, holds=True, flushes=True)
    exported = [register for call in calls if call not in computing for register in builder.exported(call)]
    counting, assigning = [closure for _, closure in joined[first:at]], [closure for _, closure in joined[at + 1 :]]
    optimizers = [one[0].record.params["optimizer"] for one, _ in joined[first:at]]
    held = {variable.key for call in flat for variable in variables_of(call.record)}
    counters = [one for optimizer in optimizers for one in optimizer.variables if one.key not in held]
    commit = Commit(counting, writing, exported, assigning, counters)
    if computing:
        return Linked([*before, (computing[0], _closure(computing, builder, trains)), (calls[0], commit)])
    late = [one[0] for one, _ in joined[at + 1 :]]
    layout = layout_of(program, [(call, closure, bool(is_quiet(call))) for call, closure in before], late, builder)
    in_a_row = None if layout is None else InARow(program, layout, commit)
    return Linked([*before, (calls[0], commit)], in_a_row)


def _in_segments(steps: Sequence[Step], builder: Builder, trains: bool) -> Iterator[tuple[Sequence[Any], Closure]]:
    """Closures with the calls that they carry out."""
    waiting: list[KernelCall] = []
    for call, closure in steps:
        if closure is None:
            waiting.append(call)
            continue
        if waiting:
            yield waiting, _closure(waiting, builder, trains)
            waiting = []
        yield [call], closure
    if waiting:
        yield waiting, _closure(waiting, builder, trains)


def _closure(calls: Sequence[KernelCall], builder: Builder, trains: bool) -> Closure:
    exported = [register for call in calls for register in builder.exported(call)]
    return exporting(Segment(calls, builder, flushes=trains), exported)
