"""Elements made of several, and taken in turns: windows, groups by key, padded batches, choices among iterators."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import nest
from ..core import Tensor, convert_to_tensor
from ..core.arrays import namespace
from ..errors import InvalidArgumentError
from ..types import TensorSpec


def windows(elements: Iterator[Any], size: int, shift: int, stride: int, whole: bool) -> Iterator[list[Any]]:
    """Lists of `size` elements, `stride` apart, that begin `shift` apart; without shorter ones at the end if `whole`.

    >>> list(windows(iter(range(7)), size=3, shift=2, stride=2, whole=False))
    [[0, 2, 4], [2, 4, 6], [4, 6], [6]]
    """
    span = (size - 1) * stride + 1
    held: list[Any] = []
    while True:
        held += itertools.islice(elements, span - len(held))
        if not held or (whole and len(held) < span):
            return
        yield held[::stride]
        beyond = shift - len(held)
        next(itertools.islice(elements, beyond, beyond), None) if beyond > 0 else None
        del held[:shift]


def window_count(length: int, size: int, shift: int, stride: int, whole: bool) -> int:
    """The number of `windows`; a negative length is unknown or infinite, and the answer the same."""
    if length < 0:
        return length
    starts = length - (size - 1) * stride if whole else length
    return max(0, -(-starts // shift))


def keyed(
    elements: Iterable[Any], key_of: Callable[[Any], Any], size_of: Callable[[Any], Any]
) -> Iterator[tuple[int, list[Any]]]:
    """Keys and lists of elements with that key, each as soon as it is full; what is left comes last, by key."""
    groups: dict[int, list[Any]] = {}
    for element in elements:
        key = int(key_of(element))
        group = groups.setdefault(key, [])
        group.append(element)
        if len(group) >= int(size_of(key)):
            yield key, groups.pop(key)
    yield from sorted(groups.items())


def padded(group: list[Any], shapes: Any, values: Any) -> Any:
    """Elements stacked, each leaf first filled up to the longest of each axis, or to what `shapes` tells."""
    columns = nest.pair(*group)
    wanted = _of_leaves("padded_shapes", group[0], shapes)
    fillers = _of_leaves("padding_values", group[0], values) if nest.is_nested(values) else [values] * len(columns)
    return nest.pack(group[0], [_padded_leaf(*one) for one in zip(columns, wanted, fillers, strict=True)])


def _of_leaves(name: str, element: Any, given: Any) -> list[Any]:
    if given is None:
        return [None] * len(nest.flatten(element))
    try:
        return nest.flatten_up_to(element, given)
    except ValueError as problem:
        raise ValueError(f"padded_batch: {name} must be nested like the elements. {problem}") from None


def _sizes(shape: Any, rank: int) -> list[int | None]:
    """The sizes that a padded shape has; None is for the longest."""
    given = [None] * rank if shape is None else [shape] if isinstance(shape, (int, np.integer)) else list(shape)
    return [None if size in (None, -1) else int(size) for size in given]


def _padded_leaf(column: Sequence[Any], shape: Any, value: Any) -> Any:
    """The leaves of one place, stacked."""
    if column[0] is None:
        return None
    arrays = [convert_to_tensor(leaf).array for leaf in column]
    sizes = _sizes(shape, arrays[0].ndim)
    if any(one.ndim != len(sizes) for one in arrays):
        raise InvalidArgumentError(
            f"padded_batch: elements with {len(sizes)} axes are needed, found shapes {sorted({one.shape for one in arrays})}. "
            "padded_shapes tells the size of each axis of one element, or None for the longest."
        )
    longest = [max(one.shape[axis] for one in arrays) for axis in range(len(sizes))]
    final = [most if size is None else size for size, most in zip(sizes, longest, strict=True)]
    if any(most > size for size, most in zip(final, longest, strict=True)):
        raise InvalidArgumentError(
            f"padded_batch: padded_shapes allows {final}, found elements of up to {longest}. Give None for the longest, or cut "
            "elements with map."
        )
    dtype = arrays[0].dtype
    if value is None:
        value = "" if dtype.kind in "OUS" else 0
    stacked = namespace(arrays[0]).full((len(arrays), *final), _filler(value, dtype), object if dtype.kind in "US" else dtype)
    for row, one in enumerate(arrays):
        stacked[(row, *map(slice, one.shape))] = one
    return Tensor(stacked)


def padded_spec(spec: Any, shapes: Any, size: int | None) -> Any:
    """The spec of padded batches of elements that have one themselves."""
    wanted = _of_leaves("padded_shapes", spec, shapes)
    return nest.pack(spec, [_padded_leaf_spec(*one, size) for one in zip(nest.flatten(spec), wanted, strict=True)])


def _padded_leaf_spec(leaf: Any, shape: Any, size: int | None) -> Any:
    open_rank = leaf is None or (leaf.shape is None and shape is None)
    return leaf if open_rank else TensorSpec([size, *_sizes(shape, len(leaf.shape or ()))], leaf.dtype)


def filled_shapes(spec: Any, shapes: Any, size: int) -> Any:
    """Padded shapes with `size` for each axis that is open: in `shapes`, or else in the spec of the elements."""
    given = [leaf.shape for leaf in nest.flatten(spec)] if shapes is None else _of_leaves("padded_shapes", spec, shapes)
    found = [_sizes(shape, 0) for shape in given]
    if not any(None in shape for shape in found):
        raise ValueError(
            "bucket_by_sequence_length: pad_to_bucket_boundary fills up axes of unknown size, but there is none in "
            f"{given}. Give padded_shapes with None for such an axis."
        )
    return nest.pack(spec, [[size if one is None else one for one in shape] for shape in found])


def _filler(value: Any, dtype: Any) -> Any:
    """A padding value as a Python scalar; refused if the elements' dtype cannot hold it."""
    plain = value.numpy() if isinstance(value, Tensor) else value
    if dtype.kind in "OUS":
        return plain
    try:
        held = dtype.type(plain)
    except (OverflowError, ValueError):
        held = None
    if held is None or (dtype.kind in "biu" and held != plain):
        raise InvalidArgumentError(f"padded_batch: padding value {plain!r} is not of the elements' dtype {dtype}.")
    return held.item()


