"""A loop of eight lines trains bit for bit as fit does; and fit calls what the optimizer and the policy need."""

import numpy as np
import pytest
from slow import sampled

import minikeras as tf
from minikeras.nn_ops import streams

layers = tf.keras.layers
generator = np.random.default_rng(6)
X, Y = generator.normal(size=(50, 3)).astype("float32"), generator.normal(size=(50, 1)).astype("float32")

OPTIMIZERS = {
    "sgd": lambda: tf.keras.optimizers.SGD(0.05),
    "momentum": lambda: tf.keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
    "adam": lambda: tf.keras.optimizers.Adam(0.01),
    "clipped": lambda: tf.keras.optimizers.Adam(0.01, global_clipnorm=0.1, weight_decay=0.01),
    "accumulated": lambda: tf.keras.optimizers.Adam(0.01, gradient_accumulation_steps=3),
    "rmsprop": lambda: tf.keras.optimizers.RMSprop(0.01, centered=True),
}


@pytest.fixture(autouse=True)
def streams_stay():
    before = streams.states()
    yield
    streams.set_states(before)


def made():
    tf.keras.utils.clear_session()
    streams.set_global_seed(3)
    return tf.keras.Sequential(
        [
            layers.Dense(8, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.5),
            layers.Dense(1, kernel_regularizer="l2"),
        ]
    )


@pytest.mark.parametrize("shuffle", sampled([True, False], 2))
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_loop_equals_fit(optimizer, shuffle):
    fitted = made()
    fitted.compile(OPTIMIZERS[optimizer](), "mse", metrics=["mae"])
    fitted.fit(X, Y, batch_size=8, epochs=3, shuffle=shuffle, verbose=0)

    model, optimizer = made(), OPTIMIZERS[optimizer]()
    loss_of, data = tf.keras.losses.MeanSquaredError(), tf.data.Dataset.from_tensor_slices((X, Y))
    batches = (data.shuffle(len(X)) if shuffle else data).batch(8)
    for x, y in (batch for _ in range(3) for batch in batches):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True)) + sum(model.losses)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    for mine, theirs in zip(model.variables, fitted.variables, strict=True):
        assert np.array_equal(mine.numpy(), theirs.numpy()), mine
    for mine, theirs in zip(optimizer.variables, fitted.optimizer.variables, strict=True):
        assert np.array_equal(mine.numpy(), theirs.numpy()), mine


def test_averages_of_weights_are_put_in_their_place_at_the_end_of_fit():
    model = made()
    model.compile(tf.keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5), "mse")
    model.fit(X, Y, epochs=2, verbose=0)
    for weight in model.trainable_variables:
        assert np.array_equal(weight.numpy(), model.optimizer.slot(weight, "average").numpy())


@pytest.mark.parametrize("swap_on_epoch", [False, True])
def test_averages_are_tested_and_weights_trained(swap_on_epoch):
    def fitted(callbacks):
        model = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(1, kernel_initializer="ones", use_bias=False)])
        model.compile(tf.keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5), "mse")
        kernel, held = model.layers[0].kernel, []
        watch = tf.keras.callbacks.LambdaCallback(
            on_test_begin=lambda logs: held.append((kernel.numpy(), model.optimizer.slot(kernel, "average").numpy())),
            on_epoch_end=lambda epoch, logs: held.append((kernel.numpy(), model.optimizer.slot(kernel, "average").numpy())),
        )
        history = model.fit(X, Y, epochs=3, shuffle=False, validation_data=(X, Y), callbacks=[*callbacks, watch], verbose=0)
        return model, history.history, held

    plain, plain_history, _ = fitted([])
    swapped, history, held = fitted([tf.keras.callbacks.SwapEMAWeights(swap_on_epoch)])
    for in_test, at_end in zip(held[::2], held[1::2], strict=True):
        assert np.array_equal(*in_test), "a test sees the averages"
        assert np.array_equal(*at_end) == swap_on_epoch
    assert history["loss"] == plain_history["loss"], "training does not notice"
    assert history["val_loss"] != plain_history["val_loss"]
    assert history["val_loss"][-1] == pytest.approx(swapped.evaluate(X, Y, verbose=0), rel=1e-6)
    assert np.array_equal(plain.get_weights()[0], swapped.get_weights()[0])
    swapped.predict(X, callbacks=[tf.keras.callbacks.SwapEMAWeights()], verbose=0)
    assert np.array_equal(plain.get_weights()[0], swapped.get_weights()[0]), "prediction gives the weights back"
    with pytest.raises(ValueError, match="keeps no moving averages. Make it with use_ema=True"):
        model = made()
        model.compile("sgd", "mse")
        model.fit(X, Y, validation_data=(X, Y), callbacks=[tf.keras.callbacks.SwapEMAWeights()], verbose=0)


