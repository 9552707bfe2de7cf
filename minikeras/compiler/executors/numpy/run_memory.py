"""The memory of one run at a time, made when the first run needs it and kept for the next.

Key idea: views into one piece of memory are made once, so a run copies a list of them and begins. Variables that lie one after
the other are read where they are; their new values go to a vector that nobody sees. `memory.py` has decided where all lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core import Record
from ....types import Array
from ...planning.flat_variables import Row, flats_of, memory_of, variables_of
from ...planning.memory_plan import Plan, arranged
from .lowering import View


class Vectors:
    """Variables that a program reads or assigns as vectors, and the memory that their values take turns in.

    Args:
        reading: the instruction that reads them, if there is one.
        writing: the instruction that assigns them, if there is one.
        views: by key of a vector's slot the views of it that the program reads: key, key of what it is a view of, function.
        wanted: the slots whose arrays calls from Python read.
        places: the position of each slot in the list of arrays.
        addressed: the slots whose addresses are wanted, each with its place among the addresses.
    """

    __slots__ = (
        "_addressed",
        "_bound",
        "_current",
        "_flats",
        "_layout",
        "_next",
        "_numbers",
        "_places",
        "_reads",
        "_rows",
        "_variables",
        "_views",
        "_wanted",
    )

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
        self._variables, self._layout = variables_of(record), record.params["layout"]
        self._reads = [slot.key for slot in reading.outputs] if reading else []
        self._views, self._wanted, self._places, self._addressed = views, wanted, places, addressed
        written = [slot.key for slot in flats_of(writing)] if writing else []
        self._flats = [places[key] for key in written]
        self._numbers = np.array([addressed[key] for key in written if key in addressed], np.int64)
        self._rows: list[Row] = []
        self._current: Row | None = None
        self._next: Row | None = None
        self._bound: dict[int, tuple[Row, Any]] = {}

    def begin(self, arrays: list[Any], addresses: Array) -> None:
        """Choose memory for new values that nobody sees."""
        if not self._flats:
            return
        row = next((row for row in self._rows if not row.seen), None)
        if row is None:
            row = Row(self._layout, len(self._flats))
            self._rows.append(row)
            if len(self._rows) > 2:  # somebody outside has held on to the oldest one: it is theirs
                self._bound.pop(id(self._rows.pop(0)), None)
        self._next = row
        for place, flat in zip(self._flats, row.flats, strict=True):
            arrays[place] = flat
        if self._numbers.size:
            addresses[self._numbers] = row.addresses

    def read(self, arrays: list[Any], addresses: Array) -> None:
        """Put the values of the Variables, as vectors and one by one, where the program reads them."""
        row = next((row for row in self._rows if row is not self._next and row.held_by(self._variables)), None)
        if row is None:
            row = Row(self._layout, len(self._reads))
            row.fill(self._variables, self._layout)
        self._current = row  # whose memory must stay while it is read by its address
        found, numbers, own = self._where(row)
        for place, array in found:
            arrays[place] = array
        if numbers.size:
            addresses[numbers] = own

    def _where(self, row: Row) -> Any:
        """The vectors and the views that the program reads, with their places; and addresses with theirs."""
        known = self._bound.get(id(row))
        if known is not None and known[0] is row:
            return known[1]
        arrays = dict(zip(self._reads, row.flats, strict=True))
        for key, base, view in self._views:
            arrays[key] = view.function(arrays[base])
        wanted = {key: array for key, array in arrays.items() if key in self._addressed}
        numbers = np.array([self._addressed[key] for key in wanted], np.int64)
        addresses = np.array([array.ctypes.data for array in wanted.values()], np.int64)
        listed = [(self._places[key], array) for key, array in arrays.items() if key in self._wanted]
        found = listed, numbers, addresses
        if any(row is one for one in self._rows):
            self._bound[id(row)] = row, found
        return found

    def assign(self) -> None:
        """Let the Variables hold what was written."""
        assert self._next is not None
        self._next.assign(self._variables)


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
            Vectors(reading, writing, plan.views_of(reading), wanted, places, addressed) for reading, writing in plan.vectors
        ]

    def begin(self) -> list[Any]:
        """The list of arrays for a run."""
        for vectors in self.vectors:
            vectors.begin(self._list, self.addresses)
        places = self._list.copy()
        places[0] = self
        return places
