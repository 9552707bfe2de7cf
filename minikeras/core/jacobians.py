"""Jacobians: the backward sweep of the tape, run once over a stack of cotangents.

Key idea: row i of a Jacobian is the gradient for the i-th unit vector as seed. All unit vectors together are the identity
matrix, and `Batch` carries it through the rules of the tape as one stack. Memory: for each intermediate result of n elements
that lies between sources and target, `chunk_size` x n numbers at the time its rule runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays import namespace
from .backward import sweep
from .batch import Batch, Stack
from .dispatch import Record
from .registry import operations
from .tensor import Tensor


def rows(
    records: Sequence[Record], target: Any, sources: Sequence[int], seeds: Tensor, chunk_size: int | None
) -> dict[int, Tensor]:
    """Gradients for a stack of seeds: for each connected source a Tensor of shape (number of seeds, *source.shape).

    Args:
        records: those of a tape.
        target: the Tensor or Variable that is differentiated.
        sources: keys of the sources.
        seeds: shape (number of seeds, *target.shape).
        chunk_size: how many seeds to carry at once, at least one; all if None.
    """
    count = seeds.shape[0]
    size = count if chunk_size is None else min(chunk_size, count)
    if size >= count:
        return _swept(records, target, sources, seeds)
    parts = [_swept(records, target, sources, seeds[start : start + size]) for start in range(0, count, size)]
    return {key: operations.concat(*[part[key] for part in parts], axis=-len(parts[0][key].shape)) for key in parts[0]}


def _swept(records: Sequence[Record], target: Any, sources: Sequence[int], seeds: Tensor) -> dict[int, Tensor]:
    batch = Batch(seeds.shape[0])
    with batch.on_top():
        found = sweep(records, {target.key: Stack(seeds, batch)}, sources, bare=False)
    return {key: batch.stack_of(cotangent) for key, cotangent in found.items()}


def unit_seeds(target: Any) -> Tensor:
    """One seed for each element of the target: the identity matrix, reshaped."""
    array = target._array
    count = int(array.size)
    identity = namespace(array).eye(count, dtype=array.dtype)
    return Tensor(identity.reshape((count, *array.shape)))


def row_seeds(target: Any) -> Tensor:
    """For each element of a row of the target, one seed that picks it in every row at once."""
    array = target._array
    batch, inner = array.shape[0], array.shape[1:]
    count = 1
    for length in inner:
        count *= length
    xp = namespace(array)
    identity = xp.eye(count, dtype=array.dtype).reshape((count, 1, *inner))
    return Tensor(xp.broadcast_to(identity, (count, batch, *inner)))


def looped(records: Sequence[Record], target: Any, sources: Sequence[int], seeds: Tensor) -> dict[int, Tensor]:
    """As `rows`, one seed after the other."""
    results = [sweep(records, {target.key: seeds[i]}, sources, bare=False) for i in range(seeds.shape[0])]
    keys = {key for result in results for key in result}
    return {key: operations.stack([result[key] for result in results]) for key in keys}
