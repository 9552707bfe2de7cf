"""Jacobians: the backward sweep of a tape, run once over a stack of cotangents.

Row i is the gradient for the i-th unit vector as seed; `Batch` carries all of them as one stack. Memory: `chunk_size` x n
numbers for an intermediate result of n elements, while its rule runs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import nest
from ..core.arrays import namespace
from ..core.backward import sweep
from ..core.batch import Batch, BatchedTensor
from ..core.gradient_arguments import (
    UnconnectedGradients,
    absent_jacobian,
    checked_chunk_size,
    common_batch,
    one_target,
    unconnected_choice,
)
from ..core.gradient_tape import GradientTape
from ..core.primitive import Record
from ..core.registry import operations
from ..core.tensor import Tensor
from ..errors import TapeError


def jacobian_of_tape(
    tape: GradientTape,
    target: Any,
    sources: Any,
    unconnected_gradients: UnconnectedGradients | str,
    vectorized: bool,
    chunk_size: int | None,
) -> Any:
    """What `GradientTape.jacobian` returns."""
    fill, chunk_size = unconnected_choice(unconnected_gradients), checked_chunk_size(chunk_size)
    leaves = one_target("jacobian", target, sources)
    found = _rows_by_source(tape, target, leaves, unit_seeds, vectorized, chunk_size, fill)
    results = []
    for leaf in leaves:
        whole = (*target.shape, *leaf.shape)
        if leaf.key in found:
            rows = found[leaf.key]
            results.append(operations.reshape(rows, shape=whole, rank=len(rows.shape)))
        else:
            results.append(absent_jacobian(whole, leaf, fill))
    return nest.pack(sources, results)


def batch_jacobian_of_tape(
    tape: GradientTape,
    target: Any,
    source: Any,
    unconnected_gradients: UnconnectedGradients | str,
    vectorized: bool,
    chunk_size: int | None,
) -> Any:
    """What `GradientTape.batch_jacobian` returns."""
    fill, chunk_size = unconnected_choice(unconnected_gradients), checked_chunk_size(chunk_size)
    (leaf,) = one_target("batch_jacobian", target, source, single=True)
    batch = common_batch(target, leaf)
    found = _rows_by_source(tape, target, [leaf], row_seeds, vectorized, chunk_size, fill)
    whole = (*target.shape, *leaf.shape[1:])
    if leaf.key not in found:
        return operations.zeros_like(Tensor(namespace(leaf._array).zeros(whole, dtype=leaf._array.dtype)))
    rows = found[leaf.key]
    columns = operations.reshape(rows, shape=(rows.shape[0], batch, -1 if rows._array.size else 0), rank=len(rows.shape))
    turned = operations.transpose(columns, perm=(-2, -3, -1))
    return operations.reshape(turned, shape=whole, rank=3)


def _rows_by_source(
    tape: GradientTape, target: Any, leaves: Sequence[Any], seeds: Any, vectorized: bool, chunk_size: int | None, fill: Any
) -> dict[int, Any]:
    """The gradients for a stack of seeds, by key of the source; uses the tape up."""
    if not vectorized and not tape._persistent:
        raise TapeError(
            "GradientTape must be created with persistent=True to compute the jacobian with eager execution enabled and "
            "with  experimental_use_pfor set to False."
        )
    tape._use()
    records = tape._tape.records
    tape._use_up()
    found: dict[int, Any] = {}
    if target.dtype.is_differentiable:
        carry = functools.partial(rows, chunk_size=chunk_size) if vectorized else looped
        with np.errstate(all="ignore"):
            known = [leaf.key for leaf in leaves if leaf.key in tape._tape.tracked or leaf.key == target.key]
            found = carry(records, target, known, seeds(target))
    tape._answer = {target.key}, set(found)
    tape._check_connected(target, leaves, found, fill)
    return found


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


def unit_seeds(target: Any) -> Tensor:
    """One seed for each element of the target: the identity matrix, reshaped."""
    array = target._array
    identity = namespace(array).eye(array.size, dtype=array.dtype)
    return Tensor(identity.reshape((array.size, *array.shape)))


def row_seeds(target: Any) -> Tensor:
    """For each element of a row of the target, one seed that picks it in every row at once."""
    xp, dtype, (batch, *inner) = namespace(target._array), target._array.dtype, target._array.shape
    count = math.prod(inner)
    identity = xp.eye(count, dtype=dtype).reshape((count, 1, *inner))
    return Tensor(xp.broadcast_to(identity, (count, batch, *inner)))


def looped(records: Sequence[Record], target: Any, sources: Sequence[int], seeds: Tensor) -> dict[int, Tensor]:
    """As `rows`, one seed after the other."""
    if not seeds.shape[0]:
        return swept(records, {target.key: seeds}, sources)
    results = [sweep(records, {target.key: seeds[i]}, sources, bare=False) for i in range(seeds.shape[0])]
    keys = {key for result in results for key in result}
    return {key: operations.stack([result[key] for result in results]) for key in keys}
