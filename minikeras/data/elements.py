"""The elements of a Dataset: what they are; drawn from a buffer, ahead in threads, in windows, by key, padded, in turns; and
what Dataset's methods are given, checked.
"""

from __future__ import annotations

import itertools
import operator
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import nest
from ..core import Tensor, convert_to_tensor, current_device, device, namespace, to_numpy
from ..errors import InvalidArgumentError, ShapeError
from ..types import TensorSpec, as_dtype


@dataclass(frozen=True)
class DatasetSpec:
    """The spec of a Dataset within an element, such as a window.

    >>> tf.data.Dataset.range(4).window(2).element_spec
    DatasetSpec(element_spec=TensorSpec(shape=(), dtype=tf.int64))
    """

    element_spec: Any


def of_element(element: Any, varies: bool = False) -> Any:
    """The spec of an element; with `varies` the first axis of its leaves is left open."""

    def of(leaf: Any) -> Any:
        if leaf is None or hasattr(leaf, "element_spec"):
            return leaf and DatasetSpec(leaf.element_spec)
        found = convert_to_tensor(leaf)
        return TensorSpec([None, *found.shape[1:]] if varies and found.shape else found.shape, found.dtype)

    return nest.map_structure(of, element)


def with_shapes(spec: Any, change: Callable[[Any], Any]) -> Any:
    """A spec whose known shapes are replaced by what `change` makes of them."""

    def changed(leaf: Any) -> Any:
        known = isinstance(leaf, TensorSpec) and leaf.shape is not None
        return TensorSpec(change(leaf.shape), leaf.dtype) if known else leaf

    return nest.map_structure(changed, spec)


def varies(spec: Any) -> bool:
    """True if the first axis of any leaf is open, as that of batches is."""
    return any((getattr(leaf, "shape", None) or (0,))[0] is None for leaf in nest.flatten(spec))


def of_either(datasets: Iterable[Any]) -> Any:
    """The spec of elements that come from one of several Datasets: axes that differ are open."""

    def of(*leaves: Any) -> Any:
        shapes: list[Any] = [getattr(leaf, "shape", None) for leaf in leaves]
        if len(set(leaves)) == 1 or not isinstance(leaves[0], TensorSpec):
            return leaves[0]
        alike = None not in shapes and len({len(shape) for shape in shapes}) == 1
        sizes = [size[0] if len(set(size)) == 1 else None for size in zip(*shapes, strict=True)] if alike else None
        return TensorSpec(sizes, leaves[0].dtype)

    return nest.map_structure(of, *(one.element_spec for one in datasets))


class Options(SimpleNamespace):
    """TensorFlow's options of a Dataset for its runtime, accepted for compatibility: elements keep their order in any case,
    and each method says with `num_parallel_calls` how many threads it uses.

    >>> options = tf.data.Options()
    >>> options.deterministic = False
    >>> tf.data.Dataset.range(3).with_options(options).options().deterministic
    False
    """

    def __init__(self) -> None:
        parts = ("autotune", "experimental_distribute", "experimental_optimization", "threading")
        super().__init__(deterministic=None, **{name: SimpleNamespace() for name in parts})


def buffered(elements: Iterator[Any], size: int, generator: np.random.Generator) -> Iterator[Any]:
    """Each element drawn at random from a buffer that the next one then fills up."""
    buffer = list(itertools.islice(elements, size))
    for element in elements:
        place = int(generator.integers(len(buffer)))
        yield buffer[place]
        buffer[place] = element
    yield from (buffer[place] for place in generator.permutation(len(buffer)))


def stacked(group: list[Any]) -> Any:
    """One nest whose leaves are the stacked leaves of many."""
    from ..functions.shaping import stack

    columns = nest.pair(*group)
    try:
        return nest.pack(group[0], [None if column[0] is None else stack(list(column)) for column in columns])
    except ShapeError as error:
        raise ShapeError(
            f"the elements of a batch differ; fill them up with padded_batch, or cut them with map. {error}"
        ) from None


def announced(types: Any, shapes: Any, signature: Any) -> tuple[Any, list[Any] | None, Callable[[], Any] | None]:
    """The announced elements of `from_generator`: dtypes, nested as they are, a shape for each, and how to make the spec."""
    if signature is not None:
        types = nest.map_structure(lambda one: one.dtype, signature)
        shapes = [getattr(one, "shape", None) for one in nest.flatten(signature)]
    elif shapes is not None:
        shapes = nest.flatten_up_to(types, shapes)
    if types is None:
        return None, shapes, None
    kinds = nest.flatten(types)
    leaves = [TensorSpec(*one) for one in zip(shapes or [None] * len(kinds), kinds, strict=True)]
    return types, shapes, lambda: nest.pack(types, leaves)


def as_announced(element: Any, types: Any, shapes: list[Any] | None) -> Any:
    """An element with the dtypes and shapes that `from_generator` was told; as found if it was told no dtypes."""
    if types is None:
        return nest.map_structure(convert_to_tensor, element)
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


