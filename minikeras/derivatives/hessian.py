"""Jacobians, and second derivatives: the sweep once more, over the Records that the first sweep has left."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import nest
from ..core import GradientTape, Record, Tensor, cached_property, convert_to_tensor, namespace, operations, sweep, to_device
from ..core.batch import Batch, BatchedTensor
from ..core.gradient_arguments import (
    UnconnectedGradients,
    absent_jacobian,
    checked_chunk_size,
    common_batch,
    one_target,
    unconnected_choice,
)
from ..errors import ShapeError, TapeError
from ..layout import Layout
from .flat import LEAST, cached_rows, directions, flatten, matrix_of, mirrored, size_of, split_blocks, strips, unit_rows

# Jacobians: the backward sweep of a tape, run once over a stack of cotangents.
#
# Row i is the gradient for the i-th unit vector as seed; `Batch` carries all of them as one stack. Memory: `chunk_size` x n
# numbers for an intermediate result of n elements, while its rule runs.


def rows(
    records: Sequence[Record], target: Any, sources: Sequence[int], seeds: Tensor, chunk_size: int | None
) -> dict[int, Tensor]:
    """Gradients for a stack of seeds, by the key of each connected source: shape (number of seeds, *source.shape)."""
    count = seeds.shape[0]
    size = count if chunk_size is None else min(chunk_size, count)
    if size >= count:
        return swept(records, {target.key: seeds}, sources)
    parts = [swept(records, {target.key: seeds[start : start + size]}, sources) for start in range(0, count, size)]
    return {key: operations.concat(*[part[key] for part in parts], axis=-len(parts[0][key].shape)) for key in parts[0]}


def swept(records: Sequence[Record], seeds: Mapping[int, Tensor], sources: Sequence[int]) -> dict[int, Tensor]:
    """One sweep over a stack of cotangents of one or more targets, given by key; as `rows`."""
    batch = Batch(next(iter(seeds.values())).shape[0])
    with batch:
        found = sweep(records, {key: BatchedTensor(stack, batch) for key, stack in seeds.items()}, sources, bare=False)
    return {key: batch.stack_of(cotangent) for key, cotangent in found.items()}


def row_seeds(target: Any) -> Tensor:
    """For each element of a row of the target, one seed that picks it in every row at once."""
    xp, dtype, (batch, *inner) = namespace(target.array), target.array.dtype, target.array.shape
    count = math.prod(inner)
    identity = xp.eye(count, dtype=dtype).reshape((count, 1, *inner))
    return Tensor(xp.broadcast_to(identity, (count, batch, *inner)))


def looped(records: Sequence[Record], target: Any, sources: Sequence[int], seeds: Tensor) -> dict[int, Tensor]:
    """As `rows`, one seed at a time."""
    if not seeds.shape[0]:
        return swept(records, {target.key: seeds}, sources)
    results = [sweep(records, {target.key: seeds[i]}, sources, bare=False) for i in range(seeds.shape[0])]
    keys = {key for result in results for key in result}
    return {key: operations.stack([result[key] for result in results]) for key in keys}


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
            self._tape.tape.records, self._tape.tape.tracked = list(tape.tape.records), set(tape.tape.tracked)
            self.parts: list[Tensor] = tape.gradient(target, self.leaves, None, "none" if tape.strict else "zero")
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
            return Tensor(namespace(self.flat.array).zeros((0, 0), dtype=self.flat.array.dtype))
        on_host = namespace(self.flat.array) is np
        most = chunk_size or (cached_rows(size, self._largest) if on_host and size > LEAST else size)
        order = sorted(chosen, key=lambda place: self._read.get(self.leaves[place].key, math.inf))
        layout = Layout(tuple(self.leaves[place].shape) for place in order)
        bounds = strips(layout, most)
        matrix = mirrored([self._strip(order, layout, *strip) for strip in bounds], bounds)
        if order == chosen:
            return matrix
        slices = dict(zip(order, layout.slices, strict=True))
        numbers = np.concatenate([np.arange(size)[slices[place]] for place in chosen])
        indices = Tensor(to_device(numbers, namespace(matrix.array)))
        return operations.gather_rows(operations.gather_rows(matrix, indices, axis=-2), indices, axis=-1)

    def _strip(self, places: Sequence[int], layout: Layout, start: int, stop: int) -> Tensor:
        """Some rows of the matrix, with the columns from the diagonal on."""
        later = [(place, part) for place, part in zip(places, layout.slices, strict=True) if part.stop > start]
        seeds: dict[int, Tensor] = {}
        for gradient, first in [(self.parts[place], start - part.start) for place, part in later if part.start < stop]:
            units, key = unit_rows(gradient, first, stop - start), gradient.key
            seeds[key] = seeds[key] + units if key in seeds else units
        leaves, tape = [self.leaves[place] for place, _ in later], self._tape.tape
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
        """The place of the first reading of each Tensor and Variable among all readings, by key."""
        inputs = [x for record in self._tape.tape.records for x in record.inputs if hasattr(x, "key")]
        return {x.key: -i for i, x in enumerate(reversed(inputs), 1 - len(inputs))}

    @cached_property
    def _largest(self) -> int:
        """Elements of the largest intermediate result."""
        results = [record.outputs for record in self._tape.tape.records]
        return max([size_of(part) for result in results for part in (result if type(result) is tuple else (result,))] or [1])


def _sources_of_scalar(name: str, target: Any, sources: Any) -> list[Any]:
    """The leaves of the sources of a scalar target."""
    leaves = one_target(name, target, sources)
    if tuple(target.shape) != ():
        raise ShapeError(
            f"{name}: the target has shape {target.shape}; second derivatives are those of one number. Use tf.reduce_sum "
            "or tf.reduce_mean, or jacobian() of a gradient()."
        )
    return leaves


class DerivativesOfTape:
    """The derivatives that `GradientTape` gives beside `gradient`; each method serves the method of its name there."""

    def __init__(self, tape: GradientTape) -> None:
        self.tape = tape

    def jacobian(self, target: Any, sources: Any, unconnected: Any, vectorized: bool, chunk_size: int | None) -> Any:
        """The Jacobian, as `GradientTape.jacobian` returns it."""
        fill, chunk_size = unconnected_choice(unconnected), checked_chunk_size(chunk_size)
        leaves = one_target("jacobian", target, sources)
        found = self._rows_by_source(target, leaves, unit_rows, vectorized, chunk_size, fill)
        results = []
        for leaf in leaves:
            whole = (*target.shape, *leaf.shape)
            if leaf.key in found:
                rows = found[leaf.key]
                results.append(operations.reshape(rows, shape=whole, rank=len(rows.shape)))
            else:
                results.append(absent_jacobian(whole, leaf, fill))
        return nest.pack(sources, results)

    def batch_jacobian(self, target: Any, source: Any, unconnected: Any, vectorized: bool, chunk_size: int | None) -> Any:
        """The Jacobian of each batch row, as `GradientTape.batch_jacobian` returns it."""
        fill, chunk_size = unconnected_choice(unconnected), checked_chunk_size(chunk_size)
        (leaf,) = one_target("batch_jacobian", target, source, single=True)
        batch = common_batch(target, leaf)
        found = self._rows_by_source(target, [leaf], row_seeds, vectorized, chunk_size, fill)
        whole = (*target.shape, *leaf.shape[1:])
        if leaf.key not in found:
            return operations.zeros_like(Tensor(namespace(leaf.array).zeros(whole, dtype=leaf.array.dtype)))
        rows = found[leaf.key]
        columns = operations.reshape(rows, shape=(rows.shape[0], batch, -1 if rows.array.size else 0), rank=len(rows.shape))
        turned = operations.transpose(columns, perm=(-2, -3, -1))
        return operations.reshape(turned, shape=whole, rank=3)

    def hessian(self, target: Any, sources: Any, flat: bool, chunk_size: int | None) -> Any:
        """The Hessian, as `GradientTape.hessian` returns it."""
        chunk_size = checked_chunk_size(chunk_size)
        leaves = _sources_of_scalar("hessian", target, sources)
        matrix = RecordedGradient(self.tape, target, leaves).matrix(None, chunk_size)
        return matrix if flat else split_blocks(matrix, leaves)

    def hvp(self, target: Any, sources: Any, vector: Any) -> Any:
        """The product of the Hessian and a vector, as `GradientTape.hvp` returns it."""
        leaves = _sources_of_scalar("hvp", target, sources)
        parts, like = directions(vector, leaves, sources)
        return like(RecordedGradient(self.tape, target, leaves).product(parts))

    def _rows_by_source(
        self, target: Any, leaves: Sequence[Any], seeds: Any, vectorized: bool, chunk_size: int | None, fill: Any
    ) -> dict[int, Any]:
        """The gradients for a stack of seeds, by key of the source; uses the tape up."""
        if not vectorized and not self.tape.persistent:
            raise TapeError(
                "GradientTape must be created with persistent=True to compute the jacobian with eager execution enabled and "
                "with  experimental_use_pfor set to False."
            )
        self.tape._use()
        records = self.tape.tape.records
        self.tape._use_up()
        found: dict[int, Any] = {}
        if target.dtype.is_differentiable:
            carry = functools.partial(rows, chunk_size=chunk_size) if vectorized else looped
            with np.errstate(all="ignore"):
                known = [leaf.key for leaf in leaves if leaf.key in self.tape.tape.tracked or leaf.key == target.key]
                found = carry(records, target, known, seeds(target))
        self.tape.answer = {target.key}, set(found)
        self.tape._check_connected(target, leaves, found, fill)
        return found
