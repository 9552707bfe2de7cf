"""A small model that ranks train as one process does, and how to compare."""

import contextlib

import numpy as np

import minikeras as tf
from minikeras.distribute.communicator import ThreadCommunicator

layers, losses = tf.keras.layers, tf.keras.losses
X = np.random.default_rng(0).normal(size=(50, 6)).astype("float32")
Y = np.random.default_rng(1).integers(0, 3, 50)
WEIGHTS = np.random.default_rng(2).uniform(0.1, 2.0, 50).astype("float32")


def on_ranks(size, function):
    ranks = ThreadCommunicator(size, timeout=30.0)
    with tf.distribute.using(ranks):
        return ranks.run(function)


def classifier():
    return tf.keras.Sequential(
        [tf.keras.Input((6,)), layers.Dense(8, "tanh", kernel_regularizer="l2"), layers.Dense(3)], name="classifier"
    )


def compiled(model, **options):
    options = {"optimizer": "adam", "loss": losses.SparseCategoricalCrossentropy(from_logits=True)} | options
    model.compile(**options)


def scope(options):
    """The scope of a strategy with these options; None for none."""
    return contextlib.nullcontext() if options is None else tf.distribute.MultiWorkerMirroredStrategy(**options).scope()


def trained(options=None, make=classifier, x=X, y=Y, compile=dict, **fit):
    """The model after training, and what `fit` logged. `compile()` gives objects of each rank's own."""
    tf.random.set_seed(3)
    with scope(options):
        model = make()
        compiled(model, **compile())
    history = model.fit(x, y, **({"batch_size": 16, "epochs": 3, "verbose": 0} | fit))
    return model, history.history


def assert_close(found, expected, rtol=2e-6, atol=1e-7):
    model, history = found
    for one, other in zip(model.get_weights(), expected[0].get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)
    assert history.keys() == expected[1].keys()
    for name, values in history.items():
        np.testing.assert_allclose(values, expected[1][name], rtol=rtol, atol=atol)


def assert_same(found, expected):
    model, history = found
    for one, other in zip(model.get_weights(), expected[0].get_weights(), strict=True):
        assert one.tobytes() == other.tobytes()
    assert history == expected[1]


def check(size, **options):
    """All ranks train what one process does, and hold the same bits."""
    expected = trained(None, **options)
    found = on_ranks(size, lambda: trained({}, **options))
    for one in found:
        assert_close(one, expected)
        assert_same(one, found[0])
    return found[0]
