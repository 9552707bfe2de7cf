"""A call in words: what the machine needs to know of an instruction.

Key idea: words name memory by its place in a list of addresses, and these places are known once all calls are. So a call keeps
a function that writes its words when it is told the places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core import Record
from ...recorder import Slot
from ..numpy.lowering import Call

SHARED = 1 << 18
"""Elements for each thread in a loop that several share."""

Words = list[int]
Address = Callable[[Slot], int]
"""The place of a slot in the list of addresses."""
Literal = Callable[[float], int]
"""The place of a number in the list of literals."""


class Encoded(Call):
    """A call in words. Its operands and results lie in memory whose address is known, except results that leave the program,
    which are copied.

    Attributes:
        words: `words(address, literal)` gives the words; `literal(number)` a place in the list of literals.
        dtype: of the machine.
        shape: of a loop, as rows and columns; None for other instructions.
        divisible: whether threads may share it: a loop without sums.
    """

    addressed = True
    __slots__ = ("divisible", "dtype", "shape", "words")

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
        self.divisible = shape is not None

    def joins(self, calls: Sequence[Encoded]) -> bool:
        """Whether this call can be part of one with others."""
        return self.dtype == calls[0].dtype and not can_be_shared([self]) and not can_be_shared(calls)


def can_be_shared(calls: Sequence[Encoded]) -> bool:
    """Whether it is one loop that is long enough for two threads."""
    shape = calls[0].shape
    return len(calls) == 1 and shape is not None and calls[0].divisible and shape[0] * shape[1] >= 2 * SHARED


def _never(*arrays: Any) -> None:
    raise AssertionError("words are carried out by the machine")


def instruction(opcode: int, operands: Words) -> Words:
    """The words of one instruction."""
    return [opcode, len(operands) + 2, *operands]
