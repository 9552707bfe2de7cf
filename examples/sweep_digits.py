"""A sweep of 96 runs on digits: four learning rates, three widths, eight seeds; a table, the best model, resuming after a kill.

`n_jobs=2` in `fit` would train groups of runs in two processes, with the same results.
"""

import pathlib
import tempfile

import minikeras as tf

keras = tf.keras

(x, y), (x_test, y_test) = keras.datasets.digits.load_data()
x, x_test = x / 16.0, x_test / 16.0


def build(rate, width):
    """A compiled model for a combination of parameters."""
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(width, activation="relu"), keras.layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"])
    return model


sweep = tf.experiments.Sweep(build, {"rate": [1e-3, 3e-3, 1e-2, 3e-2], "width": [8, 16, 32]}, seeds=8, name="digits")
options = {"epochs": 10, "batch_size": 64, "validation_split": 0.2, "objective": "val_accuracy"}
folder = pathlib.Path(tempfile.mkdtemp()) / "digits"

results = sweep.fit(x, y, directory=folder, **options)
print(f"{len(results)} runs, mean and deviation over the seeds:")
print(results.table(over="seed"))
results.plot("parallel").savefig("sweep_digits.png")

# Were it killed, the same call would go on with the runs that are missing. Here some are deleted.
for path in sorted((folder / "runs").glob("*.json"))[:5]:
    path.unlink()
again = sweep.fit(x, y, directory=folder, **options)
print("the same table after going on:", repr(again.table()) == repr(results.table()))

best = tf.experiments.Sweep.load(folder, build).best
accuracy = best.model().evaluate(x_test, y_test, verbose=0)[1]
print(f"best: {best.parameters}, seed {best.seed}; test accuracy: {accuracy:.3f}")
