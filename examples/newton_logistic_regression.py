"""Newton against SGD and Adam on logistic regression: how far each comes in a hundred steps."""

import matplotlib.pyplot as plt
import numpy as np

import minikeras as tf

(x, y), _ = tf.keras.datasets.breast_cancer.load_data(test_split=0.0)
x = tf.constant((x - x.mean(0)) / x.std(0), dtype=tf.float64)
y = tf.constant(y, dtype=tf.float64)


def fit(optimizer, steps):
    """Train from zero; the norm of the gradient before each step."""
    w, b = tf.Variable(np.zeros(30)), tf.Variable(0.0, dtype=tf.float64)

    def loss_fn():
        logits = tf.linalg.matvec(x, w) + b
        errors = tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)
        return tf.reduce_mean(errors) + tf.reduce_sum(w**2) / (2 * len(y))

    norms = []
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = loss_fn()
        gradients = tape.gradient(loss, [w, b])
        norms.append(float(tf.sqrt(tf.reduce_sum(gradients[0] ** 2) + gradients[1] ** 2)))
        if optimizer.needs_loss:
            optimizer.minimize(loss_fn, [w, b])
        else:
            optimizer.apply_gradients(zip(gradients, [w, b], strict=True))
    return norms


optimizers = tf.keras.optimizers
curves = {
    "SGD": fit(optimizers.SGD(1.0), 100),
    "Adam": fit(optimizers.Adam(0.1), 100),
    "LBFGS": fit(optimizers.LBFGS(), 60),
    "Newton": fit(optimizers.Newton(), 11),
}
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for name, norms in curves.items():
    axes.semilogy(norms, label=name)
axes.set(xlabel="step", ylabel="norm of the gradient", title="logistic regression, 569 rows, 31 parameters")
axes.legend()
figure.savefig("newton_logistic_regression.png")

steps = next(i for i, norm in enumerate(curves["Newton"]) if norm < 1e-8)
print({name: f"{norms[-1]:.0e}" for name, norms in curves.items()})
print(f"Newton's gradient is below 1e-8 after {steps} steps")
