"""CUDA C on the CPU: a source is compiled by g++, the threads of a block are fibers that take turns at barriers.

What it cannot show: divergence within warps, orders of memory, and how nvcc joins products and sums.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
import pytest

from minikeras.compiler.executors.cuda_graph.functions import PREAMBLE
from minikeras.compiler.executors.cuda_graph.module import assemble

GXX = shutil.which("g++")
needs_gxx = pytest.mark.skipif(GXX is None, reason="g++, which compiles kernels for the CPU here, is not installed")
CANARY = 64
"""Bytes around each array that must stay as they are."""

SHIM = r"""
#include <cmath>
#include <cstring>
#include <ucontext.h>
#include <utility>
#include <vector>
#define __global__
#define __device__
#define __launch_bounds__(threads)
#define __shared__ static
struct Index { unsigned x; };
static Index blockIdx, threadIdx, blockDim, gridDim;
static ucontext_t home, fibers[1024];
static bool done[1024];
static int votes;
static std::vector<char> stacks(1024 << 14);
static void (*body)(void*);
static void* given;
static void __syncthreads() { const unsigned t = threadIdx.x; swapcontext(&fibers[t], &home); threadIdx.x = t; }
static int __syncthreads_or(int vote) {
  votes |= vote;
  __syncthreads();
  const int any = votes;
  __syncthreads();
  votes = 0;
  __syncthreads();
  return any;
}
static void enter() { const unsigned t = threadIdx.x; body(given); done[t] = true; swapcontext(&fibers[t], &home); }
static void run_block(unsigned threads) {
  for (unsigned t = 0; t < threads; ++t) {
    done[t] = false;
    getcontext(&fibers[t]);
    fibers[t].uc_stack.ss_sp = &stacks[t << 14];
    fibers[t].uc_stack.ss_size = 1 << 14;
    fibers[t].uc_link = &home;
    makecontext(&fibers[t], enter, 0);
  }
  for (bool any = true; any;) {
    any = false;
    for (unsigned t = 0; t < threads; ++t) if (!done[t]) { threadIdx.x = t; swapcontext(&home, &fibers[t]); any |= !done[t]; }
  }
}
template <class... P, size_t... I> static void call(void (*f)(P...), void** a, std::index_sequence<I...>) { f((P)a[I]...); }
template <class... P> static void run(void (*f)(P...), void** a, unsigned blocks, unsigned threads, bool barriers) {
  auto once = [&] { call(f, a, std::index_sequence_for<P...>()); };
  given = &once;
  body = [](void* self) { (*(decltype(once)*)self)(); };
  gridDim.x = blocks, blockDim.x = threads;
  for (unsigned b = 0; b < blocks; ++b) {
    blockIdx.x = b;
    if (barriers) run_block(threads);
    else for (unsigned t = 0; t < threads; ++t) { threadIdx.x = t; body(given); }
  }
}
"""

HALVES = r"""
static float widen(float16 x) {
  unsigned e = x.bits >> 10 & 31, m = x.bits & 1023;
  float y = e == 31 ? (m ? NAN : INFINITY) : e ? std::ldexp(1024.f + m, (int)e - 25) : std::ldexp((float)m, -24);
  return x.bits >> 15 ? -y : y;
}
static float16 narrow(float x, float16) {
  float16 y; float a = std::fabs(x); unsigned s = std::signbit(x) ? 0x8000 : 0;
  if (x != x) { y.bits = 0x7e00; return y; }
  int e; std::frexp(a, &e); e = e < -13 ? -13 : e;
  float q = std::rint(std::ldexp(a, 11 - e));
  float r = std::ldexp(q, e - 11);
  if (r >= 65520.f) { y.bits = s | 0x7c00; return y; }
  if (r < 6.103515625e-05f) y.bits = s | (unsigned short)std::ldexp(r, 24);
  else { std::frexp(r, &e); y.bits = s | ((e + 14) << 10) | ((unsigned)std::ldexp(r, 11 - e) & 1023); }
  return y;
}
"""


PREAMBLE_HERE = PREAMBLE.replace("#ifdef __CUDACC__", f"{HALVES}\n#ifdef __CUDACC__", 1)
"""The kernels' own text, with conversions of float16 in C++ instead of instructions of the GPU."""


def compiled(kernels):
    """The functions of kernels, each of (addresses, blocks, threads)."""
    module = assemble(kernels, PREAMBLE_HERE)
    runs = [
        f'extern "C" void run_{name}(void** a, unsigned b, unsigned t) '
        f"{{ run({name}, a, b, t, {str('__sync' in kernel.text).lower()}); }}"
        for name, kernel in dict(zip(module.names, kernels, strict=True)).items()
    ]
    library = _library("\n".join([SHIM, module.source, *runs]))
    return [getattr(library, f"run_{name}") for name in module.names]


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory(prefix="minikeras_shim_")  # it goes when the process ends


def _library(source):
    stem = pathlib.Path(_folder().name) / hashlib.sha256(source.encode()).hexdigest()[:16]
    library = stem.with_suffix(".so")
    if not library.exists():
        stem.with_suffix(".cpp").write_text(source)
        options = ["-std=c++17", "-O0", "-ffp-contract=off", "-shared", "-fPIC", "-w"]
        subprocess.run([GXX, *options, "-o", str(library), str(stem.with_suffix(".cpp"))], check=True)
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
        function((ctypes.c_void_p * len(addresses))(*addresses), kernel.blocks, kernel.threads)

    def is_whole(self):
        """Whether nothing was written around an array."""
        return all((m[:CANARY] == 0xA5).all() and (m[len(m) - CANARY :] == 0xA5).all() for m, _, _ in self._whole.values())
