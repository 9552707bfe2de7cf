"""Homes of Variables while programs of a device read and assign them: buffers that are updated in place.

A graph has fixed addresses, so a Variable's array is a piece of such a buffer. Values that Python assigns are copied there
before the next run. A Tensor that shares a present value keeps it: the Variables then move to another buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ....core import Variable
from ....layout import Layout
from ....types import Array
from ...ir import Slot
from ...planning import FlatBuffer, FlatVariables, buffer_of, holder_of, unused_buffer
from .device import CuPyDevice
from .preparation import rounded


class Home(NamedTuple):
    """Variables that lie in one piece of memory: one alone, or one column of flattened ones in the order of a layout.

    `slot` has their values at the beginning of a run.
    """

    variables: tuple[Variable, ...]
    layout: Layout
    slot: Slot

    @property
    def keys(self) -> list[int]:
        """The keys of the Variables."""
        return [variable.key for variable in self.variables]

    @property
    def starts(self) -> list[int]:
        """The byte offsets of the Variables."""
        return [start * int(self.layout.dtype.itemsize) for start in self.layout.starts]


class DeviceBuffer(FlatBuffer):
    """Memory of a device for the Variables of a home.

    Attributes:
        bytes: its size.
        layout: of its pieces.
    """

    __slots__ = ("_device", "bytes", "layout")

    def __init__(self, device: CuPyDevice, layout: Layout) -> None:
        self._device, self.layout, size = device, layout, layout.dtype.itemsize
        self.bytes = rounded(layout.size * size)
        memory = device.memory(self.bytes)
        self._base, self.addresses, self.flats = memory.root, [memory.address], []
        places = zip(layout.starts, layout.shapes, strict=True)
        self.pieces = [device.array(memory, start * size, shape, layout.dtype) for start, shape in places]
        del memory  # so that only lasting references are counted
        self._own()

    def address(self, piece: Array) -> int:
        """The address of a piece."""
        number = next(number for number, own in enumerate(self.pieces) if own is piece)
        return int(self.addresses[0] + self.layout.starts[number] * self.layout.dtype.itemsize)

    def _fill(self, piece: Array, array: Array) -> None:
        array = self._device.contiguous(array)
        self._device.copy(self.address(piece), self._device.address(array), array.nbytes)


class DeviceVariables(FlatVariables):
    """The Variables of a home, read and written where they are; a single one may lie in a larger buffer."""

    __slots__ = ("_device", "_writes")

    def __init__(self, device: CuPyDevice, home: Home, writes: bool) -> None:
        super().__init__(home.variables, home.layout, in_place=True)
        self._device, self._writes = device, writes

    def _make(self) -> DeviceBuffer:
        return DeviceBuffer(self._device, self._layout)

    def read(self) -> FlatBuffer:
        """The buffer that the Variables hold, of which nothing else sees a change."""
        before, held = self._current, self._found()
        if held is None:
            is_own = before is not None and list(map(id, before.variables)) == list(map(id, self._variables))
            held = before if before is not None and is_own and not before.is_seen else self._make()
            held.adopt(self._variables)
        if self._writes and held.is_seen:
            held = unused_buffer(self._buffers, self._make, held)
            held.adopt(self._variables)
        self._current = held
        return self._keep(held) if len(held.pieces) == len(self._variables) else held

    def _found(self) -> FlatBuffer | None:
        """The buffer in which they lie now. No variable keeps a piece beyond this call: it would count as a reference."""
        arrays = [variable.array for variable in self._variables]
        if len(arrays) == 1:
            return holder_of(arrays[0])
        found = buffer_of(arrays)
        return found if isinstance(found, DeviceBuffer) and found.layout.starts == self._layout.starts else None

    @property
    def buffer(self) -> DeviceBuffer:
        """The buffer that was read last."""
        assert isinstance(self._current, DeviceBuffer)
        return self._current

    @property
    def address(self) -> int:
        """The place of the first Variable."""
        return self.buffer.address(self._variables[0].array)


class Homes:
    """The homes of a program's Variables. Its methods need joined streams.

    Args:
        device: where they are.
        homes: of all Variables that the program reads or assigns, each with whether it assigns them.
    """

    def __init__(self, device: CuPyDevice, homes: Sequence[tuple[Home, bool]]) -> None:
        self._device = device
        self._homes = [DeviceVariables(device, home, writes) for home, writes in homes]

    def begin(self) -> tuple[int, ...]:
        """Let the Variables lie where nothing else sees them change; their addresses."""
        for home in self._homes:
            home.read()
        return tuple([home.address for home in self._homes])

    @property
    def buffers(self) -> list[DeviceBuffer]:
        """The buffers in which they lie."""
        return list({id(home.buffer): home.buffer for home in self._homes}.values())

    def keep(self) -> Callable[[], None]:
        """Copy all values; the function returned restores them."""
        copies = [(buffer.addresses[0], self._device.memory(buffer.bytes), buffer.bytes) for buffer in self.buffers]
        for address, memory, size in copies:
            self._device.copy(memory.address, address, size)

        def bring_back() -> None:
            for address, memory, size in copies:
                self._device.copy(address, memory.address, size)

        return bring_back
