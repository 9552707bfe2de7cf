"""CUDA C on the CPU: a source is compiled by g++, the threads of a block are fibers that take turns at barriers.

Arrays note who reads and writes each element, so a run fails if threads race, in whatever order they ran, if an element lies
outside of its array, if shared memory is read before it is written, or if the threads of a block wait at different barriers.
What it cannot show: divergence within warps, orders of memory, and how nvcc joins products and sums.
"""

import ctypes
import functools
import hashlib
import math
import pathlib
import re
import shutil
import subprocess
import tempfile

import numpy as np
import pytest

from minikeras.compiler.executors.cuda_graph.nodes import assemble
from minikeras.compiler.render.cuda_functions import PREAMBLE

GXX = shutil.which("g++")
needs_gxx = pytest.mark.skipif(GXX is None, reason="g++, which compiles kernels for the CPU here, is not installed")
OPTIONS = ["-std=c++17", "-O0", "-ffp-contract=off", "-fPIC", "-w"]
CANARY = 64
"""Bytes around each array that must stay as they are."""

SHIM, HALVES = (pathlib.Path(__file__).with_name(name).read_text() for name in ("shim.hpp", "halves.hpp"))
PREAMBLE_HERE = PREAMBLE.replace("#ifdef __CUDACC__", f"{HALVES}\n#ifdef __CUDACC__", 1)
"""The kernels' own text, with conversions of float16 in C++ instead of instructions of the GPU."""


def compiled(kernels, more=""):
    """What carries out each of the kernels, at addresses of its operands and results; they may call `more` functions."""
    module = assemble([kernel._replace(text=_watched(kernel.text)) for kernel in kernels], PREAMBLE_HERE + more)
    runs = [
        f'extern "C" const char* run_{name}(void** a, const unsigned long long* sizes, unsigned b, unsigned t) '
        f"{{ return run({name}, a, sizes, b, t, {str('__sync' in kernel.text).lower()}); }}"
        for name, kernel in dict(zip(module.names, kernels, strict=True)).items()
    ]
    library = built("\n".join([module.source, *runs]))
    return [
        functools.partial(_run, getattr(library, f"run_{name}"), kernel)
        for name, kernel in zip(module.names, kernels, strict=True)
    ]


def _watched(text):
    """A kernel whose arrays note who reads and who writes their elements."""
    text = re.sub(r"(const )?((?:\w+ )*\w+)\* ([ay]\d+)", r"Watched<\1\2> \3", text)
    text = re.sub(r"__shared__ (.+) (\w+)\[(\d+)\];", r"static Shared<\1> \2(\3);", text)
    return re.sub(r"\b(y\d+|all_\w+|here)\[([^][]*)\] = ", r"\1.written(\2) = ", text)


def _run(function, kernel, addresses):
    function.restype = ctypes.c_char_p
    sizes = [math.prod(slot.shape or ()) for slot in (*kernel.inputs, *kernel.outputs)]
    told = function(
        (ctypes.c_void_p * len(addresses))(*addresses), (ctypes.c_ulonglong * len(sizes))(*sizes), kernel.blocks, kernel.threads
    )
    assert not told, f"{told.decode()}: {kernel.text}"


@functools.cache
def _folder():
    """Where libraries lie, with the shim itself, compiled once."""
    folder = tempfile.TemporaryDirectory(prefix="minikeras_shim_")  # it goes when the process ends
    header = pathlib.Path(folder.name) / "shim.hpp"
    header.write_text(SHIM)
    subprocess.run([GXX, *OPTIONS, "-x", "c++-header", "-o", f"{header}.gch", str(header)], check=True)
    return folder


def built(source):
    """The library of a source behind the shim."""
    stem = pathlib.Path(_folder().name) / hashlib.sha256(source.encode()).hexdigest()[:16]
    library = stem.with_suffix(".so")
    if not library.exists():
        stem.with_suffix(".cpp").write_text(f'#include "shim.hpp"\n{source}')
        subprocess.run([GXX, *OPTIONS, "-shared", "-o", str(library), str(stem.with_suffix(".cpp"))], check=True)
    return ctypes.CDLL(str(library))


class Memory:
    """The device's memory: an array for each slot, filled with NaN until a kernel writes it, with canaries around."""

    def __init__(self):
        self._whole = {}

    def put(self, slot, array):
        """What a slot holds before the kernels run."""
        view = self._new(slot)
        view[...] = array

    def _new(self, slot):
        dtype, shape = (np.dtype(np.float64), ()) if slot.shape is None else (slot.dtype, slot.shape)
        size = int(np.prod(shape, dtype=int)) * dtype.itemsize
        memory = np.full(size + 2 * CANARY, 0xFF, np.uint8)
        memory[:CANARY] = memory[CANARY + size :] = 0xA5
        self._whole[slot.key] = memory, dtype, shape
        return self.array(slot)

    def array(self, slot):
        """What a slot holds."""
        memory, dtype, shape = self._whole[slot.key]
        return memory[CANARY : len(memory) - CANARY].view(dtype).reshape(shape)

    def run(self, kernel, function):
        """One launch. What is read must be there already."""
        for slot in kernel.outputs:
            if slot.key not in self._whole:
                self._new(slot)
        addresses = [self._whole[slot.key][0].ctypes.data + CANARY for slot in (*kernel.inputs, *kernel.outputs)]
        function(addresses)

    def is_whole(self):
        """Whether nothing was written around an array."""
        return all((m[:CANARY] == 0xA5).all() and (m[len(m) - CANARY :] == 0xA5).all() for m, _, _ in self._whole.values())
