"""Which memory each result of a program gets: decided once, before the first run.

Key idea: a result is needed from the call that writes it to the last one that reads it or a view of it. Results that are not
needed at the same time share memory, and one that is read for the last time gives its memory to what is made of it. What
somebody outside may come to hold - a result of the program, a Variable's value - gets memory of its own in each run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core import Record
from ...types import Array
from ..executors.numpy.lowering import Call, View
from ..ir import Program, outputs_of
from ..recorder import Slot
from .flat_variables import ALIGNMENT, assign_flat, flats_of, flatten, read_flat, variables_of

LIMIT = 1 << 25
"""Bytes: a result larger than this is not kept between the runs."""


class Plan:
    """Where the results of calls lie.

    Args:
        program: its results belong to who called it.
        calls: what is carried out, in order.

    Attributes:
        offsets: for slots in the program's own memory where they lie, in bytes.
        views: for slots that are views of others: what they are views of, and the View. Bases come before views.
        vectors: the instructions that read and that assign a list of Variables, in pairs.
        reads, writes: the slots of vectors of Variables that are read, and that are assigned, with their instruction and
            their place in it.
        fresh: keys of slots that get memory of their own in each run, for calls that write.
        exported: keys of slots in the program's own memory that leave it, as copies.
        copied: keys of views that are copied in each run: numbers, and what leaves the program of a Variable.
        size: bytes of the program's memory.
        buffers: how many pieces of it are in use at some time.
    """

    def __init__(self, program: Program, calls: Sequence[Call | View | Record]) -> None:
        self.offsets: dict[int, int] = {}
        self.views: dict[int, tuple[int, View]] = {}
        self.reads: dict[int, tuple[Record, int]] = {}
        self.writes: dict[int, tuple[Record, int]] = {}
        self.fresh: set[int] = set()
        self.copied: set[int] = set()
        self.exported: set[int] = set()
        self.size = self.buffers = 0
        self._calls = calls
        self._shapes: dict[int, Array] = {}
        self._slots: dict[int, Slot] = {}
        self._inside: dict[int, tuple[Slot, int]] = {}
        self._find_places(program)
        self._find_vectors()
        self._find_joins()
        self._allocate()

    # What may lie in the program's memory -------------------------------------------------------------------------------------

    def _find_places(self, program: Program) -> None:
        """Views of what the program keeps, vectors of Variables, and results that leave it."""
        kept: set[int] = set()
        self._roots: dict[int, int] = {}
        for call in self._calls:
            if isinstance(call, Call):
                for y in call.results:
                    kept.add(y.key)
                    self._slots[y.key] = y
            elif isinstance(call, View):
                self._view(call, kept)
            elif call.primitive is read_flat:
                for number, flat in enumerate(call.outputs):
                    kept.add(flat.key)
                    self.reads[flat.key] = call, number
        leaving = {x.key for x in program.results if isinstance(x, Slot)}
        for call in self._calls:
            if isinstance(call, Record) and call.primitive is assign_flat:
                self.writes |= {x.key: (call, number) for number, x in enumerate(flats_of(call))}
            elif isinstance(call, Record) and _lets_out(call):
                leaving |= {x.key for x in call.inputs if isinstance(x, Slot)}
        roots = {self.root(key) for key in leaving}
        needed = self._needed()
        self.exported = (roots & needed) - self.reads.keys() - self.writes.keys()
        self.fresh = {
            key for key, slot in self._slots.items() if key in roots or slot.shape in ((), None) or slot.bytes > LIMIT
        } - (self.writes.keys() | needed)
        self.copied |= {key for key in leaving if self.root(key) in self.reads}
        self.copied |= {key for key in leaving if key != self.root(key) and self.root(key) in self.exported}
        self.views = {key: found for key, found in self.views.items() if self.root(key) not in self.fresh}

    def _needed(self) -> set[int]:
        """Slots whose memory must be known before the run."""
        calls = [call for call in self._calls if isinstance(call, Call) and call.addressed]
        return {self.root(x.key) for call in calls for x in (*call.operands, *call.results) if isinstance(x, Slot)}

    def _view(self, call: View, kept: set[int]) -> None:
        x, y = call.operand, call.result
        if x.key not in kept:
            return
        if y.shape == ():  # a number is handled faster than an array of one
            self.copied.add(y.key)
            return
        base = self._shapes.get(x.key)
        if base is None:
            base = arranged(np.empty(math.prod(x.shape), x.dtype), x)
        view = call.function(base)
        if not view.size or (view.base is not None and np.may_share_memory(view, base)):
            kept.add(y.key)
            self._shapes[y.key] = view
            self.views[y.key] = x.key, call
            self._roots[y.key] = self.root(x.key)

    def root(self, key: int) -> int:
        """The slot whose memory a slot lies in."""
        return self._roots.get(key, key)

    def _find_vectors(self) -> None:
        """The instructions that read and assign the same Variables as vectors, in pairs: a program may do so several times."""
        found: dict[tuple[tuple[int, ...], int], list[Record | None]] = {}
        for number, table in enumerate((self.reads, self.writes)):
            turns: Counter[tuple[int, ...]] = Counter()
            for record in [record for record, column in table.values() if column == 0]:
                group = group_of(record)
                found.setdefault((group, turns[group]), [None, None])[number] = record
                turns[group] += 1
        self.vectors = [(reading, writing) for reading, writing in found.values()]

    def vector_of(self, record: Record) -> int:
        """Which of `vectors` an instruction is about."""
        return next(number for number, pair in enumerate(self.vectors) if any(record is one for one in pair))

    def read_from_python(self) -> set[int]:
        """The slots whose arrays calls from Python read."""
        found: set[int] = set()
        for call in self._calls:
            operands: Sequence[Any] = ()
            if isinstance(call, Call):
                operands = () if call.addressed else call.operands
            elif isinstance(call, View):
                operands = [call.operand] if call.result.key not in self.views or call.result.key in self.copied else ()
            elif call.primitive is not assign_flat:
                operands = call.inputs
            found |= {x.key for x in operands if isinstance(x, Slot)}
        return found

    def views_of(self, reading: Record | None) -> list[tuple[int, int, View]]:
        """The views of vectors that are read, bases before views."""
        own = {slot.key for slot in reading.outputs} if reading is not None else set()
        return [(key, base, view) for key, (base, view) in self.views.items() if self.root(key) in own]

    def lies_inside(self, slot: Slot, vector: Slot) -> bool:
        """Whether a slot is written right where it lies in that vector."""
        return slot.key in self._inside and self._inside[slot.key][0] is vector

    def kept(self) -> Iterator[tuple[int, Slot]]:
        """The slots in the program's own memory, by key."""
        return ((key, self._slots[key]) for key in self.offsets)

    def _find_joins(self) -> None:
        """Results that are written right where they lie among others in a vector."""
        for call in self._calls:
            if not (isinstance(call, Record) and call.primitive is flatten):
                continue
            whole, layout = call.outputs, call.params["layout"]
            self._slots[whole.key] = whole
            for x, start in zip(call.inputs, layout.starts, strict=True):
                free = x.key in self._slots and x.key not in (self.fresh | self.writes.keys() | self._inside.keys())
                if free and x.dtype == layout.dtype and x.key != whole.key and call.inputs.count(x) == 1:
                    self._inside[x.key] = whole, start * layout.dtype.itemsize

    # Memory -------------------------------------------------------------------------------------------------------------------

    def _allocate(self) -> None:
        ends = self._ends()
        memory = _Memory()
        owners: dict[int, tuple[int, int]] = {}
        """For each slot that is needed by now its piece of memory, as start and size."""
        for position, call in enumerate(self._calls):
            for number, y in enumerate(self._written(call)):
                if y.key in self.fresh or y.key in self.writes:
                    continue
                if y.key in self._inside:
                    whole, start = self._inside[y.key]
                    if whole.key not in owners:
                        owners[whole.key] = memory.take(whole.bytes)
                        self.offsets[whole.key] = owners[whole.key][0]
                    self.offsets[y.key] = owners[whole.key][0] + start
                    continue
                if y.key not in owners:
                    taken = self._taken_over(call, number, position, ends, owners)
                    owners[y.key] = taken or memory.take(y.bytes)
                    self.offsets[y.key] = owners[y.key][0]
            for key in [key for key in owners if ends.get(key, position) <= position]:
                memory.give(owners.pop(key))
        self.size, self.buffers = memory.size, memory.most

    def _written(self, call: Call | View | Record) -> Sequence[Slot]:
        if isinstance(call, Call):
            return call.results
        return (call.outputs,) if isinstance(call, Record) and call.primitive is flatten else ()

    def _ends(self) -> dict[int, int]:
        """For each slot the position of the last call that reads it, a view of it, or the vector that it lies in."""
        ends: dict[int, int] = {}
        for position, call in enumerate(self._calls):
            operands = call.operands if isinstance(call, Call) else [call.operand] if isinstance(call, View) else call.inputs
            for x in (*operands, *self._written(call)):
                if isinstance(x, Slot):
                    ends[self.root(x.key)] = position
        ends.update(dict.fromkeys(self.exported, len(self._calls)))  # copied when the call that they are part of is over
        for key, (whole, _) in self._inside.items():
            ends[whole.key] = max(ends[whole.key], ends.get(key, 0))
        return ends

    def _taken_over(self, call: Any, number: int, position: int, ends: dict[int, int], owners: dict[int, Any]) -> Any:
        """The memory of an operand that is read here for the last time, if the result may be written into it."""
        if not isinstance(call, Call):
            return None
        y = call.results[number]
        for place in call.reuses[number]:
            x = call.operands[place]
            if (
                isinstance(x, Slot)
                and x.key in owners
                and ends.get(x.key) == position
                and (x.shape, x.dtype, x.order) == (y.shape, y.dtype, y.order)
                and not any(
                    other is not x and isinstance(other, Slot) and self.root(other.key) == x.key for other in call.operands
                )
            ):
                return owners.pop(x.key)
        return None


