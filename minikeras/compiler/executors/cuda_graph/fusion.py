"""Loops and reductions over the same axes become one kernel, whose groups of threads own a row or column each.

A batch normalization, say, is: a loop and its mean, a loop and the mean of squares, a few numbers for each column, a loop that
reads them. All of that needs no other columns, so one group of threads does it in three passes over its own elements.
"""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....core import Primitive, Record, Variable
from ....core.effects import State
from ....core.registry import operations
from ....core.variable import read_variable
from ....types import Array
from ...ir import Program, Slot, outputs_of, slots_in
from ...loops import elementwise_body
from ...planning.flat_variables import part, read_flat
from .functions import DTYPES, is_written
from .kernels import Group, contiguous, spread

WINDOW = 64
"""How many instructions behind the first one may join it."""
TURNS = 16
"""Elements that a thread takes in one pass; a longer sum is cut into pieces instead, unless the device is busy with many."""
BUSY = 1 << 16
"""Threads that keep a device busy."""
MOST_SUMS = 6
"""Reductions of one kernel: each has shared memory of its own, and a block of 1024 threads has 48 KiB for float64."""

FOLDS = ("sum", "mean", "max", "min", "euclidean_norm", "any", "all")
"""Reductions that may join, without "reduce_"."""


def _carried_out(
    xp: Any, *values: Array, members: Sequence[Record], inputs: Sequence[int], outputs: Sequence[int], **_: Any
) -> Any:
    known: dict[int, Any] = dict(zip(inputs, values, strict=True))
    for record in members:
        given = [known[x.key] if isinstance(x, Slot) else x for x in record.inputs]
        results = record.primitive.kernel(xp)(*given, **record.params)
        results = results if type(record.outputs) is tuple else (results,)
        known |= {y.key: xp.broadcast_to(z, y.shape) for y, z in zip(outputs_of(record), results, strict=True)}
    return tuple([known[key].copy() for key in outputs])


group = Primitive(
    "group", lambda xp: functools.partial(_carried_out, xp), differentiable=False, uniform=False, registered=False
)
"""Instructions that one kernel carries out, `members`, reduced over `axes` of `shape`; keys of its operands and results."""


def _loss_and_gradient(xp: Any, labels: Array, logits: Array, *factor: Array) -> tuple[Array, Array]:
    both = operations.sparse_softmax_cross_entropy, operations.sparse_softmax_cross_entropy_grad
    loss, gradient = [primitive.kernel(xp)(labels, logits) for primitive in both]
    return loss, gradient * factor[0] if factor else gradient


loss_and_gradient = Primitive(
    "loss_and_gradient",
    lambda xp: functools.partial(_loss_and_gradient, xp),
    differentiable=False,
    uniform=False,
    registered=False,
)
"""The cross-entropy of rows of logits, and its derivative: softmax less one at the label, perhaps times a factor of the row."""


def join_losses(program: Program) -> Program:
    """The program with each loss and the derivative of it, with the factor of a mean, as one instruction."""
    readers = _readers(program)
    gradients = {
        _operands(record): record
        for record in program.records
        if record.primitive is operations.sparse_softmax_cross_entropy_grad
    }
    taken: set[int] = set()
    made = {x.key for x in program.arguments} | {slot.key for slot in program.slots() if slot.array is not None}
    records = []
    for record in program.records:
        gradient = gradients.get(_operands(record))
        if record.primitive is operations.sparse_softmax_cross_entropy and gradient is not None:
            y, scaled = gradient.outputs, _scaled(gradient, readers, made)
            inputs = list(record.inputs)
            if scaled is not None:
                y = scaled.outputs
                inputs += [x for x in scaled.inputs if x.key != gradient.outputs.key]
            taken |= {id(gradient), id(scaled)}
            record = Record(loss_and_gradient, inputs, {}, (record.outputs, y))
        if id(record) not in taken:
            records.append(record)
            made |= {y.key for y in outputs_of(record)}
    return program.with_records(records)


