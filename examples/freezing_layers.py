"""Freeze and unfreeze between calls of `fit`: no new compile, and the optimizer's slots stay."""

import matplotlib.pyplot as plt
import numpy as np

import minikeras as tf

(x, y), (x_test, y_test) = tf.keras.datasets.digits.load_data()
x, x_test = x / 16.0, x_test / 16.0

tf.keras.utils.set_random_seed(1)
base = tf.keras.Sequential(
    [tf.keras.Input((64,)), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.BatchNormalization()], name="base"
)
model = tf.keras.Sequential([tf.keras.Input((64,)), base, tf.keras.layers.Dense(10, name="head")])
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=tf.keras.optimizers.Adam(3e-3), loss=loss, metrics=["accuracy"])

losses, moved = [], []
for phase, trainable in (("all", True), ("head only", False), ("all again", True)):
    base.trainable = trainable
    before = [weight.numpy() for weight in base.weights]
    losses += model.fit(x, y, epochs=5, verbose=0).history["loss"]
    moved.append(max(np.abs(weight.numpy() - old).max() for weight, old in zip(base.weights, before, strict=True)))
    print(f"{phase:10} largest change of the base's weights and statistics: {moved[-1]:.4f}")

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot(range(1, 16), losses, marker=".")
axes.axvspan(5.5, 10.5, alpha=0.15, label="base frozen")
axes.set(xlabel="epoch", ylabel="training loss", yscale="log")
axes.legend()
figure.savefig("freezing_layers.png")
print(f"test accuracy: {model.evaluate(x_test, y_test, verbose=0)[1]:.4f}")
print(f"the frozen base moved by {moved[1]}")
