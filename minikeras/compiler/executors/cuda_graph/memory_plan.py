"""The memory plan of a program on a device: places are decided once, so that a graph has fixed addresses.

Constants, arguments and results have places of their own, results side by side, so that one copy fetches them. Intermediate
values share memory if they are not alive at the same time. Values that Python makes for a step, and Variables, lie elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...ir import Program, Slot
from ...planning import Interval, allocate, lifetimes, touched
from .nodes import LaunchNode
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
        for number, home in enumerate(schedule.home_slots):
            self._places[home.key] = Place(HOMES + number, 0)
        first = self.size
        for slot in (schedule.root(x)[0] for x in schedule.exported):
            if slot.key not in self._places:
                self._places[slot.key] = Place(MEMORY, self._take(slot.bytes))
        self.results = first, self.size - first
        arena = allocate(self._intervals())
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

    def _intervals(self) -> Iterator[Interval]:
        """The lifetimes of values in the shared part, each for whole pieces of memory, in the order of birth."""
        nodes = self._schedule.nodes
        owners = {x.key: self._owner(x)[0] for node in nodes for x in touched(node)}
        slots = {slot.key: slot for slot in owners.values()}
        for key, (born, dies) in lifetimes(nodes, lambda key: owners[key].key).items():
            if key not in self._places:
                yield Interval(key, rounded(slots[key].bytes), born, dies, self._donors(nodes[born], slots[key]))

    def _donors(self, node: object, result: Slot) -> Sequence[int]:
        """The operands over which the only kernel of a node may write a result if this is their last use."""
        if not isinstance(node, LaunchNode) or len(node.kernels) != 1 or not node.kernels[0].may_alias:
            return ()
        (kernel,) = node.kernels
        number = next((place for place, y in enumerate(kernel.outputs) if y.key == result.key), None)
        if number is None:
            return ()
        given = [self._owner(x) for x in kernel.inputs]
        return [
            given[place][0].key
            for place in kernel.may_alias[number]
            if given[place][1] == 0
            and given[place][0].bytes == kernel.inputs[place].bytes == result.bytes
            and sum(owner.key == given[place][0].key for owner, _ in given) == 1
        ]
