"""Writes `custom_optimizers.json` and `custom_optimizer.keras` by real Keras: the classes of tests/keras/custom_optimizers.py.

KERAS_BACKEND=jax python tests/golden/make_custom_optimizers.py
"""

import json
import os
import sys
from pathlib import Path

import numpy as np

os.environ.setdefault("KERAS_BACKEND", "jax")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "keras"))

import custom_optimizers  # noqa: E402
import keras  # noqa: E402

generator = np.random.default_rng(7)
shapes = {"kernel": (3, 4), "bias": (4,)}
first = {name: generator.normal(size=shape).astype("float32") for name, shape in shapes.items()}
gradients = [[generator.normal(size=shape).astype("float32") for shape in shapes.values()] for _ in range(6)]


cases = {}
for kind_name, kind in custom_optimizers.made(keras, keras.ops).items():
    for options in (*custom_optimizers.OPTIONS, "schedule"):
        given = [[keras.ops.convert_to_tensor(one) for one in step] for step in gradients]
        steps, sums = custom_optimizers.trajectory(keras, keras.Variable, kind, options, given, first)
        cases[f"{kind_name}-{options}"] = {"w": steps[-1], "after_one": steps[0], "sums": sums}


def trained_on(model, epochs):
    """Weights after so many epochs more."""
    x = np.linspace(-1.0, 1.0, 24, dtype="float32").reshape(8, 3)
    model.fit(x, x[:, :1], batch_size=4, epochs=epochs, shuffle=False, verbose=0)
    return [one.tolist() for one in model.get_weights()]


layer = keras.layers.Dense(1, kernel_initializer="ones", name="dense")
model = keras.Sequential([keras.Input((3,)), layer], name="model")
model.compile(custom_optimizers.made(keras, keras.ops)["KerasNadam"](weight_decay=0.1), "mse")
trained_on(model, 2)
model.save(HERE / "custom_optimizer.keras")

written = {
    "goes_on": trained_on(model, 2),
    "version": keras.__version__,
    "first": {name: value.tolist() for name, value in first.items()},
    "gradients": [[one.tolist() for one in step] for step in gradients],
    "cases": cases,
}
(HERE / "custom_optimizers.json").write_text(json.dumps(written, separators=(",", ":")) + "\n")
