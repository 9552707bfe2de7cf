"""Ranks as all floors see them: one process until `distribute` has joined others, and the rows of a batch that a thread
computes on, which are all of them until a rank takes some.

A rank is one of the processes that run the same program on their own part of the data. What differs among them asks here, and
`distribute` puts other answers in place of these: a communicator for all threads, rows for one.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from .core.registry import hook
from .errors import DatasetUnavailableError

Array = np.ndarray[Any, Any]


class Communicator:
    """The collective operations of a group of ranks. Every rank calls them in the same order.

    All are made of one, `exchanged`, where a subclass knows no faster way.

    Attributes:
        rank: the number of this one, from 0.
        size: how many there are.
        local_rank: its number among the ranks on this machine.
    """

    rank: int
    size: int
    local_rank: int

    def exchanged(self, call: str, array: Array) -> Sequence[Array]:
        """The arrays of all ranks, which make the same call, in the order of the ranks."""
        raise NotImplementedError

    def all_reduce(self, array: Array, operation: str) -> Array:
        """The sum, maximum or minimum of the arrays of all ranks; the same bits on each."""
        combine = {"sum": np.add, "max": np.maximum, "min": np.minimum}[operation]
        return np.asarray(functools.reduce(combine, self.exchanged(f"all_reduce {operation}", array)))

    def all_gather(self, array: Array) -> Array:
        """The arrays of all ranks, stacked along a new first axis."""
        return np.stack(self.exchanged("all_gather", array))

    def broadcast(self, array: Array, root: int) -> Array:
        """The array of one rank."""
        return self.exchanged(f"broadcast from {root}", array)[root]

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.exchanged("barrier", np.zeros(0))


class Alone(Communicator):
    """One rank."""

    rank, size, local_rank = 0, 1, 0

    def exchanged(self, call: str, array: Array) -> Sequence[Array]:
        """The array itself."""
        return [array]


_joined: Communicator | None = None


def join(communicator: Communicator | None) -> Communicator | None:
    """Make `communicator` the ranks of this program; those before."""
    global _joined
    before, _joined = _joined, communicator
    return before


def joined() -> Communicator | None:
    """The ranks of this program, if they were joined by now."""
    return _joined


def world() -> Communicator:
    """The ranks of this program; they are joined by the first call."""
    if _joined is None:
        hook("initialize")()
    assert _joined is not None
    return _joined


def is_first() -> bool:
    """True if this rank writes files and lines for all: the first rank, or the only one."""
    return _joined is None or _joined.size == 1 or _joined.rank == 0


def broadcast_bytes(data: bytes | bytearray) -> bytes | bytearray:
    """The bytes of the first rank."""
    if (ranks := _joined) is None or ranks.size == 1:
        return data
    size = int(ranks.broadcast(np.array([len(data)]), 0)[0])
    given = np.frombuffer(data, np.uint8) if ranks.rank == 0 else np.zeros(size, np.uint8)
    return ranks.broadcast(given, 0).tobytes()


Function = TypeVar("Function", bound=Callable[..., Any])
_REASON_BYTES = 4096


def rank_0_first(function: Function) -> Function:
    """A function that the other ranks call when rank 0 has done so, and find what it has left. It fails on all or on none.

    This holds once the program has joined its ranks. All of them have to call it then.

    Raises:
        DatasetUnavailableError: on the ranks where it did not fail, with the reason of one where it did.
    """

    @functools.wraps(function)
    def in_turn(*args: Any, **options: Any) -> Any:
        ranks = _joined
        if ranks is None or ranks.size == 1:
            return function(*args, **options)
        for turn in (True, False):
            failure: Exception | None = None
            if (ranks.rank == 0) is turn:
                try:
                    result = function(*args, **options)
                except Exception as error:
                    failure = error
            _check(ranks, failure)
        return result

    return cast(Function, in_turn)


def _check(ranks: Communicator, failure: Exception | None) -> None:
    """Raise if there is a failure on any rank."""
    reason = f"{type(failure).__name__}: {failure}" if failure else ""
    sent = np.frombuffer(reason.encode()[:_REASON_BYTES].ljust(_REASON_BYTES, b"\0"), np.uint8)
    found = [bytes(one).rstrip(b"\0").decode(errors="replace") for one in ranks.all_gather(sent)]
    if failure is not None:
        raise failure
    for rank, text in enumerate(found):
        if text:
            raise DatasetUnavailableError(f"on rank {rank}, {text}")


# The rows of a batch -----------------------------------------------------------------------------------------------------


class Rows:
    """The rows of a batch that a thread computes on. These are all of them; a rank's own answer otherwise.

    Attributes:
        first: the number of the first row in the batch.
        rows: their number, if they are a part of the batch; else None.
        exchange: makes those of all rows of gradients of these; None if they are the same.
    """

    first: int = 0
    rows: int | None = None
    exchange: Any = None

    def check_exchange(self, what: str) -> None:
        """Refuse what needs sums over all ranks within a step where these rows cannot have them."""

    def need_all(self, what: str) -> None:
        """Refuse what needs the loss of all rows where others have some of them."""

    def draw(self, shape: Sequence[int], exactly: bool = False) -> dict[str, int]:
        """The option by which a draw of this shape, for these rows, is a part of the whole batch's draw: its first element.

        Rows come first, the steps of a series or other repetitions of them right behind. A draw of another number of them is
        one that all parts share.

        Args:
            shape: of the draw.
            exactly: whether its first axis is to have as many elements as there are rows, not a multiple of them.
        """
        return {}

    def all(self, x: Any) -> Any:
        """The rows of the whole batch, from these."""
        return x

    def sums(self, found: Sequence[Any]) -> Sequence[Any]:
        """Sums over the whole batch, from those over these rows."""
        return found

    def weigh(self, x: Any) -> Any:
        """x times the share of these rows in the batch, by which a mean over all parts counts it."""
        return x

    def spread(self, total: Any) -> Any:
        """The number of this part whose mean over all parts is the sum of these sums."""
        return total


ALL = Rows()


class _Here(threading.local):
    rows = ALL


_here = _Here()


def rows_here() -> Rows:
    """The rows of a batch that this thread computes on."""
    return _here.rows


@contextlib.contextmanager
def computing_on(rows: Rows | None) -> Iterator[None]:
    """Within the block this thread computes on these rows; on whole batches for None."""
    before, _here.rows = _here.rows, ALL if rows is None else rows
    try:
        yield
    finally:
        _here.rows = before
