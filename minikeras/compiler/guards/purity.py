"""Whether two recorded runs of a function did the same: their programs, and the generators of random numbers they drew from."""

from __future__ import annotations

import functools
import io
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...core import Record, Variable
from ...core.arrays import is_array, to_numpy
from ..ir import Program, Slot
from .facts import PLAIN, Fact, Group, same

REMEDY = "draw with tf.random, keep in a tf.Variable what changes from call to call, or give it as an argument"

_GENERATORS = ("random", "numpy.random.mtrand", "numpy.random._generator")
_PARTS: dict[type, Callable[[Any], Any]] = {
    types.FunctionType: lambda one: (one.__code__, [cell.cell_contents for cell in one.__closure__ or ()]),
    functools.partial: lambda one: (one.func, one.args, one.keywords),
    dict: lambda one: [*one, *one.values()],
}


class Comparison:
    """Compares the instructions of a run with those of another program, one by one."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._slots = {one.key: one.key for one in program.arguments}

    def difference(self, place: int, record: Record) -> str | None:
        """What another program does in this place, and what an instruction does; None if that is the same."""
        if place >= len(self.program.records):
            return f"one ends, and the other goes on with {record.primitive.name}"
        other, name = self.program.records[place], record.primitive.name
        pairs = ((other.inputs, record.inputs), (other.params, record.params), (other.outputs, record.outputs))
        if (other.primitive is record.primitive or other.primitive.name == name) and all(self._alike(*pair) for pair in pairs):
            return None
        return f"{other.primitive.name} of {_shown(other)} and then {name} of {_shown(record)}"

    def ends_as(self, program: Program) -> bool:
        """Whether a program of which each instruction was compared ends as the other one does, and returns the same."""
        alike = len(program.records) == len(self.program.records) and program.structure == self.program.structure
        return alike and self._alike(list(self.program.results), list(program.results))

    def gives(self, program: Program) -> bool:
        """Whether a whole program does and returns the same."""
        self._slots = {x.key: y.key for x, y in zip(self.program.arguments, program.arguments, strict=False)}
        records = enumerate(program.records)
        return all(self.difference(place, record) is None for place, record in records) and self.ends_as(program)

    def _alike(self, one: Any, other: Any, depth: int = 8) -> bool:
        """Whether operands, parameters or constants are the same; other objects are told by their class alone."""
        kind = type(one)
        if kind is Slot and type(other) is Slot:
            return self._same_slot(one, other)
        if same(one, other) or not depth:
            return True
        if kind is not type(other) or isinstance(one, (Variable, type, types.CodeType, np.generic, *PLAIN)):
            return False
        if is_array(one):
            return one.shape == other.shape and one.dtype == other.dtype and _bytes(one) == _bytes(other)
        if hasattr(kind, "programs"):  # of the step of a method that needs the loss
            sweeps, others = one.programs(), other.programs()
            names = [[(name, r.primitive.name) for name in found for r in found[name].records] for found in (sweeps, others)]
            return names[0] != names[1] or all(Comparison(sweeps[name]).gives(others[name]) for name in sweeps)
        if kind in _PARTS:
            one, other = _PARTS[kind](one), _PARTS[kind](other)
        if isinstance(one, (list, tuple)):
            return len(one) == len(other) and all(self._alike(x, y, depth - 1) for x, y in zip(one, other, strict=True))
        return True

    def _same_slot(self, one: Slot, other: Slot) -> bool:
        if (one.shape, one.dtype) != (other.shape, other.dtype) or (one.array is None) != (other.array is None):
            return False
        return self._alike(one.array, other.array) and self._slots.setdefault(one.key, other.key) == other.key


def _shown(record: Record) -> str:
    """The operands of an instruction, constants by their values."""
    held = [getattr(x, "array", None) for x in record.inputs]
    return f"({', '.join(f'{x if one is None else one!r:.40}' for x, one in zip(record.inputs, held, strict=True))})"


def _bytes(array: Any) -> bytes:
    return repr(array.tolist()).encode() if array.dtype == object else to_numpy(array).tobytes()


def is_generator(value: Any) -> bool:
    """Whether a value has a state that what it gives depends on: a generator of random numbers, or a file to read from."""
    if isinstance(value, io.IOBase):
        return not value.closed and value.readable()
    return any(base.__module__ in _GENERATORS for base in type(value).__mro__)


def draws(others: Iterable[Fact] = ()) -> Group:
    """The states of generators: of those behind `np.random` and `random`, if these are loaded, and of others."""
    numpys: Any = getattr(sys.modules.get("numpy.random"), "mtrand", None)
    shared = (
        ("np.random", getattr(numpys, "_rand", None)),
        ("Python's random", getattr(sys.modules.get("random"), "_inst", None)),
    )
    return Group([*[Fact(state_of, one, ("",), name) for name, one in shared if one is not None], *others])


def state_of(generator: Any) -> Any:
    """The state of a generator or the place in a file; another one each time of what cannot tell it."""
    if hasattr(generator, "bit_generator"):
        return repr(generator.bit_generator.state)
    try:
        if isinstance(generator, io.IOBase):
            return generator.tell() - len(getattr(generator, "getvalue", str)())  # what is appended in memory is not read
        kind, key, *rest = generator.get_state() if hasattr(generator, "get_state") else generator.getstate()
        return kind, bytes(key) if isinstance(key, np.ndarray) else key, *rest
    except (NotImplementedError, OSError, ValueError):
        return object()
