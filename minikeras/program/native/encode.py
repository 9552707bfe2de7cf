"""Instructions in the words of the machine.

Key idea: what the machine can do becomes words over places in a list of addresses; all else stays a call from Python. Calls
in words that follow one another are one call of the machine. Read `machine.py` first, which says what the words mean.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core import Record
from ...core.dispatch import checked
from ...core.registry import operations
from ..blocks import copied
from ..fuse import elementwise_body
from ..joined import join, part, read_joined
from ..loop import Body, Step
from ..lower import Call, Lowering, View
from ..program import Program, outputs_of
from ..recorder import Slot
from .machine import (
    BLOCK,
    COLUMN,
    COMBINED,
    FULL,
    LABEL_EXCESS,
    LITERAL,
    LOOP,
    OPERATIONS,
    OVER_ALL,
    OVER_COLUMNS,
    OVER_ROWS,
    PRODUCT,
    REGISTERS_MAX,
    ROW,
    SCALAR,
    SPARSE_CROSS_ENTROPY,
    STORE,
    TRANSCENDENTAL,
)

LARGEST_PRODUCT = 1 << 18
"""Multiplications of the largest product that is left to the machine: NumPy's BLAS uses several threads for larger ones."""
LARGEST_TRANSCENDENTAL = 1 << 12
"""Elements of the largest loop with a function that NumPy has in vectorized form and the machine has not."""

Words = list[int]
Address = Callable[[Slot], int]
"""The place of a slot in the list of addresses."""


