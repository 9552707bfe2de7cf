"""Operations on arrays of GPUs: what is asked of NCCL, with a double of CuPy over threads; and that CuPy has it."""

import ctypes
import inspect
import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from minikeras.distribute.communicator import NcclCommunicator, ThreadCommunicator, nccl_ranks, see_own_gpu
from minikeras.errors import InvalidArgumentError, MissingExtraError

KINDS = {"UINT8": np.uint8, "INT32": np.int32, "INT64": np.int64, "FLOAT16": np.float16, "FLOAT32": np.float32}
KINDS |= {"FLOAT64": np.float64}
OPERATIONS = {"SUM": np.add, "MAX": np.maximum, "MIN": np.minimum}


class Array(np.ndarray):
    """An array with an address, as CuPy's have it."""

    data = property(lambda self: SimpleNamespace(ptr=self.ctypes.data))


def at(pointer, count, kind):
    kind = np.dtype(list(KINDS.values())[kind])
    return np.frombuffer((ctypes.c_char * (count * kind.itemsize)).from_address(pointer), kind)


class Nccl:
    """The part of `cupy.cuda.nccl` that is used, for ranks that are threads."""

    available = True

    def __init__(self, ranks, fails=False):
        vars(self).update({f"NCCL_{name}": place for place, name in enumerate(KINDS)})
        vars(self).update({f"NCCL_{name}": place for place, name in enumerate(OPERATIONS)})
        self.ranks, self.fails, self.aborted = ranks, fails, []

    def get_unique_id(self):
        return bytes(range(128, 256))

    def NcclCommunicator(self, size, unique, rank):
        assert (size, rank, unique) == (self.ranks.size, self.ranks.rank, self.get_unique_id())
        return self

    def allReduce(self, sent, result, count, kind, operation, stream):
        found = self.ranks.all_gather(at(sent, count, kind))
        at(result, count, kind)[:] = list(OPERATIONS.values())[operation].reduce(found)

    def allGather(self, sent, result, count, kind, stream):
        at(result, count * self.ranks.size, kind)[:] = self.ranks.all_gather(at(sent, count, kind)).reshape(-1)

    def broadcast(self, sent, result, count, kind, root, stream):
        at(result, count, kind)[:] = self.ranks.broadcast(at(sent, count, kind), root)

    def check_async_error(self):
        if self.fails:
            raise RuntimeError("NCCL_ERROR_REMOTE_ERROR")

    def abort(self):
        self.aborted.append(threading.get_ident())


def fail():
    raise RuntimeError("cudaErrorIllegalAddress")


def double(status=0):
    """CuPy, whose events have a status of CUDA: 0 for those that have come, 600 for those that have not."""
    event = lambda: SimpleNamespace(record=lambda stream: None, ptr=9, synchronize=fail)
    runtime = SimpleNamespace(eventQuery=lambda pointer: status)
    cuda = SimpleNamespace(Event=event, runtime=runtime, get_current_stream=lambda: SimpleNamespace(ptr=7))
    made = lambda function: lambda *args, **options: function(*args, **options).view(Array)
    return SimpleNamespace(cuda=cuda, **{name: made(getattr(np, name)) for name in ("empty", "ascontiguousarray")})


def on_devices(function, size=3, status=0, fails=False):
    ranks = ThreadCommunicator(size)
    nccl = Nccl(ranks, fails)
    return nccl, lambda: ranks.run(lambda: function(NcclCommunicator(ranks, double(status), nccl, timeout=0.2)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "bool"])
@pytest.mark.parametrize(("operation", "expected"), [("sum", [3, 6]), ("max", [2, 3]), ("min", [0, 1])])
def test_all_ranks_get_the_same(dtype, operation, expected):
    _, run = on_devices(lambda group: group.all_reduce(np.array([group.rank, group.rank + 1]).astype(dtype), operation))
    for found in run():
        assert found.dtype == dtype and found.tolist() == np.array(expected).astype(dtype).tolist()


def test_arrays_are_gathered_and_broadcast():
    def work(group):
        array = np.full((2, 2), group.rank, np.float32).T
        return group.all_gather(array)[:, 0, 0].tolist(), group.broadcast(array, 2).tolist()

    _, run = on_devices(work)
    assert run() == [([0, 1, 2], [[2, 2], [2, 2]])] * 3


def test_a_number_stays_a_number():
    def work(group):
        one = np.array(group.rank, np.float32)
        found = group.all_reduce(one, "sum"), group.broadcast(one, 1), group.all_gather(one)
        return [(array.shape, array.tolist()) for array in found]

    _, run = on_devices(work)
    assert run() == [[((), 3.0), ((), 1.0), ((3,), [0.0, 1.0, 2.0])]] * 3


def test_numbers_that_nccl_does_not_know_go_over_the_host():
    class Complex:
        dtype = np.dtype("complex64")

    Complex.__module__ = "cupy"
    ranks = ThreadCommunicator(2)
    assert nccl_ranks(ranks, [Complex()]) is None


def test_ranks_that_call_other_operations_are_told_which():
    _, run = on_devices(lambda group: group.all_reduce(np.zeros(2 + group.rank, np.float32), "sum"))
    with pytest.raises(InvalidArgumentError, match=r"'all_reduce sum float32\[2\]' on 0; 'all_reduce sum float32\[3\]' on 1"):
        run()


@pytest.mark.parametrize(
    ("status", "fails", "error"),
    [(600, True, "NCCL_ERROR_REMOTE_ERROR"), (600, False, "took more than 0.2 s"), (700, False, "cudaErrorIllegalAddress")],
)
def test_an_operation_that_fails_or_hangs_is_ended(status, fails, error):
    nccl, run = on_devices(lambda group: group.all_reduce(np.ones(2, np.float32), "sum"), status=status, fails=fails)
    with pytest.raises((RuntimeError, TimeoutError), match=error):
        run()
    assert len(nccl.aborted) == 3


def test_without_nccl_the_error_names_the_package():
    ranks = ThreadCommunicator(2)
    with pytest.raises(MissingExtraError, match="pip install nvidia-nccl-cu13"):
        ranks.run(lambda: NcclCommunicator(ranks, double(), SimpleNamespace(available=False)))


@pytest.mark.parametrize(("named", "expected"), [("4,5,6,7", "6"), ("0,1", "0,1"), ("", "")])
def test_a_rank_sees_one_gpu_where_there_is_one_for_each(named, expected, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    see_own_gpu(2, 4)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == expected


@pytest.mark.cupy
@pytest.mark.filterwarnings("ignore:.*nccl library could not be loaded")
def test_cupy_has_what_is_asked_of_nccl():
    nccl = pytest.importorskip("cupy.cuda.nccl")
    if not nccl.available:
        pytest.skip("CuPy finds no NCCL")
    unique = nccl.get_unique_id()
    assert type(unique) is bytes and len(unique) == 128
    with pytest.raises(nccl.NcclError):  # of a rank that there is not
        nccl.NcclCommunicator(1, unique, 5)
    for name in ("SUM", "MAX", "MIN", *KINDS, "INT8", "UINT32", "UINT64"):
        assert isinstance(getattr(nccl, f"NCCL_{name}"), int)
    for name in ("allReduce", "allGather", "broadcast", "check_async_error", "abort"):
        assert inspect.isroutine(getattr(nccl.NcclCommunicator, name))
