"""Kernels with their operands: places in a list of addresses, sizes, numbers.

Places are known once all calls are, so a call keeps a function from places to its operands. A stack has members along its first
axes; a kernel does for each member what it does for one array.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core import Record
from ...ir import Slot, outputs_of
from ...loop_ir.bodies import NoNest
from ...loop_ir.matrices import Kind, Output, Result, given_literals, matrix_nest
from ...loop_ir.strided import Launch
from ...loops import Body
from ...render.llvm import WIDE, NestKernel
from ..numpy.lowering import Call
from . import products
from .functions import LIBRARY, is_known
from .kernels import EachKernel
from .products import ProductKernel

Address = Callable[[Slot], int]
"""The place of a slot in the list of addresses."""
Operands = Callable[[Address], list[int]]
"""The operands of a kernel, once places are known."""

SHARED = 10e-6
"""The least seconds of an instruction whose parts threads share, which costs up to 1 us."""


class KernelCall(Call):
    """A kernel.

    Its operands and results lie in memory whose address is known; results that leave the program are copied.

    Attributes:
        kernel: writes its text.
        places: its operands, from the places of slots.
        seconds: its time on one thread, roughly; 0 for one that cannot be shared.
    """

    addressed = True
    __slots__ = ("kernel", "places", "seconds")

    def __init__(
        self,
        kernel: Any,
        places: Operands,
        operands: Sequence[Any],
        results: Sequence[Slot],
        record: Record,
        may_alias: Sequence[Sequence[int]] = (),
        seconds: float = 0.0,
    ) -> None:
        super().__init__(kernel, operands, results, record, may_alias)  # a segment carries it out
        self.kernel, self.places, self.seconds = kernel, places, seconds


def bits(number: float) -> int:
    """The bits of a float64, as an integer."""
    return int(np.float64(number).view(np.int64))


# Stacks --------------------------------------------------------------------------------------------------------------------

Moves = Sequence[tuple[Slot, bool]]
"""Arrays, and whether each member of a stack has one of its own."""


def for_each(kernel: Any, places: Operands, members: int, moves: Moves) -> tuple[Any, Operands]:
    """A kernel, and its operands, for each member; as they are for a single one."""
    if members == 1:
        return kernel, places
    numbers = {slot.key: number for number, (slot, _) in enumerate(moves)}
    own = places(lambda slot: numbers[slot.key])

    strides = [(slot, slot.bytes // members if moving else 0) for slot, moving in moves]
    each: Operands = lambda address: [members, *[n for slot, stride in strides for n in (address(slot), stride)], *own]
    return EachKernel(kernel, len(moves)), each


# Products ------------------------------------------------------------------------------------------------------------------


class Factor(NamedTuple):
    """A matrix, or a stack of them, as a product takes it.

    Attributes:
        slot: of its elements.
        turned: 1 if it is stored transposed.
    """

    slot: Slot
    turned: int

    @property
    def members(self) -> int:
        """The number of matrices."""
        return math.prod(self.slot.shape[:-2])


def product_call(a: Factor, b: Factor, sizes: tuple[int, int, int], y: Slot, record: Record) -> KernelCall:
    """A product of matrices, one (m, k) and one (k, n); of stacks one for each member, or with one factor for all.

    A stack that is multiplied by one matrix is one matrix with more rows.
    """
    m, n, k = sizes
    members = max(a.members, b.members)
    seconds = 2.0 * members * m * n * k / (1e11 if y.dtype == np.float32 else 5e10)
    if b.members == 1 and not a.turned:
        m, members = m * members, 1
    way = products.way_of(y.dtype, (m, n, k))
    by_rows = m > n or not way.blas  # each thread of BLAS packs what all threads need: the smaller one of the two
    numbers = [m, n, k, a.turned, b.turned, *way, int(by_rows)]

    def places(address: Address) -> list[int]:
        return [address(y), address(a.slot), address(b.slot), *numbers]

    moves = [(y, True), (a.slot, a.members > 1), (b.slot, b.members > 1)]
    kernel, operands = for_each(ProductKernel(y.dtype, bool(way.blas)), places, members, moves)
    if way.blas and products.on_one_thread() is None:
        seconds = 0.0
    return KernelCall(kernel, operands, [a.slot, b.slot], [y], record, seconds=seconds)


def nest_call(launch: Launch, operands: Sequence[Slot], record: Record) -> KernelCall:
    """A nest, for each member of a stack if there is one."""
    (y,), numbers, seconds, multiplies = launch.results, list(launch.sizes), launch.seconds, False
    for one in launch.nest.products[:1]:
        way = products.way_of(y.dtype, one.most)
        numbers += way
        multiplies = bool(way.blas)
        seconds = 0.0 if multiplies and products.on_one_thread() is None else seconds
    kernel = NestKernel(launch.nest, multiplies)

    def places(address: Address) -> list[int]:
        return [*map(address, operands), address(y), *numbers]

    moves = [*zip(operands, launch.moving or [False] * len(operands), strict=True), (y, True)]
    whole, given = for_each(kernel, places, launch.members, moves)
    return KernelCall(whole, given, operands, [y], record, [launch.may_alias], seconds)


# Loops and sums ----------------------------------------------------------------------------------------------------------

LONG = 12
"""Steps of arithmetic that take as long as one of an exponential, a logarithm or a tangent: 8, 20 and 16."""
LARGEST_LIBRARY = 1 << 12
"""Elements of the largest loop with a function that only NumPy has in vectorized form."""
LARGEST_TOTAL = 1 << 17
"""Elements of the largest loop that also sums over all, which one thread carries out; threads share other sums."""


class Split(NamedTuple):
    """Members of a stack, each of rows and columns.

    Attributes:
        members, rows, columns: their numbers.
        kinds: the layout of each operand over the rows and columns of a member.
        moving: for each operand whether members have elements of their own.
    """

    members: int
    rows: int
    columns: int
    kinds: list[Kind]
    moving: list[bool]


class MatrixSum(NamedTuple):
    """Rows and columns of each member of a stack, and their reduction."""

    members: int
    rows: int
    columns: int
    how: Result


@functools.lru_cache(1024)
def loop_kernel(body: Body, kinds: tuple[Kind, ...], outputs: tuple[Output, ...], by_rows: bool) -> NestKernel:
    """The kernel of a body, whose text is written once."""
    return NestKernel(matrix_nest(body, kinds, outputs, by_rows))


class LoopCall(KernelCall):
    """A body for rows times columns elements, with sums and maxima of its results.

    Args:
        body: the operations on an element.
        split: the layout of the operands.
        operands: slots.
        record: the instruction.
        windows: of each WINDOW among the operands the first element, and the distance of its rows.
        outputs: the results, and what they are made of; by default those of the body, stored.
    """

    __slots__ = ("_body", "_kinds", "_members", "_moving", "_outputs", "_shape", "_windows")

    def __init__(
        self,
        body: Body,
        split: Split,
        operands: Sequence[Slot],
        record: Record,
        windows: Sequence[int] = (),
        outputs: Sequence[tuple[Slot, Output]] | None = None,
    ) -> None:
        self._body, (self._members, rows, columns, self._kinds, self._moving) = body, split
        self._windows = windows
        self._shape = rows, columns
        stored = [Output(register, Result.STORE) for register in body.outputs]
        self._outputs = list(zip(outputs_of(record), stored, strict=True) if outputs is None else outputs)
        results = [y for y, _ in self._outputs]
        lies = enumerate(zip(self._kinds, self._moving, strict=True))
        whole = [number for number, (kind, moves) in lies if kind is Kind.FULL and (moves or self._members == 1)]
        aliases = [whole if one.how is Result.STORE else () for _, one in self._outputs]
        super().__init__(None, self._operands, operands, results, record, aliases)
        self._settle()

    def add_reduction(self, x: Slot, result: Slot, split: MatrixSum, alone: bool) -> bool:
        """Reduce a result too, if the loop can; with `alone` no other instruction reads it, and it is not even stored."""
        members, rows, columns, how = split
        if members == 1 and self._members > 1 and how in ALONG_ROWS:
            members, rows = self._members, rows // self._members
        if members == 1 and how is Result.OVER_ALL and rows * columns >= LARGEST_TOTAL:
            return False
        fits = (members, rows, columns) == (self._members, *self._shape)
        if not (self._is_flat or fits or (members == self._members == 1 and how is Result.OVER_ALL)):
            return False
        if self._is_flat and (how is not Result.OVER_ALL or members > 1):
            self._members, self._shape = members, (rows, columns)
            self._moving = [kind is Kind.FULL for kind in self._kinds]
        number = next(number for number, (y, _) in enumerate(self._outputs) if y is x)
        output = result, Output(self._outputs[number][1].register, how)
        if alone:
            self._outputs[number], self.results[number], self.may_alias[number] = output, result, ()  # type: ignore[index]
        else:
            self._outputs.append(output)
            self.results.append(result)  # type: ignore[attr-defined]
            self.may_alias.append(())  # type: ignore[attr-defined]
        self._settle()
        return True

    @property
    def _hows(self) -> set[Result]:
        return {output.how for _, output in self._outputs}

    @property
    def _is_flat(self) -> bool:
        """True if members, rows and columns do not matter."""
        plain = not ({Kind.ROW, Kind.COLUMN, Kind.WINDOW} & set(self._kinds)) and self._hows <= {Result.STORE, Result.OVER_ALL}
        return plain and self._members == 1

    def _settle(self) -> None:
        """Choose the kernel for the present outputs, and its parts: members, rows, columns or one."""
        along_rows, across = self._hows & ALONG_ROWS, Result.OVER_ROWS in self._hows
        by_rows = not self._is_flat and not across
        kernel = loop_kernel(self._body, tuple(self._kinds), tuple([output for _, output in self._outputs]), by_rows)
        moves = [*zip(self.operands, self._moving, strict=True), *((y, True) for y, _ in self._outputs)]
        self.kernel, self.places = for_each(kernel, self._operands, self._members, moves)
        size = self._members * math.prod(self._shape)
        traffic = size * sum(x.dtype.itemsize for x in (*self.operands, *self.results))
        whole = self._members == 1 and ((along_rows and across) or Result.OVER_ALL in self._hows)
        each_row = 1e-8 * self._members * self._shape[0] if along_rows else 0.0
        steps = sum(LONG if step.function in WIDE else 1 for step in self._body.steps)
        self.seconds = 0.0 if whole else (traffic + size * steps) / 4e10 + each_row

    def _operands(self, address: Address) -> list[int]:
        shape = (1, math.prod(self._shape)) if self._is_flat else self._shape
        results = [address(y) for y, _ in self._outputs]
        literals = [bits(value) for _, value in given_literals(self._body)]
        return [*map(address, self.operands), *results, *shape, *self._windows, *literals]


ALONG_ROWS = {Result.OVER_COLUMNS, Result.LARGEST_OF_ROW}
"""Reductions that leave one number of each row."""


def reduction(split: MatrixSum, x: Slot, result: Slot, record: Record) -> LoopCall:
    """A sum or maximum along neighbouring axes: a loop without steps."""
    whole = Split(*split[:3], [Kind.FULL], [True])
    return LoopCall(Body((x.dtype,), (), (), (), (0,)), whole, [x], record, outputs=[(result, Output(0, split.how))])


@functools.lru_cache(4096)
def known(body: Body) -> bool:
    """True if there is a kernel for a body of any size."""
    dtypes = [*[dtype for dtype in body.inputs if dtype is not float], *[step.dtype for step in body.steps]]
    kinds = tuple([Kind.SCALAR if dtype is float else Kind.FULL for dtype in body.inputs])
    try:
        outputs = tuple([Output(register, Result.STORE) for register in body.outputs])
        return all(map(is_known, dtypes)) and bool(loop_kernel(body, kinds, outputs, False).text("k"))
    except (KeyError, NoNest):
        return False


def can_loop(body: Body, size: int) -> bool:
    """True if there is a kernel for a body over so many elements."""
    if size > LARGEST_LIBRARY and any(step.function in LIBRARY for step in body.steps):
        return False
    return known(body)


def split_of(shape: tuple[int, ...], operands: Sequence[tuple[int, ...]], windows: Container[int] = ()) -> Split | None:
    """Members, rows, columns, and the layout of each operand in them, with as few members as possible; None without one.

    Beside windows, given by their numbers, the rows lie along the last axis.
    """
    whole = [(1,) * (len(shape) - len(one)) + tuple(one) for one in operands]
    if windows:
        kinds = [Kind.WINDOW if n in windows else _kind(shape, one, len(shape) - 1) for n, one in enumerate(whole)]
        fit = [kind for kind in kinds if kind is not None]
        return Split(1, math.prod(shape[:-1]), shape[-1], fit, [True] * len(fit)) if len(fit) == len(kinds) else None
    for axes in range(1 if 0 in shape else max(len(shape) - 1, 1)):
        members = math.prod(shape[:axes])
        if any(math.prod(one[:axes]) not in (1, members) for one in whole):
            return None
        found = _rows_and_columns(shape[axes:], [one[axes:] for one in whole])
        if found is not None:
            return Split(members, *found, [math.prod(one[:axes]) == members for one in whole])
    return None


def _rows_and_columns(shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> tuple[int, int, list[Kind]] | None:
    for at in range(len(shape) + 1):
        kinds = [_kind(shape, one, at) for one in operands]
        if all(kind is not None for kind in kinds):
            return math.prod(shape[:at]), math.prod(shape[at:]), [kind for kind in kinds if kind is not None]
    return None


def _kind(shape: tuple[int, ...], own: tuple[int, ...], at: int) -> Kind | None:
    if own == shape:
        return Kind.FULL
    if math.prod(own) == 1:
        return Kind.SCALAR
    if math.prod(own[:at]) == 1 and own[at:] == shape[at:]:
        return Kind.ROW
    if math.prod(own[at:]) == 1 and own[:at] == shape[:at]:
        return Kind.COLUMN
    return None


def sum_split(shape: tuple[int, ...], axes: Sequence[int]) -> MatrixSum | None:
    """Members, rows, columns and the kind of a sum along these axes."""
    count, summed = len(shape), len(axes)
    if list(axes) == list(range(count)):
        return MatrixSum(1, 1, math.prod(shape), Result.OVER_ALL)
    if list(axes) == list(range(count - summed, count)):
        return MatrixSum(1, math.prod(shape[: count - summed]), math.prod(shape[count - summed :]), Result.OVER_COLUMNS)
    first = axes[0] if axes else 0
    if list(axes) == list(range(first, first + summed)):
        sizes = math.prod(shape[:first]), math.prod(shape[first : first + summed]), math.prod(shape[first + summed :])
        return MatrixSum(*sizes, Result.OVER_ROWS)
    return None
