"""Elementwise functions as expressions of CUDA C, by the names of NumPy's ufuncs.

Arithmetic gives NumPy's bits where products and sums are not contracted (`--fmad=false`). 16-bit floats are rounded after each
step and computed in float32 between, as NumPy does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.precision import is_short
from ..loop_ir.expression import NUMBER, NoNest
from ..loop_ir.reductions import is_float

STORED = {
    **{"bool": "bool", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long"},
    **{"uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long"},
    **{"float16": "float16", "bfloat16": "bfloat16", "float32": "float", "float64": "double"},
}
"""The type of an element in memory, by dtype."""

PREAMBLE = r"""
struct float16 { unsigned short bits; };
struct bfloat16 { unsigned short bits; };

#ifdef __CUDACC__
static __device__ inline float widen(float16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y; }
static __device__ inline float16 narrow(float x, float16) {
  float16 y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); return y;
}
#endif
static __device__ inline float of_bits(unsigned bits) { union { unsigned i; float f; } both; both.i = bits; return both.f; }
static __device__ inline double of_bits(unsigned long long bits) {
  union { unsigned long long i; double f; } both; both.i = bits; return both.f;
}
static __device__ inline float widen(bfloat16 x) { return of_bits((unsigned)x.bits << 16); }
static __device__ inline bfloat16 narrow(float x, bfloat16) {
  union { float f; unsigned i; } both; both.f = x; bfloat16 y;
  y.bits = x != x ? 0x7fc0 : (both.i + 0x7fff + (both.i >> 16 & 1)) >> 16; return y;
}
template <class S> static __device__ inline float rounded(float x) { return widen(narrow(x, S())); }
// A float that is rounded to float16 as x itself is: what it leaves out makes its last bit odd.
static __device__ inline float to_odd(double x) {
  union { float f; unsigned i; } both; both.f = (float)x;
  if (both.f != x && !(both.i & 1)) both.i += fabs((double)both.f) < fabs(x) ? 1 : -1;
  return both.f;
}

// Floats: as NumPy's loops, also for NaN, infinity and signed zeros.
template <class T> static __device__ inline bool is_nan(T x) { return x != x; }
template <class T> static __device__ inline bool is_inf(T x) { return x == x && x - x != 0; }
template <class T> static __device__ inline bool is_finite(T x) { return x - x == 0; }
template <class T> static __device__ inline T larger(T a, T b) { return a >= b || a != a ? a : b; }
template <class T> static __device__ inline T smaller(T a, T b) { return a <= b || a != a ? a : b; }
template <class T> static __device__ inline T larger_number(T a, T b) { return a >= b || b != b ? a : b; }
template <class T> static __device__ inline T smaller_number(T a, T b) { return a <= b || b != b ? a : b; }
template <class T> static __device__ inline T sign_of(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : x == 0 ? T(0) : x; }
static __device__ inline float part_of(float a, float b) { return fmodf(a, b); }
static __device__ inline double part_of(double a, double b) { return fmod(a, b); }
static __device__ inline float whole_of(float x) { return floorf(x); }
static __device__ inline double whole_of(double x) { return floor(x); }
static __device__ inline float with_sign(float x, float y) { return copysignf(x, y); }
static __device__ inline double with_sign(double x, double y) { return copysign(x, y); }
template <class T> static __device__ inline T float_modulus(T a, T b) {
  T m = part_of(a, b);
  if (b == 0) return m;
  if (m == 0) return with_sign(T(0), b);
  return (b < 0) != (m < 0) ? m + b : m;
}
template <class T> static __device__ inline T float_quotient(T a, T b) {
  if (b == 0) return a / b;
  T m = part_of(a, b), d = (a - m) / b;
  if (m != 0 && (b < 0) != (m < 0)) d -= 1;
  if (d == 0) return with_sign(T(0), a / b);
  T whole = whole_of(d);
  return d - whole > T(0.5) ? whole + 1 : whole;
}
static __device__ inline float logarithm(float x) { return logf(x); }
static __device__ inline double logarithm(double x) { return log(x); }
static __device__ inline float logarithm_1p(float x) { return log1pf(x); }
static __device__ inline double logarithm_1p(double x) { return log1p(x); }
static __device__ inline float exponential(float x) { return expf(x); }
static __device__ inline double exponential(double x) { return exp(x); }
static __device__ inline float root(float x) { return sqrtf(x); }
static __device__ inline double root(double x) { return sqrt(x); }
template <class T> static __device__ inline T log_of_sum(T a, T b) {
  if (a == b) return a + T(0.693147180559945309417232121458176568);
  T d = a - b;
  return d > 0 ? a + logarithm_1p(exponential(-d)) : d <= 0 ? b + logarithm_1p(exponential(d)) : d;
}