def _scaled(gradient: Record, readers: Mapping[int, Sequence[Record | None]], made: set[int]) -> Record | None:
    """The only reader of a derivative, if it multiplies each row by what is known by now."""
    y = gradient.outputs
    (reader, *others) = readers[y.key] or (None,)
    if others or reader is None or reader.primitive is not operations.multiply or len(slots_in(reader.inputs)) < 2:
        return None
    factors = [x for x in reader.inputs if x.key != y.key]
    fits = len(factors) == 1 and factors[0].key in made and factors[0].shape in ((), (*y.shape[:-1], 1))
    return reader if fits and factors[0].dtype == reader.outputs.dtype == y.dtype else None


def _readers(program: Program) -> dict[int, list[Record | None]]:
    """For each slot the instructions that read it; None stands for the caller."""
    readers: dict[int, list[Record | None]] = collections.defaultdict(list)
    for record in program.records:
        for x in slots_in(record.inputs):
            readers[x.key].append(record)
    for x in slots_in(program.results):
        readers[x.key].append(None)
    return readers


def _operands(record: Record) -> tuple[int, ...]:
    return tuple([x.key for x in slots_in(record.inputs)])


class Domain:
    """Elements of a shape, in groups that differ along all axes but those that are reduced.

    Args:
        shape: of all elements.
        axes: the reduced ones, from 0 up and sorted.
    """

    def __init__(self, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
        self.shape, self.axes = shape, axes
        self.others = tuple([axis for axis in range(len(shape)) if axis not in axes])
        self.kept = tuple([shape[axis] for axis in self.others])
        self.folded = tuple([shape[axis] for axis in axes])
        self._with_ones = tuple([1 if axis in axes else size for axis, size in enumerate(shape)])
        self.own = self._significant(contiguous(self.kept), self.kept)

    @property
    def threads(self) -> Group:
        """Those that carry it out; neighbours take neighbouring elements."""
        wide = [axis for axis, size in enumerate(self.shape) if size > 1]
        return Group.of(math.prod(self.kept), math.prod(self.folded), not wide or wide[-1] in self.axes)

    @property
    def is_balanced(self) -> bool:
        """Whether each group of threads has little enough to do."""
        threads = self.threads
        turns = -(-math.prod(self.folded) // threads.lanes)
        return turns <= (64 * TURNS if threads.blocks * threads.threads >= BUSY else TURNS)

    def is_kept(self, shape: tuple[int, ...]) -> bool:
        """Whether an array has one element for each group."""
        return shape in (self.kept, self._with_ones)

    def strides(self, x: Slot, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """How an operand of a loop over `shape`, all elements or one for each group, lies along both kinds of axes."""
        if 0 in (x.shape or ()):
            return None
        found = spread(x, shape).strides
        if shape == self.shape:
            return tuple([found[axis] for axis in self.others]), tuple([found[axis] for axis in self.axes])
        if shape == self._with_ones and shape != self.kept:
            found = tuple([found[axis] for axis in self.others])
        return found, (0,) * len(self.axes)

    def is_one_for_each(self, x: Slot, shape: tuple[int, ...]) -> bool:
        """Whether a loop reads of `x`, which has one element for each group, that of its own group."""
        found = self.strides(x, shape)
        return found is not None and not any(found[1]) and self._significant(found[0], self.kept) == self.own

    @staticmethod
    def _significant(strides: Sequence[int], shape: Sequence[int]) -> list[int]:
        return [stride for stride, size in zip(strides, shape, strict=True) if size > 1]


class Members:
    """The instructions of a group, by what they are to it.

    Attributes:
        full: results with all elements, by key.
        kept: results with one element for each group, by key.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.records: list[Record] = []
        self.full: dict[int, Slot] = {}
        self.kept: dict[int, Slot] = {}
        self.sums = 0
        self._read: set[int] = set()

    def add(self, record: Record) -> bool:
        """Let an instruction join, if it can."""
        if not record.primitive.effect and self._joins(record):
            self.records.append(record)
            self._read |= {x.key for x in slots_in(record.inputs)}
            return True
        return False

    def makes(self, x: Slot) -> bool:
        """Whether a slot is a result of the group."""
        return x.key in self.full or x.key in self.kept

    def _joins(self, record: Record) -> bool:
        outputs, operands = outputs_of(record), slots_in(record.inputs)
        related = any(self.makes(x) or x.key in self._read for x in operands)
        if self.records and not related:
            return False
        if is_reduction(record):
            (x,), y = operands, record.outputs
            if x.shape != self.domain.shape or axes_of(record) != self.domain.axes:
                return False
            if x.key in self.kept or self.sums == MOST_SUMS:
                return False
            self.sums += 1
            self.kept[y.key] = y
            return True
        if record.primitive is operations.reshape:
            (x,), y = operands, record.outputs
            if x.key in self.kept and self.domain.is_kept(y.shape):
                self.kept[y.key] = y
                return True
            return False
        shape, body = elementwise_body(record, DTYPES)
        if body is None or not body.steps or not is_written(body):
            return False
        return self._loop_joins(operands, outputs, shape)

    def _loop_joins(self, operands: Sequence[Slot], outputs: Sequence[Slot], shape: tuple[int, ...]) -> bool:
        is_full = shape == self.domain.shape
        if not is_full and not self.domain.is_kept(shape):
            return False
        for x in operands:
            if x.key in self.full and (not is_full or x.shape != shape):
                return False
            if x.key in self.kept and not self.domain.is_one_for_each(x, shape):
                return False
            if not self.makes(x) and self.domain.strides(x, shape) is None:
                return False
        (self.full if is_full else self.kept).update({y.key: y for y in outputs})
        return True


def is_reduction(record: Record) -> bool:
    """Whether an instruction may end a pass."""
    name = record.primitive.name.removeprefix("reduce_")
    if name not in FOLDS or record.primitive is not getattr(operations, f"reduce_{name}"):
        return False
    (x,), y = record.inputs, record.outputs
    kind = "b" if name in ("any", "all") else "f"
    return isinstance(x, Slot) and x.dtype.kind == kind and bool(x.shape) and 0 not in x.shape and y.dtype == x.dtype


def axes_of(record: Record) -> tuple[int, ...]:
    """The axes of a reduction, from 0 up."""
    rank = len(record.inputs[0].shape)
    return tuple(sorted(axis % rank for axis in record.params["axes"]))


def is_full(record: Record, domain: Domain) -> bool:
    """Whether a member is a loop over all elements."""
    is_loop = record.primitive is not operations.reshape and not is_reduction(record)
    return is_loop and outputs_of(record)[0].shape == domain.shape


def fuse_groups(program: Program) -> Program:
    """The program with groups: loops and reductions that one kernel carries out."""
    records = list(_reads_first(program))
    readers: dict[int, list[Record]] = collections.defaultdict(list)
    for record in records:
        for x in slots_in(record.inputs):
            readers[x.key].append(record)
    made = {y.key: number for number, record in enumerate(records) for y in outputs_of(record)}
    wanted = {x.key for x in slots_in(program.results)}
    taken: set[int] = set()
    kept: list[Record] = []
    for number, record in enumerate(records):
        if id(record) in taken:
            continue
        members = _grown(records, number, readers, made, taken)
        if members is None:
            kept.append(record)
            continue
        own = {id(one) for one in members.records}
        views = [one for one in members.records if one.primitive is operations.reshape]
        outside = {key for key in (*members.full, *members.kept) if any(id(one) not in own for one in readers[key])} | wanted
        for one in reversed(views):
            if one.outputs.key in outside:
                outside.add(one.inputs[0].key)
        visible = [one for one in views if one.outputs.key in outside]
        taken |= own
        kept += [_joined(members, outside), *visible]
    return program.with_records(kept)


def _reads_first(program: Program) -> Iterator[Record]:
    """The instructions; those that read Variables which nothing assigns before, and views of these, in front of all others."""
    early: list[Record] = []
    late: list[Record] = []
    available = {x.key for x in program.arguments} | {slot.key for slot in program.slots() if slot.array is not None}
    changed: set[int] | None = set()
    for record in program.records:
        keys = {x.key for x in record.inputs if isinstance(x, Variable)}
        reads = record.primitive in (read_variable, read_flat) and changed is not None and not keys & changed
        views = record.primitive in (part, operations.reshape) and all(x.key in available for x in slots_in(record.inputs))
        if reads or views:
            early.append(record)
            available |= {y.key for y in outputs_of(record)}
            continue
        late.append(record)
        if State.VARIABLES in record.primitive.writes:
            changed = None
        elif changed is not None and State.OPERANDS in record.primitive.writes:
            changed |= keys
    yield from (*early, *late)


def _grown(
    records: Sequence[Record],
    first: int,
    readers: Mapping[int, Sequence[Record]],
    made: Mapping[int, int],
    taken: set[int],
) -> Members | None:
    """The group that begins with an instruction: what reads nothing that is made later by others."""
    domain = _domain_of(records[first], readers)
    if domain is None:
        return None
    members = Members(domain)
    direct = [reader for y in outputs_of(records[first]) for reader in readers[y.key] if is_reduction(reader)]
    for record in records[first : first + WINDOW]:
        ready = all(members.makes(x) or made.get(x.key, -1) < first for x in slots_in(record.inputs))
        simple = domain.is_balanced or record is records[first] or any(record is one for one in direct)
        if id(record) not in taken and ready and simple:
            members.add(record)
    loops = [one for one in members.records if one.primitive is not operations.reshape]
    return members if members.sums and len(loops) > 1 and members.records[0] is records[first] else None


def _domain_of(record: Record, readers: Mapping[int, Sequence[Record]]) -> Domain | None:
    """That of the instruction, if it is a reduction, or of the first reduction of its results."""
    if is_reduction(record):
        return Domain(record.inputs[0].shape, axes_of(record))
    shape, body = elementwise_body(record, DTYPES)
    if body is None or not shape:
        return None
    reductions = [one for y in outputs_of(record) for one in readers[y.key] if is_reduction(one)]
    return Domain(shape, axes_of(reductions[0])) if reductions else None


def levels(members: Sequence[Record], domain: Domain) -> dict[int, int]:
    """For each result the pass in which it is known: what a pass reduces, the next one may read."""
    found: dict[int, int] = {}
    sums: set[int] = set()
    for record in members:
        full, level = is_full(record, domain), 0
        for x in slots_in(record.inputs):
            if x.key in found:
                level = max(level, found[x.key] + (full and x.key in sums))
        for y in outputs_of(record):
            found[y.key] = level
            if not full:
                sums.add(y.key)
    return found


def _joined(members: Members, outside: set[int]) -> Record:
    """One instruction of all: its results are what others read, and what a later pass reads again."""
    level = levels(members.records, members.domain)
    again = {
        x.key
        for record in members.records
        for x in slots_in(record.inputs)
        if x.key in members.full and level[outputs_of(record)[0].key] > level[x.key]
    }
    records = members.records
    results = [y for one in records if one.primitive is not operations.reshape for y in outputs_of(one)]
    outputs = [y for y in results if y.key in outside or y.key in again]
    inputs = {x.key: x for one in records for x in slots_in(one.inputs) if not members.makes(x)}
    params = {
        **{"members": tuple(records), "shape": members.domain.shape, "axes": members.domain.axes},
        **{"inputs": tuple(inputs), "outputs": tuple([y.key for y in outputs])},
    }
    return Record(group, list(inputs.values()), params, tuple(outputs))
