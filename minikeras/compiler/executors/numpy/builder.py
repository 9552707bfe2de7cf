"""From calls to an executable: memory is planned, each value gets a register, each call becomes a closure over registers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....core import Record, Variable, Write, assigned, brought_together, namespace, read_variable, to_device
from ...ir import Program, slots_in
from ...planning import address_of, touched
from .lowering import AssignFlat, Bind, Call, FlattenKernel, Kernel, LoweredOp, ReadFlat, View, kernel_of
from .memory_plan import MemoryPlan
from .replay import Closure, Replay, copy_of, exporting, giving_one, giving_several, with_memory, writing_into

Step = tuple[Any, Closure | None]
"""A call and its closure; None for an addressed call, which waits for a linker."""


Linker = Callable[[Program, Sequence[Step], MemoryPlan], tuple[Sequence[tuple[Any, Closure]], Any]]
"""A function that makes closures of addressed calls: all calls with their closures, and `in_a_row` as for `Replay`."""


def build(program: Program, calls: Sequence[LoweredOp], link: Linker | None = None) -> Replay:
    """A program and its lowered instructions, ready to run."""
    plan = MemoryPlan(program, calls)
    steps: Any = list(Builder(plan, calls).steps())
    steps, in_a_row = (steps, None) if link is None else link(program, steps, plan)
    return Replay(program, steps, plan, exact=link is None, in_a_row=in_a_row)


class Builder:
    """Makes closures over registers.

    Args:
        plan: of the registers and of memory.
        calls: the program.
    """

    def __init__(self, plan: MemoryPlan, calls: Sequence[LoweredOp]) -> None:
        self.plan, self._registers, self._calls = plan, plan.registers, calls

    def steps(self) -> Iterator[Step]:
        """The closures, in order."""
        dropped = self.plan.dropped()
        for position, call in enumerate(self._calls):
            if isinstance(call, Call) and call.addressed:
                yield call, None
            else:
                closure = _CLOSURES[type(call)](self, call)
                if closure is not None:
                    yield call, closure
            if position in dropped:
                yield call, Drop([self._registers[key] for key in dropped[position]])

    # By kind of call; None for one that needs no run --------------------------------------------------------------------------

    def _call(self, call: Call) -> Closure:
        """A call that writes into memory that exists, or that is made for it."""
        operands, results = list(map(self.plan.register, call.operands)), [self._registers[y.key] for y in call.results]
        made = [(self._registers[y.key], y) for y in call.results if y.key in self.plan.fresh]
        closure = writing_into(call.function, [*operands, *results])
        if made:
            return with_memory(closure, made)
        return exporting(closure, self.plan.copied_out(call))

    def _view(self, call: View) -> Closure | None:
        if not self.plan.runs(call):
            return None
        (x,), (y,) = call.operands, call.results
        function = (lambda array: copy_of(call.function(array))) if y.key in self.plan.copied else call.function
        return giving_one(function, [self._registers[x.key]], self._registers[y.key])

    def _bind(self, call: Bind) -> Closure:
        (x,), (y,) = call.operands, call.results
        source, to, place, dtype = self._registers[x.key], self._registers[y.key], self.plan.address(y), y.dtype

        def bind(registers: list[Any]) -> None:
            array = registers[to] = np.ascontiguousarray(registers[source], dtype)
            registers[0].addresses[place] = address_of(array)

        return bind

    def _read_flat(self, call: ReadFlat) -> Closure:
        number = self.plan.access(call)
        return lambda registers: registers[0].flat[number].bind_read(registers, registers[0])

    def _assign_flat(self, call: AssignFlat) -> Closure:
        number = self.plan.access(call)
        return lambda registers: registers[0].flat[number].assign()

    def _flatten(self, call: FlattenKernel) -> Closure | None:
        """Copy the operands that are not written directly into the flat array."""
        (whole,), layout = call.results, call.record.params["layout"]
        to, operands = self._registers[whole.key], enumerate(call.operands)
        moved = [(self._registers[x.key], number) for number, x in operands if not self.plan.lies_inside(x, whole)]

        def gather(registers: list[Any]) -> None:
            pieces = layout.pieces(registers[to])
            for register, number in moved:
                pieces[number][...] = registers[register]

        return gather if moved else None

    def _kernel(self, call: Kernel) -> Closure:
        record = call.record
        special = _VARIABLES.get(record.primitive)
        if special is not None:
            return special(self, record)
        operands = {x.xp for x in slots_in(record.inputs)}
        xp = next((x.xp for x in touched(call) if x.shape is not None and (len(operands) < 2 or x.xp is not np)), np)
        function, inputs = kernel_of(record, xp), list(map(self.plan.register, call.operands))
        if len(operands) > 1 and not record.primitive.mixed:
            own, name = function, record.primitive.name  # of arrays on a device and numbers of the host
            function = lambda *arrays: own(*brought_together(name, arrays)[1])
        results = [self._registers[y.key] for y in call.results]
        several = type(record.outputs) is tuple
        return giving_several(function, inputs, results) if several else giving_one(function, inputs, results[0])

    def _reading(self, record: Record) -> Closure:
        variable, to = record.inputs[0], self._registers[record.outputs.key]

        def read(registers: list[Any]) -> None:
            registers[to] = variable.array

        return read

    def _assignment(self, record: Record) -> Closure:
        variable, value = record.inputs
        combine, xp = _COMBINATIONS[record.params["conversion"]], namespace(variable.array)
        register = None if isinstance(value, Variable) else self._registers[value.key]
        moves = register is not None and value.xp is not xp

        def assign(registers: list[Any]) -> None:
            array = value.array if register is None else registers[register]
            if moves:
                array = to_device(array, xp)
            if combine is None:
                variable.array = array
            else:
                variable._combine(array, combine)

        return assign


class Drop:
    """Drops references to arrays that no later call reads."""

    __slots__ = ("_dead",)

    def __init__(self, dead: Sequence[int]) -> None:
        self._dead = dead

    def __call__(self, registers: list[Any]) -> None:
        """Drop them."""
        for register in self._dead:
            registers[register] = None


_COMBINATIONS = {Write.ASSIGN: None, Write.ADD: operator.add, Write.SUBTRACT: operator.sub}
_CLOSURES: dict[type[LoweredOp], Callable[[Builder, Any], Closure | None]] = {
    Call: Builder._call,
    View: Builder._view,
    Bind: Builder._bind,
    ReadFlat: Builder._read_flat,
    AssignFlat: Builder._assign_flat,
    FlattenKernel: Builder._flatten,
    Kernel: Builder._kernel,
}
_VARIABLES = {read_variable: Builder._reading, assigned: Builder._assignment}
"""Closures for reads and assignments of Variables, without the primitives' kernels."""
