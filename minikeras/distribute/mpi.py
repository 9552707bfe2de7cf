"""Ranks that are processes, which MPI has started. A failure of one ends them all, with its reason and a status above 0.

Before each collective operation the ranks tell each other which one they call, in a microsecond. So a rank that does not come
is noticed in Python, which can wait without using the processor; and what follows is MPI's fastest, which waits for nothing.
"""

from __future__ import annotations

import atexit
import faulthandler
import functools
import hashlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ..core.ownership import Owned
from ..errors import InvalidArgumentError, MissingExtraError
from .communicator import END, Array, check_calls, described

NEEDS = "pip install 'minikeras[mpi]'"
DONE = "MINIKERAS_RANKS_DONE"
"""The name of a file that the first rank writes when all ranks have come to their end, for `minikeras.distribute.run`."""
JOINED = "joined"
"""A file beside it, which says that ranks were joined."""
HUNG = 75
"""The exit status of a job whose ranks waited in vain."""
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS")
_SPIN = 2e-3
"""Seconds for which a rank looks for the others without a pause: small sums take microseconds."""
_LARGE = 1 << 20
"""Bytes from which the memory of results is used again."""
_CALL_BYTES = 80
"""Bytes in which ranks tell each other of a call: its name, dtype and sizes; of very many the first ones and a digest."""


def started_by_mpi() -> int:
    """The number of ranks with which the program was started; 1 without MPI."""
    return max([int(os.environ[name]) for name in _SIZES if os.environ.get(name, "").isdigit()], default=1)


