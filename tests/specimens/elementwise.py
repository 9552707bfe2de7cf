"""Rows for functions of corresponding elements."""

import numpy as np
from scipy import special

import minikeras as tf
from minikeras.core.ops import arithmetic, transcendental
from minikeras.functions.elementwise import logaddexp
from specimens.table import between, booleans, complexes, fixed, nonzero, normal, positive, row

M = tf.math


def unary(function, reference, sampler=None, **facts):
    return row(function, sampler or normal(3, 4), reference, elementwise=True, **facts)


def binary(function, reference, first=None, second=None, **facts):
    return row(function, (first or normal(3, 4), second or normal(4)), reference, elementwise=True, **facts)


inside = between(-0.9, 0.9, 3, 4)
above_one = between(1.2, 3.0, 3, 4)

ARITHMETIC = [
    binary(tf.add, np.add),
    binary(tf.subtract, np.subtract),
    binary(tf.multiply, np.multiply),
    binary(tf.divide, np.divide, second=nonzero(4)),
    binary(tf.truediv, np.divide, second=nonzero(4)),
    binary(tf.pow, np.power, first=positive(3, 4)),
    row(tf.pow, nonzero(5), lambda x: x**3, "with a number", call=lambda x: tf.pow(x, 3.0)),
    row(tf.pow, normal(5), lambda x: 2.0**x, "of a number", call=lambda x: tf.pow(2.0, x)),
    row(tf.pow, nonzero(5), np.square, "of two", call=lambda x: x**2),
    row(tf.divide, nonzero(5), lambda x: 3.0 / x, "of a number", call=lambda x: 3.0 / x),
    row(tf.subtract, nonzero(5), lambda x: 3.0 - x, "from a number", call=lambda x: 3.0 - x),
    binary(M.floormod, np.mod, between(0.2, 0.8, 3, 4), fixed([1.0, -1.0, 1.5, 2.0]), analytic=False),
    binary(tf.maximum, np.maximum, analytic=False),
    binary(tf.minimum, np.minimum, analytic=False),
    binary(arithmetic.fmax, np.fmax, analytic=False),
    binary(arithmetic.fmin, np.fmin, analytic=False),
    binary(transcendental.hypot, np.hypot, nonzero(3, 4), nonzero(4), analytic=False),
    binary(M.squared_difference, lambda a, b: (a - b) ** 2, analytic=False),
    binary(M.divide_no_nan, np.divide, second=nonzero(4)),
    binary(M.multiply_no_nan, np.multiply, second=nonzero(4)),
    binary(M.xlogy, special.xlogy, nonzero(3, 4), positive(4)),
    binary(M.xlog1py, special.xlog1py, nonzero(3, 4), positive(4)),
    binary(M.xdivy, np.divide, nonzero(3, 4), nonzero(4)),
    binary(tf.atan2, np.arctan2, nonzero(3, 4), nonzero(4), analytic=False),
    unary(tf.negative, np.negative),
    unary(tf.abs, np.abs, nonzero(3, 4), analytic=False),
    unary(tf.sign, np.sign, nonzero(3, 4), analytic=False),
    unary(tf.square, np.square),
    unary(M.reciprocal, lambda x: 1 / x, nonzero(3, 4)),
    unary(M.reciprocal_no_nan, lambda x: 1 / x, nonzero(3, 4)),
    row(M.nextafter, normal(3, 4), lambda x: np.nextafter(x, 9.0), call=lambda x: M.nextafter(x, 9.0), analytic=False),
    row(tf.scalar_mul, normal(3, 4), lambda x: 2.5 * x, call=lambda x: tf.scalar_mul(2.5, x)),
    row(
        M.polyval,
        (normal(3, 4), normal(4), normal(3, 1)),
        lambda x, a, b: (a * x + b) * x + 2.0,
        call=lambda x, a, b: M.polyval([a, b, 2.0], x),
    ),
    row(tf.add_n, (normal(2, 3), normal(2, 3), normal(2, 3)), lambda *xs: sum(xs), call=lambda *xs: tf.add_n(list(xs))),
    row(
        tf.clip_by_value,
        fixed([-2.0, -0.5, 0.3, 0.9, 4.0]),
        lambda x: np.clip(x, -1, 1),
        call=lambda x: tf.clip_by_value(x, -1.0, 1.0),
        analytic=False,
    ),
    row(tf.where, (booleans(3, 4), normal(4), normal(3, 1)), np.where),
    row(
        tf.where,
        (booleans(6), normal(6)),
        lambda c, x: np.where(c, x, 5.0),
        "with a number",
        call=lambda c, x: arithmetic.select(c, x, 5.0),
    ),
    unary(tf.identity, np.array),
    row(
        tf.cast,
        normal(4),
        lambda x: x.astype("float32"),
        "to float32",
        dtype="float32",
        float32=False,
        analytic=False,
        tolerance=1e-6,
        second_order=False,
        smooth=True,
    ),
    row(tf.saturate_cast, fixed([0.25, -0.5, 1.5]), np.array, dtype="float64", analytic=False, float32=False),
]

