"""Functions of corresponding elements, one row each: name, formula, derivative and one worked value."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core import IndexedSlices, Tensor, own_values
from ..core.arrays import chosen_device
from ..core.ops import arithmetic, transcendental
from ..errors import DTypeError, ShapeError
from ..nn_ops import special
from ..types import DTypeLike, TensorLike, as_dtype
from .catalogue import binary, row, unary
from .operands import beside, inexact, rounded_once, tensor, tensors

# A table: one row for each function.
# fmt: off

# Arithmetic ----------------------------------------------------------------------------------------------------------

add = binary(arithmetic.add, "add", "Sum: x + y", "1, 1", "print(tf.add(1.0, 2.0).numpy()) -> 3.0")
subtract = binary(arithmetic.subtract, "subtract", "Difference: x - y", "1, -1", "print(tf.subtract(1.0, 2.0).numpy()) -> -1.0")
multiply = binary(arithmetic.multiply, "multiply", "Product: x * y", "y, x", "print(tf.multiply(3.0, 2.0).numpy()) -> 6.0")
divide = binary(arithmetic.divide, "divide", "Quotient; of integers float64, of those of at most 16 bits float32: x / y", "1/y, -x/y**2", "print(tf.divide(3.0, 2.0).numpy()) -> 1.5")
truediv = binary(arithmetic.divide, "truediv", "Quotient; of integers float64, of those of at most 16 bits float32: x / y", "1/y, -x/y**2", "print(tf.truediv(3, 2).numpy()) -> 1.5")
floordiv = binary(arithmetic.floor_divide, "floordiv", "Quotient rounded down: floor(x / y)", "none", "print(tf.math.floordiv(-7, 2).numpy()) -> -4")
floormod = binary(arithmetic.floor_modulus, "floormod", "Remainder with the sign of y: x - floor(x / y) * y", "1, -floor(x/y)", "print(tf.math.floormod(-7, 3).numpy()) -> 2")
mod = floormod
pow = binary(arithmetic.power, "pow", "Power: x ** y", "y * x**(y-1), x**y * log(x); 0 where y, or x <= 0, makes it undefined", "print(tf.pow(2.0, 3.0).numpy()) -> 8.0")
maximum = binary(arithmetic.maximum, "maximum", "Larger of two: max(x, y)", "1 for the larger; the first at a tie", "print(tf.maximum(1.0, 2.0).numpy()) -> 2.0")
minimum = binary(arithmetic.minimum, "minimum", "Smaller of two: min(x, y)", "1 for the smaller; the first at a tie", "print(tf.minimum(1.0, 2.0).numpy()) -> 1.0")
squared_difference = binary(arithmetic.squared_difference, "squared_difference", "Squared difference: |x - y|**2", "2(x-y), -2(x-y)", "print(tf.math.squared_difference(1.0, 3.0).numpy()) -> 4.0")
divide_no_nan = binary(arithmetic.divide_no_nan, "divide_no_nan", "Quotient that is 0 for a zero divisor: x / y, or 0 where y = 0", "1/y, -x/y**2, or 0", "print(tf.math.divide_no_nan(3.0, 0.0).numpy()) -> 0.0")
multiply_no_nan = binary(arithmetic.multiply_no_nan, "multiply_no_nan", "Product that is 0 for a zero y, whatever x: x * y, or 0 where y = 0", "y, x", "print(tf.math.multiply_no_nan(float('inf'), 0.0).numpy()) -> 0.0", "fc")
xlogy = binary(transcendental.xlogy, "xlogy", "Product with a logarithm: x * log(y), or 0 where x = 0", "log(y), x/y, or 0 where x = 0", "print(tf.math.xlogy(0.0, 0.0).numpy()) -> 0.0", "fc")
xlog1py = binary(transcendental.xlog1py, "xlog1py", "Product with a logarithm: x * log(1 + y), or 0 where x = 0", "log(1+y), x/(1+y), or 0 where x = 0", "print(tf.math.xlog1py(0.0, -1.0).numpy()) -> 0.0", "fc")
xdivy = binary(transcendental.xdivy, "xdivy", "Quotient that is 0 for a zero x: x / y, or 0 where x = 0", "1/y, -x/y**2, or 0 where x = 0", "print(tf.math.xdivy(0.0, 0.0).numpy()) -> 0.0", "fc")
atan2 = binary(transcendental.atan2, "atan2", "Angle of the point (y, x) in radians, in [-pi, pi]: atan(x / y)", "y/(x**2+y**2), -x/(x**2+y**2); 0 at the origin", "print(f'{tf.atan2(1.0, 1.0):.4f}') -> 0.7854", "f")

negative = unary(arithmetic.negative, "negative", "Negation: -x", "-1", "print(tf.negative(2.0).numpy()) -> -2.0", "any")
abs = unary(arithmetic.absolute, "abs", "Absolute value; modulus of complex numbers: |x|", "sign(x), 0 at 0", "print(tf.abs(-2.0).numpy()) -> 2.0", "any")
sign = unary(arithmetic.sign, "sign", "Sign, of complex numbers the direction: x / |x|, or 0 at 0", "0; of complex numbers what turns the direction", "print(tf.sign(-2.0).numpy()) -> -1.0", "any")
square = unary(arithmetic.square, "square", "Square: x**2", "2x", "print(tf.square(3.0).numpy()) -> 9.0", "any")
reciprocal = unary(arithmetic.reciprocal, "reciprocal", "Reciprocal: 1 / x", "-1/x**2", "print(tf.math.reciprocal(4.0).numpy()) -> 0.25")
floor = unary(arithmetic.floor, "floor", "Largest integer not above: floor(x)", "none", "print(tf.floor(1.7).numpy()) -> 1.0", "f")
ceil = unary(arithmetic.ceil, "ceil", "Smallest integer not below: ceil(x)", "none", "print(tf.math.ceil(1.2).numpy()) -> 2.0", "f")
rint = unary(arithmetic.round_half_even, "rint", "Nearest integer, halves to even: round(x)", "none", "print(tf.math.rint(1.5).numpy()) -> 2.0", "f")

# Exponentials, logarithms and roots ------------------------------------------------------------------------------------

sqrt = unary(transcendental.sqrt, "sqrt", "Square root: x**(1/2)", "1/(2 sqrt(x)), infinite at 0", "print(tf.sqrt(9.0).numpy()) -> 3.0")
rsqrt = unary(transcendental.rsqrt, "rsqrt", "Reciprocal square root: x**(-1/2)", "-x**(-3/2) / 2", "print(tf.math.rsqrt(4.0).numpy()) -> 0.5")
exp = unary(transcendental.exp, "exp", "Exponential: e**x", "e**x", "print(tf.exp(0.0).numpy()) -> 1.0")
expm1 = unary(transcendental.expm1, "expm1", "Exponential minus one, accurate near 0: e**x - 1", "e**x", "print(tf.math.expm1(0.0).numpy()) -> 0.0")
log = unary(transcendental.log, "log", "Natural logarithm: ln(x)", "1/x", "print(tf.math.log(1.0).numpy()) -> 0.0")
log1p = unary(transcendental.log1p, "log1p", "Logarithm of one plus x, accurate near 0: ln(1 + x)", "1/(1+x)", "print(tf.math.log1p(0.0).numpy()) -> 0.0")
sigmoid = unary(transcendental.sigmoid, "sigmoid", "Logistic function: 1 / (1 + exp(-x))", "y (1 - y)", "print(tf.sigmoid(0.0).numpy()) -> 0.5")
softplus = unary(transcendental.softplus, "softplus", "Smooth rectifier: ln(1 + e**x)", "sigmoid(x)", "print(f'{tf.math.softplus(0.0):.4f}') -> 0.6931", "f")
erf = unary(special.erf, "erf", "Error function: 2/sqrt(pi) * integral of exp(-t**2) from 0 to x", "2/sqrt(pi) exp(-x**2)", "print(f'{tf.math.erf(0.5):.4f}') -> 0.5205", "f")
erfc = unary(special.erfc, "erfc", "Complementary error function: 1 - erf(x)", "-2/sqrt(pi) exp(-x**2)", "print(f'{tf.math.erfc(0.5):.4f}') -> 0.4795", "f")
erfinv = unary(special.erfinv, "erfinv", "Inverse of the error function, for x in [-1, 1]: erfinv(x)", "sqrt(pi)/2 exp(y**2)", "print(f'{tf.math.erfinv(0.5):.4f}') -> 0.4769", "f")
erfcinv = unary(special.erfcinv, "erfcinv", "Inverse of the complementary error function, for x in [0, 2]: erfinv(1 - x)", "-sqrt(pi)/2 exp(y**2)", "print(f'{tf.math.erfcinv(0.5):.4f}') -> 0.4769", "f")
ndtri = unary(special.ndtri, "ndtri", "Quantile of the normal distribution, for x in [0, 1]: sqrt(2) erfinv(2x - 1)", "sqrt(2 pi) exp(y**2 / 2)", "print(f'{tf.math.ndtri(0.975):.4f}') -> 1.9600", "f")
lgamma = unary(special.lgamma, "lgamma", "Logarithm of the absolute value of the gamma function: ln|gamma(x)|", "digamma(x)", "print(f'{tf.math.lgamma(5.0):.4f}') -> 3.1781", "f")
digamma = unary(special.digamma, "digamma", "Logarithmic derivative of the gamma function: d/dx ln gamma(x)", "zeta(2, x)", "print(f'{tf.math.digamma(1.0):.4f}') -> -0.5772", "f")
zeta = binary(special.zeta, "zeta", "Hurwitz's zeta function, of y < 0 for integers x alone: sum of (y + k)**-x over k = 0, 1, ...", "none, -x zeta(x+1, y)", "print(f'{tf.math.zeta(2.0, 1.0):.4f}') -> 1.6449", "f")
bessel_i0e = unary(special.bessel_ie, "bessel_i0e", "Modified Bessel function of order 0, scaled: exp(-|x|) I_0(x)", "i1e(x) - sign(x) y", "print(f'{tf.math.bessel_i0e(1.0):.4f}') -> 0.4658", "f", order=0)
bessel_i1e = unary(special.bessel_ie, "bessel_i1e", "Modified Bessel function of order 1, scaled: exp(-|x|) I_1(x)", "i0e(x) - (sign(x) + 1/x) y, 1/2 at 0", "print(f'{tf.math.bessel_i1e(1.0):.4f}') -> 0.2079", "f", order=1)
nextafter = binary(arithmetic.nextafter, "nextafter", "Neighbouring float: the next one after x toward y", "1, none", "print(tf.math.nextafter(1.0, 2.0).numpy() > 1.0) -> True", "f")
logaddexp = binary(transcendental.logaddexp, "logaddexp", "Sum of numbers given as logarithms: ln(exp(x) + exp(y))", "exp(x - z), exp(y - z) for the result z", "print(f'{logaddexp(0.0, 0.0):.4f}') -> 0.6931", "f")

# Trigonometric and hyperbolic functions, in radians ----------------------------------------------------------------------

sin = unary(transcendental.sin, "sin", "Sine of radians: sin(x)", "cos(x)", "print(f'{tf.sin(0.5):.4f}') -> 0.4794")
cos = unary(transcendental.cos, "cos", "Cosine of radians: cos(x)", "-sin(x)", "print(f'{tf.cos(0.5):.4f}') -> 0.8776")
tan = unary(transcendental.tan, "tan", "Tangent of radians: tan(x)", "1 + y**2", "print(f'{tf.tan(0.5):.4f}') -> 0.5463")
asin = unary(transcendental.asin, "asin", "Inverse sine in radians, for x in [-1, 1]: asin(x)", "1/sqrt(1-x**2)", "print(f'{tf.asin(0.5):.4f}') -> 0.5236")
acos = unary(transcendental.acos, "acos", "Inverse cosine in radians, for x in [-1, 1]: acos(x)", "-1/sqrt(1-x**2)", "print(f'{tf.acos(0.5):.4f}') -> 1.0472")
atan = unary(transcendental.atan, "atan", "Inverse tangent in radians: atan(x)", "1/(1+x**2)", "print(f'{tf.atan(0.5):.4f}') -> 0.4636")
sinh = unary(transcendental.sinh, "sinh", "Hyperbolic sine: (e**x - e**-x) / 2", "cosh(x)", "print(f'{tf.sinh(0.5):.4f}') -> 0.5211")
cosh = unary(transcendental.cosh, "cosh", "Hyperbolic cosine: (e**x + e**-x) / 2", "sinh(x)", "print(f'{tf.cosh(0.5):.4f}') -> 1.1276")
tanh = unary(transcendental.tanh, "tanh", "Hyperbolic tangent: sinh(x) / cosh(x)", "1 - y**2", "print(f'{tf.tanh(0.5):.4f}') -> 0.4621")
asinh = unary(transcendental.asinh, "asinh", "Inverse hyperbolic sine: ln(x + sqrt(x**2 + 1))", "1/sqrt(x**2+1)", "print(f'{tf.asinh(0.5):.4f}') -> 0.4812")
acosh = unary(transcendental.acosh, "acosh", "Inverse hyperbolic cosine, for x >= 1: ln(x + sqrt(x**2 - 1))", "1/sqrt(x**2-1)", "print(f'{tf.acosh(1.5):.4f}') -> 0.9624")
atanh = unary(transcendental.atanh, "atanh", "Inverse hyperbolic tangent, for |x| < 1: ln((1+x)/(1-x)) / 2", "1/(1-x**2)", "print(f'{tf.atanh(0.5):.4f}') -> 0.5493")

# Comparisons and logic -------------------------------------------------------------------------------------------------

equal = binary(arithmetic.equal, "equal", "Equality: x = y", "none (bool)", "print(tf.equal(1, 1).numpy()) -> True")
not_equal = binary(arithmetic.not_equal, "not_equal", "Inequality: x != y", "none (bool)", "print(tf.not_equal(1, 1).numpy()) -> False")
less = binary(arithmetic.less, "less", "Order: x < y", "none (bool)", "print(tf.less(1, 2).numpy()) -> True")
less_equal = binary(arithmetic.less_equal, "less_equal", "Order: x <= y", "none (bool)", "print(tf.less_equal(1, 1).numpy()) -> True")
greater = binary(arithmetic.greater, "greater", "Order: x > y", "none (bool)", "print(tf.greater(1, 2).numpy()) -> False")
greater_equal = binary(arithmetic.greater_equal, "greater_equal", "Order: x >= y", "none (bool)", "print(tf.greater_equal(1, 1).numpy()) -> True")
logical_and = binary(arithmetic.logical_and, "logical_and", "Conjunction: x and y", "none (bool)", "print(tf.logical_and(True, False).numpy()) -> False")
logical_or = binary(arithmetic.logical_or, "logical_or", "Disjunction: x or y", "none (bool)", "print(tf.logical_or(True, False).numpy()) -> True")
logical_xor = binary(arithmetic.logical_xor, "logical_xor", "Exclusive disjunction: x or y, not both", "none (bool)", "print(tf.math.logical_xor(True, True).numpy()) -> False")
logical_not = unary(arithmetic.logical_not, "logical_not", "Negation: not x", "none (bool)", "print(tf.logical_not(True).numpy()) -> False", "any")
bitwise_and = binary(arithmetic.bitwise_and, "bitwise_and", "Bits that both have: x & y", "none", "print(tf.bitwise.bitwise_and(6, 3).numpy()) -> 2")
bitwise_or = binary(arithmetic.bitwise_or, "bitwise_or", "Bits that one of the two has: x | y", "none", "print(tf.bitwise.bitwise_or(6, 3).numpy()) -> 7")
bitwise_xor = binary(arithmetic.bitwise_xor, "bitwise_xor", "Bits that exactly one of the two has: x ^ y", "none", "print(tf.bitwise.bitwise_xor(6, 3).numpy()) -> 5")
invert = unary(arithmetic.bitwise_not, "invert", "All bits turned around: ~x", "none", "print(tf.bitwise.invert(6).numpy()) -> -7", "any")
left_shift = binary(arithmetic.left_shift, "left_shift", "Bits moved to higher places, at most as many as there are: x * 2**y", "none", "print(tf.bitwise.left_shift(3, 2).numpy()) -> 12")
right_shift = binary(arithmetic.right_shift, "right_shift", "Bits moved to lower places, at most as many as there are: floor(x / 2**y)", "none", "print(tf.bitwise.right_shift(-8, 1).numpy()) -> -4")
is_nan = unary(arithmetic.is_nan, "is_nan", "True where an element is not a number: x is NaN", "none (bool)", "print(tf.math.is_nan(float('nan')).numpy()) -> True")
is_inf = unary(arithmetic.is_inf, "is_inf", "True where an element is infinite: x is inf or -inf", "none (bool)", "print(tf.math.is_inf(float('inf')).numpy()) -> True")
is_finite = unary(arithmetic.is_finite, "is_finite", "True where an element is finite: x is neither NaN nor infinite", "none (bool)", "print(tf.math.is_finite(1.0).numpy()) -> True")

# Complex numbers and identity ----------------------------------------------------------------------------------------------

real = unary(arithmetic.real, "real", "Real part: Re(x)", "1", "print(tf.math.real(1 + 2j).numpy()) -> 1.0", "any")
imag = unary(arithmetic.imag, "imag", "Imaginary part: Im(x)", "1 with respect to the imaginary part", "print(tf.math.imag(1 + 2j).numpy()) -> 2.0", "any")
conj = unary(arithmetic.conj, "conj", "Complex conjugate: Re(x) - i Im(x)", "its own transpose", "print(tf.math.conj(1 + 2j).numpy()) -> (1-2j)", "any")
stop_gradient = unary(arithmetic.stop_gradient, "stop_gradient", "The same values, through which no gradient flows: x", "none", "print(tf.stop_gradient(2.0).numpy()) -> 2.0", "any")

# fmt: on


def identity(x: TensorLike, name: str | None = None) -> Tensor:
    """The same values as a new Tensor; within `tf.device`, on that device.

    Args:
        x: tensor of any shape and dtype. Text stays on the CPU.
        name: accepted for compatibility, ignored.

    Returns:
        A Tensor of the shape and dtype of `x`. Derivative: 1, brought back to the device of `x`.

    >>> with tf.device("CPU:0"):
    ...     tf.identity([1.0, 2.0]).device
    'CPU:0'
    """
    x, wanted = tensor(x), chosen_device()
    return arithmetic.identity(x) if wanted in (None, x.device) else arithmetic.identity(x, device=wanted)


def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> Tensor:
    """Complex numbers from their real and imaginary parts, float32 to complex64 and float64 to complex128.

    >>> print(tf.complex(1.0, 2.0).numpy())
    (1+2j)
    """
    first, second = tensors(real, imag)
    if first.dtype not in ("float32", "float64"):
        raise DTypeError(f"complex: needs float32 or float64 parts, found {first.dtype.name}. Use tf.cast(x, 'float32').")
    return arithmetic.make_complex(first, second)


def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """`x` in another dtype: the only conversion between dtypes.

    Float to float passes gradients back in the dtype of `x`; float to integer truncates toward zero and cuts them.

    >>> tf.cast([1.8, -1.8], tf.int32)
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 1, -1], dtype=int32)>
    """
    x, wanted = tensor(x), as_dtype(dtype)
    return x if x.dtype == wanted else arithmetic.cast(x, dtype=wanted.name)


def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """`value` limited to the range of `dtype`, then cast to it.

    >>> print(tf.saturate_cast(300.0, tf.uint8).numpy())
    255
    """
    x, wanted = tensor(value), as_dtype(dtype)
    if wanted.is_complex or "bool" in (x.dtype, wanted):
        return cast(x, wanted)
    x = arithmetic.real(x) if x.dtype.is_complex else x
    kind = int if x.dtype.is_integer else float
    low, high = (kind(limit) for limit in (wanted.min, wanted.max))
    if x.dtype.is_integer or (x.dtype.is_floating and wanted.is_floating):
        low, high = max(low, kind(x.dtype.min)), min(high, kind(x.dtype.max))
    x = cast(x, "float32") if x.dtype == "bfloat16" else x  # bfloat16 would round the limit 65504 of float16 up to 65536
    if x.dtype.is_floating and wanted.is_integer and float(rounded := x.dtype.numpy.type(high)) > wanted.max:
        high = float(np.nextafter(rounded, x.dtype.numpy.type(0)))  # 2**31 - 1 is no float32: take the one below
    return cast(clip_by_value(x, low, high), wanted)


def bitcast(input: TensorLike, type: Any, name: str | None = None) -> Tensor:
    """The same bytes read as another dtype. No gradient is registered.

    A larger number becomes a last axis of smaller ones; a last axis that holds the bytes of one larger number becomes it.

    >>> print(tf.bitcast(1.0, tf.int32).numpy())
    1065353216
    """
    x = tensor(input)
    wanted = as_dtype(type)
    if x.dtype == "bool" or wanted == "bool":
        raise DTypeError(f"bitcast: {x.dtype.name} to {wanted.name}: a truth value has no bits of its own. Use tf.cast.")
    if wanted.size > x.dtype.size and (not x.ndim or x.shape[-1] * x.dtype.size != wanted.size):
        raise DTypeError(
            f"bitcast: {wanted.name} has {wanted.size} bytes, {x.dtype.name} {x.dtype.size}: the last axis of {x.shape} must "
            f"have size {wanted.size // x.dtype.size}."
        )
    return arithmetic.bitcast(x, dtype=wanted.name)


@rounded_once
def add_n(inputs: Iterable[TensorLike], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and dtype.

    >>> print(tf.add_n([1.0, 2.0, 3.0]).numpy())
    6.0

    Raises:
        ValueError: for an empty list, or shapes that differ.
    """
    values = tensors(*given) if (given := list(inputs)) else []
    if not values:
        raise ValueError("add_n: inputs must be a list of at least one tensor, found an empty list.")
    if len({tuple(value.shape) for value in values}) > 1:
        raise ShapeError(f"add_n: all shapes must be equal, found {[list(value.shape) for value in values]}.")
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


