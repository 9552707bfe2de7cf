"""The memory of one run at a time, made when the first run needs it and kept for the next.

Views into it are made once: a run copies a list of them and begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....types import Array
from ...planning.arena import memory_of
from ...planning.flat_variables import FlatBuffer, FlatVariables, flats_of, variables_of
from .calls import View
from .memory_plan import FlatAccess, MemoryPlan, arranged


class FlatRegisters:
    """Binds flattened Variables, and the views of them that the program reads, to registers and addresses."""

    __slots__ = ("_addressed", "_flats", "_numbers", "_reads", "_registers", "_variables", "_views", "_wanted")

    def __init__(
        self,
        access: FlatAccess,
        views: Sequence[View],
        wanted: set[int],
        registers: Mapping[int, int],
        addressed: Mapping[int, int],
    ) -> None:
        reading, writing = access
        record = next(call.record for call in access if call is not None)
        self._variables = FlatVariables(variables_of(record), record.params["layout"])
        self._reads = [slot.key for slot in reading.results] if reading else []
        self._views, self._wanted, self._registers, self._addressed = views, wanted, registers, addressed
        written = [slot.key for slot in flats_of(writing.record)] if writing else []
        self._flats = [registers[key] for key in written]
        self._numbers = np.array([addressed[key] for key in written if key in addressed], np.int64)

    def begin(self, arrays: list[Any], addresses: Array) -> None:
        """Choose memory for new values."""
        if not self._flats:
            return
        buffer = self._variables.begin()
        for register, flat in zip(self._flats, buffer.flats, strict=True):
            arrays[register] = flat
        if self._numbers.size:
            addresses[self._numbers] = buffer.addresses

    def read(self, arrays: list[Any], addresses: Array) -> None:
        """Put the values of the Variables, flat and one by one, where the program reads them."""
        buffer = self._variables.read()
        if buffer.bound is None:
            buffer.bound = self._bound(buffer)
        found, numbers, own = buffer.bound
        for register, array in found:
            arrays[register] = array
        if numbers.size:
            addresses[numbers] = own

    def _bound(self, buffer: FlatBuffer) -> Any:
        """The registers with the flat arrays and views that they get; the positions of addresses, and those."""
        arrays = dict(zip(self._reads, buffer.flats, strict=True))
        for view in self._views:
            arrays[view.results[0].key] = view.function(arrays[view.operands[0].key])
        wanted = {key: array for key, array in arrays.items() if key in self._addressed}
        numbers = np.array([self._addressed[key] for key in wanted], np.int64)
        addresses = np.array([array.ctypes.data for array in wanted.values()], np.int64)
        return [(self._registers[key], array) for key, array in arrays.items() if key in self._wanted], numbers, addresses

    def assign(self) -> None:
        """Let the Variables hold what was written."""
        self._variables.assign()


class RunMemory:
    """What one run at a time works in: an arena, `addresses` of values in it, and `flat` Variables in the order of the plan.

    Args:
        plan: where everything lies.
        registers: by key, the number of a register.
        first: the registers before a run.
        addressed: by key, the position among the addresses, for values whose address is wanted.
    """

    def __init__(
        self, plan: MemoryPlan, registers: Mapping[int, int], first: Sequence[Any], addressed: Mapping[int, int]
    ) -> None:
        self._first = list(first)
        arena = memory_of(plan.arena.size)
        for key, (slot, start) in plan.placed.items():
            self._first[registers[key]] = arranged(arena[start : start + slot.bytes].view(slot.dtype), slot)
        of_variables: dict[int, list[View]] = {key: [] for key in plan.reads}
        for key, view in plan.views.items():
            if plan.root(key) in plan.reads:
                of_variables[plan.root(key)].append(view)
            else:
                self._first[registers[key]] = view.function(self._first[registers[view.operands[0].key]])
        self.addresses = np.zeros(len(addressed), np.int64)
        for key, number in addressed.items():
            if plan.root(key) not in plan.reads and key not in plan.writes:
                self.addresses[number] = self._first[registers[key]].ctypes.data
        wanted = plan.read_from_python()
        self.flat = []
        for access in plan.flat:
            views = [view for y in (access.reading.results if access.reading else ()) for view in of_variables[y.key]]
            self.flat.append(FlatRegisters(access, views, wanted, registers, addressed))

    def begin(self) -> list[Any]:
        """The registers of a run."""
        for variables in self.flat:
            variables.begin(self._first, self.addresses)
        registers = self._first.copy()
        registers[0] = self
        return registers
