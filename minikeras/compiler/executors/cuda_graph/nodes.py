"""Nodes: a lowered program is a list of them. Neighbouring nodes become one graph; a `Kernel` of Python stands between two.

An `Emitter` writes the kernels of an instruction; one without kernels is left to Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core import Record
from ...ir import Slot, slots_in, slots_of
from ...loop_ir.expression import DTYPES, NoNest
from ...loop_ir.fusion import Target
from ...loop_ir.groups import Domain
from ...loop_ir.lowering import Lowering
from ...loop_ir.reductions import loop_nest
from ...loop_ir.strided import Launch, Temporary, spread
from ...loops import Body
from ...render.cuda import CUDA, Group, Schedule
from ...render.cuda_functions import is_known
from .lt import Epilogue, MatrixProduct, epilogue_of

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

    @property
    def key(self) -> tuple[int, str]:
        """Equal for kernels that one function carries out."""
        return self.threads, self.text


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
        names.append(functions.setdefault(kernel.key, f"{kernel.label}_{len(functions)}"))
    lines = [
        f'extern "C" __global__ __launch_bounds__({threads}) void {name}{text}' for (threads, text), name in functions.items()
    ]
    return CudaModule("\n\n".join([*filter(None, [preamble]), *lines]) + "\n", tuple(names))


class LaunchNode(NamedTuple):
    """Kernels that carry out an instruction, in order."""

    kernels: Sequence[CudaKernel]
    record: Record

    @property
    def operands(self) -> list[Slot]:
        """The slots that are read and that were there before."""
        own = {y.key for kernel in self.kernels[:-1] for y in kernel.outputs}
        return [x for kernel in self.kernels for x in kernel.inputs if x.key not in own]

    @property
    def results(self) -> list[Slot]:
        """The slots that are written, intermediate ones included."""
        return [y for kernel in self.kernels for y in kernel.outputs]

    @property
    def may_alias(self) -> Sequence[Sequence[int]]:
        """For each result the positions of operands in whose memory it may lie."""
        return self.kernels[0].may_alias if len(self.kernels) == 1 else ()


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


Node = Any
"""One of these, or a `Kernel`: an instruction that Python carries out, an effect or one for which there are no kernels here."""

# From instructions to kernels ------------------------------------------------------------------------------------------------

MOST_ELEMENTS = 1 << 31
"""The limit for the elements of an array."""


class Emitter:
    """Writes kernels for instructions.

    Args:
        keys: for new slots.
    """

    def __init__(self, keys: Iterator[int]) -> None:
        temporary: Temporary = lambda shape, dtype: Slot(next(keys), shape, np.dtype(dtype))
        self._lowering = Lowering(temporary, lambda lowered: Schedule(lowered.nest).pieces)

    def kernels(self, record: Record) -> list[CudaKernel] | None:
        """The kernels of an instruction, in order: none if its results have no elements; None if there is no kernel."""
        if any(not is_known(x.dtype) or math.prod(x.shape or ()) >= MOST_ELEMENTS for x in slots_of(record)):
            return None
        nests = self._lowering.nests(record)
        try:
            return None if nests is None else list(map(kernel_of, nests))
        except NoNest:
            return None


def kernel_of(lowered: Launch) -> CudaKernel:
    """The kernel of a nest.

    Raises:
        NoNest: if a function or a dtype is not known.
    """
    nest, operands, results = lowered.nest, tuple(lowered.operands), tuple(lowered.results)
    writer = CUDA(nest, elements=max([math.prod(x.shape or ()) for x in (*operands, *results)]))
    group = writer.schedule.group
    return CudaKernel(nest.name, writer.text(), operands, results, group.blocks, group.threads, writer.may_alias)


def is_written(body: Body) -> bool:
    """True if there are functions and types for all steps of a body."""
    operands = [Slot(key, (2,) if dtype is not float else None, dtype) for key, dtype in enumerate(body.inputs)]
    results = [Slot(len(operands) + key, (2,), body.dtypes[register]) for key, register in enumerate(body.outputs)]
    try:
        kernel_of(loop_nest("loop", (2,), body, [spread(x, (2,)) for x in operands], results))
    except NoNest:
        return False
    return all(is_known(dtype) for dtype in body.dtypes.values())


# What becomes one kernel ---------------------------------------------------------------------------------------------------

TURNS = 16
"""Elements that a thread takes in one pass; a longer sum is cut into pieces instead, unless the device is busy with many."""
BUSY = 1 << 16
"""Threads that keep a device busy."""


def group_of(domain: Domain) -> Group:
    """The threads that carry out a group; neighbours take neighbouring elements."""
    wide = [axis for axis, size in enumerate(domain.shape) if size > 1]
    return Group.of(math.prod(domain.kept), math.prod(domain.folded), not wide or wide[-1] in domain.axes)


def is_balanced(domain: Domain) -> bool:
    """True if no group of threads has too much work."""
    threads = group_of(domain)
    turns = -(-math.prod(domain.folded) // threads.lanes)
    return turns <= (64 * TURNS if threads.blocks * threads.threads >= BUSY else TURNS)


TARGET = Target(
    DTYPES,
    takes=lambda record, body: body is None or is_written(body),
    repeats=is_balanced,
    leaves=lambda shape, body: len(shape) == 2 and epilogue_of(body) is not None,
)
