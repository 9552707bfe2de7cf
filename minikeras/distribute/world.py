"""The ranks of this program: which one this is, and which rows are its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .. import ranks
from ..core.arrays import list_physical_devices
from ..errors import InvalidArgumentError
from ..ranks import Alone, Communicator, world
from .communicator import MpiCommunicator, started_by_mpi


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
    if (joined := ranks.joined()) is None:
        joined = MpiCommunicator(timeout) if started_by_mpi() > 1 else Alone()
        ranks.join(joined)
    for name, told, found in (("num_processes", num_processes, joined.size), ("process_id", process_id, joined.rank)):
        if told is not None and told != found:
            raise ValueError(f"initialize: {name} is {told}, but MPI says {found}. Leave it out.")


init = initialize
"""Horovod's name."""


@contextlib.contextmanager
def using(communicator: Communicator) -> Iterator[None]:
    """Within the block the ranks are those of `communicator`.

    >>> ranks = tf.distribute.ThreadCommunicator(2)
    >>> with tf.distribute.using(ranks):
    ...     ranks.run(tf.distribute.rank)
    [0, 1]
    """
    before = ranks.join(communicator)
    try:
        yield
    finally:
        ranks.join(before)


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
    rank, size = world().rank if rank is None else rank, world().size if size is None else size
    if rows < 0 or not 0 <= rank < size:
        raise InvalidArgumentError(
            f"rows_of: expected rows from 0 on and a rank below the size, found {rows}, {rank} of {size}."
        )
    share, rest = divmod(rows, size)
    start = rank * share + min(rank, rest)
    return range(start, start + share + (rank < rest))


def list_devices(device_type: str | None = None) -> list[str]:
    """The devices of all ranks together: a 'gpu:n' for each rank that has one, else a 'cpu:n' for each rank.

    Args:
        device_type: 'cpu' or 'gpu', in any case; None for GPUs if there are any.

    Raises:
        ValueError: for another kind.

    >>> tf.keras.distribution.list_devices("cpu")
    ['cpu:0']
    """
    kind = None if device_type is None else device_type.lower()
    if kind not in (None, "cpu", "gpu"):
        raise ValueError(f"list_devices: expected 'cpu', 'gpu' or None, found {device_type!r}.")
    if kind is None:
        kind = "gpu" if list_physical_devices("GPU") else "cpu"
    count = world().size if list_physical_devices(kind.upper()) else 0
    return [f"{kind}:{number}" for number in range(count)]


def get_device_count(device_type: str | None = None) -> int:
    """The number of devices; see `list_devices`.

    >>> tf.keras.distribution.get_device_count("cpu")
    1
    """
    return len(list_devices(device_type))
