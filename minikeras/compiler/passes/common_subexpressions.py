"""What is computed twice is computed once. A Variable is read once between two changes of it.

Two values that one matrix product takes stay two: of an array and its own transpose, NumPy computes one triangle, and some BLAS
kernels give other last bits there than in a whole product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np

from ...core import Record, Variable
from ...core.effects import State
from ...core.ops.contractions import matrix_product
from ..ir import Program, Slot, outputs_of
from .remove_identities import replaced


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
            try:
                earlier = known.setdefault(_identity(record), record)
            except TypeError:  # a parameter that cannot be compared
                earlier = record
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
    """For the arrays that are operands of matrix products, or are seen by them through views, those of the other operands."""
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
    """Equal for instructions with equal results."""
    operands = tuple([_operand(x) for x in record.inputs])
    return id(record.primitive), operands, tuple([(name, _value(value)) for name, value in record.params.items()])


def _operand(x: Any) -> Hashable:
    """Constant numbers are told by their bits, other slots by their keys."""
    if isinstance(x, Slot) and isinstance(x.array, (np.generic, np.ndarray)) and x.shape == ():
        return "constant", x.dtype.str, x.array.tobytes()
    return ("slot", x.key) if isinstance(x, (Slot, Variable)) else _value(x)


def _value(value: Any) -> Hashable:
    """Tells apart what Python calls equal: 1, 1.0 and True; 0.0 and -0.0."""
    kind = type(value)
    if kind in (list, tuple):
        return kind, tuple([_value(one) for one in value])
    if kind is slice:
        return kind, _value((value.start, value.stop, value.step))
    if kind in (float, complex):
        return kind, repr(value)
    if kind in (int, bool, str, bytes, type(None), type(Ellipsis)):
        return kind, value
    return kind, id(value)
