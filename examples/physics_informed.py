"""A physics-informed network: it solves Poisson's equation on a square from the equation alone.

-(u_xx + u_yy) = f inside, u = 0 on the sides. The network's output times x (1 - x) y (1 - y) is zero there by construction.
Source: Raissi, Perdikaris and Karniadakis, Physics-informed neural networks (2019); the sides as in Lagaris et al. (1998).
"""

import matplotlib.pyplot as plt
import numpy as np

import minikeras as tf

tf.keras.utils.set_random_seed(1)
tf.keras.backend.set_floatx("float64")
layers = [tf.keras.layers.Dense(16, "tanh"), tf.keras.layers.Dense(16, "tanh"), tf.keras.layers.Dense(1)]
network = tf.keras.Sequential([tf.keras.Input((2,)), *layers])
x, y = np.random.default_rng(1).uniform(size=(2, 300, 1))  # where the equation is to hold


def exact(x, y):
    return np.sin(np.pi * x) * np.sin(2 * np.pi * y)


def solution(x, y):
    return x * (1 - x) * y * (1 - y) * network(tf.concat([x, y], axis=1))


def residual():
    """How far the network is from the equation at each point: second derivatives by two tapes."""
    points = tf.constant(x), tf.constant(y)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(points)
        with tf.GradientTape() as inner:
            inner.watch(points)
            u = solution(*points)
        u_x, u_y = inner.gradient(u, points)
    return outer.gradient(u_x, points[0]) + outer.gradient(u_y, points[1]) + 5 * np.pi**2 * exact(x, y)


objective = tf.keras.optimizers.Objective(residual, lambda outputs: tf.reduce_mean(outputs**2))
optimizer = tf.keras.optimizers.LevenbergMarquardt()
losses = [float(optimizer.minimize(objective, network.trainable_variables)) for _ in range(60)]

side = np.linspace(0.0, 1.0, 61)
grid_x, grid_y = np.meshgrid(side, side)
found = solution(grid_x.reshape(-1, 1), grid_y.reshape(-1, 1)).numpy().reshape(grid_x.shape)
error = found - exact(grid_x, grid_y)

figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
axes[0].semilogy(losses)
axes[0].set(xlabel="step of Levenberg-Marquardt", title="mean squared residual")
for ax, values, title in ((axes[1], found, "solution"), (axes[2], error, "error")):
    limit = np.abs(values).max()
    picture = ax.pcolormesh(grid_x, grid_y, values, cmap="RdBu_r", vmin=-limit, vmax=limit)
    ax.set(title=title, xlabel="x", ylabel="y", aspect="equal")
    figure.colorbar(picture, ax=ax, format="%.0e" if ax is axes[2] else "%.1f")
axes[2].plot(x, y, ".", color="black", markersize=1)
figure.savefig("physics_informed.png")

print(f"mean squared residual {losses[0]:.1e} -> {losses[-1]:.1e}")
print(f"relative error: {np.linalg.norm(error) / np.linalg.norm(exact(grid_x, grid_y)):.1e}")
