"""Members train on a device as they do on the CPU; their seeds stay on the host."""

import numpy as np

import minikeras as tf

layers = tf.keras.layers
X = np.random.default_rng(0).normal(size=(24, 3)).astype("float32")


def predictions(place):
    tf.keras.utils.set_random_seed(1)
    with tf.device(place):
        inner = lambda: [tf.keras.Input((3,)), layers.Dense(4, "relu"), layers.Dropout(0.3), layers.Dense(1)]
        ensemble = tf.experiments.Ensemble(lambda: tf.keras.Sequential(inner()), size=3)
        ensemble.compile("adam", "mse")
        ensemble.fit(X, X[:, :1], batch_size=8, epochs=3, verbose=0)
        return np.asarray(ensemble.predict(X, verbose=0))


def test_members_train_on_a_device_as_on_the_cpu():
    np.testing.assert_allclose(predictions("STRICT:0"), predictions("CPU:0"), rtol=1e-5, atol=1e-6)
