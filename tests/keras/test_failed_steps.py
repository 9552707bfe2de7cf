"""A step that fails, for whatever reason and wherever, leaves everything as it was, and training goes on."""

from __future__ import annotations

import numpy as np
import pytest

import minikeras as tf
from minikeras.arrays import random as streams

Dense = tf.keras.layers.Dense
generator = np.random.default_rng(1)
X, Y = generator.normal(size=(12, 3)).astype("float32"), generator.normal(size=(12, 2)).astype("float32")


class Trap(tf.keras.layers.Layer):
    """Passes its input on, or raises after the layers before it have updated their state."""

    armed = False

    def call(self, x, training=None):
        if training and Trap.armed:
            raise Trap.armed("sprung")
        return x


class Counted(tf.keras.metrics.Metric):
    """Counts batches; raises in the middle of an update if armed."""

    armed = False

    def __init__(self):
        super().__init__(name="counted")
        self.first = self.add_variable((), "zeros", name="first")
        self.second = self.add_variable((), "zeros", name="second")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.first.assign_add(1.0)
        if Counted.armed:
            raise Counted.armed("in the metric")
        self.second.assign_add(1.0)

    def result(self):
        return self.second.value()


@pytest.fixture(autouse=True)
def disarmed():
    yield
    Trap.armed = Counted.armed = False


