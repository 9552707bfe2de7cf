"""A member equals a model that is trained by itself, whatever layers, losses and metrics it has."""

import sys
from pathlib import Path

import numpy as np
import pytest
from in_one_test import in_one_test
from slow import diagonal, mostly_slow, sampled

import minikeras as tf
from minikeras import keras, nest
from minikeras.experiments import Ensemble
from minikeras.nn_ops import streams

sys.path[:0] = [str(Path(__file__).parents[1] / "keras"), str(Path(__file__).parents[1] / "keras" / "layers")]
from golden_numbers import golden  # noqa: E402
from layer_table import ROWS  # noqa: E402

SEEDS = [5, 2]


class Probe(keras.Model):
    """One layer, and a number to learn even where the layer has none."""

    def __init__(self, layer, listed):
        super().__init__()
        self.layer, self.listed = layer, listed
        self.factor = self.add_weight((), keras.initializers.RandomUniform(0.8, 1.2), name="factor")

    def call(self, inputs, training=None):
        x = inputs if self.listed or not isinstance(inputs, (list, tuple)) else inputs[0]
        return tf.cast(self.layer(x, training=training), "float32") * self.factor


def fits(build, x, y, **options):
    """An ensemble and its members trained by themselves, eagerly; what compiled steps make is told by tests/compiler."""
    options = {"batch_size": 2, "epochs": 2, "verbose": 0} | options
    ensemble = Ensemble(build, len(SEEDS), SEEDS)
    history = ensemble.fit(x, y, **options)
    for place, seed in enumerate(SEEDS):
        streams.set_global_seed(seed)
        keras.utils.clear_session()
        model = build()
        model.run_eagerly = True
        yield place, ensemble[place], history.members[place].history, model, model.fit(x, y, **options).history


