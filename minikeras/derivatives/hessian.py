"""Second derivatives: the sweep once more, over the Records that the first sweep has left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.convert import convert_to_tensor
from ..core.gradient_arguments import checked_chunk_size, one_target
from ..core.gradient_tape import GradientTape
from ..core.tensor import Tensor
from ..errors import ShapeError
from .flat import directions, flatten, matrix_of, split_blocks, symmetric


class RecordedGradient:
    """The gradient of a scalar on a tape of its own, from which Hessian blocks and products follow by one more sweep each.

    Args:
        tape: holds the Records of the target. Strict, it raises where a leaf is unconnected; else the gradient is zero there.
        target: a scalar.
        leaves: with respect to which.

    Attributes:
        parts: the gradient, one Tensor for each leaf.
        flat: the same as one vector.
    """

    def __init__(self, tape: GradientTape, target: Any, leaves: Sequence[Any]) -> None:
        self.leaves = list(leaves)
        self._tape = GradientTape(persistent=True, watch_accessed_variables=False)
        with self._tape:
            self._tape._tape.records, self._tape._tape.tracked = list(tape._tape.records), set(tape._tape.tracked)
            self.parts: list[Tensor] = tape.gradient(target, self.leaves, None, "none" if tape._strict else "zero")
            self.flat = flatten(self.parts)

    def product(self, parts: Sequence[Any]) -> list[Tensor]:
        """The Hessian times a direction; one part for each leaf."""
        return [convert_to_tensor(part) for part in self._tape.gradient(self.parts, self.leaves, list(parts), "zero")]

    def flat_product(self, vector: Tensor) -> Tensor:
        """The Hessian times a flat vector."""
        return flatten(self._tape.gradient(self.flat, self.leaves, vector, "zero"))

    def rows(self, places: Sequence[int], chunk_size: int | None = None) -> list[Tensor]:
        """The rows of a diagonal block, which is that of some leaves, given by their places: a part for each of these."""
        gradient = self.flat
        if len(places) < len(self.leaves):
            with self._tape:
                gradient = flatten([self.parts[place] for place in places])
        chosen = [self.leaves[place] for place in places]
        found: list[Tensor] = self._tape.jacobian(gradient, chosen, "zero", chunk_size=chunk_size)
        return found

    def blocks_of_rows(self) -> Tensor:
        """For the only leaf, a stack of rows: the second derivatives of each row by itself, (n, c, c)."""
        (part,), (leaf,) = self.parts, self.leaves
        found: Tensor = self._tape.batch_jacobian(part, leaf)
        return found

    def matrix(self, places: Sequence[int] | None = None, chunk_size: int | None = None) -> Tensor:
        """Such a block as a symmetric matrix; the whole Hessian without places."""
        rows = self.rows(range(len(self.leaves)) if places is None else places, chunk_size)
        return symmetric(matrix_of(rows, rows[0].shape[0]))


def hessian_of_tape(tape: GradientTape, target: Any, sources: Any, flat: bool, chunk_size: int | None) -> Any:
    """What `GradientTape.hessian` returns."""
    chunk_size = checked_chunk_size(chunk_size)
    leaves = _sources_of_scalar("hessian", target, sources)
    matrix = RecordedGradient(tape, target, leaves).matrix(None, chunk_size)
    return matrix if flat else split_blocks(matrix, leaves)


def hvp_of_tape(tape: GradientTape, target: Any, sources: Any, vector: Any) -> Any:
    """What `GradientTape.hvp` returns."""
    leaves = _sources_of_scalar("hvp", target, sources)
    parts, like = directions(vector, leaves, sources)
    return like(RecordedGradient(tape, target, leaves).product(parts))


def _sources_of_scalar(name: str, target: Any, sources: Any) -> list[Any]:
    """The leaves of the sources of a scalar target."""
    leaves = one_target(name, target, sources)
    if tuple(target.shape) != ():
        raise ShapeError(
            f"{name}: the target has shape {target.shape}; second derivatives are those of one number. Use tf.reduce_sum "
            "or tf.reduce_mean, or jacobian() of a gradient()."
        )
    return leaves
