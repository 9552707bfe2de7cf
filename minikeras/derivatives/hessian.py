"""Second derivatives from a tape: the sweep once more, over the Records that the first sweep has left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.convert import convert_to_tensor
from ..core.questions import checked_chunk_size, one_target
from ..core.tape import GradientTape
from ..core.tensor import Tensor
from ..errors import ShapeError
from .flat import directions, flatten, matrix_of, split_blocks, symmetric


def hessian_of_tape(tape: GradientTape, target: Any, sources: Any, flat: bool, chunk_size: int | None) -> Any:
    """What `GradientTape.hessian` returns."""
    chunk_size = checked_chunk_size(chunk_size)
    leaves = _sources_of_scalar("hessian", target, sources)
    second, gradients = tape_with_gradient(tape, target, leaves)
    with second:
        gradient = flatten(gradients)
    matrix = derivative_of_gradient(second, gradient, leaves, chunk_size)
    return matrix if flat else split_blocks(matrix, leaves)


def hvp_of_tape(tape: GradientTape, target: Any, sources: Any, vector: Any) -> Any:
    """What `GradientTape.hvp` returns."""
    leaves = _sources_of_scalar("hvp", target, sources)
    parts, like = directions(vector, leaves, sources)
    second, gradients = tape_with_gradient(tape, target, leaves)
    return like([convert_to_tensor(g) for g in second.gradient(gradients, leaves, parts, "zero")])


def _sources_of_scalar(name: str, target: Any, sources: Any) -> list[Any]:
    """The leaves of the sources of a scalar target."""
    leaves = one_target(name, target, sources)
    if tuple(target.shape) != ():
        raise ShapeError(
            f"{name}: the target has shape {target.shape}; second derivatives are those of one number. Use tf.reduce_sum "
            "or tf.reduce_mean, or jacobian() of a gradient()."
        )
    return leaves


def tape_with_gradient(tape: GradientTape, target: Any, leaves: Sequence[Any]) -> tuple[GradientTape, list[Tensor]]:
    """A persistent tape that holds a tape's Records and those of its backward sweep, and the gradients it gave.

    The gradients are zeros where unconnected; a strict tape raises there.
    """
    second = GradientTape(persistent=True, watch_accessed_variables=False)
    with second:
        second._records, second._tracked = list(tape._records), set(tape._tracked)
        return second, tape.gradient(target, list(leaves), None, "none" if tape._strict else "zero")


def derivative_of_gradient(tape: GradientTape, gradient: Any, leaves: Sequence[Any], chunk_size: int | None) -> Tensor:
    """The symmetric matrix of the derivatives of a flat gradient."""
    blocks = tape.jacobian(gradient, list(leaves), unconnected_gradients="zero", chunk_size=chunk_size)
    return symmetric(matrix_of(blocks, gradient.shape[0]))
