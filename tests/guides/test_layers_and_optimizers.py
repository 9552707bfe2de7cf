"""Tapes together with layers, models and optimizers."""

import warnings

import numpy as np
import pytest

import minikeras as tf

layers, optimizers = tf.keras.layers, tf.keras.optimizers


# Layers ---------------------------------------------------------------------------------------------------------------


def test_a_layer_that_is_not_built_yet_has_nothing_to_watch():
    """T26: its variables are made by the first call, after the tape was told what to watch."""
    layer, x = layers.Dense(2), tf.ones((1, 3))
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(layer.trainable_variables)
        y = layer(x)
    assert tape.gradient(y, layer.trainable_variables) == [None, None]
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(layer.trainable_variables)
        y = layer(x)
    assert [g.shape for g in tape.gradient(y, layer.trainable_variables)] == [(3, 2), (2,)]


def test_a_weight_is_a_variable_like_any_other():
    """T27, and different from Keras 3 on TensorFlow: it can be watched, and is listed as itself."""
    layer, x = layers.Dense(2), tf.ones((1, 3))
    layer(x)
    assert isinstance(layer.kernel, tf.Variable)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        assert tape.watch(layer.kernel) is None
        y = layer(x)
    kernel, bias = tape.gradient(y, [layer.kernel, layer.bias])
    assert kernel.shape == (3, 2) and bias is None
    assert tape.watched_variables() == (layer.kernel,)


def test_the_variables_of_a_frozen_layer_are_not_watched():
    """T27, T17: `layer.trainable = False` holds for tapes, unlike in Keras 3 on TensorFlow."""
    layer, x = layers.Dense(2), tf.ones((1, 3))
    layer(x)
    layer.trainable = False
    with tf.GradientTape() as tape:
        y = layer(x)
    assert tape.watched_variables() == () and tape.gradient(y, layer.kernel) is None


@pytest.mark.parametrize("activation", ["relu", tf.nn.relu, None], ids=["by name", "a function", "none"])
def test_a_dense_layer_makes_its_variables_at_the_first_call(activation):
    """T126: kernel (in, out), any number of leading axes, integers cast."""
    layer = layers.Dense(4, activation=activation, kernel_initializer="ones")
    assert layer.variables == []
    y = layer(tf.constant(np.full((2, 5, 3), -1)))
    assert layer.kernel.shape == (3, 4) and layer.bias.shape == (4,) and len(layer.variables) == 2
    assert y.shape == (2, 5, 4) and y.dtype == tf.float32
    assert (y.numpy() == (0.0 if activation else -3.0)).all()
    assert len(layers.Dense(4, use_bias=False)(tf.ones((1, 2))).shape) == 2


def test_batch_normalization_moves_its_statistics_only_in_training():
    """T126: momentum 0.99, so the mean is 0.02 after a batch of mean 2."""
    norm = layers.BatchNormalization()
    x = tf.constant([[1.0], [3.0]])
    still = norm(x, training=False)
    np.testing.assert_allclose(still.numpy(), x.numpy() / np.sqrt(1.001), rtol=1e-6)
    assert norm.moving_mean.numpy().tolist() == [0.0]
    moved = norm(x, training=True)
    np.testing.assert_allclose(moved.numpy(), [[-1 / np.sqrt(1.001)], [1 / np.sqrt(1.001)]], rtol=1e-5)
    assert norm.moving_mean.numpy()[0] == pytest.approx(0.02)
    assert len(norm.trainable_variables) == 2 and len(norm.non_trainable_variables) == 2


def test_dropout_is_off_unless_training_and_its_gradient_is_its_mask():
    """T126: what is kept is scaled by 1 / (1 - rate)."""
    dropout, x = layers.Dropout(0.5, seed=1), tf.Variable(tf.ones(200))
    assert dropout(x).numpy().tolist() == [1.0] * 200
    with tf.GradientTape() as tape:
        y = dropout(x, training=True)
    assert set(y.numpy().tolist()) == {0.0, 2.0}
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), y.numpy())


class Twice(tf.keras.Model):
    """A model of its own class."""

    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(1, kernel_initializer="ones")

    def call(self, x):
        return 2.0 * self.dense(x)


@pytest.mark.parametrize("make", [Twice, lambda: tf.keras.Sequential([layers.Dense(1, kernel_initializer="ones")])])
def test_a_model_is_differentiated_like_a_function(make):
    """T126: in its weights and its input."""
    model, x = make(), tf.constant([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model(x)
    kernel, for_x = tape.gradient(y, [model.trainable_variables[0], x])
    factor = y.numpy().item() / 3.0
    np.testing.assert_allclose(kernel.numpy(), factor * x.numpy().T)
    np.testing.assert_allclose(for_x.numpy(), [[factor, factor]])


# Optimizers -----------------------------------------------------------------------------------------------------------


def test_the_learning_rate_can_be_set_and_the_norm_be_clipped():
    """T127, T123."""
    v, optimizer = tf.Variable(0.0), optimizers.SGD(0.1, clipnorm=1.0)
    optimizer.learning_rate = 0.5
    assert float(optimizer.learning_rate.numpy()) == 0.5
    optimizer.apply_gradients([(tf.constant(-8.0), v)])
    assert v.numpy() == 0.5
    optimizer.minimize(lambda: 8.0 * v, [v])
    assert v.numpy() == 0.0


def test_a_step_by_hand_lowers_a_loss():
    """T127: nothing but the tape, the model and the optimizer."""
    tf.random.set_seed(0)
    model, optimizer = tf.keras.Sequential([layers.Dense(1)]), optimizers.SGD(0.1)
    x = tf.constant(np.random.default_rng(0).normal(size=(20, 2)).astype("float32"))
    y = x @ tf.constant([[1.0], [-2.0]])
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(50):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x) - y) ** 2)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            losses.append(float(loss))
    assert losses[-1] < 0.01 * losses[0]