def made():
    model = tf.keras.Sequential(
        [
            Dense(4, activation="relu"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dropout(0.5, seed=1),
            Trap(),
            Dense(2),
        ]
    )
    model.compile(tf.keras.optimizers.Adam(0.05), "mse", metrics=["mae", Counted(), "accuracy"])
    return model


def state(model):
    """Everything that a step may change, as bytes by name."""
    holders = [model, model.optimizer, *model.metrics]
    found = {}
    for number, holder in enumerate(holders):
        for position, variable in enumerate(holder.variables):
            found[number, position, variable.name] = np.asarray(variable.numpy()).tobytes()
    found["built"] = [layer.built for layer in model.layers]
    found["stream"] = streams.global_stream().state
    found["metrics"] = [type(metric) for metric in model.metrics]
    return found


def wrong_labels(model):
    model.train_on_batch(X, np.ones((12, 5), "float32"))


def error_in_call(model, kind=ZeroDivisionError):
    Trap.armed = kind
    try:
        model.train_on_batch(X, Y)
    finally:
        Trap.armed = False


def error_in_metric(model, kind=ZeroDivisionError):
    Counted.armed = kind
    try:
        model.train_on_batch(X, Y)
    finally:
        Counted.armed = False


def interrupt_in_call(model):
    error_in_call(model, KeyboardInterrupt)


def interrupt_in_metric(model):
    error_in_metric(model, KeyboardInterrupt)


def interrupt_in_optimizer(model):
    """Between two Variables that the optimizer re-binds."""
    exchange, calls = tf.Variable.exchange, []

    def interrupted(self, array):
        calls.append(self)
        if len(calls) == 4:
            raise KeyboardInterrupt
        exchange(self, array)

    tf.Variable.exchange = interrupted
    try:
        model.train_on_batch(X, Y)
    finally:
        tf.Variable.exchange = exchange


FAILURES = [wrong_labels, error_in_call, error_in_metric, interrupt_in_call, interrupt_in_metric, interrupt_in_optimizer]


@pytest.mark.parametrize("fail", FAILURES)
@pytest.mark.parametrize("steps_before", [0, 1, 3])
def test_a_failed_step_changes_nothing_and_the_model_trains_on(fail, steps_before):
    model = made()
    for _ in range(steps_before):
        model.train_on_batch(X, Y)
    model.reset_metrics()
    before = state(model)
    with pytest.raises((ValueError, ZeroDivisionError, KeyboardInterrupt)):
        fail(model)
    assert state(model) == before

    untouched = made()
    for _ in range(steps_before):
        untouched.train_on_batch(X, Y)
    # The first Dense layers drew their seeds from the global stream, one after the other: give both models the same weights.
    if steps_before == 0:
        for one in (model, untouched):
            one(X)
    untouched.set_weights(model.get_weights())
    for mine, theirs in zip(untouched.optimizer.variables, model.optimizer.variables, strict=True):
        mine.assign(theirs)
    for _ in range(2):
        assert model.train_on_batch(X, Y) == untouched.train_on_batch(X, Y)
    for mine, theirs in zip(model.variables, untouched.variables, strict=True):
        assert np.array_equal(mine.numpy(), theirs.numpy())


@pytest.mark.parametrize("fail_at", [0, 1, 5])
def test_fit_that_fails_on_the_way_keeps_the_steps_before(fail_at):
    whole, broken = made(), made()
    whole(X), broken(X)
    broken.set_weights(whole.get_weights())
    for model in (whole, broken):
        model.optimizer.build(model.trainable_variables)

    class Bomb(tf.keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            Trap.armed = RuntimeError if batch == fail_at else False

    with pytest.raises(RuntimeError, match="sprung"):
        broken.fit(X, Y, batch_size=2, shuffle=False, verbose=0, callbacks=[Bomb()])
    Trap.armed = False
    if fail_at:
        whole.fit(X[: 2 * fail_at], Y[: 2 * fail_at], batch_size=2, shuffle=False, verbose=0)
    for mine, theirs in zip(
        broken.variables + broken.optimizer.variables, whole.variables + whole.optimizer.variables, strict=True
    ):
        assert np.array_equal(mine.numpy(), theirs.numpy()), mine
    assert broken.fit(X, Y, verbose=0).epoch == [0]


def test_a_failed_evaluation_leaves_the_metrics_and_the_statistics():
    model = made()
    model.fit(X, Y, verbose=0)
    before = state(model)
    with pytest.raises(ValueError):
        model.test_on_batch(X, np.ones((12, 5), "float32"))
    after = state(model)
    assert {key: value for key, value in before.items() if key[0] in (0, 1)} == {
        key: value for key, value in after.items() if key[0] in (0, 1)
    }


def test_what_a_failed_step_drew_from_the_global_stream_is_drawn_again():
    class Noisy(tf.keras.layers.Layer):
        def call(self, x, training=None):
            return x + tf.random.normal(x.shape)

    model = tf.keras.Sequential([Noisy(), Trap(), Dense(2)])
    model.compile("sgd", "mse")
    model.train_on_batch(X, Y)
    before = streams.global_stream().state
    with pytest.raises(ZeroDivisionError):
        error_in_call(model)
    assert streams.global_stream().state == before


def test_all_optimizers_that_a_model_holds_are_taken_back():
    class TwoOptimizers(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.a, self.b = Dense(2), Dense(2)
            self.slow, self.fast = tf.keras.optimizers.SGD(0.1, momentum=0.9), tf.keras.optimizers.Adam(0.1)

        def call(self, x):
            return self.b(self.a(x))

        def train_step(self, data):
            x, y = data
            with tf.GradientTape(persistent=True) as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            for layer, optimizer in ((self.a, self.slow), (self.b, self.fast)):
                variables = layer.trainable_variables
                optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            if self.fails:
                raise ArithmeticError
            return {"loss": loss}

    model = TwoOptimizers()
    model.compile("sgd")
    model.fails = False
    model.train_on_batch(X, Y)
    held = [*model.variables, *model.slow.variables, *model.fast.variables]
    before = [variable.numpy() for variable in held]
    model.fails = True
    with pytest.raises(ArithmeticError):
        model.train_on_batch(X, Y)
    for variable, value in zip(held, before, strict=True):
        assert np.array_equal(variable.numpy(), value)


def test_layers_built_in_a_failed_first_step_are_unbuilt_again():
    model = made()
    with pytest.raises(ValueError):
        model.train_on_batch(X, np.ones((12, 5), "float32"))
    assert model.weights == [] and not any(layer.built for layer in model.layers if isinstance(layer, Dense))
    assert model.predict(np.ones((2, 7), "float32"), verbose=0).shape == (2, 2), "another width may come now"


class Failing(tf.keras.optimizers.Optimizer):
    """Its formula fails for the second Variable."""

    def formula(self, step, gradient, value):
        if value.shape == (2,):
            raise FloatingPointError
        return (value - gradient,)


def test_in_a_loop_of_one_s_own_the_optimizer_changes_all_variables_or_none():
    kernel, bias = tf.Variable([[1.0, 2.0]]), tf.Variable([1.0, 2.0])
    gradients = [tf.ones([1, 2]), tf.ones([2])]
    with pytest.raises(FloatingPointError):
        Failing(0.1).apply(gradients, [kernel, bias])

    def broken(w):
        raise FloatingPointError

    free, bound = tf.Variable([1.0]), tf.Variable([1.0], constraint=broken)
    optimizer = tf.keras.optimizers.Adam(0.1)
    with pytest.raises(FloatingPointError):
        optimizer.apply([tf.ones([1]), tf.ones([1])], [free, bound])
    bent = tf.Variable([1.0], constraint=lambda w: tf.concat([w, w], 0))
    with pytest.raises(ValueError, match=r"the constraint of 'Variable:0' turned shape \(1,\) into \(2,\); it must keep"):
        tf.keras.optimizers.SGD(0.1).apply([tf.ones([1]), tf.ones([1])], [free, bent])
    assert [v.numpy().tolist() for v in (kernel, bias, free, bound, bent)] == [[[1.0, 2.0]], [1.0, 2.0], [1.0], [1.0], [1.0]]
    assert int(optimizer.iterations) == 0 and not any(slot.numpy().any() for slot in optimizer.variables[2:])


@pytest.mark.parametrize("at", [0, 1, 2, 3, 6])
def test_an_interrupt_between_two_variables_takes_the_first_back(at, monkeypatch):
    variables = [tf.Variable([1.0]), tf.Variable([2.0])]
    optimizer = tf.keras.optimizers.Adam(0.1)
    optimizer.build(variables)
    exchange, calls = tf.Variable.exchange, []

    def interrupted(self, array):
        calls.append(self)
        if len(calls) == at + 1:
            raise KeyboardInterrupt
        exchange(self, array)

    monkeypatch.setattr(tf.Variable, "exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        optimizer.apply([tf.ones([1])] * 2, variables)
    assert [float(v.numpy()[0]) for v in variables] == [1.0, 2.0]
    assert int(optimizer.iterations) == 0 and not any(slot.numpy().any() for slot in optimizer.variables[2:])
