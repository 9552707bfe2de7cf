"""Instructions that stand for several are replaced by them; the file that defines one registers its rule in `EXPANSIONS`.

An optimizer's step becomes a reading of flattened Variables, a loop over their elements and an assignment.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ...core import Primitive, Record, Variable
from ...core.effects import State
from ...core.precision import is_short
from ...core.registry import operations
from ...core.variable import read_variable
from ...layout import Layout
from ..ir import Program, Slot, slots_in
from ..loops import Body, loop
from ..planning.flat_variables import assign_flat, flatten, part, read_flat, variables_of
from .inlining import inline

Expansion = Callable[["Writer", Record], bool]
"""Writes other instructions instead of one, or returns False."""

EXPANSIONS: dict[Primitive, Expansion] = {}
FOR_GRAPHS: dict[Primitive, Expansion] = {}
"""Those that come first where what Python does in the middle of a step ends a graph; their results are the same to rounding."""


class Writer:
    """Writes the `records` of a program, and its `guards`: functions that say before each run whether they still hold.

    In `renamed` is, by the key of a slot, the one that takes its place; in `written`, the result of what is written once.
    """

    def __init__(self, program: Program) -> None:
        self.records: list[Record] = []
        self.renamed: dict[int, Slot] = {}
        self.written: dict[Hashable, Slot] = {}
        self.guards: list[Callable[[], bool]] = list(program.guards)
        self._keys = program.unused_keys()
        self._readings: dict[int, list[int]] = {}
        """For each Variable the positions of the instructions that read its present value."""
        self._changed: dict[int | None, int] = {}
        """For each Variable that was assigned, and under None for any, the position of the last change."""

    def keep(self, record: Record) -> None:
        """Write an instruction as it is."""
        if State.OPERANDS in record.primitive.writes:
            for variable in record.inputs:
                if isinstance(variable, Variable):
                    self._change(variable.key)
        elif State.VARIABLES in record.primitive.writes:
            self._readings.clear()  # it may assign any Variable
            self._changed[None] = len(self.records)
        elif record.primitive is read_variable:
            self._readings.setdefault(record.inputs[0].key, []).append(len(self.records))
        self.records.append(record)

    def _change(self, key: int) -> None:
        self._readings.pop(key, None)
        self._changed[key] = len(self.records)

    def slot(self, shape: tuple[int, ...] | None, dtype: Any) -> Slot:
        """The slot of a new result; shape None for a Python number."""
        return Slot(next(self._keys), shape, dtype)

    def write(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any = ()) -> Any:
        """A new instruction; its outputs."""
        self.records.append(Record(primitive, list(inputs), params, outputs))
        return outputs

    def write_once(
        self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], shape: tuple[int, ...], dtype: Any
    ) -> Slot:
        """The result of a new instruction, or of one like it that was written in this way before."""
        operands = [x.key if isinstance(x, Slot) else (type(x), repr(x)) for x in inputs]
        key = primitive, tuple(operands), tuple(sorted(params.items()))
        if key not in self.written:
            self.written[key] = self.write(primitive, inputs, params, self.slot(shape, dtype))
        return self.written[key]

    def flatten(self, arrays: Sequence[Slot], layout: Layout) -> Slot:
        """One flat array of all; one array alone is only reshaped."""
        whole = self.slot((layout.size,), layout.dtype)
        if len(arrays) == 1 and arrays[0].dtype == layout.dtype:
            params = {"shape": (layout.size,), "rank": len(arrays[0].shape)}
            one: Slot = self.write(operations.reshape, arrays, params, whole)
            return one
        found: Slot = self.write(flatten, arrays, {"layout": layout}, whole)
        return found

    def read(self, columns: Sequence[Sequence[Variable]], layout: Layout) -> tuple[Slot, ...]:
        """One flat array for each column of Variables. Earlier reads of their present values become parts of it."""
        flats = tuple([self.slot((layout.size,), layout.dtype) for _ in columns])
        variables = [variable for column in columns for variable in column]
        earlier = {variable.key: self._readings.pop(variable.key, []) for variable in variables}
        first = min(itertools.chain.from_iterable(earlier.values()), default=len(self.records))
        if any(self._changed.get(key, -1) >= first for key in (None, *earlier)):
            self.write(read_flat, variables, {"layout": layout}, flats)
            return flats
        for flat, column in zip(flats, columns, strict=True):
            for variable, start, shape in zip(column, layout.starts, layout.shapes, strict=True):
                for position in earlier[variable.key]:
                    slot = self.records[position].outputs
                    self.records[position] = Record(part, [flat], {"start": start, "shape": shape}, slot)
        self._insert(first, Record(read_flat, variables, {"layout": layout}, flats))
        return flats

    def begin(self, primitive: Primitive, params: dict[str, Any], outputs: tuple[Slot, ...]) -> None:
        """An instruction that reads state alone: the first one, if nothing was changed before."""
        self._insert(len(self.records) if self._changed else 0, Record(primitive, [], params, outputs))

    def _insert(self, first: int, record: Record) -> None:
        self.records.insert(first, record)
        for positions in self._readings.values():
            positions[:] = [position + (position >= first) for position in positions]
        self._changed = {key: position + (position >= first) for key, position in self._changed.items()}

    def assign(self, columns: Sequence[Sequence[Variable]], flats: Sequence[Slot], layout: Layout) -> None:
        """Let Variables hold the parts of flat arrays."""
        variables = [variable for column in columns for variable in column]
        for variable in variables:
            self._change(variable.key)
        self.write(assign_flat, [*variables, *flats], {"layout": layout})

    def loop(self, body: Body, operands: Sequence[Slot], size: int) -> list[Slot]:
        """A body for all elements of flat arrays; the flat arrays of its results."""
        dtypes = body.dtypes
        outputs = [self.slot((size,), dtypes[register]) for register in body.outputs]
        self.write(loop, operands, {"body": body}, tuple(outputs))
        return outputs


def _read_together(writer: Writer, record: Record) -> bool:
    """A flat reading, of which earlier readings of its Variables become parts: 10 us less in a small training step."""
    variables, layout = variables_of(record), record.params["layout"]
    count = len(layout.shapes)
    flats = writer.read([variables[start : start + count] for start in range(0, len(variables), count)], layout)
    writer.renamed.update((y.key, flat) for y, flat in zip(record.outputs, flats, strict=True))
    return True


def expand(program: Program, whole: Sequence[Primitive] = (), graphs: bool = False) -> Program:
    """The program with such instructions replaced, where they are on NumPy's arrays and not to stay `whole`."""
    writer = Writer(program)
    EXPANSIONS.setdefault(operations.affine, _taken_apart)
    EXPANSIONS.setdefault(read_flat, _read_together)
    FOR_GRAPHS.setdefault(operations.affine, functools.partial(_taken_apart, of_shorts=True))
    for made_of_others in (
        *(operations.softmax, operations.log_softmax, operations.softmax_cross_entropy),
        *(operations.sparse_softmax_cross_entropy, operations.sparse_softmax_cross_entropy_grad),
    ):
        EXPANSIONS.setdefault(made_of_others, inline)
    rules = EXPANSIONS | FOR_GRAPHS if graphs else EXPANSIONS
    for record in program.records:
        rule = rules.get(record.primitive)
        if rule is None or record.primitive in whole or not _on_host(record) or not rule(writer, record):
            writer.keep(record)
    return program.with_records(writer.records, writer.renamed, guards=writer.guards)


def _taken_apart(writer: Writer, record: Record, of_shorts: bool = False) -> bool:
    """A layer's product and its sum with the bias, which can then join what follows; of 16-bit floats rounded between them."""
    x, kernel, bias = record.inputs
    y = record.outputs
    plain = of_shorts if is_short(y.dtype) else y.dtype.kind in "fc"
    if not plain or not all(isinstance(one, Slot) for one in record.inputs) or min(len(x.shape), len(kernel.shape)) < 2:
        return False
    product = writer.write(operations.matrix_product, [x, kernel], {}, writer.slot(y.shape, y.dtype))
    writer.write(operations.add, [product, bias], {}, y)
    return True


def _on_host(record: Record) -> bool:
    return all(x.xp is np for x in slots_in(record.inputs))
