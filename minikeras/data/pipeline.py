"""ElementStream: where the elements of a Dataset come from, how many there are, what they are like, and going through them.

While it only reorders and groups rows of arrays it carries row numbers, and a batch is one gather (`table.py`).

Passes go through data again and again, with a position that can be saved and found again: the random streams of when the pass
began, which fix its order, and the number of elements taken since.
"""

from __future__ import annotations

import collections.abc
import contextlib
import copy
import itertools
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np

from .. import nest
from ..boundary import explaining_methods
from ..core import Tensor, convert_to_tensor
from ..errors import InvalidArgumentError, OutOfRangeError
from ..nn_ops import streams
from ..types import Array, int64
from . import elements
from .elements import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Options, need_function
from .table import RowTable

Rows = Callable[[], collections.abc.Iterator[Any]]
Numbers = Callable[[], "range | Array"]


@explaining_methods
class ElementStream:
    """Elements that are made anew for each iteration; it knows the pipelines that it takes them from, not what follows."""

    def __init__(
        self,
        rows: Rows | None,
        cardinality: int,
        parents: Sequence[ElementStream] = (),
        table: RowTable | None = None,
        numbers: Numbers | None = None,
        stream: streams.Stream | None = None,
        spec: Callable[[], Any] | None = None,
        batch_size: int | None = None,
    ) -> None:
        self._rows: Rows = rows if rows is not None else lambda: iter(numbers())  # type: ignore[misc]
        self._cardinality = cardinality
        self.table = table
        """The arrays whose rows the elements are; None if they are made otherwise."""
        self._numbers = numbers
        self._parents, self._spec = parents, spec
        self.batch_size = batch_size
        """The number of elements in a batch, if these are batches."""
        self._options: Options | None = parents[0]._options if parents else None
        above = [one for parent in parents for one in parent.random_streams]
        self.random_streams: list[streams.Stream] = above if stream is None else [*above, stream]
        """The streams that belong to shuffles with a seed; with `order_stream()` they are all the state of the order."""

    def __iter__(self) -> Iterator:
        return Iterator(self)

    def from_position(self, start: int = 0) -> collections.abc.Iterator[Any]:
        """The elements after the first `start` ones; those are passed over at once, and rows of arrays are not even made."""
        rows = self.rows_from(start)
        return rows if self.table is None else map(self.table.take, rows)

    def rows_from(self, start: int) -> collections.abc.Iterator[Any]:
        """As `from_position`; of a dataset with a `table`, the row numbers from which `table.take` makes each element."""
        rows = self._rows()
        next(itertools.islice(rows, start, start), None)
        return rows

    def __len__(self) -> int:
        if self._cardinality < 0:
            raise TypeError("The dataset's length is unknown or infinite. Count the elements, or limit it: dataset.take(n).")
        return self._cardinality

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        words = {INFINITE_CARDINALITY: "infinite", UNKNOWN_CARDINALITY: "unknown"}
        spec = f"element_spec={self.element_spec}, " if self._states_spec() else ""
        return f"<Dataset {spec}cardinality={words.get(self._cardinality, self._cardinality)}>"

    def _states_spec(self) -> bool:
        """True if the spec of elements is known without running a function to make one."""
        return self._spec is not None and all(parent._states_spec() for parent in self._parents)

    def cardinality(self) -> Tensor:
        """The length, int64; `INFINITE_CARDINALITY` (-1) without end, `UNKNOWN_CARDINALITY` (-2) if it is unknown."""
        return convert_to_tensor(self._cardinality, int64)

    @property
    def element_spec(self) -> Any:
        """A nest of TensorSpecs, like an element; None is an axis whose size may vary, such as the first one of batches.

        What functions make is known by the first element, which is made for it; random streams stay where they are.

        Raises:
            InvalidArgumentError: if there is no first element.

        >>> tf.data.Dataset.range(5).batch(2).element_spec
        TensorSpec(shape=(None,), dtype=tf.int64)
        """
        if self._spec is not None:
            return self._spec()
        return elements.of_element(self.first_element(), any(elements.varies(parent.element_spec) for parent in self._parents))

    def first_element(self) -> Any:
        """The first element, without any effect on iterations that follow."""
        with preserved_streams(self.random_streams):
            for element in self.from_position():
                return element
        raise InvalidArgumentError("element_spec: the dataset has no elements by which it could be known.")

    def get_single_element(self) -> Any:
        """The only element.

        Raises:
            InvalidArgumentError: if there is none, or more than one.
        """
        found = list(itertools.islice(self.from_position(), 2))
        if len(found) != 1:
            count = "none" if not found else "more"
            raise InvalidArgumentError(f"get_single_element: one element is needed, found {count}; take(1) gives the first.")
        return found[0]

    def options(self) -> Options:
        """The options given to `with_options`, or those of the first dataset that this one is made of."""
        return self._options or Options()

    def with_options(self, options: Options) -> Self:
        """The same elements; see `Options`."""
        if not isinstance(options, Options):
            raise TypeError(f"with_options: expected tf.data.Options, found {options!r:.200}.")
        changed = copy.copy(self)
        changed._options = options
        return changed

    def as_numpy_iterator(self) -> collections.abc.Iterator[Any]:
        """The elements as NumPy arrays."""
        return (
            nest.map_structure(lambda leaf: leaf.numpy() if isinstance(leaf, Tensor) else leaf, element) for element in self
        )

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """The state that is left when `reduce_func(state, element)` has seen all elements."""
        need_function("reduce", reduce_func)
        state = nest.map_structure(convert_to_tensor, initial_state)
        for element in self.from_position():  # not in a generator: what the function raises may be a StopIteration
            following = reduce_func(state, element)
            nest.assert_same_structure(state, following)
            state = following
        return state


