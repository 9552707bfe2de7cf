"""The memory plan of a program on a device: places are decided once, so that a graph has fixed addresses.

Constants, arguments and results have places of their own, results side by side, so that one copy fetches them. Intermediate
values share memory if they are not alive at the same time. Values that Python makes for a step, and Variables, lie elsewhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from ....layout import Layout
from ....types import Array
from ...ir import Program, Slot
from ...planning import DEVICE_ALIGNMENT, arena_of
from ...variable_storage import FlatBuffer, FlatVariables, holder_of
from .schedule import Home, NodeSchedule

NUMBER = 8
"""Bytes of a Python number."""
MEMORY, STEP, ROWS, COLUMNS = 0, 1, 2, 3
"""Bases of places: memory, the values that Python makes for a step, row numbers, zero; then one for each home."""
HOMES = 4


def rounded(size: int) -> int:
    """A size rounded up to the alignment of pieces of memory."""
    return -(-size // DEVICE_ALIGNMENT) * DEVICE_ALIGNMENT


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


# Variables: a graph has fixed addresses, so their arrays are pieces of buffers that are updated in place. Values that Python
# assigns are copied there before the next run. A Tensor that shares a present value keeps it: the Variables move then.


class DeviceMemory:
    """Memory of a device for the Variables of a home, see `HostMemory`.

    Attributes:
        address, bytes: its place and size.
    """

    def __init__(self, device: Any, layout: Layout) -> None:
        self._device, self.layout, self._size = device, layout, int(layout.dtype.itemsize)
        self.bytes = rounded(layout.size * self._size)
        memory = device.memory(self.bytes)
        self.root, self.address = memory.root, memory.address
        places = zip(layout.starts, layout.shapes, strict=True)
        self.pieces = [device.array(memory, start * self._size, shape, layout.dtype) for start, shape in places]

    def place(self, number: int) -> int:
        """The address of one of the pieces."""
        return int(self.address + self.layout.starts[number] * self._size)

    def fill(self, number: int, array: Array) -> None:
        """Copy an array to one of the pieces."""
        array = self._device.contiguous(array)
        self._device.copy(self.place(number), self._device.address(array), array.nbytes)


class HomeVariables(FlatVariables):
    """The Variables of a home; a single one may lie in a larger buffer.

    Args:
        device: where they are.
        home: the Variables.
        writes: whether the program assigns them.
    """

    __slots__ = ("_device", "_writes")

    def __init__(self, device: Any, home: Home, writes: bool) -> None:
        super().__init__(home.variables, home.layout, in_place=True)
        self._device, self._writes = device, writes

    def _make(self) -> FlatBuffer:
        return FlatBuffer(DeviceMemory(self._device, self._layout))

    def _found(self) -> FlatBuffer | None:
        return holder_of(self._variables[0].array) if len(self._variables) == 1 else super()._found()

    def settle(self) -> int:
        """Let the Variables lie where nothing else sees a change; the address of the first. Needs joined streams."""
        held = self.read()
        if self._writes and held.is_seen:
            held = self._current = self.begin()
            held.adopt(self._variables)
        first = self._variables[0].array
        return int(held.memory.place(next(place for place, piece in enumerate(held.pieces) if piece is first)))

    @property
    def memory(self) -> DeviceMemory:
        """The memory that was settled last."""
        assert self._current is not None
        return cast(DeviceMemory, self._current.memory)
