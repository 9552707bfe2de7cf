"""Nodes: a lowered program is a list of them. Neighbouring nodes become one graph; a `CallNode` stands between two graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ....core import Record
from ...ir import Slot, outputs_of, slots_in
from .lt import Epilogue, MatrixProduct

# One source for all kernels of a program, and the launch parameters of each, as plain data.
#
# Every argument of a kernel is an address on the device, so a launch needs no numbers but its geometry: sizes and literals are
# constants of the source, a number that differs from run to run lies in a float64 there.


class CudaKernel(NamedTuple):
    """One launch of a function in CUDA C.

    Arrays are C-contiguous, whatever `Slot.order` says. A slot whose shape is None is one float64. An output may share memory
    with an input only where `may_alias` says so.

    Attributes:
        label: a name for profilers, the beginning of its function's name.
        text: the function from its list of parameters on, equal for equal functions.
        inputs: slots whose addresses are its first arguments.
        outputs: slots whose addresses follow; each is written as a whole.
        blocks: of the grid, in one dimension; at least 1.
        threads: of a block, in one dimension; a multiple of 32.
        may_alias: for each output the positions of inputs in whose memory it may lie.
    """

    label: str
    text: str
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    blocks: int
    threads: int
    may_alias: tuple[tuple[int, ...], ...] = ()


class CudaModule(NamedTuple):
    """A source to compile, and for each kernel the name of its function there."""

    source: str
    names: tuple[str, ...]


def assemble(kernels: Iterable[CudaKernel], preamble: str = "") -> CudaModule:
    """One source with all functions, each once: kernels of equal text for as many threads share one.

    >>> fill = CudaKernel("fill", "(float* y) { y[0] = 1; }", (), (), 1, 32)
    >>> assemble([fill, fill]).names
    ('fill_0', 'fill_0')
    """
    functions: dict[tuple[int, str], str] = {}
    names = []
    for kernel in kernels:
        names.append(functions.setdefault((kernel.threads, kernel.text), f"{kernel.label}_{len(functions)}"))
    lines = [
        f'extern "C" __global__ __launch_bounds__({threads}) void {name}{text}' for (threads, text), name in functions.items()
    ]
    return CudaModule("\n\n".join([*filter(None, [preamble]), *lines]) + "\n", tuple(names))


class LaunchNode(NamedTuple):
    """Kernels that carry out some instructions, in order."""

    kernels: Sequence[CudaKernel]
    records: Sequence[Record]

    @property
    def operands(self) -> list[Slot]:
        """The slots that are read and that were there before."""
        own = {y.key for kernel in self.kernels[:-1] for y in kernel.outputs}
        return [x for kernel in self.kernels for x in kernel.inputs if x.key not in own]

    @property
    def results(self) -> list[Slot]:
        """The slots that are written, intermediate ones included."""
        return [y for kernel in self.kernels for y in kernel.outputs]


class ProductNode(NamedTuple):
    """A matrix product: y = a @ b. Its epilogue reads a bias, writes its gradient, writes or reads a mask of bits."""

    product: MatrixProduct
    a: Slot
    b: Slot
    y: Slot
    bias: Slot | None = None
    gradient: Slot | None = None
    mask: Slot | None = None

    @property
    def operands(self) -> list[Slot]:
        """The slots that are read."""
        return slots_in((self.a, self.b, self.bias, None if self._writes_mask else self.mask))

    @property
    def results(self) -> list[Slot]:
        """The slots that are written."""
        return slots_in((self.y, self.gradient, self.mask if self._writes_mask else None))

    @property
    def _writes_mask(self) -> bool:
        return self.product.epilogue is Epilogue.RELU_MASK_BIAS


class CopyNode(NamedTuple):
    """The bytes of one slot, from a byte of it on, to another one, from a byte of that on."""

    x: Slot
    y: Slot
    start: int = 0

    @property
    def operands(self) -> list[Slot]:
        """The slots that are read."""
        return [self.x]

    @property
    def results(self) -> list[Slot]:
        """The slots that are written."""
        return [self.y]


class CallNode(NamedTuple):
    """An instruction that Python carries out: an effect, or one for which there is no kernel."""

    record: Record

    @property
    def operands(self) -> list[Slot]:
        """The slots that are read."""
        return slots_in(self.record.inputs)

    @property
    def results(self) -> list[Slot]:
        """The slots that are written."""
        return list(outputs_of(self.record))


Node = Any
"""One of these."""