def assert_same(build, x, y, tolerance=2e-6, **options):
    for _, member, logs, model, alone in fits(build, x, y, **options):
        for a, b in zip(model.collect_contents().variables, member.collect_contents().variables, strict=True):
            np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=tolerance, atol=tolerance, err_msg=a.name)
        assert logs.keys() == alone.keys()
        for name in logs:
            np.testing.assert_allclose(logs[name], alone[name], rtol=5 * tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("jit_compile", mostly_slow([False, "auto"], "auto"))
@pytest.mark.parametrize("row", sampled(ROWS, 4), ids=lambda row: row.name)
def test_every_layer_computes_for_all_members(row, jit_compile):
    def build():
        model = Probe(row.make(), isinstance(row.shapes, list))
        loss = lambda y, y_pred: tf.reduce_mean(tf.square(y_pred))
        model.compile(keras.optimizers.SGD(0.1), loss, jit_compile=jit_compile)
        return model

    x = nest.map_structure(lambda one: one.numpy(), row.inputs("float32"))
    y = np.zeros(len(nest.flatten(x)[0]), "float32")
    assert_same(build, x, y, shuffle=not jit_compile, epochs=4 if jit_compile else 2)


LOSSES = golden("losses")


@pytest.mark.filterwarnings("ignore:Member . .* ends in epoch")
@in_one_test(3, case=LOSSES["cases"])
def test_every_loss_is_computed_for_all_members(case):
    data = LOSSES["data"][case["data"]]
    y, x = np.asarray(data["y_true"]), np.asarray(data["y_pred"], "float32")
    y = y if y.dtype.kind == "i" else y.astype("float32")

    def build():
        inputs = keras.Input(x.shape[1:])
        model = keras.Model(inputs, keras.layers.Rescaling(0.9)(Probe(keras.layers.Identity(), False)(inputs)))
        loss = getattr(keras.losses, case["loss"])(**case["config"])
        model.compile(keras.optimizers.SGD(0.01), loss, jit_compile=False)
        return model

    values = getattr(keras.losses, case["loss"])(reduction="none", **case["config"])(y, x)
    per_row = values.shape[:1] == [len(y)]
    weights = np.asarray(LOSSES["sample_weight"][: len(y)], "float32") if per_row and "axis" not in case["config"] else None
    assert_same(build, x, y, sample_weight=weights)


METRICS = golden("metrics")
OF_LABELS = [case for case in METRICS["cases"] if len(METRICS["streams"][case["data"]][0]) == 2]
"""Those that compare labels and predictions; the others, such as Mean, take values."""


@in_one_test(3, case=OF_LABELS)
def test_every_metric_is_kept_for_all_members(case):
    stream = METRICS["streams"][case["data"]]
    y, x = (np.concatenate([np.asarray(batch[part]) for batch in stream]) for part in (0, 1))
    x, y = (one if one.dtype.kind == "i" else one.astype("float32") for one in (x, y))

    class Between(keras.Model):
        """Probabilities that differ between members."""

        def __init__(self):
            super().__init__()
            self.power = self.add_weight((), keras.initializers.RandomUniform(0.8, 1.2), name="power")

        def call(self, x):
            return x if x.dtype.is_integer else tf.math.sign(x) * tf.abs(x) ** self.power

    def build():
        metric = getattr(keras.metrics, case["metric"])(**case["config"])
        model = Between()
        model.compile(None, lambda y, y_pred: tf.reduce_mean(tf.cast(y_pred, "float32")), metrics=[metric], jit_compile=False)
        return model

    ensemble = Ensemble(build, len(SEEDS), SEEDS)
    found = ensemble.evaluate(x, y, batch_size=5, verbose=0, return_dict=True)
    for place in range(len(SEEDS)):
        alone = ensemble[place].evaluate(x, y, batch_size=5, verbose=0, return_dict=True)
        assert found.keys() == alone.keys()
        for name, value in alone.items():
            np.testing.assert_allclose(found[name][place], value, rtol=1e-5, atol=1e-6, err_msg=name)


class Sampling(keras.layers.Layer):
    """Draws from the global stream, with and without a seed of the operation, and from a generator of its own."""

    def __init__(self):
        super().__init__()
        self.generator = keras.random.SeedGenerator(3)

    def call(self, x):
        noise = tf.random.normal(tf.shape(x)) + tf.random.uniform(tf.shape(x), seed=4)
        return x + noise + keras.random.normal(x.shape, seed=self.generator) + keras.random.uniform(x.shape, seed=1)


@pytest.mark.parametrize("jit_compile", [False, "auto"])
def test_members_draw_from_their_own_streams(jit_compile):
    def build():
        model = keras.Sequential([keras.Input((3,)), Sampling(), keras.layers.Dense(1)])
        model.compile("sgd", "mse", jit_compile=jit_compile)
        return model

    x = np.linspace(-1.0, 1.0, 18).reshape(6, 3).astype("float32")
    assert_same(build, x, x.sum(axis=1), epochs=4)


# Models ------------------------------------------------------------------------------------------------------------------

L = keras.layers


def masked():
    model = keras.Sequential([keras.Input((4,), dtype="int32"), L.Embedding(5, 3, mask_zero=True), L.GlobalAveragePooling1D()])
    model.add(L.Dense(1))
    return model


def with_two_outputs():
    x = keras.Input((3,), name="x")
    hidden = L.Dense(4, "tanh", activity_regularizer="l2", kernel_regularizer=keras.regularizers.L1(0.01))(x)
    return keras.Model({"x": x}, {"a": L.Dense(1, name="a")(hidden), "b": L.Dense(2, name="b")(hidden)})


def frozen():
    model = keras.Sequential([keras.Input((3,)), L.Dense(4, "relu"), L.BatchNormalization(), L.Dense(1)])
    model.layers[0].trainable = model.layers[1].trainable = False
    return model


def half():
    return keras.Sequential([keras.Input((3,)), L.Dense(4, "relu", dtype="mixed_bfloat16"), L.Dense(1, dtype="float32")])


def double():
    return keras.Sequential(
        [keras.Input((3,), dtype="float64"), L.Dense(4, "tanh", dtype="float64"), L.Dense(1, dtype="float64")]
    )


def shared():
    dense, x = L.Dense(3, "tanh"), keras.Input((3,))
    return keras.Model(x, L.Dense(1)(L.Dropout(0.2)(dense(dense(x)))))


def attention():
    model = keras.Sequential([keras.Input((3,)), L.Reshape((3, 1)), L.Dense(4)])
    inputs = keras.Input((3,))
    hidden = model(inputs)
    return keras.Model(inputs, L.Dense(1)(L.Flatten()(L.MultiHeadAttention(2, 2, dropout=0.1)(hidden, hidden))))


def vision():
    x = keras.Input((3,))
    hidden = L.MaxPooling2D(1)(L.Conv2D(2, (1, 2), padding="same")(L.Reshape((1, 3, 1))(x)))
    return keras.Model(x, L.Dense(1)(L.Flatten()(hidden)))


@pytest.mark.parametrize(
    "make, jit_compile",
    diagonal([masked, with_two_outputs, frozen, half, double, shared, attention, vision], ["auto", True, False]),
)
def test_models_of_all_kinds_have_members(make, jit_compile):
    x = np.linspace(-1.0, 1.0, 24).reshape(8, 3).astype("float64" if make is double else "float32")
    y: object = x.sum(axis=1)
    if make is masked:
        x = np.arange(32).reshape(8, 4) * 7 % 5
    if make is with_two_outputs:
        x, y = {"x": x}, {"a": x[:, 0], "b": x[:, :2]}

    def build():
        model = make()
        model.compile(keras.optimizers.SGD(0.01), "mse", jit_compile=jit_compile)
        return model

    tolerance = 1e-9 if make is double else 2e-2 if make is half else 2e-6
    assert_same(build, x, y, epochs=3, tolerance=tolerance)


@pytest.mark.parametrize(
    "write",
    [lambda v: v.scatter_nd_add([[0]], [1.0]), lambda v: v.scatter_nd_update([[1]], [0.5])],
    ids=["add", "update"],
)
def test_a_part_of_a_variable_is_not_lost_in_silence(write):
    class Counting(keras.layers.Layer):
        def build(self, shape):
            self.seen = self.add_weight((3,), "random_normal", trainable=False, name="seen")

        def call(self, x):
            write(self.seen)
            return x + self.seen

    def build():
        model = keras.Sequential([keras.Input((3,)), Counting(), keras.layers.Dense(1)])
        model.compile("sgd", "mse", jit_compile=False)
        return model

    ensemble, x = Ensemble(build, len(SEEDS), SEEDS), np.ones((4, 3), "float32")
    before = [model.get_weights() for model in ensemble]
    with pytest.raises(tf.errors.InvalidArgumentError, match="assign whole Variables, and a part of 'seen'"):
        ensemble.fit(x, x[:, 0], verbose=0)
    for weights, model in zip(before, ensemble, strict=True):
        for one, other in zip(weights, model.get_weights(), strict=True):
            np.testing.assert_array_equal(one, other)
