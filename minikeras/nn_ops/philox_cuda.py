"""Philox4x32-10 in CUDA C, with the bits of `philox4x32.py`, and draws of CuPy's arrays by it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..types import Array
from .philox4x32 import INCREMENTS, MULTIPLIERS, QUANTILE, ROUNDS, WITHIN_TWO, threshold, words_of_integer


def _literal(value: float, wide: bool) -> str:
    """A constant with all of its bits, of double or of float."""
    return value.hex() if wide else f"{float(np.float32(value)).hex()}f"


def _truncated_of(wide: bool) -> str:
    """A function of the bits of one element, as signed integer."""
    real, bits, log = ("double", "long long", "log") if wide else ("float", "int", "logf")
    scale = 2.0 ** (-63 if wide else -31) * (WITHIN_TWO if wide else float(np.float32(WITHIN_TWO)))
    half, one, root, two = [_literal(value, wide) for value in (0.5, 1.0, math.sqrt(2.0), 2.0)]
    centre, first, *others = [_literal(value, wide) for value in QUANTILE[wide]]
    steps = "\n".join([f"  p = p * v + {coefficient};" for coefficient in others])
    return f"""
static __device__ inline {real} truncated_of({bits} w) {{
  const {real} x = (({real})w + {half}) * {_literal(scale, wide)}, v = -{log}(({one} - x) * ({one} + x)) - {centre};
  {real} p = {first};
{steps}
  const {real} z = p * x * {root};
  return z < -{two} ? -{two} : z > {two} ? {two} : z;
}}"""


PHILOX = f"""
// The words of a block of Philox4x32-10: the key is a seed, the counter the number of the block and the position of the draw.
static __device__ inline void philox(unsigned long long seed, unsigned long long position, unsigned long long block,
    unsigned* w) {{
  unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
  w[0] = (unsigned)block, w[1] = (unsigned)(block >> 32), w[2] = (unsigned)position, w[3] = (unsigned)(position >> 32);
  for (int round = 0; round < {ROUNDS}; ++round) {{
    const unsigned long long a = {MULTIPLIERS[0]:#x}ULL * w[0], b = {MULTIPLIERS[1]:#x}ULL * w[2];
    w[0] = (unsigned)(b >> 32) ^ w[1] ^ k0, w[1] = (unsigned)b;
    w[2] = (unsigned)(a >> 32) ^ w[3] ^ k1, w[3] = (unsigned)a;
    k0 += {INCREMENTS[0]:#x}u, k1 += {INCREMENTS[1]:#x}u;
  }}
}}
// The 16 bits that decide about element j of the 8 of a block.
static __device__ inline unsigned half_of(const unsigned* w, int j) {{ return w[j >> 1] >> (j & 1 ? 16 : 0) & 0xffffu; }}
static __device__ inline unsigned long long two_of(const unsigned* w, int j) {{
  return w[2 * j] | (unsigned long long)w[2 * j + 1] << 32;
}}
static __device__ inline float uniform_of(unsigned w, int bits) {{ return (float)(w >> (32 - bits)) / (float)(1u << bits); }}
static __device__ inline double uniform_of(unsigned long long w) {{ return (double)(w >> 11) * {(2.0**-53).hex()}; }}
// Two normal numbers of two words, after Box and Muller.
static __device__ inline void normal_of(unsigned a, unsigned b, float* z) {{
  const float radius = sqrtf(-2.0f * logf((float)a * {(2.0**-32).hex()}f + {(2.0**-33).hex()}f));
  const float angle = (float)b * {float(np.float32(2.0 * math.pi) * 2.0**-32).hex()}f;
  z[0] = radius * cosf(angle), z[1] = radius * sinf(angle);
}}
static __device__ inline void normal_of(unsigned long long a, unsigned long long b, double* z) {{
  const double radius = sqrt(-2.0 * log((double)a * {(2.0**-64).hex()} + {(2.0**-65).hex()}));
  const double angle = (double)b * {(2.0 * math.pi * 2.0**-64).hex()};
  z[0] = radius * cos(angle), z[1] = radius * sin(angle);
}}
// A normal number within two standard deviations, by a polynomial for the quantile; see `philox4x32.py`.
{_truncated_of(False)}{_truncated_of(True)}
static __device__ inline unsigned long long upper_product(unsigned long long x, unsigned long long y) {{
  const unsigned long long x0 = x & 0xffffffffu, x1 = x >> 32, y0 = y & 0xffffffffu, y1 = y >> 32;
  const unsigned long long middle = x1 * y0 + (x0 * y0 >> 32);
  return x1 * y1 + (middle >> 32) + (x0 * y1 + (middle & 0xffffffffu) >> 32);
}}
// One of `span` integers, of so many words; a span of 0 stands for 2**64.
static __device__ inline unsigned long long integer_of(const unsigned* w, int words, unsigned long long span) {{
  if (words == 1) return w[0] * span >> 32;
  const unsigned long long high = two_of(w, words / 2 - 1), low = high * span;
  if (!span) return high;
  return upper_product(high, span) + (words == 4 && low + upper_product(two_of(w, 0), span) < low);
}}
"""
"""Functions that kernels of draws call."""

_EAGER = r"""
// `count` elements of each block: `value`, of its words `w` and the number `j` of the element, after `before` is done once.
#define EACH(count, before, value) \
  for (unsigned long long block = start / count + blockIdx.x * 256ULL + threadIdx.x; count * block < start + n; \
       block += gridDim.x * 256ULL) { \
    unsigned w[4]; philox(seed, position, block, w); before; \
    for (int j = 0; j < count; ++j) if (count * block + j - start < n) y[count * block + j - start] = value; \
  }
// Elements before `start` are out of range too: unsigned numbers wrap.
#define DRAW(name, ...) extern "C" __global__ void name(unsigned long long seed, unsigned long long position, \
  unsigned long long start, unsigned long long n, __VA_ARGS__)

// Bits of a mask, of elements of any type: those of 0 and of `kept`.
DRAW(mask_2, unsigned least, unsigned short kept, unsigned short* y) { EACH(8, , half_of(w, j) >= least ? kept : 0) }
DRAW(mask_4, unsigned least, unsigned kept, unsigned* y) { EACH(8, , half_of(w, j) >= least ? kept : 0) }
DRAW(mask_8, unsigned least, unsigned long long kept, unsigned long long* y) { EACH(8, , half_of(w, j) >= least ? kept : 0) }
DRAW(uniform_4, int bits, float* y) { EACH(4, , uniform_of(w[j], bits)) }
DRAW(uniform_8, int bits, double* y) { EACH(2, , uniform_of(two_of(w, j))) }
DRAW(normal_4, int bits, float* y) { EACH(4, float z[4]; normal_of(w[0], w[1], z); normal_of(w[2], w[3], z + 2), z[j]) }
DRAW(normal_8, int bits, double* y) { EACH(2, double z[2]; normal_of(two_of(w, 0), two_of(w, 1), z), z[j]) }
DRAW(truncated_normal_4, int bits, float* y) { EACH(4, , truncated_of((int)w[j])) }
DRAW(truncated_normal_8, int bits, double* y) { EACH(2, , truncated_of((long long)two_of(w, j))) }
DRAW(integers_8, int words, unsigned long long low, unsigned long long span, unsigned long long* y) {
  const int count = 4 / words;
  EACH(count, , low + integer_of(w + words * j, words, span))
}
"""
SOURCE = PHILOX + _EAGER
"""The kernels of single draws."""
THREADS, MOST_BLOCKS = 256, 4096
OPTIONS = "--std=c++17", "--fmad=false"
"""Compiler options of every kernel, here and in graphs: products and sums stay apart, so both have the same bits."""


@functools.cache
def _kernel(cupy: ModuleType, name: str) -> Any:
    return cupy.RawKernel(SOURCE, name, options=OPTIONS)


def _launch(cupy: ModuleType, name: str, key: Array, start: int, per_block: int, y: Array, *own: Any) -> None:
    seed, position = [np.uint64(int(one) & (2**64 - 1)) for one in key]
    if y.size:
        blocks = min(-(-(start % per_block + y.size) // (per_block * THREADS)), MOST_BLOCKS)
        _kernel(cupy, name)((blocks,), (THREADS,), (seed, position, np.uint64(start), np.uint64(y.size), *own, y))


def dropout_mask(cupy: ModuleType, key: Array, shape: tuple[int, ...], dtype: Any, rate: float, start: int = 0) -> Array:
    """As `philox4x32.dropout_mask`, an array of CuPy."""
    kind = np.dtype(dtype)
    bits = np.dtype(f"u{kind.itemsize}")
    y = cupy.empty(math.prod(shape), bits)
    kept = np.asarray(1.0 / (1.0 - rate), kind).view(bits)[()]
    _launch(cupy, f"mask_{kind.itemsize}", key, start, 8, y, np.uint32(threshold(rate)), kept)
    return y.view(kind).reshape(shape)


def _floats(name: str) -> Callable[..., Array]:
    """As the function of `philox4x32` of this name, an array of CuPy."""

    def draw(cupy: ModuleType, key: Array, shape: tuple[int, ...], dtype: Any, start: int = 0) -> Array:
        kind = np.dtype(dtype)
        wide = np.dtype("float64" if kind.itemsize == 8 else "float32")
        y, bits = cupy.empty(math.prod(shape), wide), {"float32": 24, "float64": 53, "float16": 11}.get(kind.name, 8)
        _launch(cupy, f"{name}_{wide.itemsize}", key, start, 16 // wide.itemsize, y, np.int32(bits))
        return y.reshape(shape).astype(kind, copy=False)

    return draw


uniform, normal, truncated_normal = map(_floats, ("uniform", "normal", "truncated_normal"))


def integers(cupy: ModuleType, key: Array, shape: tuple[int, ...], dtype: Any, low: int, span: int, start: int = 0) -> Array:
    """As `philox4x32.integers`, an array of CuPy."""
    y, words = cupy.empty(math.prod(shape), np.dtype("uint64")), words_of_integer(span)
    own = np.int32(words), np.uint64(low % 2**64), np.uint64(span % 2**64)
    _launch(cupy, "integers_8", key, start, 4 // words, y, *own)
    return y.reshape(shape).astype(dtype, copy=False)
