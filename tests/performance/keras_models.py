"""The models of section `models`, in Keras's words, of this project or of another, and their data.

Numbers of rows are such that an epoch takes a second at most.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .problems import LEARNING_RATE, Array

PATCHES, WIDTH, BLOCKS = 64, 128, 4
"""Of the mixer."""
LENGTH, TOKENS, HEADS, FEATURES = 64, 1000, 4, 64
"""Of the transformer, whose width is `FEATURES`."""
DEPTH = 30
"""Blocks of the deep network."""
STEPS, SERIES, UNITS = 100, 16, 128
"""Of the recurrent network."""
COLUMNS, CATEGORIES, NUMBERS = 8, 1000, 13
"""Of the table that wide and deep is trained on."""


class Model(NamedTuple):
    """A model and what it is trained on.

    Attributes:
        build: makes it, given `keras`.
        loss: 'labels' for sparse softmax cross-entropy, 'binary' for the binary one, both from logits; 'rows' for mean squares.
        rows: how many.
        batch: rows of a batch.
        inputs: makes that many rows of inputs.
        classes: labels are below this number.
    """

    build: Callable[[Any], Any]
    loss: str
    rows: int
    batch: int
    inputs: Callable[[np.random.Generator, int], list[Array]]
    classes: int = 10

    def data(self, rows: int | None = None) -> tuple[list[Array], Array]:
        """Inputs and targets."""
        random = np.random.default_rng(3)
        rows = rows or self.rows
        x = self.inputs(random, rows)
        if self.loss == "rows":
            return x, x[0]
        labels = random.integers(0, self.classes, rows)
        return x, labels.astype(np.float32)[:, None] if self.loss == "binary" else labels


def _images(*shape: int) -> Callable[[np.random.Generator, int], list[Array]]:
    return lambda random, rows: [random.random((rows, *shape), np.float32)]


def _table(random: np.random.Generator, rows: int) -> list[Array]:
    codes = random.integers(0, CATEGORIES, (rows, COLUMNS)).astype(np.int32)
    return [codes + np.arange(COLUMNS, dtype=np.int32) * CATEGORIES, random.standard_normal((rows, NUMBERS), np.float32)]


def _convnet(keras: Any) -> Any:
    k = keras.layers
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            k.Conv2D(32, 3, activation="relu"),
            k.MaxPooling2D(),
            k.Conv2D(64, 3, activation="relu"),
            k.MaxPooling2D(),
            k.Flatten(),
            k.Dense(10),
        ]
    )


def _resnet(keras: Any) -> Any:
    k = keras.layers

    def convolved(h: Any, filters: int, size: int, strides: int = 1) -> Any:
        return k.BatchNormalization()(k.Conv2D(filters, size, strides, "same", use_bias=False)(h))

    x = keras.Input((32, 32, 3))
    h = k.Activation("relu")(convolved(x, 16, 3))
    for filters, strides in ((16, 1), (32, 2), (64, 2)):
        kept = convolved(h, filters, 1, strides) if strides > 1 else h
        h = k.Activation("relu")(convolved(h, filters, 3, strides))
        h = k.Activation("relu")(k.Add()([convolved(h, filters, 3), kept]))
    return keras.Model(x, k.Dense(10)(k.GlobalAveragePooling2D()(h)))


def _autoencoder(keras: Any) -> Any:
    k = keras.layers
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            k.Conv2D(32, 4, 2, "same", activation="relu"),
            k.Conv2D(64, 4, 2, "same", activation="relu"),
            k.Conv2DTranspose(32, 4, 2, "same", activation="relu"),
            k.Conv2DTranspose(1, 4, 2, "same"),
        ]
    )


def _transformer(keras: Any) -> Any:
    k = keras.layers
    x = keras.Input((LENGTH,), dtype="int32")
    h = k.Embedding(TOKENS, FEATURES)(x)
    h = k.LayerNormalization()(k.Add()([h, k.MultiHeadAttention(HEADS, FEATURES // HEADS)(h, h)]))
    h = k.LayerNormalization()(k.Add()([h, k.Dense(FEATURES)(k.Dense(4 * FEATURES, activation="relu")(h))]))
    return keras.Model(x, k.Dense(10)(k.GlobalAveragePooling1D()(h)))


def _mixer(keras: Any) -> Any:
    k = keras.layers
    x = keras.Input((32, 32, 3))
    h = k.Reshape((PATCHES, WIDTH))(k.Conv2D(WIDTH, 4, 4)(x))
    for _ in range(BLOCKS):
        mixed = k.Permute((2, 1))(k.LayerNormalization()(h))
        mixed = k.Dense(PATCHES)(k.Dense(PATCHES, activation="gelu")(mixed))
        h = k.Add()([h, k.Permute((2, 1))(mixed)])
        h = k.Add()([h, k.Dense(WIDTH)(k.Dense(2 * WIDTH, activation="gelu")(k.LayerNormalization()(h)))])
    return keras.Model(x, k.Dense(10)(k.GlobalAveragePooling1D()(k.LayerNormalization()(h))))


def _wide_and_deep(keras: Any) -> Any:
    k = keras.layers
    codes, numbers = keras.Input((COLUMNS,), dtype="int32"), keras.Input((NUMBERS,))
    wide = k.Flatten()(k.Embedding(COLUMNS * CATEGORIES, 1)(codes))
    h = k.Concatenate()([k.Flatten()(k.Embedding(COLUMNS * CATEGORIES, 16)(codes)), numbers])
    for units in (128, 64):
        h = k.Dense(units, activation="relu")(h)
    return keras.Model([codes, numbers], k.Dense(1)(k.Concatenate()([wide, h])))


def _deep(keras: Any) -> Any:
    k = keras.layers
    blocks = [layer for _ in range(DEPTH) for layer in (k.Dense(64), k.LayerNormalization(), k.Activation("gelu"))]
    return keras.Sequential([keras.Input((64,)), *blocks, k.Dense(10)])


def _lstm(keras: Any) -> Any:
    return keras.Sequential([keras.Input((STEPS, SERIES)), keras.layers.LSTM(UNITS), keras.layers.Dense(10)])


def _tokens(random: np.random.Generator, rows: int) -> list[Array]:
    return [random.integers(0, TOKENS, (rows, LENGTH)).astype(np.int32)]


MODELS = {
    "convnet": Model(_convnet, "labels", 2048, 128, _images(28, 28, 1)),
    "resnet": Model(_resnet, "labels", 512, 64, _images(32, 32, 3)),
    "autoencoder": Model(_autoencoder, "rows", 1024, 128, _images(28, 28, 1)),
    "transformer": Model(_transformer, "labels", 1024, 64, _tokens),
    "mixer": Model(_mixer, "labels", 512, 64, _images(32, 32, 3)),
    "wide and deep": Model(_wide_and_deep, "binary", 8192, 256, _table, 2),
    "deep": Model(_deep, "labels", 4096, 128, _images(64)),
    "lstm": Model(_lstm, "labels", 512, 64, _images(STEPS, SERIES)),
}


def first_arrays(model: Any) -> list[Array]:
    """Give a Keras model its first weights, the same in all frameworks: kernels and embeddings; others begin with 0 or 1."""
    random = np.random.default_rng(0)
    kernels = []
    for variable in model.weights:
        if len(variable.shape) > 1 and variable.name != "bias":  # of attention, biases have two axes
            fans = np.prod(variable.shape) / max(variable.shape[-1], 1)
            array = (random.standard_normal(tuple(variable.shape)) / np.sqrt(fans)).astype(np.float32)
            variable.assign(array)
            kernels.append(array)
    return kernels


def keras_trained(keras: Any, label: str, **options: Any) -> Any:
    """The model with its first weights, compiled; the options are those of `compile`."""
    keras.utils.set_random_seed(0)
    found = MODELS[label].build(keras)
    first_arrays(found)
    losses = {
        "labels": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "binary": keras.losses.BinaryCrossentropy(from_logits=True),
        "rows": keras.losses.MeanSquaredError(),
    }
    found.compile(optimizer=keras.optimizers.Adam(LEARNING_RATE), loss=losses[MODELS[label].loss], **options)
    return found
