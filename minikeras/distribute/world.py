"""The ranks of this program, which one this is, and what rank 0 does before the others."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import numpy as np

from ..errors import DatasetUnavailableError, InvalidArgumentError
from .communicator import Alone, Communicator, MpiCommunicator, started_by_mpi

_world: Communicator | None = None


def initialize(
    job_addresses: str | None = None, num_processes: int | None = None, process_id: int | None = None, *, timeout: float = 600.0
) -> None:
    """Join the ranks with which the program was started, by `mpirun` or `python -m minikeras.distribute.run`. Without them it
    does nothing. Whatever needs the ranks calls it; call it first to set the time limit.

    Args:
        job_addresses: accepted for Keras's sake: MPI knows where the ranks are.
        num_processes, process_id: if given, they must be what MPI says.
        timeout: seconds that a rank waits for the others before it ends the job.

    Raises:
        MissingExtraError: if there are several ranks and no mpi4py.
        ValueError: if there are other ranks than it is told.

    >>> tf.distribute.initialize()
    """
    global _world
    if _world is None:
        _world = MpiCommunicator(timeout) if started_by_mpi() > 1 else Alone()
    for name, told, found in (("num_processes", num_processes, _world.size), ("process_id", process_id, _world.rank)):
        if told is not None and told != found:
            raise ValueError(f"initialize: {name} is {told}, but MPI says {found}. Leave it out.")


init = initialize
"""Horovod's name."""


def world() -> Communicator:
    """The ranks of this program; they are joined by the first call."""
    if _world is None:
        initialize()
    assert _world is not None
    return _world


def joined() -> Communicator | None:
    """The ranks of this program, if they were joined by now."""
    return _world


def is_first() -> bool:
    """True if this rank writes files and lines for all: the first rank, or the only one."""
    return _world is None or _world.size == 1 or _world.rank == 0


@contextlib.contextmanager
def using(communicator: Communicator) -> Iterator[None]:
    """Within the block the ranks are those of `communicator`.

    >>> ranks = tf.distribute.ThreadCommunicator(2)
    >>> with tf.distribute.using(ranks):
    ...     ranks.run(tf.distribute.rank)
    [0, 1]
    """
    global _world
    before, _world = _world, communicator
    try:
        yield
    finally:
        _world = before


def rank() -> int:
    """The number of this rank, from 0.

    >>> tf.distribute.rank()
    0
    """
    return world().rank


def size() -> int:
    """The number of ranks.

    >>> tf.distribute.size()
    1
    """
    return world().size


def local_rank() -> int:
    """The number of this rank among the ranks on its machine, for example the number of its GPU.

    >>> tf.distribute.local_rank()
    0
    """
    return world().local_rank


def barrier() -> None:
    """Wait until all ranks are here.

    >>> tf.distribute.barrier()
    """
    world().barrier()


def rows_of(rows: int, rank: int | None = None, size: int | None = None) -> range:
    """The rows out of `rows` that belong to a rank: as many for each, or one more for the first ranks.

    Raises:
        InvalidArgumentError: for fewer rows than none, or a rank that is not there.

    >>> [tf.distribute.rows_of(10, rank, 4) for rank in range(4)]
    [range(0, 3), range(3, 6), range(6, 8), range(8, 10)]
    """
    ranks = world()
    rank, size = ranks.rank if rank is None else rank, ranks.size if size is None else size
    if rows < 0 or not 0 <= rank < size:
        raise InvalidArgumentError(
            f"rows_of: expected rows from 0 on and a rank below the size, found {rows}, {rank} of {size}."
        )
    share, rest = divmod(rows, size)
    start = rank * share + min(rank, rest)
    return range(start, start + share + (rank < rest))


P = ParamSpec("P")
R = TypeVar("R")
_REASON_BYTES = 4096


def rank_0_first(function: Callable[P, R]) -> Callable[P, R]:
    """A function that the other ranks call when rank 0 has done so, and find what it has left. It fails on all or on none.

    This holds once the program has joined its ranks. All of them have to call it then.

    Raises:
        DatasetUnavailableError: on the ranks where it did not fail, with the reason of one where it did.
    """

    @functools.wraps(function)
    def in_turn(*args: P.args, **options: P.kwargs) -> R:
        ranks = joined()
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

    return in_turn


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
