"""Losses with known minima, and small networks, for the tests of second-order methods."""

import numpy as np

import minikeras as tf
from minikeras import keras


def rosenbrock(dtype=tf.float64):
    """A Variable at (-1.2, 1), and the loss with its minimum 0 at (1, 1)."""
    w = tf.Variable([-1.2, 1.0], dtype=dtype)
    return w, lambda: 100.0 * (w[1] - w[0] ** 2) ** 2 + (1.0 - w[0]) ** 2


def quadratic(eigenvalues, seed=0):
    """A Variable, the loss w^T A w / 2 - b^T w, and its stationary point."""
    generator = np.random.default_rng(seed)
    size = len(eigenvalues)
    q, _ = np.linalg.qr(generator.normal(size=(size, size)))
    a, b = q @ np.diag(np.asarray(eigenvalues, float)) @ q.T, generator.normal(size=size)
    w = tf.Variable(generator.normal(size=size))
    return w, lambda: 0.5 * tf.tensordot(w, tf.linalg.matvec(tf.constant(a), w), 1) - tf.tensordot(tf.constant(b), w, 1), a, b


def network(sizes=(3, 5, 2), activation="tanh", seed=1, dtype="float64", **options):
    """A small dense network with weights that depend on the seed alone."""
    tf.random.set_seed(seed)
    hidden = [keras.layers.Dense(n, activation, dtype=dtype, name=f"hidden_{i}", **options) for i, n in enumerate(sizes[1:-1])]
    head = keras.layers.Dense(sizes[-1], dtype=dtype, name="head", **options)
    model = keras.Sequential([keras.Input((sizes[0],), dtype=dtype), *hidden, head])
    return model


def data(rows=12, columns=3, classes=2, seed=2, dtype="float64"):
    """Rows, classes and targets."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, columns)).astype(dtype)
    return (
        tf.constant(x),
        tf.constant(generator.integers(0, classes, rows)),
        tf.constant(generator.normal(size=(rows, classes))),
    )


def objective(model, x, labels):
    """Cross-entropy of a network's logits, in two stages."""
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return keras.optimizers.Objective(lambda: model(x, training=True), lambda z: loss_of(labels, z))


def gradient_norm(loss_fn, variables):
    with tf.GradientTape() as tape:
        loss = loss_fn()
    return float(sum(float(tf.reduce_sum(g * g)) for g in tape.gradient(loss, variables))) ** 0.5


def breast_cancer_regression():
    """L2-regularized logistic regression on the standardized breast cancer data, float64: variables and loss."""
    (x, y), (x_test, y_test) = keras.datasets.breast_cancer.load_data()
    rows = np.concatenate([x, x_test]).astype("float64")
    labels = np.concatenate([y, y_test]).astype("float64")
    rows = (rows - rows.mean(0)) / rows.std(0)
    inputs, targets = tf.constant(rows), tf.constant(labels)
    w, b = tf.Variable(np.zeros((30, 1))), tf.Variable(np.zeros(1))

    def loss():
        logits = (inputs @ w + b)[:, 0]
        mean = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits))
        return mean + tf.reduce_sum(w * w) * (0.5 / len(rows))

    return [w, b], loss, rows, labels
