"""Batches that are rows of arrays on the device: kernels of the graph gather them, by numbers sent for all its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from ....core import Record
from ....core.arrays import namespace, to_numpy
from ....core.effects import only_checks
from ....core.registry import operations
from ....errors import MinikerasError
from ....types import Array
from ...ir import Program, Slot
from .device import Device
from .lowering import Emitter
from .memory_plan import COLUMNS, ROWS, MemoryPlan, Place
from .nodes import Launch, Node
from .schedule import Schedule

if TYPE_CHECKING:
    from ....data.table import RowBatches


class Gathering(NamedTuple):
    """Nodes that bring the rows of a step to the places of arguments, and what tells them from others."""

    key: Any
    nodes: Sequence[Node]


class RowGather:
    """Tells whether the steps of a program can be taken in a row, and gathers for them."""

    def __init__(self, device: Device, program: Program, schedule: Schedule, plan: MemoryPlan) -> None:
        self._device, self._arguments, self._plan = device, program.arguments, plan
        given = {x.key for x in program.arguments}
        self._checks = [call for call in schedule.first if only_checks(call.record.primitive)]
        others = [call for call in schedule.first if not only_checks(call.record.primitive)]
        alone = all(x.shape is None or x.key in schedule.hosted for call in others for x in (*call.operands, *call.results))
        checked = all(call.record.inputs[0].key in given and len(call.operands) == 1 for call in self._checks)
        self._possible = bool(program.arguments) and alone and checked and not schedule.calls
        self.rows = max([x.shape[0] for x in program.arguments if x.shape], default=1)
        """How many rows a batch has at most."""
        self._passed: dict[int, Any] = {}
        """Columns that all checks let pass, by their identity."""
        self._known: dict[Any, Gathering] = {}

    def fits(self, batches: RowBatches) -> bool:
        """Whether the columns are arrays on the device that can be read where they lie, and all their rows may be."""
        columns = batches.columns
        if not self._possible or len(columns) != len(self._arguments) or batches.rows[0].size > self.rows:
            return False
        pairs = list(zip(columns, self._arguments, strict=True))
        shape = batches.rows.shape[1:]
        alike = all((*shape, *column.shape[1:]) == x.shape and column.dtype == x.dtype for column, x in pairs)
        plain = alike and all(namespace(column) is not np and self._device.is_whole(column) for column in columns)
        return plain and all(self._passes(column, x) for column, x in pairs)

    def _passes(self, column: Array, x: Slot) -> bool:
        """Whether a check of all rows passes: then those of a batch do."""
        tests = [call.record.params["test"] for call in self._checks if call.record.inputs[0].key == x.key]
        known = self._passed.get(id(column))
        if not tests or (known is not None and known() is column):
            return True
        values = to_numpy(column)
        try:
            for test in tests:
                test(values)
        except (MinikerasError, ValueError, TypeError):  # one of the rows is refused, perhaps by the step that takes it
            return False
        self._passed = {id(column): ref(column)} | {key: one for key, one in self._passed.items() if one() is not None}
        return True

    def gathering(self, batches: RowBatches, keys: Any) -> Gathering:
        """Nodes for these columns; slots have keys that the program does not use."""
        columns = batches.columns
        key = tuple([(self._device.address(column), column.shape, column.dtype) for column in columns]), batches.rows.shape[1:]
        if key not in self._known:
            self._known = {key: self._made(columns, batches.rows[0].size, keys)}
        return self._known[key]

    def _made(self, columns: Sequence[Array], count: int, keys: Any) -> Gathering:
        rows = Slot(next(keys), (count,), np.dtype(np.int64))
        self._plan.put(rows, Place(ROWS, 0))
        nodes = []
        for column, x in zip(columns, self._arguments, strict=True):
            source = Slot(next(keys), tuple(column.shape), column.dtype)
            self._plan.put(source, Place(COLUMNS, self._device.address(column)))
            if x.bytes:
                batch = Slot(x.key, (count, *column.shape[1:]), x.dtype)
                record = Record(operations.gather_rows, [source, rows], {"axis": -len(column.shape)}, batch)
                nodes.append(Launch(Emitter(keys).kernels(record) or [], [record]))
        return Gathering(object(), nodes)
