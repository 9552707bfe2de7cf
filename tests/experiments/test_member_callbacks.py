"""Callbacks of members: what they see, hear and change is what it is for a model that is trained by itself."""

import numpy as np
import pytest
from slow import sampled

from minikeras import keras
from minikeras.errors import InvalidArgumentError
from minikeras.experiments import Ensemble

SEEDS = [3, 1, 4]
rng = np.random.default_rng(0)
X = rng.normal(size=(50, 5)).astype("float32")
Y = rng.integers(0, 3, 50).astype("int32")
Callback = keras.callbacks.Callback
OPTIMIZERS = {
    "at once": lambda: keras.optimizers.Adam(0.01),
    "averages": lambda: keras.optimizers.SGD(0.01, momentum=0.9, use_ema=True),
    "in turn": lambda: keras.optimizers.Adam(0.01, gradient_accumulation_steps=2),
}


def build(optimizer="adam", steps_per_execution="auto"):
    layers = [
        keras.layers.Dense(8, "relu"),
        keras.layers.BatchNormalization(),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(3),
    ]
    model = keras.Sequential([keras.Input((5,)), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"], steps_per_execution=steps_per_execution)
    return model


def assert_members_are_single_runs(made, callbacks, **options):
    """Whatever callbacks do; `callbacks` gives those of a place."""
    options = {"batch_size": 16, "epochs": 4, "validation_split": 0.2, "verbose": 0} | options
    ensemble = Ensemble(made, seeds=SEEDS)
    histories = ensemble.fit(X, Y, callbacks=callbacks, **options).members
    for place, seed in enumerate(SEEDS):
        keras.utils.set_random_seed(seed)
        model = made()
        history = model.fit(X, Y, callbacks=callbacks(place), **options)
        assert history.history.keys() == histories[place].history.keys()
        for name, values in history.history.items():
            np.testing.assert_allclose(histories[place].history[name], values, rtol=1e-5, atol=1e-6, err_msg=name)
        pairs = zip(model.variables + model.optimizer.variables, both(ensemble[place]), strict=True)
        for one, other in pairs:
            np.testing.assert_allclose(other.numpy(), one.numpy(), rtol=1e-5, atol=2e-6, err_msg=one.name)
    return ensemble


def both(model):
    return model.variables + model.optimizer.variables


class StopAfter(Callback):
    """Stops after so many batches."""

    def __init__(self, count):
        super().__init__()
        self.count = count

    def on_train_batch_end(self, batch, logs=None):
        self.count -= 1
        if not self.count:
            self.model.stop_training = True


@pytest.mark.parametrize("optimizer", sampled(OPTIMIZERS, 2))
@pytest.mark.parametrize("counts", [[2, 2, 2], [2, 4, 99]], ids=str)
def test_members_stop_in_the_middle_of_an_epoch(optimizer, counts):
    made = lambda: build(OPTIMIZERS[optimizer]())
    assert_members_are_single_runs(made, lambda place: [StopAfter(counts[place])])


def test_an_error_after_a_member_stopped_leaves_it_as_it_was():
    class Fail(Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                raise KeyboardInterrupt

    ensemble, options = Ensemble(build, seeds=SEEDS), {"batch_size": 16, "verbose": 0}
    with pytest.raises(KeyboardInterrupt):
        ensemble.fit(X, Y, callbacks=lambda place: [StopAfter(1)] if place else [Fail()], **options)
    keras.utils.set_random_seed(SEEDS[1])
    model = build()
    model.fit(X, Y, callbacks=[StopAfter(1)], **options)
    for one, other in zip(both(model), both(ensemble[1]), strict=True):
        np.testing.assert_allclose(other.numpy(), one.numpy(), rtol=1e-5, atol=1e-6)
    assert [int(model.optimizer.iterations) for model in ensemble] == [3, 1, 1]


def test_a_member_that_is_told_to_stop_at_the_beginning_is_not_trained():
    class Stop(Callback):
        def on_train_begin(self, logs=None):
            self.model.stop_training = True

    ensemble = Ensemble(build, seeds=SEEDS)
    before = ensemble[1].get_weights()
    history = ensemble.fit(X, Y, verbose=0, callbacks=lambda place: [Stop()] if place == 1 else [])
    assert np.isnan(history.history["loss"]).tolist() == [[False, True, False]]
    assert all((a == b).all() for a, b in zip(before, ensemble[1].get_weights(), strict=True))


def test_a_member_that_ends_before_the_first_step_keeps_the_state_of_its_optimizer():
    class Stop(Callback):
        def on_train_begin(self, logs=None):
            self.model.stop_training = True

    ensemble = Ensemble(build, seeds=SEEDS)
    ensemble.fit(X, Y, verbose=0)
    before = [variable.numpy() for variable in ensemble[1].optimizer.variables]
    ensemble.fit(X, Y, verbose=0, callbacks=lambda place: [Stop()] if place == 1 else [])
    for variable, value in zip(ensemble[1].optimizer.variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value, err_msg=variable.name)


@pytest.mark.parametrize("steps", ["auto", 2])
def test_hooks_are_those_of_a_single_run(steps):
    heard = []

    class Listen(Callback):
        def __init__(self):
            super().__init__()
            heard.append([])
            self.number = len(heard) - 1

    for name in (
        f"on_{what}_{when}" for what in ("train", "epoch", "test", "train_batch", "test_batch") for when in ("begin", "end")
    ):
        hook = lambda self, *given, name=name: heard[self.number].append((name, given[:-1], sorted(given[-1])))
        setattr(Listen, name, hook)
    assert_members_are_single_runs(lambda: build(steps_per_execution=steps), lambda place: [Listen()], epochs=2)
    assert heard[:3] == heard[3:]


def test_averages_are_swapped_in_for_validation():
    made = lambda: build(keras.optimizers.Adam(0.01, use_ema=True))
    assert_members_are_single_runs(made, lambda place: [keras.callbacks.SwapEMAWeights()])


@pytest.mark.parametrize("monitor", ["val_accuracy", "accuracy"])
def test_metrics_say_what_is_better(monitor):
    assert_members_are_single_runs(build, lambda place: [keras.callbacks.EarlyStopping(monitor, patience=1)], epochs=8)


class Change(Callback):
    """Changes a model once, at a hook."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            self.change(self.model)


def freeze(model):
    model.layers[0].trainable = False


def more_dropout(model):
    model.layers[2].rate = 0.8


def other_activation(model):
    model.layers[0].activation = keras.activations.tanh


def compile_anew(model):
    model.compile("sgd", model.loss, metrics=["accuracy"])


class ChangingHistory(Change, keras.callbacks.History):
    """The only callback: `fit` adds no History beside it."""

    def on_epoch_end(self, epoch, logs=None):
        keras.callbacks.History.on_epoch_end(self, epoch, logs)
        super().on_epoch_end(epoch, logs)


@pytest.mark.parametrize("callback", [Change, ChangingHistory])
@pytest.mark.parametrize("change", [freeze, more_dropout, other_activation, compile_anew])
def test_what_callbacks_set_in_models_holds_from_the_next_epoch(change, callback):
    assert_members_are_single_runs(build, lambda place: [callback(change)])


class Scaled(keras.layers.Layer):
    """Multiplies by what is held in several ways."""

    def __init__(self):
        super().__init__()
        self.number, self.array, self.listed = np.float32(1), np.ones(3, np.float32), [1.0]

    def call(self, inputs):
        return inputs * self.number * self.array * self.listed[0]


@pytest.mark.parametrize(
    ("name", "value"), [("number", np.float32), ("array", lambda n: np.full(3, n, np.float32)), ("listed", lambda n: [n])]
)
def test_arrays_and_lists_that_callbacks_set_hold_from_the_next_epoch(name, value):
    class Set(Callback):
        def on_epoch_end(self, epoch, logs=None):
            setattr(self.model.layers[-1], name, value(epoch / 2 + 1))

    def made():
        model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(3), Scaled()])
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model

    assert_members_are_single_runs(made, lambda place: [Set()])

    class Note(Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.layers[-1].notes = []

        def on_epoch_end(self, epoch, logs=None):
            self.model.best = [logs["loss"]]

    assert_members_are_single_runs(made, lambda place: [Note()])


def test_what_callbacks_set_for_some_members_only_is_refused():
    ensemble = Ensemble(build, seeds=SEEDS)
    with pytest.raises(ValueError, match="trainable: True in member 0, False in member 1"):
        ensemble.fit(X, Y, epochs=3, verbose=0, callbacks=lambda place: [Change(freeze)] * (place == 1))
    assert all(np.abs(model.layers[0].kernel.numpy()).max() > 0 for model in ensemble)


def test_what_callbacks_set_in_the_middle_of_an_epoch_is_refused():
    class Anneal(Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.layers[2].rate *= 0.9

    ensemble = Ensemble(build, seeds=SEEDS)
    with pytest.raises(InvalidArgumentError, match="in the middle of an epoch"):
        ensemble.fit(X, Y, batch_size=16, verbose=0, callbacks=[Anneal()])
    assert [int(model.optimizer.iterations) for model in ensemble] == [1, 1, 1]


def test_callbacks_may_use_models_in_the_middle_of_an_epoch():
    class Predict(Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.predict(X[:2], verbose=0)

    def lazy():
        model = keras.Sequential([keras.layers.Dense(4, "relu"), keras.layers.Dropout(0.3), keras.layers.Dense(3)])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model

    assert_members_are_single_runs(lazy, lambda place: [Predict()], epochs=2)


def test_a_layer_that_is_frozen_in_some_members_between_fits_is_refused():
    ensemble = Ensemble(build, seeds=SEEDS)
    ensemble.fit(X, Y, verbose=0)
    freeze(ensemble[2])
    with pytest.raises(ValueError, match="trainable: True in member 0, False in member 2"):
        ensemble.fit(X, Y, verbose=0)


@pytest.mark.parametrize(
    "hook", ["on_train_begin", "on_epoch_begin", "on_train_batch_end", "on_test_begin", "on_epoch_end", "on_train_end"]
)
def test_an_error_in_a_callback_leaves_all_weights(hook):
    def fail(self, *given):
        raise RuntimeError("as told")

    ensemble = Ensemble(build, seeds=SEEDS)
    with pytest.raises(RuntimeError, match="as told"):
        ensemble.fit(X, Y, verbose=0, validation_split=0.2, callbacks=[type("Fail", (Callback,), {hook: fail})()])
    assert all(np.abs(model.layers[0].kernel.numpy()).max() > 0 for model in ensemble)
    ensemble.fit(X, Y, verbose=0)


def test_compile_takes_what_model_compile_takes_and_all_or_nothing():
    ensemble = Ensemble(build, seeds=SEEDS)
    before = [model.optimizer for model in ensemble]
    with pytest.raises(IndexError):
        ensemble.compile(lambda place: keras.optimizers.Adam([0.1, 0.2][place]), loss="mse")
    assert all(model.optimizer is one for model, one in zip(ensemble, before, strict=True))
    ensemble.compile("sgd", "mse", None, ["mae"])
    assert ensemble[2].loss == "mse"
