"""Levenberg-Marquardt against Adam on a regression network of some 300 parameters: loss by step and by second."""

import time

import matplotlib.pyplot as plt
import numpy as np

import minikeras as tf

x = np.linspace(-3.0, 3.0, 200)[:, None]
y = np.sin(2 * x) * np.exp(-0.2 * x**2)


def fit(optimizer, most):
    """Train a fresh network; loss and time after each step."""
    tf.keras.utils.set_random_seed(1)
    layers = [tf.keras.layers.Dense(16, "tanh", name="a"), tf.keras.layers.Dense(16, "tanh", name="b")]
    model = tf.keras.Sequential([tf.keras.Input((1,)), *layers, tf.keras.layers.Dense(1, name="c")])
    objective = tf.keras.optimizers.Objective(lambda: model(x), lambda z: tf.reduce_mean((z - tf.constant(y, tf.float32)) ** 2))
    variables, losses, times = model.trainable_variables, [], []
    start = time.perf_counter()
    for _ in range(most):
        if optimizer.needs_loss:
            loss = optimizer.minimize(objective, variables)
        else:
            with tf.GradientTape() as tape:
                loss = objective()
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        losses.append(float(loss))
        times.append(time.perf_counter() - start)
    return losses, times


curves = {
    "Adam": fit(tf.keras.optimizers.Adam(1e-2), most=2000),
    "Levenberg-Marquardt": fit(tf.keras.optimizers.LevenbergMarquardt(), most=60),
}
figure, (by_step, by_time) = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for name, (losses, times) in curves.items():
    by_step.loglog(range(1, len(losses) + 1), losses, label=name)
    by_time.loglog(times, losses, label=name)
by_step.set(xlabel="step", ylabel="mean squared error")
by_time.set(xlabel="second")
by_step.legend()
figure.savefig("levenberg_marquardt.png")

adam, marquardt = min(curves["Adam"][0]), min(curves["Levenberg-Marquardt"][0])
print({name: f"{len(losses)} steps, {min(losses):.1e}" for name, (losses, _) in curves.items()})
print(f"lowest loss of Adam over that of Levenberg-Marquardt: {adam / marquardt:.1f}")
