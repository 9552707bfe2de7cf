"""The memory plan of a program on a device: places are decided once, so that a graph has fixed addresses.

Constants, arguments and results have places of their own, results side by side, so that one copy fetches them. Intermediate
values share memory if they are not alive at the same time. Values that Python makes for a step, and Variables, lie elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

from ...ir import Program, Slot
from ...planning import DEVICE_ALIGNMENT, arena_of
from .preparation import rounded
from .schedule import NodeSchedule

NUMBER = 8
"""Bytes of a Python number."""
MEMORY, STEP, ROWS, COLUMNS = 0, 1, 2, 3
"""Bases of places: memory, the values that Python makes for a step, row numbers, zero; then one for each home."""
HOMES = 4


class Place(NamedTuple):
    """A byte offset from a base."""

    base: int
    start: int


class DevicePlan:
    """The places of a program's values.

    Attributes:
        size: of the memory.
        buffers: the most values in the shared part at the same time.
        step_bytes: the size of the values that Python makes for a step: numbers, and values on the host.
        constants: slots whose values are copied there once.
        results: their offset, and their size in bytes.
    """

    def __init__(self, program: Program, schedule: NodeSchedule) -> None:
        self._schedule = schedule
        self._places: dict[int, Place] = {}
        self.size = 0
        self.constants = [slot for slot in program.slots() if slot.array is not None]
        for slot in (*self.constants, *program.arguments):
            self._places[slot.key] = Place(MEMORY, self._take(slot.bytes))
        self.step_bytes = 0
        for y in (y for call in (*schedule.first, *schedule.calls) for y in call.results):
            if y.shape is None or y.key in schedule.hosted:
                self._places[y.key] = Place(STEP, self.step_bytes)
                self.step_bytes += 16 * -(-max(y.bytes, NUMBER) // 16)
        for y in (y for call in schedule.first for y in call.results):
            if y.key not in self._places:
                self._places[y.key] = Place(MEMORY, self._take(y.bytes))
        for number, home in enumerate(schedule.homes):
            self._places[home.slot.key] = Place(HOMES + number, 0)
        first = self.size
        for slot in (schedule.root(x)[0] for x in schedule.exported):
            if slot.key not in self._places:
                self._places[slot.key] = Place(MEMORY, self._take(slot.bytes))
        self.results = first, self.size - first
        own = {*self._places}
        arena = arena_of(schedule.nodes, lambda x: self._owner(x)[0], lambda key: key not in own, alignment=DEVICE_ALIGNMENT)
        self.buffers = arena.buffers
        for key, start in arena.offsets.items():
            self._places[key] = Place(MEMORY, self.size + start)
        self.size += rounded(arena.size)

    def place(self, x: Slot) -> Place:
        """The place at which a value begins."""
        x, start = self._owner(x)
        base, first = self._places[x.key]
        return Place(base, first + start)

    def put(self, x: Slot, place: Place) -> None:
        """Set the place of a value that is no part of the program."""
        self._places[x.key] = place

    def _take(self, size: int) -> int:
        start = self.size
        self.size += rounded(size)
        return start

    def _owner(self, x: Slot) -> tuple[Slot, int]:
        """The slot that owns the memory of a value, and the byte offset there."""
        x, start = self._schedule.root(x)
        while x.key in self._schedule.inside:
            x, more = self._schedule.inside[x.key]
            x, further = self._schedule.root(x)
            start += more + further
        return x, start
