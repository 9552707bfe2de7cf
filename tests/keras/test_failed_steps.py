"""A step that fails, for whatever reason and wherever, leaves everything as it was, and training goes on."""

import signal

import numpy as np
import pytest
from interrupts import exchange_fails
from slow import sampled

import minikeras as tf
from minikeras.core import stack
from minikeras.nn_ops import streams

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
        return self.second.read_value()


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
    model.compile(tf.keras.optimizers.Adam(0.05), "mse", metrics=["mae", Counted(), "accuracy"], run_eagerly=True)
    return model


def state(model):
    """Everything that a step may change, as bytes by name."""
    holders = [model, model.optimizer, *model.metrics]
    found = {}
    for number, holder in enumerate(holders):
        for position, variable in enumerate(holder.variables):
            found[number, position, variable.name] = np.asarray(variable.numpy()).tobytes()
    found["built"] = [layer.built for layer in model.layers]
    found["streams"] = {name: state for name, state in streams.states().items() if state[1]}
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
    with exchange_fails(4):
        model.train_on_batch(X, Y)


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
    # The first Dense layers drew their seeds from the global stream, in turn: give both models the same weights.
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


def test_a_constraint_that_gives_another_shape_is_refused_and_nothing_changes():
    free, bent = tf.Variable([1.0]), tf.Variable([1.0], constraint=lambda w: tf.concat([w, w], 0))
    with pytest.raises(ValueError, match=r"the constraint of 'Variable:0' turned shape \(1,\) into \(2,\); it must keep"):
        tf.keras.optimizers.SGD(0.1).apply([tf.ones([1]), tf.ones([1])], [free, bent])
    assert free.numpy().tolist() == bent.numpy().tolist() == [1.0]


# Every optimizer, every place ------------------------------------------------------------------------------------------------


def first_order():
    """The optimizers that are given gradients, by name."""
    found = {name: getattr(tf.keras.optimizers, name) for name in tf.keras.optimizers.__all__ if name[0].isupper()}
    needless = {
        "Optimizer",
        "LossScaleOptimizer",
        "MultiOptimizer",
        "OptimizerMap",
        "PerLayer",
        "Every",
        "Objective",
        "SecondOrder",
    }
    return [name for name, kind in found.items() if name not in needless and not getattr(kind, "needs_loss", False)]


VARIANTS = {
    **{name: lambda name=name: getattr(tf.keras.optimizers, name)(0.05) for name in first_order()},
    "averages": lambda: tf.keras.optimizers.SGD(0.05, momentum=0.9, use_ema=True),
    "accumulation": lambda: tf.keras.optimizers.Adam(0.05, gradient_accumulation_steps=2),
    "loss scale": lambda: tf.keras.optimizers.LossScaleOptimizer(tf.keras.optimizers.Adam(0.05)),
    "per layer": lambda: tf.keras.optimizers.PerLayer({"*": tf.keras.optimizers.Adam(0.05)}),
    "given the loss": lambda: tf.keras.optimizers.Newton(0.5),
}


@pytest.mark.parametrize("kind", sampled([MemoryError, KeyboardInterrupt], 3))
@pytest.mark.parametrize("variant", VARIANTS)
def test_with_every_optimizer_a_failure_between_two_assignments_changes_nothing(variant, kind):
    def small():
        model = tf.keras.Sequential(
            [tf.keras.Input((3,)), Dense(2, kernel_initializer="ones"), tf.keras.layers.BatchNormalization(), Dense(2)]
        )
        model.layers[2].kernel.assign([[0.5, -0.2], [0.3, 0.1]])
        model.compile(VARIANTS[variant](), "mse", metrics=["mae"], jit_compile=False)
        return model

    model, untouched = small(), small()
    for one in (model, untouched):
        one.train_on_batch(X, Y)
    model.reset_metrics()
    before = state(model)
    for number in (1, 2, 4):
        with exchange_fails(number, kind), pytest.raises(kind):
            model.train_on_batch(X, Y)
        assert state(model) == before
    assert [model.train_on_batch(X, Y) for _ in range(3)] == [untouched.train_on_batch(X, Y) for _ in range(3)]


