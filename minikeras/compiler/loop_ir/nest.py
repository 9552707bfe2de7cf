"""Nests: loops around statements that store elements, fold them into registers or multiply matrices. `print` shows one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .expression import Array, Axis, Expr, bound, lift

LINE = 16
"""Parts of a line begin at a multiple of so many elements, so that they share no cache line."""
SHORT = 8
"""Extents from which vectors go along an axis; below, its points are written out, and vectors go along the axis around it."""


class For:
    """A loop, possibly of extent 1."""

    def __init__(self, axis: Axis, body: Sequence[Statement]) -> None:
        self.axis, self.body = axis, body

    @property
    def is_innermost(self) -> bool:
        """True if there is no loop or product in it."""
        return all(isinstance(one, (Store, Fold)) for one in self.body)


class Store:
    """Writes an element, or adds to it. Neighbouring Stores and Folds all read before one of them writes."""

    def __init__(self, array: Array, index: Any, value: Any, adds: bool = False) -> None:
        self.array, self.index, self.value, self.adds = array, lift(index), lift(value, array.dtype), adds
        if self.value.dtype != array.dtype:
            raise TypeError(f"{array.name} holds {array.dtype.name}: convert the {self.value.dtype.name} by `cast`.")


class Fold:
    """Sets a register, or folds a value into it: op is "set", "add", in any order, or "maximum"."""

    def __init__(self, register: Expr, op: str, value: Any) -> None:
        self.register, self.op, self.value = register, op, lift(value, register.dtype)


class Matrix(NamedTuple):
    """Rows of an array from an element on.

    Attributes:
        array: of its elements.
        start: index of its first element.
        line: elements from a row to the next.
        turned: whether it is stored transposed.
    """

    array: Array
    start: Any
    line: Any
    turned: bool = False


class Product:
    """c = a b, or c += a b, by a library: c is (m, n), a (m, k), b (k, n). It has no loops of its own."""

    def __init__(self, sizes: tuple[Any, Any, Any], a: Matrix, b: Matrix, c: Matrix, adds: bool = False) -> None:
        self.sizes, self.factors, self.result, self.adds = tuple([lift(one) for one in sizes]), (a, b), c, adds

    @property
    def most(self) -> tuple[int | None, int | None, int | None]:
        """Upper bounds of its sizes; None where none is known."""
        m, n, k = [bound(one) for one in self.sizes]
        return m, n, k


Statement = For | Store | Fold | Product


class Part(NamedTuple):
    """Statements that are carried out for a range of `extent` points; ranges are shared among threads.

    Attributes:
        extent: the number of points.
        start, stop: sizes that represent the range within the statements.
        body: the statements.
        align: ranges begin and end at multiples of it.
    """

    extent: Expr
    start: Expr
    stop: Expr
    body: Sequence[Statement]
    align: int = 1


class Nest:
    """Loops over arrays; the points of the outermost axis, or of a part, may be shared among threads.

    Args:
        name: of the operation.
        arrays: that are given, in their order.
        sizes: integers that are given, in their order.
        grid: the outermost loop, which is parallel, or the statements for a range of points.
        scratch: memory of each thread.
        in_place: whether a result may take the memory of an operand that is read at the same points.
    """

    def __init__(
        self,
        name: str,
        arrays: Sequence[Array],
        sizes: Sequence[Expr],
        grid: For | Part,
        scratch: Sequence[Array] = (),
        in_place: bool = False,
    ) -> None:
        self.name, self.arrays, self.sizes, self.grid = name, arrays, sizes, grid
        self.scratch, self.in_place = scratch, in_place

    @property
    def body(self) -> Sequence[Statement]:
        """The statements of the whole grid."""
        return self.grid.body if isinstance(self.grid, Part) else [self.grid]

    @property
    def products(self) -> list[Product]:
        """The products, which a library computes."""
        return [one for one in statements(self.body) if isinstance(one, Product)]

    def __str__(self) -> str:
        given = ", ".join(f"{one.name}: {one.dtype.name}" for one in self.arrays)
        sizes = "".join(f"; {one.value}" for one in self.sizes)
        names: dict[Expr, str] = {}
        kept = [f"  {one.name} = scratch {one.dtype.name}[{one.scratch}]" for one in self.scratch]
        if isinstance(self.grid, Part):
            names = {self.grid.start: "start", self.grid.stop: "stop"}
            kept.append(f"  for a part, start to stop, of {_shown(self.grid.extent, names)}:")
        return "\n".join([f"{self.name}({given}{sizes})", *kept, *_lines(self.body, names, "  ")])


def statements(body: Sequence[Statement]) -> Iterator[Statement]:
    """All statements, those in loops included."""
    for one in body:
        yield one
        if isinstance(one, For):
            yield from statements(one.body)


def expressions(body: Sequence[Statement]) -> list[Expr]:
    """All expressions in statements, those in loops and of their extents included, each once."""
    seen: dict[Expr, None] = {}
    waiting: list[Expr] = []
    for one in statements(body):
        if isinstance(one, For):
            waiting.append(one.axis.extent)
        elif isinstance(one, (Store, Fold)):
            waiting += [one.value, *([one.index] if isinstance(one, Store) else [])]
    while waiting:
        x = waiting.pop()
        if x not in seen:
            seen[x] = None
            waiting += x.args if x.op != "axis" else ()
    return list(seen)


def runs(body: Sequence[Statement]) -> Iterator[Any]:
    """Loops and products as they are, the statements between them in lists."""
    waiting: list[Statement] = []
    for one in body:
        if isinstance(one, (Store, Fold)):
            waiting.append(one)
            continue
        if waiting:
            yield waiting
            waiting = []
        yield one
    if waiting:
        yield waiting


def loops(axes: Sequence[Axis], body: Sequence[Statement]) -> list[Statement]:
    """A loop over each axis, the last one innermost."""
    found = list(body)
    for axis in reversed(axes):
        found = [For(axis, found)]
    return found


# Printing ------------------------------------------------------------------------------------------------------------------

_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "floor_divide": "//", "remainder": "%", "divide": "/"}
_SIGNS |= {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "logical_and": "and"}


def _lines(body: Sequence[Statement], names: dict[Expr, str], indent: str) -> Iterator[str]:
    for run in runs(body):
        if isinstance(run, For):
            extent = _shown(run.axis.extent, names)
            names[run.axis] = f"i{len(names)}"
            yield f"{indent}for {names[run.axis]} in {run.axis.kind}({extent}):"
            yield from _lines(run.body, names, indent + "  ")
        elif isinstance(run, Product):
            m, n, k = [_shown(size, names) for size in run.sizes]
            a, b, c = [_matrix(matrix, names) for matrix in (*run.factors, run.result)]
            yield f"{indent}{c} {'+=' if run.adds else '='} {a} @ {b} for ({m}, {k}) @ ({k}, {n})"
        else:
            known = names.copy()
            for one in _shared(run):
                yield f"{indent}t{len(known)} = {_shown(one, known)}"
                known[one] = f"t{len(known)}"
            for one in run:
                value = _shown(one.value, known)
                if isinstance(one, Store):
                    yield f"{indent}{one.array.name}[{_shown(one.index, known)}] {'+=' if one.adds else '='} {value}"
                else:
                    name = names.setdefault(one.register, f"r{len(names)}")
                    yield f"{indent}{name} = {value if one.op == 'set' else f'{one.op}({name}, {value})'}"


def _shared(run: Sequence[Store | Fold]) -> list[Expr]:
    """The common subexpressions of several expressions, the innermost first."""
    uses: dict[Expr, int] = {}

    def visit(x: Expr) -> None:
        uses[x] = uses.get(x, 0) + 1
        if uses[x] == 1 and x.op != "axis":
            for one in x.args:
                visit(one)
            uses[x] = uses.pop(x)  # behind its operands

    for one in run:
        for x in (one.value, *([one.index] if isinstance(one, Store) else [])):
            visit(x)
    return [x for x, count in uses.items() if count > 1 and x.args and x.op != "axis"]


def _matrix(one: Matrix, names: dict[Expr, str]) -> str:
    turned = ".T" if one.turned else ""
    return f"{one.array.name}[{_shown(lift(one.start), names)}:, lines of {_shown(lift(one.line), names)}]{turned}"


def _shown(x: Expr, names: dict[Expr, str]) -> str:
    if x in names:
        return names[x]
    if x.op in ("constant", "size"):
        return str(x.value)
    args = [_shown(one, names) for one in x.args]
    if x.op == "load":
        return f"{x.value.name}[{args[0]}]"
    if x.op in _SIGNS:
        return f"({args[0]} {_SIGNS[x.op]} {args[1]})"
    return f"{x.dtype.name if x.op == 'astype' else x.op}({', '.join(args)})"
