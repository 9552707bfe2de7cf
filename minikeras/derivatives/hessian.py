"""Second derivatives: the sweep once more, over the Records that the first sweep has left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.arrays import namespace, to_device
from ..core.convert import convert_to_tensor
from ..core.forks import cached_property
from ..core.gradient_arguments import UnconnectedGradients, absent_jacobian, checked_chunk_size, one_target
from ..core.gradient_tape import GradientTape
from ..core.registry import operations
from ..core.tensor import Tensor
from ..errors import ShapeError
from ..layout import Layout
from .flat import directions, flatten, matrix_of, size_of, split_blocks
from .jacobian import swept
from .strips import LEAST, cached_rows, mirrored, strips, unit_rows


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

    def blocks_of_rows(self) -> Tensor:
        """For the only leaf, a stack of rows: the second derivatives of each row by itself, (n, c, c)."""
        (part,), (leaf,) = self.parts, self.leaves
        if len(leaf.shape) == 1:
            return operations.reshape(*self.product([operations.ones_like(leaf)]), shape=(*leaf.shape, 1, 1), rank=1)
        found: Tensor = self._tape.batch_jacobian(part, leaf)
        return found

    def matrix(self, places: Sequence[int] | None = None, chunk_size: int | None = None) -> Tensor:
        """The second derivatives in some leaves, given by their places, or in all; exactly symmetric.

        Leaves come in the order in which the target read them. Rows are asked for columns of their own leaf and of later ones,
        so that their sweep ends where the leaf was read; what lies below the diagonal is what lies above.
        """
        chosen = list(range(len(self.leaves))) if places is None else list(places)
        size = sum(size_of(self.leaves[place]) for place in chosen)
        if not size:
            return Tensor(namespace(self.flat._array).zeros((0, 0), dtype=self.flat._array.dtype))
        on_host = namespace(self.flat._array) is np
        most = chunk_size or (cached_rows(size, self._largest) if on_host and size > LEAST else size)
        order = sorted(chosen, key=lambda place: self._read.get(self.leaves[place].key, math.inf))
        layout = Layout(tuple(self.leaves[place].shape) for place in order)
        bounds = strips(layout, most)
        matrix = mirrored([self._strip(order, layout, *strip) for strip in bounds], bounds)
        if order == chosen:
            return matrix
        slices = dict(zip(order, layout.slices, strict=True))
        numbers = np.concatenate([np.arange(size)[slices[place]] for place in chosen])
        indices = Tensor(to_device(numbers, namespace(matrix._array)))
        return operations.gather_rows(operations.gather_rows(matrix, indices, axis=-2), indices, axis=-1)

    def _strip(self, places: Sequence[int], layout: Layout, start: int, stop: int) -> Tensor:
        """Some rows of the matrix, with the columns from the diagonal on."""
        later = [(place, part) for place, part in zip(places, layout.slices, strict=True) if part.stop > start]
        seeds: dict[int, Tensor] = {}
        for gradient, first in [(self.parts[place], start - part.start) for place, part in later if part.start < stop]:
            units, key = unit_rows(gradient, first, stop - start), gradient.key
            seeds[key] = seeds[key] + units if key in seeds else units
        leaves, tape = [self.leaves[place] for place, _ in later], self._tape._tape
        with np.errstate(all="ignore"):
            found = swept(tape.records, seeds, [leaf.key for leaf in leaves if leaf.key in tape.tracked])
        blocks = [
            found[leaf.key]
            if leaf.key in found
            else absent_jacobian((stop - start, *leaf.shape), leaf, UnconnectedGradients.ZERO)
            for leaf in leaves
        ]
        rows, skipped = matrix_of(blocks, stop - start), start - later[0][1].start
        return rows[:, skipped:] if skipped else rows

    @cached_property
    def _read(self) -> dict[int, int]:
        """When each Tensor and Variable was first read, by key."""
        inputs = [x for record in self._tape._tape.records for x in record.inputs if hasattr(x, "key")]
        return {x.key: -i for i, x in enumerate(reversed(inputs), 1 - len(inputs))}

    @cached_property
    def _largest(self) -> int:
        """Elements of the largest intermediate result."""
        results = [record.outputs for record in self._tape._tape.records]
        return max([size_of(part) for result in results for part in (result if type(result) is tuple else (result,))] or [1])


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