TRANSCENDENTAL = [
    unary(tf.sqrt, np.sqrt, positive(3, 4)),
    unary(M.rsqrt, lambda x: 1 / np.sqrt(x), positive(3, 4)),
    unary(tf.exp, np.exp),
    unary(M.expm1, np.expm1),
    unary(transcendental.exp2, np.exp2, analytic=False),
    unary(transcendental.cbrt, np.cbrt, nonzero(3, 4), analytic=False),
    unary(transcendental.log2, np.log2, positive(3, 4)),
    unary(transcendental.log10, np.log10, positive(3, 4)),
    unary(M.log, np.log, positive(3, 4)),
    unary(M.log1p, np.log1p, positive(3, 4)),
    unary(tf.sigmoid, special.expit, analytic=False),
    unary(M.log_sigmoid, special.log_expit, analytic=False),
    unary(M.softplus, lambda x: np.logaddexp(0, x), analytic=False),
    unary(M.erf, special.erf, analytic=False),
    unary(M.erfc, special.erfc, analytic=False),
    unary(M.erfinv, special.erfinv, inside, analytic=False),
    unary(M.erfcinv, special.erfcinv, between(0.1, 1.9, 3, 4), analytic=False),
    unary(M.ndtri, special.ndtri, between(0.05, 0.95, 3, 4), analytic=False),
    unary(M.lgamma, special.gammaln, between(0.2, 12.0, 3, 4), analytic=False),
    unary(M.lgamma, special.gammaln, between(-1.9, -1.2, 3, 4), variant="of negative numbers", analytic=False),
    unary(M.digamma, special.digamma, between(0.2, 12.0, 3, 4), analytic=False),
    unary(M.digamma, special.digamma, between(-1.8, -1.2, 3, 4), variant="of negative numbers", analytic=False),
    row(M.zeta, between(0.3, 12.0, 3, 4), lambda q: special.zeta(2.5, q), call=lambda q: M.zeta(2.5, q), analytic=False),
    row(
        M.zeta,
        between(-1.8, -1.2, 4),
        lambda q: special.polygamma(2, q) / -2.0,
        "of negative numbers",
        call=lambda q: M.zeta(3.0, q),
        analytic=False,
    ),
    row(
        M.polygamma,
        between(0.3, 3.0, 3, 4),
        lambda x: special.polygamma(2, x),
        call=lambda x: M.polygamma(2.0, x),
        analytic=False,
    ),
    *(
        unary(function, reference, nonzero(3, 4), analytic=False)
        for function, reference in (
            (M.bessel_i0, special.i0),
            (M.bessel_i0e, special.i0e),
            (M.bessel_i1, special.i1),
            (M.bessel_i1e, special.i1e),
        )
    ),
    binary(logaddexp, np.logaddexp, analytic=False),
    unary(tf.sin, np.sin),
    unary(tf.cos, np.cos),
    unary(tf.tan, np.tan, inside),
    unary(tf.asin, np.arcsin, inside),
    unary(tf.acos, np.arccos, inside),
    unary(tf.atan, np.arctan),
    unary(tf.sinh, np.sinh),
    unary(tf.cosh, np.cosh),
    unary(tf.tanh, np.tanh),
    unary(tf.asinh, np.arcsinh),
    unary(tf.acosh, np.arccosh, above_one),
    unary(tf.atanh, np.arctanh, inside),
]

COMPLEX = [
    row(M.real, complexes(4), np.real, analytic=False),
    row(M.imag, complexes(4), np.imag, analytic=False),
    row(M.real, normal(4), np.real, "of a real number", analytic=False),
    row(M.imag, normal(4), np.zeros_like, "of a real number", analytic=False),
    row(M.conj, complexes(4), np.conj, analytic=False),
    row(M.angle, complexes(4), np.angle, analytic=False),
    row(M.angle, nonzero(4), np.angle, "of a real number", analytic=False),
    row(tf.complex, (normal(3, 4), normal(4)), lambda a, b: a + 1j * b, analytic=False),
    row(tf.abs, complexes(4), np.abs, "of complex numbers", analytic=False),
    row(tf.multiply, (complexes(3, 4), complexes(4)), np.multiply, "of complex numbers", analytic=False),
    row(
        tf.multiply,
        complexes(4),
        lambda x: x * (1 + 2j),
        "by a complex number",
        call=lambda x: x * (1 + 2j),
        analytic=False,
    ),
    row(tf.divide, (complexes(4), complexes(4)), np.divide, "of complex numbers", analytic=False),
    row(tf.exp, complexes(4), np.exp, "of complex numbers", analytic=False),
    row(tf.sqrt, complexes(4), np.sqrt, "of complex numbers", analytic=False),
    row(tf.pow, (complexes(4), complexes(4)), np.power, "of complex numbers", analytic=False),
    row(tf.cast, complexes(4), np.real, "complex to real", dtype="float64", analytic=False, float32=False),
    row(
        tf.cast,
        normal(4),
        lambda x: x.astype(complex),
        "real to complex",
        dtype="complex128",
        analytic=False,
        float32=False,
    ),
]

SPECIMENS = ARITHMETIC + TRANSCENDENTAL + COMPLEX
