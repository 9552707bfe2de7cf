"""Calls of a compiled function in a row: for the elements of a Dataset, or for the rows of arrays."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .. import nest
from ..core import BOTTOM, Operand, Tensor, convert_to_tensor, current, is_array
from ..errors import ShapeError
from ..functions.shaping import concat, stack, unstack

if TYPE_CHECKING:
    from ..data.table import RowTable

SECONDS = 0.02
"""Target duration of steps in a row: long enough to amortize the work per row, short enough to answer an interrupt soon."""
GROWTH = 4
"""The largest factor by which the number of steps in a row grows at once: the first steps may be unlike later ones."""
INFINITE = -1
"""The cardinality of a Dataset without end."""


class Pace:
    """The number of steps in a row between two checks by Python: it adapts to the time they take, and is at least 1.

    >>> pace = Pace()
    >>> for _ in range(3):
    ...     pace.took(pace.steps, 0.005 * pace.steps)
    >>> pace.steps
    4
    """

    def __init__(self) -> None:
        self.steps = 1

    def took(self, steps: int, seconds: float) -> None:
        """Adapt to the time that a number of steps took."""
        fitting = int(SECONDS * steps / max(seconds, 1e-9))
        self.steps = max(1, min(fitting, GROWTH * self.steps))


def scan(function: Any, first: tuple[Any, ...], data: Sequence[Any]) -> Any:
    """Carry out `CompiledFunction.scan`; `first` are arguments before those from the data, the same in each call."""
    from ..data.table import RowBatches, of_one_size

    table, elements = _rows_of(data)
    pace, results = Pace(), _Results(function.name)
    while found := list(itertools.islice(elements, pace.steps)):
        if table is None:  # the source of the elements may depend on effects of the calls
            results.add(function(*first, *_arguments(found[0])))
            continue
        began = time.perf_counter()
        for rows in of_one_size(found):
            batches = RowBatches(table, rows)
            many = function.replay_many(batches, (*first, *_arguments(batches.first)), lambda: None, stacked=True)
            for row in rows if many is None else ():
                results.add(function(*first, *_arguments(table.take(row))))
            if many is not None:
                results.extend(many)
        pace.took(len(found), time.perf_counter() - began)
    return results.joined()


def _rows_of(data: Sequence[Any]) -> tuple[RowTable | None, Iterator[Any]]:
    """The arrays and row numbers that make the arguments of the calls, or None and an iterator of arguments."""
    from ..data.table import RowTable, column, with_lists_as_tensors

    if not data or any(isinstance(one, (str, bytes)) for one in data):
        raise TypeError(f"scan needs a dataset, or an array for each argument with a row for each call, found {data!r}.")
    given: Any = data[0] if len(data) == 1 else data
    if hasattr(given, "__iter__") and not (nest.is_nested(given) or isinstance(given, Operand) or is_array(given)):
        if hasattr(given, "cardinality") and int(given.cardinality()) == INFINITE:
            raise ValueError("scan: the dataset has no end; take(n) gives a part of it.")
        table = getattr(given, "table", None)
        return (None, iter(given)) if table is None else (table, given.rows_from(0))
    table = RowTable(with_lists_as_tensors(tuple(data), lambda leaf: column(leaf, "scan")), "scan")
    if current() is not BOTTOM:  # a tape, or another recording, must see the source of the rows
        given = with_lists_as_tensors(tuple(data), convert_to_tensor)
        columns = [unstack(leaf) for leaf in nest.flatten(given)]
        return None, (nest.pack(given, list(row)) for row in zip(*columns, strict=True))
    return table, iter(range(table.length))


def _arguments(element: Any) -> tuple[Any, ...]:
    """An element as arguments: a tuple holds several, as for `Dataset.map`."""
    return element if isinstance(element, tuple) else (element,)


class _Results:
    """Results of calls, of one or of several in a row."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._alone: list[Any] = []
        self._parts: list[Any] = []

    def add(self, result: Any) -> None:
        """Add the result of one call."""
        self._alone.append(result)

    def extend(self, stacked: Sequence[Any]) -> None:
        """Add the results of several calls, stacked; there may be none."""
        if self._alone:
            self._parts.append(self._join(stack, self._alone))
            self._alone = []
        self._parts += stacked

    def joined(self) -> Any:
        """All results, joined."""
        self.extend(())
        if not self._parts:
            raise ValueError(f"{self._name}.scan: the data has no elements.")
        return self._parts[0] if len(self._parts) == 1 else self._join(concat, self._parts)

    def _join(self, join: Callable[[list[Any], int], Any], results: list[Any]) -> Any:
        """Join results leaf by leaf; a leaf that is no Tensor is that of the last call."""
        columns = zip(*map(nest.flatten, results), strict=True)
        try:
            leaves = [join(list(one), 0) if isinstance(one[0], Tensor) else one[-1] for one in columns]
        except ShapeError as error:
            raise ShapeError(
                f"{self._name}.scan: the calls have results of different shapes. {error} If the last batch is smaller than the "
                "others, leave it out: dataset.batch(n, drop_remainder=True)."
            ) from error
        return nest.pack(results[0], leaves)
