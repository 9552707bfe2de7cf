"""CUDA C on the CPU: a source is compiled by g++, the threads of a block are fibers that take turns at barriers.

Arrays note who reads and writes each element, so a run fails if threads race, in whatever order they ran, if an element lies
outside of its array, if shared memory is read before it is written, or if the threads of a block wait at different barriers.
What it cannot show: divergence within warps, orders of memory, and how nvcc joins products and sums.
"""

from __future__ import annotations

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

SHIM = r"""
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <ucontext.h>
#include <unordered_map>
#include <utility>
#include <vector>
#define __global__
#define __device__
#define __launch_bounds__(threads)
struct Index { unsigned x; };
static Index blockIdx, threadIdx, blockDim, gridDim;
static unsigned turn;  // how many barriers the block has passed
static char wrong[200];
#define TELL(...) (wrong[0] ? 0 : std::snprintf(wrong, sizeof wrong, __VA_ARGS__))

// Who reads and writes an element: two threads may not, if one of them writes and no barrier of their block lies between.
struct Last {
  bool any, by_others, by_other_blocks;
  unsigned block, thread, turn;
  bool is_own() const { return block == blockIdx.x && (turn < ::turn || (thread == threadIdx.x && !by_others)); }
  bool is_apart() const { return any && (by_other_blocks || !is_own()); }
  void note() {
    by_other_blocks |= any && block != blockIdx.x;
    by_others = any && block == blockIdx.x && turn == ::turn && (by_others || thread != threadIdx.x);
    any = true, block = blockIdx.x, thread = threadIdx.x, turn = ::turn;
  }
};
struct Element { Last read, written; };
static std::unordered_map<const void*, Element> elements;
static void touch(const void* place, bool writes) {
  Element& own = elements[place];
  if (own.written.is_apart() || (writes && own.read.is_apart()))
    TELL("threads race: block %u, thread %u %s", blockIdx.x, threadIdx.x, writes ? "writes" : "reads");
  (writes ? own.written : own.read).note();
}
template <class T> struct Watched {
  T* start;
  unsigned long long count;
  T& at(unsigned long long i, bool writes) const {
    static std::remove_const_t<T> nothing;
    if (i >= count) return TELL("element %llu of %llu", i, count), nothing;
    touch(start + i, writes);
    return start[i];
  }
  const T& operator[](unsigned long long i) const { return at(i, false); }
  T& written(unsigned long long i) const { return at(i, true); }
};
struct Room { std::vector<char> bytes; size_t each; };
static std::vector<Room*> rooms;
template <class T> struct Shared : Room, Watched<T> {
  Shared(size_t count) : Room{std::vector<char>(count * sizeof(T)), sizeof(T)}, Watched<T>{(T*)bytes.data(), count} {
    rooms.push_back(this);
  }
  const T& operator[](unsigned long long i) const {
    if (i < this->count && !elements[this->start + i].written.any) TELL("shared memory is read before it is written");
    return this->at(i, false);
  }
};
static void begin_block(unsigned block) {
  blockIdx.x = block, turn = 0;
  for (Room* room : rooms) for (size_t i = 0; i < room->bytes.size(); i += room->each) elements.erase(&room->bytes[i]);
  for (Room* room : rooms) std::memset(room->bytes.data(), 0xff, room->bytes.size());
}

static ucontext_t fibers[1024];
static jmp_buf back, places[1024];  // swapcontext would ask the system for its mask of signals each time
static int waits[1024];  // at the barrier of which line; -1: nowhere any more
static int votes;
static std::vector<char> stacks(1024 << 14);
static void (*body)(void*);
static void* given;
static void wait(int line) {
  const unsigned t = threadIdx.x;
  waits[t] = line;
  if (!_setjmp(places[t])) _longjmp(back, 1);
  threadIdx.x = t;
}
static int wait_or(int line, int vote) {
  votes |= vote;
  wait(line);
  const int any = votes;
  wait(line);
  votes = 0;
  wait(line);
  return any;
}
#define __syncthreads() wait(__LINE__)
#define __syncthreads_or(vote) wait_or(__LINE__, vote)
static void enter() { body(given); wait(-1); }
static void go_on(unsigned t, bool begins) {
  threadIdx.x = t;
  if (_setjmp(back)) return;
  if (begins) setcontext(&fibers[t]);
  _longjmp(places[t], 1);
}
static void run_block(unsigned threads) {
  for (unsigned t = 0; t < threads; ++t) {
    getcontext(&fibers[t]);
    fibers[t].uc_stack.ss_sp = &stacks[t << 14];
    fibers[t].uc_stack.ss_size = 1 << 14;
    makecontext(&fibers[t], enter, 0);
  }
  for (waits[0] = 0; waits[0] >= 0; ++turn) {
    for (unsigned t = 0; t < threads; ++t) go_on(t, turn == 0);
    for (unsigned t = 1; t < threads; ++t) if (waits[t] != waits[0]) { TELL("threads wait at two barriers"); return; }
  }
}
template <class P> struct Argument { static P of(void* start, unsigned long long) { return (P)start; } };
template <class T> struct Argument<Watched<T>> {
  static Watched<T> of(void* start, unsigned long long count) { return {(T*)start, count}; }
};
template <class... P, size_t... I>
static void call(void (*f)(P...), void** a, const unsigned long long* sizes, std::index_sequence<I...>) {
  f(Argument<P>::of(a[I], sizes[I])...);
}
template <class... P> static const char* run(
    void (*f)(P...), void** a, const unsigned long long* sizes, unsigned blocks, unsigned threads, bool barriers) {
  auto once = [&] { call(f, a, sizes, std::index_sequence_for<P...>()); };
  given = &once;
  body = [](void* self) { (*(decltype(once)*)self)(); };
  gridDim.x = blocks, blockDim.x = threads, wrong[0] = 0;
  elements.clear();
  for (unsigned b = 0; b < blocks; ++b) {
    begin_block(b);
    if (barriers) run_block(threads);
    else for (unsigned t = 0; t < threads; ++t) { threadIdx.x = t; body(given); }
  }
  return wrong;
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
