"""A step of training of every layer and every loss, as graphs on the double, gives what NumPy's executor gives."""

import numpy as np
import pytest
from graph_steps import graphs_of
from in_one_test import in_one_test
from layer_table import ROWS, Row
from loss_table import LOSSES, loss_of
from slow import sampled

import minikeras as tf
from minikeras import nest
from minikeras.nn_ops import streams

L = tf.keras.layers


class OfSeveral(L.Layer):
    """A layer of several arguments as one of a list."""

    def __init__(self, layer, **options):
        super().__init__(**options)
        self.layer = layer

    def call(self, inputs, training=False):
        return self.layer(*inputs, training=training)


MORE = {
    "MultiHeadAttention": Row(lambda **o: OfSeveral(L.MultiHeadAttention(2, 3, dropout=0.2), **o), [(4, 3, 5), (4, 2, 5)]),
    "GroupedQueryAttention": Row(lambda **o: OfSeveral(L.GroupQueryAttention(3, 4, 2), **o), [(4, 3, 5), (4, 2, 5)]),
    "Lambda": Row(lambda **o: L.Lambda(lambda x: tf.tanh(x) * x, **o), (4, 3)),
    "Pipeline": Row(lambda dtype: L.Pipeline([L.Dense(3, "relu"), L.Dropout(0.5, seed=1), L.Dense(2)]), (4, 3)),
}
"""Layers that `layer_table` has no row for."""
LOOPS = {"SimpleRNN", "GRU", "LSTM", "RNN", "Bidirectional", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"}
"""Layers whose loops Python carries out between two graphs."""
DRAWS = {"RandomCrop", "MixUp", "CutMix"}
"""Layers whose draws Python carries out between two graphs: a place, an order, shares of a beta distribution."""
NO_STEP = {name: "a step of a layer" for name in ("SimpleRNNCell", "GRUCell", "LSTMCell", "StackedRNNCells")}
NO_STEP |= {"Layer": "a base", "Wrapper": "a base", "InputSpec": "describes inputs", "InputLayer": "computes nothing"}
OF_DATA = {f"minikeras.keras.layers.{name}" for name in ("encoding", "hashing", "lookup", "text_vectorization")}
"""Layers of integers and texts, which work on the host before anything is trained."""


def steps_of(row, place):
    """Results of five steps, what Variables hold then, and the function."""
    streams.set_global_seed(4)
    with tf.device(place):
        layer, inputs = row.make(dtype="float32"), row.inputs("float32")
        layer(inputs)
        several = isinstance(row.shapes, list)
        optimizer = tf.keras.optimizers.Adam(0.01, epsilon=0.1)  # else it scales up what rounding leaves of zeros

        @tf.function
        def step(*xs):
            smooth = [x for x in xs if x.dtype.is_differentiable]
            with tf.GradientTape() as tape:
                tape.watch(smooth)
                y = layer(list(xs) if several else xs[0], training=True)
                loss = tf.add_n([tf.reduce_sum(tf.cast(one, "float32") ** 2) for one in nest.flatten(y)])
            weights = layer.trainable_variables
            gradients = tape.gradient(loss, [*smooth, *weights])
            if weights:
                optimizer.apply_gradients(list(zip(gradients[len(smooth) :], weights, strict=True)))
            return loss, [one for one in gradients[: len(smooth)] if one is not None]

        results = [nest.flatten(step(*(inputs if several else [inputs]))) for _ in range(5)]
        return [one.numpy() for result in results for one in result], [one.numpy() for one in layer.variables], step


def test_every_layer_is_here():
    classes = {value for name in L.__all__ if isinstance(value := getattr(L, name), type)}
    names = {value.__name__ for value in classes if value.__module__ not in OF_DATA}
    assert names == {*NO_STEP, *(row.name for row in ROWS), *MORE}


@pytest.mark.parametrize("row", sampled([*ROWS, *MORE.values()], 3), ids=[*(row.name for row in ROWS), *MORE])
def test_a_layer(row, double):
    results, state, step = steps_of(row, "STRICT:0")
    expected, expected_state, _ = steps_of(row, "CPU:0")
    for own, other in zip((*results, *state), (*expected, *expected_state), strict=True):
        scale = max(1.0, np.abs(other).max(initial=0.0)) if other.dtype.kind in "fiu" else 1.0
        np.testing.assert_allclose(own, other, atol=2e-5 * scale, rtol=0)
    (graph,) = graphs_of(step)
    assert not graph.schedule.calls or row.name in LOOPS | DRAWS, "Python stands between two graphs"


@in_one_test(3, name=LOSSES)
def test_a_loss(name, double):
    found = []
    for place in ("STRICT:0", "CPU:0"):
        with tf.device(place):
            loss, *given = loss_of(name)
            targets, predictions = map(tf.constant, given)

            @tf.function
            def step(y, x, loss=loss):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    value = loss(y, x)
                return value, tape.gradient(value, x)

            for _ in range(4):
                results = step(targets, predictions)
            found.append([one.numpy() for one in results])
            if place == "STRICT:0":
                (graph,) = graphs_of(step)
                assert not graph.schedule.calls, "Python stands between two graphs"
    for own, other in zip(*found, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-6)
