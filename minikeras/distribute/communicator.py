"""The collective operations of ranks, and two that carry them out: one process, and threads of one process.

A rank is one of the processes that run the same program on their own part of the data.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..errors import InvalidArgumentError
from ..nn_ops.streams import own_streams

Array = np.ndarray[Any, Any]
OPERATIONS = ("sum", "max", "min")
END = "nothing more: its program has ended"


def described(name: str, array: Array) -> str:
    """A call of a collective operation, which has to be the same on all ranks: `all_reduce sum float32[10]`."""
    return f"{name} {array.dtype}{list(array.shape)}"


def check_calls(calls: Sequence[str]) -> None:
    """Refuse calls, one from each rank, that are not the same.

    >>> check_calls(["barrier", "all_gather int32[2]"])
    Traceback (most recent call last):
        ...
    minikeras.errors.InvalidArgumentError: the ranks call different operations: 'barrier' on 0; 'all_gather int32[2]' on 1.
    All must call the same ones in the same order.
    """
    if len(set(calls)) > 1:
        listed = [
            f"{call!r} on {', '.join(str(rank) for rank, other in enumerate(calls) if other == call)}"
            for call in dict.fromkeys(calls)
        ]
        raise InvalidArgumentError(
            f"the ranks call different operations: {'; '.join(listed)}.\nAll must call the same ones in the same order."
        )


class Communicator(Protocol):
    """The collective operations of a group of ranks. Every rank calls them in the same order.

    Attributes:
        rank: the number of this one, from 0.
        size: how many there are.
        local_rank: its number among the ranks on this machine.
    """

    rank: int
    size: int
    local_rank: int

    def all_reduce(self, array: Array, operation: str) -> Array:
        """The sum, maximum or minimum of the arrays of all ranks; the same bits on each."""

    def all_gather(self, array: Array) -> Array:
        """The arrays of all ranks, stacked along a new first axis."""

    def broadcast(self, array: Array, root: int) -> Array:
        """The array of one rank."""

    def barrier(self) -> None:
        """Wait until all ranks are here."""


class Alone:
    """One rank."""

    rank, size, local_rank = 0, 1, 0

    def all_reduce(self, array: Array, operation: str) -> Array:
        """The array itself."""
        return array

    def all_gather(self, array: Array) -> Array:
        """The array as the only one."""
        return array[None]

    def broadcast(self, array: Array, root: int) -> Array:
        """The array itself."""
        return array

    def barrier(self) -> None:
        """There is no one to wait for."""


class ThreadCommunicator:
    """Ranks that are threads of one process: the same program without MPI, for tests. Each has random streams of its own.

    Sums are taken in the order of the ranks, so they have the same bits in each run.

    Args:
        size: the number of ranks.
        timeout: seconds to wait for the others.

    >>> ranks = tf.distribute.ThreadCommunicator(2)
    >>> with tf.distribute.using(ranks):
    ...     print(ranks.run(lambda: tf.distribute.all_reduce(tf.constant(1.0)).numpy().item()))
    [2.0, 2.0]
    """

    def __init__(self, size: int, timeout: float = 60.0) -> None:
        if not isinstance(size, (int, np.integer)) or size < 1:
            raise InvalidArgumentError(f"ThreadCommunicator: size must be a whole number of 1 and more, found {size!r}.")
        self.size, self._timeout = size, timeout
        self._own = threading.local()
        self._barrier = threading.Barrier(size)
        self._given: list[Any] = [None] * size

    @property
    def rank(self) -> int:
        """The number of this thread."""
        return int(self._own.rank)

    local_rank = rank

    def run(self, function: Callable[[], Any]) -> list[Any]:
        """The results of `function()` on each rank. If one raises, the others end too, and its error is raised."""
        results: list[Any] = [None] * self.size
        errors: list[BaseException] = []

        def work(rank: int) -> None:
            self._own.rank = rank
            try:
                with own_streams():
                    results[rank] = function()
            except threading.BrokenBarrierError as error:
                errors.append(error)
            except BaseException as error:
                errors.insert(0, error)  # the cause, before those that waited in vain
                self._barrier.abort()

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._barrier.reset()
        if errors:
            raise errors[0]
        return results

    def _exchanged(self, name: str, array: Array) -> Sequence[Array]:
        """The arrays of all ranks, which call the same operation."""
        self._given[self.rank] = described(name, array), np.array(array)
        self._barrier.wait(self._timeout)
        calls, arrays = zip(*self._given, strict=True)
        self._barrier.wait(self._timeout)
        check_calls(calls)
        return arrays

    def all_reduce(self, array: Array, operation: str) -> Array:
        """See `Communicator`."""
        combine = {"sum": np.add, "max": np.maximum, "min": np.minimum}[operation]
        first, *others = self._exchanged(f"all_reduce {operation}", array)
        for other in others:
            first = combine(first, other)
        return np.asarray(first)

    def all_gather(self, array: Array) -> Array:
        """See `Communicator`."""
        return np.stack(self._exchanged("all_gather", array))

    def broadcast(self, array: Array, root: int) -> Array:
        """See `Communicator`."""
        return self._exchanged(f"broadcast from {root}", array)[root]

    def barrier(self) -> None:
        """See `Communicator`."""
        self._exchanged("barrier", np.zeros(0))
