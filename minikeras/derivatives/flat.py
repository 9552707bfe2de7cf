"""Variables as one vector, and back, and symmetric matrices over it: the form in which curvature is asked for.

P parameters are the elements of all variables, each raveled in C order, one variable after the other. Everything is made of
recorded operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import nest
from ..core import Tensor, convert_to_tensor, namespace, operations
from ..errors import ShapeError
from ..layout import Layout
from ..types import TensorLike


def listed(variables: Any) -> list[Any]:
    """The variables of a list, a nest, or of anything with `trainable_variables`."""
    return list(variables.trainable_variables) if hasattr(variables, "trainable_variables") else nest.flatten(variables)


def size_of(value: TensorLike) -> int:
    """Number of elements."""
    return math.prod(value.shape)


def flatten(values: Sequence[Any]) -> Tensor:
    """Tensors raveled and joined into one vector."""
    parts = [operations.reshape(convert_to_tensor(value), shape=(size_of(value),), rank=len(value.shape)) for value in values]
    return operations.concat(*parts, axis=-1) if len(parts) > 1 else parts[0]


def unflatten(vector: Any, variables: Sequence[Any]) -> list[Tensor]:
    """The parts of a vector, shaped like the variables."""
    whole, layout = convert_to_tensor(vector), Layout(tuple(variable.shape) for variable in variables)
    if tuple(whole.shape) != (layout.size,):
        raise ShapeError(f"a flat vector needs {layout.size} elements here, found shape {whole.shape}.")
    return [
        operations.reshape(whole[part], shape=shape, rank=1) for part, shape in zip(layout.slices, layout.shapes, strict=True)
    ]


def directions(vector: Any, chosen: Sequence[Any], variables: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """A vector of P elements as one part for each variable, and the way to give such parts the form that the vector had.

    Args:
        vector: flat, of shape (P,), or a nest like the variables.
        chosen: the variables as a list.
        variables: as the user gave them.
    """
    several = len(chosen) > 1 or nest.is_nested(variables) or hasattr(variables, "trainable_variables")
    if several and not nest.is_nested(vector):
        return unflatten(vector, chosen), flatten
    structure: Any = variables if nest.is_nested(variables) else list(chosen)
    try:
        parts = nest.flatten_up_to(structure, vector) if several else [vector]  # a list of numbers may stand for a tensor
    except ValueError:
        raise ShapeError(
            f"the vector is not nested like the {len(chosen)} variables: give one part for each, or one flat vector."
        ) from None
    tensors = [convert_to_tensor(part, variable.dtype) for part, variable in zip(parts, chosen, strict=True)]
    for tensor, variable in zip(tensors, chosen, strict=True):
        if tensor.shape != variable.shape:
            raise ShapeError(f"a part of the vector has shape {tensor.shape}, its variable {variable.shape}.")
    return tensors, lambda found: nest.pack(structure, list(found)) if several else found[0]


def matrix_of(rows: Sequence[Any], count: int) -> Tensor:
    """Jacobian blocks (count, *shape) side by side as a matrix (count, P)."""
    flat = [operations.reshape(row, shape=(count, -1 if size_of(row) else 0), rank=len(row.shape)) for row in rows]
    return operations.concat(*flat, axis=-1) if len(flat) > 1 else flat[0]


def symmetric(matrix: Tensor) -> Tensor:
    """(A + A^T) / 2."""
    turned = operations.transpose(matrix, perm=(-1, -2))
    return (matrix + turned) * 0.5


def split_blocks(matrix: Tensor, variables: Sequence[Any]) -> list[list[Tensor]]:
    """A matrix (P, P) as blocks of shape v_i.shape + v_j.shape."""
    bounds = Layout(tuple(variable.shape) for variable in variables).slices
    return [
        [
            operations.reshape(matrix[rows, columns], shape=(*first.shape, *second.shape), rank=2)
            for columns, second in zip(bounds, variables, strict=True)
        ]
        for rows, first in zip(bounds, variables, strict=True)
    ]


# A symmetric matrix made of strips: each of some rows, with the columns from the diagonal on.

Bounds = tuple[int, int]

CACHED = 2**18
"""Elements of a stack that stay in a processor's cache from one operation to the next."""
MOST = 16
"""Strips into which a matrix is cut for the cache's sake: each is a sweep, and a part of a program that is recorded."""
LEAST = 64
"""Rows below which Python's part of a sweep costs more than the numbers."""


def cached_rows(size: int, largest: int) -> int:
    """The number of rows, of `size`, to carry at once for the cache's sake; an intermediate result has `largest` elements."""
    return max(CACHED // largest, math.ceil(size / MOST), LEAST)


def strips(layout: Layout, most: int) -> list[Bounds]:
    """Bounds of strips of at most `most` rows, that end where a leaf of the layout ends if they have enough rows by then."""
    enough = min(max(LEAST, layout.size // MOST), most)
    bounds: list[Bounds] = []
    start = 0
    for part in layout.slices:
        while part.stop - start > most:
            bounds.append((start, start + most))
            start += most
        if part.stop - start >= enough:
            bounds.append((start, part.stop))
            start = part.stop
    return bounds if bounds and start == layout.size else [*bounds, (start, layout.size)]


def unit_rows(target: Any, first: int = 0, count: int | None = None) -> Tensor:
    """A stack of cotangents of a target, one for each element: row i picks its element `first + i`, or nothing."""
    array = target.array
    rows = array.size if count is None else count
    unit = namespace(array).eye(rows, array.size, first, dtype=array.dtype)
    return Tensor(unit.reshape((rows, *array.shape)))


def mirrored(rows: Sequence[Tensor], bounds: Sequence[Bounds]) -> Tensor:
    """The symmetric matrix whose strips are given: squares on the diagonal averaged, the rest of the lower half transposed."""
    if len(rows) == 1:
        return symmetric(rows[0])
    whole = []
    for i, (start, stop) in enumerate(bounds):
        above = [rows[h][:, start - first : stop - first] for h, (first, _) in enumerate(bounds[:i])]
        square, rest = rows[i][:, : stop - start], rows[i][:, stop - start :]
        parts = [*[operations.transpose(part, perm=(-1, -2)) for part in above], symmetric(square)]
        whole.append(operations.concat(*parts, rest, axis=-1))
    return operations.concat(*whole, axis=-2)
