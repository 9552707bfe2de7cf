"""Several Datasets in one, as methods of Dataset: those that a function makes in turns, drawn at random, or as chosen."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgumentError
from .checks import AUTOTUNE, UNKNOWN_CARDINALITY, at_least_one, need_datasets, need_function
from .elements import total_length
from .passes import random_order
from .specs import of_either
from .threads import prefetched

if TYPE_CHECKING:
    from .dataset import Dataset

_END = object()


def interleave(
    self: Dataset,
    map_func: Callable[..., Dataset],
    cycle_length: int | None = None,
    block_length: int | None = None,
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
) -> Dataset:
    """The elements of the datasets that a function makes of each element, of several at a time, some of each in turn.

    Args:
        map_func: gives a Dataset.
        cycle_length: how many datasets take turns; 4 for None and AUTOTUNE.
        block_length: how many elements one gives in its turn; 1 for None.
        num_parallel_calls: if there is such a number, each open dataset makes elements ahead in a thread of its own.
        deterministic: accepted for compatibility; the order is kept in any case.

    >>> rows = tf.data.Dataset.range(1, 4).interleave(lambda n: tf.data.Dataset.from_tensors(n).repeat(3), 2, 2)
    >>> [int(row) for row in rows]
    [1, 1, 2, 2, 1, 2, 3, 3, 3]
    """
    need_function("interleave", map_func)
    cycle = at_least_one("interleave", "cycle_length", 4 if cycle_length in (None, AUTOTUNE) else cycle_length)
    block = at_least_one("interleave", "block_length", 1 if block_length is None else block_length)
    parts = partial(self._datasets, "interleave", map_func)

    def rows() -> Iterator[Any]:
        opened = (part.from_position() for part in parts())
        return interleaved((prefetched(one, block) for one in opened) if num_parallel_calls else opened, cycle, block)

    return self._made(rows, spec=lambda: self._made(parts)._first().element_spec)


def sample_from_datasets(
    datasets: Sequence[Dataset],
    weights: Any = None,
    seed: int | None = None,
    stop_on_empty_dataset: bool = False,
    rerandomize_each_iteration: bool | None = None,
) -> Dataset:
    """Elements of several datasets, each from one that is drawn at random.

    Args:
        datasets: with elements of one structure.
        weights: of the datasets, which need not sum to 1; None for equal ones.
        seed: of the draws.
        stop_on_empty_dataset: stop when the dataset that is drawn is at its end, instead of going on with the others.
        rerandomize_each_iteration: draw anew in each iteration.

    Raises:
        ValueError: for weights that are negative, not finite, all 0, or not one for each dataset.
    """
    parts = list(datasets)
    need_datasets("sample_from_datasets", *parts)
    shares = np.ones(len(parts)) if weights is None else np.asarray(weights, np.float64)
    if shares.shape != (len(parts),) or not (np.isfinite(shares) & (shares >= 0)).all() or not shares.any():
        raise ValueError(
            f"sample_from_datasets: weights must be {len(parts)} finite numbers of at least 0, not all 0, found "
            f"{weights!r:.200}."
        )
    parts, shares = [part for part, share in zip(parts, shares, strict=True) if share], shares[shares > 0]
    bounds = np.cumsum(shares / shares.sum())[:-1]
    own, generator = random_order(seed, bool(rerandomize_each_iteration))

    def rows() -> Iterator[Any]:
        draws = generator()
        choices = (np.searchsorted(bounds, draws.random(), "right") for _ in itertools.count())
        return chosen([part.from_position() for part in parts], choices, stop_on_empty_dataset)

    length = UNKNOWN_CARDINALITY if stop_on_empty_dataset else total_length(part._cardinality for part in parts)
    return type(parts[0])(rows, length, tuple(parts), stream=own, spec=partial(of_either, parts))


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = True) -> Dataset:
    """Elements of several datasets, each from that whose number `choice_dataset` gives.

    Args:
        datasets: with elements of one structure.
        choice_dataset: of integers from 0 to `len(datasets) - 1`.
        stop_on_empty_dataset: stop when the dataset that is chosen is at its end, instead of passing such choices over.
    """
    parts = list(datasets)
    need_datasets("choose_from_datasets", *parts)
    need_datasets("choose_from_datasets", choice_dataset)
    stop = stop_on_empty_dataset
    rows = lambda: chosen([part.from_position() for part in parts], choice_dataset.from_position(), stop)
    return type(parts[0])(rows, UNKNOWN_CARDINALITY, (*parts, choice_dataset), spec=partial(of_either, parts))


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
