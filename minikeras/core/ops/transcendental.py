"""Exponentials, logarithms, roots, trigonometric and hyperbolic functions.

Where a slope is infinite, a cotangent of zero stays zero (`guarded`), so that a branch not taken never turns into NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ...types import Array, TensorLike
from ..families import elementwise
from ..primitive import Primitive
from .arithmetic import (
    add,
    choose,
    divide,
    divide_no_nan,
    equal,
    extreme,
    less,
    multiply,
    negative,
    not_equal,
    ones_like,
    reciprocal,
    select,
    square,
    subtract,
    zeros_like,
)

_LOG_2 = math.log(2.0)

exp = elementwise("exp", "exp", lambda x, y: y)
exp2 = elementwise("exp2", "exp2", lambda x, y: multiply(y, _LOG_2))
expm1 = elementwise("expm1", "expm1", lambda x, y: add(y, 1.0))
log = elementwise("log", "log", lambda x, y: reciprocal(x), guarded=True)
log2 = elementwise("log2", "log2", lambda x, y: multiply(reciprocal(x), 1.0 / _LOG_2), guarded=True)
log10 = elementwise("log10", "log10", lambda x, y: multiply(reciprocal(x), 1.0 / math.log(10.0)), guarded=True)
log1p = elementwise("log1p", "log1p", lambda x, y: reciprocal(add(x, 1.0)), guarded=True)
sqrt = elementwise("sqrt", "sqrt", lambda x, y: divide(0.5, y), guarded=True)
rsqrt = elementwise(
    "rsqrt", lambda xp, x: 1 / xp.sqrt(x), lambda x, y: multiply(multiply(y, -0.5), reciprocal(x)), guarded=True
)

cbrt = elementwise("cbrt", "cbrt", lambda x, y: divide(1.0 / 3.0, square(y)), guarded=True)
hypot = elementwise("hypot", "hypot", lambda a, b, y: divide_no_nan(a, y), lambda a, b, y: divide_no_nan(b, y))

sin = elementwise("sin", "sin", lambda x, y: cos(x))
cos: Primitive = elementwise("cos", "cos", lambda x, y: negative(sin(x)))
tan = elementwise("tan", "tan", lambda x, y: add(square(y), 1.0))
asin = elementwise("asin", "arcsin", lambda x, y: rsqrt(subtract(1.0, square(x))), guarded=True)
acos = elementwise("acos", "arccos", lambda x, y: negative(rsqrt(subtract(1.0, square(x)))), guarded=True)
atan = elementwise("atan", "arctan", lambda x, y: reciprocal(add(square(x), 1.0)))


def _beside_numbers(partial: Any) -> Any:
    """The partial derivative where an operand may be a number, which alone would be a float64 to NumPy."""
    return lambda a, b, y: partial(*(x if hasattr(x, "dtype") else add(zeros_like(y), x) for x in (a, b)), y)


atan2 = elementwise(
    "atan2",
    "arctan2",
    _beside_numbers(lambda a, b, y: divide_no_nan(b, add(square(a), square(b)))),
    _beside_numbers(lambda a, b, y: negative(divide_no_nan(a, add(square(a), square(b))))),
)

sinh = elementwise("sinh", "sinh", lambda x, y: cosh(x))
cosh: Primitive = elementwise("cosh", "cosh", lambda x, y: sinh(x))
tanh = elementwise("tanh", "tanh", lambda x, y: subtract(1.0, square(y)))
asinh = elementwise("asinh", "arcsinh", lambda x, y: rsqrt(add(square(x), 1.0)))
acosh = elementwise(
    "acosh",
    "arccosh",
    lambda x, y: multiply(rsqrt(subtract(x, 1.0)), rsqrt(add(x, 1.0))),  # on the branch of arccosh for complex x too
    guarded=True,
)
atanh = elementwise("atanh", "arctanh", lambda x, y: reciprocal(subtract(1.0, square(x))), guarded=True)


def _sigmoid(xp: ModuleType, x: Array) -> Array:
    # Small results keep their relative accuracy. Where exp(-x) is infinite, the result is below the smallest normal number; in
    # 16 bits that would be as early as x = -11.
    if x.dtype.kind == "c":
        right = x.real >= 0
        decay = xp.exp(xp.where(right, -x, x))
        return xp.where(right, 1, decay) / (1 + decay)
    if x.dtype.itemsize > 2:
        return 1 / (1 + xp.exp(-x))
    decay = xp.exp(-xp.abs(x))
    return choose(xp, x >= 0, 1, decay) / (1 + decay)


sigmoid = elementwise("sigmoid", _sigmoid, lambda x, y: multiply(y, subtract(1.0, y)))


softplus = elementwise("softplus", lambda xp, x: xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(x, 0), lambda x, y: sigmoid(x))


def _log_add_exp(xp: ModuleType, a: Array, b: Array) -> Array:
    high, low = xp.maximum(a, b), xp.minimum(a, b)
    return high + xp.log1p(xp.exp(xp.where(high == low, 0, low - high)))  # of two infinities there is no difference


def share_of_sum(a: TensorLike, y: TensorLike) -> Any:
    """exp(a - y), and 0 where both are minus infinity."""
    return exp(subtract(a, select(equal(y, -math.inf), zeros_like(y), y)))


logaddexp = elementwise("logaddexp", _log_add_exp, lambda a, b, y: share_of_sum(a, y), lambda a, b, y: share_of_sum(b, y))


def _where_nonzero(function: Callable[..., Any]) -> Any:
    """`function(xp, a, b)`, but 0 wherever `a` is 0, whatever `b` is."""

    def kernel(xp: ModuleType, a: Array, b: Array) -> Array:
        value = function(xp, a, b if hasattr(b, "dtype") else xp.asarray(b, dtype=a.dtype))  # log of a number would be float64
        return choose(xp, xp.equal(a, 0), xp.zeros_like(value), value)

    return kernel


def _masked(a: TensorLike, value: Any) -> Any:
    """`value`, but 0 where `a` is 0."""
    return select(not_equal(a, 0), value, zeros_like(value))


xlogy = elementwise(
    "xlogy",
    _where_nonzero(lambda xp, a, b: a * xp.log(b)),
    _beside_numbers(lambda a, b, y: _masked(a, log(b))),
    _beside_numbers(lambda a, b, y: _masked(a, divide(a, b))),
    guarded=True,
)
xlog1py = elementwise(
    "xlog1py",
    _where_nonzero(lambda xp, a, b: a * xp.log1p(b)),
    _beside_numbers(lambda a, b, y: _masked(a, log1p(b))),
    _beside_numbers(lambda a, b, y: _masked(a, divide(a, add(b, 1.0)))),
    guarded=True,
)
xdivy = elementwise(
    "xdivy",
    _where_nonzero(lambda xp, a, b: a / b),
    _beside_numbers(lambda a, b, y: _masked(a, reciprocal(b))),
    _beside_numbers(lambda a, b, y: negative(_masked(a, divide(y, b)))),
    guarded=True,
)


elu = elementwise(
    "elu",
    # bfloat16 times a number is float32
    lambda xp, x, alpha: choose(xp, x > 0, x, (alpha * xp.expm1(extreme(xp.minimum, x, 0))).astype(x.dtype)),
    # The slope at 0 is 1 for every alpha, as in TensorFlow.
    lambda x, y, alpha: select(less(x, 0), add(y, alpha), ones_like(x)),
)
