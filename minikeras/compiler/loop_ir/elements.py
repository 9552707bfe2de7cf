"""A body for all elements of a shape, with sums and maxima of its results: loops of CPUs.

Lengths, strides and starts are sizes of the nest, so arrays of all shapes share machine code. All axes before the last are one
loop, or two: around a sum, and over its terms. Where the last axis is too short for vectors, its columns
have statements of their own, and vectors go along the axis before it.
"""

from __future__ import annotations

import enum
import functools
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from ..ir import Slot
from ..loops import Body
from .bodies import NUMBER, NoNest, inlined
from .expression import INDEX, Array, Axis, Expr, apply, bits, cast, lift, minimum, register, size
from .nest import LINE, SHORT, Fold, For, Nest, Part, Statement, Store
from .reductions import copy_body
from .strided import Access, Launch, Shape, contiguous, coordinates, merged, place

BLOCK = 1024
"""Elements whose sum is taken in the dtype itself; sums of blocks are added in float64."""
WIDE = {"exp", "expm1", "tanh", "log", "log1p"}
"""Functions that gain from the longest vectors of a processor; elsewhere LLVM chooses."""
LONG = 12
"""Steps of arithmetic that take as long as one of these: 8, 20 and 16."""


class Made(NamedTuple):
    """A result of a loop.

    Attributes:
        register: of the body.
        access: to its elements; along axes with a stride of 0 they are summed.
        largest: whether the largest one is taken instead, along the last axes.
    """

    register: int
    access: Access
    largest: bool = False


class Result(enum.IntEnum):
    """The result made from a register: stored, summed over axes before the last, over that or all, or its largest."""

    STORE = 0
    OVER_LINES = 1
    OVER_ELEMENTS = 2
    OVER_ALL = 3
    LARGEST = 4


Step = int | None
"""The stride of the last axis, which machine code depends on; None for one that is neither 0 nor 1, and a size."""


def elements_launch(body: Body, shape: Shape, accesses: Sequence[Access], made: Sequence[Made]) -> Launch | None:
    """The launch of a body over all elements of a shape; None if sums are over axes that are not neighbours.

    Raises:
        NoNest: if functions of the body take operands of several dtypes, or integers are divided.
    """
    everywhere = [*accesses, *[one.access for one in made]]
    sizes, strides = merged(shape, [one.strides for one in everywhere])
    if not sizes:
        sizes, strides = (1,), [(1,)] * len(everywhere)
    places = [(one.slot.key, one.offset, own) for one, own in zip(everywhere, strides, strict=True)]
    columns, joins = 1, tuple[str, ...]()
    if len(sizes) > 1 and sizes[-1] < SHORT <= sizes[-2] and all(own[-1] in (0, 1) for own in strides):
        folds = ["add"] * len(accesses) + ["maximum" if one.largest else "add" for one in made]
        joins = tuple(["" if own[-1] else fold for own, fold in zip(strides, folds, strict=True)])
        sizes, strides, columns = sizes[:-1], [own[:-1] for own in strides], sizes[-1]
    last, count = len(sizes) - 1, len(accesses)
    hows = [_result(own, one.largest) for one, own in zip(made, strides[count:], strict=True)]
    firsts = {own.index(0) for how, own in zip(hows, strides[count:], strict=True) if how is Result.OVER_LINES}
    # Lines of the axis before the last are a loop of their own: their coordinates need no division.
    shared, along = min(firsts, default=max(last - 1, min(last, 1))), {*hows} & {Result.OVER_ELEMENTS, Result.LARGEST}
    if None in hows or len(firsts) > 1 or last - shared > 1:  # each thread would look for the coordinates of all lines
        return None
    steps = [own[-1] if own[-1] in (0, 1, columns) else None for own in strides]
    results = tuple([(one.register, *pair) for one, *pair in zip(made, hows, steps[count:], strict=True)])
    nest = elements_nest(body, tuple(steps[:count]), results, shared, last, columns, joins)
    given = [
        n
        for one, own, step in zip(everywhere, strides, steps, strict=True)
        for n in (one.offset, *own[: None if step is None else -1])
    ]
    literals = [int(NUMBER.type(number).view(INDEX)) for _, number in given_literals(body)]
    total, slots = math.prod(sizes) * columns, [one.slot for one in everywhere]
    work = sum(LONG if step.function in WIDE else 1 for step in body.steps)
    seconds = total * (sum(x.dtype.itemsize for x in slots if x.dtype is not float) + work) / 4e10
    seconds += 1e-8 * math.prod(sizes[:-1]) if along else 0.0
    if None in steps:
        seconds = total * slots[-1].dtype.itemsize / 4e9
    if Result.OVER_ALL in hows or (along and not shared):  # one thread takes it
        seconds = 0.0
    alone = [n for n, own in enumerate(places[:count]) if all(own == one for one in places[:count] if own[0] == one[0])]
    aliases = [
        [n for n in alone if how is Result.STORE and places[n][1:] == own[1:]]  # read as it is written
        for how, own in zip(hows, places[count:], strict=True)
    ]
    return Launch(nest, slots[:count], slots[count:], [*sizes, *given, *literals], seconds, may_alias=aliases)


