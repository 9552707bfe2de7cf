"""Special functions that NumPy lacks: error, gamma, zeta and Bessel functions, and their inverses, in float64 accuracy.

First how the values are found, then the operations with their derivatives.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..core import Primitive, elementwise
from ..core.arrays import to_numpy
from ..core.ops.arithmetic import add, choose, multiply, negative, sign, square, subtract
from ..core.ops.transcendental import exp
from ..types import Array, TensorLike
from .philox4x32 import QUANTILE

# W. J. Cody, Rational Chebyshev approximation for the error function, Math. Comp. 23 (1969), 631-637.
_SMALL = (
    (3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3, 1.85777706184603153e-1),
    (2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
_MIDDLE = (
    (
        *(5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1, 2.98635138197400131e2),
        *(8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3, 2.15311535474403846e-8),
    ),
    (
        *(1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3),
        *(3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3),
    ),
)
_LARGE = (
    (
        *(3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1),
        *(1.60837851487422766e-2, 6.58749161529837803e-4, 1.63153871373020978e-2),
    ),
    (2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1, 6.05183413124413191e-2, 2.33520497626869185e-3),
)
_INVERSE_ROOT_PI = 5.6418958354775628695e-1
_ROOT_HALF = math.sqrt(0.5)
_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def _ratio(x: Array, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Array:
    """Cody's rational function: the last numerator coefficient leads, the denominator is monic."""
    numerator, denominator = coefficients
    above, below = numerator[-1] * x, x
    for up, down in zip(numerator[:-2], denominator[:-1], strict=True):
        above, below = (above + up) * x, (below + down) * x
    return (above + numerator[-2]) / (below + denominator[-1])


def _scaled_tail(xp: ModuleType, magnitude: Array) -> Array:
    """exp(-x**2) times the scaled complementary error function, for x above 0.46875."""
    middle = xp.minimum(xp.maximum(magnitude, 0.46875), 4.0)
    large = xp.maximum(magnitude, 4.0)
    square = 1.0 / (large * large)
    far = (_INVERSE_ROOT_PI - square * _ratio(square, _LARGE)) / large
    scaled = xp.where(magnitude <= 4.0, _ratio(middle, _MIDDLE), far)
    # exp(-x^2) in two factors keeps its relative accuracy where x^2 is rounded.
    coarse = xp.trunc(xp.minimum(magnitude, 30.0) * 16.0) / 16.0
    rest = (xp.minimum(magnitude, 30.0) - coarse) * (xp.minimum(magnitude, 30.0) + coarse)
    return xp.exp(-coarse * coarse) * xp.exp(-rest) * scaled


# float32: artanh(erf(x)) / x by powers of x**2; exp(x**2) erfc(x) as a rational function by rising powers of x, up to 10.1;
# exp(x**2/2) times the normal distribution's tail beyond x by powers of 1 / (1 + 0.3 x). All are fitted to SciPy's values, with
# the largest relative error of the result as small as can be.
_ARTANH = (1.1283792, 0.10276907, -0.0001918316, -0.0006197841, 8.7637134e-05, -5.668445e-06, 1.4185052e-07)
_SCALED_TAIL = (
    (1.0, 1.238426206, 0.7316206364, 0.2292266533, 0.03279816369),
    (1.0, 2.366805951, 2.402265818, 1.325399384, 0.4063200643, 0.05813253278),
)
_NORMAL_TAIL = (
    *(0.0, 0.119630947, 0.120728559, 0.10007263, 0.128035172),
    *(-0.0526865027, 0.205268555, -0.156572801, 0.0355234121),
)
_BLOCK = 65536
"""The number of elements that are computed at a time: 512 kB of operands, which a processor's own cache holds."""


def _in_float32(function: Callable[..., Any]) -> Callable[[Any, Array], Array]:
    """A function of float32, with `out` for its result, for it and shorter floats; of a long array in memory block by block."""

    def computed(xp: ModuleType, x: Array) -> Array:
        wide = x.astype("float32", copy=False)
        if type(x) is not np.ndarray or x.size <= _BLOCK or not x.flags.c_contiguous:
            return function(xp, wide).astype(x.dtype, copy=False)
        found = np.empty(x.shape, "float32")
        parts = [array.reshape(-1) for array in (wide, found)]
        for start in range(0, x.size, _BLOCK):
            function(xp, *[part[start : start + _BLOCK] for part in parts])
        return found.astype(x.dtype, copy=False)

    return computed


