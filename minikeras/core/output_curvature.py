"""OutputCurvature: J^T H J, the curvature that a loss of a model's outputs has in the model's variables.

Key idea: one record of the outputs z and one of the loss's gradient in z serve the matrix and any number of products. J^T u is
linear in u, so a record of that sweep gives J v by one more sweep. In most losses the rows of z do not meet, and H is one small
block for each row; whether it is so, a product with a random vector shows. Next: `curvature.py`, its public face.
Source: Schraudolph, Fast curvature matrix-vector products (2002), section 3; Townsend, A new trick for calculating Jacobian
vector products (2017), for J v by two backward sweeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays import namespace, to_device, to_numpy
from .convert import convert_to_tensor
from .derivatives import run_loss, unconnected
from .dispatch import BOTTOM, current
from .flat import flatten, matrix_of, size_of, symmetric
from .registry import operations
from .tape import GradientTape
from .tensor import Tensor


class OutputCurvature:
    """One run of a model and what follows from it.

    Args:
        output_fn: without arguments; returns the outputs z.
        loss_of_output: from z to a scalar.
        variables: with respect to which; P parameters.
        strict: raise UnconnectedGradientError for a variable that z does not depend on, instead of giving zeros.

    Attributes:
        outputs: z.
        tape: the record of z, persistent.
    """

    def __init__(
        self,
        output_fn: Callable[[], Any],
        loss_of_output: Callable[[Any], Any],
        variables: Sequence[Any],
        strict: bool = False,
    ) -> None:
        self.variables, self._loss_of_output, self._fill = list(variables), loss_of_output, unconnected(strict)
        self.tape = GradientTape(persistent=True, watch_accessed_variables=False, strict=strict)
        with self.tape:
            self.tape.watch(self.variables)
            self.outputs = convert_to_tensor(output_fn())
        self._bending: tuple[GradientTape, Tensor, Tensor] | None = None
        self._turned: tuple[GradientTape, Tensor, list[Tensor]] | None = None

    # Products ------------------------------------------------------------------------------------------------------------

    def product(self, parts: Sequence[Any]) -> list[Tensor]:
        """J^T H J times a direction among the variables: forward to the outputs, through the loss's Hessian, and back."""
        return self.back(self.bent(self.forward(parts)))

    def forward(self, parts: Sequence[Any]) -> Tensor:
        """J times a direction, one part for each variable."""
        if self._turned is None:
            turned = GradientTape(persistent=True, watch_accessed_variables=False)
            with turned:
                seed = operations.zeros_like(self.outputs)
                turned.watch(seed)
                self._turned = turned, seed, self.back(seed)
        turned, seed, result = self._turned
        return turned.gradient(result, seed, list(parts), "zero")  # type: ignore[no-any-return]

    def bent(self, direction: Tensor) -> Tensor:
        """H times a direction among the outputs."""
        found = self._bent(operations.reshape(direction, shape=self._shape, rank=len(direction.shape)))
        return operations.reshape(found, shape=tuple(self.outputs.shape), rank=2)

    def back(self, cotangent: Tensor) -> list[Tensor]:
        """J^T times a tensor like the outputs, one part for each variable."""
        found = self.tape.gradient(self.outputs, self.variables, cotangent, self._fill)
        return [convert_to_tensor(part) for part in found]

    @property
    def _shape(self) -> tuple[int, int]:
        """Rows of z, and elements in each."""
        rows = self.outputs.shape[0] if self.outputs.shape else 1
        return rows, size_of(self.outputs) // max(rows, 1)

    def _bend(self) -> tuple[GradientTape, Tensor, Tensor]:
        """A record of the loss's gradient in the rows of z, the rows and the gradient."""
        if self._bending is None:
            whole = tuple(self.outputs.shape)
            rows = operations.reshape(self.outputs, shape=self._shape, rank=len(whole))
            tape, loss = run_loss(lambda: self._loss_of_output(operations.reshape(rows, shape=whole, rank=2)), [rows])
            second, (gradient,) = tape.with_gradient(loss, [rows])
            self._bending = second, rows, gradient
        return self._bending

    def _bent(self, direction: Tensor) -> Tensor:
        second, rows, gradient = self._bend()
        return second.gradient(gradient, rows, direction, "zero")  # type: ignore[no-any-return]

    # Matrices ------------------------------------------------------------------------------------------------------------

    def matrix(self, chosen: Sequence[Any], chunk_size: int | None = None) -> Tensor:
        """The block of J^T H J that belongs to some of the variables, symmetric."""
        count = size_of(self.outputs)
        blocks = self.tape.jacobian(self.outputs, list(chosen), self._fill, chunk_size=chunk_size)
        rows = operations.reshape(matrix_of(blocks, count), shape=(count, sum(map(size_of, chosen))), rank=2)
        hessians = self.row_hessians()
        if hessians is None:
            second, z, gradient = self._bend()
            with second:
                flat = flatten([gradient])
            bent = second.curvature(flat, [z], chunk_size) @ rows
        else:
            stacked = operations.reshape(rows, shape=(*self._shape, rows.shape[-1]), rank=2)
            bent = operations.reshape(hessians @ stacked, shape=tuple(rows.shape), rank=3)
        return symmetric(operations.transpose(rows, perm=(-1, -2)) @ bent)

    def row_hessians(self) -> Tensor | None:
        """H as a block for each row of z, shape (rows, c, c) with c elements in a row; None where rows meet in the loss.

        Where somebody listens, the answer is None: whether rows meet is read from numbers, which a listener might not see.
        """
        if current() is not BOTTOM or not self.outputs.shape or not size_of(self.outputs):
            return None
        second, z, gradient = self._bend()
        blocks: Tensor = second.batch_jacobian(gradient, z)
        array = z._array
        random = np.random.Generator(np.random.Philox(key=array.size)).standard_normal(array.shape)
        probe = Tensor(to_device(random.astype(array.dtype), namespace(array)))
        whole = self._bent(probe)
        apart = operations.einsum(blocks, probe, terms=("nij", "nj"), result="ni")
        difference, size = (float(to_numpy(abs(x._array).max())) for x in (whole - apart, whole))
        return None if difference > 100.0 * float(np.finfo(array.dtype).eps) * size else blocks
