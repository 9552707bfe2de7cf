"""Instructions in the words of the machine.

Key idea: what the machine can do becomes words over places in a list of addresses; all else stays a call from Python. Calls
in words that follow one another are one call of the machine. Read `machine.py` first, which says what the words mean.
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
from ...ir import Program, outputs_of
from ...loops import body_of
from ...passes.fusion import elementwise_body
from ...planning.flat_variables import join, part, read_joined
from ...recorder import Slot
from ..numpy.blocks import copied, put
from ..numpy.lowering import Call, Lowering, View
from .instructions import Address, Encoded, Words, instruction
from .interpreter import BLOCK, FULL, LABEL_EXCESS, PRODUCT, REGISTERS_MAX, SPARSE_CROSS_ENTROPY
from .loop_instructions import EncodedLoop, EncodedSum, can_loop, split_of, sum_split

LARGEST_PRODUCT = 1 << 18
"""Multiplications of the largest product that is left to the machine: NumPy's BLAS uses several threads for larger ones."""


def encoded(program: Program) -> list[Call | View | Record]:
    """The calls that carry out a program, in words where the machine can do it."""
    encoding = Encoding(program)
    for record in _with_early_checks(program):
        encoding.encode(record)
    return list(encoding.calls())


def supports(record: Record) -> bool:
    """Whether the machine may be able to carry an instruction out; shapes and dtypes decide."""
    slots = [x for x in (*record.inputs, *outputs_of(record)) if isinstance(x, Slot)]
    return all(x.xp is np for x in slots) and (record.primitive in _encodings() or elementwise_body(record)[1] is not None)


class Encoding:
    """Turns the instructions of a program into words where the machine can do it; NumPy's lowering does the rest.

    Args:
        program: where the instructions come from.
    """

    def __init__(self, program: Program) -> None:
        self._numpy = Lowering(program)
        self.temporary, self._found = self._numpy.temporary, self._numpy.found
        self._addressed: set[int] = {slot.key for slot in program.slots() if _is_constant(slot)}
        """Slots that lie without gaps in memory whose address is known before the run."""
        self._transposed: dict[int, Slot] = {}
        """Matrices that are transposes of such slots."""
        self._copies: dict[tuple[int, Any], Slot] = {}
        self._loops: dict[int, EncodedLoop] = {}
        """The loops that make slots."""
        self._readers = collections.Counter(x.key for record in program.records for x in record.inputs if isinstance(x, Slot))
        self._readers.update(x.key for x in program.results if isinstance(x, Slot))
        self._staged: dict[int, list[Call]] = {}
        """Copies of operands, by the key of what they are copies of."""

    def encode(self, record: Record) -> None:
        """Write the calls of one instruction."""
        encode = _encodings().get(record.primitive)
        slots = [x for x in (*record.inputs, *outputs_of(record)) if isinstance(x, Slot)]
        if all(x.xp is np for x in slots) and (
            (encode is not None and encode(self, record)) or (encode is None and self._elementwise(record))
        ):
            return
        first = len(self._found)
        self._numpy.lower(record)
        for call in self._found[first:]:
            self._note(call)

    def _note(self, call: Call | View | Record) -> None:
        """Remember where results lie."""
        if isinstance(call, View):
            x, y = call.operand, call.result
            primitive = call.record.primitive
            if x.array is not None:
                pass  # it is the same in each run, but lies in no memory that the plan knows
            elif x.key in self._addressed and primitive in (operations.reshape, part) and y.shape != ():
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
                copy = copied if x.shape else put
                self._staged.setdefault(x.key, []).append(Call(copy, [x], [found], record))
        return found

    def calls(self) -> Iterator[Call | View | Record]:
        """All calls, copies of operands as early as can be, where they stand between no calls of the machine."""
        waiting = dict(self._staged)
        made = {y.key for call in self._found for y in _made(call)}
        for key in [key for key in waiting if key not in made]:
            yield from waiting.pop(key)
        for call in self._found:
            yield call
            for y in _made(call):
                yield from waiting.pop(y.key, ())

    def add(self, call: Encoded) -> None:
        """Write a call in words, whose results then lie where its address is known."""
        self._found.append(call)
        self._addressed.update(y.key for y in call.results)

    # Loops -----------------------------------------------------------------------------------------------------------------

    def _elementwise(self, record: Record) -> bool:
        shape, body = elementwise_body(record)
        if body is None or body.numbers or not body.steps:
            return False
        dtypes = {dtype for dtype in body.inputs if dtype is not float} | {y.dtype for y in outputs_of(record)}
        (dtype, *others) = dtypes
        slots = [x for x in record.inputs if isinstance(x, Slot)]
        if shape == () and not (self._follows_words() and all(x.key in self._addressed for x in slots)):
            return False  # numbers are handled faster one by one, unless they are there already
        if len(body.steps) == 1 and not any(x.key in self._addressed for x in slots):
            return False  # nothing would be saved
        if others or not can_loop(body, dtype, math.prod(shape)) or any(y.order is not None for y in outputs_of(record)):
            return False
        split = split_of(shape, [x.shape or () for x in slots])
        if split is None:
            return False
        call = EncodedLoop(body, split, [self.operand(x, dtype, record) for x in slots], record)
        self.add(call)
        self._loops |= {y.key: call for y in call.results}
        return True

    def _follows_words(self) -> bool:
        """Whether the last call is one in words, which another one joins at no cost."""
        last = next((call for call in reversed(self._found) if not isinstance(call, View)), None)
        return isinstance(last, Encoded)

    def reduce(self, record: Record, x: Slot, result: Slot) -> bool:
        """A sum along neighbouring axes, at the end of the loop that makes what is added up, if there is one."""
        split = sum_split(x.shape, sorted(axis % len(x.shape) for axis in record.params["axes"]))
        if x.dtype.kind != "f" or x.dtype.itemsize < 4 or split is None or x.order is not None:
            return False
        loop = self._loops.get(x.key)
        if loop is not None and loop.add_sum(x, result, split, self._readers[x.key] == 1):
            self._addressed.add(result.key)
        else:
            self.add(EncodedSum(split, self.operand(x, x.dtype, record), result, record))
        return True


