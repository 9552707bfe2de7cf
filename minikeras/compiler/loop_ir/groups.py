"""Instructions over the same axes as one nest: each point takes its elements in passes, with reductions between them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from types import ModuleType
from typing import Any

from ...core import Record, operations
from ...types import Array as NumPyArray
from ..ir import Slot, instruction, outputs_of, slots_in
from ..loops import Body, elementwise_body
from .elements import seconds_of
from .expression import DTYPES, NUMBER, Array, Axis, Expr, NoNest, cast, converted, inlined, lift, minimum, register
from .nest import SHORT, Fold, For, Statement, Store, loops
from .reductions import FoldRule, Pieces, Reduced, begun, body_values, copy_body, reduction_nests, reduction_of
from .strided import Access, Launch, NestWriter, Shape, Temporary, contiguous, coordinates, merged, place, spread

BLOCK = 1024
"""Elements of a row whose sum is taken in the dtype itself; sums of blocks are added in float64."""
ROOM = 1 << 12
"""The most elements of a row that lie in scratch between two passes: they stay in the nearest cache."""


@instruction()
def group(
    xp: ModuleType, *values: NumPyArray, members: Sequence[Record], inputs: Sequence[int], outputs: Sequence[int], **_: Any
) -> Any:
    """Instructions that one nest carries out, `members`, reduced over `axes` of `shape`; keys of its operands and results."""
    known: dict[int, Any] = dict(zip(inputs, values, strict=True))
    for record in members:
        given = [known[x.key] if isinstance(x, Slot) else x for x in record.inputs]
        results = record.primitive.kernel(xp)(*given, **record.params)
        results = results if type(record.outputs) is tuple else (results,)
        known |= {y.key: xp.broadcast_to(z, y.shape) for y, z in zip(outputs_of(record), results, strict=True)}
    return tuple([known[key].copy() for key in outputs])


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
        self._own = self._significant(contiguous(self.kept), self.kept)

    @property
    def is_by_rows(self) -> bool:
        """True if the elements of each group are neighbours."""
        reduced = [axis in self.axes for axis, size in enumerate(self.shape) if size > 1]
        return reduced == sorted(reduced)

    def is_kept(self, shape: tuple[int, ...]) -> bool:
        """True if an array has one element for each group."""
        return shape in (self.kept, self._with_ones)

    def strides(self, x: Slot, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """The strides of an operand of a loop over `shape`, all elements or one for each group, along both kinds of axes."""
        if 0 in (x.shape or ()):
            return None
        found = spread(x, shape).strides
        if shape == self.shape:
            return tuple([found[axis] for axis in self.others]), tuple([found[axis] for axis in self.axes])
        if shape == self._with_ones and shape != self.kept:
            found = tuple([found[axis] for axis in self.others])
        return found, (0,) * len(self.axes)

    def is_one_for_each(self, x: Slot, shape: tuple[int, ...]) -> bool:
        """True if a group reads only its own element of `x`, which has one for each group."""
        found = self.strides(x, shape)
        return found is not None and not any(found[1]) and self._significant(found[0], self.kept) == self._own

    @staticmethod
    def _significant(strides: Sequence[int], shape: Sequence[int]) -> list[int]:
        return [stride for stride, size in zip(strides, shape, strict=True) if size > 1]


FOLDS = ("sum", "mean", "max", "min", "euclidean_norm", "any", "all")
"""Reductions that may be members, without "reduce_"."""


def is_reduction(record: Record) -> bool:
    """True if an instruction is a reduction that may end a pass."""
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
    """True if a member is a loop over all elements."""
    is_loop = record.primitive is not operations.reshape and not is_reduction(record)
    return is_loop and outputs_of(record)[0].shape == domain.shape


def levels(members: Sequence[Record], domain: Domain) -> dict[int, int]:
    """For each result the pass in which it is known: the reductions of a pass may be read in the next one."""
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


def read_later(members: Sequence[Record], level: Mapping[int, int], full: Collection[int]) -> set[int]:
    """The keys of results over all elements, `full`, that a later pass reads."""
    pairs = [(x.key, level[outputs_of(one)[0].key]) for one in members for x in slots_in(one.inputs)]
    return {key for key, reader in pairs if key in full and reader > level[key]}


def group_nests(record: Record, temporary: Temporary, pieces: Pieces) -> list[Launch]:
    """The nests of a group's members.

    Raises:
        NoNest: if a function or a dtype is not known.
    """
    domain, members = Domain(record.params["shape"], record.params["axes"]), record.params["members"]
    if _is_one_pass(members, domain):
        return _sums(domain, members, record.outputs, temporary, pieces)
    return [_Passes(domain, members, record.outputs).lowered()]


def rows_nest(domain: Domain, members: Sequence[Record], outputs: Sequence[Slot]) -> Launch:
    """The nest of members for rows of any number and length, which sums blocks of a row in their dtype and these in float64."""
    found, count = _Passes(domain, members, outputs, fixed=False).lowered(), math.prod(domain.kept)
    each = seconds_of([*found.operands, *found.results], [_body_of(one) for one in members if is_full(one, domain)])
    seconds = count * (1e-8 + math.prod(domain.folded) * each) if count > 1 else 0.0  # one thread takes a row
    return found._replace(seconds=seconds)


def _reduction_of(record: Record, count: Any = None) -> FoldRule:
    x, y = record.inputs[0], record.outputs
    name = record.primitive.name.removeprefix("reduce_")
    count = math.prod(x.shape) // max(1, math.prod(y.shape)) if count is None else count
    return reduction_of("euclid" if name == "euclidean_norm" else name, x.dtype, count, y.dtype)


def _body_of(record: Record) -> Body:
    body = elementwise_body(record, DTYPES)[1]
    if body is None:
        raise NoNest(f"{record.primitive.name} is no loop")
    return body


def _is_one_pass(members: Sequence[Record], domain: Domain) -> bool:
    """True for a loop over all elements, or an operand, and sums of its results, which may be cut into pieces."""
    loops = [one for one in members if not is_reduction(one)]
    summed = {one.inputs[0].key for one in members if is_reduction(one)}
    made = {y.key for y in outputs_of(loops[0])} if loops else summed
    return (
        len(loops) <= 1 and all(is_full(one, domain) for one in loops) and summed <= made and (bool(loops) or len(summed) == 1)
    )


def loop_of(members: Sequence[Record]) -> tuple[Body, Sequence[Slot], Sequence[Slot]]:
    """The body, operands and results of members of one pass: of the loop that is the first one, or of a copy of an operand."""
    first, operands = members[0], slots_in(members[0].inputs)
    if is_reduction(first):
        return copy_body(operands[0].dtype, operands[0].dtype), operands, operands
    return _body_of(first), operands, outputs_of(first)


def _sums(
    domain: Domain, members: Sequence[Record], outputs: Sequence[Slot], temporary: Temporary, pieces: Pieces
) -> list[Launch]:
    """One loop and the sums of its results."""
    body, operands, values = loop_of(members)
    made = [y.key for y in values]

    def access(x: Slot) -> Access:
        before, within = domain.strides(x, domain.shape) or ((), ())
        return Access(x, 0, (*before, *within))

    stored = [(made.index(y.key), access(y)) for y in outputs if y.key in made]
    whole = body_values(domain.kept, domain.folded, body, [access(x) for x in operands], stored)
    sums = [one for one in members if is_reduction(one)]
    results = [Reduced(made.index(one.inputs[0].key), _reduction_of(one), one.outputs) for one in sums]
    return reduction_nests("group", *whole, results, temporary, pieces)


class _Passes:
    """One nest in the making.

    Args:
        domain: its elements.
        members: its instructions.
        outputs: the results that are written.
        fixed: as of `NestWriter`; else points are rows, and of elements that a later pass reads there are at most `ROOM`.
    """

    def __init__(self, domain: Domain, members: Sequence[Record], outputs: Sequence[Slot], fixed: bool = True) -> None:
        self._domain, self._members = domain, members
        self._written = {y.key for y in outputs}
        self._level = levels(members, domain)
        self._writer = NestWriter(fixed)
        self._o, self._length = Axis(self._writer.size(math.prod(domain.kept))), self._writer.size(math.prod(domain.folded))
        full = {y.key: y for one in members if is_full(one, domain) for y in outputs_of(one)}
        later = read_later(members, self._level, full) - self._written
        self._scratch = {key: Array(f"kept{n}", full[key].dtype, ROOM) for n, key in enumerate(sorted(later))}
        """The elements of a point that later passes read and that are no results."""
        self._strides = self._merged_strides()
        self._outer = coordinates(self._o, self._kept_shape)
        self._kept: dict[int, Expr] = {}
        """The values for a point: those of passes before are in registers."""
        self._fresh: dict[int, Slot] = {}
        self._body: list[Statement] = []

    def lowered(self) -> Launch:
        """The finished nest. Values for each point are written last: they may take the memory of operands."""
        for level in range(max(self._level.values()) + 1):
            self._pass([one for one in self._members if self._level[outputs_of(one)[0].key] == level])
        kept = [y for one in self._members for y in outputs_of(one) if y.key in self._kept and y.key in self._written]
        self._body += [Store(self._writer.result(y), self._o, converted(self._kept[y.key], y.dtype)) for y in kept]
        return self._writer.lowered("group", For(self._o, self._body), list(self._scratch.values()))

    def _merged_strides(self) -> dict[tuple[int, Shape], Sequence[Any]]:
        """The strides of all operands and results that lie in memory, with as few axes as possible."""
        domain = self._domain
        found: dict[tuple[int, Shape], Any] = {}
        for one in self._members:
            if one.primitive is not operations.reshape:
                whole = is_reduction(one) or is_full(one, domain)
                shape = domain.shape if whole else outputs_of(one)[0].shape
                made = outputs_of(one) if is_full(one, domain) else ()
                for x in (*slots_in(one.inputs), *made):
                    found[x.key, shape] = domain.strides(x, shape)
        kept, before = merged(domain.kept, [strides for strides, _ in found.values()])
        folded, within = merged(domain.folded, [strides for _, strides in found.values()])
        if not folded:
            folded, within = (1,), [(0,)] * len(found)
        known = SHORT if len(folded) == 1 and folded[0] < SHORT and not self._scratch else 2  # vectors go along short rows

        def size(n: int) -> Expr:
            return lift(n) if n < known else self._writer.size(n)

        self._kept_shape, self._folded_shape = [self._writer.size(n) for n in kept], list(map(size, folded))
        own = [(*one, *other) for one, other in zip(before, within, strict=True)]
        return {key: list(map(size, one)) for key, one in zip(found, own, strict=True)}

    def _where(self, x: Slot, shape: Shape, inside: Sequence[Expr] | None) -> Expr:
        names = (*self._outer, *(inside or ()))
        return place(self._strides[x.key, shape][: len(names)], names)

    def _pass(self, members: Sequence[Record]) -> None:
        full = [one for one in members if is_full(one, self._domain)]
        sums = [one for one in members if is_reduction(one)]
        if full or sums:
            self._elements(full, sums)
        for one in members:
            if one.primitive is operations.reshape:
                self._kept[one.outputs.key] = self._kept[one.inputs[0].key]
            elif not is_full(one, self._domain) and not is_reduction(one):  # a loop over values, one for each point
                outputs = outputs_of(one)
                values = [self._operand(x, outputs[0].shape, None, {}) for x in slots_in(one.inputs)]
                for y, value in zip(outputs, inlined(_body_of(one), values), strict=True):
                    self._keep(y, value)

    def _elements(self, full: Sequence[Record], sums: Sequence[Record]) -> None:
        """All elements of a point: loops, what they store, and reductions."""
        self._hold()
        body, begin, end, first, fixed = list[Any](), list[Statement](), list[Statement](), lift(0), self._writer.fixed
        *lines, length = [self._length] if fixed else self._folded_shape
        in_blocks = bool(sums) and not fixed and length.number is None
        line, block = Axis(math.prod(lines), "sequential"), Axis((length + (BLOCK - 1)) // BLOCK, "sequential")
        k = Axis(length, "reduced" if sums else "parallel")
        if in_blocks:
            first, k = block * BLOCK, Axis(minimum(length - block * BLOCK, BLOCK), "reduced")
        inside = coordinates(k, self._folded_shape) if fixed else [*coordinates(line, lines), first + k]
        at = (line * length if lines else 0) + (first + k)
        known = {key: array[at] for key, array in self._scratch.items()}
        for one in full:
            shape = outputs_of(one)[0].shape
            values = [self._operand(x, shape, inside, known) for x in slots_in(one.inputs)]
            for y, value in zip(outputs_of(one), inlined(_body_of(one), values), strict=True):
                known[y.key] = converted(value, y.dtype)
                if y.key in self._written:
                    body.append(Store(self._writer.result(y), self._where(y, shape, inside), known[y.key]))
                elif y.key in self._scratch:
                    body.append(Store(self._scratch[y.key], at, known[y.key]))
        for one in sums:
            reduction = _reduction_of(one, self._length)
            element = reduction.element(self._operand(one.inputs[0], self._domain.shape, inside, known))
            fold = Fold(register(reduction.dtype), reduction.op, element)
            body.append(fold)
            total = fold
            if in_blocks and fold.op == "add":
                total = Fold(register(NUMBER), "add", cast(fold.register, NUMBER))
                begin.append(begun(fold))
                end.append(total)
            self._body.append(begun(total))
            self._keep(one.outputs, reduction.finish(cast(total.register, reduction.dtype)))
        inner = For(block, [*begin, For(k, body), *end]) if in_blocks else For(k, body)
        self._body += loops([line] if lines else [], [inner])

    def _keep(self, y: Slot, value: Expr) -> None:
        """Keep a value of a point, and write it if it is an output."""
        self._kept[y.key], self._fresh[y.key] = converted(value, y.dtype), y

    def _hold(self) -> None:
        """Put the values of a pass into registers, once for all elements of the next."""
        values = {key: self._kept[key] for key in self._fresh}
        self._kept |= {key: register(y.dtype) for key, y in self._fresh.items()}
        self._body += [Fold(self._kept[key], "set", value) for key, value in values.items()]
        self._fresh.clear()

    def _operand(self, x: Slot, shape: Shape, inside: Sequence[Expr] | None, known: dict[int, Expr]) -> Expr:
        """The value of an operand: one of this pass, a register, or an element in memory."""
        if x.key in known:
            return known[x.key]
        if x.key in self._kept:
            return self._kept[x.key]
        return self._writer.array(x)[self._where(x, shape, inside)]
