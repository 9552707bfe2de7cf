"""Special functions that NumPy lacks, in float64 accuracy."""

from __future__ import annotations

from typing import Any

from ..types import Array

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


def _ratio(x: Array, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Array:
    """Cody's rational function: the last numerator coefficient leads, the denominator is monic."""
    numerator, denominator = coefficients
    above, below = numerator[-1] * x, x
    for up, down in zip(numerator[:-2], denominator[:-1], strict=True):
        above, below = (above + up) * x, (below + down) * x
    return (above + numerator[-2]) / (below + denominator[-1])


def _scaled_tail(xp: Any, magnitude: Array) -> Array:
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


def erf(xp: Any, x: Array) -> Array:
    """The error function 2/sqrt(pi) * integral of exp(-t**2) from 0 to x, elementwise, in x's dtype."""
    wide = x.astype("float64")
    magnitude = xp.abs(wide)
    square = xp.minimum(magnitude, 0.46875) ** 2
    inner = wide * _ratio(square, _SMALL)
    outer = xp.sign(wide) * (1.0 - _scaled_tail(xp, magnitude))
    return xp.where(magnitude <= 0.46875, inner, outer).astype(x.dtype)


def erfc(xp: Any, x: Array) -> Array:
    """1 - erf(x) without cancellation for large x, elementwise, in x's dtype."""
    wide = x.astype("float64")
    magnitude = xp.abs(wide)
    tail = _scaled_tail(xp, magnitude)
    outer = xp.where(wide < 0, 2.0 - tail, tail)
    return xp.where(magnitude <= 0.46875, 1.0 - erf(xp, wide), outer).astype(x.dtype)
