"""Steps outside of compiled functions by plans: the same bits as without, and nothing is kept alive."""

import gc
import weakref

import numpy as np
import pytest
from in_threads import in_threads
from slow import sampled

import minikeras as tf
from minikeras import keras
from minikeras.compiler import sweeps
from minikeras.nn_ops import streams

optimizers, layers = keras.optimizers, keras.layers
pytestmark = pytest.mark.host
GENERATOR = np.random.default_rng(0)
X, Y = GENERATOR.normal(size=(12, 5)).astype("f"), GENERATOR.integers(0, 3, 12)
CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
KINDS = {
    "gauss_newton": lambda: optimizers.GaussNewton(damping=0.1),
    "by_layer": lambda: optimizers.GaussNewton(damping=0.1, blocks="layer", chunk_size=5, globalization="trust_region"),
    "levenberg": optimizers.LevenbergMarquardt,
    "accelerated": lambda: optimizers.LevenbergMarquardt(scaling=True, acceleration=0.75),
}


@pytest.fixture
def plans(monkeypatch):
    """No plans but those of this test."""
    found = sweeps.SweepPlans()
    monkeypatch.setattr(sweeps, "plans", found)
    return found


def wait_for(sightings, monkeypatch, plans):
    """Forget all plans; the next are made after so many sightings."""
    monkeypatch.setattr(sweeps, "SIGHTINGS", sightings)
    plans.clear()


def curve():
    w, x = tf.Variable([1.0, -2.0]), tf.linspace(0.0, 1.0, 6)
    fit = optimizers.Objective(lambda: w[0] * tf.exp(w[1] * x) - 1.0, lambda r: tf.reduce_mean(r**2))
    return fit, [w], [w]


def network(*between):
    layers_ = [layers.Dense(4, "tanh", kernel_regularizer="l2"), *between, layers.Dense(3, activity_regularizer="l2")]
    model = keras.Sequential([keras.Input((5,)), *layers_])
    penalty = lambda: tf.add_n(model.losses)
    fit = optimizers.Objective(lambda: model(X, training=True), lambda z: CROSS_ENTROPY(Y, z), penalty)
    return fit, model.trainable_variables, model.variables


def several_outputs():
    w, x = tf.Variable([1.0, -2.0]), tf.linspace(0.0, 1.0, 6)
    fit = optimizers.Objective(lambda: [w[0] * x, tf.exp(w[1] * x)], lambda z: tf.reduce_sum((z[0] - z[1]) ** 2))
    return fit, [w], [w]


PROBLEMS = {
    "curve": curve,
    "network": network,
    "dropout": lambda: network(layers.Dropout(0.3, seed=1)),
    "rows_meet": lambda: network(layers.BatchNormalization()),
    "several_outputs": several_outputs,
}


def steps(problem, kind):
    keras.utils.clear_session()
    streams.set_global_seed(3)
    (fit, variables, state), optimizer = problem(), kind()
    losses = [optimizer.minimize(fit, variables).numpy() for _ in range(6)]
    return [*losses, *[variable.numpy() for variable in (*state, *optimizer.variables)]]


@pytest.mark.parametrize("name", sampled(PROBLEMS, 2))
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_steps_by_plans_have_the_same_bits(name, kind, monkeypatch, plans):
    problem = PROBLEMS[name]
    wait_for(10**9, monkeypatch, plans)
    without = steps(problem, kind)
    assert len(plans) == 0
    wait_for(0, monkeypatch, plans)
    found = steps(problem, kind)
    for one, other in zip(found, without, strict=True):
        np.testing.assert_array_equal(one, other)
    own = [entry for key, entry in plans._plans.items() if key[0] == "curvature of outputs"]
    assert any(entry.plan is not None for entry in own)


def test_rows_that_meet_at_some_steps_only_are_noticed(monkeypatch, plans):
    ends = []
    for sightings in (10**9, 0):
        wait_for(sightings, monkeypatch, plans)
        w, gate, x = tf.Variable([1.0, -2.0]), tf.Variable(0.0), tf.linspace(0.0, 1.0, 6)
        outputs = lambda w=w, gate=gate, x=x: w[0] * tf.exp(w[1] * x) + gate * tf.roll(w[0] * x, 1, axis=0)
        fit, optimizer = optimizers.Objective(outputs, lambda r: tf.reduce_mean(r**2)), optimizers.GaussNewton(damping=0.1)
        for value in (0.0, 0.0, 0.5, 0.0, 0.5):
            gate.assign(value)
            optimizer.minimize(fit, [w])
        ends.append(w.numpy())
    np.testing.assert_array_equal(*ends)
    assert len(plans) > 0


def test_a_loss_that_no_variable_reaches_is_refused_at_every_step(monkeypatch, plans):
    wait_for(0, monkeypatch, plans)
    w = tf.Variable([1.0, -2.0])
    fit = optimizers.Objective(lambda: tf.stop_gradient(w) * 2.0, lambda r: tf.reduce_mean(r**2))
    for _ in range(3):
        with pytest.raises(ValueError, match="does not depend on any"):
            optimizers.GaussNewton().minimize(fit, [w])


def test_steps_in_several_threads_share_a_plan(monkeypatch, plans):
    wait_for(0, monkeypatch, plans)
    ends = []

    def train():
        fit, variables, _ = curve()
        optimizer = optimizers.LevenbergMarquardt()
        for _ in range(20):
            optimizer.minimize(fit, variables)
        ends.append(variables[0].numpy())

    train()
    in_threads(*[train] * 4)
    assert len(ends) == 5
    for end in ends:
        np.testing.assert_array_equal(end, ends[0])


def test_a_plan_keeps_no_model_alive(monkeypatch, plans):
    wait_for(0, monkeypatch, plans)
    fit, variables, _ = network()
    optimizers.GaussNewton(damping=0.1).minimize(fit, variables)
    kept = [weakref.ref(variable) for variable in variables]
    assert len(plans) > 0
    del fit, variables, _
    gc.collect()
    assert not any(ref() is not None for ref in kept)
