"""Execution of a program on a device: Python's preparation, graphs, and Python's calls between them.

A run happens whole or not at all as far as Python is concerned: all that may refuse comes before the last graph, which alone
writes Variables; counters and random streams go back if it is not reached. What fails on the device itself, such as memory that
cannot be read, ends CUDA's context with all that is in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from ....core import HeldLocks, Record, Variable, assigned, only_checks, operations, restore, snapshot
from ....core.arrays import is_array, namespace, to_numpy
from ....errors import MinikerasError
from ....types import Array
from ...ir import Program, Slot, changed_by
from ...loop_ir.expression import DTYPES
from ...loop_ir.fusion import fuse_groups
from ...passes import optimized
from ...passes.device import lower_convolutions, on_host
from ...planning import touched
from ..numpy.lowering import Kernel, kernel_of
from ..numpy.replay import leaves_of, locks_of, rollback_of
from .device import CuPyDevice, Memory
from .epilogues import add_epilogues
from .graphs import Base, CompiledKernels, Graphs, NoAlgorithm
from .lt import MatrixProduct
from .memory_plan import COLUMNS, MEMORY, ROWS, STEP, DevicePlan, HomeVariables, Place, rounded
from .nodes import TARGET, Emitter, LaunchNode, Node
from .schedule import NodeSchedule, Unsupported

if TYPE_CHECKING:
    from ....data.table import RowBatches


STEPS = 8
"""The number of steps in one graph, where that many are wanted in a row."""


class GraphExecutable:
    """A recorded program, ready to run on a device as graphs; one run at a time.

    Args:
        recorded: the program, over the device's slots.
        device: where it runs.

    Attributes:
        program: after all passes, over NumPy's slots.

    Raises:
        Unsupported: if it needs Python where a graph cannot stop.
    """

    exact = False
    whole = True

    def __init__(self, recorded: Program, device: CuPyDevice) -> None:
        twin = recorded.over_numpy()
        program = lower_convolutions(optimized(twin, kinds=DTYPES, graphs=True))
        self.program = program = fuse_groups(program, TARGET)
        self._device, self._code, self._hosted = device, CompiledKernels(device), on_host(recorded, twin, program)
        self._keys, self._locks, rollback = program.unused_keys(), locks_of(program), rollback_of(program)
        if rollback is None:
            raise Unsupported("code of the user may change state in the middle of a step")
        self._rollback = rollback
        self._refused: set[MatrixProduct] = set()
        """Products that cublasLt does not carry out."""
        self._follow()

    def _follow(self) -> None:
        """Make a schedule and all that depends on it."""
        schedule = NodeSchedule(self.program, self._hosted, self._keys, self._refused)
        add_epilogues(schedule, self._refused)
        schedule.commit()
        self.schedule, self.plan = schedule, DevicePlan(self.program, schedule)
        self._homes = [HomeVariables(self._device, home, schedule.assigns(home)) for home in schedule.homes]
        self._rows = RowGather(self._device, self.program, schedule, self.plan)
        self._memory: Memory | None = None
        self._graphs: Graphs | None = None
        self._known: dict[tuple[int, ...], Graphs] = {}
        """By the addresses of homes, the present graphs and those before."""
        self._changed: list[Variable] = []
        """The Variables that calls of Python may assign."""
        for record in [call.record for call in (*schedule.first, *schedule.calls, *schedule.last)]:
            self._changed += changed_by(record.primitive, record.inputs, record.params) if record.primitive.writes else []
        self.kernels = len(schedule.first) + len(schedule.nodes) + len(schedule.last)
        self.seconds, self.buffers, self.bytes = 2e-6 * self.kernels, self.plan.buffers, self.plan.size

    def prepare(self) -> None:
        """Compile kernels, ask for algorithms and take memory, so that failures come before the first run."""
        with HeldLocks(self._locks), self._device.joined():
            self._begin()

    def __call__(self, arguments: Sequence[Array]) -> list[Any]:
        """The leaves of the result: Tensors, and other values as they are."""
        with HeldLocks(self._locks), self._device.joined():
            return leaves_of(self.program, [self._run(arguments)])

    def run_many(self, batches: RowBatches, keep_state: Callable[[], None], stacked: bool) -> list[Any]:
        """Several runs in turn, some as one graph where the rows of a data set are on the device."""
        parts: list[list[Array]] = []
        position = 0
        with HeldLocks(self._locks), self._device.joined():
            while position < len(batches):
                together = STEPS if len(batches) - position >= STEPS and not stacked and self._rows.fits(batches) else 1
                if together > 1 and self._graphs is not None and self._graphs.are_captured:
                    gathering = self._rows.gathering(batches, self._keys)
                    arrays = self._run((), batches.rows[position : position + together], gathering)
                else:
                    together, arrays = 1, self._run(batches.arguments(position))
                parts = [*parts, [namespace(array).stack([array]) for array in arrays]] if stacked else [arrays]
                position += together
        return leaves_of(self.program, parts, stacked)

    # A run --------------------------------------------------------------------------------------------------------------------

    def _run(self, arguments: Sequence[Array], rows: Array = None, gathering: Gathering | None = None) -> list[Array]:
        """A step, or several as one graph that gathers their `rows` where the data set lies; the arrays of the results."""
        graphs, schedule = self._begin(), self.schedule
        room = self._device.empty(self.plan.results[1])  # taken now, when a lack of memory can still be reported
        with contextlib.ExitStack() as undone:
            self._undo(undone, graphs)
            values: dict[int, Any] = {x.key: array for x, array in zip(self.program.arguments, arguments, strict=False)}
            for slot in self.program.arguments[: len(arguments)]:
                self._store(slot, values[slot.key])
            steps = np.zeros((1 if rows is None else len(rows), self.plan.step_bytes), np.uint8)
            for made in steps:
                for call in schedule.first:
                    if rows is None or not only_checks(call.record.primitive):  # all rows have passed
                        self._carry_out(call, values, made)
                for call in schedule.last if not schedule.calls else ():
                    self._carry_out(call, values, made)
            self._device.send(self._at(STEP), steps)
            segments = schedule.segments
            for number, call in enumerate(schedule.calls):
                graphs.enqueue(number, segments[number])
                self._carry_out(call, values, steps[0])
                if any(y.shape is None for y in call.results):
                    self._device.send(self._at(STEP), steps)
            for call in schedule.last if schedule.calls else ():
                self._carry_out(call, values, steps[0])
            if gathering is None:
                graphs.enqueue(len(segments) - 1, segments[-1])
            else:
                self._device.send(self._at(ROWS), rows)
                graphs.enqueue(gathering.key, [*gathering.nodes, *schedule.nodes], len(steps))
            undone.pop_all()
        graphs.runs += 1
        return self._brought_out(values, room)

    def _undo(self, undone: contextlib.ExitStack, graphs: Graphs) -> None:
        """Restore the present state if the run fails."""
        if not graphs.are_captured:  # nodes are enqueued one by one, and some may have written
            undone.callback(self._kept_homes())
        undone.callback(restore, snapshot(self._changed))
        undone.callback(self._rollback())

    def _kept_homes(self) -> Callable[[], None]:
        """Copy the values of all Variables; the function returned brings them back."""
        memories = {one.address: one.bytes for one in [home.memory for home in self._homes]}
        copies = [(address, self._device.memory(size), size) for address, size in memories.items()]
        for address, copy, size in copies:
            self._device.copy(copy.address, address, size)

        def bring_back() -> None:
            for address, copy, size in copies:
                self._device.copy(address, copy.address, size)

        return bring_back

    def _begin(self) -> Graphs:
        """The graphs for the present places of Variables."""
        while (places := tuple([home.settle() for home in self._homes])) not in self._known:
            runs = 0 if self._graphs is None else self._graphs.runs
            self._code.add(self.schedule.nodes)
            graphs = Graphs(self._device, self._code, self.plan, self._bases(places), runs)
            try:
                graphs.try_products(self.schedule.nodes)
            except NoAlgorithm as error:
                self._refused.add(error.product)
                self._follow()
            else:
                self._known = dict([*self._known.items()][-1:]) | {places: graphs}
        self._graphs = self._known[places]
        return self._graphs

    def _bases(self, homes: Sequence[int]) -> list[Base]:
        """The bases of places."""
        step, rows = self.plan.step_bytes, 8 * self._rows.rows
        sizes = [rounded(self.plan.size), rounded(STEPS * step), rounded(STEPS * rows)]
        if self._memory is None:
            self._memory = self._device.memory(sum(sizes))
            for slot in self.plan.constants:
                place = self._memory.address + self.plan.place(slot).start
                self._device.send(place, np.ascontiguousarray(slot.array, slot.dtype))
        start = self._memory.address
        moving = [Base(start, 0), Base(start + sizes[0], step), Base(start + sizes[0] + sizes[1], rows), Base(0, 0)]
        return [*moving, *[Base(address, 0) for address in homes]]

    def _at(self, base: int) -> int:
        assert self._graphs is not None
        return self._graphs.bases[base].address

    def _carry_out(self, call: Kernel, values: dict[int, Any], made: Array) -> None:
        """Let Python carry out an instruction; numbers and values on the host go to their places in the step's values."""
        record = call.record
        host = record.primitive is assigned or any(y.key in self.schedule.hosted for y in call.results)
        known = [host and isinstance(x, Slot) and x.array is not None for x in record.inputs]
        inputs = [x.array if one else self._value(x, values) for x, one in zip(record.inputs, known, strict=True)]
        xp = next((namespace(x) for x in inputs if is_array(x)), np)
        found = kernel_of(record, xp)(*inputs)
        for slot, result in zip(call.results, found if type(record.outputs) is tuple else (found,), strict=True):
            if slot.shape is None or slot.key in self.schedule.hosted:
                values[slot.key] = result
                own = np.asarray(result, float if slot.shape is None else slot.dtype)
                start = self.plan.place(slot).start
                made[start : start + own.nbytes] = np.frombuffer(own.tobytes(), np.uint8)
            else:
                self._store(slot, result)

    def _value(self, x: Any, values: dict[int, Any]) -> Any:
        """An operand for Python, in memory of its own: it may be held afterwards."""
        if not isinstance(x, Slot) or x.key in values:
            return values[x.key] if isinstance(x, Slot) else x
        assert self._graphs is not None
        memory = self._device.empty(x.bytes)
        self._device.copy(memory.address, self._graphs.address(x), x.bytes)
        return self._device.array(memory, 0, x.shape, x.dtype)

    def _store(self, slot: Slot, array: Array) -> None:
        """Copy an array to the place of a slot."""
        assert self._graphs is not None
        to = self._graphs.address(slot)
        if namespace(array) is np:
            self._device.send(to, np.ascontiguousarray(array, slot.dtype))
        else:
            whole = self._device.contiguous(array)  # named, so that it lives until it is read
            self._device.copy(to, self._device.address(whole), slot.bytes)

    def _brought_out(self, values: dict[int, Any], room: Memory) -> list[Array]:
        """The results, in memory of their own."""
        start, size = self.plan.results
        if size:
            self._device.copy(room.address, self._at(MEMORY) + start, size)
        return [
            values[x.key]
            if x.key in self.schedule.hosted
            else self._device.array(room, self.plan.place(x).start - start, x.shape, x.dtype)
            for x in self.schedule.exported
        ]


