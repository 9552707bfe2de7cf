"""Collective operations on arrays of GPUs, by NCCL through CuPy. Each rank has a GPU of its own.

No device has run this: what is tested are the calls, with a double of NCCL, and that CuPy takes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..core.arrays import namespace
from ..errors import MissingExtraError
from ..types import Array
from .communicator import Communicator, check_calls, described

_ID_LENGTH = 128
_CALL_BYTES = 80
_NOT_READY = 600
"""CUDA's status of an event that is still to come: cudaErrorNotReady."""
_KINDS = {"int8": "INT8", "uint8": "UINT8", "bool": "UINT8", "int32": "INT32", "uint32": "UINT32", "int64": "INT64"}
_KINDS |= {"uint64": "UINT64", "float16": "FLOAT16", "float32": "FLOAT32", "float64": "FLOAT64", "bfloat16": "FLOAT32"}
"""NCCL's names of dtypes. bfloat16 is added up as float32."""


class NcclCommunicator:
    """A `Communicator` for arrays on the GPUs of these ranks.

    Args:
        ranks: over which the GPUs find each other, and tell what they call.
        cupy: the library of the arrays.
        nccl: the module cupy.cuda.nccl.
        timeout: seconds that an operation may take before it is ended.
    """

    def __init__(self, ranks: Communicator, cupy: Any, nccl: Any, timeout: float = 600.0) -> None:
        if not nccl.available:
            raise MissingExtraError("CuPy finds no NCCL, which several ranks with GPUs need: pip install nvidia-nccl-cu13.")
        self._cupy, self._names, self._timeout, self._ranks = cupy, nccl, timeout, ranks
        self.rank, self.size, self.local_rank = ranks.rank, ranks.size, ranks.local_rank
        given = np.frombuffer(nccl.get_unique_id() if self.rank == 0 else bytes(_ID_LENGTH), np.uint8)
        self._nccl = nccl.NcclCommunicator(self.size, ranks.broadcast(given, 0).tobytes(), self.rank)

    def all_reduce(self, array: Array, operation: str) -> Array:
        """The sum, maximum or minimum of the arrays of all ranks."""
        sent, kind = self._sent(array)
        result = self._cupy.empty(array.shape, sent.dtype)
        operator = getattr(self._names, f"NCCL_{operation.upper()}")
        self._carry_out(
            described(f"all_reduce {operation}", array),
            lambda stream: self._nccl.allReduce(sent.data.ptr, result.data.ptr, sent.size, kind, operator, stream),
        )
        return result.astype(array.dtype, copy=False)

    def all_gather(self, array: Array) -> Array:
        """The arrays of all ranks, stacked along a new first axis."""
        sent, kind = self._sent(array)
        result = self._cupy.empty((self.size, *array.shape), sent.dtype)
        self._carry_out(
            described("all_gather", array),
            lambda stream: self._nccl.allGather(sent.data.ptr, result.data.ptr, sent.size, kind, stream),
        )
        return result.astype(array.dtype, copy=False)

    def broadcast(self, array: Array, root: int) -> Array:
        """The array of one rank."""
        sent, kind = self._sent(array)
        result = self._cupy.empty(array.shape, sent.dtype)
        self._carry_out(
            described(f"broadcast from {root}", array),
            lambda stream: self._nccl.broadcast(sent.data.ptr, result.data.ptr, sent.size, kind, root, stream),
        )
        return result.astype(array.dtype, copy=False)

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self._ranks.barrier()

    def _sent(self, array: Array) -> tuple[Any, int]:
        """The array without gaps, with an axis at least, in a dtype that NCCL knows, and NCCL's number of that."""
        wide = array.astype("float32") if array.dtype.name == "bfloat16" else array
        return self._cupy.ascontiguousarray(wide), getattr(self._names, f"NCCL_{_KINDS[array.dtype.name]}")

    def _carry_out(self, call: str, enqueue: Callable[[int], None]) -> None:
        """Carry out an operation that all ranks call, and wait for it: a GPU that waits for another one never says so."""
        mark = np.frombuffer(call.encode()[:_CALL_BYTES].ljust(_CALL_BYTES, b"\0"), np.uint8)
        check_calls([bytes(one).rstrip(b"\0").decode() for one in self._ranks.all_gather(mark)])
        stream = self._cupy.cuda.get_current_stream()
        ended, began = self._cupy.cuda.Event(), time.monotonic()
        try:
            enqueue(stream.ptr)
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


_of_ranks: WeakKeyDictionary[Communicator, dict[int, NcclCommunicator]] = WeakKeyDictionary()


def nccl_ranks(ranks: Communicator, arrays: Sequence[Array]) -> NcclCommunicator | None:
    """The communicator of these ranks for such arrays; None if one is on the host, or of a dtype NCCL lacks."""
    on_gpus = all(type(one).__module__.partition(".")[0] == "cupy" and one.dtype.name in _KINDS for one in arrays)
    if ranks.size == 1 or not on_gpus:
        return None
    known = _of_ranks.setdefault(ranks, {})
    if ranks.rank not in known:
        known[ranks.rank] = NcclCommunicator(ranks, namespace(arrays[0]), import_module("cupy.cuda.nccl"))
    return known[ranks.rank]
