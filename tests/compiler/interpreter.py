"""What a nest means: carried out by NumPy, point after point, the innermost loop at once. Tests hold renderers to it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minikeras.compiler.loop_ir.expression import Expr, IntTable, ScratchView, lift
from minikeras.compiler.loop_ir.nest import Fold, For, Matrix, Nest, Part, Product, Store, runs
from minikeras.types import Array as NumPyArray


class Interpreter:
    """Carries a nest out.

    Args:
        nest: the loops.
        arrays: of its arrays, in their order; results are written there.
        sizes: the integers, in their order.
        backwards: whether points of parallel axes come in the opposite order, which must change nothing.
    """

    def __init__(self, nest: Nest, arrays: Sequence[NumPyArray], sizes: Sequence[int], backwards: bool = False) -> None:
        self._nest, self._backwards = nest, backwards
        self._memory = {one: array.reshape(-1) for one, array in zip(nest.arrays, arrays, strict=True)}
        for one in nest.scratch:
            self._memory[one] = (
                self._memory[one.of].view(one.dtype) if isinstance(one, ScratchView) else np.full(one.scratch, 77, one.dtype)
            )
        self._values: dict[Expr, Any] = dict(zip(nest.sizes, map(np.int64, sizes), strict=True))

    def run(self) -> None:
        """All of it."""
        grid = self._nest.grid
        if isinstance(grid, Part):
            self._values |= {grid.start: np.int64(0), grid.stop: self.value(grid.extent)}
        self._body(self._nest.body)

    def _body(self, body: Sequence[Any]) -> None:
        for one in runs(body):
            if isinstance(one, For):
                self._loop(one)
            elif isinstance(one, Product):
                self._product(one)
            else:
                self._write(one)

    def _loop(self, loop: For) -> None:
        axis, extent = loop.axis, int(self.value(loop.axis.extent))
        if loop.is_innermost and axis.kind != "sequential":
            if extent > 0:
                self._values[axis] = np.arange(extent)
                self._write(loop.body)
            return
        backwards = self._backwards and axis.kind == "parallel"
        for self._values[axis] in reversed(range(extent)) if backwards else range(extent):
            self._body(loop.body)

    def _write(self, body: Sequence[Any]) -> None:
        """Statements that all read before one of them writes."""
        known: dict[Expr, Any] = {}
        found = [
            (one, self.value(one.value, known), self.value(one.index, known) if isinstance(one, Store) else None)
            for one in body
        ]
        for one, value, index in found:
            if isinstance(one, Fold):
                self._fold(one, value)
                continue
            memory, at = self._memory[one.array], np.asarray(index)
            if at.size and not (at.min() >= 0 and at.max() < memory.size):
                raise IndexError(f"{self._nest.name} writes {one.array.name}[{at}], which has {memory.size} elements.")
            if one.adds:
                np.add.at(memory, at, value)
            else:
                memory[at] = value

    def _fold(self, one: Fold, value: Any) -> None:
        if one.op == "set":
            self._values[one.register] = value
        else:
            ufunc = getattr(np, one.op)
            self._values[one.register] = ufunc(self._values[one.register], ufunc.reduce(np.atleast_1d(value)))

    def value(self, x: Expr, known: dict[Expr, Any] | None = None) -> Any:
        """A scalar, or one for each point of the innermost axis; each is computed once where nothing is written between."""
        known = {} if known is None else known
        if x not in known:
            known[x] = self._computed(x, known)
        return known[x]

    def _computed(self, x: Expr, known: dict[Expr, Any]) -> Any:
        if x.op in ("axis", "register", "size"):
            return self._values[x]
        if x.op == "constant":
            return x.dtype.type(x.value)
        args = [self.value(one, known) for one in x.args]
        if x.op == "load":
            memory = x.value.numbers if isinstance(x.value, IntTable) else self._memory[x.value]
            at = np.asarray(args[0])
            if at.size and not (at.min() >= 0 and at.max() < memory.size):
                raise IndexError(f"{self._nest.name} reads {x.value.name}[{at}], which has {memory.size} elements.")
            return memory[at]
        if x.op == "view":
            return np.asarray(args[0]).view(x.dtype)[()]
        if x.op == "astype":
            return np.asarray(args[0]).astype(x.dtype)[()]
        return getattr(np, x.op)(*args)

    def _product(self, one: Product) -> None:
        m, n, k = [int(self.value(size)) for size in one.sizes]
        (a, b), c = one.factors, one.result
        product = self._matrix(a, m, k) @ self._matrix(b, k, n)
        self._matrix(c, m, n)[...] = product + (self._matrix(c, m, n) if one.adds else 0)

    def _matrix(self, one: Matrix, rows: int, columns: int) -> NumPyArray:
        """A view of what a product reads or writes."""
        start, line = int(self.value(lift(one.start))), int(self.value(lift(one.line)))
        height, width = (columns, rows) if one.turned else (rows, columns)
        memory = self._memory[one.array]
        if height and width and (start < 0 or width > line or start + (height - 1) * line + width > memory.size):
            raise IndexError(f"{self._nest.name} multiplies beyond the {memory.size} elements of {one.array.name}.")
        step = memory.itemsize
        view = np.lib.stride_tricks.as_strided(memory[start:], (height, width), (line * step, step))
        return view.T if one.turned else view


def interpret(nest: Nest, arrays: Sequence[NumPyArray], sizes: Sequence[int], backwards: bool = False) -> None:
    """Carry a nest out; its results are written into `arrays`."""
    with np.errstate(all="ignore"):
        Interpreter(nest, arrays, sizes, backwards).run()
