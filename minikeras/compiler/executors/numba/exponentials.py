"""exp, expm1 and tanh by formulas that LLVM vectorizes; the C library takes one element at a time, and several times as long.

Key idea: x = k log 2 + r with whole k and |r| <= log(2) / 2, so exp(x) = 2**k exp(r), and exp(r) - 1 is a short polynomial. All
is computed in float64: float32 results are then rounded once, float64 results are accurate to 1e-15.

Source: Cody and Waite, Software Manual for the Elementary Functions (1980), chapter 6; the constants are those of fdlibm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .memory import scalar

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