def _made(call: Call | View | Record) -> Sequence[Slot]:
    if isinstance(call, Record):
        return outputs_of(call)
    return (call.result,) if isinstance(call, View) else call.results


def _is_constant(slot: Slot) -> bool:
    array = slot.array
    return isinstance(array, np.ndarray) and array.flags.c_contiguous and array.shape != ()


def _with_early_checks(program: Program) -> list[Record]:
    """Checks of arguments come first, so that they do not stand between calls of the machine."""
    given = {slot.key for slot in program.arguments}
    early = [record for record in program.records if only_checks(record.primitive) and record.inputs[0].key in given]
    others = [record for record in program.records if not any(record is one for one in early)]
    return [*early, *others]


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
        return instruction(PRODUCT, [address(y), *map(address, sources), m, n, k, *turned])

    lowering.add(Encoded(words, sources, [y], record))
    return True


def _sum(lowering: Encoding, record: Record) -> bool:
    return lowering.reduce(record, record.inputs[0], record.outputs)


def _mean(lowering: Encoding, record: Record) -> bool:
    x, y = record.inputs[0], record.outputs
    count = math.prod(x.shape[axis] for axis in record.params["axes"])
    total = lowering.temporary(y.shape, y.dtype)
    if not count or not lowering.reduce(record, x, total):
        return False

    division = body_of(operations.divide, [total.dtype, count], {})
    assert division is not None
    lowering.add(EncodedLoop(division, (1, math.prod(y.shape), [FULL]), [total], record))
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
            return instruction(opcode, [address(y), address(at), address(x), *x.shape])

        lowering.add(Encoded(words, [at, x], [y], record))
        return True

    return encode


@functools.cache
def _encodings() -> dict[Any, Callable[[Encoding, Record], bool]]:
    return {
        operations.matrix_product: _product,
        operations.reduce_sum: _sum,
        operations.reduce_mean: _mean,
        operations.sparse_softmax_cross_entropy: _of_labels(SPARSE_CROSS_ENTROPY),
        operations.label_excess: _of_labels(LABEL_EXCESS),
    }
