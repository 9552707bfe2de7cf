"""One Newton step on one kernel, first by hand as in the guides, then by the optimizer; and a picture of the Hessian."""

import numpy as np

import minikeras as tf

tf.keras.utils.set_random_seed(1)
x = tf.random.normal([7, 5])
layer_1 = tf.keras.layers.Dense(8, activation="relu")
layer_2 = tf.keras.layers.Dense(6, activation="relu")


def loss_fn():
    return tf.reduce_mean(layer_2(layer_1(x)) ** 2)


with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        loss = loss_fn()
    gradient = inner.gradient(loss, layer_1.kernel)
hessian = outer.jacobian(gradient, layer_1.kernel)

size = layer_1.kernel.shape.num_elements()
matrix = tf.reshape(hessian, [size, size])
step = tf.linalg.solve(matrix + 1e-3 * tf.eye(size), tf.reshape(gradient, [size, 1]))
by_hand = layer_1.kernel - tf.reshape(step, layer_1.kernel.shape)

optimizer = tf.keras.optimizers.Newton(damping=1e-3, globalization=None)
optimizer.minimize(loss_fn, [layer_1.kernel])

axes = tf.autodiff.plot_hessian(hessian, title="loss by two elements of the kernel")
axes.figure.savefig("newton_hessian.png")
print(f"loss {loss:.4f} -> {loss_fn():.6f}")
print(f"largest difference between the step by hand and the optimizer's: {np.abs(by_hand - layer_1.kernel).max():.1e}")
