"""Loops and reductions as CUDA C, written from traced bodies: one thread for each element, one group of threads for each sum.

No atomics: what a kernel computes does not depend on the order in which threads run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...ir import Slot
from ...loops import Body, Step
from .functions import Element, NoKernel, cast, computed, is_float, is_known, literal, loaded, stored, to_store
from .nodes import Kernel

THREADS = 256
"""Of a block."""
MOST_THREADS = 1024
"""Of a block that reduces few columns."""
MOST_BLOCKS = 4096
"""Of a grid whose threads take several elements each: enough for every multiprocessor there is."""
FEW_BLOCKS = 264
"""Blocks below which a long reduction is cut into pieces, two for each multiprocessor."""
LONG = 1 << 13
"""Elements from which a reduction may be cut."""
SHORT = 8
"""Elements of a sum that one thread takes alone."""

Shape = tuple[int, ...]


class Access(NamedTuple):
    """Where the elements of a slot lie, in elements: at `offset`, plus each coordinate times its stride."""

    slot: Slot
    offset: int
    strides: Shape


def contiguous(shape: Sequence[int]) -> Shape:
    """The strides of an array without gaps.

    >>> contiguous((2, 3, 4))
    (12, 4, 1)
    """
    return tuple([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])


def spread(slot: Slot, shape: Shape) -> Access:
    """A slot that is broadcast to a shape like NumPy; a number has no strides."""
    own = slot.shape or ()
    strides = [0 if size == 1 else stride for size, stride in zip(own, contiguous(own), strict=True)]
    return Access(slot, 0, (0,) * (len(shape) - len(own)) + tuple(strides))


def merged(shape: Shape, strides: Sequence[Shape]) -> tuple[Shape, list[Shape]]:
    """The same elements with as few axes as possible.

    >>> merged((2, 3, 1, 4), [(12, 4, 4, 1), (4, 0, 0, 1)])
    ((2, 3, 4), [(12, 4, 1), (4, 0, 1)])
    >>> merged((2, 3, 1, 4), [(12, 4, 4, 1), (0, 0, 0, 0)])
    ((24,), [(1,), (0,)])
    """
    axes: list[tuple[int, list[int]]] = []
    for axis, size in enumerate(shape):
        own = [one[axis] for one in strides]
        if size == 1:
            continue
        if axes and all(before == size * now for before, now in zip(axes[-1][1], own, strict=True)):
            axes[-1] = axes[-1][0] * size, own
        else:
            axes.append((size, own))
    return tuple([size for size, _ in axes]), [tuple([own[i] for _, own in axes]) for i in range(len(strides))]


def integer(*sizes: int) -> str:
    """The type that counts so many elements."""
    return "unsigned" if max(sizes, default=0) < 1 << 30 else "unsigned long long"


def place(offset: int, strides: Sequence[int], names: Sequence[str]) -> str:
    """The expression of a place in memory.

    >>> place(5, (12, 0, 1), ("i", "j", "k"))
    '5 + i * 12 + k'
    """
    terms = [name if stride == 1 else f"{name} * {stride}" for name, stride in zip(names, strides, strict=True) if stride]
    return " + ".join([*([str(offset)] if offset or not terms else []), *terms])


class Source:
    """A function in the making: parameters, which are slots, and lines. Slots are named in the order in which they occur."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.inputs: list[Slot] = []
        self.outputs: list[Slot] = []
        self._names: dict[tuple[str, int], str] = {}

    def input(self, slot: Slot) -> str:
        """The parameter of what is read."""
        return self._parameter("a", self.inputs, slot)

    def output(self, slot: Slot) -> str:
        """The parameter of what is written."""
        return self._parameter("y", self.outputs, slot)

    def _parameter(self, letter: str, slots: list[Slot], slot: Slot) -> str:
        if not is_known(slot.dtype):
            raise NoKernel(f"a type for {slot.dtype}")
        key = letter, slot.key
        if key not in self._names:
            self._names[key] = f"{letter}{len(slots)}"
            slots.append(slot)
        return self._names[key]

    def do(self, *lines: str) -> None:
        """Write lines."""
        self.lines.extend(lines)

    def coordinates(self, index: str, shape: Shape, letter: str, kind: str) -> list[str]:
        """Names of the coordinates of an element, from its number among all."""
        if len(shape) < 2:
            return [index] * len(shape)
        names = [f"{letter}{axis}" for axis in range(len(shape))]
        for name, size, behind in zip(names, shape, contiguous(shape), strict=True):
            whole = index if behind == 1 else f"{index} / {behind}"
            self.do(f"const {kind} {name} = {whole if name == names[0] else f'{whole} % {size}'};")
        return names

    def load(self, slot: Slot, where: str) -> str:
        """The value of an element."""
        return loaded(f"{self.input(slot)}[{where}]", slot.dtype)

    def store(self, slot: Slot, where: str, value: str) -> None:
        """Write an element."""
        self.do(f"{self.output(slot)}[{where}] = {to_store(value, slot.dtype)};")

    def kernel(self, label: str, blocks: int, threads: int = THREADS, may_alias: Any = ()) -> Kernel:
        """The finished function."""
        parameters = [f"const {stored(slot.dtype)}* {self._names['a', slot.key]}" for slot in self.inputs]
        parameters += [f"{stored(slot.dtype)}* {self._names['y', slot.key]}" for slot in self.outputs]
        text = "\n".join([f"({', '.join(parameters)}) {{", *indented(self.lines), "}"])
        return Kernel(label, text, tuple(self.inputs), tuple(self.outputs), blocks, threads, may_alias)


