"""The memory of one run at a time, made when the first run needs it and kept for the next.

Views into it are made once: a run copies a list of them and begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ....core.ownership import Owned
from ....types import Array
from ...planning.arena import memory_of
from ...planning.flat_variables import FlatBuffer, FlatVariables, flats_of, variables_of
from .calls import View
from .memory_plan import FlatAccess, MemoryPlan, arranged


class Turn:
    """What a run begins with. Two take turns, as the buffers of flattened Variables do, so neither changes from run to run.

    Attributes:
        registers: a run works on a copy.
        addresses: of values, by their position.
        written, read: by flattened Variables, the buffer that registers and addresses are those of.
        jobs: what an executor has made for these addresses.
    """

    __slots__ = ("addresses", "jobs", "read", "registers", "written")

    def __init__(self, registers: list[Any], addresses: Array, count: int) -> None:
        self.registers, self.addresses = registers, addresses
        self.jobs: dict[Any, Any] = {}
        self.written: list[FlatBuffer | None] = [None] * count
        self.read: list[FlatBuffer | None] = [None] * count


class FlatRegisters:
    """Binds flattened Variables, and the views of them that the program reads, to registers and addresses."""

    __slots__ = (
        "_addressed",
        "_bound",
        "_flats",
        "_number",
        "_numbers",
        "_reads",
        "_registers",
        "_variables",
        "_views",
        "_wanted",
        "in_place",
    )

    def __init__(
        self,
        number: int,
        access: FlatAccess,
        views: Sequence[View],
        wanted: set[int],
        registers: Mapping[int, int],
        addressed: Mapping[int, int],
    ) -> None:
        reading, writing = access
        record = next(call.record for call in access if call is not None)
        self._number = number
        self.in_place = writing is not None and writing.in_place
        """Whether the memory for new values is chosen by the executor, right before they are written."""
        self._variables = FlatVariables(variables_of(record), record.params["layout"], self.in_place)
        self._reads = [slot.key for slot in reading.results] if reading else []
        self._views, self._wanted, self._registers, self._addressed = views, wanted, registers, addressed
        written = [slot.key for slot in flats_of(writing.record)] if writing else []
        self._flats = [registers[key] for key in written]
        self._numbers = np.array([addressed[key] for key in written if key in addressed], np.int64)
        self._bound: WeakKeyDictionary[FlatBuffer, Any] = WeakKeyDictionary()
        """What registers and addresses get, by the buffer that is read."""

    def begin(self, turn: Turn) -> None:
        """Choose memory for new values."""
        if not self._flats:
            return
        buffer = self._variables.begin()
        if turn.written[self._number] is buffer:
            return
        turn.written[self._number] = None  # until it is whole, for an interrupt on the way
        for register, flat in zip(self._flats, buffer.flats, strict=True):
            turn.registers[register] = flat
        if self._numbers.size:
            turn.addresses[self._numbers] = buffer.addresses
        turn.written[self._number] = buffer

    def read(self, arrays: list[Any], turn: Turn) -> None:
        """Put the values of the Variables, flat and one by one, where the program reads them."""
        buffer = self._variables.read()
        if turn.read[self._number] is buffer:
            return
        turn.read[self._number] = None
        if buffer not in self._bound:
            self._bound[buffer] = self._views_of(buffer)
        found, numbers, own = self._bound[buffer]
        for register, array in found:
            arrays[register] = turn.registers[register] = array
        if numbers.size:
            turn.addresses[numbers] = own
        turn.read[self._number] = buffer

    def _views_of(self, buffer: FlatBuffer) -> Any:
        """The registers with the flat arrays and views that they get; the positions of addresses, and those."""
        arrays = dict(zip(self._reads, buffer.flats, strict=True))
        for view in self._views:
            arrays[view.results[0].key] = view.function(arrays[view.operands[0].key])
        wanted = {key: array for key, array in arrays.items() if key in self._addressed}
        numbers = np.array([self._addressed[key] for key in wanted], np.int64)
        addresses = np.array([array.ctypes.data for array in wanted.values()], np.int64)
        return [(self._registers[key], array) for key, array in arrays.items() if key in self._wanted], numbers, addresses

    @property
    def writes_in_place(self) -> bool:
        """Whether the memory for new values is that of the present ones."""
        return self._variables.writes_in_place

    @property
    def held(self) -> tuple[Owned, int]:
        """What the memory for new values is made of, and the references to it."""
        return self._variables.held

    def assign(self) -> None:
        """Let the Variables hold what was written."""
        self._variables.assign()


class RunMemory:
    """What one run at a time works in: an arena, addresses of values in it, and `flat` Variables in the order of the plan.

    Args:
        plan: where everything lies.
        registers: by key, the number of a register.
        first: the registers before a run.
        addressed: by key, the position among the addresses, for values whose address is wanted.
    """

    def __init__(
        self, plan: MemoryPlan, registers: Mapping[int, int], first: Sequence[Any], addressed: Mapping[int, int]
    ) -> None:
        first = list(first)
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
            if plan.root(key) not in plan.reads and key not in plan.writes and key not in plan.bound:
                addresses[number] = first[registers[key]].ctypes.data
        wanted = plan.read_from_python()
        self.flat = []
        for number, access in enumerate(plan.flat):
            views = [view for y in (access.reading.results if access.reading else ()) for view in of_variables[y.key]]
            self.flat.append(FlatRegisters(number, access, views, wanted, registers, addressed))
        self.committed = False
        """Whether the run has made its commit."""
        self.turn = Turn(first, addresses, len(self.flat))
        self._other = Turn(first.copy(), addresses.copy(), len(self.flat))

    @property
    def addresses(self) -> Array:
        """Of values, by their position."""
        return self.turn.addresses

    def begin(self) -> list[Any]:
        """The registers of a run."""
        turn, self._other = self._other, self.turn
        self.turn = turn
        for variables in self.flat:
            if not variables.in_place:
                variables.begin(turn)
        registers = turn.registers.copy()
        registers[0] = self
        return registers
