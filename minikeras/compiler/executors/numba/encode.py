"""From the instructions of a program to bytecode over places in a list of addresses; the rest stays calls of NumPy.

Places are known once all calls are, so a call keeps a function that gives its bytecode when it is told them.
"""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....core import Record
from ....core.effects import only_checks
from ....core.registry import operations
from ...ir import Program, Slot, outputs_of, slots_in, slots_of
from ...loops import Body, Step, body_of, elementwise_body
from ...passes.inlining import add_at, take_at
from ...planning.flat_variables import part
from ..numpy.blocks import copied, put
from ..numpy.calls import Call, Flatten, Lowered, ReadFlat, View
from ..numpy.lowering import Lowering
from .interpreter import (
    ADD_AT,
    COLUMN,
    FULL,
    LARGEST_OF_ROW,
    LITERAL,
    LOOP,
    OVER_ALL,
    OVER_COLUMNS,
    OVER_ROWS,
    PRODUCT,
    REGISTERS_MAX,
    ROW,
    SCALAR,
    STORE,
    TAKE_AT,
)
from .operations import COMBINED, OPERATIONS, TRANSCENDENTAL

SHARED = 1 << 18
"""Elements for each thread in a loop that several share."""

Bytecode = list[int]
Address = Callable[[Slot], int]
"""The place of a slot in the list of addresses."""
Literal = Callable[[float], int]
"""The place of a number in the list of literals."""


