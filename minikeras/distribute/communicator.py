"""The collective operations of ranks, and what carries them out: one process, threads of one process, processes that MPI has
started, and GPUs by NCCL through CuPy.

A rank is one of the processes that run the same program on their own part of the data. Before each collective operation of MPI
the ranks tell each other which one they call, in a microsecond. So a rank that does not come is noticed in Python, which can
wait without using the processor; and what follows is MPI's fastest, which waits for nothing. A failure of one rank ends all,
with its reason and a status above 0.

No device has run NCCL: what is tested are the calls, with a double of NCCL, and that CuPy takes them.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..core import Owned, namespace
from ..errors import InvalidArgumentError, MissingExtraError
from ..nn_ops.streams import own_streams
from ..parallel import processors
from ..ranks import Communicator
from ..types import Array as DeviceArray

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


class ThreadCommunicator(Communicator):
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
    def rank(self) -> int:  # type: ignore[override]
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

    def exchanged(self, call: str, array: Array) -> Sequence[Array]:
        """See `Communicator`."""
        self._given[self.rank] = described(call, array), np.array(array)
        self._barrier.wait(self._timeout)
        calls, arrays = zip(*self._given, strict=True)
        self._barrier.wait(self._timeout)
        check_calls(calls)
        return arrays


# Processes that MPI has started ----------------------------------------------------------------------------------------


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


class MpiCommunicator(Communicator):
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
                report(
                    f"rank {self.rank} waited {self._timeout:g} s in '{waits[0]}': another rank, one without such a line, "
                    "hangs or takes longer. Raise initialize(timeout=...) if it only does."
                )
                os._exit(HUNG)

    def _abort_for(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """An exception that no code caught ends all ranks: they would wait for this one."""
        self._hook(kind, error, trace)
        sys.stdout.flush()
        report(f"rank {self.rank} of {self.size} ended with {kind.__name__}: {error}")
        self._world.Abort(1)

    def _finish(self) -> None:
        """Wait for all ranks, so that one that has left early is noticed; the first rank tells the launcher."""
        try:
            with self._together(END):
                pass
        except InvalidArgumentError as error:
            report(f"rank {self.rank} of {self.size} ended before the others: {error}")
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


def report(reason: str) -> None:
    """Say on stderr what ranks, or what starts them, have to say."""
    print(f"minikeras.distribute: {reason}", file=sys.stderr, flush=True)


# GPUs, by NCCL ---------------------------------------------------------------------------------------------------------


_ID_LENGTH = 128
_NOT_READY = 600
"""CUDA's status of an event that is still to come: cudaErrorNotReady."""
_KINDS = {"int8": "INT8", "uint8": "UINT8", "bool": "UINT8", "int32": "INT32", "uint32": "UINT32", "int64": "INT64"}
_KINDS |= {"uint64": "UINT64", "float16": "FLOAT16", "float32": "FLOAT32", "float64": "FLOAT64", "bfloat16": "FLOAT32"}
"""NCCL's names of dtypes. bfloat16 is added up as float32."""


class NcclCommunicator(Communicator):
    """A `Communicator` for arrays on the GPUs of these ranks.

    Args:
        ranks: over which the GPUs find each other, and tell what they call.
        cupy: the library of the arrays.
        nccl: the module cupy.cuda.nccl.
        timeout: seconds that an operation may take before it is ended.
    """

    def __init__(self, ranks: Communicator, cupy: ModuleType, nccl: Any, timeout: float = 600.0) -> None:
        if not nccl.available:
            raise MissingExtraError("CuPy finds no NCCL, which several ranks with GPUs need: pip install nvidia-nccl-cu13.")
        self._cupy, self._names, self._timeout, self._ranks = cupy, nccl, timeout, ranks
        self.rank, self.size, self.local_rank = ranks.rank, ranks.size, ranks.local_rank
        given = np.frombuffer(nccl.get_unique_id() if self.rank == 0 else bytes(_ID_LENGTH), np.uint8)
        self._nccl = nccl.NcclCommunicator(self.size, ranks.broadcast(given, 0).tobytes(), self.rank)

    def all_reduce(self, array: DeviceArray, operation: str) -> DeviceArray:
        """The sum, maximum or minimum of the arrays of all ranks."""
        operator = getattr(self._names, f"NCCL_{operation.upper()}")
        call = lambda *given: self._nccl.allReduce(*given[:4], operator, given[4])
        return self._carried_out(f"all_reduce {operation}", array, array.shape, call)

    def all_gather(self, array: DeviceArray) -> DeviceArray:
        """The arrays of all ranks, stacked along a new first axis."""
        return self._carried_out("all_gather", array, (self.size, *array.shape), self._nccl.allGather)

    def broadcast(self, array: DeviceArray, root: int) -> DeviceArray:
        """The array of one rank."""
        call = lambda *given: self._nccl.broadcast(*given[:4], root, given[4])
        return self._carried_out(f"broadcast from {root}", array, array.shape, call)

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self._ranks.barrier()

    def _carried_out(self, name: str, array: DeviceArray, shape: Sequence[int], enqueue: Callable[..., None]) -> DeviceArray:
        """The result of an operation that all ranks call, which is waited for: a GPU that waits for another one never says so.

        Args:
            name: what ranks tell each other of it.
            array: sent without gaps, with an axis at least, in a dtype that NCCL knows.
            shape: of the result.
            enqueue: gets the addresses of array and result, the array's size, NCCL's number of its dtype, and a stream.
        """
        call = described(name, array)
        check_calls([bytes(one).rstrip(b"\0").decode() for one in self._ranks.all_gather(_sent(call))])
        sent = self._cupy.ascontiguousarray(array.astype("float32") if array.dtype.name == "bfloat16" else array)
        result, kind = self._cupy.empty(shape, sent.dtype), getattr(self._names, f"NCCL_{_KINDS[array.dtype.name]}")
        stream = self._cupy.cuda.get_current_stream()
        ended, began = self._cupy.cuda.Event(), time.monotonic()
        try:
            enqueue(sent.data.ptr, result.data.ptr, sent.size, kind, stream.ptr)
            ended.record(stream)
            while (status := self._cupy.cuda.runtime.eventQuery(ended.ptr)) == _NOT_READY:
                self._nccl.check_async_error()
                if time.monotonic() - began > self._timeout:
                    raise TimeoutError(f"NCCL took more than {self._timeout:g} s for '{call}'.")
                time.sleep(1e-5)
            if status:
                ended.synchronize()  # raises what CUDA says
        except BaseException:
            self._nccl.abort()
            raise
        return result.astype(array.dtype, copy=False)


_of_ranks: WeakKeyDictionary[Communicator, dict[int, NcclCommunicator]] = WeakKeyDictionary()


def nccl_ranks(ranks: Communicator, arrays: Sequence[DeviceArray]) -> NcclCommunicator | None:
    """The communicator of these ranks for such arrays; None if one is on the host, or of a dtype NCCL lacks."""
    on_gpus = all(type(one).__module__.partition(".")[0] == "cupy" and one.dtype.name in _KINDS for one in arrays)
    if ranks.size == 1 or not on_gpus:
        return None
    known = _of_ranks.setdefault(ranks, {})
    if ranks.rank not in known:
        known[ranks.rank] = NcclCommunicator(ranks, namespace(arrays[0]), import_module("cupy.cuda.nccl"))
    return known[ranks.rank]