class Iterator:
    """The elements of a Dataset once through, as `iter(dataset)` gives them; a `tf.train.Checkpoint` saves where it stands.

    Restored, it goes on with the same elements, which are made anew up to there. Restoring sets all random streams too. Where
    several iterators are saved together, give each shuffle a seed: those without one draw from the same stream.

    >>> elements = iter(tf.data.Dataset.range(5).shuffle(5))
    >>> first, state = next(elements), elements.get_state()
    >>> rest = [int(element) for element in elements]
    >>> elements.set_state(state)
    >>> [int(element) for element in elements] == rest
    True
    """

    def __init__(self, dataset: ElementStream) -> None:
        self._dataset, self._passes = dataset, Passes(dataset)
        self._passes.begin()

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        return next(self._passes.rest())

    def get_next(self) -> Any:
        """The next element; OutOfRangeError after the last one."""
        try:
            return next(self)
        except StopIteration:
            raise OutOfRangeError("get_next: end of sequence. Every element has been taken; begin anew with iter.") from None

    @property
    def element_spec(self) -> Any:
        """The spec of the Dataset's elements."""
        return self._dataset.element_spec

    def get_state(self) -> dict[str, Any]:
        """The position, as plain data: random streams now and when it began, elements taken."""
        return self._passes.state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on where another one over the same data stood; ValueError for another number of shuffles with a seed."""
        self._passes.resume(state)


# Passes ----------------------------------------------------------------------------------------------------------------


ORDER = "data order"


def order_stream() -> streams.Stream:
    """The stream that shuffles without a seed draw from."""
    return streams.named_stream(ORDER)


def random_order(seed: int | None, anew: bool) -> tuple[streams.Stream | None, Callable[[], np.random.Generator]]:
    """The stream of a random order, if it has one of its own, and the function that gives the generator of an iteration."""
    own = streams.Stream(seed) if seed is not None else None if anew else order_stream().fork()

    def generator() -> np.random.Generator:
        stream = own or order_stream()
        return stream.generator() if anew else streams.generator_at(*stream.state)

    return own, generator


@contextlib.contextmanager
def preserved_streams(own: Sequence[streams.Stream]) -> Generator[None]:
    """Keep all random streams, and those in `own`, where they are: draws within the block leave no trace."""
    before = streams.states(), [stream.state for stream in own]
    try:
        yield
    finally:
        streams.set_states(before[0])
        for stream, state in zip(own, before[1], strict=True):
            stream.state = state


class Passable(Protocol):
    """The data that passes go through: a Dataset, or the batches that `fit` takes."""

    random_streams: list[streams.Stream]

    def from_position(self, start: int) -> collections.abc.Iterator[Any]:
        """The elements after the first `start` ones."""


class Passes:
    """One pass after another over a source.

    Attributes:
        taken: number of elements taken from the pass under way.
        under_way: whether one is.
    """

    def __init__(self, source: Passable) -> None:
        self.source = source
        self.taken = 0
        self._began: Mapping[str, Any] = {}
        self._pass: collections.abc.Iterator[Any] | None = None

    @property
    def under_way(self) -> bool:
        """True if a pass has begun and not ended."""
        return self._pass is not None

    def begin(self) -> None:
        """Start a pass."""
        self._began, self.taken = self._streams(), 0
        self._pass = iter(self.source.from_position(0))

    def rest(self) -> collections.abc.Iterator[Any]:
        """The rest of the pass under way."""
        for element in self._pass or ():
            self.taken += 1
            yield element
        self._pass, self.taken = None, 0

    def state(self) -> dict[str, Any]:
        """The position, as plain values: random streams now and at the beginning of the pass under way, elements taken."""
        began = {"began": self._began, "taken": self.taken} if self.under_way else {}
        return self._streams() | began

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on where another one over the same data stood, random streams too. ValueError, and no change, for other data."""
        own = self.source.random_streams
        if len(own) != len(state["own"]):
            raise ValueError(f"The data has {len(own)} shuffles with a seed, that of the saved state had {len(state['own'])}.")
        self._pass, self.taken = None, 0  # threads that make its elements ahead draw no more
        if "began" not in state:
            self._set(state)
            return
        self._set(state["began"])
        self._began, self.taken = state["began"], int(state["taken"])
        self._pass = iter(self.source.from_position(self.taken))
        # The order was drawn again just now; with prefetching, the saved stream of orders may be further on.
        streams.set_states({**state["streams"], ORDER: order_stream().state})

    def _streams(self) -> dict[str, Any]:
        return {"streams": streams.states(), "own": [stream.state for stream in self.source.random_streams]}

    def _set(self, state: Mapping[str, Any]) -> None:
        streams.set_states(state["streams"])
        for stream, (seed, position) in zip(self.source.random_streams, state["own"], strict=True):
            stream.state = int(seed), int(position)


