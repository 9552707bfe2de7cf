"""Functions on ranks; a small model that ranks train as one process does, and how to compare."""

import contextlib

import numpy as np

import minikeras as tf
from minikeras.distribute.communicator import ThreadCommunicator
from minikeras.distribute.parts import BatchPart
from minikeras.ranks import computing_on

layers, losses = tf.keras.layers, tf.keras.losses
X = np.random.default_rng(0).normal(size=(50, 6)).astype("float32")
Y = np.random.default_rng(1).integers(0, 3, 50)
WEIGHTS = np.random.default_rng(2).uniform(0.1, 2.0, 50).astype("float32")


def on_ranks(size, function):
    """What a function gives on each rank, a thread."""
    ranks = ThreadCommunicator(size)
    with tf.distribute.using(ranks):
        return ranks.run(function)


def on_parts(size, function, total=7, parts=True):
    """The number of each rank's rows of a batch of `total`, and what `function(rows)` gives there, as for a part of a batch."""

    def work():
        rows = tf.distribute.rows_of(total)
        with computing_on(BatchPart(rows.start, len(rows), total) if parts else None):
            return len(rows), function(np.arange(rows.start, rows.stop))

    return on_ranks(size, work)


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