def clip_by_value(t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None) -> Tensor:
    """Each element limited to an interval: min(max(t, low), high). The slope is 1 inside and at both edges, else 0.

    >>> print(tf.clip_by_value([-2.0, 0.5, 2.0], -1.0, 1.0).numpy())
    [-1.   0.5  1. ]
    """
    x = tensor(t)
    result = arithmetic.clip(x, clip_value_min, clip_value_max)
    if result.shape != x.shape:
        raise ShapeError(f"clip_by_value: the limits make {x.shape} into {result.shape}. Use tf.minimum and tf.maximum.")
    return result


def where(condition: TensorLike, x: TensorLike = None, y: TensorLike = None, name: str | None = None) -> Tensor:
    """Elements of `x` where the condition holds and of `y` elsewhere; all three are broadcast.

    The branch that is not taken gets a gradient of exactly zero. Without `x` and `y`: the indices of the true elements,
    int64 of shape (count, rank).

    >>> x = tf.Variable([-1.0, 4.0])
    >>> with tf.GradientTape() as tape:
    ...     y = tf.where(x > 0, tf.sqrt(x), 0.0)
    >>> print(tape.gradient(y, x).numpy())
    [0.   0.25]
    """
    if x is None and y is None:
        mask = tensor(condition)
        return beside(mask, np.argwhere(own_values(mask)).astype("int64"))
    if x is None or y is None:
        raise ValueError("where: x and y must both be given, or neither.")
    first, second = tensors(x, y)
    mask = beside(first, condition)
    if mask.dtype != "bool":
        raise DTypeError(f"where: the condition must be bool, found {mask.dtype.name}. Compare: x != 0.")
    if first.dtype != second.dtype:
        raise DTypeError(f"where: x is {first.dtype.name}, y is {second.dtype.name}; cast one of them.")
    return arithmetic.select(mask, first, second)


def polygamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Derivative number a of digamma at x, (-1)**(a+1) a! zeta(a+1, x); NaN unless a = 0, 1, ... Derivative in x: polygamma(a+1, x).

    >>> print(f'{tf.math.polygamma(1.0, 1.0):.4f}')
    1.6449
    """
    order, x = tensors(a, x)
    order = stop_gradient(inexact("polygamma", order, "f"))
    size = exp(lgamma(order + 1.0)) * zeta(maximum(order, 1.0) + 1.0, x)
    whole = logical_and(equal(floormod(order, 1.0), 0.0), order >= 0.0)
    signed = where(equal(floormod(order, 2.0), 0.0), -size, size)
    return where(equal(order, 0.0), digamma(x), where(whole, signed, float("nan")))


def polyval(coeffs: Sequence[TensorLike], x: TensorLike, name: str | None = None) -> Tensor:
    """A polynomial by Horner's rule: coeffs[0] x**n + ... + coeffs[n].

    >>> print(tf.math.polyval([1.0, 0.0, 2.0], 3.0).numpy())
    11.0
    """
    if not isinstance(coeffs, (list, tuple)):
        raise ValueError(f"polyval: coeffs must be a list of tensors, found {type(coeffs).__name__}. Use tf.unstack(coeffs).")
    at, *values = tensors(x, *coeffs)
    return functools.reduce(lambda total, value: total * at + value, values, arithmetic.zeros_like(at))


def scalar_mul(scalar: TensorLike, x: TensorLike, name: str | None = None) -> Any:
    """A tensor, or the values of `IndexedSlices`, times a number.

    >>> print(tf.scalar_mul(2.0, [1.0, 2.0]).numpy())
    [2. 4.]

    Raises:
        ShapeError: if the factor is no scalar.
    """
    if tensor(scalar).ndim:
        raise ShapeError(f"scalar_mul: needs a scalar, found shape {tensor(scalar).shape}. Write x * y.")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(multiply(x.values, scalar), x.indices, x._shape)
    return multiply(tensor(x), scalar)


# fmt: off
round = row("round",
    lambda x, name=None: x if inexact("round", x := tensor(x), "iuf").dtype.is_integer else arithmetic.round_half_even(x),
    "Nearest integer, halves to even; integers stay as they are. Derivative: none.",
    "print(tf.round(2.5).numpy(), tf.round([1, 2]).numpy()) -> 2.0 [1 2]")
angle = row("angle",
    lambda input, name=None: transcendental.atan2(arithmetic.imag(x := inexact("angle", tensor(input))), arithmetic.real(x)),
    "Argument in radians, in [-pi, pi]: atan2(Im(x), Re(x)). Derivative: i x / |x|**2, and 0 at 0.",
    "print(f'{tf.math.angle(1 + 1j):.4f}') -> 0.7854")
log_sigmoid = row("log_sigmoid", lambda x, name=None: negative(softplus(negative(inexact("log_sigmoid", tensor(x), "f")))),
    "Logarithm of the logistic function, stable at both ends: -softplus(-x).",
    "print(tf.math.log_sigmoid(-1000.0).numpy()) -> -1000.0")
bessel_i0 = row("bessel_i0", lambda x, name=None: bessel_i0e(x := tensor(x)) * exp(abs(x)),
    "Modified Bessel function of order 0: I_0(x) = sum of (x/2)**2k / k!**2. Derivative: I_1(x).",
    "print(f'{tf.math.bessel_i0(1.0):.4f}') -> 1.2661")
bessel_i1 = row("bessel_i1", lambda x, name=None: bessel_i1e(x := tensor(x)) * exp(abs(x)),
    "Modified Bessel function of order 1: I_1(x) = sum of (x/2)**(2k+1) / (k! (k+1)!). Derivative: I_0(x) - I_1(x) / x.",
    "print(f'{tf.math.bessel_i1(1.0):.4f}') -> 0.5652")
reciprocal_no_nan = row("reciprocal_no_nan", lambda x, name=None: divide_no_nan(1.0, inexact("reciprocal_no_nan", tensor(x))),
    "1 / x, and 0 where x is 0. Derivative: -1/x**2, and 0 there.",
    "print(tf.math.reciprocal_no_nan([2.0, 0.0]).numpy()) -> [0.5 0. ]")
# fmt: on