def _result(strides: Shape, largest: bool) -> Result | None:
    """The result with these strides; None if there is no loop for it."""
    last, folded = len(strides) - 1, [axis for axis, stride in enumerate(strides) if not stride]
    if folded == [last]:
        return Result.LARGEST if largest else Result.OVER_ELEMENTS
    if not folded or largest:
        return None if folded else Result.STORE
    if folded == list(range(last + 1)):
        return Result.OVER_ALL
    return Result.OVER_LINES if folded == list(range(folded[0], last)) else None


def copy_launch(access: Access, result: Slot, shape: Shape | None = None, to: tuple[int, Shape] | None = None) -> Launch:
    """A copy of elements of a shape, by default that of the result, to an offset and strides of it, by default without gaps."""
    shape = result.shape if shape is None else shape
    start, strides = to or (0, contiguous(shape))
    made = [Made(0, Access(result, start, strides))]
    found = elements_launch(copy_body(result.dtype, result.dtype), shape, [access], made)
    assert found is not None
    return found


def given_literals(body: Body) -> list[tuple[int, float]]:
    """The literals that are sizes of the nest, as bits, so that bodies with other numbers share its machine code."""
    exact = all(step.dtype is float or step.dtype.kind in "fb" for step in body.steps)
    return [(n, x) for n, x in body.literals if type(x) is float or (exact and type(x) is int and abs(x) > 2)]


class _Strided(NamedTuple):
    """An array, and its start and strides along all axes but the last, then along that."""

    array: Array
    start: Expr
    strides: tuple[Expr, ...]
    step: Expr

    def at(self, names: Sequence[Expr], column: Expr) -> Expr:
        """The place of an element; `names` may lack the last coordinates before its column, which are 0."""
        return place(self.strides[: len(names)], names, 0) + self.start + column * self.step


@functools.lru_cache(1024)
def elements_nest(
    body: Body,
    read: Sequence[Step],
    made: Sequence[tuple[int, Result, Step]],
    shared: int,
    outer: int,
    columns: int = 1,
    joins: Sequence[str] = (),
) -> Nest:
    """The nest, whose text is written once.

    Args:
        body: the operations on each element.
        read: the steps of its inputs.
        made: its results with their steps.
        shared: the number of first axes whose points are parts; 0 if parts are ranges of the last axis.
        outer: the number of axes before the last.
        columns: the elements that lie side by side at each point of the axes.
        joins: for each array "" if it has one for each column, else what makes one of them.
    """
    return _Elements(body, read, made, (shared, outer), columns, joins or [""] * (len(read) + len(made))).nest