@_in_float32
def _short_erf(xp: ModuleType, x: Array, out: Array | None = None) -> Array:
    """The error function in float32, within 4 units in the last place."""
    inner = _polynomial(x * x, _ARTANH)
    inner *= x
    return xp.tanh(inner, out=out)


@_in_float32
def _short_erfc(xp: ModuleType, x: Array, out: Array | None = None) -> Array:
    """1 - erf(x) in float32, within 9 units in the last place."""
    magnitude = xp.minimum(xp.abs(x), 10.1)
    # x**2 is the sum of `square` and `rest`: exp(-x**2) would lose what rounding takes from it.
    coarse = xp.trunc(magnitude * 16.0) * 0.0625
    exact, further = coarse * coarse, (magnitude - coarse) * (magnitude + coarse)
    square = exact + further
    rest = (exact - square) + further
    tail = xp.exp(-square) * ((1.0 - rest) * _quotient(magnitude, _SCALED_TAIL))
    return choose(xp, x < 0, 2.0 - tail, tail, out)


@_in_float32
def _short_ndtr(xp: ModuleType, x: Array, out: Array | None = None) -> Array:
    """The normal distribution function in float32, within 10 + x**2/2 units in the last place."""
    tail = _polynomial(1.0 / (xp.abs(x) * 0.3 + 1.0), _NORMAL_TAIL) * xp.exp(x * x * -0.5)
    return choose(xp, x < 0, tail, 1.0 - tail, out)


def _erf(xp: ModuleType, x: Array) -> Array:
    """The error function 2/sqrt(pi) * integral of exp(-t**2) from 0 to x, elementwise, in x's dtype."""
    if x.dtype != np.float64:
        return _short_erf(xp, x)
    magnitude = xp.abs(x)
    square = xp.minimum(magnitude, 0.46875) ** 2
    inner = x * _ratio(square, _SMALL)
    outer = xp.sign(x) * (1.0 - _scaled_tail(xp, magnitude))
    return xp.where(magnitude <= 0.46875, inner, outer).astype(x.dtype)


def _erfc(xp: ModuleType, x: Array) -> Array:
    """1 - erf(x) without cancellation for large x, elementwise, in x's dtype."""
    if x.dtype != np.float64:
        return _short_erfc(xp, x)
    magnitude = xp.abs(x)
    tail = _scaled_tail(xp, magnitude)
    outer = xp.where(x < 0, 2.0 - tail, tail)
    return xp.where(magnitude <= 0.46875, 1.0 - _erf(xp, x), outer).astype(x.dtype)


def _ndtr(xp: ModuleType, x: Array) -> Array:
    """The normal distribution function, erfc(-x / sqrt(2)) / 2, elementwise, in x's dtype."""
    return _short_ndtr(xp, x) if x.dtype != np.float64 else _erfc(xp, x * -_ROOT_HALF) * 0.5


# Normal quantiles --------------------------------------------------------------------------------------------------------

