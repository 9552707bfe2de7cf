"""Kernels of groups: passes over the elements that a group of threads owns, with reductions between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ....core import Record
from ....core.registry import operations
from ...ir import Slot, outputs_of, slots_in
from ...loops import elementwise_body
from .functions import DTYPES, Element, cast, computed, loaded
from .fusion import Domain, is_full, is_reduction, levels
from .kernels import (
    Access,
    Fold,
    Reduced,
    Shape,
    Source,
    begin_groups,
    body_values,
    copy_body,
    fold_lanes,
    fold_of,
    integer,
    merged,
    place,
    reduction_kernels,
)
from .nodes import Kernel


def group_kernels(record: Record, temporary: Callable[[Shape, Any], Slot]) -> list[Kernel]:
    """What carries out the members of a group.

    Raises:
        NoKernel: if a function or a dtype is not known.
    """
    domain = Domain(record.params["shape"], record.params["axes"])
    members = record.params["members"]
    if domain.is_balanced:
        return [GroupKernel(domain, members, record.outputs).kernel()]
    return _long_sums(domain, members, record.outputs, temporary)


def _fold(record: Record) -> Fold:
    x, y = record.inputs[0], record.outputs
    name = record.primitive.name.removeprefix("reduce_")
    count = math.prod(x.shape) // max(1, math.prod(y.shape))
    return fold_of("euclid" if name == "euclidean_norm" else name, x.dtype, count, y.dtype)


def _long_sums(
    domain: Domain, members: Sequence[Record], outputs: Sequence[Slot], temporary: Callable[[Shape, Any], Slot]
) -> list[Kernel]:
    """One loop and sums of it, which may be cut into pieces."""
    sums = [one for one in members if is_reduction(one)]
    loops = [one for one in members if not is_reduction(one)]
    operands = slots_in(loops[0].inputs) if loops else [sums[0].inputs[0]]
    body = elementwise_body(loops[0], DTYPES)[1] if loops else copy_body(operands[0].dtype, operands[0].dtype)
    assert body is not None
    made = [y.key for y in outputs_of(loops[0])] if loops else [operands[0].key]

    def access(x: Slot) -> Access:
        strides = domain.strides(x, domain.shape)
        assert strides is not None
        return Access(x, 0, (*strides[0], *strides[1]))

    stored = [(made.index(y.key), access(y)) for y in outputs if y.key in made]
    outer, inner, values, along = body_values(domain.kept, domain.folded, body, [access(x) for x in operands], stored)
    results = [Reduced(made.index(one.inputs[0].key), _fold(one), one.outputs) for one in sums]
    return reduction_kernels("group", outer, inner, values, along, results, temporary)


class GroupKernel:
    """One kernel in the making.

    Args:
        domain: its elements.
        members: its instructions.
        outputs: the results that are written.
    """

    def __init__(self, domain: Domain, members: Sequence[Record], outputs: Sequence[Slot]) -> None:
        self._domain, self._members = domain, members
        self._written = {y.key for y in outputs}
        self._made = {y.key: y for one in members for y in outputs_of(one)}
        self._level = levels(members, domain)
        self._group, self._source = domain.threads, Source()
        self._kept: dict[int, str] = {}
        """Variables that hold the values for a thread's own group."""
        self._full: dict[int, str] = {}
        """Variables that hold the values of the present element."""
        self._names: dict[int, str] = {}
        self._strides = self._merged_strides()

    def kernel(self) -> Kernel:
        """The finished function."""
        source, count = self._source, math.prod(self._domain.kept)
        self._kind = integer(count * math.prod(self._domain.folded))
        begin_groups(source, self._group, self._kind)
        length = math.prod(self._domain.folded)
        if self._group.lanes == 1:  # no barriers: threads without a group may end here
            source.do(f"if (o >= {count}) return;", f"const {self._kind} own = o, last = {length};")
        else:  # they read what their own block writes, behind a barrier: other blocks may have written theirs by then
            own = f"o < {count} ? o : {count - 1}"
            source.do(f"const {self._kind} own = {own}, last = o < {count} ? {length} : 0;")
        self._outer = source.coordinates("own", self._kept_shape, "o", self._kind)
        for level in range(max(self._level.values()) + 1):
            self._pass([one for one in self._members if self._level[outputs_of(one)[0].key] == level])
        self._store_kept()
        return source.kernel("group", self._group.blocks, self._group.threads, self._may_alias())

    # Where things lie --------------------------------------------------------------------------------------------------------

    def _merged_strides(self) -> dict[tuple[int, Shape], tuple[Shape, Shape]]:
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
        outer, before = merged(domain.kept, [strides for strides, _ in found.values()])
        inner, within = merged(domain.folded, [strides for _, strides in found.values()])
        self._kept_shape, self._folded_shape = outer, inner
        return dict(zip(found, zip(before, within, strict=True), strict=True))

    def _where(self, x: Slot, shape: Shape, inside: Sequence[str] | None) -> str:
        before, within = self._strides[x.key, shape]
        return place(0, before if inside is None else (*before, *within), (*self._outer, *(inside or ())))

    def _name(self, y: Slot) -> str:
        """A variable: numbered in the order of the members, so that equal groups have equal text."""
        return self._names.setdefault(y.key, f"v{len(self._names)}")

    # Passes ------------------------------------------------------------------------------------------------------------------

    def _pass(self, members: Sequence[Record]) -> None:
        full = [one for one in members if is_full(one, self._domain)]
        sums = [one for one in members if is_reduction(one)]
        rest = [one for one in members if not is_full(one, self._domain) and not is_reduction(one)]
        if full or sums:
            self._elements(full, sums)
        for one in rest:
            if one.primitive is operations.reshape:
                self._kept[one.outputs.key] = self._kept[one.inputs[0].key]
            else:
                self._for_each_group(one)

    def _elements(self, full: Sequence[Record], sums: Sequence[Record]) -> None:
        """All elements of the group: loops, what they store, and reductions."""
        source, folds = self._source, []
        for one in sums:
            fold, name = _fold(one), f"s_{self._name(one.outputs)}"
            source.do(f"{fold.type} {name} = {fold.start};")
            folds.append((name, fold))
        source.do(f"for ({self._kind} k = lane; k < last; k += {self._group.lanes}) {{")
        inside = source.coordinates("k", self._folded_shape, "k", self._kind)
        self._full = {}
        for one in full:
            self._loop(one, inside)
        for one, (name, fold) in zip(sums, folds, strict=True):
            value = fold.element.format(self._operand(one.inputs[0], self._domain.shape, inside), k="k")
            source.do(f"{name} = {fold.combine.format(name, f'({value})')};")
        source.do("}")
        fold_lanes(source, folds, self._group, everywhere=True)
        for one, (name, fold) in zip(sums, folds, strict=True):
            y, own = one.outputs, self._name(one.outputs)
            self._kept[y.key] = own
            source.do(f"const {computed(y.dtype)} {own} = {cast(f'({fold.finish.format(name)})', None, y.dtype)};")

    def _loop(self, record: Record, inside: Sequence[str]) -> None:
        shape, body = elementwise_body(record, DTYPES)
        assert body is not None
        values = [self._operand(x, shape, inside) for x in slots_in(record.inputs)]
        names = self._body(record, body, values)
        for y, name in zip(outputs_of(record), names, strict=True):
            self._full[y.key] = name
            if y.key in self._written:
                self._source.store(y, self._where(y, shape, inside), name)

    def _body(self, record: Record, body: Any, values: Sequence[str]) -> list[str]:
        """The body's lines; the variables of its results."""
        outputs = outputs_of(record)
        element = Element(body, values, prefix=f"{self._name(outputs[0])}_")
        self._source.do(*element.lines)
        for y, (value, dtype) in zip(outputs, element.outputs, strict=True):
            self._source.do(f"const {computed(y.dtype)} {self._name(y)} = {cast(value, dtype, y.dtype)};")
        return [self._name(y) for y in outputs]

    def _operand(self, x: Slot, shape: Shape, inside: Sequence[str] | None) -> str:
        """The value of an operand: a variable, or what lies in memory. Outside of the loop over elements `inside` is None."""
        if x.key in self._full and inside is not None:
            return self._full[x.key]
        if x.key in self._kept:
            return self._kept[x.key]
        where = self._where(x, shape, inside)
        if x.key in self._made:  # an earlier pass of this thread wrote it
            return loaded(f"{self._source.output(x)}[{where}]", x.dtype)
        return self._source.load(x, where)

    def _for_each_group(self, record: Record) -> None:
        """A loop over values of which there is one for each group; all threads of it have them."""
        shape, body = elementwise_body(record, DTYPES)
        assert body is not None
        values = [self._operand(x, shape, None) for x in slots_in(record.inputs)]
        for y, name in zip(outputs_of(record), self._body(record, body, values), strict=True):
            self._kept[y.key] = name

    def _store_kept(self) -> None:
        """Values for each group are written last, when no thread of it reads any more: they may lie where operands lie."""
        stored = [y for one in self._members for y in outputs_of(one) if y.key in self._kept and y.key in self._written]
        if stored:
            self._source.do(*["__syncthreads();"] * (self._group.lanes > 1))
            self._source.do(f"if (lane == 0 && o < {math.prod(self._domain.kept)}) {{")
            for y in stored:
                self._source.store(y, "o", self._kept[y.key])
            self._source.do("}")

    def _may_alias(self) -> tuple[tuple[int, ...], ...]:
        """Results with one element for each group may lie where operands lie of which each group reads its own element."""
        domain, uses = self._domain, self._uses()
        own = [
            number
            for number, x in enumerate(self._source.inputs)
            if domain.is_kept(x.shape) and all(domain.is_one_for_each(x, shape) for shape in uses[x.key])
        ]
        return tuple(
            tuple([n for n in own if self._source.inputs[n].dtype.itemsize == y.dtype.itemsize]) if y.key in self._kept else ()
            for y in self._source.outputs
        )

    def _uses(self) -> dict[int, set[Shape]]:
        """For each operand the shapes of the loops that read it."""
        found: dict[int, set[Shape]] = {}
        for x, shape in self._strides:
            found.setdefault(x, set()).add(shape)
        return found