def indented(lines: Sequence[str]) -> list[str]:
    """Lines moved to the right by the blocks that they are in."""
    depth, found = 1, []
    for line in lines:
        depth -= line.startswith("}")
        found.append("  " * depth + line)
        depth += line.endswith("{")
    return found


def each_element(source: Source, size: int) -> tuple[str, str]:
    """Begin a loop over elements, one for each thread and more where there are too many; the index and its type."""
    kind = integer(size)
    first = f"blockIdx.x * {THREADS}u + threadIdx.x"
    first = first if kind == "unsigned" else f"(unsigned long long)blockIdx.x * {THREADS}u + threadIdx.x"
    source.do(f"for ({kind} i = {first}; i < {size}u; i += gridDim.x * {THREADS}u) {{")
    return "i", kind


def blocks_for(size: int) -> int:
    """Blocks of a loop over elements."""
    return min(-(-size // THREADS), MOST_BLOCKS)


def loop_kernel(label: str, shape: Shape, body: Body, accesses: Sequence[Access], outputs: Sequence[Slot]) -> Kernel:
    """A body for all elements of a shape; results without gaps.

    Raises:
        NoKernel: if a function or a dtype is not known.
    """
    size = math.prod(shape)
    short, (_, *strides) = merged(shape, [contiguous(shape), *[access.strides for access in accesses]])
    source = Source()
    index, kind = each_element(source, size)
    alike = all(one in (contiguous(short), (0,) * len(short)) for one in strides)
    names = [] if alike else source.coordinates(index, short, "i", kind)
    values = []
    for number, (access, own) in enumerate(zip(accesses, strides, strict=True)):
        if own == contiguous(short) and own:
            where = place(access.offset, (1,), (index,))
        else:
            where = place(access.offset, own, names) if any(own) else str(access.offset)
        values.append(f"x{number}")
        source.do(f"const {computed(access.slot.dtype)} x{number} = {source.load(access.slot, where)};")
    element = Element(body, values)
    source.do(*element.lines)
    for slot, (value, dtype) in zip(outputs, element.outputs, strict=True):
        source.store(slot, index, cast(value, dtype, slot.dtype))
    source.do("}")
    full = [access.offset == 0 and own == contiguous(short) for access, own in zip(accesses, strides, strict=True)]
    inputs = [access.slot for access, fits in zip(accesses, full, strict=True) if fits and size > 1]
    gaps = {access.slot.key for access, fits in zip(accesses, full, strict=True) if not fits}
    return source.kernel(label, blocks_for(size), may_alias=_may_alias(source, inputs, gaps))


def _may_alias(source: Source, inputs: Sequence[Slot], gaps: set[int]) -> tuple[tuple[int, ...], ...]:
    """Each thread reads its element before it writes: a result may lie where an operand of its size lies."""
    keys = {slot.key for slot in inputs} - gaps
    return tuple(
        tuple([n for n, x in enumerate(source.inputs) if x.key in keys and x.dtype.itemsize == y.dtype.itemsize])
        for y in source.outputs
    )


def copy_body(dtype: Any, wanted: Any) -> Body:
    """The body of a copy, in another dtype if one is wanted."""
    if dtype == wanted:
        return Body((dtype,), (), (), (), (0,))
    return Body((dtype,), (), (), (Step(1, "astype", (0,), wanted),), (1,))


# Reductions ----------------------------------------------------------------------------------------------------------------


class Fold(NamedTuple):
    """How elements become one.

    Attributes:
        type: the C type of what is carried.
        dtype: of that, if it is a number that memory can hold between two kernels.
        start: what no element changes.
        element: of a value {0} at place {k}.
        combine: of two, {0} and {1}.
        finish: the result, from {0}.
    """

    type: str
    dtype: Any
    start: str
    element: str
    combine: str
    finish: str

    @property
    def rest(self) -> Fold:
        """What is done with the pieces of a reduction that was cut."""
        return self._replace(element="{0}")


def wide(dtype: Any) -> Any:
    """The dtype in which elements are added up: 16-bit floats in float32."""
    return np.dtype(np.float32) if is_float(dtype) and dtype.itemsize == 2 else dtype


def fold_of(name: str, dtype: Any, count: int = 0, result: Any = None) -> Fold:
    """A reduction of so many elements of a dtype.

    Raises:
        NoKernel: if there is none for the dtype.
    """
    own = wide(dtype)
    type_ = computed(own)
    if name in ("any", "all"):
        sign = "||" if name == "any" else "&&"
        return Fold("bool", np.dtype(bool), "false" if name == "any" else "true", "({0} != 0)", f"{{0}} {sign} {{1}}", "{0}")
    if name in ("argmax", "argmin"):
        at = f"Place<{type_}>"
        combine = f"{'first_largest' if name == 'argmax' else 'first_smallest'}({{0}}, {{1}})"
        return Fold(at, None, f"{at}{{0, -1}}", at + "{{{0}, (long long)({k})}}", combine, "{0}.at")
    if name in ("max", "min"):
        lowest = _limit(own, name == "max")
        return Fold(type_, own, lowest, "{0}", f"{'larger' if name == 'max' else 'smaller'}({{0}}, {{1}})", "{0}")
    if name == "logsumexp":
        both = f"Exponentials<{type_}>"
        return Fold(both, None, f"{both}{{{_limit(own, True)}, 0}}", "exponentials({0})", "added({0}, {1})", "log_of({0})")
    total = wide(result) if result is not None and not is_float(own) else own
    if total.kind == "b":
        total = np.dtype(np.int64)
    if name == "mean" and not is_float(total):
        total = np.dtype(np.int64)
    plus = {"prod": "{0} * {1}"}.get(name, "{0} + {1}")
    element = f"({computed(total)})({{0}})" if name != "euclid" else "{0} * {0}"
    finish = {"mean": f"{{0}} / {literal(count, total)}", "euclid": "root({0})"}.get(name, "{0}")
    return Fold(computed(total), total, literal(int(name == "prod"), total), element, plus, finish)


def _limit(dtype: Any, lowest: bool) -> str:
    if is_float(dtype):
        return literal(-math.inf if lowest else math.inf, dtype)
    if dtype.kind == "b":
        return "false" if lowest else "true"
    return literal(np.iinfo(dtype).min if lowest else np.iinfo(dtype).max, dtype)


class Reduced(NamedTuple):
    """A result of a reduction: which output of the body, how, and to where."""

    output: int
    fold: Fold
    slot: Slot


Values = Callable[[Source, Sequence[str], Sequence[str]], Sequence[tuple[str, Any]]]
"""Writes lines that give what is folded, from the coordinates of a result and those within its sum: values and their dtypes."""


def body_values(
    kept: Shape, folded: Shape, body: Body, accesses: Sequence[Access], stored: Sequence[tuple[int, Access]] = ()
) -> tuple[Shape, Shape, Values, bool]:
    """A body for all elements of `kept + folded`, over which accesses have strides.

    Args:
        stored: outputs of the body that are written too, and where.

    Returns:
        Both shapes with as few axes as possible, what writes the body, and whether neighbours within a sum lie side by side.
    """
    everywhere = [*accesses, *[access for _, access in stored]]
    outer, before = merged(kept, [access.strides[: len(kept)] for access in everywhere])
    inner, within = merged(folded, [access.strides[len(kept) :] for access in everywhere])

    def values(source: Source, names: Sequence[str], inside: Sequence[str]) -> Sequence[tuple[str, Any]]:
        for number, access in enumerate(accesses):
            where = place(access.offset, (*before[number], *within[number]), (*names, *inside))
            source.do(f"const {computed(access.slot.dtype)} x{number} = {source.load(access.slot, where)};")
        element = Element(body, [f"x{number}" for number in range(len(accesses))])
        source.do(*element.lines)
        for number, (output, access) in enumerate(stored, len(accesses)):
            where = place(access.offset, (*before[number], *within[number]), (*names, *inside))
            source.store(access.slot, where, cast(*element.outputs[output], access.slot.dtype))
        return element.outputs

    along = any(own and own[-1] == 1 for own in within) or not any(own and own[-1] == 1 for own in before)
    return outer, inner, values, along


def reduction_kernels(
    label: str,
    kept: Shape,
    folded: Shape,
    values: Values,
    along: bool,
    results: Sequence[Reduced],
    temporary: Callable[[Shape, Any], Slot],
) -> list[Kernel]:
    """Values for all elements of `kept + folded`, reduced over the axes of `folded`; few long sums are cut into pieces.

    Args:
        along: whether neighbouring threads are to take neighbours within a sum; else neighbouring sums.
        temporary: makes slots for what lies between two kernels.

    Raises:
        NoKernel: if a function or a dtype is not known.
    """
    count, length = math.prod(kept), math.prod(folded)
    group = Group.of(count, length, along)
    pieces = 1
    if length >= LONG and group.blocks < FEW_BLOCKS and all(result.fold.dtype is not None for result in results):
        pieces = min(-(-FEW_BLOCKS // group.blocks), -(-length // (4 * group.lanes)))
        pieces = -(-length // -(-length // pieces))
    if pieces == 1:
        return [_reduction(label, kept, folded, values, results, group, 1)]
    between = [
        Reduced(result.output, result.fold._replace(finish="{0}"), temporary((count, pieces), result.fold.dtype))
        for result in results
    ]
    kernels = [_reduction(label, kept, folded, values, between, group, pieces)]
    for result, partial in zip(results, between, strict=True):
        access = Access(partial.slot, 0, (pieces, 1))
        rest = body_values((count,), (pieces,), copy_body(partial.slot.dtype, partial.slot.dtype), [access])
        final = [Reduced(0, result.fold.rest, result.slot)]
        kernels.append(_reduction(f"{label}_rest", *rest[:3], final, Group.of(count, pieces, True), 1))
    return kernels


class Group(NamedTuple):
    """The threads of a block: so many results at once, so many lanes for each.

    Attributes:
        results, lanes: powers of two.
        along: whether neighbouring threads are lanes of one result; else they have neighbouring results.
        blocks: of the grid.
    """

    results: int
    lanes: int
    along: bool
    blocks: int

    @classmethod
    def of(cls, count: int, length: int, along: bool) -> Group:
        """For so many results of so many elements each."""
        if length <= SHORT:
            results, lanes = THREADS, 1
        elif along:
            lanes = min(THREADS, _power_of_two(length))
            results = min(THREADS // lanes, _power_of_two(count))
        else:
            results = min(32, _power_of_two(count))
            few = count < 32 * FEW_BLOCKS
            lanes = min((MOST_THREADS if few else THREADS) // results, _power_of_two(length))
        return cls(results, lanes, along, -(-count // results))

    @property
    def threads(self) -> int:
        """Of a block."""
        return max(32, self.results * self.lanes)


def _power_of_two(number: int) -> int:
    """The smallest one that is not smaller."""
    return 1 << max(0, number - 1).bit_length()


def begin_groups(source: Source, group: Group, kind: str, pieces: int = 1) -> None:
    """The lane of a thread and the number of its result, `o`."""
    block = f"({kind})blockIdx.x" + (f" / {pieces}" if pieces > 1 else "")
    lane, own = ("%", "/") if group.along else ("/", "%")
    width = group.lanes if group.along else group.results
    source.do(
        f"const unsigned lane = threadIdx.x {lane} {width};",
        f"const {kind} o = {block} * {group.results} + threadIdx.x {own} {width};",
    )


def fold_lanes(source: Source, folds: Sequence[tuple[str, Fold]], group: Group, everywhere: bool = False) -> None:
    """Fold the variables of all lanes of a result, as a tree: the first lane has what they make, or all have it."""
    if group.lanes == 1 or not folds:
        return
    step = "" if group.along else f" * {group.results}"
    source.do(*[f"__shared__ {fold.type} all_{name}[{group.threads}];" for name, fold in folds])
    source.do(*[f"all_{name}[threadIdx.x] = {name};" for name, _ in folds], "__syncthreads();")
    source.do(f"for (unsigned half = {group.lanes // 2}; half > 0; half /= 2) {{", "if (lane < half) {")
    for name, fold in folds:
        other = f"all_{name}[threadIdx.x + half{step}]"
        source.do(f"all_{name}[threadIdx.x] = {name} = {fold.combine.format(name, other)};")
    source.do("}", "__syncthreads();", "}")
    if everywhere:
        source.do(*[f"{name} = all_{name}[threadIdx.x - lane{step}];" for name, _ in folds])


def _reduction(
    label: str, kept: Shape, folded: Shape, values: Values, results: Sequence[Reduced], group: Group, pieces: int
) -> Kernel:
    """One kernel: each lane folds its elements, then the lanes of a result are folded in shared memory."""
    count, length = math.prod(kept), math.prod(folded)
    source = Source()
    kind = integer(count * pieces, length, count * length)
    begin_groups(source, group, kind, pieces)
    source.do(*[f"{result.fold.type} s{number} = {result.fold.start};" for number, result in enumerate(results)])
    source.do(f"if (o < {count}) {{")
    first, last = "0", str(length)
    if pieces > 1:
        each, first, last = -(-length // pieces), "first", "last"
        source.do(f"const {kind} first = blockIdx.x % {pieces} * {each};")
        source.do(f"const {kind} last = first + {each} < {length} ? first + {each} : {length};")
    names = source.coordinates("o", kept, "o", kind)
    source.do(f"for ({kind} k = {first} + lane; k < {last}; k += {group.lanes}) {{")
    found = values(source, names, source.coordinates("k", folded, "k", kind))
    for number, result in enumerate(results):
        value = result.fold.element.format(found[result.output][0], k="k")
        source.do(f"s{number} = {result.fold.combine.format(f's{number}', f'({value})')};")
    source.do("}", "}")
    fold_lanes(source, [(f"s{number}", result.fold) for number, result in enumerate(results)], group)
    source.do(f"if (lane == 0 && o < {count}) {{")
    where = "o" if pieces == 1 else f"o * {pieces} + blockIdx.x % {pieces}"
    for number, result in enumerate(results):
        source.store(result.slot, where, cast(f"({result.fold.finish.format(f's{number}')})", None, result.slot.dtype))
    source.do("}")
    return source.kernel(label, group.blocks * pieces, group.threads)
