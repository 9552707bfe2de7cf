"""Compiled training = eager training over 20 steps: models, options of optimizers, options of fit, methods of second order."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from optimizer_cases import FORMULAS
from side_by_side import EXECUTORS, assert_same, both_ways
from slow import mostly_slow, sampled

import minikeras as tf
from minikeras.nn_ops import streams

L, optimizers = tf.keras.layers, tf.keras.optimizers
CROSS_ENTROPY = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
RANDOM = np.random.default_rng(5)
ROWS, WORDS, IMAGES = RANDOM.normal(size=(20, 6)), RANDOM.integers(0, 9, (20, 5)), RANDOM.normal(size=(20, 6, 6, 2))
LABELS = RANDOM.integers(0, 3, 20)


def dense(**options):
    return [L.Dense(12, "relu", **options), L.BatchNormalization(), L.Dropout(0.3), L.Dense(3)]


def network():
    return tf.keras.Sequential([tf.keras.Input((6,)), *dense()])


# The options of optimizers, in a step as users write it -------------------------------------------------------------------


def training(optimizer, model=network, loss_of=CROSS_ENTROPY):
    """A step with a tape, and metrics that accumulate."""

    def make():
        net, chosen = model(), optimizer()
        seen, accuracy = tf.keras.metrics.Mean(), tf.keras.metrics.SparseCategoricalAccuracy()

        def step(x, y):
            with tf.GradientTape() as tape:
                logits = net(x, training=True)
                loss = tf.cast(loss_of(y, logits), "float32") + sum(net.losses, tf.constant(0.0))
                scaled = chosen.scale_loss(loss)
            weights = net.trainable_variables
            chosen.apply_gradients(zip(tape.gradient(scaled, weights), weights, strict=True))
            seen.update_state(loss)
            accuracy.update_state(y, logits)
            return {"loss": seen.result(), "accuracy": accuracy.result()}

        return step, lambda: [*net.variables, *chosen.variables, *seen.variables, *accuracy.variables]

    return make


def batches(data=ROWS, dtype="float32"):
    """Twelve rows and eight, so that there are two signatures."""
    x, y = tf.constant(data, dtype), tf.constant(LABELS, "int32")
    return [(x[:12], y[:12]), (x[12:], y[12:]), (x[4:16], y[4:16])]


@pytest.mark.parametrize("name", mostly_slow(FORMULAS, "SGD", "Adam", "Muon"))
def test_every_optimizer_with_weight_decay_and_a_schedule_trains_the_same(name):
    def optimizer():
        made = FORMULAS[name](weight_decay=0.05)
        rate = optimizers.schedules.ExponentialDecay(0.02, 3, 0.5)
        return type(made).from_config({**made.get_config(), "learning_rate": rate})

    both_ways(training(optimizer), batches())


@pytest.mark.parametrize("initial_scale", [4.0, 2.0**24])
def test_a_loss_scale_that_changes_trains_the_same_on_every_device(initial_scale, device):
    made = []

    def optimizer():
        made.append(optimizers.LossScaleOptimizer(optimizers.Adam(0.01), initial_scale, dynamic_growth_steps=3))
        return made[-1]

    def model():
        return tf.keras.Sequential([tf.keras.Input((6,)), *dense(dtype="mixed_float16")])

    both_ways(training(optimizer, model), batches())
    assert float(made[-1].dynamic_scale) != initial_scale and int(made[-1].iterations) > 0


# Models -------------------------------------------------------------------------------------------------------------------


class Penalized(L.Layer):
    """Adds a loss of its own, and keeps count in a weight that is not trained."""

    def build(self, shape):
        self.seen = self.add_weight(name="seen", initializer="zeros", trainable=False)

    def call(self, x):
        self.seen.assign_add(tf.reduce_sum(tf.abs(x)))
        self.add_loss(0.01 * tf.reduce_mean(x**2))
        return x


def branches():
    x = tf.keras.Input((6,))
    hidden = L.Dense(8, "tanh", kernel_constraint="max_norm", bias_constraint="non_neg")(x)
    joined = L.Concatenate()([hidden, Penalized()(x), L.LayerNormalization()(hidden)])
    return tf.keras.Model(x, L.Dense(3, kernel_regularizer="l1_l2", activity_regularizer="l2")(joined))


def frozen():
    model = tf.keras.Sequential([tf.keras.Input((6,)), *dense(), L.Dense(3)])
    model.layers[0].trainable = model.layers[1].trainable = False
    return model


def convolution():
    layers = [L.Conv2D(4, 3, activation="relu"), L.BatchNormalization(), L.MaxPooling2D(), L.Dropout(0.2), L.Flatten()]
    return tf.keras.Sequential([tf.keras.Input((6, 6, 2)), *layers, L.Dense(3)])


def windows():
    down = [L.SeparableConv2D(4, 3, padding="same"), L.SpatialDropout2D(0.2), L.AveragePooling2D(2), L.DepthwiseConv2D(2)]
    up = [
        L.UpSampling2D(2),
        L.ZeroPadding2D(1),
        L.UpSampling2D(2, interpolation="bilinear"),
        L.Conv2DTranspose(3, 3, strides=2),
    ]
    ends = [L.Cropping2D(3), L.AdaptiveMaxPooling2D(3), L.AdaptiveAveragePooling2D(2), L.Flatten(), L.Dense(3)]
    return tf.keras.Sequential([tf.keras.Input((6, 6, 2)), *down, *up, *ends])


class Recurrence(L.Layer):
    """A loop over time, with a mask."""

    def build(self, shape):
        self.kernel = self.add_weight(name="kernel", shape=(shape[-1], shape[-1]))

    def call(self, x, mask=None):
        state = tf.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            new = tf.tanh(x[:, t] + state @ self.kernel)
            state = new if mask is None else tf.where(mask[:, t, None], new, state)
        return state


def recurrence():
    layers = [L.Embedding(9, 4, mask_zero=True), L.Dropout(0.2), Recurrence(), L.Dense(3)]
    return tf.keras.Sequential([tf.keras.Input((5,), dtype="int32"), *layers])


class Attention(L.Layer):
    def call(self, query, key, value):
        return tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / 6**0.5) @ value


def attention():
    x = tf.keras.Input((5,), dtype="int32")
    found = L.Embedding(9, 6)(x)
    mixed = Attention()(L.Dense(6)(found), L.Dense(6)(found), L.Conv1D(6, 2, padding="causal")(found))
    return tf.keras.Model(x, L.Dense(3)(L.GlobalAveragePooling1D()(mixed)))


MODELS = {
    "branches": (branches, batches()),
    "frozen layers": (frozen, batches()),
    "convolution": (convolution, batches(IMAGES)),
    "windows": (windows, batches(IMAGES)),
    "recurrence": (recurrence, batches(WORDS, "int32")),
    "attention": (attention, batches(WORDS, "int32")),
}


@pytest.mark.parametrize("name", sampled(MODELS, 2))
def test_every_kind_of_model_trains_the_same(name):
    model, given = MODELS[name]
    # The derivative by a bias of attention's keys is nothing but rounding; this epsilon keeps it from being blown up.
    both_ways(training(lambda: optimizers.Adam(0.01, epsilon=1e-4), model), given)


@pytest.mark.parametrize("name", ["branches", "convolution"])
def test_layers_with_optimizers_of_their_own_train_the_same(name):
    def optimizer():
        last = optimizers.SGD(0.1, momentum=0.9, clipnorm=1.0)
        turns = optimizers.Every(2, optimizers.Adam(0.01, use_ema=True))
        return optimizers.PerLayer({"*.bias": None, "*dense*.kernel": turns, "*.gamma": 0.5, "*": last})

    model, given = MODELS[name]
    both_ways(training(optimizer, model), given)


@pytest.mark.parametrize("policy", mostly_slow(["float64", "float16", "mixed_float16", "mixed_bfloat16"], "mixed_float16"))
def test_every_policy_trains_the_same(policy):
    def model():
        return tf.keras.Sequential([tf.keras.Input((6,)), *dense(dtype=policy), L.Activation("linear", dtype="float32")])

    both_ways(training(lambda: optimizers.Adam(0.01), model), batches())


# fit ----------------------------------------------------------------------------------------------------------------------


class Doubled(tf.keras.Sequential):
    """A training step of its own, with a metric of its own."""

    def train_step(self, data):
        x, y = data[:2]
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            loss = 2.0 * self.compute_loss(x, y, logits)
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"doubled": loss, "norm": tf.norm(logits), **self.compute_metrics(x, y, logits)}


class Widest(tf.keras.metrics.Metric):
    """The largest logit so far."""

    def __init__(self):
        super().__init__(name="widest")
        self.largest = self.add_weight(name="largest", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.largest.assign(tf.maximum(self.largest, tf.cast(tf.reduce_max(y_pred), "float32")))

    def result(self):
        return self.largest.read_value()


def fitted(compiled, model=network, optimizer=optimizers.Adam, loss=CROSS_ENTROPY, data=ROWS, policy=None, **options):
    """History and state after twenty steps and more of fit, and the model."""
    tf.keras.utils.clear_session()
    streams.set_global_seed(3)
    tf.keras.mixed_precision.set_global_policy(policy)
    try:
        made = model()
        settings = {"metrics": ["accuracy", Widest()], "weighted_metrics": ["accuracy"], "jit_compile": compiled}
        made.compile(optimizer(), loss, **settings)
        history = made.fit(data.astype("i" if data is WORDS else "f"), LABELS, batch_size=8, epochs=9, verbose=0, **options)
    finally:
        tf.keras.mixed_precision.set_global_policy(None)
    states = [variable.numpy() for variable in (*made.variables, *made.optimizer.variables)]
    return [np.asarray(values) for values in history.history.values()], states, made


FITS = {
    "plain": {},
    "sample weights": {"sample_weight": np.linspace(0.0, 2.0, 20)},
    "class weights": {"class_weight": {0: 1.0, 1: 0.2, 2: 3.0}},
    "a step of its own": {"model": lambda: Doubled([tf.keras.Input((6,)), *dense()])},
    "branches": {"model": branches},
    "frozen layers": {"model": frozen},
    "convolution": {"model": convolution, "data": IMAGES},
    "recurrence": {"model": recurrence, "data": WORDS},
    "average": {"optimizer": lambda: optimizers.SGD(0.1, use_ema=True, gradient_accumulation_steps=2)},
    "mixed_float16": {"policy": "mixed_float16"},
    "mixed_bfloat16": {"policy": "mixed_bfloat16"},
}


@pytest.mark.parametrize("name", sampled(FITS, 2))
def test_fit_trains_the_same(name):
    plain = fitted(False, **FITS[name])
    for executor in EXECUTORS:
        compiled = fitted(executor.jit_compile or "auto", **FITS[name])
        for one, other in zip(plain[:2], compiled[:2], strict=True):
            assert_same(one, other, executor.exact)
        train = compiled[2]._trainer.steps["train_step"]
        assert train.replays >= 20 and train.eager_calls <= 2 and train.recordings == 2


# Examples -----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["per_layer_updates", "newton_on_one_kernel", "regression", "custom_training_loop", "freezing_layers"]
)
def test_an_example_prints_the_same_numbers(name, tmp_path):
    code = "import runpy, sys, minikeras as tf; tf.config.run_functions_eagerly(sys.argv[2] == 'eagerly'); "
    code += "runpy.run_path(sys.argv[1], run_name='__main__')"
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent), "MPLBACKEND": "Agg", "MINIKERAS_OFFLINE": "1"}
    printed = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", code, str(EXAMPLES / f"{name}.py"), how],
            **{"env": environment, "cwd": tmp_path, "capture_output": True, "text": True, "check": True},
            timeout=300,
        ).stdout
        for how in ("eagerly", "compiled")
    ]
    assert printed[0] == printed[1] and any(letter.isdigit() for letter in printed[0])
