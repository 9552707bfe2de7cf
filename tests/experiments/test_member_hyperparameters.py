"""Members of an ensemble whose layers have numbers of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from slow import diagonal, sampled

import minikeras as tf
from minikeras.core.batch import Batch
from minikeras.errors import InvalidArgumentError
from minikeras.experiments.ensemble import Ensemble
from minikeras.experiments.members import EnsembleMember, MemberNumber
from minikeras.experiments.structure import OPTIONS, compare
from minikeras.keras import layers, regularizers
from minikeras.nn_ops.streams import set_global_seed

rng = np.random.default_rng(3)
X = rng.normal(size=(12, 4, 3)).astype("float32")
Y = rng.normal(size=(12, 2)).astype("float32")
RATES = (0.2, 0.3, 0.5)

Layers = Callable[[float], list[Any]]


def build(make: Layers, rate: float, jit_compile: Any = "auto") -> Any:
    model = tf.keras.Sequential([tf.keras.Input((4, 3)), *make(rate), layers.Flatten(), layers.Dense(2)])
    model.compile(tf.keras.optimizers.SGD(0.05), "mse", jit_compile=jit_compile)
    return model


def images(layer: Any) -> list[Any]:
    return [layers.Reshape((4, 3, 1)), layer, layers.Reshape((4, 3))]


class Attending(layers.Layer):
    """Attention of the input to itself."""

    def __init__(self, attention: Any) -> None:
        super().__init__()
        self.attention = attention

    def call(self, x: Any, training: bool = False) -> Any:
        return self.attention([x, x], training=training)


class SelfAttending(Attending):
    def call(self, x: Any, training: bool = False) -> Any:
        return self.attention(x, x, training=training)


CASES: dict[str, Layers] = {
    "Dropout": lambda rate: [layers.Dropout(rate)],
    "AlphaDropout": lambda rate: [layers.AlphaDropout(rate)],
    "SpatialDropout1D": lambda rate: [layers.SpatialDropout1D(rate)],
    "SpatialDropout2D": lambda rate: images(layers.SpatialDropout2D(rate)),
    "SpatialDropout3D": lambda rate: [layers.Reshape((4, 3, 1, 1)), layers.SpatialDropout3D(rate), layers.Reshape((4, 3))],
    "GaussianDropout": lambda rate: [layers.GaussianDropout(rate)],
    "GaussianNoise": lambda rate: [layers.GaussianNoise(rate)],
    "Attention": lambda rate: [Attending(layers.Attention(dropout=rate))],
    "AdditiveAttention": lambda rate: [Attending(layers.AdditiveAttention(dropout=rate))],
    "MultiHeadAttention": lambda rate: [SelfAttending(layers.MultiHeadAttention(2, 3, dropout=rate))],
    "GroupedQueryAttention": lambda rate: [SelfAttending(layers.GroupQueryAttention(3, 2, 1, dropout=rate))],
    "BatchNormalization": lambda rate: [layers.BatchNormalization(momentum=rate, epsilon=rate / 9)],
    "LayerNormalization": lambda rate: [layers.LayerNormalization(epsilon=rate)],
    "ActivityRegularization": lambda rate: [layers.Dense(3), layers.ActivityRegularization(rate, rate / 3)],
    "L1L2": lambda rate: [layers.Dense(3, "tanh", kernel_regularizer=regularizers.L1L2(rate, rate / 5), bias_regularizer="l2")],
    "L2 or none": lambda rate: [layers.Dense(3, activity_regularizer=regularizers.L2(0.0 if rate == 0.3 else rate))],
    "OrthogonalRegularizer": lambda rate: [layers.Dense(3, kernel_regularizer=regularizers.OrthogonalRegularizer(rate))],
}


def ensemble_of(make: Layers, jit_compile: Any) -> Ensemble:
    return Ensemble.of(
        [EnsembleMember.built(lambda rate=rate: build(make, rate, jit_compile), 7 + i) for i, rate in enumerate(RATES)]
    )


@functools.cache
def trained_alone(name: str, place: int) -> list[Any]:
    """Variables after eager steps; what compiled ones make is told by tests/compiler."""
    set_global_seed(7 + place)
    model = build(CASES[name], RATES[place], jit_compile=False)
    model.fit(X, Y, batch_size=4, epochs=2, verbose=0)
    return list(model.variables)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("name, jit_compile", sampled(diagonal(CASES, [False, "auto", True]), 3))
def test_members_with_numbers_of_their_own_train_as_alone(name: str, jit_compile: Any) -> None:
    ensemble = ensemble_of(CASES[name], jit_compile)
    ensemble.fit(X, Y, batch_size=4, epochs=2, verbose=0)
    for place, _ in enumerate(RATES):
        for one, other in zip(ensemble[place].variables, trained_alone(name, place), strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6, err_msg=one.name)
            if jit_compile is False and "Attention" not in name:
                np.testing.assert_array_equal(one.numpy(), other.numpy(), err_msg=one.name)


def test_every_option_has_a_case() -> None:
    covered = {name for name in CASES} | {"L1", "L2"}
    assert {kind.__name__ for kind in OPTIONS} <= covered


@pytest.mark.parametrize("functional", [False, True])
def test_a_derived_class_has_numbers_of_members_only_if_it_declares_them(functional: bool) -> None:
    class Silent(layers.Dropout):
        pass

    class Declaring(layers.Dropout):
        _member_numbers = ("rate",)

    def differences(kind: type) -> list[str]:
        def made(rate: float) -> Any:
            if not functional:
                return build(lambda rate: [kind(rate)], rate)
            inputs = tf.keras.Input((4, 3))
            return tf.keras.Model(inputs, kind(rate)(inputs))

        return compare([made(0.2), made(0.3)])

    assert len(differences(Silent)) == 1
    assert "rate: 0.2 in member 0, 0.3 in member 1" in differences(Silent)[0]
    assert differences(Declaring) == []


def test_of_a_described_layer_only_the_configuration_is_compared() -> None:
    class Counting(layers.Layer):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.calls = made.append(self) or len(made)  # type: ignore[func-returns-value]

        def call(self, x: Any) -> Any:
            return x

    class Described(Counting, described=True):
        pass

    made: list[Any] = []

    def difference(kind: type) -> list[str]:
        return compare([build(lambda rate: [kind()], 0.0) for _ in range(2)])

    assert difference(Counting) == ["Counting 'counting', calls: 1 in member 0, 2 in member 1"]
    assert difference(Described) == []


def test_a_number_is_refused_where_one_for_all_is_needed() -> None:
    number = MemberNumber([0.5, 1.0], Batch(2))
    with pytest.raises(InvalidArgumentError, match="another number for each member"):
        float(number)
    with pytest.raises(InvalidArgumentError, match="decides otherwise for some members"):
        bool(number == 1.0)
    assert number > 0.0
    assert (2.0 - number).values == (1.5, 1.0)
    assert not MemberNumber([0.0, 0.0], Batch(2))


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (layers.Dense(3, name="a"), layers.Dense(4, name="a"), "Dense 'a', units: 3 in member 0, 4 in member 1"),
        (
            layers.LeakyReLU(0.1, name="a"),
            layers.LeakyReLU(0.2, name="a"),
            "LeakyReLU 'a', negative_slope: 0.1 in member 0, 0.2 in member 1",
        ),
        (
            layers.Dropout(0.0, name="a"),
            layers.Dropout(0.2, name="a"),
            "Dropout 'a', rate: 0.0 in member 0, a number above 0 in member 1",
        ),
        (
            layers.Dense(3, name="a", kernel_regularizer="l2"),
            layers.Dense(3, name="a"),
            "Dense 'a', kernel_regularizer: {'module': 'keras.regularizers'",
        ),
    ],
)
def test_other_differences_are_named(one: Any, other: Any, message: str) -> None:
    (found,) = compare([tf.keras.Sequential([tf.keras.Input((3,)), layer]) for layer in (one, other)])
    assert found.startswith(message)


def test_seeds_initializers_and_counted_names_are_no_differences() -> None:
    def model(seed: int) -> Any:
        dense = layers.Dense(3, kernel_initializer=tf.keras.initializers.HeNormal(seed))
        return build(lambda rate: [dense, layers.Dropout(rate, seed=seed)], 0.1 * seed)

    assert compare([model(1), model(2)]) == []


class Scaled(tf.keras.Model):
    def __init__(self, factor: float, rate: float) -> None:
        super().__init__()
        self.factor, self.dense, self.dropout = factor, layers.Dense(2), layers.Dropout(rate)

    def call(self, x: Any, training: bool = False) -> Any:
        return self.dropout(self.dense(x), training=training) * self.factor


def test_attributes_of_custom_models_are_compared() -> None:
    assert compare([Scaled(1.0, 0.1), Scaled(1.0, 0.2)]) == []
    (found,) = compare([Scaled(1.0, 0.1), Scaled(2.0, 0.1)])
    assert found == "Scaled 'scaled', factor: 1.0 in member 0, 2.0 in member 1"


def test_losses_that_differ_are_named() -> None:
    def model(smoothing: float) -> Any:
        made = build(lambda rate: [], 0.1)
        made.compile("adam", tf.keras.losses.BinaryCrossentropy(label_smoothing=smoothing))
        return made

    (found,) = compare([model(0.1), model(0.2)])
    assert found.startswith("compile, loss, BinaryCrossentropy 'binary_crossentropy', label_smoothing: 0.1 in member 0, 0.2")


def test_an_ensemble_refuses_members_of_several_structures() -> None:
    sizes = iter([3, 4])
    ensemble = Ensemble(lambda: build(lambda rate: [layers.Dense(next(sizes), name="a")], 0.1), size=2, seeds=[1, 2])
    with pytest.raises(ValueError, match="must have one structure(.|\n)*Dense 'a', units: 3 in member 0, 4 in member 1"):
        ensemble.fit(X, Y, verbose=0)


class Held(layers.Layer):
    """A layer with something of its own that no configuration names."""

    def __init__(self, held: Any) -> None:
        super().__init__(name="held")
        self._held = held

    def call(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda k: layers.Lambda(lambda x: x * k, name="a"), "Lambda 'a', function, k: 1.0 in member 0, 2.0 in member 1"),
        (lambda k: layers.Dense(2, activation=lambda x: x * k, name="a"), "Dense 'a', activation, k: 1.0"),
        (
            lambda k: layers.Dense(2, bias_regularizer=lambda x: tf.reduce_sum(x) * k, name="a"),
            "Dense 'a', bias_regularizer, k",
        ),
        (lambda k: Held(k), "Held 'held', _held: 1.0 in member 0, 2.0 in member 1"),
        (lambda k: Held([{"k": k}]), "Held 'held', _held"),
        (lambda k: Held(np.full(3, k)), "Held 'held', _held"),
        (lambda k: Held(tf.fill([3], k)), "Held 'held', _held"),
        (lambda k: Held(lambda x: x * k), "Held 'held', _held, k: 1.0 in member 0, 2.0 in member 1"),
    ],
)
def test_what_no_configuration_says_is_compared_too(make: Callable[[float], Any], message: str) -> None:
    def model(k: float) -> Any:
        return tf.keras.Sequential([tf.keras.Input((3,)), make(k)])

    assert compare([model(1.0), model(1.0)]) == []
    (found,) = compare([model(1.0), model(2.0)])
    assert found.startswith(message)


class Block(layers.Layer):
    """A layer with layers inside."""

    def __init__(self, units: int, rate: float) -> None:
        super().__init__()
        self.dense, self.dropout = layers.Dense(units), layers.Dropout(rate)

    def call(self, x: Any, training: bool = False) -> Any:
        return self.dropout(self.dense(x), training=training)


def test_layers_within_the_users_are_compared() -> None:
    def model(units: int, rate: float) -> Any:
        return tf.keras.Sequential([tf.keras.Input((3,)), Block(units, rate)])

    assert compare([model(2, 0.1), model(2, 0.2)]) == []
    (found,) = compare([model(2, 0.1), model(3, 0.2)])
    assert found == "Dense 'dense', units: 2 in member 0, 3 in member 1"


def test_functions_of_losses_and_operations_of_functional_models_are_compared() -> None:
    def model(k: float, factor: float = 1.0) -> Any:
        inputs = tf.keras.Input((3,))
        made = tf.keras.Model(inputs, layers.Dense(2)(inputs) * k)
        made.compile("sgd", lambda y_true, y_pred: tf.reduce_mean(y_pred) * factor)
        return made

    assert compare([model(1.0), model(1.0)]) == []
    assert compare([model(1.0), model(2.0)]) == [
        "Multiply 'multiply', inbound_nodes[0], args[1]: 1.0 in member 0, 2.0 in member 1"
    ]
    assert compare([model(1.0), model(1.0, 2.0)]) == ["compile, loss, factor: 1.0 in member 0, 2.0 in member 1"]
