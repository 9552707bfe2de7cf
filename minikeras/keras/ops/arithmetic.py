"""Functions of each element and of pairs of elements, products, differences and integrals, under Keras's names."""

from __future__ import annotations

import builtins
import functools
import math as _math
import re
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ...core import Tensor, convert_to_tensor
from ...core.ops import arithmetic, transcendental
from ...errors import ShapeError
from ...functions import cast, contractions, fill, linalg, ones_like, reduce_all, reduce_sum, vectorized_map, zeros_like
from ...functions import elementwise as tf
from ...functions.shaping import broadcast_to, reshape, squeeze, stack, unstack
from ...types import TensorLike
from ..promotion import exact, floating, is_float, promoted
from ..symbolic.operation import SAME, operation
from ..symbolic.trial import cost_of_anything, cost_of_product
from .rows import anything, floats, of_any, of_bits, of_floats, of_truths, of_two, of_two_floats, row
from .shaping import moveaxis


def _asked(question: Callable[[Tensor], Tensor], otherwise: bool) -> Callable[[Tensor], Tensor]:
    """The elementwise answer to a question about floats; other dtypes give `otherwise` everywhere."""
    return lambda x: question(x) if is_float(x.dtype) else fill(x.shape, otherwise)


def _numbers(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Bools as int32."""
    return (tf.cast(x, "int32"), tf.cast(y, "int32")) if x.dtype.is_bool else (x, y)


def _whole(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A quotient or a remainder; 0 where integers are divided by 0."""

    def divide(x: Tensor, y: Tensor) -> Tensor:
        x, y = _numbers(x, y)
        if not x.dtype.is_integer:
            return function(x, y)
        zero = y == 0
        return tf.where(zero, zeros_like(x), function(x, tf.where(zero, ones_like(y), y)))

    return divide


# fmt: off

# Exponentials, logarithms, roots and angles ------------------------------------------------------------------------------

arccos = of_floats("arccos", tf.acos)
arccosh = of_floats("arccosh", tf.acosh)
arcsin = of_floats("arcsin", tf.asin)
arcsinh = of_floats("arcsinh", tf.asinh)
arctan = of_floats("arctan", tf.atan)
arctanh = of_floats("arctanh", tf.atanh)
ceil = of_floats("ceil", tf.ceil)
cos = of_floats("cos", tf.cos)
cosh = of_floats("cosh", tf.cosh)
deg2rad = of_floats("deg2rad", lambda x: x * (_math.pi / 180.0), "Degrees in radians: x pi / 180.")
exp = of_floats("exp", tf.exp)
exp2 = of_floats("exp2", transcendental.exp2, "Power of two: 2**x.")
expm1 = of_floats("expm1", tf.expm1)
floor = of_floats("floor", tf.floor)
log = of_floats("log", tf.log)
log10 = of_floats("log10", transcendental.log10, "Decimal logarithm: ln(x) / ln(10).")
log1p = of_floats("log1p", tf.log1p)
log2 = of_floats("log2", transcendental.log2, "Binary logarithm: ln(x) / ln(2).")
rad2deg = of_floats("rad2deg", lambda x: x * (180.0 / _math.pi), "Radians in degrees: 180 x / pi.")
reciprocal = of_floats("reciprocal", tf.reciprocal)
sin = of_floats("sin", tf.sin)
sinh = of_floats("sinh", tf.sinh)
sqrt = of_floats("sqrt", tf.sqrt)
tan = of_floats("tan", tf.tan)
tanh = of_floats("tanh", tf.tanh)
angle = of_floats("angle", tf.angle)

# Numbers of any kind -------------------------------------------------------------------------------------------------------

absolute = abs = of_any("absolute", tf.abs)
fabs = of_floats("fabs", tf.abs)
bitwise_invert = of_any("bitwise_invert", tf.invert)
bitwise_not = of_any("bitwise_not", tf.invert)
conjugate = conj = of_any("conjugate", lambda x: tf.conj(x) if x.dtype.is_complex else x, "Complex conjugate.", same=tf.conj)
copy = of_any("copy", tf.identity)
imag = of_any("imag", lambda x: tf.imag(x) if x.dtype.is_complex else zeros_like(x), "Imaginary part; of real numbers 0.",
    same=tf.imag)
isfinite = of_any("isfinite", _asked(tf.is_finite, True), "True where an element is neither NaN nor infinite.",
    same=tf.is_finite)
isinf = of_any("isinf", _asked(tf.is_inf, False), "True where an element is infinite.", same=tf.is_inf)
isnan = of_any("isnan", _asked(tf.is_nan, False), "True where an element is NaN.", same=tf.is_nan)
negative = of_any("negative", tf.negative)
real = of_any("real", lambda x: tf.real(x) if x.dtype.is_complex else x, "Real part.", same=tf.real)
sign = of_any("sign", tf.sign)

# Two operands --------------------------------------------------------------------------------------------------------------

add = of_two("add", tf.add)
equal = of_two("equal", tf.equal)
greater = of_two("greater", tf.greater)
greater_equal = of_two("greater_equal", tf.greater_equal)
less = of_two("less", tf.less)
less_equal = of_two("less_equal", tf.less_equal)
maximum = of_two("maximum", tf.maximum)
minimum = of_two("minimum", tf.minimum)
multiply = of_two("multiply", tf.multiply)
not_equal = of_two("not_equal", tf.not_equal)
subtract = of_two("subtract", tf.subtract)
power = of_two("power", lambda x, y: tf.pow(*_numbers(x, y)), "Power: x1**x2.", same=tf.pow)
floor_divide = of_two("floor_divide", _whole(tf.floordiv), "floor(x1 / x2); of integers 0 where x2 is 0.", same=tf.floordiv)
mod = of_two("mod", _whole(tf.floormod), "x1 - floor(x1 / x2) x2; of integers 0 where x2 is 0.", same=tf.floormod)
arctan2 = of_two_floats("arctan2", tf.atan2)
divide = of_two_floats("divide", tf.divide)
divide_no_nan = of_two_floats("divide_no_nan", tf.divide_no_nan)
true_divide = of_two_floats("true_divide", tf.divide)
SAME[tf.truediv] = divide
logical_and = of_truths("logical_and", tf.logical_and)
logical_or = of_truths("logical_or", tf.logical_or)
logical_xor = of_truths("logical_xor", tf.logical_xor)
bitwise_and = of_bits("bitwise_and", tf.bitwise_and)
bitwise_or = of_bits("bitwise_or", tf.bitwise_or)
bitwise_xor = of_bits("bitwise_xor", tf.bitwise_xor)
left_shift = of_bits("left_shift", tf.left_shift)
right_shift = of_bits("right_shift", tf.right_shift)
bitwise_left_shift = of_bits("bitwise_left_shift", tf.left_shift)
bitwise_right_shift = of_bits("bitwise_right_shift", tf.right_shift)
logical_not = of_any("logical_not", lambda x: tf.logical_not(tf.cast(x, "bool")), "True where an element is 0.",
    same=tf.logical_not)

cbrt = of_floats("cbrt", transcendental.cbrt, "Cube root, of negative numbers too: x**(1/3).")
fmax = of_two("fmax", arithmetic.fmax, "Larger of two, where NaN counts as missing.")
fmin = of_two("fmin", arithmetic.fmin, "Smaller of two, where NaN counts as missing.")
hypot = of_two_floats("hypot", transcendental.hypot, "Length of the vector (x1, x2): sqrt(x1**2 + x2**2).")
gcd = of_two("gcd", arithmetic.greatest_common_divisor, "Greatest common divisor of integers, not negative.")
lcm = of_two("lcm", arithmetic.least_common_multiple, "Least common multiple of integers, not negative.")
nextafter = of_two_floats("nextafter", tf.nextafter)
logaddexp = of_two_floats("logaddexp", tf.logaddexp)
i0 = of_floats("i0", tf.bessel_i0)

# fmt: on

# With a formula of their own -------------------------------------------------------------------------------------------


@operation
def round(x: TensorLike, decimals: int = 0) -> Tensor:
    """Nearest number of so many decimals, halves to the even one; a negative count rounds tens, hundreds and so on.

    >>> print(tf.keras.ops.round([2.5, 2.675], decimals=1).numpy(), tf.keras.ops.round(1250, -2).numpy())
    [2.5 2.7] 1200
    """
    x = convert_to_tensor(x)
    if decimals == 0:
        return x if x.dtype.is_bool else tf.round(x)
    if builtins.abs(decimals) > 308:  # no float has such digits
        return x if decimals > 0 else zeros_like(x)
    scale = 10.0 ** builtins.abs(decimals)
    scaled = floating(x) * scale if decimals > 0 else floating(x) / scale
    rounded = tf.round(scaled) / scale if decimals > 0 else tf.round(scaled) * scale
    return rounded if x.dtype == rounded.dtype else tf.cast(rounded, x.dtype)


@operation
def fmod(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Remainder with the sign of x1: x1 - trunc(x1 / x2) x2.

    >>> print(tf.keras.ops.fmod([5.5, -5.5], 2.0).numpy())
    [ 1.5 -1.5]
    """
    x, y = _numbers(*promoted(x1, x2))
    rest = _whole(tf.floormod)(tf.abs(x), tf.abs(y))
    return tf.where(x < 0, -rest, rest)


@operation
def ldexp(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 times a power of two: x1 2**x2, for integers x2.

    >>> print(tf.keras.ops.ldexp(1.5, 3).numpy())
    12.0
    """
    exponent = convert_to_tensor(x2)
    if not exponent.dtype.is_integer:
        raise TypeError(f"ldexp: x2 must hold integers, found {exponent.dtype.name}. Use keras.ops.multiply(x1, 2**x2).")
    x = floating(x1)
    return x * tf.pow(tf.cast(2.0, x.dtype), tf.cast(exponent, x.dtype))


@operation
def sinc(x: TensorLike) -> Tensor:
    """Normalized sinc: sin(pi x) / (pi x), and 1 at 0.

    >>> print(tf.keras.ops.sinc([0.0, 0.5]).numpy().round(4))
    [1.     0.6366]
    """
    angles = floating(x) * _math.pi
    small = tf.abs(angles) < 1e-2  # the series is exact to 1e-16 there, with its first four derivatives to 1e-9
    squares = angles * angles
    series = 1.0 - squares / 6.0 * (1.0 - squares / 20.0 * (1.0 - squares / 42.0 * (1.0 - squares / 72.0)))
    safe = tf.where(small, ones_like(angles), angles)
    return tf.where(small, series, tf.sin(safe) / safe)


@operation(same=tf.clip_by_value)
def clip(x: TensorLike, x_min: Any, x_max: Any) -> Tensor:
    """Values moved into [x_min, x_max]. Derivative: 1 inside and at both ends, 0 outside; of bools int32.

    >>> print(tf.keras.ops.clip([-1, 0, 5], 0, 2).numpy())
    [0 0 2]
    """
    x = convert_to_tensor(x)
    x, low, high = promoted(tf.cast(x, "int32") if x.dtype.is_bool else x, x_min, x_max)
    return tf.clip_by_value(x, low, high)


@operation
def nan_to_num(x: TensorLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """NaN and infinities replaced by numbers.

    Args:
        x: tensor of any shape.
        nan: what NaN becomes.
        posinf, neginf: what infinities become; the largest and the smallest number of the dtype if None.

    >>> print(tf.keras.ops.nan_to_num([float("nan"), float("inf")], posinf=9.0).numpy())
    [0. 9.]
    """
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        return x
    high, low = (float(x.dtype.max) if posinf is None else posinf), (float(x.dtype.min) if neginf is None else neginf)
    for place, number in ((tf.is_nan(x), nan), (x == _math.inf, high), (x == -_math.inf, low)):
        x = tf.where(place, tf.cast(exact(number, x.dtype), x.dtype), x)
    return x


@operation
def isclose(
    x1: TensorLike, x2: TensorLike, rtol: TensorLike = 1e-5, atol: TensorLike = 1e-8, equal_nan: bool = False
) -> Tensor:
    """True where |x1 - x2| <= atol + rtol |x2|; infinities are close to themselves.

    >>> print(tf.keras.ops.isclose([1.0, 2.0], [1.0 + 1e-7, 2.1]).numpy())
    [ True False]
    """
    x, y = map(floating, promoted(x1, x2))
    close = tf.is_finite(x) & tf.is_finite(y) & (tf.abs(x - y) <= tf.cast(atol, x.dtype) + tf.cast(rtol, x.dtype) * tf.abs(y))
    return close | (x == y) | (isnan(x) & isnan(y)) if equal_nan else close | (x == y)


@operation
def signbit(x: TensorLike) -> Tensor:
    """True where the sign is minus, that of -0.0 too.

    >>> print(tf.keras.ops.signbit([-0.0, 1.0]).numpy())
    [ True False]
    """
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        return tf.cast(x, "int64") < 0
    return (x < 0) | ((x == 0) & (tf.atan2(x, tf.cast(-1.0, x.dtype)) < 0))


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] | None = None, signature: str | None = None
) -> Callable[..., Any]:
    """A function that is called for every element, or every core array, of its broadcast arguments, all at once.

    Args:
        pyfunc: the function.
        excluded: positions and names of arguments that are given as they are.
        signature: the axes of a core array of each argument, such as '(n),(m)->(n,m)'; single elements if None.

    Returns:
        The function; the axes over which it runs come first in its results.

    Raises:
        ValueError: for a signature that cannot be read, or that names more or fewer arguments than there are.

    >>> print(tf.keras.ops.vectorize(lambda a, b: a + 10 * b)([1, 2], [[1], [2]]).numpy().tolist())
    [[11, 12], [21, 22]]
    """
    cores = None if signature is None else _ranks(signature)
    left_out = set(excluded or ())

    @functools.wraps(pyfunc)
    def called(*args: Any, **kwargs: Any) -> Any:
        places = [place for place in range(len(args)) if place not in left_out]
        tensors = [convert_to_tensor(args[place]) for place in places]
        ranks = [0] * len(tensors) if cores is None else cores
        if len(ranks) != len(tensors):
            raise ValueError(f"vectorize: the signature {signature!r} has {len(ranks)} arguments, found {len(tensors)}.")
        loops = np.broadcast_shapes(*(x.shape[: x.ndim - rank] for x, rank in zip(tensors, ranks, strict=True)))

        def one(parts: list[Tensor]) -> Any:
            given = list(args)
            for place, part in zip(places, parts, strict=True):
                given[place] = part
            return pyfunc(*given, **kwargs)

        flat = [
            reshape(broadcast_to(x, [*loops, *x.shape[x.ndim - rank :]]), [_math.prod(loops), *x.shape[x.ndim - rank :]])
            for x, rank in zip(tensors, ranks, strict=True)
        ]
        results = vectorized_map(one, flat)
        several = isinstance(results, (list, tuple))
        shaped = [reshape(y, [*loops, *y.shape[1:]]) for y in (results if several else [results])]
        return tuple(shaped) if several else shaped[0]

    return called


def _ranks(signature: str) -> list[int]:
    """The number of core axes of each argument of a signature such as '(n,m),()->(n)'."""
    core = r"\([^()]*\)"
    if not re.fullmatch(rf"{core}(,{core})*->{core}(,{core})*", signature.replace(" ", "")):
        raise ValueError(f"vectorize: cannot read the signature {signature!r}; write for example '(n),(m)->(n,m)'.")
    arguments = re.findall(core, signature.partition("->")[0])
    return [len([axis for axis in one.strip("() ").split(",") if axis.strip()]) for one in arguments]


# fmt: off
allclose = row("allclose",
    lambda x1, x2, rtol=1e-05, atol=1e-08, equal_nan=False: reduce_all(isclose(x1, x2, rtol, atol, equal_nan)),
    "Whether all elements are close, as `isclose` has it.", "print(tf.keras.ops.allclose([1.0], [1.0]).numpy()) -> True")
isneginf = row("isneginf", lambda x: floating(x) == -_math.inf, "True where an element is -inf.",
    'print(tf.keras.ops.isneginf([1.0, -float("inf")]).numpy()) -> [False  True]')
isposinf = row("isposinf", lambda x: floating(x) == _math.inf, "True where an element is inf.",
    'print(tf.keras.ops.isposinf([1.0, float("inf")]).numpy()) -> [False  True]')
square = row("square", lambda x: tf.square(tf.cast(x, "int32") if x.dtype.is_bool else x), "Square: x**2; of bools int32.",
    "print(tf.keras.ops.square([1, 2]).numpy()) -> [1 4]", takes=anything, same=tf.square)
trunc = row("trunc", lambda x: arithmetic.trunc(x) if x.dtype.is_floating else x,
    "The number without what is behind the point: floor(x) of positive, ceil(x) of negative ones. Integers stay as they are.",
    "print(tf.keras.ops.trunc([1.7, -1.7]).numpy()) -> [ 1. -1.]", takes=anything)
heaviside = row("heaviside",
    lambda x1, x2: tf.where(x1 == 0, x2, tf.where(x1 > 0, ones_like(x1), tf.where(x1 < 0, zeros_like(x1), x1))),
    "Step: 0 for negative x1, x2 at 0, 1 for positive x1.",
    "print(tf.keras.ops.heaviside([-1.0, 0.0, 2.0], 0.5).numpy()) -> [0.  0.5 1. ]", takes=floats)
logaddexp2 = row("logaddexp2", lambda x1, x2: tf.logaddexp(x1 * _math.log(2.0), x2 * _math.log(2.0)) / _math.log(2.0),
    "Binary logarithm of the sum of powers of two: log2(2**x1 + 2**x2).",
    "print(tf.keras.ops.logaddexp2(1.0, 1.0).numpy()) -> 2.0", takes=floats)
isreal = row("isreal", lambda x: tf.imag(x) == 0 if x.dtype.is_complex else tf.cast(ones_like(x), "bool"),
    "True where an element has no imaginary part.",
    "print(tf.keras.ops.isreal([1.0 + 1j, 2.0]).numpy()) -> [False  True]", takes=anything)
# fmt: on


@operation(cost=cost_of_product, same=contractions.matmul)
def matmul(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Product of matrices, of stacks of them, and of vectors, which have one axis: sum over k of x1[..., i, k] x2[..., k, j].

    >>> print(tf.keras.ops.matmul([[1.0, 2.0]], [[3.0], [4.0]]).numpy())
    [[11.]]
    """
    a, b = _counted((x1, x2))
    if b.ndim == 1:
        return contractions.tensordot(a, b, 1)
    return squeeze(a[None] @ b, -2) if a.ndim == 1 else a @ b


@operation(name="Einsum", cost=cost_of_anything)
def _einsum(*operands: TensorLike, subscripts: str) -> Tensor:
    return contractions.einsum(subscripts, *_counted(operands))


def _counted(operands: Any) -> list[Tensor]:
    """Operands of a sum in one dtype; int8, whose sums overflow, as int32."""
    met = promoted(*operands)
    return [cast(one, "int32") for one in met] if met[0].dtype == "int8" else met


def einsum(subscripts: str, *operands: TensorLike, **kwargs: Any) -> Tensor:
    """Sum of products in Einstein's notation, such as 'ij,jk->ik'.

    Args:
        subscripts: the axes of each operand, separated by commas, and behind '->' those of the result.
        operands: tensors; different dtypes meet in one that holds all.
        kwargs: options of other backends, which have no meaning here.

    >>> print(tf.keras.ops.einsum("i,i->", [1.0, 2.0], [3.0, 4.0]).numpy())
    11.0
    """
    return _einsum(*operands, subscripts=subscripts)


@operation(cost=cost_of_product)
def dot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Sum of products over the last axis of x1 and the last but one of x2, or its only one; of a number a plain product.

    >>> print(tf.keras.ops.dot([1, 2], [3, 4]).numpy())
    11
    """
    a, b = promoted(x1, x2)
    if not a.ndim or not b.ndim:
        return a * b
    return contractions.tensordot(a, b, [[a.ndim - 1], [max(0, b.ndim - 2)]])


@operation(cost=cost_of_anything)
def kron(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Kronecker's product: every element of x1 times all of x2, in blocks.

    >>> print(tf.keras.ops.kron([1, 2], [3, 4]).numpy())
    [3 4 6 8]
    """
    a, b = promoted(x1, x2)
    rank = max(a.ndim, b.ndim)
    rows, columns = ([*[1] * (rank - one.ndim), *one.shape] for one in (a, b))
    a = reshape(a, [part for size in rows for part in (size, 1)])
    b = reshape(b, [part for size in columns for part in (1, size)])
    return reshape(a * b, [first * second for first, second in zip(rows, columns, strict=True)])


@operation
def cross(x1: TensorLike, x2: TensorLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """Vector product of vectors with two or three components; of two with two its third component.

    Args:
        x1, x2: tensors that are broadcast.
        axisa, axisb, axisc: the axis of the components in x1, x2 and the result.
        axis: for all three.

    >>> print(tf.keras.ops.cross([1, 0, 0], [0, 1, 0]).numpy())
    [0 0 1]
    """
    first, second, third = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    a, b = promoted(x1, x2)
    parts = [unstack(moveaxis(one, place, 0)) for one, place in ((a, first), (b, second))]
    if {len(part) for part in parts} - {2, 3}:
        raise ShapeError(f"cross: vectors must have 2 or 3 components, found {a.shape} and {b.shape}.")
    (a1, a2, a3), (b1, b2, b3) = ([*part, zeros_like(part[0])][:3] for part in parts)
    z = a1 * b2 - a2 * b1
    if len(parts[0]) == len(parts[1]) == 2:
        return z
    return moveaxis(stack([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, z]), 0, third)


# Differences and integrals -------------------------------------------------------------------------------------------------


@operation
def diff(a: TensorLike, n: int = 1, axis: int = -1) -> Tensor:
    """Differences of neighbours along an axis, n times.

    >>> print(tf.keras.ops.diff([1, 2, 4, 7]).numpy())
    [1 2 3]
    """
    x = moveaxis(convert_to_tensor(a), axis, 0)
    for _ in range(min(n, x.shape[0])):  # then nothing is left
        x = x[1:] - x[:-1] if not x.dtype.is_bool else x[1:] != x[:-1]
    return moveaxis(x, 0, axis)


@operation
def trapezoid(y: TensorLike, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Integral by trapezoids: sum of (y[i] + y[i + 1]) / 2 times the distance of the two places.

    Args:
        y: values of the function.
        x: the places, of the shape of `y` or along `axis` only; at the distance `dx` if None.
        dx: the distance.
        axis: along which is integrated.

    >>> print(tf.keras.ops.trapezoid([1, 2, 3]).numpy())
    4.0
    """
    values = moveaxis(floating(y), axis, -1)
    if x is None:
        distance = cast(exact(dx, values.dtype), values.dtype)
    else:
        places = cast(convert_to_tensor(x), values.dtype)
        places = moveaxis(places, axis, -1) if places.ndim == values.ndim else places
        distance = places[..., 1:] - places[..., :-1]
    return reduce_sum((values[..., 1:] + values[..., :-1]) * distance, -1) / 2.0


# fmt: off
inner = row("inner",
    lambda x1, x2: x1 * x2 if not x1.ndim or not x2.ndim else contractions.tensordot(x1, x2, [[x1.ndim - 1], [x2.ndim - 1]]),
    "Sum of products over the last axis of both.", "print(tf.keras.ops.inner([1, 2], [3, 4]).numpy()) -> 11",
    takes=promoted, cost=cost_of_anything)
vdot = row("vdot",
    lambda x1, x2: contractions.tensordot(reshape(conj(x1) if x1.dtype.is_complex else x1, [-1]), reshape(x2, [-1]), 1),
    "Sum of products of all elements, those of x1 conjugated.",
    "print(tf.keras.ops.vdot([[1, 2]], [[3, 4]]).numpy()) -> 11", takes=promoted)
outer = row("outer", lambda x1, x2: reshape(x1, [-1, 1]) * reshape(x2, [1, -1]),
    "Every product of an element of x1, the rows, and one of x2, the columns.",
    "print(tf.keras.ops.outer([1, 2], [3, 4]).numpy().tolist()) -> [[3, 4], [6, 8]]", takes=promoted, cost=cost_of_anything)
tensordot = row("tensordot", lambda x1, x2, axes=2: contractions.tensordot(x1, x2, axes),
    "Sum of products over axes of both: the last `axes` of x1 and the first of x2, or a list of axes for each.",
    "print(tf.keras.ops.tensordot([1.0, 2.0], [3.0, 4.0], axes=1).numpy()) -> 11.0",
    takes=promoted, types={"axes": "Any"}, cost=cost_of_anything, same=contractions.tensordot)
slogdet = row("slogdet", lambda x: tuple(linalg.slogdet(x)),
    "Sign and logarithm of the absolute value of the determinants of matrices.",
    "print(*[one.numpy() for one in tf.keras.ops.slogdet([[2.0, 0.0], [0.0, -0.5]])]) -> -1.0 0.0",
    takes=floats, returns="tuple[Tensor, Tensor]")
# fmt: on
