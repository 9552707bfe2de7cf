"""The element-wise operations of the interpreter: for each a loop over a block that LLVM vectorizes.

Names and values are those of NumPy's ufuncs. Conditions are 1.0 and 0.0, and any other number but zero counts as true. All
loops stand in one function, because Numba compiles one long function several times faster than many short ones.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from ....types import Array

_HELPER = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

compiled: Callable[[Any], Any] = numba.njit(**_HELPER)
"""Compiled for compiled callers only, without the GIL; a division by zero gives infinity, as in NumPy."""

scalar: Callable[[Any], Any] = numba.njit(forceinline=True, fastmath={"contract"}, **_HELPER)
"""Compiled into each loop that calls it: LLVM vectorizes no loop with a call."""

summing: Callable[[Any], Any] = numba.njit(fastmath={"reassoc", "nsz"}, **_HELPER)
"""Compiled so that the terms of a sum may be added in any order, several at once."""


class Operation(enum.IntEnum):
    """The number that stands for an operation in the steps of a LOOP."""

    ADD = 0
    SUBTRACT = 1
    MULTIPLY = 2
    DIVIDE = 3
    NEGATIVE = 4
    SQUARE = 5
    SQRT = 6
    ABSOLUTE = 7
    SIGN = 8
    MAXIMUM = 9
    MINIMUM = 10
    EXP = 11
    EXPM1 = 12
    LOG = 13
    LOG1P = 14
    SIN = 15
    COS = 16
    TANH = 17
    RECIPROCAL = 18
    POWER = 19
    FLOOR = 20
    CEIL = 21
    RINT = 22
    TRUNC = 23
    EQUAL = 24
    NOT_EQUAL = 25
    LESS = 26
    LESS_EQUAL = 27
    GREATER = 28
    GREATER_EQUAL = 29
    LOGICAL_AND = 30
    LOGICAL_OR = 31
    LOGICAL_NOT = 32
    WHERE = 33
    COPY = 34
    LERP = 35
    LERP_SQUARE = 36
    SQRT_ADD = 37
    MULTIPLY_DIVIDE = 38
    MULTIPLY_ADD = 39
    SUBTRACT_PRODUCT = 40


OPERATIONS: dict[str, int] = {operation.name.lower(): int(operation) for operation in Operation}
"""Operations by the name of NumPy's ufunc; `where` takes (condition, a, b)."""

COMBINED: dict[str, Any] = {
    "lerp_square": ("add", ("multiply", ("subtract", ("multiply", "a", "a"), "b"), "c"), "b"),
    "lerp": ("add", ("multiply", ("subtract", "a", "b"), "c"), "b"),
    "multiply_divide": ("divide", ("multiply", "a", "b"), "c"),
    "sqrt_add": ("add", ("sqrt", "a"), "b"),
    "multiply_add": ("add", ("multiply", "a", "b"), "c"),
    "subtract_product": ("subtract", "a", ("multiply", "b", "c")),
}
"""What several steps in a row amount to, larger ones first: less goes through memory, and the bits are the same.

The first two are the running means of an optimizer, mean + (value - mean) * weight.
"""

TRANSCENDENTAL = frozenset(["log", "log1p", "sin", "cos", "power"])
"""Operations that call the C library for each element: for large arrays NumPy's own vectorized ones are faster."""


