"""A GPU that does not exist: memory of the host, poisoned with NaN, in which whole recorded steps are carried out.

It keeps the rules of a capture: nothing is allocated, brought from the host or waited for while one goes on. Every address
has to lie in memory that is alive. Kernels are carried out by NumPy's kernels of the instructions that they come from, or from
their sources by g++; products as cublasLt describes them, column by column.
"""

import contextlib
import ctypes
import functools
import threading
import weakref

import numpy as np
import shim
from strict_array import StrictArray, strict

from minikeras.compiler.executors.cuda_graph import device
from minikeras.compiler.executors.cuda_graph.device import Memory
from minikeras.compiler.executors.cuda_graph.lt import Epilogue, mask_width
from minikeras.compiler.executors.numpy.lowering import kernel_of
from minikeras.compiler.ir import Slot, outputs_of
from minikeras.compiler.planning import DEVICE_ALIGNMENT

MASKS = (Epilogue.RELU_MASK_BIAS, Epilogue.MASKED, Epilogue.MASKED_BIAS_GRADIENT)


class Refused(RuntimeError):
    """A capture was told to do what it cannot."""


class Double:
    """The device.

    Args:
        sources: whether kernels are carried out from their sources.

    Attributes:
        log: what was enqueued, by name, as it was carried out.
        captures: how many graphs were captured, with the number of their nodes in `nodes`.
        lacking: epilogues for which there is no algorithm.
        breaks: a number of nodes after which one fails, or None.
    """

    def __init__(self, sources=False):
        self._sources = sources
        self.log, self.nodes, self.lacking, self.breaks = [], [], set(), None
        self.matmuls = []
        self._alive = {}
        self._graph = None
        self._joined, self._lock = 0, threading.RLock()
        self._given = {}

    # Memory ------------------------------------------------------------------------------------------------------------

    def memory(self, size):
        self._not_captured("memory")
        whole = np.full(size + 512, 0xFF, np.uint8)
        self._alive[id(whole)] = weakref.ref(whole)
        return Memory(-(-whole.ctypes.data // 256) * 256, whole)

    empty = memory

    @property
    def pool_bytes(self):
        return self.bytes_alive()

    def array(self, memory, start, shape, dtype):
        first = memory.address - memory.root.ctypes.data + start
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return StrictArray(memory.root[first : first + size].view(dtype).reshape(shape))

    def address(self, array):
        assert array._values.flags.c_contiguous
        self._outside = getattr(self, "_outside", weakref.WeakSet())
        self._remember(array._values)
        return array._values.ctypes.data

    def _remember(self, values):
        """Arrays that programs of the user have made are memory of the device too."""
        owner = values if values.base is None else values.base
        while getattr(owner, "base", None) is not None:
            owner = owner.base
        with contextlib.suppress(TypeError):
            self._alive[id(owner)] = weakref.ref(owner)

    def is_whole(self, array):
        return array._values.flags.c_contiguous

    def contiguous(self, array):
        self._not_captured("a copy by CuPy")
        return array if self.is_whole(array) else array.copy()

    def view(self, address, shape, dtype):
        """Memory as an array; it has to be alive and large enough."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if not size:
            return np.empty(shape, dtype)
        for key, reference in list(self._alive.items()):
            owner = reference()
            if owner is None:
                del self._alive[key]
            elif owner.ctypes.data <= address and address + size <= owner.ctypes.data + owner.nbytes:
                return np.frombuffer((ctypes.c_char * size).from_address(address), dtype).reshape(shape)
        raise AssertionError(f"{size} bytes at {address:x} are no memory of the device")

    def bytes_alive(self):
        return sum(owner.nbytes for reference in self._alive.values() if (owner := reference()) is not None)

    # What is enqueued --------------------------------------------------------------------------------------------------

    def load(self, module, kernels):
        self._not_captured("loading a module")
        assert all(f"void {name}(" in module.source for name in module.names)
        if self._sources:
            return list(zip(module.names, shim.compiled(kernels), strict=True))
        return [(name, None) for name in module.names]

    def launch(self, launch, number, function, addresses):
        name, source = function
        if source is None:
            self._enqueue(f"kernel {name}", functools.partial(self._launch, launch, number, tuple(addresses)))
            return
        kernel = launch.kernels[number]
        for x, address in zip((*kernel.inputs, *kernel.outputs), addresses, strict=False):
            self.view(address, x.shape or (), x.dtype if x.shape is not None else np.float64)
        self._enqueue(f"kernel {name}", lambda: source(tuple(addresses)))

    def multiply(self, matmul, operands):
        self._not_captured("asking for an algorithm")
        assert (matmul.epilogue in MASKS) == (operands.mask != 0)
        if matmul.epilogue in self.lacking or any(address % DEVICE_ALIGNMENT for address in operands):
            return None
        return lambda: self._enqueue(f"product {matmul.epilogue.name}", lambda: self._multiply(matmul, operands))

    def copy(self, to, start, size):
        def copy():
            self.view(to, (size,), np.uint8)[:] = self.view(start, (size,), np.uint8).copy()

        self._enqueue("copy", copy)

    def send(self, to, values):
        self._not_captured("a copy from the host")
        kept = values.copy()

        def send():
            self.view(to, kept.shape, kept.dtype)[...] = kept

        self._enqueue("send", send)

    @contextlib.contextmanager
    def joined(self):
        with self._lock:
            self._joined += 1
            try:
                yield
            finally:
                self._joined -= 1

    def capture(self, enqueue):
        self._not_captured("a capture")
        self._graph = graph = []
        try:
            enqueue()
        finally:
            self._graph = None
        self.nodes.append([name for name, _ in graph])

        def replay():
            self.log.append(f"graph of {len(graph)}")
            for _, one in graph:
                self._count()
                one()

        return replay

    def _enqueue(self, name, run):
        assert self._joined, f"{name} was enqueued without joining the streams"
        if self._graph is not None:
            self._graph.append((name, run))
            return
        self._count()
        self.log.append(name)
        run()

    def _count(self):
        if self.breaks is not None:
            self.breaks -= 1
            if self.breaks < 0:
                self.breaks = None
                raise RuntimeError("the device broke")

    def _not_captured(self, what):
        if self._graph is not None:
            raise Refused(f"{what} while a stream is captured")

    def _launch(self, launch, number, addresses):
        kernel = launch.kernels[number]
        own = {x.key: (address, x) for x, address in zip((*kernel.inputs, *kernel.outputs), addresses, strict=False)}
        self._given = own if number == 0 else self._given | own
        if number < len(launch.kernels) - 1:
            return
        at = {
            key: self.view(address, x.shape or (), x.dtype if x.shape is not None else np.float64)
            for key, (address, x) in self._given.items()
        }

        def value(x):
            if not isinstance(x, Slot):
                return x
            array = at[x.key] if x.key in at else np.empty(x.shape, x.dtype)
            return float(array) if x.shape is None else array.reshape(x.shape).copy() if x.shape else array.reshape(())[()]

        with np.errstate(all="ignore"):
            results = kernel_of(launch.record, np)(*map(value, launch.record.inputs))
            results = results if type(launch.record.outputs) is tuple else (results,)
            results = [getattr(array, "_values", array) for array in results]
            known = {y.key: array for y, array in zip(outputs_of(launch.record), results, strict=True)}
        for kernel in launch.kernels:
            for y in kernel.outputs:
                if y.key in known:
                    at[y.key][...] = np.asarray(known[y.key]).reshape(y.shape)

    def _multiply(self, matmul, operands):
        self.matmuls.append(matmul)
        places = zip((operands.a, operands.b, operands.d), matmul.matrices, strict=True)
        a, b, result = [self._matrix(address, shape, matmul.dtype) for address, shape in places]
        a, b = a.T if matmul.b_is_transposed else a, b.T if matmul.a_is_transposed else b
        wide = np.float32 if matmul.dtype.itemsize == 2 else matmul.dtype  # cublasLt's compute type
        a, b = a.astype(wide), b.astype(wide)
        with np.errstate(all="ignore"):
            product = a @ b
            if matmul.epilogue in (Epilogue.BIAS, Epilogue.RELU_BIAS, Epilogue.RELU_MASK_BIAS):
                product = product + self.view(operands.vector, (len(product),), matmul.dtype)[:, None].astype(wide)
            if matmul.epilogue is Epilogue.RELU_MASK_BIAS:
                self._mask(matmul, operands)[...] = np.packbits(self._padded(product > 0), axis=1, bitorder="little")
            if matmul.epilogue in (Epilogue.RELU_BIAS, Epilogue.RELU_MASK_BIAS):
                product = np.maximum(product, 0)
            if matmul.epilogue in (Epilogue.MASKED, Epilogue.MASKED_BIAS_GRADIENT):
                bits = np.unpackbits(self._mask(matmul, operands), axis=1, bitorder="little")
                product = np.where(bits[:, : len(product)].T, product, 0)
            if matmul.epilogue is Epilogue.MASKED_BIAS_GRADIENT:
                self.view(operands.vector, (len(product),), matmul.dtype)[:] = product.sum(axis=1)
            if matmul.epilogue is Epilogue.BIAS_GRADIENT:
                self.view(operands.vector, (len(product),), matmul.dtype)[:] = a.sum(axis=1)
            result[...] = product

    def _mask(self, matmul, operands):
        """A row of bits for each column of d. Their order within bytes is cublasLt's own affair: it writes and reads them."""
        return self.view(operands.mask, (matmul.rows, mask_width(matmul.columns) // 8), np.uint8)

    @staticmethod
    def _padded(bits):
        """Columns as rows, with garbage where the leading dimension is longer."""
        rows = mask_width(len(bits))
        whole = np.ones((bits.shape[1], rows), bool)
        whole[:, : len(bits)] = bits.T
        return whole

    def _matrix(self, address, sizes, dtype):
        return self.view(address, sizes[::-1], dtype).T


def install(sources: bool = False) -> Double:
    """A new device for strict arrays."""
    found = Double(sources)
    device.register(strict, found)
    return found
