"""The memory of one run at a time, made when the first run needs it and kept for the next.

Views into it are made once: a run copies a list of them and begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core import Record
from ....types import Array
from ...planning.flat_variables import FlatBuffer, FlatVariables, flats_of, memory_of, variables_of
from ...planning.memory_plan import Plan, arranged
from .lowering import View


class FlatRegisters:
    """Where a run finds flattened Variables: the registers, and the addresses, of what it reads and writes of them.

    Args:
        reading: the instruction that reads them, if there is one.
        writing: the instruction that assigns them, if there is one.
        views: the views of them that the program reads: key, key of what it is a view of, function.
        wanted: the slots whose arrays calls from Python read.
        places: the position of each slot in the list of arrays.
        addressed: the slots whose addresses are wanted, each with its place among the addresses.
    """

    __slots__ = ("_addressed", "_flats", "_numbers", "_places", "_reads", "_variables", "_views", "_wanted")

    def __init__(
        self,
        reading: Record | None,
        writing: Record | None,
        views: Sequence[tuple[int, int, View]],
        wanted: set[int],
        places: dict[int, int],
        addressed: dict[int, int],
    ) -> None:
        record: Any = reading or writing
        self._variables = FlatVariables(variables_of(record), record.params["layout"])
        self._reads = [slot.key for slot in reading.outputs] if reading else []
        self._views, self._wanted, self._places, self._addressed = views, wanted, places, addressed
        written = [slot.key for slot in flats_of(writing)] if writing else []
        self._flats = [places[key] for key in written]
        self._numbers = np.array([addressed[key] for key in written if key in addressed], np.int64)

    def begin(self, arrays: list[Any], addresses: Array) -> None:
        """Choose memory for new values."""
        if not self._flats:
            return
        buffer = self._variables.begin()
        for place, flat in zip(self._flats, buffer.flats, strict=True):
            arrays[place] = flat
        if self._numbers.size:
            addresses[self._numbers] = buffer.addresses

    def read(self, arrays: list[Any], addresses: Array) -> None:
        """Put the values of the Variables, flat and one by one, where the program reads them."""
        buffer = self._variables.read()
        if buffer.bound is None:
            buffer.bound = self._bound(buffer)
        found, numbers, own = buffer.bound
        for place, array in found:
            arrays[place] = array
        if numbers.size:
            addresses[numbers] = own

    def _bound(self, buffer: FlatBuffer) -> Any:
        """The flat arrays and the views that the program reads, with their places; places of addresses, and those."""
        arrays = dict(zip(self._reads, buffer.flats, strict=True))
        for key, base, view in self._views:
            arrays[key] = view.function(arrays[base])
        wanted = {key: array for key, array in arrays.items() if key in self._addressed}
        numbers = np.array([self._addressed[key] for key in wanted], np.int64)
        addresses = np.array([array.ctypes.data for array in wanted.values()], np.int64)
        return [(self._places[key], array) for key, array in arrays.items() if key in self._wanted], numbers, addresses

    def assign(self) -> None:
        """Let the Variables hold what was written."""
        self._variables.assign()


class RunMemory:
    """What one run at a time works in: the program's own memory, and the vectors of Variables that it reads and writes.

    Args:
        plan: where everything lies.
        places: the position of each slot in the list of arrays.
        first: that list before a run.
        addressed: the slots whose addresses are wanted, each with its place among the addresses.

    Attributes:
        addresses: of those slots.
        vectors: in the order of the plan.
    """

    def __init__(self, plan: Plan, places: dict[int, int], first: Sequence[Any], addressed: dict[int, int]) -> None:
        self._list = list(first)
        arena = memory_of(plan.size)
        for key, slot in plan.kept():
            start = plan.offsets[key]
            self._list[places[key]] = arranged(arena[start : start + slot.bytes].view(slot.dtype), slot)
        for key, (base, view) in plan.views.items():
            if plan.root(key) not in plan.reads:
                self._list[places[key]] = view.function(self._list[places[base]])
        self.addresses = np.zeros(len(addressed), np.int64)
        for key, number in addressed.items():
            if plan.root(key) not in plan.reads and key not in plan.writes:
                self.addresses[number] = self._list[places[key]].ctypes.data
        wanted = plan.read_from_python()
        self.vectors = [
            FlatRegisters(reading, writing, plan.views_of(reading), wanted, places, addressed)
            for reading, writing in plan.vectors
        ]

    def begin(self) -> list[Any]:
        """The list of arrays for a run."""
        for vectors in self.vectors:
            vectors.begin(self._list, self.addresses)
        places = self._list.copy()
        places[0] = self
        return places
