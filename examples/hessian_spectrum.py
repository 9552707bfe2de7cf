"""The Hessian's eigenvalues of a small network while it learns: a few large ones, many near zero, some below."""

import matplotlib.pyplot as plt
import numpy as np

import minikeras as tf

(x, y), _ = tf.keras.datasets.iris.load_data()
x = tf.constant((x - x.mean(0)) / x.std(0), tf.float32)

tf.keras.utils.set_random_seed(1)
layers = [tf.keras.layers.Dense(12, "tanh", name="hidden"), tf.keras.layers.Dense(3, name="head")]
model = tf.keras.Sequential([tf.keras.Input((4,)), *layers])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(1e-2)

spectra = {}
for step in range(301):
    if step in (0, 30, 100, 300):
        hessian = tf.autodiff.hessian(lambda: loss_of(y, model(x)), model)
        spectra[step] = np.linalg.eigvalsh(hessian.numpy())
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True))

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for step, values in spectra.items():
    axes.plot(values[::-1], marker=".", label=f"step {step}")
axes.set(xlabel="rank", ylabel="eigenvalue", yscale="symlog", title=f"Hessian of {len(values)} parameters")
axes.set_yscale("symlog", linthresh=1e-3)
axes.axhline(0.0, color="grey", linewidth=0.5)
axes.legend()
figure.savefig("hessian_spectrum.png")

last = spectra[300]
share = np.sort(np.abs(last))[::-1][:5].sum() / np.abs(last).sum()
print({step: f"{values[0]:.1e} to {values[-1]:.2f}" for step, values in spectra.items()})
print(f"share of the five largest eigenvalues at the end: {share:.3f}")
