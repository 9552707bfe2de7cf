"""Special functions agree with SciPy's over all of float64, near their zeros and poles too."""

import timeit

import numpy as np
import pytest
from scipy import special

import minikeras as tf
from minikeras.nn_ops import special as own

M = tf.math
rng = np.random.default_rng(0)


def powers(low, high, count=2000):
    return 10.0 ** rng.uniform(low, high, count)


unit = np.concatenate([rng.uniform(0, 1, 4000), powers(-300, 0), 1 - powers(-16, 0), [0.0, 0.5, 1.0]])
above = np.concatenate([rng.uniform(0, 12, 8000), powers(-300, 300), [0.5, 1.5, 2.5, 8.0, 10.0]])
below = -np.concatenate([rng.uniform(0, 12, 8000), powers(-5, 2)])
both = np.concatenate([rng.normal(size=4000) * 12, powers(-5, 6), -powers(-5, 6)])
CASES = {
    "ndtri": (M.ndtri, special.ndtri, unit, 0.0),
    "erfinv": (M.erfinv, special.erfinv, np.concatenate([unit, -unit]), 0.0),
    "erfcinv": (M.erfcinv, special.erfcinv, np.concatenate([unit, 1 + unit]), 0.0),
    "lgamma": (M.lgamma, special.gammaln, above, 1e-3),  # near 1 and 2 SciPy itself is wrong by 1e-16
    "lgamma of negative numbers": (M.lgamma, special.gammaln, below, 1.0),
    "digamma": (M.digamma, special.digamma, above, 0.0),
    "digamma of negative numbers": (M.digamma, special.digamma, below[np.abs(below - np.rint(below)) > 1e-3], 1.0),
    "zeta": (lambda q: M.zeta(2.5, q), lambda q: special.zeta(2.5, q), above[(above > 1e-100) & (above < 1e100)], 0.0),
    "polygamma": (lambda x: M.polygamma(3.0, x), lambda x: special.polygamma(3, x), rng.uniform(0.1, 50, 2000), 0.0),
    "bessel_i0e": (M.bessel_i0e, special.i0e, both, 0.0),
    "bessel_i1e": (M.bessel_i1e, special.i1e, both, 0.0),
}


@pytest.mark.parametrize("name", CASES)
def test_a_special_function_is_scipys_to_twelve_digits(name):
    function, reference, x, floor = CASES[name]
    expected, actual = reference(x), function(tf.constant(x, "float64")).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12 * floor)


def test_the_logarithm_of_gamma_keeps_its_digits_at_its_zeros():
    z = np.array([1e-9, -1e-9, 1e-5])
    slopes = [[-0.5772156649015329, 0.8224670334241132], [0.42278433509846713, 0.3224670334241132]]
    for at, (first, second) in zip((1.0, 2.0), slopes, strict=True):
        step = (at + z) - at
        np.testing.assert_allclose(M.lgamma(tf.constant(at + z)), first * step + second * step**2, rtol=1e-9)


def test_poles_and_ends_are_infinite_and_what_is_outside_is_nan():
    def values(function, *xs):
        return function(tf.constant(xs, "float64")).numpy().tolist()

    inf = np.inf
    assert values(M.lgamma, 0.0, -1.0, -2.0, inf) == [inf, inf, inf, inf]
    assert values(M.erfinv, -1.0, 0.0, 1.0) == [-inf, 0.0, inf]
    assert values(M.erfcinv, 0.0, 1.0, 2.0) == [inf, 0.0, -inf]
    assert values(M.ndtri, 0.0, 0.5, 1.0) == [-inf, 0.0, inf]
    assert values(lambda q: M.zeta(2.0, q), 0.0, -1.0, inf) == [inf, inf, 0.0]
    assert values(M.bessel_i1e, 0.0, inf) == [0.0, 0.0]
    for function, outside in ((M.erfinv, 1.5), (M.erfcinv, -0.5), (M.ndtri, 1.5)):
        assert np.isnan(values(function, outside, np.nan)).all()
    for function in (M.lgamma, M.digamma, M.bessel_i0e, M.bessel_i1):
        assert np.isnan(values(function, np.nan)).all()


def test_the_zeta_function_of_a_negative_number_needs_an_integer():
    assert np.isnan(M.zeta(tf.constant(2.5), -0.5))
    np.testing.assert_allclose(M.zeta(tf.constant([2.0, 3.0, 4.0]), -0.5), [8.934802, 0.414398, 32.234848], rtol=1e-5)


