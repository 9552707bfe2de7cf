"""What an ensemble knows and what it does not: sixteen networks, trained at the price of a few, agree where there are data.

Each member predicts a mean and a variance; the members' variances are the noise, the spread of their means is ignorance.
Source: Lakshminarayanan, Pritzel and Blundell, Simple and scalable predictive uncertainty estimation (2017), section 2.4.
"""

import matplotlib.pyplot as plt
import numpy as np

import minikeras as tf

generator = np.random.default_rng(1)
x = np.sort(np.concatenate([generator.uniform(-4.0, -1.0, 150), generator.uniform(1.0, 3.0, 100)]))[:, None]
noise = 0.05 + 0.15 * (x > 0)
y = np.sin(2.0 * x) + noise * generator.normal(size=x.shape)


def negative_log_likelihood(y, predicted):
    """-log N(y; mean, variance), without the constant; the second output is the logarithm of the variance."""
    mean, log_variance = predicted[:, :1], predicted[:, 1:]
    return 0.5 * (log_variance + tf.square(y - mean) * tf.exp(-log_variance))


def build():
    layers = [tf.keras.layers.Dense(32, "tanh"), tf.keras.layers.Dense(32, "tanh"), tf.keras.layers.Dense(2)]
    model = tf.keras.Sequential([tf.keras.Input((1,)), *layers])
    model.compile(tf.keras.optimizers.Adam(5e-3), negative_log_likelihood)
    return model


ensemble = tf.experiments.Ensemble(build, size=16, seeds=range(16))
history = ensemble.fit(x, y, batch_size=50, epochs=300, verbose=0)

grid = np.linspace(-6.0, 5.0, 400)[:, None]
means, log_variances = np.moveaxis(ensemble.predict(grid, verbose=0), -1, 0)
mean, ignorance = means.mean(axis=0), means.std(axis=0)
total = np.sqrt(np.exp(log_variances).mean(axis=0) + ignorance**2)

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.fill_between(grid[:, 0], mean - 2 * total, mean + 2 * total, alpha=0.2, label="two deviations, noise included")
axes.fill_between(grid[:, 0], mean - 2 * ignorance, mean + 2 * ignorance, alpha=0.4, label="two deviations of the means")
axes.plot(grid, mean, label="mean of 16 members")
axes.plot(grid, np.sin(2.0 * grid), color="black", linewidth=0.8, linestyle="--", label="truth")
axes.plot(x, y, ".", color="grey", markersize=3, label="data")
axes.set(xlabel="x", ylabel="y", ylim=(-3, 3), title="Where there are no data the members disagree")
axes.legend(ncols=2, loc="upper center", fontsize=8)
figure.savefig("ensemble_uncertainty.png")

near = ((grid > -3.8) & (grid < -1.2)) | ((grid > 1.2) & (grid < 2.8))
inside = np.abs(np.sin(2.0 * grid) - mean[:, None])[near] < 2 * total[:, None][near]
print(f"loss of the members: {history.history['loss'][-1].mean():.2f}")
print(f"share of the truth within two deviations, near data: {inside.mean():.3f}")
print(f"spread of the members at -6 to that at -2: {ignorance[0] / ignorance[np.abs(grid[:, 0] + 2).argmin()]:.1f}")
