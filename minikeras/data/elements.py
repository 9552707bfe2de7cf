"""What happens to single elements of a Dataset: drawn from a buffer, stacked, checked against what was announced."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .. import nest
from ..core import convert_to_tensor
from ..core.arrays import to_numpy
from ..errors import InvalidArgumentError
from ..types import as_dtype


def buffered(elements: Iterator[Any], size: int, generator: np.random.Generator) -> Iterator[Any]:
    """Each element drawn at random from a buffer that the next one then fills up."""
    buffer = list(itertools.islice(elements, size))
    for element in elements:
        place = int(generator.integers(len(buffer)))
        yield buffer[place]
        buffer[place] = element
    order = generator.permutation(len(buffer))
    yield from (buffer[place] for place in order)


def stacked(group: list[Any]) -> Any:
    """One nest whose leaves are the stacked leaves of many."""
    from ..functions.shaping import stack

    columns = nest.pair(*group)
    return nest.pack(group[0], [None if column[0] is None else stack(list(column)) for column in columns])


def as_announced(element: Any, types: Any, shapes: list[Any] | None) -> Any:
    """An element with the dtypes and shapes that `from_generator` was told."""
    try:
        values = nest.flatten_up_to(types, element)
    except ValueError as problem:
        raise InvalidArgumentError(f"from_generator: an element is not nested as announced. {problem}") from None
    leaves = [convert_to_tensor(value, as_dtype(kind)) for kind, value in zip(nest.flatten(types), values, strict=True)]
    for leaf, shape in zip(leaves, shapes or (), strict=bool(shapes)):
        wanted = None if shape is None else tuple(shape)
        fits = wanted is None or (
            len(wanted) == leaf.ndim and all(size in (None, found) for size, found in zip(wanted, leaf.shape, strict=True))
        )
        if not fits:
            raise InvalidArgumentError(f"from_generator: an element has shape {tuple(leaf.shape)}, announced was {wanted}.")
    return nest.pack(types, leaves)


def value_of(element: Any) -> tuple[Any, ...]:
    """What two elements have in common that are equal: dtypes, shapes and numbers, as a key of a set."""
    arrays = [to_numpy(convert_to_tensor(leaf)._array) for leaf in nest.flatten(element) if leaf is not None]
    return tuple((one.dtype.str, one.shape, tuple(one.flat) if one.dtype == object else one.tobytes()) for one in arrays)


def total_length(lengths: Iterable[int]) -> int:
    """The number of elements of several datasets together; what has no end counts for more than what is unknown."""
    found = list(lengths)
    return sum(found) if min(found) >= 0 else max(length for length in found if length < 0)