@pytest.mark.parametrize("number", range(0, 60, 3))
def test_memory_that_runs_out_at_any_operation_changes_nothing(number, monkeypatch):
    """The n-th operation of a step cannot get its array."""
    model, untouched = made(), made()
    for one in (model, untouched):
        one(X)
    untouched.set_weights(model.get_weights())
    for one in (model, untouched):
        one.train_on_batch(X, Y)
    model.reset_metrics()
    before, calls, computed, ran_out = state(model), [], stack._computed, False

    def failing(*arguments):
        calls.append(1)
        if len(calls) == number:
            raise MemoryError
        return computed(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(stack, "_computed", failing)
        try:
            model.train_on_batch(X, Y)
        except MemoryError:
            ran_out = True
    if ran_out:
        assert state(model) == before
    else:  # the step has fewer operations
        assert number == 0 or number > 40
        untouched.train_on_batch(X, Y)
    assert model.train_on_batch(X, Y) == untouched.train_on_batch(X, Y)


@pytest.fixture
def interrupts_raise():
    """Also where the test run was started in the background, with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_real_interrupt_leaves_the_state_of_a_whole_step(interrupts_raise):
    class Interrupt(tf.keras.layers.Layer):
        def call(self, x, training=None):
            if training and Trap.armed:
                signal.raise_signal(signal.SIGINT)
            return x

    model = tf.keras.Sequential([Dense(2), tf.keras.layers.BatchNormalization(), Interrupt()])
    model.compile("adam", "mse", run_eagerly=True)
    model.fit(X, Y, batch_size=4, verbose=0)
    before = [weight.tobytes() for weight in model.get_weights()], int(model.optimizer.iterations)
    Trap.armed = True
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, batch_size=4, verbose=0)
    Trap.armed = False
    assert ([weight.tobytes() for weight in model.get_weights()], int(model.optimizer.iterations)) == before
    assert model.get_training_state()["values"]["position"] is None, "no fit is under way any more"
    assert model.fit(X, Y, verbose=0).epoch == [0]


@pytest.mark.parametrize("hook", ["on_train_batch_begin", "on_train_batch_end", "on_epoch_end", "on_test_batch_end"])
def test_a_callback_that_fails_leaves_whole_steps_and_a_model_that_trains(hook):
    model = made()

    def fail(*arguments):
        raise ZeroDivisionError

    failing = tf.keras.callbacks.LambdaCallback(**{hook: fail})
    others = [tf.keras.callbacks.EarlyStopping("loss"), tf.keras.callbacks.ReduceLROnPlateau("loss")]
    with pytest.raises(ZeroDivisionError):
        model.fit(X, Y, batch_size=4, validation_data=(X, Y), callbacks=[*others, failing], verbose=0)
    steps = {"on_train_batch_begin": 0, "on_train_batch_end": 1}.get(hook, 3)
    assert int(model.optimizer.iterations) == steps
    assert model.fit(X, Y, validation_data=(X, Y), callbacks=others, verbose=0).epoch == [0]


def test_failed_validation_leaves_the_training_metrics_and_the_weights():
    model = made()
    model.fit(X, Y, verbose=0)
    before = state(model)
    with pytest.raises(ValueError):
        model.fit(X, Y, initial_epoch=1, epochs=1, validation_data=(X, Y[:5]), verbose=0)
    assert state(model) == before


def test_several_outputs_fail_as_a_whole():
    class Two(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.a, self.b = Dense(2), Dense(2)

        def call(self, x):
            return {"a": self.a(x), "b": self.b(x)}

    model = Two()
    model.compile("adam", "mse", metrics={"a": ["mae"], "b": [Counted()]})
    with pytest.raises(ValueError):
        model.train_on_batch(X, {"a": Y, "b": np.ones((12, 5), "float32")})
    assert model.weights == [] and model.metrics_names == ["loss", "mae", "counted"]
    model.train_on_batch(X, {"a": Y, "b": Y})
    model.reset_metrics()
    before = state(model)
    Counted.armed = ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        model.train_on_batch(X, {"a": Y, "b": Y})
    Counted.armed = False
    assert state(model) == before
    assert model.metrics_names == ["loss", "a_loss", "b_loss", "a_mae", "b_counted"]


def test_noise_after_a_first_step_that_failed_is_that_of_a_new_model():
    class Noisy(tf.keras.Model):
        def __init__(self):
            super().__init__(name="noisy")
            self.hidden, self.dropout = tf.keras.layers.Dense(4), tf.keras.layers.Dropout(0.5)

        def call(self, x, training=None):
            return self.dropout(self.hidden(x), training=training)

    def loss(fails):
        tf.random.set_seed(1)
        model = Noisy()
        model.compile("sgd", "mse")
        if fails:
            with pytest.raises(tf.errors.ShapeError):
                model.train_on_batch(np.ones((8, 3)), np.ones((8, 7)))
        return model.train_on_batch(np.ones((8, 3)), np.ones((8, 4)))

    assert loss(fails=True) == loss(fails=False)
