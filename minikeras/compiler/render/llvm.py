"""A nest in LLVM's language, as a kernel. It depends on formulas and dtypes, not on sizes, so programs share kernels.

    void kernel(ptr operands, ptr addresses, i64 part, i64 parts)

It carries out one of `parts` parts of its work. `operands` are integers of 64 bits; those that stand for arrays are places in
`addresses`. All arrays are C-contiguous.

Registers are cells of the stack, which LLVM promotes to registers of the processor. Elementwise functions and conversions are
those of all kernels (executors/llvm/functions.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import cached_property
from ..executors.llvm.functions import Instructions, Value, apply, cast, constant, function_text, type_of
from ..executors.llvm.products import called
from ..loop_ir.elements import WIDE
from ..loop_ir.expression import INDEX, Array, Expr, ScratchView, lift
from ..loop_ir.nest import LINE, SHORT, Fold, For, Nest, Part, Product, Store, expressions, runs

INTEGERS = {
    **{"add": "add nsw", "subtract": "sub nsw", "multiply": "mul nsw", "floor_divide": "udiv", "remainder": "urem"},
    **{"less": "icmp slt", "less_equal": "icmp sle", "greater_equal": "icmp sge", "equal": "icmp eq"},
}


def load_operand(to: Instructions, number: int) -> Value:
    """An operand of the kernel."""
    return to.add(f"load i64, ptr {to.add(f'getelementptr i64, ptr %o, i64 {number}')}")


def load_address(to: Instructions, number: int) -> Value:
    """The address of the array whose place an operand is."""
    return to.add(f"load ptr, ptr {to.add(f'getelementptr ptr, ptr %a, i64 {load_operand(to, number)}')}")


def part_of(to: Instructions, count: Value, align: int) -> tuple[Value, Value]:
    """The first of a part of `count`, and the one after its last; all but the last part end at a multiple of `align`."""

    def bound(part: Value) -> Value:
        at = to.add(f"sdiv i64 {to.add(f'mul i64 {count}, {part}')}, %parts")
        return to.add(f"and i64 {at}, {-align}") if align > 1 else at

    following = to.add("add i64 %part, 1")
    is_last = to.add(f"icmp eq i64 {following}, %parts")
    return bound("%part"), to.add(f"select i1 {is_last}, i64 {count}, i64 {bound(following)}")


class NestKernel:
    """A nest as a kernel; parts are ranges of the outermost axis.

    Its operands are the places of the arrays, then the sizes, then, if it has products, the addresses of a `Way`; of a stack
    also the number of members, and for each array the bytes by which it moves on from member to member.

    Args:
        nest: the loops.
        multiplies: whether the way is BLAS.
        is_stack: whether it is carried out for each member of a stack; parts then are members.
    """

    def __init__(self, nest: Nest, multiplies: bool = False, is_stack: bool = False) -> None:
        self.nest, self.multiplies, self._is_stack = nest, multiplies, is_stack
        self._to = Instructions()
        self._cells: dict[Expr, Value] = {}
        self._names: dict[Any, Value] = {}
        self._read: set[Expr] = set()
        """The values computed from elements, where sums of integers may wrap around."""
        self._entry: list[str] = []
        self._metadata: list[str] = []
        self._group = ""

    @cached_property
    def text(self) -> str:
        """The function `k`, and before it that of a range of the grid; threads may ask at once, so each writes its own."""
        return NestKernel(self.nest, self.multiplies, self._is_stack)._text()

    def _text(self) -> str:
        nest, to, head = self.nest, self._to, self._head()
        for number, one in enumerate(nest.scratch):
            self._names[one] = self._names[one.of] if isinstance(one, ScratchView) else f"%scratch{number}"
        self._entry += [
            f"  {self._names[x]} = alloca [{x.scratch} x {_memory(x.dtype)}], align 64"
            for x in nest.scratch
            if type(x) is Array
        ]
        if isinstance(nest.grid, Part):
            self._names |= {nest.grid.start: "%start", nest.grid.stop: "%stop"}
            self._body(nest.grid.body)
        else:
            self._loop(nest.grid, "%start", "%stop")
        body = ["entry:", *self._entry, *to.lines, "  ret void", "}"]
        return "\n".join([*sorted(to.declared), head, *body, self._whole(), *self._metadata])

    def _head(self) -> str:
        """The head of the function of a range. Arrays are parameters, so that LLVM knows those that do not alias."""
        nest = self.nest
        self._names = {one: f"%array{number}" for number, one in enumerate(nest.arrays)}
        self._names |= {one: f"%size{number}" for number, one in enumerate(nest.sizes)}
        long = not nest.in_place and any(x.op in WIDE for x in expressions(nest.body))
        alias, width = "" if nest.in_place else " noalias", ' "prefer-vector-width"="512"' if long else ""
        given = ["i64 %start", "i64 %stop", *(f"ptr{alias} {self._names[x]}" for x in nest.arrays)]
        given += [*(f"i64 {self._names[x]}" for x in nest.sizes), "ptr %product", "ptr %blas"]
        return f"define internal void @k_range({', '.join(given)}) noinline{width} {{"

    def _begin(self) -> tuple[Value, int]:
        """Load the operands; the extent of the grid, and the number of which multiples parts begin at."""
        to, nest = self._to, self.nest
        self._names = {one: load_address(to, number) for number, one in enumerate(nest.arrays)}
        self._names |= {one: load_operand(to, len(nest.arrays) + number) for number, one in enumerate(nest.sizes)}
        grid = nest.grid
        if isinstance(grid, Part):
            extent, align = grid.extent, grid.align
        else:
            extent, align = grid.axis.extent, LINE if grid.is_innermost else 1
        return self._value(extent, {}), align

    def _whole(self) -> str:
        """The kernel, which calls the function of its range, or that of the whole grid for each member."""
        to, nest, before = Instructions(), self.nest, self._to
        self._to = to
        extent, align = self._begin()
        arrays, sizes = [[self._names[one] for one in some] for some in (nest.arrays, nest.sizes)]
        behind = itertools.count(len(arrays) + len(sizes))
        way = [load_operand(to, next(behind)) for _ in range(2 if nest.products else 0)]
        blas = [to.add(f"inttoptr i64 {one} to ptr") for one in way] or ["null", "null"]

        def call(start: Value, stop: Value, arrays: Sequence[Value]) -> None:
            given = [f"i64 {start}", f"i64 {stop}", *(f"ptr {x}" for x in arrays), *(f"i64 {x}" for x in sizes)]
            to.do(f"call void @k_range({', '.join([*given, *(f'ptr {x}' for x in blas)])})")

        if self._is_stack:
            members = load_operand(to, next(behind))
            strides = [load_operand(to, next(behind)) for _ in arrays]
            with to.loop(*part_of(to, members, 1)) as member:
                moves = [to.add(f"mul i64 {member.index}, {stride}") for stride in strides]
                call("0", extent, [to.add(f"getelementptr i8, ptr {x}, i64 {at}") for x, at in zip(arrays, moves, strict=True)])
        else:
            call(*part_of(to, extent, align), arrays)
        self._to = before
        return function_text("void @k(ptr %o, ptr %a, i64 %part, i64 %parts)", to)

    # Statements ---------------------------------------------------------------------------------------------------------------

    def _body(self, body: Sequence[Any]) -> None:
        for one in runs(body):
            if isinstance(one, For):
                self._loop(one, "0", "")
            elif isinstance(one, Product):
                self._multiply(one)
            else:
                self._write(one)

    def _cell(self, key: Expr, kind: str) -> Value:
        """A place on the stack."""
        if key not in self._cells:
            self._cells[key] = "%" + self._to.name("cell")
            self._entry.append(f"  {self._cells[key]} = alloca {kind}")
        return self._cells[key]

    def _loop(self, loop: For, start: Value, stop: Value) -> None:
        if _is_short(loop) and not stop:
            for number in range(loop.axis.extent.number):
                self._names[loop.axis] = str(number)
                self._body(loop.body)
            return
        stop = stop or self._value(loop.axis.extent, {})
        hint, group = self._hints(loop)
        with self._to.loop(start, stop, hint) as one:
            self._names[loop.axis], self._group = one.index, group
            self._body(loop.body)
            self._group = ""

    def _hints(self, loop: For) -> tuple[str, str]:
        """The metadata of a loop of vectors: LLVM need not prove the independence that the kind of its axis states."""
        is_innermost = all(isinstance(one, (Store, Fold)) or (isinstance(one, For) and _is_short(one)) for one in loop.body)
        if not is_innermost or loop.axis.kind == "sequential":
            return "", ""
        n = 10 + len(self._metadata)
        self._metadata += [
            f"!{n} = distinct !{{}}",
            f'!{n + 1} = !{{!"llvm.loop.parallel_accesses", !{n}}}',
            f"!{n + 2} = distinct !{{!{n + 2}, !{n + 1}, !{n + 3}}}",
            f'!{n + 3} = !{{!"llvm.loop.unroll.disable"}}',  # or LLVM unrolls short loops before it looks for vectors
        ]
        return f", !llvm.loop !{n + 2}", f", !llvm.access.group !{n}"

    def _write(self, body: Sequence[Any]) -> None:
        """Carry out statements; all of them read before one of them writes."""
        known: dict[Expr, Value] = {}
        found = [(one, self._value(one.value, known)) for one in body]
        indices = [self._value(one.index, known) if isinstance(one, Store) else "" for one in body]
        for (one, value), index in zip(found, indices, strict=True):
            if isinstance(one, Store):
                self._store(one, index, value)
            else:
                self._fold(one, value)

    def _store(self, one: Store, index: Value, value: Value) -> None:
        to, kind = self._to, _memory(one.array.dtype)
        place = self._place(one.array, index)
        if one.adds:
            old = to.add(f"load {kind}, ptr {place}{self._group}")
            value = apply(to, "add", one.array.dtype, [old, value])
        if one.array.dtype.kind == "b":
            value = to.add(f"zext i1 {value} to i8")
        to.do(f"store {kind} {value}, ptr {place}{self._group}")

    def _fold(self, one: Fold, value: Value) -> None:
        to, kind = self._to, type_of(one.register.dtype)
        cell = self._cell(one.register, kind)
        if one.op != "set":
            old = to.add(f"load {kind}, ptr {cell}")
            if one.register.dtype == INDEX:
                value = _integer(to, one.op, old, value)
            elif one.op == "add":
                value = to.add(f"fadd reassoc {kind} {old}, {value}")
            else:
                name, flags = (one.op, "nsz ") if one.register.dtype.kind == "f" else ("smax", "")
                value = to.intrinsic(name, kind, old, value, flags=flags)  # of -0 and 0 either: half the instructions
        to.do(f"store {kind} {value}, ptr {cell}")

    def _multiply(self, one: Product) -> None:
        known: dict[Expr, Value] = {}
        sizes = [self._value(size, known) for size in one.sizes]
        places = [
            (self._place(x.array, self._value(lift(x.start), known)), self._value(lift(x.line), known))
            for x in (*one.factors, one.result)
        ]
        turned = [str(int(flag)) for flag in (*(x.turned for x in one.factors), one.adds)]
        self._to.do(called(("%product", "%blas"), turned, sizes, places))

    # Values -------------------------------------------------------------------------------------------------------------------

    def _place(self, array: Array, index: Value) -> Value:
        return self._to.add(f"getelementptr inbounds {_memory(array.dtype)}, ptr {self._names[array]}, i64 {index}")

    def _value(self, x: Expr, known: dict[Expr, Value]) -> Value:
        """The text of an expression; each is computed once until memory is written."""
        if x not in known:
            known[x] = self._written(x, [self._value(one, known) for one in x.args] if x.op != "axis" else [])
            if x.op == "load" or any(one in self._read for one in x.args):
                self._read.add(x)
        return known[x]

    def _written(self, x: Expr, args: list[Value]) -> Value:
        to, kind = self._to, type_of(x.dtype)
        if x.op == "constant":
            return constant(x.value, kind) if x.dtype.kind == "f" else str(int(x.value))
        if x.op in ("size", "axis"):
            return self._names[x]
        if x.op == "register":
            return to.add(f"load {kind}, ptr {self._cell(x, kind)}")
        if x.op == "load":
            value = to.add(f"load {_memory(x.dtype)}, ptr {self._place(x.value, args[0])}{self._group}")
            return value if x.dtype.kind != "b" else to.add(f"icmp ne i8 {value}, 0")
        if x.op == "view":
            return to.add(f"bitcast {type_of(x.args[0].dtype)} {args[0]} to {kind}")
        if x.op == "where":
            return to.add(f"select i1 {args[0]}, {kind} {args[1]}, {kind} {args[2]}")
        given = x.args[0].dtype
        if x.op == "astype":
            return cast(to, args[0], given, x.dtype)
        wraps = x.op in ("add", "subtract", "multiply") and any(one in self._read for one in x.args)
        if given == INDEX and not wraps and (x.op in INTEGERS or x.op in ("minimum", "maximum")):
            return _integer(to, x.op, *args)
        return apply(to, x.op, given, args)


def _is_short(loop: For) -> bool:
    """True for a loop whose points are written out."""
    return loop.is_innermost and loop.axis.extent.number is not None and loop.axis.extent.number < SHORT


def _memory(dtype: np.dtype[Any]) -> str:
    """The type of an element in memory."""
    return "i8" if dtype.kind == "b" else type_of(dtype)


def _integer(to: Instructions, op: str, a: Value, b: Value) -> Value:
    if op in ("minimum", "maximum"):
        return to.intrinsic("smin" if op == "minimum" else "smax", "i64", a, b)
    return to.add(f"{INTEGERS[op]} i64 {a}, {b}")