class _Elements:
    """A nest in the making."""

    def __init__(
        self,
        body: Body,
        read: Sequence[Step],
        made: Sequence[tuple[int, Result, Step]],
        axes: tuple[int, int],
        columns: int,
        joins: Sequence[str],
    ) -> None:
        shared, outer = axes
        if any(step.function in ("floor_divide", "remainder") and step.dtype == INDEX for step in body.steps):
            raise NoNest("a division of integers")
        literals, dtypes = given_literals(body), body.dtypes
        self._body = body._replace(outputs=tuple([register for register, *_ in made]))
        self._lengths = lengths = [size(f"length{axis}") for axis in range(outer + 1)]
        self._sizes = list(lengths)
        arrays = [Array(f"x{n}", NUMBER if dtype is float else dtype) for n, dtype in enumerate(body.inputs)]
        self._columns, self._joins = columns, joins[len(read) :]
        self._inputs = [self._each(self._strided(x, step), join) for x, step, join in zip(arrays, read, joins, strict=False)]
        results = [(self._strided(Array(f"y{n}", dtypes[one]), step), how) for n, (one, how, step) in enumerate(made)]
        arrays += [y.array for y, _ in results]
        pairs = zip(results, self._joins, strict=True)
        self._outputs = [(one, how) for (y, how), join in pairs for one in (self._each(y, join) if not join else [y])]
        given = [size(f"literal{number}") for number, _ in enumerate(literals)]
        self._literals = {one: bits(own) for (one, _), own in zip(literals, given, strict=True)}
        self._totals = {y: register(NUMBER) for y, how in self._outputs if how is Result.OVER_ALL}
        start, stop = size("start"), size("stop")
        self._range = (lift(0), lengths[-1]) if shared else (start, stop)
        group, line = Axis(stop - start), Axis(lengths[shared], "sequential")
        names = coordinates(start + group, lengths[:shared])
        inside = self._cleared(names)
        inside += [For(line, self._line([*names, line]))] if shared < outer else self._line(names)
        statements: list[Statement] = [Fold(one, "set", 0.0) for one in self._totals.values()]
        statements += [For(group, inside)] if shared else inside
        statements += [Store(y.array, y.start, cast(total, y.array.dtype)) for y, total in self._totals.items()]
        extent = math.prod(lengths[:shared], start=lift(1)) if shared else lengths[-1]
        part = Part(extent, start, stop, statements, 1 if shared else LINE)
        self.nest = Nest("loop", arrays, [*self._sizes, *given], part, in_place=True)

    def _strided(self, array: Array, known: Step) -> _Strided:
        """An array with its sizes."""
        start, *strides = [size(f"{array.name}_{what}") for what in ("start", *range(len(self._lengths) - 1))]
        step = size(f"{array.name}_step") if known is None else lift(known)
        self._sizes += [start, *strides, *([step] if known is None else [])]
        return _Strided(array, start, tuple(strides), step)

    def _each(self, x: _Strided, join: str) -> list[_Strided]:
        """An array at each column."""
        return [x if join else x._replace(start=x.start + column) for column in range(self._columns)]

    def _cleared(self, names: Sequence[Expr]) -> list[Statement]:
        """Zeros where lines are added up."""
        begin, end = self._range
        found: list[Statement] = []
        for y, how in self._outputs:
            if how is Result.OVER_LINES:
                zero = Axis(end - begin)
                found.append(For(zero, [Store(y.array, y.at(names, begin + zero), 0)]))
        return found

    def _line(self, names: Sequence[Expr]) -> list[Statement]:
        """The elements of a line."""
        body: list[Statement] = []
        known: dict[_Strided, Expr] = {}
        for x in itertools.chain(*self._inputs):
            if x.step.number == 0 and x not in known:  # in a register, so that no loop reads it again
                known[x] = register(x.array.dtype)
                body.append(Fold(known[x], "set", x.array[x.at(names, lift(0))]))
        begin, end = self._range
        ends = {y: how for y, how in self._outputs if how not in (Result.STORE, Result.OVER_LINES)}
        if not ends:
            return [*body, self._elements(names, begin, end - begin, known, {})]
        largest = {y: register(y.array.dtype) for y, how in ends.items() if how is Result.LARGEST}
        summed = {y: register(y.array.dtype) for y in ends if y not in largest}
        sums = {y: self._totals.get(y) or register(NUMBER) for y in summed}
        body += [Fold(sums[y], "set", 0.0) for y in summed if y not in self._totals]
        body += [Fold(one, "set", -math.inf) for one in largest.values()]
        block = Axis((end - begin + (BLOCK - 1)) // BLOCK, "sequential")
        first = begin + block * BLOCK
        within: list[Statement] = [Fold(one, "set", 0.0) for one in summed.values()]
        within.append(self._elements(names, first, minimum(end - first, BLOCK), known, summed | largest))
        within += [Fold(sums[y], "add", cast(one, NUMBER)) for y, one in summed.items()]
        body.append(For(block, within))
        found = {y: cast(sums[y], y.array.dtype) for y in summed if y not in self._totals} | largest
        return body + [Store(y.array, y.at(names, lift(0)), one) for y, one in found.items()]

    def _elements(
        self, names: Sequence[Expr], first: Expr, count: Expr, known: dict[_Strided, Expr], folded: dict[_Strided, Expr]
    ) -> For:
        """Neighbouring elements of a line."""
        inner = Axis(count, "reduced" if folded else "parallel")
        column = first + inner
        read = known | {x: x.array[x.at(names, column)] for x in itertools.chain(*self._inputs) if x not in known}
        inputs = [dict(enumerate(map(read.__getitem__, own))) for own in zip(*self._inputs, strict=True)]
        values = zip(*[inlined(self._body, self._literals | one) for one in inputs or [{}]], strict=True)
        joined = [
            one
            for own, join in zip(values, self._joins, strict=True)
            for one in ([functools.reduce(functools.partial(apply, join), own)] if join else own)
        ]
        body: list[Statement] = []
        for (y, how), value in zip(self._outputs, joined, strict=True):
            if y in folded:
                body.append(Fold(folded[y], "maximum" if how is Result.LARGEST else "add", value))
            else:
                body.append(Store(y.array, y.at(names, column), value, adds=how is Result.OVER_LINES))
        return For(inner, body)
