"""Small models and their steps of training, on a device of choice."""

import numpy as np

import minikeras as tf
from minikeras.compiler.executors.cuda_graph.runner import GraphExecutable

L = tf.keras.layers
RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(8, 6))
MODELS = {
    "dense": lambda: [L.Dense(7, "relu")],
    "normalized": lambda: [L.Dense(8, "relu"), L.BatchNormalization(), L.Dropout(0.3)],
    "deep": lambda: [L.Dense(9, "tanh"), L.LayerNormalization(), L.Dense(5, "gelu", kernel_regularizer="l2")],
    "convolution": lambda: [L.Reshape((6, 1)), L.Conv1D(4, 3, activation="relu"), L.Flatten()],
}
LOSSES = {
    "labels": (lambda: tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), np.arange(8) % 3),
    "one hot": (lambda: tf.keras.losses.CategoricalCrossentropy(), np.eye(3)[np.arange(8) % 3]),
    "squared": (lambda: tf.keras.losses.MeanSquaredError(), np.linspace(-1, 1, 24).reshape(8, 3)),
}
optimizers = tf.keras.optimizers
OPTIMIZERS = {
    "SGD": lambda: optimizers.SGD(0.1),
    "momentum": lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda: optimizers.Adam(0.01),
    "AdamW": lambda: optimizers.AdamW(0.01),
    "clipped": lambda: optimizers.Adam(0.01, clipnorm=0.5),
    "schedule": lambda: optimizers.RMSprop(optimizers.schedules.ExponentialDecay(0.01, 2, 0.5)),
    "accumulated": lambda: optimizers.Adam(0.01, gradient_accumulation_steps=2),
    "averaged": lambda: optimizers.Adam(0.01, use_ema=True),
    "Lion": lambda: optimizers.Lion(0.01),
    "Adafactor": lambda: optimizers.Adafactor(0.01),
}


def in_dtype(dtype, make):
    """What is made while floats are of a dtype."""
    if dtype == "float32":
        return make()
    tf.keras.config.set_floatx(dtype)
    try:
        return make()
    finally:
        tf.keras.config.set_floatx("float32")


class Trained:
    """A model, and its step of training as a function."""

    def __init__(self, layers, loss, optimizer, place="STRICT:0", dtype="float32", rows=8):
        make_loss, target = loss
        self.place = place
        tf.random.set_seed(5)
        with tf.device(place):
            last = "softmax" if "one" in str(target.shape) else None
            self.model = in_dtype(dtype, lambda: tf.keras.Sequential([tf.keras.Input((6,)), *layers(), L.Dense(3, last)]))
            self.optimizer, function = optimizer(), make_loss()
            self.x = tf.constant(X[:rows], dtype)
            self.y = tf.constant(target[:rows], None if target.dtype.kind == "i" else dtype)
        model, chosen = self.model, self.optimizer

        def step(x, y):
            with tf.GradientTape() as tape:
                loss = function(y, model(x, training=True)) + sum(model.losses, tf.constant(0.0, dtype))
            weights = model.trainable_variables
            chosen.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return loss

        self.function = tf.function(step)

    def step(self, x=None, y=None):
        """The loss before a step."""
        with tf.device(self.place):
            return self.function(self.x if x is None else x, self.y if y is None else y).numpy()

    def state(self):
        """What all Variables hold."""
        return [variable.numpy() for variable in (*self.model.variables, *self.optimizer.variables)]


def graphs_of(function) -> list[GraphExecutable]:
    """The programs of a function that a device carries out."""
    return [one for one in function._replays if isinstance(one, GraphExecutable)]