@compiled
def operate(operation: int, y: Array, a: Array, b: Array, c: Array) -> None:
    """y = operation(a, b, c), element by element, for vectors of one length."""
    size = y.size
    if operation == Operation.ADD:
        for i in range(size):
            y[i] = a[i] + b[i]
    elif operation == Operation.SUBTRACT:
        for i in range(size):
            y[i] = a[i] - b[i]
    elif operation == Operation.MULTIPLY:
        for i in range(size):
            y[i] = a[i] * b[i]
    elif operation == Operation.DIVIDE:
        for i in range(size):
            y[i] = a[i] / b[i]
    elif operation == Operation.NEGATIVE:
        for i in range(size):
            y[i] = -a[i]
    elif operation == Operation.SQUARE:
        for i in range(size):
            y[i] = a[i] * a[i]
    elif operation == Operation.SQRT:
        for i in range(size):
            y[i] = np.sqrt(a[i])
    elif operation == Operation.ABSOLUTE:
        for i in range(size):
            y[i] = np.abs(a[i])
    elif operation == Operation.SIGN:
        for i in range(size):
            y[i] = 1.0 if a[i] > 0 else (-1.0 if a[i] < 0 else (0.0 if a[i] == 0 else a[i]))
    elif operation == Operation.MAXIMUM:
        for i in range(size):
            y[i] = a[i] if (a[i] >= b[i]) | (a[i] != a[i]) else b[i]
    elif operation == Operation.MINIMUM:
        for i in range(size):
            y[i] = a[i] if (a[i] <= b[i]) | (a[i] != a[i]) else b[i]
    elif operation == Operation.EXP:
        for i in range(size):
            y[i] = exp(a[i])
    elif operation == Operation.EXPM1:
        for i in range(size):
            y[i] = expm1(a[i])
    elif operation == Operation.LOG:
        for i in range(size):
            y[i] = np.log(a[i])
    elif operation == Operation.LOG1P:
        for i in range(size):
            y[i] = np.log1p(a[i])
    elif operation == Operation.SIN:
        for i in range(size):
            y[i] = np.sin(a[i])
    elif operation == Operation.COS:
        for i in range(size):
            y[i] = np.cos(a[i])
    elif operation == Operation.TANH:
        for i in range(size):
            y[i] = tanh(a[i])
    elif operation == Operation.RECIPROCAL:
        for i in range(size):
            y[i] = 1.0 / a[i]
    elif operation == Operation.POWER:
        for i in range(size):
            y[i] = a[i] ** b[i]
    elif operation == Operation.FLOOR:
        for i in range(size):
            y[i] = np.floor(a[i])
    elif operation == Operation.CEIL:
        for i in range(size):
            y[i] = np.ceil(a[i])
    elif operation == Operation.RINT:
        for i in range(size):
            y[i] = np.rint(a[i])
    elif operation == Operation.TRUNC:
        for i in range(size):
            y[i] = np.trunc(a[i])
    elif operation == Operation.EQUAL:
        for i in range(size):
            y[i] = 1.0 if a[i] == b[i] else 0.0
    elif operation == Operation.NOT_EQUAL:
        for i in range(size):
            y[i] = 1.0 if a[i] != b[i] else 0.0
    elif operation == Operation.LESS:
        for i in range(size):
            y[i] = 1.0 if a[i] < b[i] else 0.0
    elif operation == Operation.LESS_EQUAL:
        for i in range(size):
            y[i] = 1.0 if a[i] <= b[i] else 0.0
    elif operation == Operation.GREATER:
        for i in range(size):
            y[i] = 1.0 if a[i] > b[i] else 0.0
    elif operation == Operation.GREATER_EQUAL:
        for i in range(size):
            y[i] = 1.0 if a[i] >= b[i] else 0.0
    elif operation == Operation.LOGICAL_AND:
        for i in range(size):
            y[i] = 1.0 if (a[i] != 0) & (b[i] != 0) else 0.0
    elif operation == Operation.LOGICAL_OR:
        for i in range(size):
            y[i] = 1.0 if (a[i] != 0) | (b[i] != 0) else 0.0
    elif operation == Operation.LOGICAL_NOT:
        for i in range(size):
            y[i] = 1.0 if a[i] == 0 else 0.0
    elif operation == Operation.WHERE:
        for i in range(size):
            yes, no = b[i], c[i]
            y[i] = yes if a[i] != 0 else no
    elif operation == Operation.COPY:
        for i in range(size):
            y[i] = a[i]
    elif operation == Operation.LERP:
        for i in range(size):
            y[i] = (a[i] - b[i]) * c[i] + b[i]
    elif operation == Operation.LERP_SQUARE:
        for i in range(size):
            y[i] = (a[i] * a[i] - b[i]) * c[i] + b[i]
    elif operation == Operation.SQRT_ADD:
        for i in range(size):
            y[i] = np.sqrt(a[i]) + b[i]
    elif operation == Operation.MULTIPLY_DIVIDE:
        for i in range(size):
            y[i] = a[i] * b[i] / c[i]
    elif operation == Operation.MULTIPLY_ADD:
        for i in range(size):
            y[i] = a[i] * b[i] + c[i]
    elif operation == Operation.SUBTRACT_PRODUCT:
        for i in range(size):
            y[i] = a[i] - b[i] * c[i]


# exp, expm1 and tanh -----------------------------------------------------------------------------------------------------
#
# By formulas that LLVM vectorizes; the C library takes one element at a time, and several times as long.
# x = k log 2 + r with whole k and |r| <= log(2) / 2, so exp(x) = 2**k exp(r), and exp(r) - 1 is a short polynomial. All is
# computed in float64: float32 results are then rounded once, float64 results are accurate to 1e-15.
#
# Source: Cody and Waite, Software Manual for the Elementary Functions (1980), chapter 6; the constants are those of fdlibm.

_LOG2_HIGH, _LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""log(2) in two parts; k times the high one is exact."""


@scalar
def exp(x: float) -> Any:
    """e**x."""
    k, p = _reduced(np.float64(x))
    half = k >> 1
    y = (1.0 + p) * _power(half) * _power(k - half)
    return y if x == x else x


@scalar
def expm1(x: float) -> Any:
    """e**x - 1, accurate also near zero."""
    kept = np.float64(x)
    k, p = _reduced(kept if kept > -50.0 else -50.0)
    half = k >> 1
    y = (p + (1.0 - _power(-half) * _power(half - k))) * _power(half) * _power(k - half)
    return x if (x != x) | (x == 0.0) else y


@scalar
def tanh(x: float) -> Any:
    """(e**2x - 1) / (e**2x + 1)."""
    kept = np.float64(x)
    e = expm1(2.0 * (22.0 if kept > 22.0 else (-22.0 if kept < -22.0 else kept)))
    return e / (e + 2.0)


@scalar
def _reduced(x: Any) -> tuple[Any, Any]:
    """k and exp(r) - 1; x is kept where the results are neither zero nor infinite yet."""
    kept = -746.0 if x < -746.0 else (710.0 if x > 710.0 else x)
    whole = np.rint(kept * (1.0 / math.log(2.0)))
    r = (kept - whole * _LOG2_HIGH) - whole * _LOG2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    return np.int32(whole), p * r * r + r


@scalar
def _power(k: int) -> Any:
    """2**k for -1022 <= k <= 1023, put together from its bits."""
    bits = np.int64((k + 1023) << 52)
    return bits.view(np.float64)
