"""A thousand training steps: no growth after warming up, and nothing that only the cycle collector would free."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest
from slow import mostly_slow

import minikeras as tf
from minikeras.compiler import sweeps

Dense = tf.keras.layers.Dense
X, Y = np.ones((8, 4), "float32"), np.zeros((8, 1), "float32")


def made(name="adam"):
    layers = [
        Dense(16, activation="relu", kernel_regularizer="l2"),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Dropout(0.1),
        Dense(1),
    ]
    model = tf.keras.Sequential(layers)
    model.compile(name, "mse", metrics=["mae", "accuracy"])
    return model


def by_train_on_batch(model, steps):
    for _ in range(steps):
        model.train_on_batch(X, Y)


def by_fit(model, steps):
    model.fit(np.tile(X, (steps, 1)), np.tile(Y, (steps, 1)), batch_size=8, verbose=0)


def by_a_loop(model, steps):
    loss_of = tf.keras.losses.MeanSquaredError()
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = loss_of(Y, model(X, training=True)) + sum(model.losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))


def of_this_package():
    """The number of live objects whose class this package defines: Tensors, Records, layers and the like."""
    return sum(type(thing).__module__.startswith("minikeras") for thing in gc.get_objects())


WAYS = [by_train_on_batch, by_fit, by_a_loop]


@pytest.mark.parametrize("train", mostly_slow(WAYS, by_fit))
def test_memory_does_not_grow_over_a_thousand_steps(train, monkeypatch):
    monkeypatch.setattr(sweeps, "plans", sweeps.SweepPlans())  # those of other tests may let a plan wait
    model = made()
    train(model, 100)  # slots, caches, and what NumPy and Python set up once
    gc.collect()
    tracemalloc.start()
    try:
        train(model, 20)
        gc.collect()
        objects, before = of_this_package(), tracemalloc.get_traced_memory()[0]
        train(model, 1000)
        gc.collect()
        growth = tracemalloc.get_traced_memory()[0] - before
        assert of_this_package() == objects
    finally:
        tracemalloc.stop()
    # Python keeps up to 2000 freed tuples of each size for later and counts them as used: 20 kB, reached after 1000 steps and
    # never left behind. A single Tensor kept per step would be 56 kB.
    assert growth < 40_000, f"{growth} bytes more after 1000 steps"


@pytest.mark.parametrize("train", WAYS)
def test_training_leaves_nothing_to_the_cycle_collector(train):
    model = made()
    train(model, 3)
    gc.collect()
    gc.disable()
    try:
        train(model, 50)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_evaluation_and_prediction_leave_nothing_to_the_cycle_collector():
    model = made()
    model.evaluate(X, Y, verbose=0), model.predict(X, verbose=0)
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            model.evaluate(X, Y, verbose=0)
            model.predict(X, verbose=0)
            model.fit(X, Y, validation_split=0.5, verbose=0, callbacks=[tf.keras.callbacks.TerminateOnNaN()])
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_trained_model_is_freed_at_once_with_its_optimizer_and_history():
    model = made()
    history = model.fit(X, Y, verbose=0)
    alive = [weakref.ref(thing) for thing in (model, model.layers[0].kernel, model.optimizer, model.optimizer.variables[-1])]
    gc.disable()
    try:
        del model
        assert [reference() for reference in alive] == [None] * 4
    finally:
        gc.enable()
    assert history.model is None and list(history.history) == ["accuracy", "loss", "mae"]
