"""The nodes of a program over their present addresses, and the graphs captured of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ....core.warnings import logger
from ...ir import Slot
from ...render.cuda_functions import PREAMBLE
from .device import CuPyDevice
from .lt import MatrixProduct, Operands
from .memory_plan import DevicePlan
from .nodes import CopyNode, LaunchNode, Node, ProductNode, assemble

Enqueue = Callable[[], None]
"""A function that enqueues work on the device."""
WARM = 2
"""Runs before the first capture: they load lazily loaded code, which is refused within a capture."""
MOST = 16
"""Graphs that are kept for one place of the Variables."""


class NoAlgorithm(Exception):
    """cublasLt has no algorithm for a product, or for its epilogue."""

    def __init__(self, product: MatrixProduct) -> None:
        super().__init__(f"cublasLt has no algorithm for {product}")
        self.product = product


class CompiledKernels:
    """Kernels, compiled for a device."""

    def __init__(self, device: CuPyDevice) -> None:
        self._device = device
        self._functions: dict[tuple[int, str], Any] = {}

    def add(self, nodes: Sequence[Node]) -> None:
        """Compile the kernels of nodes that are not known yet, as one module."""
        kernels = [kernel for node in nodes if isinstance(node, LaunchNode) for kernel in node.kernels]
        kernels = [kernel for kernel in kernels if kernel.key not in self._functions]
        loaded = self._device.load(assemble(kernels, PREAMBLE), kernels) if kernels else ()
        self._functions |= {kernel.key: function for kernel, function in zip(kernels, loaded, strict=True)}

    def functions(self, launch: LaunchNode) -> list[Any]:
        """The functions of a launch."""
        self.add([launch])
        return [self._functions[kernel.key] for kernel in launch.kernels]


class Base(NamedTuple):
    """The base of places: an address, and the bytes by which it advances in each step of a graph."""

    address: int
    stride: int


class Graphs:
    """The work that runs enqueue, as long as addresses stay the same.

    Args:
        device: where they run.
        code: the kernels.
        plan: the places of values.
        bases: of these places.
        runs: the number of runs so far.
    """

    def __init__(
        self, device: CuPyDevice, code: CompiledKernels, plan: DevicePlan, bases: Sequence[Base], runs: int = 0
    ) -> None:
        self._device, self._code, self._plan, self.bases, self.runs = device, code, plan, bases, runs
        self._known: dict[Any, Enqueue] = {}

    @property
    def are_captured(self) -> bool:
        """True if nodes are enqueued as graphs by now."""
        return self.runs >= WARM

    def enqueue(self, key: Any, nodes: Sequence[Node], steps: int = 1) -> None:
        """Enqueue the nodes for so many steps, as one graph after the first runs."""
        if key in self._known:
            self._known[key]()
            return
        prepared = [one for step in range(steps) for node in nodes for one in self._of_node(node, step)]

        def one_by_one() -> None:
            for enqueue in prepared:
                enqueue()

        if not self.are_captured:
            one_by_one()
            return
        while len(self._known) >= MOST:
            self._known.pop(next(iter(self._known)))
        try:
            self._known[key] = self._device.capture(one_by_one)
        except RuntimeError as error:  # as CUDA's errors are
            logger.warning("A step could not be captured as a CUDA graph; its kernels are launched one by one: %s", error)
            self._known[key] = one_by_one
        self._known[key]()

    def try_products(self, nodes: Sequence[Node]) -> None:
        """Check that there are algorithms for all products.

        Raises:
            NoAlgorithm: if there is none for one of them.
        """
        for node in nodes:
            if isinstance(node, ProductNode):
                self._product(node, self.address)

    def address(self, x: Slot, step: int = 0) -> int:
        """The address of a value in a step."""
        number, start = self._plan.place(x)
        base = self.bases[number]
        return base.address + start + step * base.stride

    def _of_node(self, node: Node, step: int) -> list[Enqueue]:
        """The functions that enqueue a node in a step."""
        address = functools.partial(self.address, step=step)
        if isinstance(node, CopyNode):
            return [functools.partial(self._device.copy, address(node.y) + node.start, address(node.x), node.x.bytes)]
        if isinstance(node, ProductNode):
            return [self._product(node, address)]
        return [
            functools.partial(self._device.launch, node, number, function, [*map(address, (*kernel.inputs, *kernel.outputs))])
            for number, (kernel, function) in enumerate(zip(node.kernels, self._code.functions(node), strict=True))
        ]

    def _product(self, node: ProductNode, address: Callable[[Slot], int]) -> Enqueue:
        further = [address(x) if x else 0 for x in (node.bias or node.gradient, node.mask)]
        operands = Operands(address(node.b), address(node.a), address(node.y), *further)
        found = self._device.multiply(node.product, operands)
        if found is None:
            raise NoAlgorithm(node.product)
        return found
