"""Instructions whose results are not used are left out, unless they do more than give a result."""

from __future__ import annotations

from ..ir import Program, outputs_of, slots_in


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
