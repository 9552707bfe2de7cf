"""Kernels: an instruction of a program as a function in LLVM's language, written from the traced body of a loop.

A kernel depends on formulas and dtypes, not on sizes, so programs share kernels: sizes, places and numbers are its operands.

    i64 kernel(ptr operands, ptr addresses, i64 part, i64 parts)

It carries out one of `parts` parts of its work and returns 0, or 1 if an index lies outside its row. `operands` are integers of
64 bits; those that stand for arrays are places in `addresses`. All arrays are C-contiguous.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...loops import Body, Step
from .functions import Instructions, Value, apply, cast, constant, type_of


class Kind(enum.IntEnum):
    """How an input fills rows times columns: as it is, each row the same, each column the same, or one number."""

    FULL = 0
    ROW = 1
    COLUMN = 2
    SCALAR = 3


class Result(enum.IntEnum):
    """What becomes of an output: stored, summed over rows, over columns, to one number, or the largest of each row."""

    STORE = 0
    OVER_ROWS = 1
    OVER_COLUMNS = 2
    OVER_ALL = 3
    LARGEST_OF_ROW = 4


class Output(NamedTuple):
    """A register of a body, and what becomes of it."""

    register: int
    how: Result


BLOCK = 1024
"""Elements whose sum is taken in the dtype itself; sums of blocks are added in float64."""

ALIGN = 16
"""Parts of a row begin at a multiple of so many elements, so that they share no line of the cache."""

NUMBER = np.dtype(np.float64)
"""The dtype of Python numbers."""


def supports_body(body: Body) -> bool:
    """Whether there is a kernel for a body."""
    try:
        outputs = [Output(register, Result.STORE) for register in body.outputs]
        kinds = [Kind.SCALAR if dtype is float else Kind.FULL for dtype in body.inputs]
        LoopKernel(body, kinds, outputs, True).text("k")
    except (KeyError, ValueError):
        return False
    return True


class LoopKernel:
    """A body for rows times columns elements.

    Its operands are rows, columns, the places of inputs, those of outputs, and the literals as bits of float64. A stored output
    may lie where a FULL input lies.

    Args:
        body: what is done to each element.
        kinds: of the inputs.
        outputs: registers and what becomes of them.
        by_rows: whether parts are rows; else columns.
    """

    def __init__(self, body: Body, kinds: Sequence[Kind], outputs: Sequence[Output], by_rows: bool) -> None:
        self._body, self._kinds, self._outputs, self._by_rows = body, kinds, outputs, by_rows
        self._dtypes = {number: NUMBER if dtype is float else dtype for number, dtype in enumerate(body.inputs)}
        self._dtypes |= {step.register: NUMBER if step.dtype is float else step.dtype for step in body.steps + body.numbers}
        self._python = {number for number, dtype in enumerate(body.inputs) if dtype is float}
        self._python |= {register for register, _ in body.literals} | {step.register for step in body.numbers}
        self._to = Instructions()
        self._values: dict[int, Value] = {}
        self._pointers: dict[tuple[str, int], Value] = {}

    def text(self, name: str) -> str:
        """The function, with the declarations that it needs, under this name."""
        self._to = to = Instructions()
        self._begin()
        self._rows_loop()
        to.do("ret i64 0")
        lines = [f"define i64 @{name}(ptr %o, ptr %a, i64 %part, i64 %parts) {{", "entry:", *to.lines, "}"]
        return "\n".join([*sorted(to.declared), *lines])

    # Before the loops ---------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        to, body = self._to, self._body
        rows, columns = load_operand(to, 0), load_operand(to, 1)
        self._columns = columns
        self._values, self._pointers = {}, {}
        for number in range(len(body.inputs)):
            self._pointers["in", number] = load_address(to, 2 + number)
        for number in range(len(self._outputs)):
            self._pointers["out", number] = load_address(to, 2 + len(body.inputs) + number)
        for number, (register, _) in enumerate(body.literals):
            bits = load_operand(to, 2 + len(body.inputs) + len(self._outputs) + number)
            self._values[register] = to.add(f"bitcast i64 {bits} to double")
            self._dtypes[register] = NUMBER
        for number, kind in enumerate(self._kinds):
            if kind is Kind.SCALAR or number in self._python:  # among arrays without axes a number looks like one of them
                self._values[number] = self._load("in", number, "0", "")
        for step in body.numbers:
            self._values[step.register] = self._number(step)
        whole = part_of(to, rows if self._by_rows else columns, 1 if self._by_rows else ALIGN)
        self._first_row, self._last_row = whole if self._by_rows else ("0", rows)
        self._first, self._last = ("0", columns) if self._by_rows else whole

    def _number(self, step: Step) -> Value:
        """A step on Python numbers."""
        names = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "neg": "negative"}
        return apply(self._to, names[step.function], NUMBER, [self._values[one] for one in step.operands])

    # Elements -----------------------------------------------------------------------------------------------------------------

    def _at(self, side: str, number: int, index: Value, dtype: np.dtype[Any]) -> Value:
        kind = "i8" if dtype.kind == "b" else type_of(dtype)
        return self._to.add(f"getelementptr {kind}, ptr {self._pointers[side, number]}, i64 {index}")

    def _load(self, side: str, number: int, index: Value, group: str, dtype: Any = None) -> Value:
        dtype = self._dtypes[number] if dtype is None else dtype
        place = self._at(side, number, index, dtype)
        if dtype.kind == "b":
            return self._to.add(f"icmp ne i8 {self._to.add(f'load i8, ptr {place}{group}')}, 0")
        return self._to.add(f"load {type_of(dtype)}, ptr {place}{group}")

    def _store(self, number: int, index: Value, value: Value, dtype: np.dtype[Any], group: str) -> None:
        place = self._at("out", number, index, dtype)
        kind = type_of(dtype)
        if dtype.kind == "b":
            kind, value = "i8", self._to.add(f"zext i1 {value} to i8")
        self._to.do(f"store {kind} {value}, ptr {place}{group}")

    def _step(self, step: Step, values: dict[int, Value]) -> Value:
        """The value of a step for one element; Python numbers take the dtype that NumPy gives them."""
        to = self._to
        if step.function == "astype":
            return cast(to, values[step.operands[0]], self._dtypes[step.operands[0]], step.dtype)
        operands = list(step.operands)
        if step.function == "where":
            condition = cast(to, values[operands[0]], self._dtypes[operands[0]], np.dtype(bool))
            a, b = [cast(to, values[one], self._dtypes[one], step.dtype) for one in operands[1:]]
            kind = type_of(step.dtype)
            return to.add(f"select i1 {condition}, {kind} {a}, {kind} {b}")
        literals = dict(self._body.literals)
        kinds = [type(literals.get(one, 0.0)) if one in self._python else self._dtypes[one] for one in operands]
        *wanted, result = getattr(np, step.function).resolve_dtypes((*kinds, None))
        if step.function.startswith("logical"):
            wanted = [np.dtype(bool)] * len(wanted)
        if result != step.dtype or any(one != wanted[0] for one in wanted):
            raise ValueError(f"{step.function} of several dtypes")
        given = [cast(to, values[one], self._dtypes[one], kind) for one, kind in zip(operands, wanted, strict=True)]
        return apply(to, step.function, wanted[0], given)

    # Loops --------------------------------------------------------------------------------------------------------------------

    def _rows_loop(self) -> None:
        """All rows of the part; sums over rows begin with zeros."""
        to = self._to
        self._clear_sums_over_rows()
        row, body, done, totals = to.name("row"), to.name("body"), to.name("done"), self._of(Result.OVER_ALL)
        before = to.name("before")
        to.do(f"br label %{before}")
        to.label(before)
        to.do(f"br label %{row}")
        to.label(row)
        index, following = "%" + to.name("r"), "%" + to.name("t")
        latch = to.name("latch")
        to.do(f"{index} = phi i64 [ {self._first_row}, %{before} ], [ {following}, %{latch} ]")
        running = self._running(totals, before, latch)
        to.do(f"br i1 {to.add(f'icmp slt i64 {index}, {self._last_row}')}, label %{body}, label %{done}")
        to.label(body)
        after = self._row(index, {number: running[number][0] for number in totals})
        to.do(f"br label %{latch}")
        to.label(latch)
        to.do(f"{following} = add i64 {index}, 1")
        for number in totals:
            to.put(running[number][1], "double", after[number])
        to.do(f"br label %{row}")
        to.label(done)
        for number in totals:
            self._store_sum(number, "0", running[number][0])

    def _of(self, *hows: Result) -> list[int]:
        return [number for number, output in enumerate(self._outputs) if output.how in hows]

    def _running(self, numbers: Sequence[int], before: str, latch: str) -> dict[int, tuple[Value, Value]]:
        """For sums in float64 over the turns of a loop: the register at the beginning of a turn, and that at its end."""
        found = {}
        for number in numbers:
            now, then = "%" + self._to.name("s"), "%" + self._to.name("t")
            self._to.do(f"{now} = phi double [ 0.0, %{before} ], [ {then}, %{latch} ]")
            found[number] = now, then
        return found

    def _clear_sums_over_rows(self) -> None:
        to = self._to
        for number in self._of(Result.OVER_ROWS):
            dtype = self._dtypes[self._outputs[number].register]
            first = self._at("out", number, self._first, dtype)
            count = to.add(f"sub i64 {self._last}, {self._first}")
            to.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            to.do(f"call void @llvm.memset.p0.i64(ptr {first}, i8 0, i64 {to.add(f'mul i64 {count}, {dtype.itemsize}')}, i1 0)")

    def _row(self, row: Value, totals: dict[int, Value]) -> dict[int, Value]:
        """One row in blocks; the sums of all so far."""
        to = self._to
        values = dict(self._values)
        for number, kind in enumerate(self._kinds):
            if kind is Kind.COLUMN:
                values[number] = self._load("in", number, row, "")
        self._offset = to.add(f"mul i64 {row}, {self._columns}")
        summed = self._of(Result.OVER_ALL, Result.OVER_COLUMNS)
        largest = self._of(Result.LARGEST_OF_ROW)
        if not summed and not largest:
            self._block(self._first, self._last, values)
            return totals
        before, block, body, done, latch = (to.name(one) for one in ("before", "block", "body", "done", "latch"))
        to.do(f"br label %{before}")
        to.label(before)
        to.do(f"br label %{block}")
        to.label(block)
        index, following = "%" + to.name("c"), "%" + to.name("t")
        to.do(f"{index} = phi i64 [ {self._first}, %{before} ], [ {following}, %{latch} ]")
        running: dict[int, tuple[Value, Value]] = {}
        for number in (*summed, *largest):
            start = totals.get(number, "0.0") if number in summed else constant(-np.inf, self._kind_of(number))
            own = "double" if number in summed else self._kind_of(number)
            running[number] = "%" + to.name("s"), "%" + to.name("t")
            to.do(f"{running[number][0]} = phi {own} [ {start}, %{before} ], [ {running[number][1]}, %{latch} ]")
        to.do(f"br i1 {to.add(f'icmp slt i64 {index}, {self._last}')}, label %{body}, label %{done}")
        to.label(body)
        end = to.add(f"add i64 {index}, {BLOCK}")
        end = to.intrinsic("smin", "i64", end, self._last)
        sums = self._block(index, end, values)
        to.do(f"br label %{latch}")
        to.label(latch)
        to.do(f"{following} = add i64 {index}, {BLOCK}")
        for number in summed:
            dtype = self._dtypes[self._outputs[number].register]
            to.do(f"{running[number][1]} = fadd double {running[number][0]}, {cast(to, sums[number], dtype, NUMBER)}")
        for number in largest:
            own = self._kind_of(number)
            to.put(running[number][1], own, to.intrinsic("maximum", own, running[number][0], sums[number]))
        to.do(f"br label %{block}")
        to.label(done)
        for number in self._of(Result.OVER_COLUMNS):
            self._store_sum(number, row, running[number][0])
        for number in largest:
            self._store(number, row, running[number][0], self._dtypes[self._outputs[number].register], "")
        return {number: running[number][0] for number in totals}

    def _kind_of(self, number: int) -> str:
        return type_of(self._dtypes[self._outputs[number].register])

    def _store_sum(self, number: int, index: Value, value: Value) -> None:
        dtype = self._dtypes[self._outputs[number].register]
        self._store(number, index, cast(self._to, value, NUMBER, dtype), dtype, "")

    def _block(self, first: Value, last: Value, values: dict[int, Value]) -> dict[int, Value]:
        """Neighbouring elements of a row, in a loop that LLVM vectorizes: no element meets another but in sums."""
        to = self._to
        before, loop, done = to.name("before"), to.name("loop"), to.name("done")
        to.do(f"br label %{before}")
        to.label(before)
        any_left = to.add(f"icmp slt i64 {first}, {last}")
        to.do(f"br i1 {any_left}, label %{loop}, label %{done}")
        to.label(loop)
        column, following = "%" + to.name("j"), "%" + to.name("t")
        to.do(f"{column} = phi i64 [ {first}, %{before} ], [ {following}, %{loop} ]")
        folded = self._of(Result.OVER_ALL, Result.OVER_COLUMNS, Result.LARGEST_OF_ROW)
        running = {}
        for number in folded:
            kind = self._kind_of(number)
            start = constant(-np.inf if self._outputs[number].how is Result.LARGEST_OF_ROW else 0.0, kind)
            running[number] = "%" + to.name("s"), "%" + to.name("t"), start
            to.do(f"{running[number][0]} = phi {kind} [ {start}, %{before} ], [ {running[number][1]}, %{loop} ]")
        self._element(column, dict(values), {number: names[:2] for number, names in running.items()})
        to.do(f"{following} = add nsw i64 {column}, 1")
        to.do(f"br i1 {to.add(f'icmp slt i64 {following}, {last}')}, label %{loop}, label %{done}, !llvm.loop !0")
        to.label(done)
        found = {}
        for number, (_, then, start) in running.items():
            kind = self._kind_of(number)
            found[number] = "%" + to.name("s")
            to.do(f"{found[number]} = phi {kind} [ {start}, %{before} ], [ {then}, %{loop} ]")
        return found

    def _element(self, column: Value, values: dict[int, Value], folded: dict[int, tuple[Value, Value]]) -> None:
        """All that happens to one element: everything is read before anything is written."""
        to, group = self._to, ", !llvm.access.group !1"
        place = to.add(f"add nsw i64 {self._offset}, {column}")
        for number, kind in enumerate(self._kinds):
            if kind in (Kind.FULL, Kind.ROW):
                values[number] = self._load("in", number, place if kind is Kind.FULL else column, group)
        for step in self._body.steps:
            values[step.register] = self._step(step, values)
        for number, (register, how) in enumerate(self._outputs):
            dtype, value = self._dtypes[register], values[register]
            float_type = type_of(dtype)
            if how is Result.STORE:
                self._store(number, place, value, dtype, group)
            elif how is Result.OVER_ROWS:
                so_far = self._load("out", number, column, group, dtype)
                self._store(number, column, to.add(f"fadd {float_type} {so_far}, {value}"), dtype, group)
            elif how is Result.LARGEST_OF_ROW:
                now, then = folded[number]
                to.put(then, float_type, to.intrinsic("maximum", float_type, now, value))
            else:
                now, then = folded[number]
                to.put(then, float_type, to.add(f"fadd reassoc {float_type} {now}, {value}"))


METADATA = """
!0 = distinct !{!0, !2, !3}
!1 = distinct !{}
!2 = !{!"llvm.loop.parallel_accesses", !1}
!3 = !{!"llvm.loop.vectorize.enable", i1 true}
"""
"""What the loops of a module refer to: no iteration reads or writes what another one writes."""


def load_operand(to: Instructions, number: int) -> Value:
    """An operand of the kernel."""
    return to.add(f"load i64, ptr {to.add(f'getelementptr i64, ptr %o, i64 {number}')}")


def load_address(to: Instructions, number: int) -> Value:
    """The address of the array that an operand stands for."""
    return to.add(f"load ptr, ptr {to.add(f'getelementptr ptr, ptr %a, i64 {load_operand(to, number)}')}")


def part_of(to: Instructions, count: Value, align: int) -> tuple[Value, Value]:
    """The first of a part of `count`, and the one after its last; all but the last part end at a multiple of `align`."""

    def bound(part: Value) -> Value:
        at = to.add(f"sdiv i64 {to.add(f'mul i64 {count}, {part}')}, %parts")
        return to.add(f"and i64 {at}, {-align}") if align > 1 else at

    following = to.add("add i64 %part, 1")
    is_last = to.add(f"icmp eq i64 {following}, %parts")
    return bound("%part"), to.add(f"select i1 {is_last}, i64 {count}, i64 {bound(following)}")


class IndexKernel:
    """An element of each row of a matrix: read (TAKE_AT), or with a number added to it (ADD_AT).

    Its operands are the places of out, x and the indices, then rows, columns and the number as bits of float64. Negative
    indices count from the end, as in Python. ADD_AT writes the whole of x, unless out lies where x lies. All is done in the
    first part.

    Args:
        dtype: of x and out.
        indices: dtype of the indices.
        adds: whether it is ADD_AT.
    """

    def __init__(self, dtype: np.dtype[Any], indices: np.dtype[Any], adds: bool) -> None:
        self._dtype, self._indices, self._adds = dtype, indices, adds

    def text(self, name: str) -> str:
        """The function."""
        to, kind, index = Instructions(), type_of(self._dtype), type_of(self._indices)
        out, x, at = [load_address(to, number) for number in range(3)]
        count, columns, bits = [load_operand(to, number) for number in range(3, 6)]
        widened = "%at32 = sext i32 %raw to i64" if index == "i32" else "%at32 = add i64 %raw, 0"
        number = "%number = fptrunc double %exact to float" if kind == "float" else "%number = fadd double %exact, 0.0"
        take = f"  %to = getelementptr {kind}, ptr {out}, i64 %r\n  store {kind} %x0, ptr %to"
        add = f"  %to = getelementptr {kind}, ptr {out}, i64 %here\n  %y = fadd {kind} %x0, %number\n  store {kind} %y, ptr %to"
        copy = f"""
  %same = icmp eq ptr {out}, {x}
  %size = mul i64 %rows, {columns}
  %bytes = mul i64 %size, {self._dtype.itemsize}
  %moved = select i1 %same, i64 0, i64 %bytes
  call void @llvm.memmove.p0.p0.i64(ptr {out}, ptr {x}, i64 %moved, i1 0)"""
        return "\n".join(
            [
                "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)" if self._adds else "",
                f"define i64 @{name}(ptr %o, ptr %a, i64 %part, i64 %parts) {{",
                *("entry:", *to.lines),
                f"  %exact = bitcast i64 {bits} to double\n  {number}",
                f"  %only = icmp eq i64 %part, 0\n  %rows = select i1 %only, i64 {count}, i64 0",
                copy if self._adds else "",
                "  br label %row",
                "row:",
                "  %r = phi i64 [ 0, %entry ], [ %next, %body ]",
                "  %more = icmp slt i64 %r, %rows\n  br i1 %more, label %look, label %done",
                "look:",
                f"  %p = getelementptr {index}, ptr {at}, i64 %r\n  %raw = load {index}, ptr %p\n  {widened}",
                f"  %wrapped = add i64 %at32, {columns}\n  %negative = icmp slt i64 %at32, 0",
                "  %column = select i1 %negative, i64 %wrapped, i64 %at32",
                f"  %inside = icmp ult i64 %column, {columns}\n  br i1 %inside, label %body, label %outside",
                "body:",
                f"  %first = mul i64 %r, {columns}\n  %here = add i64 %first, %column",
                f"  %from = getelementptr {kind}, ptr {out if self._adds else x}, i64 %here",
                f"  %x0 = load {kind}, ptr %from",
                add if self._adds else take,
                "  %next = add i64 %r, 1\n  br label %row",
                *("done:", "  ret i64 0", "outside:", "  ret i64 1", "}"),
            ]
        )


class ArgmaxKernel:
    """The place of the largest element of each row, of the first NaN if there is one, and of the first of equal ones.

    Its operands are the places of out and x, then rows and columns, at least one.

    Args:
        dtype: of x.
        indices: of out.
    """

    def __init__(self, dtype: np.dtype[Any], indices: np.dtype[Any]) -> None:
        self._dtype, self._indices = dtype, indices

    def text(self, name: str) -> str:
        """The function."""
        to, kind, index = Instructions(), type_of(self._dtype), type_of(self._indices)
        out, x, rows, columns = load_address(to, 0), load_address(to, 1), load_operand(to, 2), load_operand(to, 3)
        start, stop = part_of(to, rows, 1)
        smallest = to.calling("smin", "i64", "%best", "%number")
        highest = to.calling("maximum" if self._dtype.kind == "f" else "smax", kind, "%top", "%value")
        is_top = f"%is = icmp eq {kind} %candidate, %highest"
        if self._dtype.kind == "f":  # NaN is the largest, and equals nothing
            is_top = f"%nan = fcmp uno {kind} %candidate, 0.0\n  %same = fcmp oeq {kind} %candidate, %highest"
            is_top += "\n  %is = or i1 %nan, %same"
        narrowed = f"trunc i64 %better to {index}" if index != "i64" else "add i64 %better, 0"
        return "\n".join(
            [
                *sorted(to.declared),
                f"define i64 @{name}(ptr %o, ptr %a, i64 %part, i64 %parts) {{",
                *("entry:", *to.lines, "  br label %row"),
                f"row:\n  %r = phi i64 [ {start}, %entry ], [ %r1, %store ]",
                f"  %more = icmp slt i64 %r, {stop}\n  br i1 %more, label %begin, label %done",
                f"begin:\n  %offset = mul i64 %r, {columns}\n  %place = getelementptr {kind}, ptr {x}, i64 %offset",
                f"  %first = load {kind}, ptr %place\n  br label %column",
                "column:\n  %c = phi i64 [ 0, %begin ], [ %c1, %column ]",
                f"  %top = phi {kind} [ %first, %begin ], [ %highest, %column ]",
                f"  %at = getelementptr {kind}, ptr %place, i64 %c\n  %value = load {kind}, ptr %at",
                f"  %highest = {highest}\n  %c1 = add nuw nsw i64 %c, 1\n  %left = icmp slt i64 %c1, {columns}",
                "  br i1 %left, label %column, label %look, !llvm.loop !0",
                "look:\n  br label %again\nagain:\n  %d = phi i64 [ 0, %look ], [ %d1, %again ]",
                f"  %best = phi i64 [ {columns}, %look ], [ %better, %again ]",
                f"  %there = getelementptr {kind}, ptr %place, i64 %d\n  %candidate = load {kind}, ptr %there",
                f"  {is_top}\n  %number = select i1 %is, i64 %d, i64 {columns}",
                f"  %better = {smallest}",
                f"  %d1 = add nuw nsw i64 %d, 1\n  %rest = icmp slt i64 %d1, {columns}",
                "  br i1 %rest, label %again, label %store, !llvm.loop !0",
                f"store:\n  %narrow = {narrowed}\n  %to = getelementptr {index}, ptr {out}, i64 %r",
                f"  store {index} %narrow, ptr %to\n  %r1 = add i64 %r, 1\n  br label %row",
                "done:\n  ret i64 0\n}",
            ]
        )


class GatherKernel:
    """Rows of a matrix by their numbers, int64, each at least 0 and less than the number of rows; parts are rows.

    Its operands are the places of out, the matrix and the numbers, then how many rows are gathered and the bytes of each.
    """

    def text(self, name: str) -> str:
        """The function."""
        to = Instructions()
        out, x, numbers = [load_address(to, number) for number in range(3)]
        rows, size = load_operand(to, 3), load_operand(to, 4)
        start, stop = part_of(to, rows, 1)
        return "\n".join(
            [
                "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
                f"define i64 @{name}(ptr %o, ptr %a, i64 %part, i64 %parts) {{",
                *("entry:", *to.lines, "  br label %row"),
                f"row:\n  %r = phi i64 [ {start}, %entry ], [ %r1, %take ]\n  %more = icmp slt i64 %r, {stop}",
                "  br i1 %more, label %take, label %done",
                f"take:\n  %at = getelementptr i64, ptr {numbers}, i64 %r\n  %number = load i64, ptr %at",
                f"  %from = mul i64 %number, {size}\n  %source = getelementptr i8, ptr {x}, i64 %from",
                f"  %to = mul i64 %r, {size}\n  %target = getelementptr i8, ptr {out}, i64 %to",
                f"  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 {size}, i1 0)",
                "  %r1 = add i64 %r, 1\n  br label %row\ndone:\n  ret i64 0\n}",
            ]
        )


def multiplies(kernel: Any) -> bool:
    """Whether a kernel calls BLAS."""
    return bool(getattr(kernel, "multiplies", False))


class EachKernel:
    """A kernel for each member of a stack; parts are members.

    Its operands are the number of members, for each array its place and the bytes by which it moves on from member to member,
    then the operands of the kernel, to which arrays are known by their numbers here.

    Args:
        kernel: what is done for a member.
        arrays: how many it knows.
    """

    def __init__(self, kernel: Any, arrays: int) -> None:
        self.kernel, self._arrays = kernel, arrays

    @property
    def multiplies(self) -> bool:
        """Whether it calls BLAS."""
        return multiplies(self.kernel)

    def text(self, name: str) -> str:
        """The function, and before it that of the kernel."""
        to, count = Instructions(), self._arrays
        bases = [(load_address(to, 1 + 2 * number), load_operand(to, 2 + 2 * number)) for number in range(count)]
        own = to.add(f"getelementptr i64, ptr %o, i64 {1 + 2 * count}")
        start, stop = part_of(to, load_operand(to, 0), 1)
        to.do(f"%places = alloca [{count} x ptr]")
        begin, to.lines = to.lines, []
        for number, (base, stride) in enumerate(bases):
            moved = to.add(f"getelementptr i8, ptr {base}, i64 {to.add(f'mul i64 %member, {stride}')}")
            to.do(f"store ptr {moved}, ptr {to.add(f'getelementptr ptr, ptr %places, i64 {number}')}")
        kernel = self.kernel.text(f"{name}_each")
        return "\n".join(
            [
                kernel.replace(f"define i64 @{name}_each(", f"define internal i64 @{name}_each("),
                f"define i64 @{name}(ptr %o, ptr %a, i64 %part, i64 %parts) {{",
                *("entry:", *begin, "  br label %next"),
                f"next:\n  %member = phi i64 [ {start}, %entry ], [ %following, %fine ]",
                f"  %more = icmp slt i64 %member, {stop}\n  br i1 %more, label %each, label %done",
                *("each:", *to.lines),
                f"  %status = call i64 @{name}_each(ptr {own}, ptr %places, i64 0, i64 1)",
                "  %failed = icmp ne i64 %status, 0\n  br i1 %failed, label %outside, label %fine",
                "fine:\n  %following = add i64 %member, 1\n  br label %next",
                "done:\n  ret i64 0\noutside:\n  ret i64 1\n}",
            ]
        )
