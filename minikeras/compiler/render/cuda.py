"""A nest in CUDA C: a thread for each point of the grid, or a group of threads that share the innermost loops of a point.

There are no atomics: the results of a kernel do not depend on the order in which threads run. Sizes and literals are constants
of the text, and all arguments are addresses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...core.precision import is_short
from ..loop_ir.expression import INDEX, Array, Axis, Expr, IntTable
from ..loop_ir.nest import Fold, For, Nest, Store, expressions, runs, statements
from ..loop_ir.reductions import is_float, neutral
from .cuda_functions import apply, cast, computed, literal, loaded, stored, to_store

THREADS = 256
"""The threads of a block."""
MOST_THREADS = 1024
"""The threads of a block that reduces few columns."""
MOST_BLOCKS = 4096
"""The blocks of a grid whose threads take several points each: enough for every multiprocessor there is."""
FEW_BLOCKS = 264
"""Blocks below which a long reduction is cut into pieces, two for each multiprocessor."""
LONG = 1 << 13
"""Elements from which a reduction may be cut."""
SHORT = 8
"""Elements of a loop that one thread takes alone."""
MANY = 1 << 12
"""The number of points from which neighbouring threads have neighbouring points that read neighbouring elements."""
NARROW = 1 << 30
"""Elements from which an index needs 64 bits; divisions by those are slow."""


class Group(NamedTuple):
    """The threads of a block: so many points of the grid at once, so many lanes for each.

    Attributes:
        points, lanes: powers of two.
        along: whether neighbouring threads are lanes of one point; else they have neighbouring points.
        blocks: of the grid.
    """

    points: int
    lanes: int
    along: bool
    blocks: int

    @classmethod
    def of(cls, count: int, length: int, along: bool) -> Group:
        """The group for so many points with loops of so many elements each."""
        if length <= SHORT:
            return cls(THREADS, 1, along, min(-(-count // THREADS), MOST_BLOCKS))
        if along:
            lanes = min(THREADS, _power_of_two(length))
            points = min(THREADS // lanes, _power_of_two(count))
        else:
            points = min(32, _power_of_two(count))
            few = count < 32 * FEW_BLOCKS
            lanes = min((MOST_THREADS if few else THREADS) // points, _power_of_two(length))
        return cls(points, lanes, along, -(-count // points))

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return max(32, self.points * self.lanes)


def _power_of_two(number: int) -> int:
    """The smallest power of two that is not smaller."""
    return 1 << max(0, number - 1).bit_length()


class Schedule:
    """The division of a nest's points among threads.

    Args:
        nest: the loops, all of whose sizes are constants.

    Attributes:
        axes: parallel loops that are the grid together, the last one innermost.
        count: the number of their points.
        body: the statements for each.
        group: the threads.
    """

    def __init__(self, nest: Nest) -> None:
        grid: Any = nest.grid
        self.axes, self.body = [grid.axis], list(grid.body)
        while len(self.body) == 1 and isinstance(within := self.body[0], For):
            if within.axis.kind != "parallel" or within.axis.extent.number is None:
                break
            self.axes.append(within.axis)
            self.body = list(within.body)
        self.extents = [int(axis.extent.number) for axis in self.axes]
        self.count = math.prod(self.extents)
        loops = [one for one in statements(self.body) if isinstance(one, For)]
        shared = [one for one in loops if is_shared(one)]
        length = max([self.most(one.axis.extent) or THREADS for one in shared], default=1)
        self.group = Group.of(self.count, length, self._is_along(shared))
        inner = [one for loop in loops if not is_shared(loop) for one in statements(loop.body)]
        if nest.scratch or any(isinstance(one, For) and is_shared(one) for one in inner):
            lanes = min(THREADS, max(32, _power_of_two(length)))  # barriers of lanes in loops of a length of their own
            self.group = Group(1, lanes, True, self.count)

    def most(self, x: Expr) -> int | None:
        """An upper bound of an extent; None if none is known."""
        found: int | None = x.number
        if found is not None or x.op not in ("minimum", "maximum", "where"):
            return found
        known = [one for one in map(self.most, x.args[-2:]) if one is not None]
        return min(known, default=None) if x.op == "minimum" else max(known, default=None)

    def _is_along(self, shared: Sequence[For]) -> bool:
        """True if neighbouring threads are to be lanes of one point: if its elements, or no neighbouring points, are adjacent.

        Many neighbouring points that read adjacent elements take precedence: they share their other operands.
        """
        simple = [(one, loop.axis) for loop in shared for one in loop.body if isinstance(one, (Store, Fold))]
        places = [(at, axis) for one, axis in simple for at in _places(one)]
        beside = any(_step(at, self.axes[-1]) == 1 for at, _ in places)
        return not beside or (self.count < MANY and any(_step(at, axis) == 1 for at, axis in places))

    @property
    def pieces(self) -> int:
        """The number of pieces into which the reductions of the nest are cut: few long ones do not keep a device busy."""
        loops = [one for one in self.body if isinstance(one, For)]
        length = loops[0].axis.extent.number if len(loops) == 1 else None
        if length is None or length < LONG or self.group.blocks >= FEW_BLOCKS:
            return 1
        pieces = min(-(-FEW_BLOCKS // self.group.blocks), -(-length // (4 * self.group.lanes)))
        return -(-length // -(-length // pieces))


def is_shared(loop: For) -> bool:
    """True if the lanes of a point share a loop."""
    return loop.is_innermost and loop.axis.kind != "sequential"


def _places(one: Store | Fold) -> list[Expr]:
    """The indices of all elements that a statement reads and writes."""
    found = [one.index] if isinstance(one, Store) else []
    return found + [load.args[0] for load in loads_of([one])]


def _step(x: Expr, axis: Axis) -> int:
    """The step of an index from one point of an axis to the next, except where a line ends."""
    if x is axis:
        return 1
    if x.op in ("add", "subtract"):
        a, b = [_step(one, axis) for one in x.args]
        return a + b if x.op == "add" else a - b
    if x.op == "multiply" and x.args[1].number is not None:
        return _step(x.args[0], axis) * int(x.args[1].number)
    return _step(x.args[-1 if x.op == "where" else 0], axis) if x.op in ("remainder", "where", "astype") else 0


def loads_of(body: Iterable[Any]) -> list[Expr]:
    """All loads in statements, those in loops and of their extents included."""
    return [x for x in expressions(list(body)) if x.op == "load"]


def written_by(body: Iterable[Any]) -> list[Array]:
    """The arrays that statements write."""
    return list(dict.fromkeys(one.array for one in statements(list(body)) if isinstance(one, Store)))


class CUDA:
    """The text of a nest in the making.

    Args:
        nest: what is written; all of its sizes are constants.
        elements: of its largest array.

    Raises:
        NoNest: if a function or a dtype is not known.
    """

    def __init__(self, nest: Nest, elements: int = 0) -> None:
        self.schedule = Schedule(nest)
        self._nest, self._group, self._lines, self._count = nest, self.schedule.group, list[str](), 0
        self._narrow = max(elements, self.schedule.count) < NARROW
        self._kind = "int" if self._narrow else "long long"
        written = written_by(nest.body)
        self._written = [one for one in nest.arrays if one in written]
        self._names: dict[Any, str] = {one: f"y{number}" for number, one in enumerate(self._written)}
        read = [one for one in nest.arrays if one not in written]
        self._names |= {one: f"a{number}" for number, one in enumerate(read)}
        self._names |= {one: f"all_{number}" for number, one in enumerate(nest.scratch)}
        self._index: dict[Expr, bool] = {}
        self._shares = self._inside = False
        """True if the present statements are those of a loop that lanes share, or of another one."""
        self._pending: tuple[set[Array], set[Array]] = set(), set()
        """The arrays that lanes have read and written since the last barrier."""

    def text(self) -> str:
        """The finished function, from its list of parameters on, which are the arrays of the nest in their order."""
        nest, group = self._nest, self._group
        parameters = [
            f"{'' if one in self._written else 'const '}{stored(one.dtype)}* {self._names[one]}" for one in nest.arrays
        ]
        self._do(f"({', '.join(parameters)}) {{")
        self._do(*[f"__shared__ {stored(one.dtype)} {self._names[one]}[{one.scratch}];" for one in nest.scratch])
        if group.lanes == 1:
            first = f"blockIdx.x * {THREADS} + threadIdx.x" if self._narrow else f"blockIdx.x * {THREADS}LL + threadIdx.x"
            step = f"gridDim.x * {THREADS}"
            self._do(f"for ({self._kind} i = {first}; i < {self.schedule.count}; i += {step}) {{")
            self._name_axes("i")
        else:
            self._begin_group()
        for register in dict.fromkeys(one.register for one in statements(self.schedule.body) if isinstance(one, Fold)):
            self._names[register] = self._name("r")
            self._do(f"{computed(register.dtype)} {self._names[register]};")
        self._body(self.schedule.body)
        self._do(*["}"] * (1 + (group.lanes == 1)))
        return "\n".join(_indented(self._lines))

    def _begin_group(self) -> None:
        """The lane of a thread and its point."""
        group, kind, count = self._group, self._kind, self.schedule.count
        lane, own = ("%", "/") if group.along else ("/", "%")
        width = group.lanes if group.along else group.points
        self._do(
            f"const int lane = threadIdx.x {lane} {width};",
            f"const {kind} o = ({kind})blockIdx.x * {group.points} + threadIdx.x {own} {width};",
        )
        beyond = "0x7fffffff" if self._narrow else "0x7fffffffffffffff"
        if group.points > 1 or group.threads > group.lanes:  # threads without a point must reach the barriers too
            self._do(f"const {kind} own = o < {count} ? o : {count - 1}, first = o < {count} ? lane : {beyond};")
        else:
            self._do(f"const {kind} own = o, first = lane;")
        self._name_axes("own")

    def _name_axes(self, point: str) -> None:
        """The axes of the grid, from the number of a point."""
        behind = 1
        for axis, extent in reversed(list(zip(self.schedule.axes, self.schedule.extents, strict=True))):
            name = point if behind == 1 else self._divided(point, "/", str(behind))
            outermost = axis is self.schedule.axes[0]
            self._names[axis] = name if outermost else self._divided(name, "%", str(extent))
            behind *= extent

    # Lines --------------------------------------------------------------------------------------------------------------------

    def _name(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _do(self, *lines: str) -> None:
        self._lines += lines

    def _body(self, body: Sequence[Any]) -> None:
        for run in runs(body):
            self._part([run] if isinstance(run, For) else run)
            if not isinstance(run, For):
                self._write(run)
            elif self._group.lanes > 1 and is_shared(run):
                self._shared_loop(run)
            else:
                self._loop(run)

    def _part(self, body: Sequence[Any]) -> None:
        """Statements, after a barrier if lanes read elements that others have written, or write those that others have read."""
        if self._group.lanes == 1 or (isinstance(body[0], For) and not is_shared(body[0])):
            return
        reads, writes = {one.value for one in loads_of(body)}, {*written_by(body)}
        read, written = self._pending
        alone = bool(writes) and not isinstance(body[0], For)  # perhaps over an operand that others still read
        if writes & (read | written) or reads & written or (alone and read and not self._inside):
            self._barrier()
        self._pending[0].update(reads)
        self._pending[1].update(writes)

    def _barrier(self) -> None:
        self._do("__syncthreads();")
        self._pending = set(), set()

    def _loop(self, loop: For) -> None:
        """A loop that each thread goes through."""
        before, around = self._pending, self._inside
        self._pending, self._inside = (set(before[0]), set(before[1])), True
        self._for(loop, "0", "1")
        if self._group.lanes > 1 and self._pending[1]:
            self._lines.insert(len(self._lines) - 1, "__syncthreads();")
            self._pending = set(), set()
        self._pending, self._inside = (self._pending[0] | before[0], self._pending[1] | before[1]), around

    def _for(self, loop: For, first: str, step: str) -> None:
        stop, name = self._value(loop.axis.extent, {}), self._name("k")
        self._names[loop.axis] = name
        self._do(f"for ({self._kind} {name} = {first}; {name} < {stop}; {name} += {step}) {{")
        self._body(loop.body)
        self._do("}")

    def _shared_loop(self, loop: For) -> None:
        """Each lane takes its part; registers are folded over all lanes afterwards."""
        folds = [one for one in loop.body if isinstance(one, Fold)]
        totals = {one.register: self._names[one.register] for one in folds}
        for one in folds:
            dtype = one.register.dtype
            self._names[one.register] = self._name("s")
            self._do(f"{computed(dtype)} {self._names[one.register]} = {literal(neutral(one.op, dtype), dtype)};")
        self._shares = True
        group = self._group
        waiting, self._group = self._group, group._replace(lanes=1)
        self._for(loop, "first", str(group.lanes))
        self._shares, self._group = False, waiting
        owns = [self._names[one.register] for one in folds]
        self._names |= totals
        self._fold_lanes(folds, owns)
        for one, own in zip(folds, owns, strict=True):
            dtype, name = one.register.dtype, totals[one.register]
            self._do(f"{name} = {apply(one.op, dtype, [name, own])};")

    def _fold_lanes(self, folds: Sequence[Fold], owns: Sequence[str]) -> None:
        """Fold the variables of all lanes of a point, as a tree; all of them have the result."""
        if not folds:
            return
        group = self._group
        if group.points == 1 and group.threads == group.lanes and all(one.op == "logical_or" for one in folds):
            self._do(*[f"{own} = __syncthreads_or({own});" for own in owns])
            self._pending = set(), set()
            return
        step = "" if group.along else f" * {group.points}"
        if self._inside:
            self._do("__syncthreads();")  # after the reads of the previous turn
        rooms = [f"all_{own}" for own in owns]
        kinds = [computed(one.register.dtype) for one in folds]
        self._do(*[f"__shared__ {kind} {room}[{group.threads}];" for kind, room in zip(kinds, rooms, strict=True)])
        self._do(*[f"{room}[threadIdx.x] = {own};" for room, own in zip(rooms, owns, strict=True)], "__syncthreads();")
        self._do(f"for (int half = {group.lanes // 2}; half > 0; half /= 2) {{", "if (lane < half) {")
        for one, room, own in zip(folds, rooms, owns, strict=True):
            other = f"{room}[threadIdx.x + half{step}]"
            self._do(f"{room}[threadIdx.x] = {own} = {apply(one.op, one.register.dtype, [own, other])};")
        self._do("}", "__syncthreads();", "}")
        self._do(*[f"{own} = {room}[threadIdx.x - lane{step}];" for room, own in zip(rooms, owns, strict=True)])
        self._pending = set(), set()

    def _write(self, body: Sequence[Any]) -> None:
        """Statements that all read before one of them writes; one lane alone reads the operands of its write.

        A result may take the memory of an operand, and other lanes would read that while it is written.
        """
        known: dict[Any, str] = {}
        alone = self._group.lanes > 1 and not self._shares and any(isinstance(one, Store) for one in body)
        first = alone and not any(isinstance(one, Fold) for one in body)
        guard = f"if (lane == 0 && o < {self.schedule.count}) {{"
        self._do(*[guard] * first)
        found = [
            (one, self._value(one.value, known), self._value(one.index, known) if isinstance(one, Store) else "")
            for one in body
        ]
        stores, changed = [], {self._names[one.register]: one for one in body if isinstance(one, Fold)}
        for at, (one, *texts) in enumerate(found):
            kept = [self._named(text, computed(changed[text].register.dtype)) if text in changed else text for text in texts]
            found[at] = one, *kept
        for one, value, index in found:
            if isinstance(one, Fold):
                name, dtype = self._names[one.register], one.register.dtype
                value = f"(long long){value}" if self._is_index(one.value) else value
                self._do(f"{name} = {value if one.op == 'set' else apply(one.op, dtype, [name, value])};")
                continue
            place, dtype = f"{self._names[one.array]}[{index}]", one.array.dtype
            if one.adds:
                value = apply("add", dtype, [self._named(loaded(place, dtype), computed(dtype)), value])
            stores.append(f"{place} = {to_store(value, dtype)};")
        if alone and not first and not self._inside and loads_of(body):
            self._barrier()
        self._do(*[guard] * (alone and not first), *stores, *["}"] * alone)

    # Values -------------------------------------------------------------------------------------------------------------------

    def _is_index(self, x: Expr) -> bool:
        """True if an integer depends on axes and sizes alone."""
        if x not in self._index:
            own = x.args[1:] if x.op == "where" else x.args
            known = x.op in ("axis", "constant") or (x.op == "load" and isinstance(x.value, IntTable))
            known = known or (x.op not in ("load", "register") and all(map(self._is_index, own)))
            self._index[x] = x.dtype == INDEX and known
        return self._index[x]

    def _value(self, x: Expr, known: dict[Any, str]) -> str:
        """A name, a constant or a short expression in brackets; each is computed once until memory is written."""
        if x not in known:
            args = [self._value(one, known) for one in x.args] if x.op != "axis" else []
            key = (x.op, x.dtype, x.value, *args) if args else x
            if key not in known:
                known[key] = self._written_value(x, args)
            known[x] = known[key]
        return known[x]

    def _named(self, value: str, kind: str) -> str:
        name = self._name("t")
        self._do(f"const {kind} {name} = {value};")
        return name

    def _written_value(self, x: Expr, args: list[str]) -> str:
        if x.op in ("axis", "register"):
            return self._names[x]
        if x.op == "load" and isinstance(x.value, IntTable):
            return self._named(f"{self._table(x.value)}[{args[0]}]", self._kind)
        if self._is_index(x):
            value = self._indexed(x, args)
            return value if len(value) < 40 else self._named(value, self._kind)
        if x.op == "constant":
            return literal(x.value, x.dtype)
        kind = computed(x.dtype)
        if x.op == "load":
            return self._named(loaded(f"{self._names[x.value]}[{args[0]}]", x.dtype), kind)
        if x.op == "where":
            return self._named(f"{args[0]} ? {args[1]} : {args[2]}", kind)
        if x.op == "astype":
            return self._named(cast(args[0], x.args[0].dtype, x.dtype), kind)
        if self._narrow and x.dtype == INDEX:
            args = [f"(long long){arg}" if self._is_index(one) else arg for one, arg in zip(x.args, args, strict=True)]
        value = apply(x.op, x.args[0].dtype, args)
        if is_float(x.dtype) and is_short(x.dtype):
            value = f"rounded<{stored(x.dtype)}>({value})"
        return self._named(value, kind)

    def _table(self, table: IntTable) -> str:
        """The name of a table, which is written in front of all else."""
        if table not in self._names:
            self._names[table] = self._name("table")
            numbers = ", ".join(map(str, table.numbers))
            self._lines.insert(1, f"static const {self._kind} {self._names[table]}[] = {{{numbers}}};")
        return self._names[table]

    def _indexed(self, x: Expr, args: list[str]) -> str:
        """Arithmetic of indices, which does not wrap."""
        if x.op == "constant":
            return str(x.number)
        if x.op in ("floor_divide", "remainder"):
            return self._divided(args[0], "/" if x.op == "floor_divide" else "%", args[1])
        if x.op == "where":
            return f"({args[0]} ? {args[1]} : {args[2]})"
        if x.op in ("minimum", "maximum"):
            return f"({args[0]} {'<' if x.op == 'minimum' else '>'} {args[1]} ? {args[0]} : {args[1]})"
        sign = {"add": "+", "subtract": "-", "multiply": "*"}.get(x.op)
        return f"({args[0]} {sign} {args[1]})" if sign else apply(x.op, x.dtype, args)

    def _divided(self, a: str, sign: str, b: str) -> str:
        """A division of numbers that are at least 0: unsigned, it takes fewer instructions."""
        kind = "unsigned" if self._narrow else "unsigned long long"
        return f"({self._kind})(({kind}){a} {sign} {b})"

    # Memory -------------------------------------------------------------------------------------------------------------------

    @property
    def may_alias(self) -> tuple[tuple[int, ...], ...]:
        """For each result the operands whose memory it may take: each point reads only the element it writes, before that."""
        body = self.schedule.body
        if any(isinstance(one, For) and one.axis.kind == "sequential" for one in statements(body)):
            return ()
        loads, parts = loads_of(body), [list(statements([run])) if isinstance(run, For) else run for run in runs(body)]
        read = [one for one in self._nest.arrays if one not in self._written]

        def allowed(y: Array) -> tuple[int, ...]:
            places = {one.index for one in statements(body) if isinstance(one, Store) and one.array is y}
            at = [number for number, part in enumerate(parts) if y in written_by(part)]
            if len(places) > 1 or len(at) > 1:
                return ()
            later = {x.value for part in parts[at[0] + 1 :] for x in loads_of(part)}
            others = later | {x.value for x in loads if x.args[0] not in places}
            return tuple([n for n, x in enumerate(read) if x not in others and x.dtype.itemsize == y.dtype.itemsize])

        return tuple(map(allowed, self._written))


def _indented(lines: Sequence[str]) -> list[str]:
    """Lines moved to the right by the blocks that they are in."""
    depth, found = 0, []
    for line in lines:
        depth -= line.startswith("}")
        found.append("  " * depth + line)
        depth += line.endswith("{")
    return found
