"""The kinds of files that hold a model, each with a way to write one and to read it back."""

import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import minikeras as tf

layers = tf.keras.layers


class Kind(NamedTuple):
    """One kind of file.

    Attributes:
        name: in the table.
        save: write a model to a folder.
        load: read what the folder holds into a model, which stays as it was if that fails.
        files: the files that make up what was saved.
    """

    name: str
    save: Callable[[Any, pathlib.Path], Any]
    load: Callable[[Any, pathlib.Path], Any]
    files: Callable[[pathlib.Path], list[pathlib.Path]]


def model(units: int = 3, value: float | None = None) -> Any:
    """A small compiled model; all its weights are `value` if one is given."""
    made = tf.keras.Sequential([layers.Input((2,)), layers.Dense(units), layers.Dense(1)])
    made.compile(tf.keras.optimizers.SGD(0.1, momentum=0.5), "mse")
    made.optimizer.build(made.trainable_variables)
    if value is not None:
        fill(made, value)
    return made


def fill(made: Any, value: float) -> None:
    """Give all weights one value."""
    made.set_weights([np.full(weight.shape, value, "float32") for weight in made.get_weights()])


def numbers(made: Any) -> list[np.ndarray]:
    """All numbers that a file of the model holds."""
    return [*made.get_weights(), *(variable.numpy() for variable in made.optimizer.variables)]


def same(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    """Whether all numbers are equal, bit for bit."""
    return len(first) == len(second) and all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


def _checkpoint(made: Any) -> Any:
    return tf.train.Checkpoint(model=made)


def _save_managed(made: Any, folder: pathlib.Path) -> Any:
    manager = tf.train.CheckpointManager(_checkpoint(made), folder, max_to_keep=2)
    last = manager.latest_checkpoint
    return manager.save(checkpoint_number=1 if last is None else int(last.rpartition("-")[2]) + 1)


def _load_managed(made: Any, folder: pathlib.Path) -> Any:
    latest = tf.train.latest_checkpoint(folder)
    if latest is None:
        raise tf.errors.NotFoundError(f"{folder}: nothing there")
    return _checkpoint(made).restore(latest).expect_partial()


def _load_whole(made: Any, folder: pathlib.Path) -> None:
    loaded = tf.keras.models.load_model(folder / "m.keras")
    found = [tf.constant(array) for array in numbers(loaded)]
    for variable, value in zip([*made.weights, *made.optimizer.variables], found, strict=True):
        variable.assign(value)


def _state_file(made: Any, folder: pathlib.Path) -> Any:
    callback = tf.keras.callbacks.BackupAndRestore(folder)
    callback.set_model(made)
    return callback


def single(name: str) -> Callable[[pathlib.Path], list[pathlib.Path]]:
    return lambda folder: [folder / name]


CHECKPOINT = Kind(
    "Checkpoint.write",
    lambda made, folder: _checkpoint(made).write(folder / "here"),
    lambda made, folder: _checkpoint(made).read(folder / "here").assert_consumed(),
    lambda folder: sorted(path for path in folder.iterdir() if path.name.startswith("here")),
)
MANAGED = Kind("CheckpointManager.save", _save_managed, _load_managed, lambda folder: sorted(folder.glob("ckpt-*")))
WEIGHTS = Kind(
    "save_weights, .weights.h5",
    lambda made, folder: made.save_weights(folder / "m.weights.h5"),
    lambda made, folder: made.load_weights(folder / "m.weights.h5"),
    single("m.weights.h5"),
)
TENSORS = Kind(
    "save_weights, .safetensors",
    lambda made, folder: made.save_weights(folder / "m.safetensors"),
    lambda made, folder: made.load_weights(folder / "m.safetensors"),
    single("m.safetensors"),
)
WHOLE = Kind("model.save, .keras", lambda made, folder: made.save(folder / "m.keras"), _load_whole, single("m.keras"))
BACKUP = Kind(
    "BackupAndRestore",
    lambda made, folder: _state_file(made, folder)._save(0, None, {}),
    lambda made, folder: _state_file(made, folder).on_train_begin(),
    single("training_state.safetensors"),
)
KINDS = [CHECKPOINT, MANAGED, WEIGHTS, TENSORS, WHOLE, BACKUP]
