"""The interface of the executor to a GPU: CuPy's memory, streams and graphs. A test double of it serves the tests.

Nothing of `CuPyDevice` has run on a GPU yet. Only a device shows that a capture succeeds with the algorithms that cublasLt
proposes, that memory and graphs live as long as they must, that events join streams where they must, and what all this takes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ....core import ForkSafeLock, logger
from ....errors import InvalidArgumentError
from ....nn_ops.philox_cuda import OPTIONS
from ....types import Array
from . import lt
from .nodes import CudaKernel, CudaModule, LaunchNode


class Memory(NamedTuple):
    """A piece of memory on a device.

    Attributes:
        address: of its first byte, a multiple of 256.
        root: the object that owns it; every array over it refers to that.
    """

    address: int
    root: Any


class CuPyDevice:
    """A GPU through CuPy, on which programs are captured. Enqueued work runs in its order.

    Graphs are captured and replayed on one stream that does not block others.
    """

    RING = 8
    """Pinned buffers that take turns: the host waits for a copy from one only when it comes round again."""

    def __init__(self, cupy: ModuleType) -> None:
        self._cupy, self._runtime, self._gpu = cupy, cupy.cuda.runtime, cupy.cuda.Device()
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._pool = cupy.cuda.MemoryPool()
        self._workspace = self.memory(lt.WORKSPACE)
        self._lt = lt.CublasLt(lt.library(), self._workspace.address)
        self._ring: list[_Pinned | None] = [None] * self.RING
        self._turn = 0
        self._lock = ForkSafeLock()
        self._began, self._ended = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]

    def memory(self, size: int) -> Memory:
        """Bytes of the private pool, which gives them to no one else while a graph may write there.

        Where it finds none, the usual pool gives back what it keeps.
        """
        try:
            return self._of_pool(size)
        except MemoryError:  # as CuPy's error is
            self._cupy.get_default_memory_pool().free_all_blocks()
            return self._of_pool(size)

    def _of_pool(self, size: int) -> Memory:
        with self._current(), self._cupy.cuda.using_allocator(self._pool.malloc):
            return self.empty(size)

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        """Within the block the stream of graphs is CuPy's current one; then the former, which CuPy forgets after `use`."""
        before = self._cupy.cuda.get_current_stream()
        try:
            with self._stream:
                yield
        finally:
            before.use()

    @property
    def pool_bytes(self) -> int:
        """The bytes that the private pool has taken from the GPU."""
        return int(self._pool.total_bytes())

    def array(self, memory: Memory, start: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array over a piece of memory: a view of its root."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return memory.root[start : start + size].view(dtype).reshape(shape)

    def empty(self, size: int) -> Memory:
        """Bytes of CuPy's usual pool, from where arrays of the user come."""
        root = self._cupy.empty(max(size, 1), "uint8")
        return Memory(int(root.data.ptr), root)

    def address(self, array: Array) -> int:
        """The address of a contiguous array; others are refused."""
        assert array.flags.c_contiguous
        there, here = array.device.id, self._gpu.id
        if there != here:
            raise InvalidArgumentError(
                f"an array on GPU:{there} met a function that is carried out on GPU:{here}. "
                f"Call it there, where it is compiled anew: with tf.device('GPU:{there}'): ..."
            )
        return int(array.data.ptr)

    def is_whole(self, array: Array) -> bool:
        """True if an array is contiguous."""
        return bool(array.flags.c_contiguous)

    def contiguous(self, array: Array) -> Array:
        """The array, or a contiguous copy of it."""
        return self._cupy.ascontiguousarray(array)

    def load(self, module: CudaModule, kernels: Sequence[CudaKernel]) -> list[Any]:
        """The functions of a module, one for each kernel, compiled by NVRTC or found in CuPy's cache on disk."""
        raw = self._cupy.RawModule(code=module.source, options=OPTIONS, backend="nvrtc")
        return [raw.get_function(name) for name in module.names]

    def launch(self, launch: LaunchNode, number: int, function: Callable[..., Any], addresses: Sequence[int]) -> None:
        """Enqueue one of the kernels of a launch on the stream of graphs, which is CuPy's present one."""
        kernel = launch.kernels[number]
        function((kernel.blocks,), (kernel.threads,), tuple(map(np.uintp, addresses)))

    def multiply(self, product: lt.MatrixProduct, operands: lt.Operands) -> Callable[[], None] | None:
        """A function that enqueues a product of cublasLt; None if there is no algorithm for it."""
        enqueue = self._lt.prepare(product, operands)
        return None if enqueue is None else functools.partial(enqueue, int(self._stream.ptr))

    def copy(self, to: int, start: int, size: int) -> None:
        """Enqueue a copy of bytes on the device."""
        if size:
            self._runtime.memcpyAsync(to, start, size, self._runtime.memcpyDeviceToDevice, self._stream.ptr)

    def send(self, to: int, values: np.ndarray[Any, Any]) -> None:
        """Enqueue a copy from the host, through pinned memory: that of the values may be written again at once."""
        if not values.nbytes:
            return
        place = self._turn = (self._turn + 1) % self.RING
        pinned = self._ring[place]
        if pinned is not None:
            pinned.copied.synchronize()
        if pinned is None or pinned.bytes.nbytes < values.nbytes:
            pinned = self._ring[place] = _Pinned.of(self._cupy, values.nbytes)
        pinned.bytes[: values.nbytes] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self._runtime.memcpyAsync(
            to, pinned.bytes.ctypes.data, values.nbytes, self._runtime.memcpyHostToDevice, self._stream.ptr
        )
        pinned.copied.record(self._stream)

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """Within the block, earlier work of CuPy's functions comes first; work that they enqueue after the block comes later.

        Events see to it, so the host does not wait; within the block they are on the stream of graphs.

        Each thread has a current GPU, at first the first one: within the block it is this one.
        """
        with self._lock, self._gpu:
            outside = self._cupy.cuda.get_current_stream()
            self._began.record(outside)
            self._stream.wait_event(self._began)
            try:
                with self._current():
                    yield
            finally:
                self._ended.record(self._stream)
                outside.wait_event(self._ended)

    def capture(self, enqueue: Callable[[], None]) -> Callable[[], None]:
        """A function that enqueues, as one CUDA graph, all work that the given function enqueues.

        A capture that fails is ended, so that the stream can be used again.
        """
        self._stream.begin_capture()
        try:
            enqueue()
        except BaseException:
            with contextlib.suppress(Exception):
                self._stream.end_capture()
            raise
        graph = self._stream.end_capture()
        return functools.partial(graph.launch, self._stream)


class _Pinned(NamedTuple):
    """Memory of the host that a device can read by itself, and the event of the last copy from it."""

    bytes: np.ndarray[Any, Any]
    copied: Any

    @classmethod
    def of(cls, cupy: ModuleType, size: int) -> _Pinned:
        size = max(size, 4096)
        block = cupy.cuda.alloc_pinned_memory(size)
        return cls(np.frombuffer(block, np.uint8, size), cupy.cuda.Event(disable_timing=True))


_devices: dict[Any, CuPyDevice | None] = {}
"""Devices by library, and for CuPy by the number of the GPU."""


def device_of(library: Any) -> CuPyDevice | None:
    """The present device of a library, made when it is first asked for; None if there is none for graphs."""
    is_cupy = getattr(library, "__name__", "") == "cupy"
    key = (library, library.cuda.runtime.getDevice()) if is_cupy else library
    if key not in _devices:
        try:
            _devices[key] = CuPyDevice(library) if is_cupy else None
        except Exception as error:  # a driver with broken libraries raises OSError, RuntimeError and CuPy's own kinds
            logger.warning("Compiled functions run on the GPU operation by operation, without CUDA graphs: %s", error)
            _devices[key] = None
    return _devices[key]


def register(library: Any, device: CuPyDevice) -> None:
    """Register the device that carries out the programs of a library."""
    _devices[library] = device
