"""Kernels of groups: passes over what a group of threads owns, with reductions between them; over parts and rows too."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core import Record
from ....core.registry import operations
from ....layout import Layout
from ...ir import Slot, outputs_of, slots_in
from ...loops import Body, Sum, elementwise_body, is_of_parts
from .functions import DTYPES, Element, cast, computed, loaded
from .fusion import Domain, is_full, is_reduction, levels, loss_and_gradient
from .kernels import (
    THREADS,
    Access,
    Fold,
    Group,
    Reduced,
    Shape,
    Source,
    begin_groups,
    body_values,
    contiguous,
    copy_body,
    fold_lanes,
    fold_of,
    integer,
    merged,
    place,
    reduction_kernels,
    spread,
    wide,
)
from .moves import checked_index
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


# Kernels over flat arrays whose blocks know their part: a block owns a chunk of one part, and adds up what it is asked to.

CHUNK = 16 * THREADS
"""Elements of a block."""
_BLOCK = Group(1, THREADS, True, 1)


def parts_kernels(record: Record, temporary: Callable[[Shape, Any], Slot]) -> list[Kernel]:
    """What carries out a loop over parts, with the sums that it asks for.

    Raises:
        NoKernel: if a function or a dtype is not known.
    """
    layout, sums, outputs = record.params["layout"], record.params["sums"], outputs_of(record)
    operands, body = slots_in(record.inputs), record.params["body"]
    if sums is None:
        return [_loop(layout, body, operands, outputs)]
    chunks = _chunks(layout)
    between = [temporary((chunks[-1],), wide(y.dtype)) for y in outputs]
    ranges = list(itertools.pairwise(chunks)) if sums is Sum.PART else [(0, chunks[-1])]
    return [_partial(layout, body, operands, between), _rest(ranges, between, outputs)]


def _chunks(layout: Layout) -> list[int]:
    """The number of the first chunk of each part, and how many there are."""
    counts = [-(-math.prod(shape) // CHUNK) for shape in layout.shapes]
    return list(itertools.accumulate(counts, initial=0))


def _table(name: str, numbers: Sequence[int]) -> str:
    return f"static const unsigned {name}[] = {{{', '.join(map(str, numbers))}}};"


def _begin(source: Source, layout: Layout, operands: Sequence[Slot]) -> None:
    """The part of a block, its first and its last element, and the numbers of the part."""
    source.do(_table("chunk", _chunks(layout)), _table("begin", layout.starts))
    source.do(_table("end", [one.stop for one in layout.slices]))
    source.do(f"unsigned part = 0, beyond = {len(layout.shapes)};", "while (beyond - part > 1) {")
    source.do("const unsigned middle = (part + beyond) / 2;", "(chunk[middle] <= blockIdx.x ? part : beyond) = middle;", "}")
    source.do(f"const unsigned first = begin[part] + (blockIdx.x - chunk[part]) * {CHUNK};")
    source.do(f"const unsigned last = first + {CHUNK} < end[part] ? first + {CHUNK} : end[part];")
    for number, x in enumerate(operands):
        if x.shape != (layout.size,):
            where = "part" if is_of_parts(x.shape) else "0"
            source.do(f"const {computed(x.dtype)} x{number} = {source.load(x, where)};")


def _each(source: Source, layout: Layout, body: Body, operands: Sequence[Slot]) -> Element:
    """Begin the loop over the elements of a chunk."""
    source.do(f"for (unsigned i = first + threadIdx.x; i < last; i += {THREADS}) {{")
    for number, x in enumerate(operands):
        if x.shape == (layout.size,):
            source.do(f"const {computed(x.dtype)} x{number} = {source.load(x, 'i')};")
    element = Element(body, [f"x{number}" for number in range(len(operands))])
    source.do(*element.lines)
    return element


def _loop(layout: Layout, body: Body, operands: Sequence[Slot], outputs: Sequence[Slot]) -> Kernel:
    source = Source()
    _begin(source, layout, operands)
    element = _each(source, layout, body, operands)
    for y, (value, dtype) in zip(outputs, element.outputs, strict=True):
        source.store(y, "i", cast(value, dtype, y.dtype))
    source.do("}")
    flat = [number for number, x in enumerate(source.inputs) if x.shape == (layout.size,)]
    alias = tuple([tuple([n for n in flat if source.inputs[n].dtype.itemsize == y.dtype.itemsize]) for y in source.outputs])
    return source.kernel("parts", _chunks(layout)[-1], may_alias=alias)


def _partial(layout: Layout, body: Body, operands: Sequence[Slot], totals: Sequence[Slot]) -> Kernel:
    """The sums of each chunk."""
    source, fold = Source(), fold_of("sum", totals[0].dtype)
    _begin(source, layout, operands)
    names = [f"s{number}" for number in range(len(totals))]
    source.do(*[f"{fold.type} {name} = {fold.start};" for name in names])
    element = _each(source, layout, body, operands)
    for name, (value, _) in zip(names, element.outputs, strict=True):
        source.do(f"{name} = {name} + {value};")
    source.do("}", "const unsigned lane = threadIdx.x;")
    fold_lanes(source, [(name, fold) for name in names], _BLOCK)
    source.do("if (lane == 0) {")
    for name, y in zip(names, totals, strict=True):
        source.store(y, "blockIdx.x", name)
    source.do("}")
    return source.kernel("parts", _chunks(layout)[-1])


def _rest(ranges: Sequence[tuple[int, int]], totals: Sequence[Slot], outputs: Sequence[Slot]) -> Kernel:
    """The sums of ranges of chunks, one for each block."""
    source, fold = Source(), fold_of("sum", totals[0].dtype)
    source.do(_table("begin", [first for first, _ in ranges]), _table("end", [last for _, last in ranges]))
    names = [f"s{number}" for number in range(len(totals))]
    source.do(*[f"{fold.type} {name} = {fold.start};" for name in names])
    source.do(f"for (unsigned k = begin[blockIdx.x] + threadIdx.x; k < end[blockIdx.x]; k += {THREADS}) {{")
    source.do(*[f"{name} = {name} + {source.load(x, 'k')};" for name, x in zip(names, totals, strict=True)])
    source.do("}", "const unsigned lane = threadIdx.x;")
    fold_lanes(source, [(name, fold) for name in names], _BLOCK)
    source.do("if (lane == 0) {")
    for name, y in zip(names, outputs, strict=True):
        source.store(y, "blockIdx.x", cast(name, totals[0].dtype, y.dtype))
    source.do("}")
    return source.kernel("parts_rest", len(ranges))


# Softmax and the losses made of it, a row for each group of threads: each element is read twice, nothing lies between.


class Softmax:
    """Rows of logits, written in two passes: the largest element and the sum of exponentials, then the results."""

    def __init__(self, logits: Slot, axis: int) -> None:
        self.logits = logits
        self.dtype = wide(logits.dtype)
        self.lead, self.behind = math.prod(logits.shape[:axis]), math.prod(logits.shape[axis + 1 :])
        self.length = logits.shape[axis]
        self.count = self.lead * self.behind
        self.group = Group.of(self.count, self.length, self.behind == 1)
        self.source = Source()
        self.kind = integer(self.count * self.length)
        self.type = computed(self.dtype)

    def place(self, names: list[str], k: str) -> str:
        """Where an element of a row lies."""
        return place(0, (self.length * self.behind, self.behind, 1), (names[0], k, names[1]))

    def begin(self) -> list[str]:
        """The first pass; `peak` and `total` are known to all threads of a row afterwards."""
        source, fold = self.source, fold_of("logsumexp", self.logits.dtype)
        begin_groups(source, self.group, self.kind)
        names = source.coordinates("o", (self.lead, self.behind), "o", self.kind)
        source.do(f"{fold.type} s = {fold.start};", f"if (o < {self.count}) {{")
        self.each()
        element = fold.element.format(self.logit(names))
        source.do(f"s = {fold.combine.format('s', element)};", "}", "}")
        fold_lanes(source, [("s", fold)], self.group, everywhere=True)
        # An infinite or missing number makes all of its row NaN, as it does where the largest is subtracted first.
        source.do(f"const {self.type} peak = s.peak, total = s.sum + (s.peak - s.peak);")
        return names

    def each(self) -> None:
        """Begin a loop over the elements of a row."""
        self.source.do(f"for ({self.kind} k = lane; k < {self.length}; k += {self.group.lanes}) {{")

    def logit(self, names: list[str]) -> str:
        """The expression of an element of the row."""
        return self.source.load(self.logits, self.place(names, "k"))

    def write_rows(self, y: Slot, names: list[str], value: str) -> Kernel:
        """A second pass that writes each element, `value` of its logit `x`."""
        self.source.do(f"if (o < {self.count}) {{")
        self.each()
        self.source.do(f"const {self.type} x = {self.logit(names)};")
        self.source.store(y, self.place(names, "k"), cast(f"({value})", None, y.dtype))
        self.source.do("}", "}")
        return self.kernel()

    def kernel(self) -> Kernel:
        """The finished function."""
        return self.source.kernel("softmax", self.group.blocks, self.group.threads)


def softmax_kernel(record: Record) -> list[Kernel] | None:
    """What carries out softmax, its logarithm, or the cross-entropy of logits."""
    primitive, y = record.primitive, record.outputs
    if not all(isinstance(x, Slot) and 0 not in x.shape for x in record.inputs):
        return None
    logits = record.inputs[1 if primitive is loss_and_gradient else -1]
    if primitive in (operations.softmax, operations.log_softmax):
        rows = Softmax(logits, record.params["axis"] % len(logits.shape))
        names = rows.begin()
        logs = primitive is operations.log_softmax
        return [rows.write_rows(y, names, "x - peak - logarithm(total)" if logs else "exponential(x - peak) / total")]
    labels, rows = record.inputs[0], Softmax(logits, len(logits.shape) - 1)
    if primitive is operations.softmax_cross_entropy:
        return _cross_entropy(rows, labels, y) if labels.shape == logits.shape else None
    if labels.dtype.kind not in "iu" or np.broadcast_shapes(labels.shape, logits.shape[:-1]) != logits.shape[:-1]:
        return None
    if primitive is loss_and_gradient:
        return _sparse(rows, labels, *y, *record.inputs[2:])
    if primitive is operations.sparse_softmax_cross_entropy_grad:
        return _sparse(rows, labels, None, y)
    return _sparse(rows, labels, y, None)


def _cross_entropy(rows: Softmax, labels: Slot, y: Slot) -> list[Kernel]:
    """-sum of labels times logarithms; a label of zero adds nothing."""
    source, names = rows.source, rows.begin()
    fold: Fold = fold_of("sum", rows.dtype)
    source.do(f"{fold.type} loss = 0;", f"if (o < {rows.count}) {{")
    rows.each()
    source.do(f"const {computed(labels.dtype)} label = {source.load(labels, rows.place(names, 'k'))};")
    source.do(f"if (label != 0) loss = loss + label * ({rows.logit(names)} - peak - logarithm(total));", "}", "}")
    fold_lanes(source, [("loss", fold)], rows.group)
    source.do(f"if (lane == 0 && o < {rows.count}) {{")
    source.store(y, "o", cast("(0 - loss)", None, y.dtype))
    source.do("}")
    return [rows.kernel()]


def _sparse(
    rows: Softmax, labels: Slot, losses: Slot | None, gradients: Slot | None, factor: Slot | None = None
) -> list[Kernel]:
    """log(sum) - the label's logit; and its derivative, softmax less one at the label, times the row's factor."""
    source, names = rows.source, rows.begin()
    shape = rows.logits.shape[:-1]
    source.do(f"if (o < {rows.count}) {{")
    coordinates: Any = source.coordinates("o", shape, "b", rows.kind)
    where = place(0, spread(labels, shape).strides, coordinates)
    checked_index(source, "at", source.load(labels, where), rows.length)
    if losses is not None:
        value = f"(logarithm(total) - ({source.load(rows.logits, rows.place(names, 'at'))} - peak))"
        source.do("if (lane == 0) {")
        source.store(losses, place(0, contiguous(shape), coordinates), cast(value, None, losses.dtype))
        source.do("}")
    if gradients is not None:
        value = f"(exponential({rows.logit(names)} - peak) / total - (k == at ? 1 : 0))"
        if factor is not None:
            own = place(0, spread(Slot(factor.key, factor.shape[:-1], factor.dtype), shape).strides, coordinates)
            source.do(f"const {computed(factor.dtype)} factor = {source.load(factor, own)};")
            value = f"{cast(value, None, gradients.dtype)} * factor"
        rows.each()
        source.store(gradients, rows.place(names, "k"), cast(value, None, gradients.dtype))
        source.do("}")
    source.do("}")
    return [rows.kernel()]
