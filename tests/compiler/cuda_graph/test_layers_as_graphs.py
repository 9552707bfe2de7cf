"""A step of training of every layer and every loss, as graphs on the double, gives what NumPy's executor gives."""

from __future__ import annotations

import numpy as np
import pytest
from graph_steps import graphs_of
from layer_table import ROWS

import minikeras as tf
from minikeras import nest
from minikeras.arrays import random as streams

UNSUPPORTED = {"SpectralNormalization": "it assigns the kernel that the optimizer's flat arrays hold"}


def steps_of(row, place):
    """Results of five steps, what Variables hold then, and the function."""
    streams.set_global_seed(4)
    with tf.device(place):
        layer, inputs = row.make(dtype="float32"), row.inputs("float32")
        layer(inputs)
        optimizer, several = tf.keras.optimizers.Adam(0.01), isinstance(row.shapes, list)

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


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_layer(row, double):
    results, state, step = steps_of(row, "STRICT:0")
    expected, expected_state, _ = steps_of(row, "CPU:0")
    for own, other in zip((*results, *state), (*expected, *expected_state), strict=True):
        scale = max(1.0, np.abs(other).max(initial=0.0)) if other.dtype.kind in "fiu" else 1.0
        np.testing.assert_allclose(own, other, atol=2e-5 * scale, rtol=0)
    if row.name not in UNSUPPORTED:
        (graph,) = graphs_of(step)
        assert not graph.schedule.calls, "Python stands between two graphs"


LOSSES = [
    name
    for name in tf.keras.losses.__all__
    if isinstance(getattr(tf.keras.losses, name), type) and name not in ("Loss", "LossFunctionWrapper", "CTC")
]


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss(name, double):
    labels, logits = np.array([0, 2, 1, 2, 0]), np.random.default_rng(3).normal(size=(5, 3)).astype("float32")
    of_classes = name.startswith("Sparse") or name in ("Circle", "CategoricalGeneralizedCrossEntropy")
    y = labels if of_classes else np.eye(3, dtype="float32")[labels]
    found = []
    for place in ("STRICT:0", "CPU:0"):
        with tf.device(place):
            loss, target, x = getattr(tf.keras.losses, name)(), tf.constant(y), tf.nn.softmax(tf.constant(logits))

            @tf.function
            def step(y, x, loss=loss):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    value = loss(y, x)
                return value, tape.gradient(value, x)

            for _ in range(4):
                results = step(target, x)
            found.append([one.numpy() for one in results])
            assert place == "CPU:0" or graphs_of(step)
    for own, other in zip(*found, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-6)