def distinct(elements: Iterable[Any]) -> Iterator[Any]:
    """The elements without those that came before."""
    seen = set()
    for element in elements:
        arrays = [to_numpy(convert_to_tensor(leaf).array) for leaf in nest.flatten(element) if leaf is not None]
        value = tuple([(x.dtype.str, x.shape, tuple(x.flat) if x.dtype == object else x.tobytes()) for x in arrays])
        if value not in seen:
            seen.add(value)
            yield element


def remembered(begin: Callable[[], Iterator[Any]], kept: list[list[Any]]) -> Iterator[Any]:
    """The elements of an iteration, which are kept once it has come to its end."""
    if kept:
        yield from kept[0]
        return
    seen = []
    for element in begin():  # of rows of arrays their numbers
        seen.append(element)
        yield element
    kept[:] = [seen]


def scanned(elements: Iterable[Any], state: Any, function: Callable[[Any, Any], tuple[Any, Any]]) -> Iterator[Any]:
    """The results of a function of state and element beside the next state."""
    for element in elements:
        following, output = function(state, element)
        nest.assert_same_structure(state, following)
        state = following
        yield output


def total_length(lengths: Iterable[int]) -> int:
    """The number of elements of several datasets together; what has no end counts for more than what is unknown."""
    found = list(lengths)
    return sum(found) if min(found) >= 0 else max(length for length in found if length < 0)


AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def need_function(method: str, given: Any) -> None:
    """Refuse a value that is no function."""
    if not callable(given):
        raise TypeError(f"Dataset.{method}: expected a function, found {given!r:.200}.")


def is_dataset(value: object) -> bool:
    """True if a value is a Dataset, whose module imports this one."""
    return hasattr(value, "rows_from")


def need_datasets(method: str, *given: Any) -> None:
    """Refuse values that are no Datasets; at least one is needed."""
    for one in given or (None,):
        if not is_dataset(one):
            raise TypeError(f"Dataset.{method}: expected Datasets, found {one!r:.200}. Dataset.from_tensor_slices makes one.")


def whole_number(method: str, name: str, given: Any, least: int | None = None) -> int:
    """An int, also from a scalar Tensor; ValueError for anything else, and below `least`."""
    try:
        number = operator.index(given)
        if least is None or number >= least:
            return number
    except (TypeError, ValueError):
        pass
    bound = "" if least is None else f" of at least {least}"
    raise ValueError(f"{method}: {name} must be an int{bound}, found {given!r:.100}.")


at_least_one = partial(whole_number, least=1)


def called(function: Callable[..., Any], element: Any) -> Any:
    """The function of an element; a tuple is handed over as several arguments."""
    return function(*element) if isinstance(element, tuple) else function(element)


def made_dataset(method: str, function: Callable[..., Any], element: Any) -> Any:
    """The Dataset that a function makes of an element."""
    made = called(function, element)
    if not is_dataset(made):
        raise TypeError(
            f"Dataset.{method}: the function must return a Dataset, found {made!r:.200}. map takes other functions."
        )
    return made


# Ahead of use, in threads ----------------------------------------------------------------------------------------------
#
# Results come in order: prefetching, parallel `map`, the workers of `PyDataset`.


def in_order(function: Callable[[Any], Any], items: Iterable[Any], workers: int, ahead: int) -> Generator[Any]:
    """`function(item)` for each item, computed by `workers` threads, at most `ahead` before they are asked for.

    Raises:
        RuntimeError: in a forked process that goes on with it: the threads are its parent's.
    """
    from concurrent.futures import Future, ThreadPoolExecutor

    name, process = current_device(), os.getpid()

    def run(item: Any) -> Any:
        with device(name):  # the device is a choice of each thread
            return function(item)

    def oldest() -> Any:
        if os.getpid() != process:
            raise RuntimeError(
                "Dataset: a forked process cannot go on with data that its parent's threads prepare; iterate anew."
            )
        return waiting.popleft().result()

    waiting: deque[Future[Any]] = deque()
    executor = ThreadPoolExecutor(workers, "minikeras-data")
    try:
        for item in items:
            waiting.append(executor.submit(run, item))
            if len(waiting) > ahead:
                yield oldest()
        while waiting:
            yield oldest()
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


_END = object()


def prefetched(elements: Iterator[Any], ahead: int) -> Iterator[Any]:
    """The elements of an iterator, asked for in a thread of their own up to `ahead` early."""
    found = in_order(lambda _: next(elements, _END), itertools.repeat(None), 1, ahead)
    try:
        for element in found:
            if element is _END:
                return
            yield element
    finally:
        found.close()  # the thread ends with it


# Several elements: windows, groups, padded batches, choices ------------------------------------------------------------


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
    found = []
    for leaf, shape in zip(nest.flatten(spec), _of_leaves("padded_shapes", spec, shapes), strict=True):
        open_rank = leaf is None or (leaf.shape is None and shape is None)
        found.append(leaf if open_rank else TensorSpec([size, *_sizes(shape, len(leaf.shape or ()))], leaf.dtype))
    return nest.pack(spec, found)


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
