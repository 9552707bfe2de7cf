"""One state in every kind of file that this package writes, and what follows from it: `python tests/golden/make_states.py`.

Every later version has to load what is there: the files are made once, by the version of their commit.
"""

import json
import pathlib
from typing import Any

import numpy as np

import minikeras as tf

FOLDER = pathlib.Path(__file__).parent / "states"
layers = tf.keras.layers
_rows = np.random.default_rng(5)
X = _rows.normal(size=(12, 3)).astype("float32")
Y = _rows.normal(size=(12, 2)).astype("float32")


@tf.keras.saving.register_keras_serializable("states")
class Net(tf.keras.Model):
    """Layers in lists and dicts, one of them twice, a weight of its own, random state, and layers with two optimizers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.blocks = [layers.Dense(4, activation="tanh"), layers.BatchNormalization()]
        self.heads = {"a": layers.Dense(2), "b": layers.Dense(2)}
        self.again = self.heads["a"]
        self.drop = layers.Dropout(0.5, seed=3)
        self.noise = tf.random.Generator.from_seed(7)

    def build(self, input_shape: Any) -> None:
        self.scale = self.add_weight((), "ones", name="scale")
        self.blocks[0].build(input_shape)
        self.blocks[1].build((None, 4))
        for head in self.heads.values():
            head.build((None, 4))
        super().build(input_shape)

    def call(self, x: Any, training: bool = False) -> Any:
        for block in self.blocks:
            x = block(x, training=training)
        return (self.again(x) + self.heads["b"](self.drop(x, training=training))) * self.scale


def made(name: str) -> Any:
    """A compiled model without training."""
    if name == "net":
        model: Any = Net()
        model.build((None, 3))
        rules = {"dense*": tf.keras.optimizers.Adam(0.01), "*": tf.keras.optimizers.SGD(0.1, momentum=0.9)}
        optimizer: Any = tf.keras.optimizers.PerLayer(rules)
    else:
        model = tf.keras.Sequential(
            [
                layers.Input((3,)),
                layers.Dense(4, activation="relu"),
                layers.BatchNormalization(),
                layers.Dropout(0.5, seed=3),
                layers.Dense(2),
            ]
        )
        optimizer = tf.keras.optimizers.Adam(0.01, use_ema=True, clipnorm=1.0)
    model.compile(optimizer, "mse", metrics=["mae"])
    return model


def trained(name: str, **options: Any) -> Any:
    """The model whose state is in the files."""
    tf.keras.utils.clear_session()
    tf.keras.utils.set_random_seed(11)
    model = made(name)
    if name == "net":
        model.noise.normal((3,))
    model.fit(X, Y, batch_size=4, epochs=2, verbose=0, **options)
    return model


def checkpoint_of(model: Any) -> Any:
    """A checkpoint of the model and what is beside it."""
    held, count, rng = tf.Variable([1.0, 2.0]), tf.Variable(3), tf.random.Generator.from_seed(4)
    return tf.train.Checkpoint(model=model, extra={"values": [held, count], "same": held}, rng=rng)


def facts(model: Any) -> dict[str, Any]:
    """All numbers of a state: weights and random state, the optimizer, and the loss of one more step."""
    found: dict[str, Any] = {
        "weights": [variable.numpy().tolist() for variable in model.variables],
        "optimizer": [variable.numpy().tolist() for variable in model.optimizer.variables],
        "prediction": model.predict(X, verbose=0).tolist(),
    }
    tf.keras.utils.set_random_seed(13)
    return found | {"loss": float(model.train_on_batch(X[:4], Y[:4])[0])}


class Interrupted(Exception):
    """Ends a `fit` whose state was kept."""


class Interrupt(tf.keras.callbacks.Callback):
    """Ends `fit` in the middle of the second epoch."""

    after = 5

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Raise after so many batches in all."""
        if int(self.model.optimizer.iterations) == self.after:
            raise Interrupted


def main() -> None:
    """Write the files, and the numbers that they hold."""
    FOLDER.mkdir(exist_ok=True)
    numbers = {}
    for name in ("net", "chain"):
        model = trained(name)
        for ending in (".weights.h5", ".safetensors"):
            model.save_weights(FOLDER / f"{name}{ending}")
        if name == "chain":
            model.save(FOLDER / "chain.keras")
        checkpoint_of(model).write(FOLDER / f"{name}_checkpoint")
        try:
            backup = tf.keras.callbacks.BackupAndRestore(FOLDER / f"{name}_backup", save_freq=1)
            trained(name, callbacks=[Interrupt(), backup])
        except Interrupted:
            numbers[name] = facts(model)
    (FOLDER / ".writer.lock").unlink()
    (FOLDER / "states.json").write_text(json.dumps(numbers) + "\n")


if __name__ == "__main__":
    main()