def test_running_sums_of_exponentials_stay_finite_beside_minus_infinity():
    x = tf.Variable([-np.inf, -np.inf, 0.0, 1000.0])
    with tf.GradientTape() as tape:
        y = M.cumulative_logsumexp(x)
    np.testing.assert_array_equal(y, [-np.inf, -np.inf, 0.0, 1000.0])
    np.testing.assert_array_equal(tape.gradient(y, x), [0.0, 0.0, 1.0, 1.0])


def test_poles_and_what_is_not_defined():
    of = lambda *values: tf.constant(values, tf.float64)
    assert np.isnan(tf.math.digamma(of(0.0, -1.0, -2.0)).numpy()).all()
    assert np.isnan(tf.math.polygamma(of(0.5, -1.0, -2.0), of(2.0, 2.0, 2.0)).numpy()).all()
    assert np.isnan(tf.math.zeta(of(0.5, -1.0), of(2.0, 2.0)).numpy()).all()
    assert tf.math.lgamma(of(-np.inf)).numpy() == np.inf


@pytest.mark.parametrize(
    ("function", "exact", "most"), [(M.erf, special.erf, 4.0), (M.erfc, special.erfc, 9.0)], ids=["erf", "erfc"]
)
def test_the_error_function_of_float32_is_right_to_a_few_units_in_the_last_place(function, exact, most):
    x = np.concatenate([np.linspace(-12, 9.1, 400_001), np.geomspace(1e-37, 1, 50_001)]).astype("f")
    wanted = exact(x.astype("d"))
    units = np.spacing(np.abs(wanted).astype("f"))
    assert np.max(np.abs(function(x).numpy() - wanted) / units) <= most
    assert np.array_equal(function(np.array([np.inf, -np.inf, np.nan], "f")).numpy(), exact([np.inf, -np.inf, np.nan]), True)


@pytest.mark.parametrize("name", ["lgamma", "digamma", "erfinv"])
def test_functions_of_float32_are_right_to_a_few_units_in_the_last_place(name):
    function, around = getattr(M, name), np.linspace(-1e-3, 1e-3, 20_001)
    x = [np.linspace(1e-3, 12, 400_001), np.geomspace(1e-37, 1e30, 50_001), *(at + around for at in (1, 1.461632145, 2))]
    inside = [np.linspace(-1, 1, 400_001), 1 - np.geomspace(6e-8, 1, 50_001), np.geomspace(1e-37, 1, 50_001)]
    x = np.concatenate(inside if name == "erfinv" else [*x, -np.linspace(0.01, 8, 10_001)]).astype("f")
    wanted = function(x.astype("d")).numpy()
    units = np.spacing(np.abs(wanted).astype("f"))
    with np.errstate(invalid="ignore"):  # infinity less infinity
        away = np.abs(function(x).numpy() - wanted) / units
    assert np.nanmax(np.where(np.isinf(wanted), 0.0, away)) <= 7.0
    ends = np.array([0.0, -0.0, 1.0, 2.0, -1.0, 1.5, np.inf, -np.inf, np.nan])
    np.testing.assert_allclose(function(ends.astype("f")), function(ends), rtol=3e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lgamma", "digamma", "erfinv"])
def test_functions_of_float32_take_a_few_logarithms(name):
    """They took 60 to 120 times as long as a logarithm, since they were computed in float64."""
    x = np.random.default_rng(0).uniform(0.01, 0.99, 1 << 18).astype("f")
    kernel = getattr(own, name).on_numpy
    seconds = [min(timeit.repeat(lambda f=f: f(x), number=1, repeat=20)) for f in (kernel, np.log)]
    assert seconds[0] < 40.0 * seconds[1]


def test_gelu_of_float32_is_right_in_its_tail_too():
    x = np.concatenate([np.linspace(-12, 9.1, 400_001), np.geomspace(1e-37, 1, 50_001)]).astype("f")
    wanted = x * special.ndtr(x.astype("d"))
    units = np.abs(tf.nn.gelu(x).numpy() - wanted) / np.spacing(np.abs(wanted).astype("f"))
    assert np.max(units / (10.0 + x.astype("d") ** 2 / 2)) <= 1.0
