"""Ranks that are processes, which MPI has started. A failure of one ends them all, with its reason and a status above 0."""

from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ..errors import MissingExtraError
from .communicator import Array

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


def started_by_mpi() -> int:
    """How many ranks the program was started with; 1 without MPI."""
    return max([int(os.environ[name]) for name in _SIZES if os.environ.get(name, "").isdigit()], default=1)


class MpiCommunicator:
    """The ranks of MPI's world.

    Args:
        timeout: seconds to wait for other ranks before the job is ended.

    Raises:
        MissingExtraError: without mpi4py.
    """

    def __init__(self, timeout: float = 600.0) -> None:
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise MissingExtraError(
                f"this program was started with {started_by_mpi()} ranks, which need mpi4py and an MPI: {NEEDS}."
            ) from error
        self._mpi, self._world, self._timeout = MPI, MPI.COMM_WORLD, timeout
        self.rank, self.size = self._world.rank, self._world.size
        local = self._world.Split_type(MPI.COMM_TYPE_SHARED)
        self.local_rank = int(local.rank)
        local.Free()
        if self.rank == 0 and DONE in os.environ:
            Path(os.environ[DONE]).with_name(JOINED).touch()
        sys.excepthook = self._abort_for
        atexit.register(self._finish)

    def all_reduce(self, array: Array, operation: str) -> Array:
        """See `Communicator`. Floats of 16 bits are added up as float32, which MPI knows."""
        sent = _known_to_mpi(array)
        result = np.empty_like(sent)
        operator = {"sum": self._mpi.SUM, "max": self._mpi.MAX, "min": self._mpi.MIN}[operation]
        self._wait(self._world.Iallreduce(sent, result, operator), f"all_reduce of {array.dtype}{list(array.shape)}")
        return result.astype(array.dtype, copy=False)

    def all_gather(self, array: Array) -> Array:
        """See `Communicator`."""
        sent = _known_to_mpi(array)
        result = np.empty((self.size, *sent.shape), sent.dtype)
        self._wait(self._world.Iallgather(sent, result), f"all_gather of {array.dtype}{list(array.shape)}")
        return result.astype(array.dtype, copy=False)

    def broadcast(self, array: Array, root: int) -> Array:
        """See `Communicator`."""
        sent = _known_to_mpi(array).copy()
        self._wait(self._world.Ibcast(sent, root), f"broadcast of {array.dtype}{list(array.shape)}")
        return sent.astype(array.dtype, copy=False)

    def barrier(self) -> None:
        """See `Communicator`."""
        self._wait(self._world.Ibarrier(), "barrier")

    # Failures --------------------------------------------------------------------------------------------------------------

    def _wait(self, request: Any, name: str) -> None:
        """Wait for a collective operation; end the job if the others do not come."""
        began = time.monotonic()
        while not request.Test():
            waited = time.monotonic() - began
            if waited > self._timeout:
                self._abort(
                    f"rank {self.rank} waited {self._timeout:g} s in {name}: another rank hangs, has ended, or calls other "
                    "operations. Raise initialize(timeout=...) if it only needs longer.",
                    HUNG,
                )
            if waited > _SPIN:
                time.sleep(min(1e-3, waited / 20))  # more ranks than processors: let the others compute

    def _abort(self, reason: str, status: int) -> None:
        print(f"minikeras.distribute: {reason}", file=sys.stderr, flush=True)
        self._world.Abort(status)

    def _abort_for(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """An exception that no code caught ends all ranks: they would wait for this one."""
        traceback.print_exception(kind, error, trace)
        sys.stdout.flush()
        self._abort(f"rank {self.rank} of {self.size} ended with {kind.__name__}: {error}", 1)

    def _finish(self) -> None:
        """Wait for all ranks, so that one that has left early is noticed; the first rank tells the launcher."""
        self.barrier()
        if self.rank == 0 and DONE in os.environ:
            Path(os.environ[DONE]).write_text(f"{self.size} ranks finished\n")


def _known_to_mpi(array: Array) -> Array:
    """A contiguous array of a dtype that MPI adds up and compares."""
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    elif array.dtype.itemsize < 4 and array.dtype.kind in "fV":
        array = array.astype(np.float32)
    return np.ascontiguousarray(array).reshape(array.shape)
