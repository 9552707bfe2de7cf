"""Activations, regularizers, constraints and initializers."""

import re

import numpy as np
import pytest
from golden_numbers import assert_golden, golden
from in_one_test import in_one_test

import minikeras as tf
from minikeras.keras.initializers import compute_fans

FUNCTIONS = golden("activations_regularizers_constraints")
INITIALIZERS = golden("initializers")
ALIASES = {"relu_kwargs": "relu", "gelu_approx": "gelu"}
LOOSE = {"tanh", "tanh_shrink", "mish", "gelu_approx"}
"""What Keras computed in float32; our tanh is checked against NumPy's."""
AT_THE_KINK = {"leaky_relu": ([0.0], 0.2), "selu": ([0.0], 1.0507009873554805), "sparse_sigmoid": ([-1.0, 1.0], 0.5)}
"""Kinks and our slope there. TensorFlow takes the one from below for leaky_relu and the one from above for selu, JAX the other;
a limit lets the slope pass at both edges, where JAX halves it."""
ACTIVATIONS = {name: case for name, case in FUNCTIONS["activations"].items() if name != "sparsemax"}
"""Keras's sparsemax is wrong for more than one share: they do not add up to 1. See the test of ours below."""


@in_one_test(name=ACTIVATIONS)
def test_an_activation_and_its_derivative_are_keras_s(name, dtype):
    case = ACTIVATIONS[name]
    options = dict(case.get("kwargs", {})) | ({"axis": case["axis"]} if "axis" in case else {})
    x = tf.constant(case["x"], dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = getattr(tf.keras.activations, ALIASES.get(name, name))(x, **options)
    tolerance = "single" if name in LOOSE and dtype == "float64" else dtype
    assert_golden(y, case["y"], tolerance)
    if "dx" in case:
        assert_golden(tape.gradient(y, x, tf.constant(case["dy"], dtype)), case["dx"], tolerance)
    elif "dy_dx" in case:
        derivative, expected = tape.gradient(y, x).numpy(), np.asarray(case["dy_dx"])
        kinks, slope = AT_THE_KINK.get(name, ([], 0.0))
        kinked = np.isin(x.numpy(), kinks)
        assert (derivative[kinked] == np.asarray(slope, dtype)).all()
        assert_golden(derivative[~kinked], expected[~kinked], tolerance)
    if not options:
        assert np.array_equal(tf.keras.activations.get(name)(x).numpy(), y.numpy())


def test_tanh_and_what_is_made_of_it_are_exact(float64):
    x = np.asarray(ACTIVATIONS["tanh"]["x"])
    np.testing.assert_allclose(tf.keras.activations.tanh(x).numpy(), np.tanh(x), rtol=1e-15)
    np.testing.assert_allclose(tf.keras.activations.tanh_shrink(x).numpy(), x - np.tanh(x), rtol=1e-15)
    softplus = np.log1p(np.exp(-abs(x))) + np.maximum(x, 0.0)
    np.testing.assert_allclose(tf.keras.activations.mish(x).numpy(), x * np.tanh(softplus), rtol=1e-14)


def _nearest_distribution(x):
    """Martins and Astudillo (2016), algorithm 1, for one row."""
    ordered = np.sort(x)[::-1]
    sums = np.cumsum(ordered)
    k = max(k for k in range(1, len(x) + 1) if 1.0 + k * ordered[k - 1] > sums[k - 1])
    return np.maximum(x - (sums[k - 1] - 1.0) / k, 0.0)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_sparsemax_is_the_nearest_distribution(axis, float64):
    x = np.asarray(FUNCTIONS["activations"]["sparsemax"]["x"])
    y = tf.keras.activations.sparsemax(x, axis).numpy()
    np.testing.assert_allclose(y, np.apply_along_axis(_nearest_distribution, axis, x), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(y.sum(axis), 1.0, rtol=1e-14)
    tf.test.check_gradients(lambda x: tf.keras.activations.sparsemax(x, axis), x)


def test_sparsemax_of_ties_shares_evenly():
    assert tf.keras.activations.sparsemax([[3.0, 3.0, 0.0]]).numpy().tolist() == [[0.5, 0.5, 0.0]]


@pytest.mark.parametrize("name", sorted(set(ACTIVATIONS) - {"threshold", "relu_kwargs", "gelu_approx"}))
def test_an_activation_is_found_by_name_and_named_again(name):
    found = tf.keras.activations.get(name)
    assert tf.keras.activations.serialize(found) == name
    assert tf.keras.activations.deserialize(name) is found is getattr(tf.keras.activations, name)


@pytest.mark.parametrize("case", FUNCTIONS["regularizers"]["cases"], ids=str)
def test_a_regularizer_and_its_gradient_are_keras_s(case, dtype):
    w = tf.constant(FUNCTIONS["regularizers"]["w"], dtype)
    regularizer = getattr(tf.keras.regularizers, case["class"])(**case["config"])
    with tf.GradientTape() as tape:
        tape.watch(w)
        value = regularizer(w)
    assert_golden(value, case["value"], dtype)
    assert_golden(tape.gradient(value, w), case["grad"], dtype)
    assert type(regularizer).from_config(regularizer.get_config()).get_config() == regularizer.get_config()


@pytest.mark.parametrize("case", FUNCTIONS["constraints"]["cases"], ids=str)
def test_a_constraint_projects_as_keras_s(case, dtype):
    constraint = getattr(tf.keras.constraints, case["class"])(**case["config"])
    assert_golden(constraint(tf.constant(FUNCTIONS["constraints"]["w"], dtype)), case["value"], dtype)
    assert type(constraint).from_config(constraint.get_config()).get_config() == constraint.get_config()


# Initializers ----------------------------------------------------------------------------------------------------------


@in_one_test(case=INITIALIZERS["cases"])
def test_an_initializer_draws_within_keras_s_limits_and_with_its_deviation(case, float64):
    initializer = getattr(tf.keras.initializers, case["class"])(**case["config"], seed=11)
    values = initializer(case["shape"]).numpy()
    low, high = case.get("limit_lo", -case.get("limit", np.inf)), case.get("limit_hi", case.get("limit", np.inf))
    assert low <= values.min() and values.max() <= high
    if "fan_in" in case:
        assert compute_fans(tuple(case["shape"])) == (case["fan_in"], case["fan_out"])
    deviation = case.get("target_std", case["empirical"]["std"])
    # The deviation of n draws scatters by about its n-th root of a half; five times that never happens by chance.
    assert abs(values.std() - deviation) <= 5.0 * deviation / np.sqrt(2.0 * values.size)
    centre = case["config"].get("mean", (case["config"].get("minval", 0.0) + case["config"].get("maxval", 0.0)) / 2)
    assert abs(values.mean() - centre) <= 5.0 * deviation / np.sqrt(values.size)
    assert np.array_equal(values, initializer(case["shape"]).numpy())


@pytest.mark.parametrize("case", INITIALIZERS["fans"], ids=lambda case: str(case["shape"]))
def test_fans_count_the_receptive_field(case):
    assert list(compute_fans(tuple(case["shape"]))) == case["fans"]


@pytest.mark.parametrize("text", INITIALIZERS["deterministic"])
def test_a_deterministic_initializer_gives_keras_s_values(text):
    made = {
        "Zeros": lambda: tf.keras.initializers.Zeros()((2, 2)),
        "Ones": lambda: tf.keras.initializers.Ones()((2, 2)),
        "Constant(3.5)": lambda: tf.keras.initializers.Constant(3.5)((2,)),
        "Identity(gain=2)(3,3)": lambda: tf.keras.initializers.Identity(gain=2)((3, 3)),
        "Identity (2,4)": lambda: tf.keras.initializers.Identity()((2, 4)),
    }
    assert_golden(made[text](), INITIALIZERS["deterministic"][text])


def test_seeds_mean_what_they_mean_in_keras():
    normal, expected = tf.keras.initializers.RandomNormal, INITIALIZERS["seed_semantics"]

    def equal(first, second):
        return np.array_equal(first((3,)).numpy(), second((3,)).numpy())

    same, unseeded, advancing = normal(seed=1), normal(), normal(seed=tf.keras.random.SeedGenerator(1))
    assert equal(same, same) == equal(normal(seed=1), normal(seed=1)) == expected["int_seed_two_calls_equal"]
    assert equal(unseeded, unseeded) == expected["no_seed_two_calls_equal"]
    assert equal(advancing, advancing) == expected["seed_generator_two_calls_equal"]
    assert equal(normal(), normal()) == expected["two_objects_no_seed_equal"]


BASES = {"Initializer", "initializer"}  # the abstract base cannot be made from its name


@pytest.mark.parametrize("name", sorted(set(INITIALIZERS["string_names"]) - BASES))
def test_an_initializer_is_found_by_every_name_it_has_in_keras(name):
    found = tf.keras.initializers.get(name)
    assert isinstance(found, tf.keras.initializers.Initializer)
    assert re.sub(r"\W|_", "", name).lower()[:3] in type(found).__name__.lower()
    assert found.get_config() == type(found).from_config(found.get_config()).get_config()
