"""Operations that give their input again are left out. No copy is needed: arrays are not written while they can be seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core import Record
from ...core.registry import operations
from ..ir import Program, Slot, slots_in


def remove_identities(program: Program) -> Program:
    """The program without `identity`, `stop_gradient`, and casts and reshapes to what the input is already.

    >>> @tf.function
    ... def step(x):
    ...     return tf.sin(tf.reshape(tf.stop_gradient(x), [2]))
    >>> _ = step(tf.zeros([2]))
    >>> [record.primitive.name for record in step.program(tf.zeros([2])).records]
    ['sin']
    """
    renamed: dict[int, Any] = {}
    repeated: dict[int, Slot] = {}
    """What was repeated along axes, by the key of the result."""
    kept = []
    for record in program.records:
        record = _unrepeated(replaced(record, renamed), repeated)
        source = _given_again(record)
        if source is None:
            kept.append(record)
            if record.primitive is operations.broadcast_to and len(record.inputs[0].shape) == record.params["rank"]:
                repeated[record.outputs.key] = record.inputs[0]
        else:
            renamed[record.outputs.key] = source
    return program.with_records(kept, renamed)


def _unrepeated(record: Record, repeated: dict[int, Slot]) -> Record:
    """An elementwise instruction with operands as they were before they were repeated, if their shapes still give the same."""
    other = replaced(record, repeated) if record.primitive.elementwise else record
    if other is record:
        return record
    same = np.broadcast_shapes(*[x.shape for x in slots_in(other.inputs)]) == record.outputs.shape
    return other if same else record


def replaced(record: Record, renamed: Mapping[int, Any]) -> Record:
    """The instruction with other operands."""
    if not any(x.key in renamed for x in slots_in(record.inputs)):
        return record
    inputs = [renamed.get(x.key, x) if isinstance(x, Slot) else x for x in record.inputs]
    return Record(record.primitive, inputs, record.params, record.outputs)


def _given_again(record: Record) -> Slot | None:
    """The operand that the result is, if it is one."""
    primitive = record.primitive
    if primitive not in (
        *(operations.identity, operations.stop_gradient, operations.cast),
        *(operations.reshape, operations.broadcast_to),
    ):
        return None
    x, y = record.inputs[0], record.outputs
    same = isinstance(x, Slot) and (x.shape, x.dtype, x.xp) == (y.shape, y.dtype, y.xp)
    return x if same else None
