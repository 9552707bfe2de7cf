"""Arithmetic, comparisons, logic, choice and casts, element by element: a row with partial derivatives for each.

At a tie, `maximum` and `minimum` give the whole gradient to the first argument.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...types import Array, TensorLike, as_dtype
from ..arrays import device_name, is_array, moved, to_numpy
from ..convert import convert_to_tensor
from ..families import elementwise, is_complex, linear, primitive, unbroadcast
from ..primitive import Primitive
from ..registry import operations, register

_NUMBERS = (int, float)
MANY, MORE = 1 << 10, 1 << 12
"""Numbers of elements from which their bits are combined, and from which an array of a number is worthwhile."""
ROW = 1 << 15
"""The number of elements of such an array."""
_VECTORS = (np.dtype("float32"), np.dtype("float64"))


def indicator(condition: Any, like: Any) -> Any:
    """1 where the condition holds and 0 elsewhere, in the dtype of `like`."""
    return cast(condition, dtype=like.dtype.name)


def ordered(name: str, function: Callable[..., Any]) -> Any:
    """A kernel for numbers that can be compared by size; complex numbers, which cannot, are refused."""

    def kernel(xp: ModuleType, *arrays: Any, **params: Any) -> Any:
        for x in arrays:
            if type(x) is complex or (hasattr(x, "dtype") and x.dtype.kind == "c"):
                raise DTypeError(f"{name}: complex numbers have no order. Compare tf.abs(x) or tf.math.real(x).")
        return function(xp, *arrays, **params)

    return kernel


# Choices --------------------------------------------------------------------------------------------------------------


def choose(xp: ModuleType, condition: Any, a: Any, b: Any, out: Array | None = None) -> Array:
    """`xp.where(condition, a, b)`, in `out` if it is given.

    NumPy branches at each element, and a processor guesses half of random branches wrong. Many elements of one dtype are chosen
    by their bits, as b ^ (a ^ b) * condition: 2^15 random choices of float32 take 16 instead of 118 us, those beside 0 9 us.
    """
    if type(condition) is not np.ndarray or condition.size < MANY or not _have_bits(condition, a, b):
        found = xp.where(condition, a, b)
        if out is not None:
            np.copyto(out, found)
        return found if out is None else out
    dtype = (b if type(a) in _NUMBERS else a).dtype
    bits = f"i{dtype.itemsize}"
    first, other = [x.view(bits) if type(x) is np.ndarray else dtype.type(x).view(bits) for x in (a, b)]
    if type(b) is int and b == 0:
        return np.multiply(first, condition, out if out is None else out.view(bits)).view(dtype)
    differing = np.bitwise_xor(first, other)
    np.multiply(differing, condition, differing)
    return np.bitwise_xor(differing, other, differing if out is None else out.view(bits)).view(dtype)


def _have_bits(condition: Array, a: Any, b: Any) -> bool:
    """True if all arrays have the condition's shape and one dtype of real numbers, and the numbers are of its kind."""
    arrays, numbers = [x for x in (a, b) if type(x) not in _NUMBERS], [x for x in (a, b) if type(x) in _NUMBERS]
    alike = all(type(x) is np.ndarray and x.shape == condition.shape and x.dtype == arrays[0].dtype for x in arrays)
    if not arrays or not alike or condition.dtype != np.bool_:
        return False
    kind = arrays[0].dtype.kind
    return bool(kind == "f" or (kind in "iu" and float not in map(type, numbers)))


def extreme(function: Callable[..., Any], a: Any, b: Any, out: Array | None = None) -> Any:
    """`np.maximum` or `np.minimum` of two operands.

    NumPy uses vector instructions for two arrays but not for an array and a number, so the number becomes an array: 5 instead
    of 13 us for 2^15 float32.
    """
    if (
        (type(a) is not np.ndarray or a.size < MORE or a.dtype not in _VECTORS or type(b) not in _NUMBERS)
        or (b == 0 and math.copysign(1.0, b) < 0)  # of -0.0 and 0.0 vector instructions may choose the other
        or not all(
            type(x) is np.ndarray and x.dtype == a.dtype and x.flags.c_contiguous for x in (a, a if out is None else out)
        )
    ):
        return function(a, b, out=out)
    y = np.empty_like(a) if out is None else out
    row, flat, to = _row_of(b, a.dtype), a.reshape(-1), y.reshape(-1)
    for start in range(0, a.size, ROW):
        part = flat[start : start + ROW]
        function(part, row[: part.size], out=to[start : start + ROW])
    return y


