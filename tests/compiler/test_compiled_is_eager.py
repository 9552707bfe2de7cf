"""Compiled = eager, bit for bit over 20 steps: every layer, loss, metric and optimizer. Models: test_compiled_training.py."""

import numpy as np
import pytest
from golden_numbers import golden
from in_one_test import in_one_test
from layer_table import ROWS
from optimizer_cases import FORMULAS, OPTIONS, gradients, weights
from side_by_side import EXECUTORS, both_ways

import minikeras as tf

LOSSES, METRICS = golden("losses"), golden("metrics")


def chosen(number, one_in):
    """In the plain run LLVM, whose kernels take most of the time, compiles each sixth case only."""
    return EXECUTORS if one_in == 1 or number % 6 == 0 else EXECUTORS[:1]


@in_one_test(3, numbered=enumerate(ROWS))
def test_a_layer_trains_the_same(numbered, one_in):
    number, row = numbered
    given = row.inputs("float32")
    listed = given if isinstance(given, list) else [given]
    kept = all(x.dtype.is_integer for x in listed)
    batches = [tuple(x if kept else x * (1.0 + 0.01 * i) for x in listed) for i in range(4)]

    def make():
        layer = row.make()

        def step(*inputs):
            inputs = list(inputs)
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                y = layer(inputs if isinstance(given, list) else inputs[0], training=True, **row.call)
                loss = tf.reduce_sum(tf.cast(y, "float32") ** 2) + sum(layer.losses, tf.constant(0.0))
            found = tape.gradient(loss, [layer.trainable_variables, inputs])
            for variable, gradient in zip(layer.trainable_variables, found[0], strict=True):
                variable.assign_sub(0.01 * tf.convert_to_tensor(gradient))
            return loss, [g for g in found[1] if g is not None], tf.convert_to_tensor(y) * 1.0

        return step, lambda: layer.variables

    both_ways(make, batches, executors=chosen(number, one_in))


@in_one_test(3, numbered=enumerate(LOSSES["cases"]))
def test_a_loss_and_its_gradient_are_the_same(numbered, one_in):
    number, case = numbered
    data = LOSSES["data"][case["data"]]
    labels = np.asarray(data["y_true"])
    labels = tf.constant(labels, "int32" if labels.dtype.kind == "i" else "float32")
    predictions = tf.constant(data["y_pred"], "float32")

    def make():
        loss = getattr(tf.keras.losses, case["loss"])(**case["config"])

        def step(y_true, y_pred):
            with tf.GradientTape() as tape:
                tape.watch(y_pred)
                value = loss(y_true, y_pred)
            return value, tape.gradient(value, y_pred)

        return step, list

    both_ways(make, [(labels, predictions * factor) for factor in (1.0, 0.9, 0.5)], executors=chosen(number, one_in))


@in_one_test(3, numbered=enumerate(METRICS["cases"]))
def test_a_metric_accumulates_the_same(numbered, one_in):
    number, case = numbered

    def array(part):
        values = np.asarray(part)
        return tf.constant(values, "float32" if values.dtype.kind == "f" else None)

    batches = [tuple(array(part) for part in batch) for batch in METRICS["streams"][case["data"]]]

    def make():
        metric = getattr(tf.keras.metrics, case["metric"])(**case["config"])

        def step(*batch):
            metric.update_state(*batch)
            return metric.result()

        return step, lambda: metric.variables

    eager = case["metric"] == "R2Score" and "num_regressors" in case["config"]
    both_ways(make, batches, eager, executors=chosen(number, one_in))


TOGETHER = {
    **{"gradient_accumulation_steps": 2, "use_ema": True, "ema_overwrite_frequency": 2},
    **{"global_clipnorm": 0.1, "weight_decay": 0.01, "loss_scale_factor": 8.0},
}


@in_one_test(3, numbered=enumerate([TOGETHER, *OPTIONS.values()]))
@pytest.mark.parametrize("name", FORMULAS)
def test_an_optimizer_steps_the_same(name, numbered, one_in):
    number, option = numbered

    def make():
        optimizer, held = FORMULAS[name](**option), weights("float32")

        def step(*found):
            optimizer.apply_gradients(zip(found, held, strict=True))
            return optimizer.learning_rate, optimizer.iterations

        return step, lambda: [*held, *optimizer.variables]

    both_ways(make, [tuple(gradients(i, "float32")) for i in range(5)], executors=chosen(number, one_in))


def test_derivatives_of_every_order_are_the_same():
    w = tf.Variable([[0.5, -0.3], [0.2, 0.7]])

    def make():
        def step(x):
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape(persistent=True) as tape:
                    tape.watch(x)
                    y = tf.tanh(x @ w)
                first = tape.gradient(y, x)
            with tf.GradientTape() as third:
                third.watch(x)
                z = tf.reduce_sum(tf.sin(x) ** 3)
            return first, outer.gradient(first, x), tape.jacobian(y, w), tape.batch_jacobian(y, x), third.hessian(z, x)

        return step, list

    both_ways(make, [(tf.constant([[1.0, 2.0], [0.5, i]]),) for i in (0.1, 0.2, 0.3)])


def test_custom_gradients_and_vectorized_maps_are_the_same():
    scale = tf.Variable(2.0)

    @tf.custom_gradient
    def clipped(x):
        return x * scale, lambda g, variables=None: (tf.clip_by_value(g, -0.1, 0.1), [tf.reduce_sum(g * x)])

    def make():
        def step(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(clipped(x) ** 2) + tf.reduce_sum(tf.recompute_grad(tf.exp)(x))
            rows = tf.vectorized_map(lambda row: tf.reduce_sum(row * row), tf.reshape(x, (2, 2)))
            return y, tape.gradient(y, [x, scale]), rows

        return step, list

    both_ways(make, [(tf.constant([1.0, -2.0, 0.5, float(i)]),) for i in range(4)])


def test_random_numbers_go_on_from_call_to_call():
    def make():
        own = tf.random.Generator.from_seed(4)

        def step(x):
            drawn = [tf.random.normal([3]), tf.random.uniform([2], seed=7), tf.random.uniform([4], 0, 9, "int32")]
            drawn += [tf.random.truncated_normal([2]), own.normal([2]), tf.random.shuffle(x), tf.nn.dropout(x, 0.5)]
            return [*drawn, tf.random.categorical([[0.0, 1.0]], 3), tf.random.stateless_normal([2], [1, 2])]

        return step, list

    both_ways(make, [(tf.range(6.0),)])
