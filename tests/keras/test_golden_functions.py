"""Activations, regularizers, constraints and initializers."""

from __future__ import annotations

import re

import numpy as np
import pytest
from golden_numbers import LATER_CLASSES, assert_golden, golden, now

import minikeras as tf
from minikeras.keras.initializers import compute_fans

FUNCTIONS = golden("activations_regularizers_constraints")
INITIALIZERS = golden("initializers")
ALIASES = {"relu_kwargs": "relu", "gelu_approx": "gelu"}
LOOSE = {"tanh", "gelu_approx"}
"""What Keras computed in float32; our tanh is checked against NumPy's."""
AT_THE_KINK = {"leaky_relu": 0.2, "selu": 1.0507009873554805}
"""The slope at 0: TensorFlow takes the one from below for leaky_relu and the one from above for selu, JAX the other."""
ACTIVATIONS = {name: case for name, case in FUNCTIONS["activations"].items() if name not in LATER_CLASSES["activations"]}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_and_its_derivative_are_keras_s(name, dtype):
    case = ACTIVATIONS[name]
    options = dict(case.get("kwargs", {})) | ({"axis": case["axis"]} if "axis" in case else {})
    x = tf.constant(case["x"], dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = getattr(tf.keras.activations, ALIASES.get(name, name))(x, **options)
    tolerance = "single" if name in LOOSE and dtype == "float64" else dtype
    assert_golden(y, case["y"], tolerance)
    if "dy_dx" in case:
        derivative, expected = tape.gradient(y, x).numpy(), np.asarray(case["dy_dx"])
        if name in AT_THE_KINK:
            assert derivative[x.numpy() == 0.0] == np.asarray(AT_THE_KINK[name], dtype)
            derivative, expected = derivative[x.numpy() != 0.0], expected[x.numpy() != 0.0]
        assert_golden(derivative, expected, tolerance)
    if not options:
        assert np.array_equal(tf.keras.activations.get(name)(x).numpy(), y.numpy())


def test_tanh_is_exact(float64):
    x = np.asarray(ACTIVATIONS["tanh"]["x"])
    np.testing.assert_allclose(tf.keras.activations.tanh(x).numpy(), np.tanh(x), rtol=1e-15)


@pytest.mark.parametrize("case", now(FUNCTIONS["regularizers"]["cases"], "regularizers", "class"), ids=str)
def test_a_regularizer_and_its_gradient_are_keras_s(case, dtype):
    w = tf.constant(FUNCTIONS["regularizers"]["w"], dtype)
    regularizer = getattr(tf.keras.regularizers, case["class"])(**case["config"])
    with tf.GradientTape() as tape:
        tape.watch(w)
        value = regularizer(w)
    assert_golden(value, case["value"], dtype)
    assert_golden(tape.gradient(value, w), case["grad"], dtype)
    assert type(regularizer).from_config(regularizer.get_config()).get_config() == regularizer.get_config()


@pytest.mark.parametrize("case", now(FUNCTIONS["constraints"]["cases"], "constraints", "class"), ids=str)
def test_a_constraint_projects_as_keras_s(case, dtype):
    constraint = getattr(tf.keras.constraints, case["class"])(**case["config"])
    assert_golden(constraint(tf.constant(FUNCTIONS["constraints"]["w"], dtype)), case["value"], dtype)
    assert type(constraint).from_config(constraint.get_config()).get_config() == constraint.get_config()


# Initializers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", INITIALIZERS["cases"], ids=lambda case: f"{case['class']}-{case['shape']}")
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

    same, unseeded, advancing = normal(seed=1), normal(), normal(seed=tf.keras.seeds.SeedGenerator(1))
    assert equal(same, same) == equal(normal(seed=1), normal(seed=1)) == expected["int_seed_two_calls_equal"]
    assert equal(unseeded, unseeded) == expected["no_seed_two_calls_equal"]
    assert equal(advancing, advancing) == expected["seed_generator_two_calls_equal"]
    assert equal(normal(), normal()) == expected["two_objects_no_seed_equal"]


LATER_NAMES = {"STFT", "STFTInitializer", "stft"}
BASES = {"Initializer", "initializer"}  # the abstract base cannot be made from its name


@pytest.mark.parametrize("name", sorted(set(INITIALIZERS["string_names"]) - LATER_NAMES - BASES))
def test_an_initializer_is_found_by_every_name_it_has_in_keras(name):
    found = tf.keras.initializers.get(name)
    assert isinstance(found, tf.keras.initializers.Initializer)
    assert re.sub(r"\W|_", "", name).lower()[:3] in type(found).__name__.lower()
    assert found.get_config() == type(found).from_config(found.get_config()).get_config()
