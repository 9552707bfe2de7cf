"""The memory plan of a program: the memory of each value, decided once, before the first run.

Most values lie in an arena that is kept. Results and values of Variables, which leave the program, are new arrays in each run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....types import Array
from ...ir import Program, Slot, slots_in
from ...planning import arena_of, lifetimes, memory_of, touched
from ...variable_storage import FlatBuffer, FlatVariables, flats_of, variables_of
from .lowering import AssignFlat, Bind, Call, FlattenKernel, Kernel, LoweredOp, ReadFlat, View

LIMIT = 1 << 25
"""Bytes: a larger result is not kept between the runs."""
LARGE = 1 << 16
"""Bytes: a run drops an array at least as large after its last use, if it is not kept."""


class FlatAccess(NamedTuple):
    """The calls that read and assign the same flattened Variables; either may be missing."""

    reading: ReadFlat | None
    writing: AssignFlat | None


class MemoryPlan:
    """The places of a program's values.

    Attributes:
        registers: by key of a slot, the number of its register. 0 is for the memory of the run, the arguments follow.
        first: the registers before a run: the constants.
        addressed: by key, the position of a slot among the addresses.
        views: by key, the views of memory that exists before the run. Bases come before views.
        bound: keys of values that lie in memory of the caller.
        reads, writes: keys of flat arrays that are read from Variables, and that are assigned to them.
        flat: the calls that read and assign flattened Variables.
        fresh: keys of values that calls write into an array made in each run.
        given_out: those of them that kernels write: large results, whose copy would take as long as the computation.
        exported: keys of values in the arena that leave the program, as copies.
        copied: keys of views that are copied in each run: numbers, and values of Variables that leave the program.
        arena: of all other values.
        placed: by key, the values in the arena, with their byte offsets.
    """

    def __init__(self, program: Program, calls: Sequence[LoweredOp]) -> None:
        self._calls = calls
        self.registers: dict[int, int] = {}
        self.first: list[Any] = [None]
        self.addressed: dict[int, int] = {}
        for slot in (*program.slots(), *(x for call in calls for x in touched(call))):
            if slot.key not in self.registers:
                self.registers[slot.key] = self.register(slot.array)
        self._results = {x.key for x in slots_in(program.results)}
        self._written = {y.key: y for call in calls if isinstance(call, Call) for y in call.results}
        self.reads = {y.key for call in calls if isinstance(call, ReadFlat) for y in call.results}
        self.writes = {x.key for call in calls if isinstance(call, AssignFlat) for x in flats_of(call.record)}
        self.bound = {y.key for call in calls if isinstance(call, Bind) for y in call.results}
        self.flat = _accesses(calls)
        self.copied: set[int] = set()
        self.views: dict[int, View] = {}
        self._roots: dict[int, int] = {}
        self._find_views()
        self._find_what_leaves()
        self._inside = self._placed_inside()
        made = self._written | {y.key: y for call in calls if isinstance(call, FlattenKernel) for y in call.results}
        slots = self._slots = {x.key: x for call in calls for x in touched(call)} | made
        kept = {self._owner(slots[key]).key for key in self.exported}  # copied when their segment is over
        self.arena = arena_of(calls, self._owner, (made.keys() - self.fresh - self.writes).__contains__, kept)
        own = {key: (slots[key], start) for key, start in self.arena.offsets.items()}
        within = {key: (slots[key], own[whole.key][1] + start) for key, (whole, start) in self._inside.items()}
        self.placed = own | within

    def register(self, x: Any) -> int:
        """The register of an operand; a number gets one of its own."""
        if isinstance(x, Slot):
            return self.registers[x.key]
        self.first.append(x)
        return len(self.first) - 1

    def address(self, slot: Slot) -> int:
        """The position of a slot among the addresses."""
        return self.addressed.setdefault(slot.key, len(self.addressed))

    def root(self, key: int) -> int:
        """The value that another one is a view of; itself for one that is no view."""
        return self._roots.get(key, key)

    def _find_views(self) -> None:
        """Try each view on an array like its operand."""
        shapes: dict[int, Array] = {}
        for call in self._calls:
            if not isinstance(call, (Bind, View)):
                continue
            (x,), (y,) = call.operands, call.results
            if isinstance(call, Bind):  # if contiguous, it is the operand's memory, which lives as long
                self._roots[y.key] = self.root(x.key)
                continue
            if x.key not in self._written and x.key not in self.reads and x.key not in self.views:
                continue
            if y.shape == ():  # a number is handled faster than an array of one
                self.copied.add(y.key)
                continue
            base = shapes[x.key] if x.key in shapes else arranged(np.empty(math.prod(x.shape), x.dtype), x)
            view = call.function(base)
            if not view.size or (view.base is not None and np.may_share_memory(view, base)):
                shapes[y.key], self.views[y.key], self._roots[y.key] = view, call, self.root(x.key)

    def _find_what_leaves(self) -> None:
        """Give the results of the program, and the values that an instruction lets escape, arrays of their own."""
        leaving = set(self._results)
        for call in self._calls:
            if isinstance(call, Kernel) and not isinstance(call, AssignFlat) and call.escapes:
                leaving |= {x.key for x in slots_in(call.operands)}
        roots = {self.root(key) for key in leaving}
        addressed = [call for call in self._calls if isinstance(call, Call) and call.addressed]
        needed = {self.root(x.key) for call in addressed for x in touched(call)}
        self.exported = (roots & needed) - self.reads - self.writes
        own = {key for key, y in self._written.items() if key in roots or y.shape in ((), None) or y.bytes > LIMIT}
        self.given_out = self._given_out(addressed) & self.exported
        self.exported -= self.given_out
        self.fresh = (own - self.writes - needed) | self.given_out
        self.copied |= {key for key in leaving if self.root(key) in self.reads}
        self.copied |= {key for key in leaving if key != self.root(key) and self.root(key) in self.exported}
        self.views = {key: view for key, view in self.views.items() if self.root(key) not in self.fresh}

    def _given_out(self, addressed: Sequence[Call]) -> set[int]:
        """Large results of kernels that no kernel reads through a view; none in a program that assigns flattened Variables."""
        if self.writes:
            return set()
        viewed = {self.root(x.key) for call in addressed for x in touched(call) if self.root(x.key) != x.key}
        made = {y.key for call in addressed for y in call.results if y.bytes >= LARGE and y.order is None}
        return (made & self._results) - viewed

    def _placed_inside(self) -> dict[int, tuple[Slot, int]]:
        """The values that are written directly into a flat array: by key that array, and the offset in it."""
        found: dict[int, tuple[Slot, int]] = {}
        for call in self._calls:
            if not isinstance(call, FlattenKernel):
                continue
            (whole,), layout = call.results, call.record.params["layout"]
            for x, start in zip(call.operands, layout.starts, strict=True):
                free = x.key in self._written and not any(x.key in taken for taken in (self.fresh, self.writes, found))
                if free and x.dtype == layout.dtype and call.operands.count(x) == 1:
                    found[x.key] = whole, start * layout.dtype.itemsize
        return found

    def _owner(self, x: Slot) -> Slot:
        """The value that owns the piece of the arena in which another one lies."""
        root = self._slots[self.root(x.key)]
        return self._inside[root.key][0] if root.key in self._inside else root

    # What runs ask ------------------------------------------------------------------------------------------------------------

    def access(self, call: ReadFlat | AssignFlat) -> int:
        """The number of the access in `flat` that a call belongs to."""
        return next(number for number, access in enumerate(self.flat) if any(call is one for one in access))

    def lies_inside(self, slot: Slot, whole: Slot) -> bool:
        """True if a value is written directly into that flat array."""
        return slot.key in self._inside and self._inside[slot.key][0] is whole

    def copied_out(self, call: LoweredOp) -> list[int]:
        """The registers of results that leave the program as copies."""
        return [self.registers[y.key] for y in call.results if y.key in self.exported]

    def runs(self, view: View) -> bool:
        """True if a view is made in each run."""
        (y,) = view.results
        return y.key not in self.views or y.key in self.copied

    def read_from_python(self) -> set[int]:
        """The values whose arrays calls from Python read."""
        found: set[int] = set()
        for call in self._calls:
            seen = self.runs(call) if isinstance(call, View) else not isinstance(call, AssignFlat)
            if seen and not (isinstance(call, Call) and call.addressed):
                found |= {x.key for x in slots_in(call.operands)}
        return found

    def dropped(self) -> dict[int, list[int]]:
        """By the position of a call, the keys of large arrays that have their last use there.

        Operands of kernels are left out: they are dropped with the run, since no call may separate kernels of one segment.
        """
        kept = self._results | self.views.keys() | self.writes | self.reads | self.placed.keys() | self.bound
        slots = {x.key: x for call in self._calls for x in touched(call)}
        found: dict[int, list[int]] = {}
        for key, (_, dies) in lifetimes(self._calls).items():
            if key not in kept and slots[key].array is None and slots[key].bytes >= LARGE:
                found.setdefault(dies, []).append(key)
        return found


def _accesses(calls: Sequence[LoweredOp]) -> list[FlatAccess]:
    """The calls that read and assign the same Variables, in pairs: a program may do so several times."""
    found: dict[Any, list[Any]] = {}
    for number, kind in enumerate((ReadFlat, AssignFlat)):
        turns: Counter[Any] = Counter()
        for call in calls:
            if isinstance(call, kind):
                group = tuple([variable.key for variable in variables_of(call.record)])
                found.setdefault((group, turns[group]), [None, None])[number] = call
                turns[group] += 1
    return [FlatAccess(*pair) for pair in found.values()]


def arranged(flat: Array, slot: Slot) -> Array:
    """Flat memory as an array of the slot's shape, its axes in the slot's order."""
    if slot.order is None:
        return flat.reshape(slot.shape)
    inverse = np.argsort(slot.order)
    return flat.reshape([slot.shape[axis] for axis in slot.order]).transpose(inverse)


# The memory of one run at a time, made when the first run needs it and kept for the next.
#
# Views into it are made once: a run copies a list of them and begins.


class FlatRegisters(FlatVariables):
    """Flattened Variables, bound with the views of them that the program reads to registers and addresses."""

    __slots__ = ("_bound", "_flats", "_numbers", "_plan", "_read", "_reads", "_views", "_wanted", "_written")

    def __init__(self, access: FlatAccess, views: Sequence[View], wanted: set[int], plan: MemoryPlan) -> None:
        reading, writing = access
        record = next(call.record for call in access if call is not None)
        in_place = writing is not None and writing.in_place
        super().__init__(variables_of(record), record.params["layout"], in_place)
        self._reads = [slot.key for slot in reading.results] if reading else []
        self._views, self._wanted, self._plan = views, wanted, plan
        written = [slot.key for slot in flats_of(writing.record)] if writing else []
        self._flats = [plan.registers[key] for key in written]
        self._numbers = np.array([plan.addressed[key] for key in written if key in plan.addressed], np.int64)
        self._bound: dict[int, Any] = {}
        """The values for registers and addresses, by the identity of a buffer that is read, with that buffer."""
        self._written: FlatBuffer | None = None
        self._read: FlatBuffer | None = None
        """The buffers that registers and addresses refer to."""

    def bind_written(self, memory: RunMemory, others: Collection[FlatBuffer] = ()) -> FlatBuffer | None:
        """Choose memory for new values that only programs see: none that others are written to in the same run."""
        if not self._flats:
            return None
        buffer = self.begin(others)
        if buffer is not self._written:
            self._write_to(buffer, memory)
        return buffer

    def _write_to(self, buffer: FlatBuffer, memory: RunMemory) -> None:
        """Put the memory for new values into the registers and addresses that the program writes."""
        self._written = None  # until it is complete, in case of an interrupt
        for register, flat in zip(self._flats, buffer.memory.flats, strict=True):
            memory.registers[register] = flat
        if self._numbers.size:
            memory.addresses[self._numbers] = buffer.memory.addresses
        self._written = buffer

    def bind_read(self, arrays: list[Any], memory: RunMemory) -> None:
        """Put the values of the Variables, flat and one by one, into the registers and addresses that the program reads."""
        buffer = self.read()
        if self.in_place and buffer is not self._written:
            self._write_to(buffer, memory)
        if self._read is buffer:
            return
        self._read = None
        if (bound := self._bound.get(id(buffer))) is None:
            bound = buffer, *self._views_of(buffer)
            kept = {key: one for key, one in self._bound.items() if one[0] in self._buffers}
            self._bound = kept | {id(buffer): bound}
        _, found, numbers, own = bound
        for register, array in found:
            arrays[register] = memory.registers[register] = array
        if numbers.size:
            memory.addresses[numbers] = own
        self._read = buffer

    def _views_of(self, buffer: FlatBuffer) -> Any:
        """The registers with their flat arrays and views; the positions of addresses, and these addresses."""
        arrays = dict(zip(self._reads, buffer.memory.flats, strict=True))
        for view in self._views:
            arrays[view.results[0].key] = view.function(arrays[view.operands[0].key])
        wanted = {key: array for key, array in arrays.items() if key in self._plan.addressed}
        numbers = np.array([self._plan.addressed[key] for key in wanted], np.int64)
        addresses = np.array([array.ctypes.data for array in wanted.values()], np.int64)
        return [(self._plan.registers[key], array) for key, array in arrays.items() if key in self._wanted], numbers, addresses


class RunMemory:
    """The memory of one run at a time: an arena, addresses of values in it, and `flat` Variables in the order of the plan.

    Attributes:
        registers: a run works on a copy.
        addresses: of values, by their position.
        jobs: the objects that an executor has made for these addresses.
        committed: whether the run has made its commit.
    """

    def __init__(self, plan: MemoryPlan) -> None:
        first, registers, addressed = list(plan.first), plan.registers, plan.addressed
        arena = memory_of(plan.arena.size)
        for key, (slot, start) in plan.placed.items():
            first[registers[key]] = arranged(arena[start : start + slot.bytes].view(slot.dtype), slot)
        of_variables: dict[int, list[View]] = {key: [] for key in plan.reads}
        for key, view in plan.views.items():
            if plan.root(key) in plan.reads:
                of_variables[plan.root(key)].append(view)
            else:
                first[registers[key]] = view.function(first[registers[view.operands[0].key]])
        addresses: Array = np.zeros(len(addressed), np.int64)
        for key, number in addressed.items():
            if plan.root(key) not in plan.reads and not any(key in some for some in (plan.writes, plan.bound, plan.given_out)):
                addresses[number] = first[registers[key]].ctypes.data
        wanted = plan.read_from_python()
        self.flat = []
        for access in plan.flat:
            views = [view for y in (access.reading.results if access.reading else ()) for view in of_variables[y.key]]
            self.flat.append(FlatRegisters(access, views, wanted, plan))
        self.committed = False
        self.registers, self.addresses = first, addresses
        self.jobs: dict[Any, Any] = {}

    def begin(self) -> list[Any]:
        """The registers of a run."""
        chosen = list[Any]()  # a step may read what the one before it in the same run has written
        for variables in self.flat:
            if not variables.in_place:
                chosen.append(variables.bind_written(self, chosen))
        registers = self.registers.copy()
        registers[0] = self
        return registers
