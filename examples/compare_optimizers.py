"""Adam, rates by layer and Levenberg-Marquardt on one regression network: loss by step and by second, over three seeds."""

import numpy as np

import minikeras as tf

x = np.linspace(-3.0, 3.0, 200)[:, None]
y = np.sin(2 * x) * np.exp(-0.2 * x**2)


def network():
    """Some 300 parameters; new ones in each call."""
    layers = [tf.keras.layers.Dense(16, "tanh", name="a"), tf.keras.layers.Dense(16, "tanh", name="b")]
    return tf.keras.Sequential([tf.keras.Input((1,)), *layers, tf.keras.layers.Dense(1, name="head")])


optimizers = tf.keras.optimizers
problem = tf.experiments.Problem(network, x, y, loss="mse")
comparison = tf.experiments.compare(
    {
        "Adam": optimizers.Adam(1e-2),
        "Adam, first layer faster": {"a": 3.0, "*": optimizers.Adam(1e-2)},
        "Levenberg-Marquardt": optimizers.LevenbergMarquardt(),
    },
    problem,
    steps={"Adam": 2000, "Adam, first layer faster": 2000, "Levenberg-Marquardt": 50},
    threshold=1e-4,
    seeds=3,
)
print(comparison)
comparison.plot(title=f"A curve learned by {network().count_params()} parameters").savefig("compare_optimizers.png")

steps = dict(zip(*(comparison.table().columns[name] for name in ("optimizer", "steps to reach")), strict=True))
print(f"steps of Adam for one of Levenberg-Marquardt: {steps['Adam'] / steps['Levenberg-Marquardt']:.0f}")