class Resumable:
    """The elements of a Dataset, pass after pass, with a position that a `tf.train.Checkpoint` saves.

    A loop that was left in the middle goes on there at the next `for`. Restoring the position restores all random streams too.

    Args:
        dataset: elements that come in the same order from the same random streams.

    Attributes:
        epoch: number of passes that are complete.
        batch: number of elements taken in the pass under way.

    >>> data = tf.data.Resumable(tf.data.Dataset.range(3))
    >>> for element in data:
    ...     if data.batch == 2:
    ...         break
    >>> [int(element) for element in data], data.epoch
    ([2], 1)
    """

    def __init__(self, dataset: Passable) -> None:
        self._passes = Passes(dataset)
        self.epoch = 0

    @property
    def batch(self) -> int:
        return self._passes.taken

    def __iter__(self) -> collections.abc.Iterator[Any]:
        if not self._passes.under_way:
            self._passes.begin()
        yield from self._passes.rest()
        self.epoch += 1

    def get_state(self) -> dict[str, Any]:
        """The position, as plain data: random streams now and when the pass began, passes and elements taken."""
        return {"epoch": self.epoch} | self._passes.state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on where another one with the same data stood; ValueError for another number of shuffles with a seed."""
        self._passes.resume(state)
        self.epoch = int(state["epoch"])