class Encoded(Call):
    """A call in words. Its operands and results lie in memory whose address is known, except results that leave the program,
    which are copied.

    Attributes:
        words: `words(address, literal)` gives the words; `literal(number)` a place in the list of literals.
        dtype: of the machine.
        shape: of the loop that may be shared among threads, as rows and columns; None for other instructions.
    """

    addressed = True
    __slots__ = ("dtype", "shape", "words")

    def __init__(
        self,
        words: Callable[[Address, Callable[[float], int]], Words],
        operands: Sequence[Any],
        results: Sequence[Slot],
        record: Record,
        reuses: Sequence[Sequence[int]] = (),
        shape: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(_never, operands, results, record, reuses)
        self.words, self.dtype, self.shape = words, results[0].dtype, shape

    def joins(self, calls: Sequence[Encoded]) -> bool:
        """Whether this call can be part of one with others."""
        from .segment import can_be_shared

        return self.dtype == calls[0].dtype and not can_be_shared([self]) and not can_be_shared(calls)

    @staticmethod
    def segment(calls: Sequence[Encoded], address: Address) -> Callable[[Any], None]:
        """Calls in words as one."""
        from .segment import Segment

        return Segment(calls, address)


def _never(*arrays: Any) -> None:
    raise AssertionError("words are carried out by the machine")


class Encoding(Lowering):
    """Lowering to words where the machine can do it."""

    def __init__(self, program: Program) -> None:
        self._addressed: set[int] = {slot.key for slot in program.slots() if _is_constant(slot)}
        """Slots that lie without gaps in memory whose address is known before the run."""
        self._transposed: dict[int, Slot] = {}
        """Matrices that are transposes of such slots."""
        self._copies: dict[tuple[int, Any], Slot] = {}
        self._staged: dict[int, list[Call]] = {}
        """Copies of operands, by the key of what they are copies of."""
        super().__init__(_with_early_checks(program))
        self.found = list(self._with_staged())

    def _lower(self, record: Record) -> None:
        encode = _ENCODINGS().get(record.primitive)
        slots = [x for x in (*record.inputs, *outputs_of(record)) if isinstance(x, Slot)]
        if all(x.xp is np for x in slots) and (
            (encode is not None and encode(self, record)) or (encode is None and self._elementwise(record))
        ):
            return
        first = len(self.found)
        super()._lower(record)
        for call in self.found[first:]:
            self._note(call)

    def _note(self, call: Call | View | Record) -> None:
        """Remember where results lie."""
        if isinstance(call, View):
            x, y = call.operand, call.result
            primitive = call.record.primitive
            if x.key in self._addressed and primitive in (operations.reshape, part) and y.shape != ():
                self._addressed.add(y.key)
            elif x.key in self._addressed and primitive is operations.transpose and len(x.shape) == 2:
                self._transposed[y.key] = x
        elif isinstance(call, Call):
            self._addressed.update(y.key for y in call.results if y.shape not in ((), None) and y.order is None)
        elif call.primitive is join:
            self._addressed.add(call.outputs.key)
        elif call.primitive is read_joined:
            self._addressed.update(flat.key for flat in call.outputs)

    def operand(self, x: Slot, dtype: Any, record: Record) -> Slot:
        """The slot, or a copy of it that lies without gaps, in the machine's dtype."""
        if x.key in self._addressed and x.dtype == dtype:
            return x
        found = self._copies.get((x.key, dtype))
        if found is None:
            found = self._copies[x.key, dtype] = self.temporary(x.shape or (), dtype)
            self._addressed.add(found.key)
            if x.array is not None:
                found.array = np.ascontiguousarray(x.array, dtype).reshape(x.shape)
            else:
                copy = copied if x.shape else _put
                self._staged.setdefault(x.key, []).append(Call(copy, [x], [found], record))
        return found

    def _with_staged(self) -> Iterator[Call | View | Record]:
        """All calls, copies of operands as early as can be, where they stand between no calls of the machine."""
        waiting = dict(self._staged)
        made = {y.key for call in self.found for y in _made(call)}
        for key in [key for key in waiting if key not in made]:
            yield from waiting.pop(key)
        for call in self.found:
            yield call
            for y in _made(call):
                yield from waiting.pop(y.key, ())

    def encoded(self, *arguments: Any, **options: Any) -> None:
        """Write a call in words."""
        call = Encoded(*arguments, **options)
        self.found.append(call)
        self._addressed.update(y.key for y in call.results)

    # Loops -----------------------------------------------------------------------------------------------------------------

    def _elementwise(self, record: Record) -> bool:
        shape, body = elementwise_body(record)
        if body is None or body.numbers or not body.steps:
            return False
        dtypes = {dtype for dtype in body.inputs if dtype is not float} | {y.dtype for y in outputs_of(record)}
        (dtype, *others) = dtypes
        if len(body.steps) == 1 and not any(x.key in self._addressed for x in record.inputs if isinstance(x, Slot)):
            return False  # nothing would be saved
        if others or not _can(body, dtype, math.prod(shape)) or any(y.order is not None for y in outputs_of(record)):
            return False
        slots = [x for x in record.inputs if isinstance(x, Slot)]
        split = _split(shape, [x.shape or () for x in slots])
        if split is None:
            return False
        rows, columns, kinds = split
        body = combined(body)
        operands = [self.operand(x, dtype, record) for x in slots]
        results, count = outputs_of(record), len(operands)
        registers = _registers(body)

        def words(address: Address, literal: Callable[[float], int]) -> Words:
            inputs = [number for x, kind in zip(operands, kinds, strict=True) for number in (address(x), kind)]
            inputs += [number for _, value in body.literals for number in (literal(float(value)), LITERAL)]
            outputs = [
                number
                for y, register in zip(results, body.outputs, strict=True)
                for number in (address(y), registers[register], STORE)
            ]
            steps = [number for step in body.steps for number in _step(step, registers)]
            head = [rows, columns, count + len(body.literals), len(results), len(body.steps)]
            return _instruction(LOOP, [*head, *inputs, *outputs, *steps])

        reuses = [_reusable(body, number, kinds) for number in range(len(results))]
        self.encoded(words, operands, results, record, reuses, shape=(rows, columns))
        return True

    def reduce(self, record: Record, x: Slot, result: Slot) -> bool:
        """A sum along neighbouring axes."""
        axes = sorted(axis % len(x.shape) for axis in record.params["axes"])
        found = _sum_split(x.shape, axes)
        if x.dtype.kind != "f" or x.dtype.itemsize < 4 or found is None or x.order is not None:
            return False
        rows, columns, how = found
        source = self.operand(x, x.dtype, record)

        def words(address: Address, literal: Callable[[float], int]) -> Words:
            return _instruction(LOOP, [rows, columns, 1, 1, 0, address(source), FULL, address(result), 0, how])

        self.encoded(words, [source], [result], record)
        return True


def _made(call: Call | View | Record) -> Sequence[Slot]:
    if isinstance(call, Record):
        return outputs_of(call)
    return (call.result,) if isinstance(call, View) else call.results


def _put(number: Any, out: Any) -> None:
    """A number in its place."""
    out[()] = number


def _instruction(opcode: int, operands: Words) -> Words:
    return [opcode, len(operands) + 2, *operands]


def _step(step: Step, registers: dict[int, int]) -> Words:
    operation = OPERATIONS["copy" if step.function == "astype" else step.function]
    operands = [registers[register] for register in step.operands]
    return [operation, registers[step.register], *operands, *[0] * (3 - len(operands))]


def combined(body: Body) -> Body:
    """The body with those steps in a row made one for which the machine has an operation."""
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


def _registers(body: Body) -> dict[int, int]:
    """Registers of a body as the machine counts them: inputs, literals, results, and as few others as can be.

    What lies between two steps is to stay in the fastest memory, so a register that nobody reads any more serves again; not for
    the step that reads it last, because a loop over memory that overlaps is slow.
    """
    last = {register: position for position, step in enumerate(body.steps) for register in step.operands}
    kept = [*range(len(body.inputs)), *[register for register, _ in body.literals], *body.outputs]
    numbers = {register: number for number, register in enumerate(kept)}
    count, free = len(kept), []
    for position, step in enumerate(body.steps):
        if step.register not in numbers:
            if not free:
                free.append(count)
                count += 1
            numbers[step.register] = free.pop()
        free += {numbers[one] for one in step.operands if one not in kept and last[one] == position}
    return numbers


def _reusable(body: Body, output: int, kinds: Sequence[int]) -> list[int]:
    """The operands whose memory an output may be written into: whole ones that no later step reads."""
    made = {step.register: number for number, step in enumerate(body.steps)}
    position = made.get(body.outputs[output])
    if position is None:
        return []
    later = {register for step in body.steps[position + 1 :] for register in step.operands} | set(body.outputs)
    return [number for number, kind in enumerate(kinds) if kind == FULL and number not in later]


def _can(body: Body, dtype: Any, size: int) -> bool:
    """Whether the machine can carry out a body."""
    registers = len(body.inputs) + len(body.literals) + len(body.steps)
    if dtype not in (np.float32, np.float64) or registers > REGISTERS_MAX or set(body.outputs) & set(range(len(body.inputs))):
        return False
    if len(set(body.outputs)) < len(body.outputs):
        return False
    for step in body.steps:
        known = step.function in OPERATIONS or step.function == "astype"
        if not known or step.dtype not in (dtype, np.bool_):
            return False
        if step.function in TRANSCENDENTAL and size > LARGEST_TRANSCENDENTAL:
            return False
    return True


def _split(shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> tuple[int, int, list[int]] | None:
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


def _sum_split(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, int, int] | None:
    """Rows, columns and the kind of a sum along these axes."""
    count = len(shape)
    if list(axes) == list(range(count)):
        return 1, math.prod(shape), OVER_ALL
    if list(axes) == list(range(len(axes))):
        return math.prod(shape[: len(axes)]), math.prod(shape[len(axes) :]), OVER_ROWS
    if list(axes) == list(range(count - len(axes), count)):
        return math.prod(shape[: count - len(axes)]), math.prod(shape[count - len(axes) :]), OVER_COLUMNS
    return None


def _is_constant(slot: Slot) -> bool:
    array = slot.array
    return isinstance(array, np.ndarray) and array.flags.c_contiguous and array.shape != ()


def _with_early_checks(program: Program) -> Program:
    """Checks of arguments come first, so that they do not stand between calls of the machine."""
    given = {slot.key for slot in program.arguments}
    early = [record for record in program.records if record.primitive is checked and record.inputs[0].key in given]
    others = [record for record in program.records if not any(record is one for one in early)]
    return program.with_records([*early, *others])


# Rows: by primitive -------------------------------------------------------------------------------------------------------


def _product(lowering: Encoding, record: Record) -> bool:
    a, b = record.inputs
    y = record.outputs
    if not (isinstance(a, Slot) and isinstance(b, Slot)) or not len(a.shape) == len(b.shape) == 2 or y.order is not None:
        return False
    (m, k), n = a.shape, b.shape[1]
    if y.dtype not in (np.float32, np.float64) or m * n * k > LARGEST_PRODUCT:
        return False
    turned = [int(x.key in lowering._transposed) for x in (a, b)]
    sources = [lowering.operand(lowering._transposed.get(x.key, x), y.dtype, record) for x in (a, b)]

    def words(address: Address, literal: Callable[[float], int]) -> Words:
        return _instruction(PRODUCT, [address(y), *map(address, sources), m, n, k, *turned])

    lowering.encoded(words, sources, [y], record)
    return True


def _sum(lowering: Encoding, record: Record) -> bool:
    return lowering.reduce(record, record.inputs[0], record.outputs)


def _mean(lowering: Encoding, record: Record) -> bool:
    x, y = record.inputs[0], record.outputs
    count = math.prod(x.shape[axis] for axis in record.params["axes"])
    total = lowering.temporary(y.shape, y.dtype)
    if not count or not lowering.reduce(record, x, total):
        return False

    def words(address: Address, literal: Callable[[float], int]) -> Words:
        inputs = [address(total), FULL, literal(float(count)), LITERAL]
        return _instruction(
            LOOP, [1, math.prod(y.shape), 2, 1, 1, *inputs, address(y), 2, STORE, OPERATIONS["divide"], 2, 0, 1, 0]
        )

    lowering.encoded(words, [total], [y], record, [(0,)])
    return True


def _of_labels(opcode: int) -> Callable[[Encoding, Record], bool]:
    def encode(lowering: Encoding, record: Record) -> bool:
        labels, logits = record.inputs
        y = record.outputs
        usual = isinstance(labels, Slot) and isinstance(logits, Slot) and len(logits.shape) == 2 and len(labels.shape) == 1
        if not usual or logits.dtype not in (np.float32, np.float64) or labels.dtype.kind not in "iu":
            return False
        if not 0 < logits.shape[1] <= REGISTERS_MAX * BLOCK:
            return False
        at, x = lowering.operand(labels, np.dtype(np.int64), record), lowering.operand(logits, logits.dtype, record)

        def words(address: Address, literal: Callable[[float], int]) -> Words:
            return _instruction(opcode, [address(y), address(at), address(x), *x.shape])

        lowering.encoded(words, [at, x], [y], record)
        return True

    return encode


def _ENCODINGS() -> dict[Any, Callable[[Encoding, Record], bool]]:
    return {
        operations.matrix_product: _product,
        operations.reduce_sum: _sum,
        operations.reduce_mean: _mean,
        operations.sparse_softmax_cross_entropy: _of_labels(SPARSE_CROSS_ENTROPY),
        operations.label_excess: _of_labels(LABEL_EXCESS),
    }
