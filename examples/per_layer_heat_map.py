"""How far each layer moves from its first weights, epoch by epoch, for several ways to distribute the learning rate."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

import minikeras as tf

EPOCHS, LAYERS = 12, ["first", "second", "third", "head"]
(x, y), (x_test, y_test) = tf.keras.datasets.digits.load_data()
x, x_test = x / 16.0, x_test / 16.0

rules = {
    "one rate": {"*": tf.keras.optimizers.Adam(1e-3)},
    "first layer x 10": {"first": 10.0, "*": tf.keras.optimizers.Adam(1e-3)},
    "head x 10": {"head": 10.0, "*": tf.keras.optimizers.Adam(1e-3)},
    "first layer frozen": {"first": None, "*": tf.keras.optimizers.Adam(1e-3)},
}


def train(rule):
    """What each layer learned, of shape (layers, epochs): |W - W_0| / |W_0|; and the test accuracy."""
    tf.keras.utils.set_random_seed(1)
    hidden = [tf.keras.layers.Dense(32, "relu", name=name) for name in LAYERS[:-1]]
    model = tf.keras.Sequential([tf.keras.Input((64,)), *hidden, tf.keras.layers.Dense(10, name="head")])
    first = [layer.kernel.numpy() for layer in model.layers]
    moved = []

    def measure(epoch, logs):
        pairs = zip(model.layers, first, strict=True)
        moved.append([np.linalg.norm(layer.kernel.numpy() - start) / np.linalg.norm(start) for layer, start in pairs])

    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(rule, loss, metrics=["accuracy"])
    model.fit(x, y, epochs=EPOCHS, verbose=0, callbacks=[tf.keras.callbacks.LambdaCallback(on_epoch_end=measure)])
    return np.transpose(moved), model.evaluate(x_test, y_test, verbose=0)[1]


results = {name: train(rule) for name, rule in rules.items()}
largest = max(moved.max() for moved, _ in results.values())
figure, panels = plt.subplots(2, 2, figsize=(9, 4.4), sharex=True, sharey=True, layout="constrained")
for ax, (name, (moved, accuracy)) in zip(panels.flat, results.items(), strict=True):
    picture = ax.imshow(moved, norm=LogNorm(0.05, largest), aspect="auto", extent=(0.5, EPOCHS + 0.5, 3.5, -0.5))
    ax.set(title=f"{name}: test accuracy {accuracy:.3f}", yticks=range(4), yticklabels=LAYERS)
    print(f"{name:19}", *(f"{layer} {last:.2f}" for layer, last in zip(LAYERS, moved[:, -1], strict=True)), sep="  ")
for ax in panels[1]:
    ax.set(xlabel="epoch")
figure.colorbar(picture, ax=panels, label="relative change of the kernel")
figure.savefig("per_layer_heat_map.png")
fast, even = (results[name][0][0, -1] for name in ("first layer x 10", "one rate"))
print(f"at ten times the rate the first layer moves {fast / even:.1f} times as far")
