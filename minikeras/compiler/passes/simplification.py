"""Passes that remove redundant computations: of values that are an input, a repetition, unused or constant."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ...core import Record, State, Variable, brought_together, only_checks, operations
from ...core.ops.contractions import matrix_product
from ...nn_ops.loop_body import fingerprint
from ..ir import Program, Slot, outputs_of, slots_in

# Operations that return their input are left out. No copy is needed: arrays are not written while they can be seen.


def remove_identities(program: Program) -> Program:
    """The program without `identity`, `stop_gradient`, and casts, reshapes and transposes to what the input is already.

    >>> @tf.function
    ... def step(x):
    ...     return tf.sin(tf.reshape(tf.stop_gradient(x), [2]))
    >>> _ = step(tf.zeros([2]))
    >>> [record.primitive.name for record in step.program(tf.zeros([2])).records]
    ['sin']
    """
    renamed: dict[int, Any] = {}
    repeated: dict[int, Slot] = {}
    """The operands of repetitions along axes, by the key of the result."""
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
    """An elementwise instruction with operands from before a repetition, if their shapes still broadcast to the same."""
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
    """The operand that equals the result, if there is one."""
    primitive = record.primitive
    if primitive not in (
        *(operations.identity, operations.stop_gradient, operations.cast),
        *(operations.reshape, operations.broadcast_to, operations.transpose),
    ):
        return None
    x, y = record.inputs[0], record.outputs
    same = isinstance(x, Slot) and (x.shape, x.dtype, x.xp) == (y.shape, y.dtype, y.xp)
    if primitive is operations.transpose:
        perm = record.params["perm"]
        same = same and [axis % len(perm) for axis in perm] == [*range(len(perm))]
    return x if same else None


# Equal computations are done once. A Variable is read once between two changes of it.
#
# The two operands of one matrix product stay two: of an array and its own transpose, NumPy computes one triangle, and some BLAS
# kernels give other last bits there than in a whole product.


def eliminate_common_subexpressions(program: Program) -> Program:
    """The program in which each result is computed once.

    >>> @tf.function
    ... def twice(x):
    ...     return tf.sin(x) + tf.sin(x)
    >>> _ = twice(tf.constant(1.0))
    >>> [record.primitive.name for record in twice.program(tf.constant(1.0)).records]
    ['sin', 'add']
    """
    renamed: dict[int, Any] = {}
    known: dict[Hashable, Record] = {}
    readings: dict[Hashable, Record] = {}
    changes: Counter[int] = Counter()  # how often each Variable was assigned so far
    kept = []
    apart = _operands_of_products(program)
    for record in program.records:
        record = replaced(record, renamed)
        primitive = record.primitive
        if State.OPERANDS in primitive.writes:
            changes.update([x.key for x in record.inputs if isinstance(x, Variable)])
        elif State.OPERANDS in primitive.reads:
            earlier = readings.setdefault((_identity(record), *[changes[x.key] for x in record.inputs]), record)
            if earlier is not record:
                renamed |= {y.key: x for y, x in zip(outputs_of(record), outputs_of(earlier), strict=True)}
                continue
        elif primitive.effect:
            if State.VARIABLES in primitive.writes:
                readings.clear()
        else:
            earlier = known.setdefault(_identity(record), record)
            pairs = list(zip(outputs_of(record), outputs_of(earlier), strict=True))
            if earlier is not record and not any(x.key in apart.get(y.key, ()) for y, x in pairs):
                for y, x in pairs:
                    renamed[y.key] = x
                    for other in apart.get(y.key, ()):
                        apart[other].add(x.key)
                        apart.setdefault(x.key, set()).add(other)
                continue
        kept.append(record)
    return program.with_records(kept, renamed)


def _operands_of_products(program: Program) -> dict[int, set[int]]:
    """For each array that a matrix product reads, directly or through views, the arrays of the other operand."""
    seen: dict[int, int] = {}
    apart: dict[int, set[int]] = {}
    for record in program.records:
        operands = [seen.get(x.key, x.key) for x in record.inputs if isinstance(x, Slot)]
        for y in outputs_of(record):
            if y.shares and operands:
                seen[y.key] = operands[0]
        if record.primitive is matrix_product and len(set(operands)) == 2:
            first, second = operands
            apart.setdefault(first, set()).add(second)
            apart.setdefault(second, set()).add(first)
    return apart


def _identity(record: Record) -> Hashable:
    """A key that is equal for instructions with equal results."""
    operands = tuple([_operand(x) for x in record.inputs])
    return id(record.primitive), operands, tuple([(name, fingerprint(value)) for name, value in record.params.items()])


def _operand(x: Any) -> Hashable:
    """The key of an operand: the bits of a constant number, the key of another slot."""
    if isinstance(x, Slot) and isinstance(x.array, (np.generic, np.ndarray)) and x.shape == ():
        return "constant", x.dtype.str, x.array.tobytes()
    return ("slot", x.key) if isinstance(x, (Slot, Variable)) else fingerprint(x)


# Instructions whose results are not used are left out, unless they do more than give a result.


def eliminate_dead_code(program: Program) -> Program:
    """The program without instructions that change neither a result nor any state.

    >>> @tf.function
    ... def first(x):
    ...     tf.sin(x)
    ...     return x + 1.0
    >>> _ = first(tf.constant(2.0))
    >>> [record.primitive.name for record in first.program(tf.constant(2.0)).records]
    ['add']
    """
    used = {x.key for x in slots_in(program.results)}
    kept = []
    for record in reversed(program.records):
        if record.primitive.effect or any(y.key in used for y in outputs_of(record)):
            kept.append(record)
            used.update(x.key for x in slots_in(record.inputs))
    return program.with_records(kept[::-1])


# Values that depend on constants or shapes alone are computed once: when the program is made, by the primitive's own kernel.

LARGEST = 1 << 20
"""Results of more bytes are computed in each run: keeping them would cost more memory than it saves time."""


def fold_constants(program: Program, largest: float = LARGEST) -> Program:
    """The program with constants for values computed from constants and shapes, up to so many bytes.

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
            continue  # a check that passed once always passes
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
        arrays = [x.xp.zeros(x.shape, dtype=x.dtype) if isinstance(x, Slot) else x for x in record.inputs]
        arrays = [x[()] if isinstance(x, np.ndarray) and not x.shape else x for x in arrays]
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
