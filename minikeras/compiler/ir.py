"""Programs: a recorded run whose Tensors are numbered slots. A Record of a tape and an instruction are one datatype."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..core import Primitive, Record, State, Variable, to_numpy
from ..types import Array

PLAIN = (type(None), bool, int, float, complex, str, bytes)
"""Types of values that a function may return beside Tensors and Variables, the same at each call."""


class Slot:
    """One value of a program: a Tensor of the recorded run, without its values unless they are the same in each.

    Attributes:
        key: its number in the program.
        shape, dtype: of the array; None and `float` for a Python number that differs from run to run.
        array: the values of a constant, else None.
        fixed: whether each run has the same values.
        xp: the library of its array.
        shares: whether its array was, or was a view of, an operand of the instruction that made it.
        order: the axes in the order of their strides, as NumPy chose it for the array; None for the usual one.
    """

    __slots__ = ("array", "dtype", "fixed", "key", "order", "shape", "shares", "xp")

    def __init__(self, key: int, shape: Any, dtype: Any, xp: ModuleType = np, fixed: bool = False, array: Array = None) -> None:
        self.key, self.shape, self.dtype, self.xp, self.fixed, self.array = key, shape, dtype, xp, fixed, array
        self.shares = False
        self.order: tuple[int, ...] | None = None

    @property
    def bytes(self) -> int:
        """The size of its array in bytes."""
        return 0 if self.shape is None else math.prod(self.shape) * int(self.dtype.itemsize)

    def __repr__(self) -> str:
        if self.shape is None:
            return f"%{self.key}:number"
        return f"%{self.key}:{self.dtype.name}[{','.join(map(str, self.shape))}]"


class Program:
    """Instructions in their order, over Slots, Variables and numbers.

    Args:
        arguments: the slots that a call fills.
        records: the instructions.
        results: for each leaf of the result its Slot, or its value if that is the same in each run.
        structure: a nest with as many leaves as `results`.
        guards: each says whether the program still holds for an optimizer's options.

    >>> @tf.function
    ... def area(radius):
    ...     return radius * radius * 3.14
    >>> _ = area(tf.constant(2.0))
    >>> print(area.program(tf.constant(2.0)))
    %0:float32[] = argument()
    %1:float32[] = multiply(%0:float32[], %0:float32[])
    %2:float32[] = multiply(%1:float32[], 3.14)
    return %2:float32[]
    """

    __slots__ = ("arguments", "guards", "records", "results", "structure")

    def __init__(
        self,
        arguments: Sequence[Slot],
        records: Sequence[Record],
        results: Sequence[Any],
        structure: Any,
        guards: Sequence[Callable[[], bool]] = (),
    ) -> None:
        self.arguments, self.records, self.results, self.structure = arguments, records, results, structure
        self.guards = guards

    def with_records(
        self,
        records: Sequence[Record],
        renamed: Mapping[int, Any] | None = None,
        guards: Sequence[Callable[[], bool]] | None = None,
    ) -> Program:
        """The same program with these instructions and guards, and with the slots of `renamed` in place of those by key."""
        known = renamed or {}

        def current(x: Any) -> Any:
            while isinstance(x, Slot) and known.get(x.key, x) is not x:
                x = known[x.key]
            return x

        if known:
            records = [Record(one.primitive, [current(x) for x in one.inputs], one.params, one.outputs) for one in records]
        results = [current(x) for x in self.results]
        return Program(self.arguments, records, results, self.structure, self.guards if guards is None else guards)

    def over_numpy(self) -> Program:
        """The same program over slots of NumPy, its constants on the host.

        Passes and loop bodies need shapes and dtypes, and compute constants with NumPy; the executor decides where values
        are placed.
        """
        slots: dict[int, Slot] = {}
        for one in self.slots():
            array = None if one.array is None else to_numpy(one.array)
            array = array if one.shape or array is None else array[()]
            slots[one.key] = Slot(one.key, one.shape, one.dtype, np, one.fixed, array)

        def moved(x: Any) -> Any:
            if type(x) is tuple:
                return tuple([slots[one.key] for one in x])
            return slots[x.key] if isinstance(x, Slot) else x

        records = [Record(one.primitive, list(map(moved, one.inputs)), one.params, moved(one.outputs)) for one in self.records]
        arguments, results = list(map(moved, self.arguments)), list(map(moved, self.results))
        return Program(arguments, records, results, self.structure, self.guards)

    @property
    def variables(self) -> list[Variable]:
        """The Variables that are read or assigned by the program itself, in the order of their construction."""
        found = {x.key: x for record in self.records for x in record.inputs if isinstance(x, Variable)}
        return [found[key] for key in sorted(found)]

    @property
    def library(self) -> Any:
        """The library of its values on a device; NumPy if there are none, None if several devices' are mixed."""
        found = {slot.xp for slot in self.slots() if slot.shape is not None} - {np}
        return np if not found else found.pop() if len(found) == 1 else None

    def slots(self) -> Iterator[Slot]:
        """All slots, each once."""
        seen: set[int] = set()
        for x in (*self.arguments, *(slot for record in self.records for slot in slots_of(record)), *self.results):
            if isinstance(x, Slot) and x.key not in seen:
                seen.add(x.key)
                yield x

    def unused_keys(self) -> Iterator[int]:
        """Keys for new slots."""
        return itertools.count(max([slot.key for slot in self.slots()], default=-1) + 1)

    def __str__(self) -> str:
        lines = [f"{slot!r} = argument()" for slot in self.arguments]
        constants = [(slot, slot.array) for slot in self.slots() if slot.array is not None]
        lines += [f"{slot!r} = constant({array if array.size == 1 else '...'})" for slot, array in constants]
        lines += [str(record).removeprefix(" = ") for record in self.records]
        return "\n".join([*lines, f"return {', '.join(map(_shown, self.results))}"])

    def __repr__(self) -> str:
        return f"<Program of {len(self.records)} instructions, {len(self.variables)} variables>"


def instruction(**options: Any) -> Callable[[Callable[..., Any]], Primitive]:
    """A decorator that makes a primitive of programs alone of its kernel, which is given the library of its arrays first."""

    def made(kernel: Callable[..., Any]) -> Primitive:
        on = lambda xp: functools.partial(kernel, xp)
        return Primitive(kernel.__name__, on, differentiable=False, uniform=False, registered=False, **options)

    return made


def slots_in(values: Iterable[Any]) -> list[Slot]:
    """The slots among operands or results."""
    return [x for x in values if isinstance(x, Slot)]


def changed_by(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> list[Variable]:
    """The Variables that an effect may change: those that it assigns, those of a step and its optimizer."""
    own = [x for x in inputs if isinstance(x, Variable)] if State.OPERANDS in primitive.writes else []
    return [*own, *params.get("variables", ()), *getattr(params.get("optimizer"), "variables", ())]


def slots_of(record: Record) -> list[Slot]:
    """The slots that an instruction reads and writes."""
    return slots_in((*record.inputs, *outputs_of(record)))


def outputs_of(record: Record) -> tuple[Slot, ...]:
    """The slots that an instruction writes."""
    return record.outputs if type(record.outputs) is tuple else (record.outputs,)


def _shown(result: Any) -> str:
    return repr(result) if isinstance(result, (Slot, *PLAIN)) else getattr(result, "name", type(result).__name__)
