"""Regression: learn a noisy sine with Dense layers, watch the validation loss, and predict."""

import matplotlib.pyplot as plt
import numpy as np

import minikeras as tf

generator = np.random.default_rng(0)
x = generator.uniform(-3.0, 3.0, size=(2000, 1)).astype("float32")
y = np.sin(x) + 0.1 * generator.standard_normal(x.shape).astype("float32")

tf.keras.utils.set_random_seed(4)
model = tf.keras.Sequential(
    [
        tf.keras.Input(shape=(1,)),
        tf.keras.layers.Dense(32, activation="tanh"),
        tf.keras.layers.Dense(32, activation="tanh"),
        tf.keras.layers.Dense(1),
    ]
)
model.compile(optimizer=tf.keras.optimizers.Adam(5e-3), loss="mse", metrics=["mae"])
history = model.fit(x, y, batch_size=64, epochs=40, validation_split=0.2, verbose=0)

grid = np.linspace(-3.0, 3.0, 61, dtype="float32")[:, None]
predicted = model.predict(grid, verbose=0)
error = np.abs(predicted - np.sin(grid)).mean()
print(f"validation loss {history.history['val_loss'][-1]:.4f}, where the noise alone is 0.0100")
print(f"mean distance from the sine: {error:.4f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.semilogy(history.history["loss"], label="training")
left.semilogy(history.history["val_loss"], label="validation")
left.axhline(0.01, color="black", linestyle="--", label="noise")
left.set(xlabel="epoch", ylabel="mean squared error")
left.legend()
right.plot(x[:300], y[:300], ".", color="lightgrey", label="300 of the points")
right.plot(grid, predicted, label="prediction")
right.plot(grid, np.sin(grid), "--", label="sine")
right.legend()
figure.savefig("regression.png")
