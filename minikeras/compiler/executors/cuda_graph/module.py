"""One source for all kernels of a program, and what a launch of each takes, as plain data.

Every argument of a kernel is an address on the device, so a launch needs no numbers but its geometry: sizes and literals are
constants of the source, a number that each run has another one of lies in a float64 there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...ir import Slot


class Kernel(NamedTuple):
    """One launch of a function that stands in CUDA C.

    Arrays are C-contiguous, whatever `Slot.order` says. A slot whose shape is None is one float64. An output may share memory
    with an input only where `may_alias` says so.

    Attributes:
        label: what it does, for profilers: the beginning of its name.
        text: the function from its list of parameters on, with nothing that tells it from another one like it.
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


class Module(NamedTuple):
    """A source to compile, and for each kernel the name of its function there."""

    source: str
    names: tuple[str, ...]


def assemble(kernels: Iterable[Kernel], preamble: str = "") -> Module:
    """One source with all functions, each once: kernels of equal text for as many threads share one.

    >>> fill = Kernel("fill", "(float* y) { y[0] = 1; }", (), (), 1, 32)
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
    return Module("\n\n".join([*filter(None, [preamble]), *lines]) + "\n", tuple(names))
