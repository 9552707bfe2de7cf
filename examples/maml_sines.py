"""MAML: first weights from which one gradient step on ten points learns a new sine (Finn, Abbeel and Levine, 2017)."""

import matplotlib.pyplot as plt

import minikeras as tf

tf.random.set_seed(1)


def draw_sines(count, points):
    """Points of sines that differ in amplitude and phase: x and y, of shape (count, points, 1)."""
    amplitude, phase = tf.random.uniform([count, 1, 1], 0.1, 5.0), tf.random.uniform([count, 1, 1], 0.0, 3.14)
    x = tf.random.uniform([count, points, 1], -5.0, 5.0)
    return x, amplitude * tf.sin(x - phase)


def predict(w, x):
    return tf.tanh(tf.tanh(x @ w[0] + w[1]) @ w[2] + w[3]) @ w[4] + w[5]


def adapt(weights, x, y):
    """The weights after one gradient step, which each sine takes by itself."""
    with tf.GradientTape() as tape:
        own = [tf.repeat(weight[None], len(x), axis=0) for weight in weights]
        loss = tf.reduce_sum(tf.reduce_mean((predict(own, x) - y) ** 2, axis=1))
    return [weight - 0.02 * slope for weight, slope in zip(own, tape.gradient(loss, own), strict=True)]


def train(adaptive):
    """First weights that are good after the inner step; without `adaptive` those that are good at once."""
    shapes = [1, 40], [1, 40], [40, 40], [1, 40], [40, 1], [1, 1]
    weights = [tf.Variable(tf.random.normal(shape) / shape[0] ** 0.5) for shape in shapes]
    optimizer = tf.keras.optimizers.Adam(3e-3)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            w = adapt(weights, x[:, :10], y[:, :10]) if adaptive else weights
            loss = tf.reduce_mean((predict(w, x[:, 10:]) - y[:, 10:]) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

    for _ in range(5000):
        step(*draw_sines(25, 20))
    return weights


x, y = draw_sines(200, 50)
grid, errors = tf.linspace(-5.0, 5.0, 200)[:, None], []
figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, name in zip(panels, ("MAML", "trained on all sines"), strict=True):
    weights = train(adaptive=name == "MAML")
    adapted = adapt(weights, x[:, :10], y[:, :10])
    errors += [tf.reduce_mean((predict(w, x[:, 10:]) - y[:, 10:]) ** 2) for w in (weights, adapted)]
    ax.plot(x[2], y[2], ".", x[2, :10], y[2, :10], "ko")
    ax.plot(grid, predict(weights, grid), "--", grid, predict(adapted, grid)[2])
    ax.set(title=f"{name}: error {errors[-1]:.2f}", xlabel="x")
panels[0].legend(["a new sine", "ten points of it", "first weights", "after one step"], fontsize=8)
figure.savefig("maml_sines.png")
print("error on new sines after one step: MAML {1:.2f}, trained on all sines {3:.2f}".format(*errors))
