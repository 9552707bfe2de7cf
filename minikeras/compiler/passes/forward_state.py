"""A Variable that a step reads and assigns several times is read once and assigned once: values are forwarded in between, and
what is read flat is not read by itself.

Values are forwarded only within an optimizer's step, which holds the locks of all that it assigns, and in graphs of a device,
which commit all changes at their end: elsewhere each change is atomic by itself.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ...core import Primitive, Record, State, Variable, Write, assigned, is_array, namespace, operations, read_variable
from ..ir import Program, Slot, outputs_of
from ..variable_storage import columns_of, part, read_flat

NUMBERS: set[Primitive] = set()
"""Instructions that make the numbers of an optimizer's step, and change none of its Variables."""

_CHANGES = {Write.ADD: "add", Write.SUBTRACT: "subtract"}
_VARIABLES = {State.VARIABLES, State.OPERANDS}


def changes_variables(primitive: Primitive) -> bool:
    """True if an instruction may change Variables."""
    return not _VARIABLES.isdisjoint(primitive.writes)


def read_together(program: Program) -> Program:
    """The program with earlier reads of Variables as parts of flat ones: 10 us less in a small training step."""
    records = list[Record]()
    for record in program.records:
        first = position = len(records)
        places = _places(record) if record.primitive is read_flat else {}
        while places and position and not _changes(records[position - 1], places.keys()):
            position -= 1
            earlier = records[position]
            if earlier.primitive is read_variable and earlier.inputs[0].key in places:
                first, (flat, params) = position, places[earlier.inputs[0].key]
                records[position] = Record(part, [flat], params, earlier.outputs)
        records.insert(first, record)
    return program.with_records(records)


def _places(record: Record) -> dict[int, tuple[Slot, dict[str, Any]]]:
    """For each Variable that is read flat, by its key, the flat array and its place there."""
    layout, pairs = record.params["layout"], zip(columns_of(record), record.outputs, strict=True)
    parts = [{"start": start, "shape": shape} for start, shape in zip(layout.starts, layout.shapes, strict=True)]
    return {one.key: (flat, place) for column, flat in pairs for one, place in zip(column, parts, strict=True)}


def _changes(record: Record, keys: Collection[int]) -> bool:
    """True if an instruction may change one of these Variables."""
    if record.primitive in NUMBERS or not changes_variables(record.primitive):
        return False
    found = touched(record)
    return found is None or not found.isdisjoint(keys)


def forward_state(program: Program, is_graph: bool = False) -> Program:
    """The program with reads and assignments of each Variable joined, between effects that may read or assign any.

    Args:
        program: with an optimizer's step; another one is returned as it is.
        is_graph: whether the program becomes a graph of a device, so that any program is changed.

    >>> total, w, optimizer = tf.Variable(0.0), tf.Variable(1.0), tf.keras.optimizers.SGD(0.5)
    >>> @tf.function
    ... def step(x):
    ...     optimizer.apply([x], [w])
    ...     total.assign_add(x)
    ...     total.assign_add(2.0 * x)
    ...     return total + 1.0
    >>> _ = step(tf.constant(2.0))
    >>> step.program(tf.constant(2.0)).variables.count(total), float(step(tf.constant(2.0))), float(total)
    (1, 13.0, 12.0)
    """
    if not is_graph and not any("optimizer" in record.params for record in program.records):
        return program
    forwarding = _Forwarding(program, is_graph)
    for record in program.records:
        forwarding.take(record)
    records = [record for record in forwarding.records if record is not None]
    return program.with_records(records, forwarding.renamed)


class _Forwarding:
    """The instructions so far, and the present values of Variables."""

    def __init__(self, program: Program, is_graph: bool) -> None:
        self._is_graph = is_graph
        self.records: list[Record | None] = []
        self.renamed: dict[int, Slot] = {}
        self._keys = program.unused_keys()
        self._values: dict[int, Slot] = {}
        """The present values of Variables, by their keys."""
        self._assignments: dict[int, int] = {}
        """The position of the last assignment of a Variable that nothing has read since."""

    def take(self, record: Record) -> None:
        """Write an instruction, or its replacement."""
        primitive = record.primitive
        if primitive is read_variable and _is_plain(record.inputs[0]):
            variable = record.inputs[0]
            if variable.key in self._values:
                self.renamed[record.outputs.key] = self._values[variable.key]
                return
            self._values[variable.key] = record.outputs
        elif primitive is assigned and self._forward(record):
            return
        elif _VARIABLES & {*primitive.reads, *primitive.writes}:
            self._forget(touched(record))
        self.records.append(record)

    def _forward(self, record: Record) -> bool:
        """Write an assignment in place of those before it; False if it is not a plain one."""
        variable, value = record.inputs
        how = record.params["conversion"]
        if _is_plain(value) and _is_plain(variable):
            value = self._value(value, record)
        plain = (
            _is_plain(variable)
            and isinstance(value, Slot)
            and (value.shape, value.dtype) == (variable.array.shape, variable.array.dtype)
        )
        if not plain or not (how is Write.ASSIGN or how in _CHANGES):
            return False
        if how in _CHANGES:
            change = Slot(next(self._keys), value.shape, value.dtype, value.xp)
            operation = getattr(operations, _CHANGES[how])
            self.records.append(Record(operation, [self._value(variable, record), value], {}, change))
            value = change
        if variable.key in self._assignments:
            self.records[self._assignments[variable.key]] = None
        self._values[variable.key], self._assignments[variable.key] = value, len(self.records)
        self.records.append(Record(assigned, [variable, value], record.params | {"conversion": Write.ASSIGN}, record.outputs))
        return True

    def _value(self, variable: Variable, record: Record) -> Slot:
        """The present value of a Variable; it is read if it was not yet."""
        if variable.key not in self._values:
            shape, dtype = tuple(variable.array.shape), variable.array.dtype
            xp = np if self._is_graph else namespace(variable.array)  # a graph's program is over slots of NumPy
            slot = self._values[variable.key] = Slot(next(self._keys), shape, dtype, xp)
            self.records.append(Record(read_variable, [variable], {}, slot))
        return self._values[variable.key]

    def _forget(self, keys: set[int] | None) -> None:
        """Forget the values of these Variables, of all if None: an effect may read or assign them."""
        for known in (self._values, self._assignments):
            for key in list(known) if keys is None else keys:
                known.pop(key, None)


def _is_plain(variable: Any) -> bool:
    """True if an operand is a Variable that holds an array."""
    return isinstance(variable, Variable) and is_array(variable.array)


def touched(record: Record) -> set[int] | None:
    """The keys of the Variables that an instruction may read or assign; None for any."""
    state = (*record.primitive.reads, *record.primitive.writes)
    found = {x.key for x in record.inputs if isinstance(x, Variable)}
    if State.VARIABLES not in state:
        return found
    optimizer: Any = record.params.get("optimizer")
    if only_counts(record):
        return found | {variable.key for variable in optimizer.counters}
    if optimizer is None or asks_user(record):
        return None
    return found | {variable.key for variable in (*optimizer.variables, *record.params.get("variables", ()))}


def asks_user(record: Record) -> bool:
    """True if an instruction calls a user's code within an optimizer's step, which may change anything."""
    optimizer: Any = record.params.get("optimizer")
    return optimizer is not None and not (optimizer.is_own and optimizer.rate_is_own)


def only_counts(record: Record) -> bool:
    """True if an instruction only changes the counters of an optimizer."""
    counts = "optimizer" in record.params and "variables" not in record.params
    return counts and bool(record.primitive.writes) and not outputs_of(record)
