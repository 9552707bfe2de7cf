"""What a step may change is looked up once, and again after a change of what a model, an optimizer or a metric holds."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.keras.callbacks import CallbackList
from minikeras.keras.training.state import Transaction

Dense = tf.keras.layers.Dense
generator = np.random.default_rng(3)
X, Y = generator.normal(size=(12, 3)).astype("float32"), generator.normal(size=(12, 2)).astype("float32")


class Late(tf.keras.metrics.Metric):
    """Makes its state when the first batch comes."""

    def __init__(self):
        super().__init__(name="late")
        self.batches = None

    def update_state(self, y_true, y_pred, sample_weight=None):
        if self.batches is None:
            self.batches = self.add_variable((), "zeros", name="batches")
        self.batches.assign_add(1.0)

    def result(self):
        return self.batches.read_value()


class Outer(tf.keras.metrics.Metric):
    """Has a metric within it, and raises after its update if armed."""

    def __init__(self):
        super().__init__(name="outer")
        self.inner, self.armed = Late(), False

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.inner.update_state(y_true, y_pred)
        if self.armed:
            raise ZeroDivisionError

    def result(self):
        return self.inner.result()


class At(tf.keras.callbacks.Callback):
    """Does something before a batch."""

    def __init__(self, **actions):
        self.actions = {int(name.removeprefix("batch_")): action for name, action in actions.items()}

    def on_train_batch_begin(self, batch, logs=None):
        self.actions.get(batch, lambda model: None)(self.model)


def made(optimizer="adam", jit_compile=False):
    model = tf.keras.Sequential([tf.keras.Input((3,)), Dense(4, "relu", name="hidden"), Dense(2, name="head")])
    metric = Outer()
    model.compile(optimizer, "mse", metrics=[metric], jit_compile=jit_compile)
    return model, metric


def fit(model, *callbacks):
    return model.fit(X, Y, batch_size=2, shuffle=False, verbose=0, callbacks=list(callbacks))


def test_state_that_a_metric_within_another_makes_in_a_failed_step_is_gone_after_it():
    model, metric = made()
    metric.armed = True
    with pytest.raises(ZeroDivisionError):
        fit(model)
    assert metric.variables == [] and metric.inner.batches is None
    metric.armed = False
    assert fit(model).history["outer"] == [6.0]


def test_state_that_a_metric_made_on_the_way_is_taken_back_by_a_later_step():
    model, metric = made()
    with pytest.raises(ZeroDivisionError):
        fit(model, At(batch_3=lambda model: setattr(metric, "armed", True)))
    assert float(metric.inner.batches) == 3.0


def test_an_optimizer_that_a_callback_chose_on_the_way_is_taken_back_by_a_later_step():
    model, metric = made("sgd")
    other, kept = tf.keras.optimizers.Adam(0.1), []

    def break_the_next(model):
        metric.armed = True
        kept.extend(variable.numpy() for variable in (*model.variables, *other.variables))

    with pytest.raises(ZeroDivisionError):
        fit(model, At(batch_1=lambda model: setattr(model, "optimizer", other), batch_3=break_the_next))
    assert int(other.iterations) == 2
    for variable, value in zip((*model.variables, *other.variables), kept, strict=True):
        assert np.array_equal(variable.numpy(), value)


def test_the_members_of_several_optimizers_lose_the_slots_of_a_failed_first_step():
    members = {"hidden": tf.keras.optimizers.Adam(0.1), "*": tf.keras.optimizers.SGD(0.1, momentum=0.9)}
    model, metric = made(tf.keras.optimizers.PerLayer(members))
    metric.armed = True
    with pytest.raises(ZeroDivisionError):
        fit(model)
    assert not any(optimizer.built for optimizer in model.optimizer.optimizers)


@pytest.mark.parametrize("jit_compile", [False, "auto"])
def test_what_a_step_may_change_is_looked_up_once_for_many_steps(jit_compile, monkeypatch):
    model, _ = made(jit_compile=jit_compile)
    fit(model)
    look_up, calls = Transaction._look_up, []
    monkeypatch.setattr(Transaction, "_look_up", lambda self, contents: (calls.append(1), look_up(self, contents)))
    fit(model)
    assert len(calls) == 1
    fit(model, At(batch_2=lambda model: setattr(model.layers[0], "note", ["seen"])))
    assert len(calls) == 3


def test_batches_that_nobody_listens_to_are_reported_to_nobody(monkeypatch):
    model, _ = made()

    def heard(*arguments):
        raise AssertionError("a callback was told of a batch")

    monkeypatch.setattr(CallbackList, "batch_begin", heard)
    monkeypatch.setattr(CallbackList, "batch_end", heard)
    assert fit(model, tf.keras.callbacks.EarlyStopping("loss")).epoch == [0]
    for hook in ("on_batch_begin", "on_train_batch_end"):
        listener = type("Listener", (tf.keras.callbacks.Callback,), {hook: lambda self, batch, logs=None: None})()
        with pytest.raises(AssertionError, match="told of a batch"):
            fit(model, listener)
