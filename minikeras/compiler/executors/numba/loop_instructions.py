"""Loops and sums in the words of the machine.

Key idea: a body is data already, so its steps become words one by one; several in a row become one where the machine has an
operation for them. A sum of what a loop makes is done while that is still in the cache.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core import Record
from ...ir import outputs_of
from ...loops import Body, Step
from ...recorder import Slot
from .instructions import SHARED, Address, Encoded, Literal, Words, instruction
from .interpreter import (
    COLUMN,
    COMBINED,
    FULL,
    LITERAL,
    LOOP,
    OPERATIONS,
    OVER_ALL,
    OVER_COLUMNS,
    OVER_ROWS,
    REGISTERS_MAX,
    ROW,
    SCALAR,
    STORE,
    TRANSCENDENTAL,
)

LARGEST_TRANSCENDENTAL = 1 << 12
"""Elements of the largest loop with a function that NumPy has in vectorized form and the machine has not."""

Split = tuple[int, int, list[int]]
"""Rows, columns, and how each operand lies in them."""


class EncodedLoop(Encoded):
    """A body for rows times columns elements, with sums of what it makes.

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
        reuses = [reusable(self._body, number, self._kinds) for number in range(len(results))]
        super().__init__(self._in_words, operands, results, record, reuses, shape=(rows, columns))

    def add_sum(self, x: Slot, result: Slot, split: tuple[int, int, int], alone: bool) -> bool:
        """Add up a result too, if the loop can; with `alone` nobody else reads it, and it is not even stored."""
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
            self._outputs[number], self.results[number], self.reuses[number] = output, result, ()  # type: ignore[index]
        else:
            self._outputs.append(output)
            self.results.append(result)  # type: ignore[attr-defined]
            self.reuses.append(())  # type: ignore[attr-defined]
        return True

    def _in_words(self, address: Address, literal: Literal) -> Words:
        assert self.shape is not None
        body = self._body
        inputs = [number for x, kind in zip(self.operands, self._kinds, strict=True) for number in (address(x), kind)]
        inputs += [number for _, value in body.literals for number in (literal(float(value)), LITERAL)]
        outputs = [number for y, register, how in self._outputs for number in (address(y), register, how)]
        steps = [number for step in body.steps for number in _step(step, self._registers)]
        head = [*self.shape, len(self.operands) + len(body.literals), len(self._outputs), len(body.steps)]
        return instruction(LOOP, [*head, *inputs, *outputs, *steps])


class EncodedSum(Encoded):
    """A sum along neighbouring axes: a loop without steps."""

    __slots__ = ()

    def __init__(self, split: tuple[int, int, int], x: Slot, result: Slot, record: Record) -> None:
        rows, columns, how = split

        def words(address: Address, literal: Literal) -> Words:
            return instruction(LOOP, [rows, columns, 1, 1, 0, address(x), FULL, address(result), 0, how])

        super().__init__(words, [x], [result], record)


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


def registers_of(body: Body) -> dict[int, int]:
    """Registers of a body as the machine counts them: inputs, literals, results, and as few others as can be.

    What lies between two steps is to stay in the fastest memory, so a register that nobody reads any more serves again; not for
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