_END = object()


def interleaved(datasets: Iterator[Iterator[Any]], cycle: int, block: int) -> Iterator[Any]:
    """Elements of `cycle` iterators at a time, `block` of each in turn; one that is done makes place for the next."""
    places: list[Iterator[Any] | None] = [None] * cycle
    for place in itertools.cycle(range(cycle)):
        if places[place] is None:
            places[place] = next(datasets, None)
        current = places[place]
        if current is None:
            if not any(places):
                return
            continue
        count = 0
        for element in itertools.islice(current, block):
            yield element
            count += 1
        if count < block:
            places[place] = None


def chosen(iterators: Sequence[Iterator[Any]], choices: Iterable[Any], stop: bool) -> Iterator[Any]:
    """The next element of the iterator that each choice names; `stop` at the first that has none, or pass it over."""
    left = set(range(len(iterators)))
    for choice in choices:
        index = int(choice)
        if not 0 <= index < len(iterators):
            raise InvalidArgumentError(
                f"choose_from_datasets: a choice must be a number from 0 to {len(iterators) - 1}, found {index}."
            )
        element = next(iterators[index], _END) if index in left else _END
        if element is not _END:
            yield element
            continue
        left.discard(index)
        if stop or not left:
            return


def shares_of(weights: Any, count: int) -> np.ndarray[Any, Any]:
    """The share of each of several datasets in the draws: equal ones if `weights` is None."""
    shares = np.ones(count) if weights is None else np.asarray(weights, np.float64)
    if shares.shape != (count,) or not (np.isfinite(shares) & (shares >= 0)).all() or not shares.any():
        raise ValueError(
            f"sample_from_datasets: weights must be {count} finite numbers of at least 0, not all 0, found {weights!r:.200}."
        )
    return shares


def drawn(shares: np.ndarray[Any, Any], draws: np.random.Generator) -> Iterator[Any]:
    """Random numbers from 0 on, each as often as its share says, without end."""
    bounds = np.cumsum(shares / shares.sum())[:-1]
    return (np.searchsorted(bounds, draws.random(), "right") for _ in itertools.count())


def repeated(begin: Callable[[], Iterator[Any]], times: int) -> Iterator[Any]:
    """The elements of an iteration, repeated `times` times; without end if the number is negative."""
    for _ in itertools.count() if times < 0 else range(times):
        elements = begin()
        first = list(itertools.islice(elements, 1))
        if not first:  # nor would there be one in the next pass
            return
        yield from first
        yield from elements


def unbatched(batches: Iterator[Any]) -> Iterator[Any]:
    """The rows of elements one by one."""
    for element in batches:
        leaves = nest.flatten(element)
        shapes = [leaf.shape for leaf in leaves if leaf is not None]
        if len({tuple(shape[:1]) for shape in shapes}) != 1 or not shapes[0]:
            raise InvalidArgumentError(f"unbatch: all leaves need the same number of rows, found shapes {shapes}.")
        for row in range(shapes[0][0]):
            yield nest.pack(element, [None if leaf is None else leaf[row] for leaf in leaves])
