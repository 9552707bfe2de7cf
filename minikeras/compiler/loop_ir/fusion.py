"""Loops and reductions over the same axes become one nest, each point of which owns a row or column.

A batch normalization, say, is: a loop and its mean, a loop and the mean of squares, a few numbers for each column, a loop that
reads them. All of that needs no other columns, so a point does it in three passes over its own elements.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...core import Record, State, Variable, operations, read_variable
from ..ir import Program, Slot, outputs_of, slots_in
from ..loops import Body, elementwise_body
from ..variable_storage import part, read_flat
from .groups import Domain, axes_of, group, is_reduction, levels, read_later

WINDOW = 64
"""The number of instructions behind the first one that may join it."""
MOST_SUMS = 6
"""Reductions of one kernel: on a GPU each has shared memory of its own, and a block of 1024 threads has 48 KiB for float64."""


class Target(NamedTuple):
    """The answers of a target about groups.

    Attributes:
        kinds: of the dtypes that it has loops for.
        takes: whether it has text for a loop of a shape and a body, or for a reduction, which has no body.
        repeats: whether a point may go through its elements in several passes; else a group is a loop and its sums.
        leaves: whether a product before it may carry out a loop of a shape and a body, which then begins no group.
        keeps: whether a point has room for elements that later passes read; else they are results.
    """

    kinds: str
    takes: Callable[[Record, Body | None], bool]
    repeats: Callable[[Domain], bool]
    leaves: Callable[[Sequence[int], Body | None], bool] = lambda shape, body: False
    keeps: bool = False


class GroupMembers:
    """The instructions of a group, by their role.

    Attributes:
        full: results with all elements, by key.
        kept: results with one element for each point, by key.
    """

    def __init__(self, domain: Domain, target: Target) -> None:
        self.domain, self.target = domain, target
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
        """True if a slot is a result of the group."""
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
            if x.key in self.kept or self.sums == MOST_SUMS or not self.target.takes(record, None):
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
        shape, body = elementwise_body(record, self.target.kinds)
        if body is None or not body.steps or not self.target.takes(record, body):
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


def fuse_groups(program: Program, target: Target) -> Program:
    """The program with groups: loops and reductions that one nest carries out."""
    records = list(_reads_first(program))
    readers: dict[int, list[Record]] = collections.defaultdict(list)
    for record in records:
        for x in slots_in(record.inputs):
            readers[x.key].append(record)
    made = {y.key: number for number, record in enumerate(records) for y in outputs_of(record)}
    products = {y.key for one in records if one.primitive is operations.matrix_product for y in outputs_of(one)}
    wanted = {x.key for x in slots_in(program.results)}
    taken: set[int] = set()
    kept: list[Record] = []
    for number, record in enumerate(records):
        if id(record) in taken:
            continue
        after = any(x.key in products for x in slots_in(record.inputs))
        left = after and target.leaves(*elementwise_body(record, target.kinds))
        members = None if left else _grown(records, number, readers, made, taken, target)
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
    """The instructions; reads of Variables that nothing assigns before, and views of these, come first."""
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
    target: Target,
) -> GroupMembers | None:
    """The group that begins with an instruction: of instructions that read no later result of others."""
    domain = _domain_of(records[first], readers, target)
    if domain is None:
        return None
    members = GroupMembers(domain, target)
    direct = [reader for y in outputs_of(records[first]) for reader in readers[y.key] if is_reduction(reader)]
    for record in records[first : first + WINDOW]:
        ready = all(members.makes(x) or made.get(x.key, -1) < first for x in slots_in(record.inputs))
        simple = target.repeats(domain) or record is records[first] or any(record is one for one in direct)
        if id(record) not in taken and ready and simple:
            members.add(record)
    loops = [one for one in members.records if one.primitive is not operations.reshape]
    return members if members.sums and len(loops) > 1 and members.records[0] is records[first] else None


def _domain_of(record: Record, readers: Mapping[int, Sequence[Record]], target: Target) -> Domain | None:
    """The domain of the instruction, if it is a reduction, or of the first reduction of its results."""
    if is_reduction(record):
        return Domain(record.inputs[0].shape, axes_of(record))
    shape, body = elementwise_body(record, target.kinds)
    if body is None or not shape:
        return None
    reductions = [one for y in outputs_of(record) for one in readers[y.key] if is_reduction(one)]
    return Domain(shape, axes_of(reductions[0])) if reductions else None


def _joined(members: GroupMembers, outside: set[int]) -> Record:
    """One instruction for all members: its results are those that others read or that a later pass reads again."""
    records = members.records
    again = set[int]() if members.target.keeps else read_later(records, levels(records, members.domain), members.full)
    results = [y for one in records if one.primitive is not operations.reshape for y in outputs_of(one)]
    outputs = [y for y in results if y.key in outside or y.key in again]
    inputs = {x.key: x for one in records for x in slots_in(one.inputs) if not members.makes(x)}
    params = {
        **{"members": tuple(records), "shape": members.domain.shape, "axes": members.domain.axes},
        **{"inputs": tuple(inputs), "outputs": tuple([y.key for y in outputs])},
    }
    return Record(group, list(inputs.values()), params, tuple(outputs))
