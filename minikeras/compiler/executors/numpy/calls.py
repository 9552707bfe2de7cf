"""What instructions are lowered to: calls, each with operands, results and the instruction that it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core import Primitive, Record
from ...ir import Slot, outputs_of
from ...planning.flat_variables import assign_flat, flatten, read_flat


class Lowered:
    """An instruction, or a part of one.

    Attributes:
        operands: slots, Variables and Python numbers.
        results: slots.
        record: the instruction that it comes from.
    """

    def __init__(self, operands: Sequence[Any], results: Sequence[Slot], record: Record) -> None:
        self.operands, self.results, self.record = operands, results, record


class Call(Lowered):
    """`function(*operands, *results)`: it writes its results into memory that it is given.

    Attributes:
        function: of arrays and Python numbers.
        may_alias: for each result the positions of operands whose memory it may be written into.
        addressed: whether operands and results must lie in memory whose address is known before the run.
    """

    addressed = False

    def __init__(
        self,
        function: Callable[..., Any],
        operands: Sequence[Any],
        results: Sequence[Slot],
        record: Record,
        may_alias: Sequence[Sequence[int]] = (),
    ) -> None:
        super().__init__(operands, results, record)
        self.function, self.may_alias = function, may_alias or [()] * len(results)


class View(Lowered):
    """`function(operand)` shares the operand's memory, so it need not run, or makes an array."""

    def __init__(self, function: Callable[[Any], Any], operand: Slot, result: Slot, record: Record) -> None:
        super().__init__((operand,), (result,), record)
        self.function = function


class Bind(Lowered):
    """An array of the caller is read where it lies; one with gaps is copied. The address is that of the result."""

    def __init__(self, operand: Slot, result: Slot, record: Record) -> None:
        super().__init__((operand,), (result,), record)


class Kernel(Lowered):
    """An instruction as it is: it makes its results, and may do more."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.inputs, outputs_of(record), record)

    @property
    def escapes(self) -> bool:
        """Whether an operand may be held after it: by a Variable, by Python, or by a result that is a view of it."""
        primitive = self.record.primitive
        return primitive.escapes if primitive.effect else any(y.shares for y in self.results)


class ReadFlat(Kernel):
    """Flattened Variables are read: the results are views of their buffer."""


class AssignFlat(Kernel):
    """Flattened Variables are assigned: what is assigned lies in their next buffer already.

    Attributes:
        in_place: whether the next buffer may be the present one, if nothing but the Variables refers to it. The executor then
            chooses it right before a call that cannot fail.
    """

    in_place = False


class Flatten(Kernel):
    """A flat array of the operands, which may be written right where they lie in it."""

    escapes = False


KINDS: dict[Primitive, type[Kernel]] = {read_flat: ReadFlat, assign_flat: AssignFlat, flatten: Flatten}
"""Instructions of which the plan of memory knows more than that they make their results."""


def kernel_call(record: Record) -> Kernel:
    """An instruction as it is."""
    return KINDS.get(record.primitive, Kernel)(record)
