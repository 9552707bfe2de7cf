"""Operations that give their input again are left out; whoever reads the result reads the input.

Key idea: arrays are never written while anybody can see them, so a second name for one needs no copy. NumPy's own reshape and
transpose are views already; what is left to save is the call.
"""

from __future__ import annotations

from typing import Any

from ..core import Record
from ..core.registry import operations
from .program import Program
from .recorder import Slot


def without_identities(program: Program) -> Program:
    """The program without `identity`, `stop_gradient`, and casts and reshapes to what the input is already.

    >>> import minikeras as tf
    >>> @tf.function
    ... def step(x):
    ...     return tf.sin(tf.reshape(tf.stop_gradient(x), [2]))
    >>> _ = step(tf.zeros([2]))
    >>> [record.primitive.name for record in step.program(tf.zeros([2])).records]
    ['sin']
    """
    renamed: dict[int, Any] = {}
    kept = []
    for record in program.records:
        record = replaced(record, renamed)
        source = _given_again(record)
        if source is None:
            kept.append(record)
        else:
            renamed[record.outputs.key] = source
    return program.with_records(kept, renamed)


def replaced(record: Record, renamed: dict[int, Any]) -> Record:
    """The instruction with other operands."""
    if not any(isinstance(x, Slot) and x.key in renamed for x in record.inputs):
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