@functools.lru_cache(maxsize=32)
def _row_of(number: float, dtype: np.dtype[Any]) -> Array:
    return np.full(ROW, number, dtype)


# Arithmetic ----------------------------------------------------------------------------------------------------------

add = elementwise("add", "add", 1, 1)
subtract = elementwise("subtract", "subtract", 1, -1)
multiply = elementwise("multiply", "multiply", lambda a, b, y: b, lambda a, b, y: a)
negative = elementwise("negative", "negative", -1)
square = elementwise("square", "square", lambda x, y: multiply(x, 2))


def _squared_difference(xp: ModuleType, a: Array, b: Array) -> Array:
    distance = a - b
    return distance * xp.conj(distance) if distance.dtype.kind == "c" else xp.square(distance)


def _squared_difference_vjp(
    wanted: Sequence[int], g: TensorLike, y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """2 g (a - b); of complex numbers |a - b|**2 is real, so only the real part of g counts."""
    a, b = inputs
    slope = multiply(subtract(a, b), 2)
    change = multiply(slope, cast(real(g), dtype=g.dtype.name) if is_complex(g) else g)
    return [unbroadcast(change if i == 0 else negative(change), inputs[i]) for i in wanted]


def _squared_difference_jvp(tangents: Sequence[Any], y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    slope, (s, t) = multiply(subtract(*inputs), 2), tangents
    change = s if t is None else negative(t) if s is None else subtract(s, t)
    moved = multiply(conj(slope) if is_complex(slope) else slope, change)
    return cast(real(moved), dtype=y.dtype.name) if is_complex(moved) else moved


squared_difference = elementwise(
    "squared_difference",
    _squared_difference,
    lambda a, b, y: multiply(subtract(a, b), 2),
    lambda a, b, y: multiply(subtract(b, a), 2),
    vjp=_squared_difference_vjp,
    jvp=_squared_difference_jvp,
)


def _divide(xp: ModuleType, a: Array, b: Array) -> Array:
    quotient = a / b
    if quotient.dtype == "float64":  # NumPy's answer for all integers; those of at most 16 bits fit float32, as in TensorFlow
        kinds = [x.dtype for x in (a, b) if hasattr(x, "dtype")]
        if all(kind.kind in "iu" and kind.itemsize <= 2 for kind in kinds):
            return quotient.astype("float32")
    return quotient


divide: Primitive = elementwise(
    "divide",
    _divide,
    lambda a, b, y: reciprocal(b) if hasattr(b, "dtype") else 1.0 / b if b else float("inf"),
    lambda a, b, y: negative(divide(y, b)),
    guarded=True,
)
reciprocal: Primitive = elementwise("reciprocal", lambda xp, x: 1 / x, lambda x, y: negative(multiply(y, y)), guarded=True)


def _multiply_no_nan(xp: ModuleType, a: Array, b: Array) -> Array:
    product = xp.multiply(a, b)
    return choose(xp, xp.equal(b, 0), xp.zeros_like(product), product)


def _divide_no_nan(xp: ModuleType, a: Array, b: Array) -> Array:
    if isinstance(a, np.floating) and type(a) is type(b):  # two numbers, as in a metric's result: a tenth of the time
        return a / b if b else type(a)(0)
    quotient = _divide(xp, a, b)
    return choose(xp, xp.equal(b, 0), xp.zeros_like(quotient), quotient)


multiply_no_nan = elementwise("multiply_no_nan", _multiply_no_nan, lambda a, b, y: b, lambda a, b, y: a, guarded=True)
divide_no_nan: Primitive = elementwise(
    "divide_no_nan",
    _divide_no_nan,
    lambda a, b, y: divide_no_nan(1.0, b) if hasattr(b, "dtype") else 1.0 / b if b else 0.0,
    lambda a, b, y: negative(divide_no_nan(y, b)),
)


def _floor_divide(xp: ModuleType, a: Array, b: Array) -> Array:
    _refuse_integer_zero(xp, a, b)
    return a // b


def _floor_modulus(xp: ModuleType, a: Array, b: Array) -> Array:
    _refuse_integer_zero(xp, a, b)
    return a % b


def _refuse_integer_zero(xp: ModuleType, a: Array, b: Array) -> None:
    """Integers have no infinity to answer with."""
    if getattr(a, "size", 1) == 0:
        return
    kind = b.dtype.kind if hasattr(b, "dtype") else "i" if type(b) is int else "f"
    if kind in "iu" and bool(to_numpy(xp.equal(b, 0).any() if hasattr(b, "dtype") else b == 0)):
        raise InvalidArgumentError("Integer division by zero. Integers cannot hold infinity; cast to a float dtype first.")


floor_divide = elementwise("floor_divide", _floor_divide, None, None)
floor_modulus = elementwise("floor_modulus", _floor_modulus, 1, lambda a, b, y: negative(floor_divide(a, b)))


def _power_by_base(a: TensorLike, b: TensorLike, y: TensorLike) -> Any:
    """b * a**(b - 1), and 0 where b is 0, also at a = 0."""
    if hasattr(b, "dtype"):
        return multiply_no_nan(power(a, subtract(b, 1)), b)
    return multiply(a, 2) if b == 2 else multiply(power(a, b - 1), b) if b else 0.0


def _power_by_exponent(a: TensorLike, b: TensorLike, y: TensorLike) -> Any:
    """y * log(a), and 0 where a is not positive (real) or zero (complex)."""
    if not hasattr(a, "dtype"):
        return multiply(y, operations.log(operations.add(operations.zeros_like(y), a))) if a else 0.0
    regular = not_equal(a, 0) if is_complex(a) else greater(a, 0)
    return multiply(y, operations.log(select(regular, a, ones_like(a))))


def _power(xp: ModuleType, a: Array, b: Any) -> Array:
    """`a**b`. The third to the eighth power are products: for a negative base NumPy takes 60 ns, 300 times as long."""
    if type(b) not in (int, float) or b not in range(3, 9) or a.dtype.itemsize <= 2:
        return a**b
    found, rest = None, int(b)
    while rest > 1:
        if rest % 2:
            found = a if found is None else found * a
        a, rest = a * a, rest // 2
    return a if found is None else found * a


power = elementwise("power", _power, _power_by_base, _power_by_exponent, guarded=True)


def _chosen(name: str, first: Callable[..., Any], second: Callable[..., Any]) -> Primitive:
    """NumPy's function that gives the first operand where `first(a, b, y)` holds, and the other where `second` does."""
    kernel = ordered(name, lambda xp, a, b: extreme(getattr(xp, name), a, b))
    return elementwise(name, kernel, *[lambda a, b, y, at=at: indicator(at(a, b, y), y) for at in (first, second)])


maximum = _chosen("maximum", lambda a, b, y: greater_equal(a, b), lambda a, b, y: less(a, b))
minimum = _chosen("minimum", lambda a, b, y: less_equal(a, b), lambda a, b, y: greater(a, b))
fmax = _chosen("fmax", lambda a, b, y: equal(a, y), lambda a, b, y: not_equal(a, y))
fmin = _chosen("fmin", lambda a, b, y: equal(a, y), lambda a, b, y: not_equal(a, y))
nextafter = elementwise("nextafter", "nextafter", 1, None)


def _absolute_vjp(g: TensorLike, y: TensorLike, x: TensorLike) -> Any:
    """g sign(x), where the sign of a complex number is x / |x|, and 0 at 0."""
    if is_complex(x):
        return multiply(_complex_like(g, x), divide_no_nan(x, _complex_like(y, x)))
    return multiply(g, sign(x))


absolute = primitive("absolute", lambda xp, x: abs(x), _absolute_vjp, batching="keep", elementwise=True)


def _sign_change(change: TensorLike, y: TensorLike, x: TensorLike) -> Any:
    """The change of y = x / |x| for a change of x: its part at right angles to y, by |x|; 0 at 0. Its own transpose."""
    if not is_complex(x):
        return multiply(multiply(y, 0), change)
    along = _complex_like(real(multiply(conj(y), change)), x)
    return divide_no_nan(subtract(change, multiply(y, along)), _complex_like(absolute(x), x))


sign = elementwise(
    "sign",
    lambda xp, x: xp.sign(x),
    lambda x, y: multiply(y, 0),
    vjp=lambda wanted, g, y, inputs, params: [_sign_change(g, y, inputs[0])],
    jvp=lambda tangents, y, inputs, params: _sign_change(tangents[0], y, inputs[0]),
)

# Rounding: piecewise constant, so there is no gradient -------------------------------------------------------------

floor = elementwise("floor", "floor", None)
ceil = elementwise("ceil", "ceil", None)
round_half_even = elementwise("round", "rint", None)
trunc = elementwise("trunc", "trunc", None)

# Common divisors and multiples of integers ----------------------------------------------------------------------------

greatest_common_divisor = elementwise("gcd", "gcd", None, None)
least_common_multiple = elementwise("lcm", "lcm", None, None)

# Comparisons and logic -----------------------------------------------------------------------------------------------

equal: Primitive = elementwise("equal", "equal", None, None)
not_equal: Primitive = elementwise("not_equal", "not_equal", None, None)
less: Primitive = elementwise("less", ordered("less", lambda xp, a, b: a < b), None, None)
less_equal: Primitive = elementwise("less_equal", ordered("less_equal", lambda xp, a, b: a <= b), None, None)
greater: Primitive = elementwise("greater", ordered("greater", lambda xp, a, b: a > b), None, None)
greater_equal: Primitive = elementwise("greater_equal", ordered("greater_equal", lambda xp, a, b: a >= b), None, None)
logical_and = elementwise("logical_and", "logical_and", None, None)
logical_or = elementwise("logical_or", "logical_or", None, None)
logical_xor = elementwise("logical_xor", "logical_xor", None, None)
logical_not = elementwise("logical_not", "logical_not", None)


def _of_bits(name: str, arity: int) -> Primitive:
    """One of NumPy's functions of the bits of integers."""

    def kernel(xp: ModuleType, *arrays: Array) -> Array:
        for x in arrays:
            if hasattr(x, "dtype") and x.dtype.kind not in "biu":
                raise DTypeError(f"{name}: needs integers or bools, found {x.dtype.name}. Compare first: x > 0.")
        return getattr(xp, "invert" if name == "bitwise_not" else name)(*arrays)

    return elementwise(name, kernel, *(None,) * arity)


def _shift(name: str) -> Primitive:
    """Bits moved by 0 to their number less one; any other number of places is taken for the nearest of these."""

    def kernel(xp: ModuleType, a: Array, b: Array) -> Array:
        if a.dtype.kind not in "iu":
            raise DTypeError(f"{name}: needs integers, found {a.dtype.name}.")
        last = 8 * a.dtype.itemsize - 1
        return getattr(xp, name)(a, min(max(b, 0), last) if type(b) is int else xp.minimum(xp.maximum(b, 0), last))

    return elementwise(name, kernel, None, None)


bitwise_and = _of_bits("bitwise_and", 2)
bitwise_or = _of_bits("bitwise_or", 2)
bitwise_xor = _of_bits("bitwise_xor", 2)
bitwise_not = _of_bits("bitwise_not", 1)
left_shift = _shift("left_shift")
right_shift = _shift("right_shift")
# As in TensorFlow, no gradient is registered for these three: asking for one says so.
is_nan = elementwise("IsNan", "isnan", None, differentiable=True, vjp=None, jvp=None)
is_inf = elementwise("IsInf", "isinf", None, differentiable=True, vjp=None, jvp=None)
is_finite = elementwise("IsFinite", "isfinite", None, differentiable=True, vjp=None, jvp=None)


def elementwise_equality(a: TensorLike, b: TensorLike, equality: bool) -> Any:
    """`a == b` or `a != b` as operators see it: shapes that do not fit, and None, are simply unequal."""
    if b is None or isinstance(b, (str, type)):
        return _compare(a, b, equality) if isinstance(b, str) and a.dtype.name == "string" else not equality
    try:
        return _compare(a, b, equality)
    except ShapeError:
        return convert_to_tensor(not equality)


def _compare(a: TensorLike, b: TensorLike, equality: bool) -> Any:
    return (equal if equality else not_equal)(a, b)


register("elementwise_equality", elementwise_equality)

# Choice and identity -------------------------------------------------------------------------------------------------


def _select_transpose(g: TensorLike, condition: Any, a: TensorLike, b: TensorLike) -> list[Any]:
    """Each branch gets the cotangent where it was chosen and a true zero elsewhere."""
    return [
        None,
        unbroadcast(select(condition, g, 0), a) if hasattr(a, "dtype") else None,
        unbroadcast(select(condition, 0, g), b) if hasattr(b, "dtype") else None,
    ]


def _select(xp: ModuleType, condition: Array, a: Array, b: Array) -> Array:
    if type(b) is float and a.dtype.kind == "V":  # bfloat16 beside a number would be float64
        b = xp.asarray(b, dtype=a.dtype)
    return choose(xp, condition, a, b)


def _identity(xp: ModuleType, x: Array, device: str | None = None) -> Array:
    return x if device is None else moved(x, device)


def _moved_back(g: TensorLike, x: TensorLike, device: str | None = None) -> Any:
    return g if device is None else identity(g, device=device_name(x) if is_array(x) else x.device)


select = linear("select", _select, _select_transpose, uniform=False, batching="align", elementwise=True, moves=True)
identity = linear("identity", _identity, _moved_back, elementwise=True, moves=True)
stop_gradient = elementwise("stop_gradient", lambda xp, x: x, None, vjp=None, moves=True)
zeros_like = elementwise("zeros_like", lambda xp, x, dtype=None: xp.zeros_like(x, dtype=dtype), None, moves=True)
ones_like = elementwise("ones_like", lambda xp, x, dtype=None: xp.ones_like(x, dtype=dtype), None, moves=True)

# Dtypes and complex numbers ------------------------------------------------------------------------------------------


def _cast(xp: ModuleType, x: Array, dtype: str) -> Array:
    if x.dtype.kind == "c" and xp.dtype(dtype).kind != "c":
        x = x.real
    return x.astype(dtype)


def _complex_like(x: TensorLike, like: Any) -> Any:
    """A real value with a zero imaginary part, in the dtype of `like`."""
    return cast(x, dtype=like.dtype.name)


def _cast_back(g: TensorLike, x: TensorLike, dtype: str) -> Any:
    return cast(g, dtype=x.dtype.name) if as_dtype(x.dtype).is_differentiable else None


cast: Primitive = linear("cast", _cast, _cast_back, elementwise=True)
real = linear("real", lambda xp, x: x.real, lambda g, x: _complex_like(g, x) if is_complex(x) else g, moves=True)
imag = linear(
    "imag", lambda xp, x: x.imag, lambda g, x: make_complex(zeros_like(g), g) if is_complex(x) else zeros_like(g), moves=True
)
conj: Primitive = linear("conj", lambda xp, x: xp.conj(x), lambda g, x: conj(g), moves=True)


def conj_if_complex(x: TensorLike) -> Any:
    """The conjugate; a real value as it is, without an operation."""
    return conj(x) if is_complex(x) else x


def _make_complex(xp: ModuleType, a: Array, b: Array) -> Array:
    # Written part by part: a + 1j * b would turn an infinite imaginary part into NaN.
    whole = xp.zeros_like(a + b, dtype="complex64" if a.dtype == "float32" else "complex128")
    whole.real, whole.imag = a, b
    return whole


make_complex: Primitive = linear(
    "complex", _make_complex, lambda g, a, b: [unbroadcast(real(g), a), unbroadcast(imag(g), b)], batching="align"
)


def _bitcast(xp: ModuleType, x: Array, dtype: str) -> Array:
    """The bytes of a larger number become a last axis of smaller ones, and the other way round."""
    size, wanted = x.dtype.itemsize, np.dtype(dtype).itemsize
    shape = x.shape if size == wanted else (*x.shape, size // wanted) if size > wanted else x.shape[:-1]
    return x.copy().reshape(-1).view(dtype).reshape(shape)  # a view of other bytes needs them in one piece


# No gradient is registered for it in TensorFlow: the bits of a number are no smooth function of it.
bitcast = linear("Bitcast", _bitcast, lambda g, x, dtype: g, vjp=None, jvp=None, moves=True)


def clip(x: TensorLike, low: Any, high: Any) -> Any:
    """x limited to [low, high]; the slope is 1 at both edges."""
    return minimum(maximum(x, low), high)
