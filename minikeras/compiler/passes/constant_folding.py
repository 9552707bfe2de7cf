"""What depends on constants, or on shapes alone, is computed once: when the program is made, by the primitive's own kernel."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...core import Record, Variable
from ...core.arrays import brought_together
from ...core.effects import only_checks
from ...core.registry import operations
from ..ir import Program, Slot, outputs_of, slots_in

LARGEST = 1 << 20
"""Results of more bytes are computed in each run: keeping them would cost more memory than it saves time."""


def fold_constants(program: Program, largest: float = LARGEST) -> Program:
    """The program with constants for what is computed from constants and shapes, up to so many bytes.

    >>> @tf.function
    ... def scaled(x):
    ...     return x * (tf.ones_like(x) / tf.cast(tf.size(x), "float32"))
    >>> _ = scaled(tf.zeros([2]))
    >>> [record.primitive.name for record in scaled.program(tf.zeros([2])).records]
    ['multiply']
    """
    values: dict[int, Any] = {slot.key: slot.array for slot in program.slots() if slot.array is not None}
    kept, renamed = [], {}
    for record in program.records:
        if only_checks(record.primitive) and getattr(record.inputs[0], "key", None) in values:
            continue  # what passed once passes always
        results = _computed(record, values, largest)
        if results is None:
            kept.append(record)
            continue
        for slot, array in zip(outputs_of(record), results, strict=True):
            values[slot.key] = array
            renamed[slot.key] = Slot(slot.key, slot.shape, slot.dtype, slot.xp, True, array)
    return program.with_records(kept, renamed)


def _computed(record: Record, values: dict[int, Any], largest: float) -> list[Any] | None:
    """The results, if they are constant and not too large."""
    primitive, outputs = record.primitive, outputs_of(record)
    if primitive not in _of_shape() and any(x.key not in values for x in slots_in(record.inputs)):
        return None
    if primitive.effect or not outputs or any(isinstance(x, Variable) for x in record.inputs):
        return None
    if sum(slot.bytes for slot in outputs) > largest and primitive not in (operations.reshape, operations.transpose):
        return None  # those two are views
    if primitive in _of_shape():
        arrays = [_alike(x) if isinstance(x, Slot) else x for x in record.inputs]
    else:
        arrays = [values[x.key] if isinstance(x, Slot) else x for x in record.inputs]
    with np.errstate(all="ignore"):
        there = arrays if primitive.mixed else brought_together(primitive.name, arrays)[1]
        found = primitive.on(outputs[0].xp)(*there, **record.params)
    return list(found) if type(found) is tuple else [found]


@functools.cache
def _of_shape() -> tuple[Any, ...]:
    """Operations whose results depend on the shape of their operand alone."""
    return operations.ones_like, operations.zeros_like, operations.identity_like


def _alike(slot: Slot) -> Any:
    """Some array of the slot's shape and dtype."""
    array = slot.xp.zeros(slot.shape, dtype=slot.dtype)
    return array if slot.shape or slot.xp is not np else array[()]