// Integers: they wrap, and a quotient by zero is zero.
template <class T> static __device__ inline T int_quotient(T a, T b) {
  if (b == 0) return 0;
  if (T(-1) < 0 && b == T(-1)) return T(0 - (unsigned long long)a);
  T q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
template <class T> static __device__ inline T int_modulus(T a, T b) {
  if (b == 0 || (T(-1) < 0 && b == T(-1))) return 0;
  T m = a % b;
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
template <class T> static __device__ inline T int_power(T a, T n) {
  unsigned long long y = 1, x = a;
  for (unsigned long long k = n; k; k >>= 1, x *= x) if (k & 1) y *= x;
  return (T)y;
}
template <class T> static __device__ inline T left_shifted(T a, T n) {
  return n >= 0 && (unsigned long long)n < 8 * sizeof(T) ? T((unsigned long long)a << n) : T(0);
}
template <class T> static __device__ inline T right_shifted(T a, T n) {
  return n >= 0 && (unsigned long long)n < 8 * sizeof(T) ? T(a >> n) : a < 0 ? T(-1) : T(0);
}
template <class T> static __device__ inline T without_sign(T a) { return a < 0 ? T(0 - (unsigned long long)a) : a; }
template <class T> static __device__ inline unsigned long long size_of(T a) { return a < 0 ? 0 - (unsigned long long)a : a; }
template <class T> static __device__ inline T divisor(T a, T b) {
  unsigned long long x = size_of(a), y = size_of(b);
  while (y != 0) { const unsigned long long z = x % y; x = y; y = z; }
  return (T)x;
}
template <class T> static __device__ inline T multiple(T a, T b) {
  const unsigned long long d = size_of(divisor(a, b));
  return d == 0 ? T(0) : T(size_of(a) / d * size_of(b));
}
"""
"""The functions that those below and the kernels call."""

COMPARISONS = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}

FLOATS = {
    **{"add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "divide": "{0} / {1}"},
    **{"negative": "-{0}", "positive": "{0}", "conjugate": "{0}", "square": "{0} * {0}", "reciprocal": "1 / {0}"},
    **{"maximum": "larger({0}, {1})", "minimum": "smaller({0}, {1})"},
    **{"fmax": "larger_number({0}, {1})", "fmin": "smaller_number({0}, {1})", "sign": "sign_of({0})"},
    **{"floor_divide": "float_quotient({0}, {1})", "remainder": "float_modulus({0}, {1})"},
    **{"isnan": "is_nan({0})", "isinf": "is_inf({0})", "isfinite": "is_finite({0})", "logaddexp": "log_of_sum({0}, {1})"},
    **{"absolute": "fabs{f}({0})", "fabs": "fabs{f}({0})", "power": "pow{f}({0}, {1})", "arctan2": "atan2{f}({0}, {1})"},
    **{"signbit": "with_sign({type}(1), {0}) < 0", "copysign": "with_sign({0}, {1})", "fmod": "part_of({0}, {1})"},
    **{name: f"{name}{{f}}({{0}})" for name in ("sqrt", "cbrt", "floor", "ceil", "rint", "trunc", "sin", "cos", "tan")},
    **{
        name: f"{name}{{f}}({{0}})"
        for name in ("sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p")
    },
    **{f"arc{name}": f"a{name}{{f}}({{0}})" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: f"{name}{{f}}({{0}}, {{1}})" for name in ("hypot", "nextafter")},
}
"""Functions of floats; {f} is the suffix of the C library's functions."""

_WRAPPED = "({type})((unsigned long long){0} %s (unsigned long long){1})"
INTEGERS = {
    **{name: _WRAPPED % sign for name, sign in {"add": "+", "subtract": "-", "multiply": "*"}.items()},
    **{"negative": "({type})(0 - (unsigned long long){0})", "positive": "{0}", "absolute": "without_sign({0})"},
    **{"square": _WRAPPED.replace("{1}", "{0}") % "*", "power": "int_power({0}, {1})", "sign": "sign_of({0})"},
    **{"maximum": "larger({0}, {1})", "minimum": "smaller({0}, {1})", "fmax": "larger({0}, {1})", "fmin": "smaller({0}, {1})"},
    **{"floor_divide": "int_quotient({0}, {1})", "remainder": "int_modulus({0}, {1})"},
    **{"bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}", "invert": "({type})~{0}"},
    **{"left_shift": "left_shifted({0}, {1})", "right_shift": "right_shifted({0}, {1})"},
    **{"gcd": "divisor({0}, {1})", "lcm": "multiple({0}, {1})", "logical_not": "{0} == 0"},
    **{"floor": "{0}", "ceil": "{0}", "rint": "{0}", "trunc": "{0}", "conjugate": "{0}"},
    **{"isnan": "false", "isinf": "false", "isfinite": "true"},
}

BOOLS = {
    **{"add": "{0} || {1}", "multiply": "{0} && {1}", "maximum": "{0} || {1}", "minimum": "{0} && {1}"},
    **{"logical_and": "{0} && {1}", "logical_or": "{0} || {1}", "logical_xor": "{0} != {1}", "logical_not": "!{0}"},
    **{"bitwise_and": "{0} && {1}", "bitwise_or": "{0} || {1}", "bitwise_xor": "{0} != {1}", "invert": "!{0}"},
    **{"isnan": "false", "isinf": "false", "isfinite": "true"},
    **{"absolute": "{0}", "fmax": "{0} || {1}", "fmin": "{0} && {1}"},
}


def is_known(dtype: Any) -> bool:
    """True if there is a type for a dtype; Python numbers have one."""
    return dtype is float or (np.dtype(dtype).isnative and np.dtype(dtype).name in STORED)


def stored(dtype: Any) -> str:
    """The C type of an element in memory."""
    return STORED[(NUMBER if dtype is float else np.dtype(dtype)).name]


def computed(dtype: Any) -> str:
    """The C type of a value in registers."""
    return "float" if dtype is not float and is_short(dtype) else stored(dtype)


def loaded(expression: str, dtype: Any) -> str:
    """The value of an element in memory."""
    return f"widen({expression})" if dtype is not float and is_short(dtype) else expression


def to_store(expression: str, dtype: Any) -> str:
    """The expression that is stored to memory for a value."""
    return f"narrow({expression}, {stored(dtype)}())" if dtype is not float and is_short(dtype) else expression


def literal(number: Any, dtype: Any) -> str:
    """A number as a constant of a dtype.

    >>> literal(0.1, np.dtype("float32")), literal(3, np.dtype("int64")), literal(-float("inf"), np.dtype("float64"))
    ('0x1.99999a0000000p-4f', '3LL', 'of_bits(0xfff0000000000000ULL)')
    """
    if dtype.kind == "b":
        return "true" if number else "false"
    if not is_float(dtype):
        whole = int(np.asarray(number).astype(dtype))
        if whole == -(2**63):
            return f"({whole + 1}LL - 1)"
        return f"{whole}{'U' * (dtype.kind == 'u')}{'LL' * (dtype.itemsize == 8)}"
    with np.errstate(over="ignore"):
        value = float(np.asarray(number).astype(dtype))
    single = dtype.itemsize < 8
    if not math.isfinite(value):
        bits = np.asarray(value, "f4" if single else "f8").view("u4" if single else "u8")
        return f"of_bits(0x{int(bits):x}{'U' if single else 'ULL'})"
    return f"({value.hex()}{'f' * single})" if value < 0 else f"{value.hex()}{'f' * single}"


def cast(value: str, dtype: Any, wanted: Any) -> str:
    """A value in another dtype, as NumPy's `astype`."""
    if dtype == wanted:
        return value
    if wanted.kind == "b":
        return f"({value} != 0)"
    if is_short(wanted):
        once = dtype is not None and dtype == NUMBER and wanted == np.float16  # float64 would be rounded twice through float
        return f"rounded<{stored(wanted)}>({'to_odd' if once else '(float)'}({value}))"
    return f"({computed(wanted)})({value})"


def apply(function: str, dtype: np.dtype[Any], operands: Sequence[str]) -> str:
    """The result of a function of operands of one dtype.

    Raises:
        NoNest: if there is none for the dtype.
    """
    if function in COMPARISONS:
        return f"{operands[0]} {COMPARISONS[function]} {operands[1]}"
    if function == "nextafter" and is_short(dtype):
        raise NoNest("the float32 that follows is none of 16 bits")
    table = FLOATS if is_float(dtype) else BOOLS if dtype.kind == "b" else INTEGERS
    if function not in table:
        raise NoNest(f"{function} of {dtype.name}")
    suffix = "f" if computed(dtype) == "float" else ""
    return table[function].format(*operands, f=suffix, type=computed(dtype))