class MpiCommunicator:
    """The ranks of MPI's world.

    Args:
        timeout: seconds to wait for other ranks before the job is ended.

    Raises:
        MissingExtraError: without mpi4py.
    """

    def __init__(self, timeout: float = 600.0) -> None:
        self._mpi = _when_all_ranks_have_started(timeout)
        self._world, self._timeout = self._mpi.COMM_WORLD, timeout
        self.rank, self.size = self._world.rank, self._world.size
        self._calls = np.empty((self.size, _CALL_BYTES), np.uint8)
        self._waits: tuple[str, float] | None = None
        self._results: deque[Owned] = deque(maxlen=4)
        self._hook = sys.excepthook
        sys.excepthook = self._abort_for
        atexit.register(self._finish)
        threading.Thread(target=self._watch, name="minikeras-ranks", daemon=True).start()
        with self._together("initialize"):
            local = self._world.Split_type(self._mpi.COMM_TYPE_SHARED)
        self.local_rank = int(local.rank)
        self._is_crowded = local.size > len(set().union(*local.allgather(processors())))
        see_own_gpu(self.local_rank, int(local.size))
        local.Free()
        if self.rank == 0 and DONE in os.environ:
            Path(os.environ[DONE]).with_name(JOINED).touch()

    def all_reduce(self, array: Array, operation: str) -> Array:
        """See `Communicator`. Floats of 16 bits are added up as float32, which MPI knows."""
        result = self._copy(array)
        operator = {"sum": self._mpi.SUM, "max": self._mpi.MAX, "min": self._mpi.MIN}[operation]
        with self._together(described(f"all_reduce {operation}", array)):
            self._world.Allreduce(self._mpi.IN_PLACE, result, operator)
        return result.astype(array.dtype, copy=False)

    def _copy(self, array: Array) -> Array:
        """A copy in a dtype that MPI knows. A large one goes into memory used before, if nothing holds it any more: new memory
        takes longer than a sum of two ranks.
        """
        dtype = _known_to_mpi(array)
        if array.nbytes < _LARGE:
            return np.array(array, dtype, order="C")
        for owned in self._results:
            if not owned.is_shared and (owned.arrays[0].shape, owned.arrays[0].dtype) == (array.shape, dtype):
                break
        else:
            owned = Owned([np.empty(array.shape, dtype)])
            self._results.append(owned)
        np.copyto(owned.arrays[0], array)
        return owned.arrays[0]

    def all_gather(self, array: Array) -> Array:
        """See `Communicator`."""
        sent = np.asarray(array, _known_to_mpi(array), order="C")
        result = np.empty((self.size, *sent.shape), sent.dtype)
        with self._together(described("all_gather", array)):
            self._world.Allgather(sent, result)
        return result.astype(array.dtype, copy=False)

    def broadcast(self, array: Array, root: int) -> Array:
        """See `Communicator`."""
        result = np.array(array, _known_to_mpi(array), order="C")
        with self._together(described(f"broadcast from {root}", array)):
            self._world.Bcast(result, root)
        return result.astype(array.dtype, copy=False)

    def barrier(self) -> None:
        """See `Communicator`."""
        with self._together("barrier"):
            pass

    @contextmanager
    def _together(self, call: str) -> Iterator[None]:
        """The block runs as soon as all ranks are here, and is watched.

        Raises:
            InvalidArgumentError: on all ranks, if they do not call the same.
        """
        self._waits = call, time.monotonic() + self._timeout
        try:
            own = _sent(call)
            request = self._world.Iallgather(own, self._calls)
            began = time.monotonic()
            while not request.Test():
                waited = time.monotonic() - began
                if self._is_crowded or waited > _SPIN:
                    time.sleep(min(1e-3, waited / 20))  # let others compute
            if (self._calls != own).any():
                calls = [bytes(one).decode(errors="replace").rstrip("\0") for one in self._calls]
                if END in calls and calls[self.rank] != END:
                    time.sleep(1)  # a rank that ends with a status of its own is to be the one that ends the job
                check_calls(calls)
            yield
        finally:
            self._waits = None

    _is_crowded = False

    # Failures --------------------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """End the job if this rank has waited for too long, and this rank if the process that started it has ended."""
        parent = os.getppid()
        while True:
            time.sleep(min(1.0, self._timeout / 10))
            if os.getppid() != parent:
                os._exit(HUNG)  # in silence: the reader of a message is gone too
            waits = self._waits
            if waits is not None and time.monotonic() > waits[1]:
                _print(
                    f"rank {self.rank} waited {self._timeout:g} s in '{waits[0]}': another rank, one without such a line, "
                    "hangs or takes longer. Raise initialize(timeout=...) if it only does."
                )
                os._exit(HUNG)

    def _abort_for(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """An exception that no code caught ends all ranks: they would wait for this one."""
        self._hook(kind, error, trace)
        sys.stdout.flush()
        _print(f"rank {self.rank} of {self.size} ended with {kind.__name__}: {error}")
        self._world.Abort(1)

    def _finish(self) -> None:
        """Wait for all ranks, so that one that has left early is noticed; the first rank tells the launcher."""
        try:
            with self._together(END):
                pass
        except InvalidArgumentError as error:
            _print(f"rank {self.rank} of {self.size} ended before the others: {error}")
        else:
            if self.rank == 0 and DONE in os.environ:
                Path(os.environ[DONE]).write_text(f"{self.size} ranks finished\n")


def _when_all_ranks_have_started(timeout: float) -> Any:
    """The module mpi4py.MPI. Its import waits for all ranks, and lets no other thread run."""
    faulthandler.dump_traceback_later(timeout, exit=True)  # it shows this function's name
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise MissingExtraError(
            f"this program was started with {started_by_mpi()} ranks, which need mpi4py and an MPI: {NEEDS}."
        ) from error
    finally:
        faulthandler.cancel_dump_traceback_later()
    return MPI


def see_own_gpu(local_rank: int, ranks: int) -> None:
    """Have this rank see one GPU, where its machine has one for each rank. No library may have asked for GPUs before."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    files = sorted(Path("/dev").glob("nvidia[0-9]*"))
    gpus = [str(number) for number in range(len(files))] if named is None else named.split(",")
    if ranks > 1 and len(gpus) >= ranks:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus[local_rank]


def _known_to_mpi(array: Array) -> np.dtype[Any]:
    """The dtype in which MPI adds up and compares."""
    if array.dtype.kind == "b":
        return np.dtype(np.uint8)
    return np.dtype(np.float32) if array.dtype.itemsize < 4 and array.dtype.kind in "fV" else array.dtype


@functools.lru_cache(256)
def _sent(call: str) -> Array:
    """A call in a fixed number of bytes."""
    text = call.encode()
    if len(text) > _CALL_BYTES:  # of arrays with many axes
        text = text[: _CALL_BYTES - 20] + b"... " + hashlib.sha256(text).hexdigest()[:16].encode()
    return np.frombuffer(text.ljust(_CALL_BYTES, b"\0"), np.uint8)


def processors() -> set[int]:
    """The processors that this process may run on."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def _print(reason: str) -> None:
    print(f"minikeras.distribute: {reason}", file=sys.stderr, flush=True)
