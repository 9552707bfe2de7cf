"""A body for all elements of a shape, with sums of its results over lines: loops of CPUs.

Lengths, strides and starts are sizes of the nest, so arrays of all shapes share machine code. All axes before the last are one
loop, or two: around a sum, and over its terms. Where the last axis is too short for vectors, its columns
have statements of their own, and vectors go along the axis before it. Sums within lines are nests of rows, see groups.py.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ..ir import Slot
from ..loops import Body
from .expression import INDEX, NUMBER, Array, Axis, Expr, NoNest, bits, inlined, lift, register, size
from .nest import LINE, SHORT, Fold, For, Nest, Part, Statement, Store
from .reductions import copy_body
from .strided import Access, Launch, Shape, contiguous, coordinates, merged, place

WIDE = {"exp", "expm1", "tanh", "log", "log1p"}
"""Functions that gain from the longest vectors of a processor; elsewhere LLVM chooses."""
LONG = 12
"""Steps of arithmetic that take as long as one of these: 8, 20 and 16."""
MOST_WORK = 128
"""Steps in all columns of a short axis that are written out, at most: others would take seconds to compile."""


class Made(NamedTuple):
    """A result of a loop.

    Attributes:
        register: of the body.
        access: to its elements; along axes with a stride of 0, before the last, they are summed.
    """

    register: int
    access: Access


Step = int | None
"""The stride of the last axis, which machine code depends on; None for one that is neither 0 nor 1, and a size."""


def elements_launch(body: Body, shape: Shape, accesses: Sequence[Access], made: Sequence[Made]) -> Launch | None:
    """The launch of a body over all elements of a shape; None if sums are over the last axis, or axes that are not neighbours.

    Raises:
        NoNest: if functions of the body take operands of several dtypes, or integers are divided.
    """
    everywhere = [*accesses, *[one.access for one in made]]
    sizes, strides = merged(shape, [one.strides for one in everywhere])
    if not sizes:
        sizes, strides = (1,), [(1,)] * len(everywhere)
    places = [(one.slot.key, one.offset, own) for one, own in zip(everywhere, strides, strict=True)]
    count, columns, single = len(accesses), 1, frozenset[int]()
    if not all(own[-1] for own in strides[count:]):
        return None
    is_short = len(sizes) > 1 and sizes[-1] < SHORT <= sizes[-2] and work_of([body]) * sizes[-1] <= MOST_WORK
    over_all = any(0 in own[:-2] for own in strides[count:])
    if is_short and not over_all and all(own[-1] in (0, 1) for own in strides):
        single = frozenset([number for number, own in enumerate(strides) if not own[-1]])
        sizes, strides, columns = sizes[:-1], [own[:-1] for own in strides], sizes[-1]
    last = len(sizes) - 1
    sums = [[axis for axis, stride in enumerate(own) if not stride] for own in strides[count:]]
    totals = columns > 1 and any(sums) and all(axes in ([], [last]) for axes in sums)
    # Lines of the axis before the last are a loop of their own: their coordinates need no division.
    shared = min([axes[0] for axes in sums if axes and not totals], default=max(last - 1, min(last, 1)))
    neighbours = totals or all(axes == list(range(shared, last)) for axes in sums if axes)
    if not neighbours or last - shared > 1:  # each thread would look for the coordinates of all lines
        return None
    steps = [own[-1] if own[-1] in (0, 1, columns) else None for own in strides]
    results = tuple([(one.register, bool(axes), step) for one, axes, step in zip(made, sums, steps[count:], strict=True)])
    nest = elements_nest(body, tuple(steps[:count]), results, shared, last, columns, single)
    given = [
        n
        for one, own, step in zip(everywhere, strides, steps, strict=True)
        for n in (one.offset, *own[: None if step is None else -1])
    ]
    literals = [int(NUMBER.type(number).view(INDEX)) for _, number in given_literals(body)]
    total, slots = math.prod(sizes) * columns, [one.slot for one in everywhere]
    seconds = total * seconds_of(slots, [body])
    if None in steps:
        seconds = total * slots[-1].dtype.itemsize / 4e9
    seconds = 0.0 if totals and not shared else seconds  # one thread takes it
    alone = [n for n, own in enumerate(places[:count]) if all(own == one for one in places[:count] if own[0] == one[0])]
    aliases = [
        [n for n in alone if not axes and places[n][1:] == own[1:]]  # read as it is written
        for axes, own in zip(sums, places[count:], strict=True)
    ]
    return Launch(nest, slots[:count], slots[count:], [*sizes, *given, *literals], seconds, may_alias=aliases)


def seconds_of(slots: Sequence[Slot], bodies: Sequence[Body]) -> float:
    """The time of an element, roughly: of its bytes and of all steps."""
    return float(sum(x.dtype.itemsize for x in slots if x.dtype is not float) + work_of(bodies)) / 4e10


def work_of(bodies: Sequence[Body]) -> int:
    """The steps of bodies, long ones counted as many."""
    return sum(LONG if step.function in WIDE else 1 for body in bodies for step in body.steps)


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

    def at_column(self, column: int) -> _Strided:
        """The array from a column on."""
        return self._replace(start=self.start + column)


@functools.lru_cache(1024)
def elements_nest(
    body: Body,
    read: Sequence[Step],
    made: Sequence[tuple[int, bool, Step]],
    shared: int,
    outer: int,
    columns: int = 1,
    single: Collection[int] = (),
) -> Nest:
    """The nest, whose text is written once.

    Args:
        body: the operations on each element.
        read: the steps of its inputs.
        made: its results, whether each is summed over lines, and their steps.
        shared: the number of first axes whose points are parts; 0 if parts are ranges of the last axis.
        outer: the number of axes before the last.
        columns: the elements that lie side by side at each point of the axes.
        single: numbers of inputs of which one element serves all columns.
    """
    return _Elements(body, read, made, (shared, outer), columns, single).nest


class _Elements:
    """A nest in the making."""

    def __init__(
        self,
        body: Body,
        read: Sequence[Step],
        made: Sequence[tuple[int, bool, Step]],
        axes: tuple[int, int],
        columns: int,
        single: Collection[int],
    ) -> None:
        shared, outer = axes
        if any(step.function in ("floor_divide", "remainder") and step.dtype == INDEX for step in body.steps):
            raise NoNest("a division of integers")
        literals, dtypes = given_literals(body), body.dtypes
        self._body = body._replace(outputs=tuple([register for register, *_ in made]))
        self._lengths = lengths = [size(f"length{axis}") for axis in range(outer + 1)]
        self._sizes = list(lengths)
        arrays = [Array(f"x{n}", NUMBER if dtype is float else dtype) for n, dtype in enumerate(body.inputs)]
        inputs = [self._strided(x, step) for x, step in zip(arrays, read, strict=True)]
        results = [(self._strided(Array(f"y{n}", dtypes[one]), step), adds) for n, (one, adds, step) in enumerate(made)]
        arrays += [y.array for y, _ in results]
        self._inputs = [[x.at_column(0 if n in single else column) for n, x in enumerate(inputs)] for column in range(columns)]
        self._outputs = [[(y.at_column(column), adds) for y, adds in results] for column in range(columns)]
        given = [size(f"literal{number}") for number, _ in enumerate(literals)]
        self._literals = {one: bits(own) for (one, _), own in zip(literals, given, strict=True)}
        start, stop = size("start"), size("stop")
        self._range = (lift(0), lengths[-1]) if shared else (start, stop)
        group, line = Axis(stop - start), Axis(lengths[shared], "sequential")
        names = coordinates(start + group, lengths[:shared])
        inside = self._cleared(names)
        inside += [For(line, self._line([*names, line]))] if shared < outer else self._line(names)
        statements: list[Statement] = [For(group, inside)] if shared else inside
        extent = math.prod(lengths[:shared], start=lift(1)) if shared else lengths[-1]
        part = Part(extent, start, stop, statements, 1 if shared else LINE)
        self.nest = Nest("loop", arrays, [*self._sizes, *given], part, in_place=True)

    def _strided(self, array: Array, known: Step) -> _Strided:
        """An array with its sizes."""
        start, *strides = [size(f"{array.name}_{what}") for what in ("start", *range(len(self._lengths) - 1))]
        step = size(f"{array.name}_step") if known is None else lift(known)
        self._sizes += [start, *strides, *([step] if known is None else [])]
        return _Strided(array, start, tuple(strides), step)

    def _cleared(self, names: Sequence[Expr]) -> list[Statement]:
        """Zeros where lines are added up."""
        begin, end = self._range
        found: list[Statement] = []
        for y, adds in itertools.chain(*self._outputs):
            if adds and y.step.number != 0:
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
        totals = {y: register(y.array.dtype) for y, adds in itertools.chain(*self._outputs) if adds and y.step.number == 0}
        inner = Axis(end - begin, "reduced" if totals else "parallel")
        column = begin + inner
        read = known | {x: x.array[x.at(names, column)] for x in itertools.chain(*self._inputs) if x not in known}
        body += [Fold(total, "set", 0.0) for total in totals.values()]
        inside: list[Statement] = []
        for inputs, outputs in zip(self._inputs, self._outputs, strict=True):
            values = inlined(self._body, self._literals | dict(enumerate(map(read.__getitem__, inputs))))
            for (y, adds), value in zip(outputs, values, strict=True):
                to = y.at(names, column)
                inside.append(Fold(totals[y], "add", value) if y in totals else Store(y.array, to, value, adds))
        return [*body, For(inner, inside), *[Store(y.array, y.at(names, lift(0)), total) for y, total in totals.items()]]
