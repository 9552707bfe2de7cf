"""Calls without effects: values go in, outputs and new values come out, and derivatives reach the values."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import InvalidArgumentError, ShapeError

keras, layers = tf.keras, tf.keras.layers
X = np.random.default_rng(0).normal(size=(6, 3)).astype("float32")


def made():
    parts = [layers.Dense(4, "relu", kernel_regularizer="l2"), layers.BatchNormalization(), layers.Dropout(0.5)]
    return keras.Sequential([keras.Input((3,)), *parts, layers.Dense(1)])


def values(variables):
    return [one.numpy() for one in variables]


def same(some, others):
    return all(np.array_equal(one, other) for one, other in zip(some, others, strict=True))


def test_a_call_of_a_model_gives_what_its_variables_would_hold_and_changes_nothing():
    model = made()
    before = values(model.variables)
    given = [v.value for v in model.trainable_variables], [v.value for v in model.non_trainable_variables]
    outputs, others, losses = model.stateless_call(*given, X, training=True, return_losses=True)
    assert same(before, values(model.variables)) and len(losses) == 1
    assert not any(np.array_equal(one, other) for one, other in zip(others, given[1], strict=True))
    assert np.array_equal(outputs, model(X, training=True)) and same(others, values(model.non_trainable_variables))


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_reach_the_values(compiled):
    model = made()
    given = [v.value for v in model.trainable_variables]
    others = [v.value for v in model.non_trainable_variables]

    def slopes(given, others, x):
        with tf.GradientTape() as tape:
            tape.watch(given)
            outputs, _ = model.stateless_call(given, others, x, training=True)
            loss = tf.reduce_mean(outputs**2)
        return tape.gradient(loss, given)

    found = (tf.function(slopes, jit_compile=True) if compiled else slopes)(given, others, tf.constant(X))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(X, training=True) ** 2)
    for one, other in zip(found, tape.gradient(loss, model.trainable_variables), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_loop_over_values_trains_as_fit_does():
    y = np.ones((6, 1), "float32")
    model, twin = made(), made()
    twin.set_weights(model.get_weights())
    model.layers[2].rate = twin.layers[2].rate = 0.0
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    trained, others = [v.value for v in model.trainable_variables], [v.value for v in model.non_trainable_variables]
    own = [v.value for v in optimizer.variables]
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(trained)
            outputs, others, losses = model.stateless_call(trained, others, X, training=True, return_losses=True)
            loss = tf.reduce_mean((outputs - y) ** 2) + tf.add_n(losses)
        trained, own = optimizer.stateless_apply(own, tape.gradient(loss, trained), trained)
    twin.compile(keras.optimizers.SGD(0.1), "mse")
    twin.fit(X, y, epochs=3, batch_size=6, shuffle=False, verbose=0)
    for one, other in zip(trained, twin.trainable_variables, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_values_that_do_not_fit_are_refused():
    model = made()
    given = [v.value for v in model.trainable_variables], [v.value for v in model.non_trainable_variables]
    with pytest.raises(ValueError, match="stateless_call: trainable_variables must be 6 values, .*, found 5"):
        model.stateless_call(given[0][1:], given[1], X)
    with pytest.raises(ValueError, match="is not built; call it on data"):
        layers.Dense(1).stateless_call([], [], X)

    class Writes(layers.Layer):
        def __init__(self, write):
            super().__init__()
            self.write, self.seen = write, self.add_weight((2,), "zeros", trainable=False)
            self.built = True

        def call(self, x):
            self.write(self.seen)
            return x

    with pytest.raises((ShapeError, ValueError), match=r"has shape \(2,\), the value \(3,\)"):
        Writes(lambda v: v.assign([1.0, 2.0, 3.0])).stateless_call([], [[0.0, 0.0]], X)
    with pytest.raises((InvalidArgumentError, ValueError), match="is written in part"):
        Writes(lambda v: v.scatter_nd_update([[0]], [1.0])).stateless_call([], [[0.0, 0.0]], X)
    layer = Writes(lambda v: (v.assign_add([1.0, 2.0]), v.assign_sub([0.0, 1.0])))
    assert layer.stateless_call([], [[5.0, 5.0]], X)[1][0].numpy().tolist() == [6.0, 6.0]
    assert layer.seen.numpy().tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "name", ["AUC", "BinaryAccuracy", "F1Score", "Precision", "R2Score", "MeanSquaredError", "CosineSimilarity"]
)
def test_a_metric_counts_in_values(name):
    metric, y, p = getattr(keras.metrics, name)(), np.eye(3, dtype="float32")[[0, 1, 2]], np.abs(X[:3])
    if name in ("F1Score", "R2Score"):
        with pytest.raises(ValueError, match="the first batch makes its state"):
            metric.stateless_update_state(metric.variables, y, p)
        metric.reset_state()
    first = values(metric.variables)
    found = metric.stateless_update_state(metric.variables, y, p)
    assert same(values(metric.variables), first)
    result = metric.stateless_result(found)
    np.testing.assert_array_equal(result, metric(y, p))
    assert same(found, values(metric.variables)) and same(metric.stateless_reset_state(), first)
    with pytest.raises(ValueError, match="metric_variables must be"):
        metric.stateless_result([*found, 1.0])


def test_values_are_cast_to_the_dtypes_of_variables():
    metric = keras.metrics.Accuracy()
    count = metric.add_variable((), "zeros", dtype="int32", name="count")
    metric.result = lambda: count.read_value()
    assert metric.stateless_result([8.0, 4.0, tf.constant(3.0)]).dtype == "int32" and int(count) == 0