def _lets_out(record: Record) -> bool:
    """Whether somebody may hold an operand of an instruction after it: a Variable, Python, or a result that is a view of it."""
    if record.primitive.effect:
        return record.primitive.escapes
    return record.primitive is not flatten and any(y.shares for y in outputs_of(record))


class _Memory:
    """Memory that is taken and given back, first fit."""

    def __init__(self) -> None:
        self.size = self.most = 0
        self._used = 0
        self._free: list[tuple[int, int]] = []

    def take(self, size: int) -> tuple[int, int]:
        """Start and size of a piece."""
        size = max(-(-size // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
        self._used += 1
        self.most = max(self.most, self._used)
        for number, (start, room) in enumerate(self._free):
            if room >= size:
                self._free[number : number + 1] = [(start + size, room - size)] if room > size else []
                return start, size
        start = self.size
        if self._free and sum(self._free[-1]) == start:  # the last piece is free, only too small
            start = self._free.pop()[0]
        self.size = start + size
        return start, size

    def give(self, piece: tuple[int, int]) -> None:
        """Take a piece back, and join it with its neighbours."""
        self._used -= 1
        joined: list[tuple[int, int]] = []
        for start, size in sorted([*self._free, piece]):
            if joined and sum(joined[-1]) == start:
                joined[-1] = joined[-1][0], joined[-1][1] + size
            else:
                joined.append((start, size))
        self._free = joined


def group_of(record: Record) -> tuple[int, ...]:
    """The same for all instructions on the same Variables."""
    return tuple([variable.key for variable in variables_of(record)])


def arranged(flat: Array, slot: Slot) -> Array:
    """Memory of as many elements as an array of the slot's shape, its axes in the slot's order."""
    if slot.order is None:
        return flat.reshape(slot.shape)
    inverse = np.argsort(slot.order)
    return flat.reshape([slot.shape[axis] for axis in slot.order]).transpose(inverse)
