"""Training that is broken off at a random place and resumed: bit for bit what it would have been."""

import contextlib
import pathlib
import random
import tempfile
from typing import Any

import numpy as np

import minikeras as tf

from . import kinds
from .report import Row

layers = tf.keras.layers
EPOCHS, ROWS, BATCH = 4, 40, 8
X = np.random.default_rng(0).standard_normal((ROWS, 5)).astype("float32")
Y = (X[:, :1] * X[:, 1:2]).astype("float32")

OPTIMIZERS = {
    "adam": lambda: tf.keras.optimizers.Adam(0.02, amsgrad=True),
    "sgd": lambda: tf.keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
    "adamw, averaged": lambda: tf.keras.optimizers.AdamW(0.02, use_ema=True, ema_momentum=0.9),
    "rmsprop, accumulating": lambda: tf.keras.optimizers.RMSprop(0.01, gradient_accumulation_steps=3),
    "nadam": lambda: tf.keras.optimizers.Nadam(0.01),
    "muon": lambda: tf.keras.optimizers.Muon(0.01),
    "schedule": lambda: tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.ExponentialDecay(0.05, 3, 0.9)),
    "per layer": lambda: tf.keras.optimizers.PerLayer(
        {"first": tf.keras.optimizers.Adam(0.02), "*": tf.keras.optimizers.SGD(0.05)}
    ),
    "loss scale": lambda: tf.keras.optimizers.LossScaleOptimizer(tf.keras.optimizers.Adam(0.01), dynamic_growth_steps=3),
}


class BrokenOff(Exception):
    """The power fails."""


class FailAt(tf.keras.callbacks.Callback):
    """Fails before a batch, counted over all epochs."""

    def __init__(self, number: int | None) -> None:
        self._left = number

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Fail if it is time."""
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise BrokenOff


def network(optimizer: str) -> Any:
    """Batch statistics, noise, a learning rate that falls, and whatever an optimizer keeps."""
    made = tf.keras.Sequential(
        [
            layers.Dense(6, activation="relu", name="first"),
            layers.BatchNormalization(),
            layers.Dropout(0.3),
            layers.GaussianNoise(0.1),
            layers.Dense(1),
        ]
    )
    made.compile(OPTIMIZERS[optimizer](), "mse", metrics=["mae"])
    return made


def run(optimizer: str, seed: int, folder: pathlib.Path | None = None, save_freq: Any = "epoch", fail_at: Any = None) -> Any:
    """Train; the model and its history."""
    tf.keras.utils.clear_session()
    tf.random.set_seed(seed)
    made = network(optimizer)
    callbacks: list[Any] = [tf.keras.callbacks.EarlyStopping("loss", patience=3), FailAt(fail_at)]
    if optimizer not in ("schedule", "per layer"):
        callbacks.append(tf.keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=1, min_delta=0.05))
    if folder is not None:
        callbacks.append(tf.keras.callbacks.BackupAndRestore(folder, save_freq=save_freq, delete_checkpoint=False))
    options = {"batch_size": BATCH, "epochs": EPOCHS, "validation_split": 0.2, "shuffle": True, "verbose": 0}
    history = made.fit(X, Y, callbacks=callbacks, **options)
    return made, history.history


def equal(first: Any, second: Any) -> bool:
    """Whether two runs ended alike: weights, state of the optimizer, and all that was logged."""
    return kinds.same(kinds.numbers(first[0]), kinds.numbers(second[0])) and first[1] == second[1]


def resumed(count: int, seed: int = 0) -> Row:
    """Break off at `count` random batches, with a random rhythm of saving, and go on with new objects."""
    rng = random.Random(seed)
    steps = EPOCHS * -(-int(ROWS * 0.8) // BATCH)
    whole: dict[str, Any] = {}
    different = 0
    for number in range(count):
        optimizer = list(OPTIMIZERS)[number % len(OPTIMIZERS)]
        if optimizer not in whole:
            whole[optimizer] = run(optimizer, 7)
        with tempfile.TemporaryDirectory() as name:
            save_freq = rng.choice(["epoch", 1, 2, 3, 5])
            for fail_at in sorted(rng.sample(range(1, steps), rng.choice([1, 1, 2]))):
                with contextlib.suppress(BrokenOff):
                    run(optimizer, 7, pathlib.Path(name), save_freq, fail_at)
            # another seed, were the resumed run to draw anything anew; unless nothing had been saved yet
            saved = any(pathlib.Path(name).iterdir())
            again = run(optimizer, 99 if saved else 7, pathlib.Path(name), save_freq)
        different += not equal(whole[optimizer], again)
    return Row("fit broken off at a random batch and resumed", count, different, "bad: not bit-equal to the run in one piece")


def resumed_loops(count: int, seed: int = 0) -> Row:
    """The same for a custom training loop, with a Checkpoint."""
    rng = random.Random(seed)
    whole = loop(7)
    different = 0
    for _ in range(count):
        with tempfile.TemporaryDirectory() as name:
            with contextlib.suppress(BrokenOff):
                loop(7, name, fail_at=rng.randrange(1, 3 * 5))
            different += not kinds.same(whole, loop(99, name))
    return Row("own loop broken off and resumed", count, different, "bad: not bit-equal")


def loop(seed: int, folder: str | None = None, fail_at: int | None = None) -> list[np.ndarray]:
    """A training loop by hand; the numbers at its end."""
    tf.random.set_seed(seed)
    made = tf.keras.Sequential([layers.Dense(6, activation="relu"), layers.Dropout(0.3), layers.Dense(1)])
    optimizer = tf.keras.optimizers.Adam(0.02)
    data = tf.data.Resumable(tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(ROWS).batch(BATCH))
    checkpoint = tf.train.Checkpoint(model=made, optimizer=optimizer, data=data)
    manager = None if folder is None else tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    if manager is not None:
        manager.restore_or_initialize()
    step = 0
    while data.epoch < 3:
        for x, y in data:
            if step == fail_at:
                raise BrokenOff
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(made(x, training=True) - y))
            variables = made.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            step += 1
            if manager is not None:
                manager.save()
    return [*made.get_weights(), *(variable.numpy() for variable in optimizer.variables)]