class BytecodeCall(Call):
    """An instruction of the interpreter.

    Its operands and results lie in memory whose address is known; results that leave the program are copied.

    Attributes:
        bytecode: `bytecode(address, literal)` gives it, from the places of slots and literals.
        dtype: of all its arrays.
        shape: of a loop, as rows and columns; None for other instructions.
        divisible: whether threads may share it: a loop without sums.
    """

    addressed = True
    __slots__ = ("bytecode", "divisible", "dtype", "shape")

    def __init__(
        self,
        bytecode: Callable[[Address, Literal], Bytecode],
        operands: Sequence[Any],
        results: Sequence[Slot],
        record: Record,
        may_alias: Sequence[Sequence[int]] = (),
        shape: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(_never, operands, results, record, may_alias)
        self.bytecode, self.dtype, self.shape = bytecode, results[0].dtype, shape
        self.divisible = shape is not None


def can_be_shared(calls: Sequence[BytecodeCall]) -> bool:
    """Whether it is one loop that is long enough for two threads."""
    shape = calls[0].shape
    return len(calls) == 1 and shape is not None and calls[0].divisible and shape[0] * shape[1] >= 2 * SHARED


def _never(*arrays: Any) -> None:
    raise AssertionError("the interpreter carries it out, within a segment")


def instruction(opcode: int, operands: Bytecode) -> Bytecode:
    """The bytecode of one instruction."""
    return [opcode, len(operands) + 2, *operands]


LARGEST_PRODUCT = 1 << 18
"""Multiplications of the largest product that the interpreter takes: NumPy's BLAS uses several threads for larger ones."""


def encode(program: Program) -> list[Lowered]:
    """The calls that carry out a program, in bytecode where the interpreter has instructions."""
    encoder = Encoder(program, Lowering(program))
    for record in _checks_first(program):
        encoder.encode(record)
    return list(encoder.calls())


def supports(record: Record) -> bool:
    """Whether there may be bytecode for an instruction; shapes and dtypes decide."""
    slots = slots_of(record)
    return all(x.xp is np for x in slots) and (record.primitive in _encoders() or elementwise_body(record)[1] is not None)


class Encoder:
    """Turns instructions into bytecode where the interpreter can carry them out.

    Args:
        program: where they come from.
        lowering: takes the others.
    """

    def __init__(self, program: Program, lowering: Lowering) -> None:
        self._numpy = lowering
        self.temporary, self._found = self._numpy.temporary, self._numpy.found
        self._addressed: set[int] = {slot.key for slot in program.slots() if _is_constant(slot)}
        """Slots that lie without gaps in memory whose address is known before the run."""
        self._transposed: dict[int, Slot] = {}
        """Matrices that are transposes of such slots."""
        self._copies: dict[tuple[int, Any], Slot] = {}
        self._loops: dict[int, LoopCall] = {}
        """The loops that make slots."""
        self._readers = collections.Counter(x.key for record in program.records for x in slots_in(record.inputs))
        self._readers.update(x.key for x in slots_in(program.results))
        self._staged: dict[int, list[Call]] = {}
        """Copies of operands, by the key of what they are copies of."""

    def encode(self, record: Record) -> None:
        """Write the calls of one instruction."""
        encode = _encoders().get(record.primitive)
        slots = slots_of(record)
        if all(x.xp is np for x in slots) and (
            (encode is not None and encode(self, record)) or (encode is None and self._elementwise(record))
        ):
            return
        first = len(self._found)
        self._numpy.lower(record)
        for call in self._found[first:]:
            self._note(call)

    def _note(self, call: Lowered) -> None:
        """Remember where results lie."""
        if isinstance(call, View):
            (x,), (y,) = call.operands, call.results
            note = _views().get(call.record.primitive)
            if note is not None and x.key in self._addressed and x.array is None:  # the plan knows no memory of constants
                note(self, x, y)
        elif isinstance(call, Call):
            self._addressed.update(y.key for y in call.results if y.shape not in ((), None) and y.order is None)
        elif isinstance(call, (Flatten, ReadFlat)):
            self._addressed.update(y.key for y in call.results)

    def note_contiguous(self, x: Slot, y: Slot) -> None:
        """A view without gaps lies at a known address too."""
        if y.shape != ():
            self._addressed.add(y.key)

    def note_transposed(self, x: Slot, y: Slot) -> None:
        """Products take transposed matrices as they are."""
        if len(x.shape) == 2:
            self._transposed[y.key] = x

    def operand(self, x: Slot, dtype: Any, record: Record) -> Slot:
        """The slot, or a copy of it that lies without gaps, of the interpreter's dtype."""
        if x.key in self._addressed and x.dtype == dtype:
            return x
        found = self._copies.get((x.key, dtype))
        if found is None:
            found = self._copies[x.key, dtype] = self.temporary(x.shape or (), dtype)
            self._addressed.add(found.key)
            if x.array is not None:
                found.array = np.ascontiguousarray(x.array, dtype).reshape(x.shape)
            else:
                copy = copied if x.shape else put
                self._staged.setdefault(x.key, []).append(Call(copy, [x], [found], record))
        return found

    def calls(self) -> Iterator[Lowered]:
        """All calls, copies of operands as early as can be, where they cut no segment in two."""
        waiting = dict(self._staged)
        made = {y.key for call in self._found for y in call.results}
        for key in [key for key in waiting if key not in made]:
            yield from waiting.pop(key)
        for call in self._found:
            yield call
            for y in call.results:
                yield from waiting.pop(y.key, ())

    def add(self, call: BytecodeCall) -> None:
        """Write a call, whose results then lie at a known address."""
        self._found.append(call)
        self._addressed.update(y.key for y in call.results)

    # Loops -----------------------------------------------------------------------------------------------------------------

    def _elementwise(self, record: Record) -> bool:
        shape, body = elementwise_body(record)
        if body is None or body.numbers or not body.steps:
            return False
        dtypes = {dtype for dtype in body.inputs if dtype is not float} | {y.dtype for y in outputs_of(record)}
        (dtype, *others) = dtypes
        slots = slots_in(record.inputs)
        if shape == () and not (self._extends_segment() and all(x.key in self._addressed for x in slots)):
            return False  # numbers are handled faster one by one, unless they are there already
        if len(body.steps) == 1 and not any(x.key in self._addressed for x in slots):
            return False  # nothing would be saved
        if others or not can_loop(body, dtype, math.prod(shape)) or any(y.order is not None for y in outputs_of(record)):
            return False
        split = split_of(shape, [x.shape or () for x in slots])
        if split is None:
            return False
        call = LoopCall(body, split, [self.operand(x, dtype, record) for x in slots], record)
        self.add(call)
        self._loops |= {y.key: call for y in call.results}
        return True

    def _extends_segment(self) -> bool:
        """Whether the last call is bytecode, which another instruction joins at no cost."""
        last = next((call for call in reversed(self._found) if not isinstance(call, View)), None)
        return isinstance(last, BytecodeCall)

    def reduce(self, record: Record, x: Slot, result: Slot, largest: bool = False) -> bool:
        """A sum or maximum along neighbouring axes, at the end of the loop that makes its operand, if there is one."""
        split = sum_split(x.shape, sorted(axis % len(x.shape) for axis in record.params["axes"]))
        if x.dtype.kind != "f" or x.dtype.itemsize < 4 or split is None or x.order is not None:
            return False
        if largest:
            rows, columns, how = split
            if how == OVER_ROWS or not columns:
                return False
            split = rows, columns, LARGEST_OF_ROW
        loop = self._loops.get(x.key)
        if loop is not None and loop.add_reduction(x, result, split, self._readers[x.key] == 1):
            self._addressed.add(result.key)
        else:
            self.add(ReductionCall(split, self.operand(x, x.dtype, record), result, record))
        return True


def _is_constant(slot: Slot) -> bool:
    array = slot.array
    return isinstance(array, np.ndarray) and array.flags.c_contiguous and array.shape != ()


def _checks_first(program: Program) -> list[Record]:
    """Checks of arguments come first, so that they cut no segment in two."""
    given = {slot.key for slot in program.arguments}
    return sorted(program.records, key=lambda one: not (only_checks(one.primitive) and one.inputs[0].key in given))


# Rows: by primitive -------------------------------------------------------------------------------------------------------


def _product(encoder: Encoder, record: Record) -> bool:
    a, b = record.inputs
    y = record.outputs
    if not (isinstance(a, Slot) and isinstance(b, Slot)) or not len(a.shape) == len(b.shape) == 2 or y.order is not None:
        return False
    (m, k), n = a.shape, b.shape[1]
    if y.dtype not in (np.float32, np.float64) or m * n * k > LARGEST_PRODUCT:
        return False
    turned = [int(x.key in encoder._transposed) for x in (a, b)]
    sources = [encoder.operand(encoder._transposed.get(x.key, x), y.dtype, record) for x in (a, b)]

    def bytecode(address: Address, literal: Literal) -> Bytecode:
        return instruction(PRODUCT, [address(y), *map(address, sources), m, n, k, *turned])

    encoder.add(BytecodeCall(bytecode, sources, [y], record))
    return True


def _sum(encoder: Encoder, record: Record) -> bool:
    return encoder.reduce(record, record.inputs[0], record.outputs)


def _max(encoder: Encoder, record: Record) -> bool:
    return encoder.reduce(record, record.inputs[0], record.outputs, largest=True)


def _mean(encoder: Encoder, record: Record) -> bool:
    x, y = record.inputs[0], record.outputs
    count = math.prod(x.shape[axis] for axis in record.params["axes"])
    total = encoder.temporary(y.shape, y.dtype)
    if not count or not encoder.reduce(record, x, total):
        return False

    division = body_of(operations.divide, [total.dtype, count], {})
    assert division is not None
    encoder.add(LoopCall(division, (1, math.prod(y.shape), [FULL]), [total], record))
    return True


def _at_columns(opcode: int) -> Callable[[Encoder, Record], bool]:
    """TAKE_AT and ADD_AT."""

    def encode(encoder: Encoder, record: Record) -> bool:
        x, columns = record.inputs
        y = record.outputs
        if x.dtype not in (np.float32, np.float64) or columns.dtype.kind not in "iu" or y.order is not None:
            return False
        operands = [encoder.operand(x, x.dtype, record), encoder.operand(columns, np.dtype(np.int64), record)]
        numbers = record.params.values()

        def bytecode(address: Address, literal: Literal) -> Bytecode:
            return instruction(opcode, [address(y), *map(address, operands), *x.shape, *map(literal, numbers)])

        encoder.add(BytecodeCall(bytecode, operands, [y], record, [(0,)] if numbers else ()))
        return True

    return encode


@functools.cache
def _encoders() -> dict[Any, Callable[[Encoder, Record], bool]]:
    return {
        operations.matrix_product: _product,
        operations.reduce_sum: _sum,
        operations.reduce_max: _max,
        operations.reduce_mean: _mean,
        take_at: _at_columns(TAKE_AT),
        add_at: _at_columns(ADD_AT),
    }


@functools.cache
def _views() -> dict[Any, Callable[[Encoder, Slot, Slot], None]]:
    return {
        operations.reshape: Encoder.note_contiguous,
        part: Encoder.note_contiguous,
        operations.transpose: Encoder.note_transposed,
    }


# Loops and sums ----------------------------------------------------------------------------------------------------------

LARGEST_TRANSCENDENTAL = 1 << 12
"""Elements of the largest loop with a function that NumPy has in vectorized form and the interpreter has not."""

Split = tuple[int, int, list[int]]
"""Rows, columns, and how each operand lies in them."""


class LoopCall(BytecodeCall):
    """A body for rows times columns elements, with sums and maxima of what it makes.

    Args:
        body: what is done.
        split: how the operands lie.
        operands: slots.
        record: the instruction.
    """

    __slots__ = ("_body", "_kinds", "_outputs", "_registers")

    def __init__(self, body: Body, split: Split, operands: Sequence[Slot], record: Record) -> None:
        self._body, (rows, columns, self._kinds) = combined(body), split
        self._registers = registers_of(self._body)
        results = list(outputs_of(record))
        self._outputs = [(y, self._registers[register], STORE) for y, register in zip(results, self._body.outputs, strict=True)]
        may_alias = [reusable(self._body, number, self._kinds) for number in range(len(results))]
        super().__init__(self._encode, operands, results, record, may_alias, shape=(rows, columns))

    def add_reduction(self, x: Slot, result: Slot, split: tuple[int, int, int], alone: bool) -> bool:
        """Reduce a result too, if the loop can; with `alone` no other instruction reads it, and it is not even stored."""
        assert self.shape is not None
        rows, columns, how = split
        flat = not ({ROW, COLUMN} & set(self._kinds)) and all(how in (STORE, OVER_ALL) for _, _, how in self._outputs)
        if rows * columns >= 2 * SHARED or not (flat or how == OVER_ALL or (rows, columns) == self.shape):
            return False
        if flat and how != OVER_ALL:
            self.shape = rows, columns
        number = next(number for number, (y, _, _) in enumerate(self._outputs) if y is x)
        self.divisible = False
        output = result, self._outputs[number][1], how
        if alone:
            self._outputs[number], self.results[number], self.may_alias[number] = output, result, ()  # type: ignore[index]
        else:
            self._outputs.append(output)
            self.results.append(result)  # type: ignore[attr-defined]
            self.may_alias.append(())  # type: ignore[attr-defined]
        return True

    def _encode(self, address: Address, literal: Literal) -> Bytecode:
        assert self.shape is not None
        body = self._body
        inputs = [number for x, kind in zip(self.operands, self._kinds, strict=True) for number in (address(x), kind)]
        inputs += [number for _, value in body.literals for number in (literal(float(value)), LITERAL)]
        outputs = [number for y, register, how in self._outputs for number in (address(y), register, how)]
        steps = [number for step in body.steps for number in _step(step, self._registers)]
        head = [*self.shape, len(self.operands) + len(body.literals), len(self._outputs), len(body.steps)]
        return instruction(LOOP, [*head, *inputs, *outputs, *steps])


class ReductionCall(BytecodeCall):
    """A sum or maximum along neighbouring axes: a loop without steps."""

    __slots__ = ()

    def __init__(self, split: tuple[int, int, int], x: Slot, result: Slot, record: Record) -> None:
        rows, columns, how = split

        def bytecode(address: Address, literal: Literal) -> Bytecode:
            return instruction(LOOP, [rows, columns, 1, 1, 0, address(x), FULL, address(result), 0, how])

        super().__init__(bytecode, [x], [result], record)


def _step(step: Step, registers: dict[int, int]) -> Bytecode:
    operation = OPERATIONS["copy" if step.function == "astype" else step.function]
    operands = [registers[register] for register in step.operands]
    return [operation, registers[step.register], *operands, *[0] * (3 - len(operands))]


def combined(body: Body) -> Body:
    """The body with those steps in a row made one for which the interpreter has an operation."""
    made = {step.register: step for step in body.steps}
    uses = collections.Counter(register for step in body.steps for register in step.operands)
    uses.update(body.outputs)
    gone: set[int] = set()
    kept: list[Step] = []
    for step in reversed(body.steps):
        if step.register in gone:
            continue
        for name, tree in COMBINED.items():
            found = _match(tree, step.register, made, uses, True)
            if found is not None:
                operands, inner = found
                step = Step(step.register, name, tuple(operands[key] for key in sorted(operands)), step.dtype)
                gone |= inner
                break
        kept.append(step)
    return body._replace(steps=tuple(reversed(kept)))


def _match(tree: Any, register: int, made: dict[int, Step], uses: Any, root: bool) -> tuple[dict[str, int], set[int]] | None:
    """The registers that the letters of a tree stand for, and those of the steps within it; None if it does not fit."""
    if isinstance(tree, str):
        return {tree: register}, set()
    step = made.get(register)
    function, *branches = tree
    if step is None or step.function != function or step.dtype.kind != "f":
        return None
    operands: dict[str, int] = {}
    inner = set() if root else {register}
    for branch, operand in zip(branches, step.operands, strict=True):
        within = not isinstance(branch, str)
        count = list(step.operands).count(operand)
        found = _match(branch, operand, made, uses, False) if not within or uses[operand] == count else None
        if found is None or any(operands.get(key, value) != value for key, value in found[0].items()):
            return None
        operands |= found[0]
        inner |= found[1]
    return None if inner & set(operands.values()) else (operands, inner)


def registers_of(body: Body) -> dict[int, int]:
    """Registers of a body as the interpreter counts them: inputs, literals, results, and as few others as can be.

    What lies between two steps is to stay in the fastest memory, so a register that no later step reads serves again; not for
    the step that reads it last, because a loop over memory that overlaps is slow.
    """
    last = {register: position for position, step in enumerate(body.steps) for register in step.operands}
    kept = [*range(len(body.inputs)), *[register for register, _ in body.literals], *body.outputs]
    numbers = {register: number for number, register in enumerate(kept)}
    count = len(kept)
    free: list[int] = []
    for position, step in enumerate(body.steps):
        if step.register not in numbers:
            if not free:
                free.append(count)
                count += 1
            numbers[step.register] = free.pop()
        free += {numbers[one] for one in step.operands if one not in kept and last[one] == position}
    return numbers


def reusable(body: Body, output: int, kinds: Sequence[int]) -> list[int]:
    """The operands whose memory an output may be written into: whole ones that no later step reads."""
    made = {step.register: number for number, step in enumerate(body.steps)}
    position = made.get(body.outputs[output])
    if position is None:
        return []
    later = {register for step in body.steps[position + 1 :] for register in step.operands} | set(body.outputs)
    return [number for number, kind in enumerate(kinds) if kind == FULL and number not in later]


def can_loop(body: Body, dtype: Any, size: int) -> bool:
    """Whether the interpreter can carry out a body."""
    registers = len(body.inputs) + len(body.literals) + len(body.steps)
    if dtype not in (np.float32, np.float64) or registers > REGISTERS_MAX or set(body.outputs) & set(range(len(body.inputs))):
        return False
    if len(set(body.outputs)) < len(body.outputs):
        return False
    for step in body.steps:
        known = step.function in OPERATIONS or step.function == "astype"
        if not known or step.dtype not in (dtype, np.bool_):
            return False
        if step.dtype == np.bool_ and step.function in ("astype", "add"):  # truth is a number here, which these leave as it is
            return False
        if step.function in TRANSCENDENTAL and size > LARGEST_TRANSCENDENTAL:
            return False
    return True


def split_of(shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> tuple[int, int, list[int]] | None:
    """Rows, columns, and how each operand lies in them; None if two axes cannot say it."""
    for at in range(len(shape) + 1):
        kinds = [_kind(shape, (1,) * (len(shape) - len(one)) + one, at) for one in operands]
        if all(kind is not None for kind in kinds):
            return math.prod(shape[:at]), math.prod(shape[at:]), [kind for kind in kinds if kind is not None]
    return None


def _kind(shape: tuple[int, ...], own: tuple[int, ...], at: int) -> int | None:
    if own == shape:
        return FULL
    if math.prod(own) == 1:
        return SCALAR
    if math.prod(own[:at]) == 1 and own[at:] == shape[at:]:
        return ROW
    if math.prod(own[at:]) == 1 and own[:at] == shape[:at]:
        return COLUMN
    return None


def sum_split(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, int, int] | None:
    """Rows, columns and the kind of a sum along these axes."""
    count = len(shape)
    if list(axes) == list(range(count)):
        return 1, math.prod(shape), OVER_ALL
    if list(axes) == list(range(len(axes))):
        return math.prod(shape[: len(axes)]), math.prod(shape[len(axes) :]), OVER_ROWS
    if list(axes) == list(range(count - len(axes), count)):
        return math.prod(shape[: count - len(axes)]), math.prod(shape[count - len(axes) :]), OVER_COLUMNS
    return None