# M. J. Wichura, Algorithm AS 241: The percentage points of the normal distribution, Applied Statistics 37 (1988), 477-484:
# numerator and denominator of PPND16, by rising powers, for the middle, and for the tail up to and beyond exp(-25).
_CENTRE = (
    (
        *(3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4),
        *(4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    ),
    (
        *(1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3),
        *(2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
    ),
)
_NEAR_TAIL = (
    (
        *(1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0),
        *(1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    ),
    (
        *(1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1),
        *(1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
    ),
)
_FAR_TAIL = (
    (
        *(6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1),
        *(2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    ),
    (
        *(1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2),
        *(7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
    ),
)


def _polynomial(x: Array, coefficients: Sequence[float]) -> Any:
    """Horner's rule in one array; coefficients by rising powers."""
    total: Any = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total += coefficient
        total *= x
    total += coefficients[0]
    return total


def _quotient(x: Array, coefficients: tuple[Sequence[float], Sequence[float]]) -> Any:
    return _polynomial(x, coefficients[0]) / _polynomial(x, coefficients[1])


def _normal_quantile(xp: ModuleType, middle: Array, tail: Array) -> Array:
    """The x at which the normal distribution function is 1/2 + middle; `tail` is the smaller of that and 1 minus that."""
    centre = middle * _quotient(0.180625 - xp.minimum(middle * middle, 0.180625), _CENTRE)
    root = xp.sqrt(-xp.log(tail))
    near, far = _quotient(xp.minimum(root, 5.0) - 1.6, _NEAR_TAIL), _quotient(xp.minimum(root, 30.0) - 5.0, _FAR_TAIL)
    outer = xp.where(tail > 0, xp.where(root <= 5.0, near, far), xp.where(tail < 0, float("nan"), float("inf")))
    return xp.where(abs(middle) <= 0.425, centre, xp.sign(middle) * outer)


# float32: M. Giles, Approximating the erfinv function (2010), by powers of -log((1 - x) (1 + x)), and of its root beyond 5.
_ERFINV_TAIL = (
    *(2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773),
    *(-0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257),
)


@_in_float32
def _short_erfinv(xp: ModuleType, x: Array, out: Array | None = None) -> Array:
    """The inverse of the error function in float32, within 4 units in the last place."""
    w = -xp.log((1.0 - x) * (1.0 + x))
    centre, *falling = QUANTILE[False]
    found = _polynomial(w - centre, falling[::-1])
    beyond = w >= 5.0
    if type(x) is not np.ndarray or beyond.any():
        root = xp.sqrt(xp.maximum(w, 5.0))
        tail = choose(xp, root < math.inf, _polynomial(root - 3.0, _ERFINV_TAIL), root)
        found = choose(xp, beyond, tail, found)
    return xp.multiply(found, x, out=out)


def _ndtri(xp: ModuleType, p: Array) -> Array:
    """The x at which the normal distribution function is p, elementwise, in p's dtype."""
    wide = p.astype("float64")
    return _normal_quantile(xp, wide - 0.5, xp.minimum(wide, 1.0 - wide)).astype(p.dtype)


def _erfinv(xp: ModuleType, x: Array) -> Array:
    """The inverse of the error function, elementwise, in x's dtype."""
    if x.dtype != np.float64:
        return _short_erfinv(xp, x)
    wide = x.astype("float64")
    return (_normal_quantile(xp, wide * 0.5, (1.0 - abs(wide)) * 0.5) * _ROOT_HALF).astype(x.dtype)


def _erfcinv(xp: ModuleType, x: Array) -> Array:
    """The inverse of the complementary error function, elementwise, in x's dtype."""
    wide = x.astype("float64")
    return (_normal_quantile(xp, (1.0 - wide) * 0.5, xp.minimum(wide, 2.0 - wide) * 0.5) * _ROOT_HALF).astype(x.dtype)


# The gamma function and its logarithmic derivatives: DLMF, https://dlmf.nist.gov, chapters 5 and 25 -------------------------

# B_2j: Bernoulli numbers.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _zeta_sum(s: Any, q: Any) -> Any:
    """The sum over k of (q + k)**-s for q > 0, by the formula of Euler and Maclaurin from the tenth term on: DLMF 25.11.5."""
    total: Any = q**-s
    for k in range(1, 10):
        total = total + (q + k) ** -s
    a = q + 10.0
    rest = a**-s
    total = total + rest * (a / (s - 1.0) + 0.5)
    rest = rest * s / a
    for j, number in enumerate(_BERNOULLI, 1):
        total = total + rest * (number / math.factorial(2 * j))
        rest = rest * ((s + (2.0 * j - 1.0)) * (s + 2.0 * j)) / (a * a)
    return total


def _zeta(xp: ModuleType, s: Any, q: Array) -> Array:
    """Hurwitz's zeta function, the sum over k of (q + k)**-s, elementwise, in q's dtype.

    It is NaN for s < 1, and for q < 0 unless s is an integer: then the terms with q + k < 0 are those of two such sums for
    positive numbers.
    """
    dtype = q.dtype if hasattr(q, "dtype") else s.dtype
    s, q = (x.astype("float64") if hasattr(x, "dtype") else float(x) for x in (s, q))
    fraction = q - xp.rint(q)
    odd = s % 2.0
    sign = (1.0 - 2.0 * odd) if type(s) is float else xp.where(odd * (odd - 1.0) == 0.0, 1.0 - 2.0 * odd, float("nan"))
    turned = _zeta_sum(s, xp.where(fraction < 0, -fraction, 1.0 - fraction)) - _zeta_sum(s, 1.0 - xp.minimum(q, 0.0))
    left = _zeta_sum(s, xp.where(fraction < 0, 1.0 + fraction, fraction)) + sign * turned
    found = xp.where(q < 0, left, _zeta_sum(s, xp.minimum(xp.maximum(q, 0.0), 1e300)))
    return xp.where(xp.less(s, 1.0), float("nan"), found).astype(dtype)


_EULER = 0.57721566490153286061
_ROOT_OF_DIGAMMA = (1569415565 / 2**30, 381566830 / 2**60, 0.9016312093258695918615325266959189453125e-19)  # their sum


@functools.cache
def _taylor() -> tuple[Sequence[float], Sequence[float]]:
    """Taylor's coefficients by DLMF 5.7.3 and 5.15.1: of log gamma at 2, and of digamma at its root."""
    of_lgamma = [(-1.0) ** k * _zeta_sum(float(k), 2.0) / k for k in range(2, 28)]
    of_digamma = [(-1.0) ** k * -_zeta_sum(k + 1.0, sum(_ROOT_OF_DIGAMMA)) for k in range(1, 22)]
    return (0.0, 1.0 - _EULER, *of_lgamma), (0.0, *of_digamma)


_STIRLING = tuple(number / (2 * j * (2 * j - 1)) for j, number in enumerate(_BERNOULLI, 1))
_DIGAMMA_FAR = (0.0, *(-number / (2 * j) for j, number in enumerate(_BERNOULLI, 1)))


# float32: log gamma over (1 - x) (x - 2), and digamma over the distance from its root, as rational functions of x - 1.5; what
# Stirling's series, and digamma's, add, by powers of x**-2. All are fitted to the functions in float64, as those above.
_SHORT_LGAMMA = (
    (-0.4831289612, -0.3768397819, -0.06483715613, -0.0008431482027),
    (1.0, 1.082112005, 0.3309077541, 0.0256122866),
)
_SHORT_STIRLING = (0.08333331244, -0.002774424382, 0.0007090119771)
_SHORT_DIGAMMA = (
    (0.9510558757, 0.6838119535, 0.1091629738, 0.001277206268),
    (1.0, 1.164431455, 0.3805302791, 0.03237441116),
)
_SHORT_ROOT = float(np.float32(_ROOT_OF_DIGAMMA[0]))
_SHORT_DIGAMMA_FAR = (0.08333332617, -0.008331760095, 0.003911320769, -0.003395371183, 0.00245704509)


def _positive_in_float32(function: Callable[..., Any], wide: Callable[..., Any]) -> Callable[..., Any]:
    """A function of positive float32; other numbers, near whose roots reflection loses digits, go by float64."""

    @_in_float32
    def computed(xp: ModuleType, x: Array, out: Array | None = None) -> Array:
        found = function(xp, x)
        if type(x) is not np.ndarray:  # as the elements of a program, which have the bits of eager calls
            return choose(xp, x > 0, found, wide(xp, x))
        if not (positive := x > 0).all():
            found[~positive] = wide(xp, x[~positive])
        if out is not None:
            out[...] = found
        return found

    return lambda xp, x: (computed if x.dtype != np.float64 else wide)(xp, x)


def _short_log_gamma(xp: ModuleType, x: Array) -> Array:
    """log gamma(x) for x > 0, within 7 units in the last place."""
    log, near, far = xp.log(x), xp.minimum(x, 3.0), xp.maximum(x, 3.0)
    below = near < 1.0
    beyond = choose(xp, below, near, near - 1.0)  # 1, of x or of x + 1
    small = (0.0 - beyond) * (beyond - 1.0) * _quotient(beyond - 0.5, _SHORT_LGAMMA)
    small -= choose(xp, below, log, 0)
    inverse = 1.0 / far
    large = (far - 0.5) * (log - 1.0) + (_HALF_LOG_TWO_PI - 0.5) + _polynomial(inverse * inverse, _SHORT_STIRLING) * inverse
    return choose(xp, x <= 3.0, small, large)


def _short_digamma(xp: ModuleType, x: Array) -> Array:
    """digamma(x) for x > 0, within 5 units in the last place."""
    near, inverse = xp.minimum(x, 2.0), 1.0 / x
    below = near < 1.0
    near = near + below
    small = ((near - _SHORT_ROOT) - (sum(_ROOT_OF_DIGAMMA) - _SHORT_ROOT)) * _quotient(near - 1.5, _SHORT_DIGAMMA)
    small -= choose(xp, below, inverse, 0)
    inverse = xp.minimum(inverse, 0.5)
    large = xp.log(xp.maximum(x, 2.0)) - (0.5 + inverse * _polynomial(inverse * inverse, _SHORT_DIGAMMA_FAR)) * inverse
    return choose(xp, x <= 2.0, small, large)


def _log_gamma(xp: ModuleType, x: Array) -> Array:
    """log |gamma(x)|, elementwise, in x's dtype: Taylor's series about 2, Stirling's beyond 2.5, reflection below 0."""
    wide = x.astype("float64")
    positive = xp.where(wide < 0, 1.0 - wide, wide)
    near = xp.minimum(positive, 2.5)
    shifted = xp.where(near < 0.5, near, xp.where(near < 1.5, near - 1.0, near - 2.0))
    below = xp.where(near < 0.5, near * (1.0 + near), xp.where(near < 1.5, near, 1.0))
    small = _polynomial(shifted, _taylor()[0]) - xp.log(below)
    start = xp.minimum(xp.maximum(positive, 2.5), 8.0)
    product = start * (start + 1.0) * (start + 2.0) * (start + 3.0) * (start + 4.0) * (start + 5.0)
    far = xp.where(positive < 8.0, start + 6.0, positive)
    stirling = (far - 0.5) * (xp.log(far) - 1.0) + (_HALF_LOG_TWO_PI - 0.5) + _polynomial(1.0 / (far * far), _STIRLING) / far
    large = xp.where(positive < 8.0, stirling - xp.log(product), stirling)
    value = xp.where(positive <= 2.5, small, large)
    sine = abs(xp.sin(math.pi * (wide - xp.rint(wide))))
    reflected = xp.where(positive < float("inf"), xp.log(math.pi / sine) - value, value)
    return xp.where(wide < 0, reflected, value).astype(x.dtype)


log_gamma = _positive_in_float32(_short_log_gamma, _log_gamma)


def _wide_digamma(xp: ModuleType, x: Array) -> Array:
    """The derivative of log gamma(x), elementwise, in x's dtype; accurate at its root 1.46 too, NaN at 0, -1, -2, ..."""
    wide = x.astype("float64")
    positive = xp.where(wide < 0, 1.0 - wide, wide)
    start, steps = xp.minimum(positive, 10.0), 0.0
    for k in range(10):
        steps = steps + 1.0 / (start + k)
    far = xp.where(positive < 10.0, positive + 10.0, positive)
    value = xp.log(far) - 0.5 / far + _polynomial(1.0 / (far * far), _DIGAMMA_FAR)
    value = xp.where(positive < 10.0, value - steps, value)
    distance = ((positive - _ROOT_OF_DIGAMMA[0]) - _ROOT_OF_DIGAMMA[1]) - _ROOT_OF_DIGAMMA[2]
    near = xp.minimum(xp.maximum(distance, -0.25), 0.25)
    value = xp.where(abs(distance) <= 0.25, _polynomial(near, _taylor()[1]), value)
    angle = math.pi * (wide - xp.rint(wide))
    value = xp.where(wide < 0, value - math.pi * xp.cos(angle) / xp.sin(angle), value)
    return xp.where((wide <= 0) & (angle == 0.0), float("nan"), value).astype(x.dtype)


_digamma = _positive_in_float32(_short_digamma, _wide_digamma)

# Modified Bessel functions ------------------------------------------------------------------------------------------------


def _bessel_ie(xp: ModuleType, x: Array, order: int) -> Array:
    """exp(-|x|) I_n(x) for n = order, elementwise, in x's dtype: DLMF 10.25.2 up to 20, 10.40.1 beyond."""
    wide = x.astype("float64")
    size = abs(wide)
    near, far = xp.minimum(size, 20.0), xp.maximum(size, 20.0)
    series = [1.0 / (math.factorial(k) * math.factorial(k + order)) for k in range(45)]
    small = (near * 0.5) ** order * _polynomial(near * near * 0.25, series) * xp.exp(-near)
    factors = [(4 * order**2 - (2 * k - 1) ** 2) / (-8.0 * k) for k in range(1, 30)]
    large = _polynomial(1.0 / far, [math.prod(factors[:k]) for k in range(30)]) / xp.sqrt(2.0 * math.pi * far)
    value = xp.where(size <= 20.0, small, large)
    return (xp.where(wide < 0, -value, value) if order % 2 else value).astype(x.dtype)


def _gamma_slope(xp: ModuleType, alpha: Array, z: Array) -> Array:
    """The derivative of a sample z of the gamma distribution P by alpha, at fixed rank: -(dP/dalpha) / (dP/dz).

    P(alpha, z) is exp(-z) z**alpha times the sum over k of z**k / gamma(alpha + k + 1): DLMF 8.7.1.
    M. Figurnov, S. Mohamed, A. Mnih, Implicit Reparameterization Gradients (2018), equation (6).
    """
    dtype = alpha.dtype
    alpha, z = alpha.astype("float64"), xp.maximum(z.astype("float64"), 1e-300)
    term = 1.0 / alpha  # z**k gamma(alpha) / gamma(alpha + k + 1)
    slope = xp.log(z) - _digamma(xp, alpha + 1.0)  # of the logarithm of what stands in front of z**k
    total, k, largest = term * slope, 0, float(to_numpy((z - alpha).max())) if z.size else 0.0
    while k < largest or bool(to_numpy((term * (1.0 + abs(slope)) > 1e-17 * abs(total)).any())):
        k += 1
        term, slope = term * z / (alpha + k), slope - 1.0 / (alpha + k)
        total = total + term * slope
    return (-total * z).astype(dtype)


# The operations -----------------------------------------------------------------------------------------------------------

erf = elementwise("erf", _erf, lambda x, y: multiply(exp(negative(square(x))), _TWO_OVER_ROOT_PI))
erfc = elementwise("erfc", _erfc, lambda x, y: multiply(exp(negative(square(x))), -_TWO_OVER_ROOT_PI))

ndtr = elementwise("ndtr", _ndtr, lambda x, y: multiply(exp(multiply(square(x), -0.5)), 1.0 / math.sqrt(2.0 * math.pi)))

# Inverses of the error function and of the normal distribution function.
erfinv = elementwise("erfinv", _erfinv, lambda x, y: multiply(exp(square(y)), 1.0 / _TWO_OVER_ROOT_PI))
erfcinv = elementwise("erfcinv", _erfcinv, lambda x, y: multiply(exp(square(y)), -1.0 / _TWO_OVER_ROOT_PI))
ndtri = elementwise("ndtri", _ndtri, lambda x, y: multiply(exp(multiply(square(y), 0.5)), math.sqrt(2.0 * math.pi)))

# The gamma function's logarithm and its derivatives, which are values of the zeta function.
lgamma = elementwise("lgamma", log_gamma, lambda x, y: digamma(x))
digamma: Primitive = elementwise("digamma", _digamma, lambda x, y: zeta(2.0, x))
zeta: Primitive = elementwise("zeta", _zeta, None, lambda s, q, y: negative(multiply(s, zeta(add(s, 1.0), q))))

# A sample of the gamma distribution moves with its parameter as its rank stays; how that slope moves is not known here.
gamma_slope = elementwise("gamma_slope", _gamma_slope, None, None, differentiable=True, vjp=None, jvp=None, registered=False)
gamma_sample = elementwise(
    "gamma_sample",
    lambda xp, alpha, sample: sample + xp.zeros_like(alpha),
    lambda alpha, sample, y: gamma_slope(alpha, y),
    None,
    registered=False,
)


def _bessel_slope(x: TensorLike, y: TensorLike, order: int) -> Any:
    """(I_n-1 + I_n+1) / 2, scaled, less the slope of the scale; I_-1 is I_1."""
    neighbours = add(bessel_ie(x, order=abs(order - 1)), bessel_ie(x, order=order + 1))
    return subtract(multiply(neighbours, 0.5), multiply(sign(x), y))


bessel_ie: Primitive = elementwise("bessel_ie", _bessel_ie, _bessel_slope)