def test_a_loss_scale_changes_nothing_but_the_range_of_gradients():
    weights = []
    for optimizer in (tf.keras.optimizers.SGD(0.1), tf.keras.optimizers.SGD(0.1, loss_scale_factor=1024.0)):
        model = made()
        model.compile(optimizer, "mse")
        losses = model.fit(X, Y, epochs=2, verbose=0).history["loss"]
        weights.append((losses, model.get_weights()))
    assert weights[0][0] == weights[1][0], "the loss is logged as it is"
    for mine, theirs in zip(weights[0][1], weights[1][1], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-7)


def test_half_precision_wraps_the_optimizer_unless_told_otherwise():
    tf.keras.mixed_precision.set_dtype_policy("mixed_float16")
    try:
        model = made()
        model.compile(tf.keras.optimizers.Adam(0.01), "mse")
        assert type(model.optimizer).__name__ == "LossScaleOptimizer"
        losses = model.fit(X, Y, epochs=8, verbose=0).history["loss"]
        assert losses[-1] < losses[0] and model.layers[0].kernel.dtype == tf.float32
        model.compile(tf.keras.optimizers.Adam(0.01), "mse", auto_scale_loss=False)
        assert type(model.optimizer).__name__ == "Adam"
    finally:
        tf.keras.mixed_precision.set_dtype_policy(None)


def test_compute_loss_may_be_overridden_without_the_argument_training():
    class Own(tf.keras.Sequential):
        def compute_loss(self, x, y, y_pred, sample_weight):
            return tf.reduce_mean((y - y_pred) ** 4)

    model = Own([layers.Dense(1)])
    model.compile("sgd", metrics=["mse"])
    history = model.fit(X, Y, epochs=2, verbose=0).history
    assert list(history) == ["loss", "mse"]


def test_test_step_and_predict_step_may_be_overridden():
    class Own(tf.keras.Sequential):
        def test_step(self, data):
            return {"answer": 42.0}

        def predict_step(self, data):
            return super().predict_step(data) * 0.0

    model = Own([layers.Dense(1)])
    model.compile("sgd", "mse")
    history = model.fit(X, Y, validation_split=0.2, verbose=0).history
    assert history["val_answer"] == [42.0] and not model.predict(X, verbose=0).any()
    assert not model.predict_on_batch(X).any() and model.evaluate(X, Y, verbose=0) == 42.0


@pytest.mark.parametrize("compiled", [None, ["mae"]])
def test_a_metrics_of_one_s_own_says_what_the_logs_hold(compiled):
    class Own(tf.keras.Sequential):
        def __init__(self, given):
            super().__init__(given)
            self.mean = tf.keras.metrics.Mean(name="custom")

        def compute_loss(self, x, y, y_pred, sample_weight, training=True):
            loss = tf.reduce_mean((y - y_pred) ** 2)
            self.mean.update_state(loss)
            return loss

        @property
        def metrics(self):
            return [self.mean]

    class More(Own):
        @property
        def metrics(self):
            return [self.mean, *(one for one in super(Own, self).metrics if one is not self.mean)]

    model = Own([layers.Dense(1)])
    model.compile("sgd", "mse", metrics=compiled)
    history = model.fit(X, Y, epochs=2, validation_split=0.2, verbose=0).history
    assert list(history) == ["custom", "val_custom"] and model.metrics_names == ["custom"]
    found = model.evaluate(X, Y, verbose=0)
    assert isinstance(found, float) and model.evaluate(X, Y, verbose=0, return_dict=True) == {"custom": found}
    assert isinstance(model.train_on_batch(X, Y), float)
    more = More([layers.Dense(1)])
    more.compile("sgd", "mse", metrics=compiled)
    assert list(more.fit(X, Y, verbose=0).history) == sorted(["custom", "loss", *(compiled or [])])
