"""The calls of a step in an order that happens whole or not at all: Python's preparation, kernels, Python's assignments.

Consecutive kernels are one call from Python. Those that write weights and slots come last: by then nothing can fail, so they
may write in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from ....core import Primitive, State, assigned, read_variable
from ...ir import slots_in
from ...passes.forward_state import only_counts, touched
from ...variable_storage import flats_of, variables_of
from ..numpy.lowering import AssignFlat, Call, FlattenKernel, Kernel, LoweredOp, ReadFlat, View


class Phase(IntEnum):
    """The phase of a step in which a call is carried out."""

    EARLY = 0
    """Needs nothing that a kernel computes, and changes nothing."""
    COUNTED = 1
    """Changes an optimizer's counters, which are restored if the kernels fail."""
    KERNELS = 2
    WRITERS = 3
    """Kernels that only write new values of flattened Variables."""
    LATE = 4


def in_phases(calls: list[LoweredOp]) -> list[LoweredOp]:
    """The calls in the order of their phases, with `in_place` set where safe; unchanged if Python has to run in between."""
    phases = _phases(calls)
    if phases is None:
        return calls
    order = sorted(range(len(calls)), key=lambda number: phases[number])
    late = [call for call, phase in zip(calls, phases, strict=True) if phase is Phase.LATE]
    assignments = [call for call in calls if isinstance(call, AssignFlat)]
    early = [call for call, phase in zip(calls, phases, strict=True) if phase is Phase.EARLY]
    # An interrupted commit carries late calls out again: a value that one of them reads must still be there.
    changed = {call.record.inputs[0].key for call in late if does(call, assigned)}
    kept = [
        isinstance(call, (AssignFlat, View))
        or does(call, assigned)
        or (does(call, read_variable) and call.record.inputs[0].key not in changed)
        for call in late
    ]
    # A failure of a later call would not have to undo anything but random streams.
    traceless = [
        not _writes(call) or "optimizer" in call.record.params or set(call.record.primitive.writes) == {State.STREAM}
        for call in early
    ]
    if _all_written_last(calls, phases) and all(kept) and all(traceless):
        for call in assignments:
            call.in_place = True
    return [calls[number] for number in order]


def _phases(calls: Sequence[LoweredOp]) -> list[Phase] | None:
    """The phase of each call; None if a call of Python needs a kernel's result that another kernel needs from it."""
    needed: set[int] = set()
    for call in reversed(calls):
        if _is_kernel(call) or any(y.key in needed for y in call.results):
            needed.update(x.key for x in slots_in(call.operands))
    flats = {x.key for call in calls if isinstance(call, AssignFlat) for x in flats_of(call.record)}
    of: dict[int, Phase] = {}
    found: list[Phase] = []
    written: set[int] | None = set()
    for call in calls:
        latest = max([of.get(x.key, Phase.EARLY) for x in slots_in(call.operands)], default=Phase.EARLY)
        own = _phase(call, latest, written, flats)
        if own is Phase.LATE and any(y.key in needed for y in call.results):
            return None
        if own in (Phase.COUNTED, Phase.LATE) and _writes(call):
            keys = touched(call.record)
            written = None if keys is None or written is None else written | keys
        of.update((y.key, own) for y in call.results)
        found.append(own)
    return found


def _phase(call: LoweredOp, latest: Phase, written: set[int] | None, flats: set[int]) -> Phase:
    if _is_kernel(call):
        return Phase.WRITERS if all(y.key in flats for y in call.results) else Phase.KERNELS
    if isinstance(call, (View, FlattenKernel)):
        return latest
    effect = call.record.primitive
    if is_counted(call) and latest < Phase.KERNELS:
        return Phase.COUNTED
    if latest >= Phase.KERNELS:
        return Phase.LATE
    if isinstance(call, Kernel) and effect.reads:
        keys = touched(call.record)  # None: any Variable
        if written != set() if keys is None or written is None else keys & written:  # late calls may have assigned it
            return Phase.LATE
    # Calls that make the numbers of a step, or draw, come early; calls that assign come late.
    makes = call.results and State.OPERANDS not in call.record.primitive.writes
    return Phase.EARLY if makes or not _writes(call) else Phase.LATE


def is_counted(call: LoweredOp) -> bool:
    """True if a call only changes the counters of an optimizer."""
    return isinstance(call, Kernel) and only_counts(call.record)


def does(call: LoweredOp, primitive: Primitive) -> bool:
    """True if a call of Python carries out an instruction of this primitive."""
    return isinstance(call, Kernel) and call.record.primitive is primitive


def _is_kernel(call: LoweredOp) -> bool:
    return isinstance(call, Call) and call.addressed


def _writes(call: LoweredOp) -> bool:
    return isinstance(call, Kernel) and bool(call.record.primitive.writes)


def _all_written_last(calls: Sequence[LoweredOp], phases: Sequence[Phase]) -> bool:
    """True if every assigned flat array is read as one before, and written by kernels whose results nothing else reads."""
    writers = [call for call, phase in zip(calls, phases, strict=True) if phase is Phase.WRITERS]
    made = [y.key for call in writers for y in call.results]
    assignments = [call for call in calls if isinstance(call, AssignFlat)]
    flats = [x.key for call in assignments for x in flats_of(call.record)]
    reads = [_group(call) for call in calls if isinstance(call, ReadFlat)]
    groups = [_group(call) for call in assignments]
    others = [x.key for call in calls if not isinstance(call, AssignFlat) for x in slots_in(call.operands)]
    return (
        bool(flats)
        and sorted(made) == sorted(set(flats)) == sorted(flats)
        and sorted(reads) == sorted(groups) == sorted(set(groups))
        and not set(made) & set(others)
    )


def _group(call: LoweredOp) -> tuple[int, ...]:
    """The keys of the Variables of a read or an assignment."""
    return tuple([variable.key for variable in variables_of(call.record)])
