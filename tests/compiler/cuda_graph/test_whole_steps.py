"""Whole recorded steps of training, carried out by a double of a GPU, give what the executor of NumPy gives."""

import numpy as np
import pytest
from graph_steps import LOSSES, MODELS, OPTIMIZERS, Trained, graphs_of
from shim import needs_gxx
from slow import mostly_slow, sampled

import minikeras as tf


def assert_same_training(model, loss, optimizer, double, dtype="float32", steps=5):
    ours, theirs = [Trained(model, loss, optimizer, place, dtype) for place in ("STRICT:0", "CPU:0")]
    for _ in range(steps):
        np.testing.assert_allclose(ours.step(), theirs.step(), rtol=1e-5 if dtype == "float32" else 1e-12)
    tolerance = {"rtol": 1e-4, "atol": 2e-6} if dtype == "float32" else {"rtol": 1e-11, "atol": 1e-13}
    for own, other in zip(ours.state(), theirs.state(), strict=True):
        np.testing.assert_allclose(own, other, **tolerance)
    (found,) = graphs_of(ours.function)
    assert double.nodes, "nothing was captured"
    return found


@pytest.mark.parametrize("model", sampled(MODELS, 3))
@pytest.mark.parametrize("loss", LOSSES)
def test_steps_of_layers_and_losses(model, loss, double):
    assert_same_training(MODELS[model], LOSSES[loss], OPTIMIZERS["Adam"], double)


@pytest.mark.parametrize("name", sampled(OPTIMIZERS, 3))
def test_steps_of_optimizers(name, double):
    assert_same_training(MODELS["dense"], LOSSES["labels"], OPTIMIZERS[name], double)


@pytest.mark.parametrize("model", mostly_slow(MODELS, "normalized"))
def test_steps_in_float64(model, double):
    assert_same_training(MODELS[model], LOSSES["squared"], OPTIMIZERS["AdamW"], double, "float64")


@needs_gxx
@pytest.mark.parametrize("model", mostly_slow(MODELS, "normalized"))
def test_steps_carried_out_from_the_sources_of_kernels(model, double_of_sources):
    assert_same_training(MODELS[model], LOSSES["labels"], OPTIMIZERS["Adam"], double_of_sources)


def test_fit_with_metrics_dropout_and_a_smaller_last_batch(double):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(40, 6)).astype("float32"), random.integers(0, 3, 40)

    def fitted(place):
        tf.random.set_seed(1)
        with tf.device(place):
            model = tf.keras.Sequential([tf.keras.Input((6,)), *MODELS["normalized"](), tf.keras.layers.Dense(3)])
            loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile(tf.keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
            history = model.fit(x, y, batch_size=16, epochs=5, verbose=0, validation_data=(x, y)).history
            return model, history

    (ours, history), (theirs, expected) = fitted("STRICT:0"), fitted("CPU:0")
    for name, values in expected.items():
        np.testing.assert_allclose(history[name], values, rtol=1e-5)
    for own, other in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=2e-6)
    assert len(double.nodes) >= 2, "the last batch has a graph of its own"