# Batches that are rows of arrays on the device: kernels of the graph gather them, by numbers sent for all its steps.


class Gathering(NamedTuple):
    """Nodes that copy the rows of a step to the places of arguments, and the key of these nodes."""

    key: Any
    nodes: Sequence[Node]


class RowGather:
    """Decides whether the steps of a program can be taken in a row, and gathers their rows."""

    def __init__(self, device: CuPyDevice, program: Program, schedule: NodeSchedule, plan: DevicePlan) -> None:
        self._device, self._arguments, self._plan = device, program.arguments, plan
        given = {x.key for x in program.arguments}
        self._checks = [call for call in schedule.first if only_checks(call.record.primitive)]
        others = [call for call in schedule.first if not only_checks(call.record.primitive)]
        alone = all(x.shape is None or x.key in schedule.hosted for call in others for x in touched(call))
        checked = all(call.operands[0].key in given and len(call.operands) == 1 for call in self._checks)
        self._possible = bool(program.arguments) and alone and checked and not schedule.calls
        self.rows = max([x.shape[0] for x in program.arguments if x.shape], default=1)
        """The most rows of a batch."""
        self._passed: dict[int, Any] = {}
        """Columns that all checks let pass, by their identity."""
        self._known: dict[Any, Gathering] = {}

    def fits(self, batches: RowBatches) -> bool:
        """True if the columns are arrays on the device that can be read in place, and all their rows pass the checks."""
        columns = batches.columns
        if not self._possible or len(columns) != len(self._arguments) or batches.rows[0].size > self.rows:
            return False
        pairs = list(zip(columns, self._arguments, strict=True))
        shape = batches.rows.shape[1:]
        alike = all((*shape, *column.shape[1:]) == x.shape and column.dtype == x.dtype for column, x in pairs)
        plain = alike and all(namespace(column) is not np and self._device.is_whole(column) for column in columns)
        return plain and all(self._passes(column, x) for column, x in pairs)

    def _passes(self, column: Array, x: Slot) -> bool:
        """True if all rows pass the checks: then those of a batch do."""
        tests = [call.record.params["test"] for call in self._checks if call.record.inputs[0].key == x.key]
        known = self._passed.get(id(column))
        if not tests or (known is not None and known() is column):
            return True
        values = to_numpy(column)
        try:
            for test in tests:
                test(values)
        except (MinikerasError, ValueError, TypeError):  # a row is refused, and the step that takes it will raise
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
                nodes.append(LaunchNode(Emitter(keys).kernels(record) or [], record))
        return Gathering(object(), nodes)
