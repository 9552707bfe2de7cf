"""What a lowered program is a list of. A graph is captured from neighbouring nodes; a `Call` stands between two graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....core import Record
from ...ir import Slot, outputs_of, slots_in
from .lt import Epilogue, Product
from .module import Kernel


class Launch(NamedTuple):
    """Kernels, one after another, that carry out some instructions."""

    kernels: Sequence[Kernel]
    records: Sequence[Record]

    @property
    def operands(self) -> list[Slot]:
        """What is read that was there before."""
        own = {y.key for kernel in self.kernels[:-1] for y in kernel.outputs}
        return [x for kernel in self.kernels for x in kernel.inputs if x.key not in own]

    @property
    def results(self) -> list[Slot]:
        """What is written, that which lies between two of the kernels included."""
        return [y for kernel in self.kernels for y in kernel.outputs]


class Multiply(NamedTuple):
    """A product of matrices: y = a @ b. Its epilogue reads a bias, writes its gradient, writes or reads a mask of bits."""

    product: Product
    a: Slot
    b: Slot
    y: Slot
    bias: Slot | None = None
    gradient: Slot | None = None
    mask: Slot | None = None

    @property
    def operands(self) -> list[Slot]:
        """What is read."""
        return slots_in((self.a, self.b, self.bias, None if self._writes_mask else self.mask))

    @property
    def results(self) -> list[Slot]:
        """What is written."""
        return slots_in((self.y, self.gradient, self.mask if self._writes_mask else None))

    @property
    def _writes_mask(self) -> bool:
        return self.product.epilogue is Epilogue.RELU_MASK_BIAS


class Copy(NamedTuple):
    """The bytes of one slot, from a byte of it on, to another one, from a byte of that on."""

    x: Slot
    y: Slot
    start: int = 0

    @property
    def operands(self) -> list[Slot]:
        """What is read."""
        return [self.x]

    @property
    def results(self) -> list[Slot]:
        """What is written."""
        return [self.y]


class Call(NamedTuple):
    """An instruction that Python carries out: an effect, or one for which there is no kernel."""

    record: Record

    @property
    def operands(self) -> list[Slot]:
        """What is read."""
        return slots_in(self.record.inputs)

    @property
    def results(self) -> list[Slot]:
        """What is written."""
        return list(outputs_of(self.record))


Node = Any
"""One of these."""
