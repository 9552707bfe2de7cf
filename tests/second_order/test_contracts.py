"""What all second-order optimizers have in common: atomic steps, layers' state, random masks, configuration, errors."""

import contextlib

import numpy as np
import pytest
from second_order.problems import data, network, objective, rosenbrock

import minikeras as tf
from minikeras import keras

optimizers = keras.optimizers
KINDS = [
    optimizers.Newton,
    lambda **options: optimizers.Newton(globalization="trust_region", **options),
    lambda **options: optimizers.Newton(damping=1e-2, globalization="damping", **options),
    optimizers.GaussNewton,
    optimizers.LevenbergMarquardt,
    lambda **options: optimizers.LevenbergMarquardt(scaling=True, acceleration=0.75, **options),
    optimizers.NewtonCG,
    lambda **options: optimizers.NewtonCG(curvature="gauss_newton", **options),
    optimizers.LBFGS,
    optimizers.AdaHessian,
    optimizers.KFAC,
]
NAMES = [
    *("newton", "trust_region", "damping", "gauss_newton", "levenberg", "accelerated", "newton_cg", "ggn_cg", "lbfgs"),
    *("adahessian", "kfac"),
]
RUNS_ONCE = (optimizers.AdaHessian, optimizers.KFAC)
"""The loss, in a step; the others try it at the end of the step as well."""
every_kind = pytest.mark.parametrize("kind", KINDS, ids=NAMES)


def state(model, optimizer):
    return [v.numpy() for v in (*model.variables, *optimizer.variables)]


def same(one, other):
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@every_kind
def test_the_loss_falls_and_what_is_returned_is_the_loss_before(kind):
    tf.random.set_seed(1)
    model = network()
    x, labels, _ = data()
    fit, optimizer = objective(model, x, labels), kind()
    first = float(fit())
    assert float(optimizer.minimize(fit, model.trainable_variables)) == first
    for _ in range(5):
        optimizer.minimize(fit, model.trainable_variables)
    assert float(fit()) < first
    assert int(optimizer.iterations) == 6


@every_kind
def test_a_loss_that_raises_leaves_everything_as_it_was(kind):
    model = network()
    x, labels, _ = data()
    fit, optimizer = objective(model, x, labels), kind()
    optimizer.minimize(fit, model.trainable_variables)
    before, calls = state(model, optimizer), []

    def failing():
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("out of luck")
        return fit.outputs()

    broken = optimizers.Objective(failing, fit.loss_of_outputs)
    if kind in RUNS_ONCE:
        calls.append(1)
    with pytest.raises(RuntimeError, match="out of luck"):
        optimizer.minimize(broken, model.trainable_variables)
    assert same(state(model, optimizer), before)


def noisy_network():
    """With statistics that move and masks that are drawn."""
    tf.random.set_seed(3)
    return keras.Sequential(
        [
            keras.Input((3,), dtype="float64"),
            keras.layers.Dense(6, "tanh", dtype="float64", name="hidden"),
            keras.layers.BatchNormalization(momentum=0.5, dtype="float64", name="norm"),
            keras.layers.Dropout(0.3, seed=1, dtype="float64", name="drop"),
            keras.layers.Dense(2, dtype="float64", name="head"),
        ]
    )


@every_kind
def test_statistics_move_once_and_masks_stay_within_a_step(kind):
    x, labels, _ = data()
    once, model = noisy_network(), noisy_network()
    objective(once, x, labels)()
    masks = []

    def outputs():
        result = model(x, training=True)
        masks.append(next(v for v in model.variables if "seed" in v.name).numpy().tolist())
        return result

    kind().minimize(optimizers.Objective(outputs, objective(model, x, labels).loss_of_outputs), model.trainable_variables)
    assert len(masks) > 1 or kind in RUNS_ONCE
    assert all(mask == masks[0] for mask in masks)
    for expected, found in zip(once.non_trainable_variables, model.non_trainable_variables, strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


@every_kind
def test_a_configuration_makes_an_equal_optimizer(kind):
    optimizer = kind()
    again = type(optimizer).from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()
    assert type(optimizers.deserialize(optimizers.serialize(optimizer))) is type(optimizer)


@every_kind
def test_constraints_hold_after_a_step(kind):
    tf.random.set_seed(1)
    model = network(kernel_constraint="non_neg")
    x, labels, _ = data()
    kind().minimize(objective(model, x, labels), model.trainable_variables)
    assert all((v.numpy() >= 0).all() for v in model.trainable_variables if v.numpy().ndim == 2)


def test_gradients_alone_are_refused():
    w, loss = rosenbrock()
    with tf.GradientTape() as tape:
        value = loss()
    with pytest.raises(TypeError, match=r"Newton needs the loss as a function.*minimize"):
        optimizers.Newton().apply_gradients([(tape.gradient(value, w), w)])


def test_bad_input_is_refused_with_what_was_found():
    w, loss = rosenbrock()
    newton = optimizers.Newton()
    with pytest.raises(ValueError, match="no variables"):
        newton.minimize(loss, [])
    with pytest.raises(ValueError, match=r"scalar, found shape \(2,\)"):
        newton.minimize(lambda: w * 1.0, [w])
    with pytest.raises(ValueError, match="does not depend on any"):
        newton.minimize(lambda: tf.constant(1.0), [w])
    with pytest.raises(ValueError, match="one dtype"):
        newton.minimize(loss, [w, tf.Variable(1.0)])
    for options in ({"blocks": "rows"}, {"globalization": "luck"}, {"damping": -1.0}, {"repair": "glue"}, {"clipnorm": 1.0}):
        with pytest.raises(ValueError, match="Newton"):
            optimizers.Newton(**options)
    with pytest.raises(ValueError, match="damping"):
        optimizers.Newton(globalization="damping")
    for options in ({"scaling": True, "globalization": "line_search"}, {"acceleration": 0.0}, {"acceleration": float("nan")}):
        with pytest.raises(ValueError, match=r"LevenbergMarquardt.*acceleration"):
            optimizers.LevenbergMarquardt(**options)
    with pytest.raises(ValueError, match="scaling must be True or False, found 'curvature'"):
        optimizers.LevenbergMarquardt(scaling="curvature")
    for options in ({"curvature": "none"}, {"preconditioner": "magic"}, {"radius": 0.0}):
        with pytest.raises(ValueError, match="NewtonCG"):
            optimizers.NewtonCG(**options)


def test_a_loss_that_is_infinite_at_the_trial_point_shortens_the_step():
    w = tf.Variable(1e-3, dtype=tf.float64)
    loss = lambda: w - tf.math.log(w)
    optimizer = optimizers.Newton()
    for _ in range(30):
        optimizer.minimize(loss, [w])
    assert float(w) == pytest.approx(1.0)


@every_kind
def test_a_step_stays_on_the_device_of_the_variables_and_is_the_one_of_the_cpu(kind, device):
    results = []
    for place in ("CPU:0", None):
        with tf.device(place) if place else contextlib.nullcontext():
            tf.random.set_seed(1)
            model, optimizer = network((3, 4, 2), dtype="float64", kernel_regularizer="l2"), kind()
            x, labels, _ = data()
            plain = objective(model, x, labels)
            fit = optimizers.Objective(plain.outputs, plain.loss_of_outputs, lambda model=model: tf.add_n(model.losses))
            for _ in range(3):
                tf.random.set_seed(7)
                optimizer.minimize(fit, model.trainable_variables)
            results.append([v.numpy() for v in model.trainable_variables])
    assert len({v.device for v in model.trainable_variables}) == 1
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("blocks", ["layer", "variable"])
@pytest.mark.parametrize("repair", ["shift", "eigenvalues"])
def test_blocks_and_repairs_stay_on_the_device(blocks, repair, device):
    tf.random.set_seed(1)
    model = network((3, 4, 2))
    x, labels, _ = data()
    fit = objective(model, x, labels)
    before = float(fit())
    optimizers.Newton(blocks=blocks, repair=repair).minimize(fit, model.trainable_variables)
    optimizers.NewtonCG(preconditioner="diagonal").minimize(fit, model.trainable_variables)
    assert float(fit()) < before


def quartic(w):
    return lambda: tf.reduce_sum(w**4)


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (optimizers.Newton, {"globalization": "trust_region"}, "keeps no number 'radius'.*it keeps.*make a new optimizer"),
        (lambda: optimizers.LBFGS(memory=2), {"memory": 3}, "memory=3.*room for 2.*before the first step.*built = False"),
        (optimizers.AdaHessian, {"use_ema": True}, "keeps no 'average'.*it keeps.*before the first step"),
    ],
)
@pytest.mark.parametrize("jit_compile", [None, False, True])
def test_an_option_that_asks_for_more_state_is_refused_and_nothing_changes(make, given, message, jit_compile):
    """They ended in KeyError, IndexError and an error of zip."""
    w, optimizer = tf.Variable([1.0, 2.0, 3.0]), make()
    step = lambda: optimizer.minimize(quartic(w), [w])
    step = step if jit_compile is None else tf.function(step, jit_compile=jit_compile)
    for _ in range(3):
        step()
    before = [one.numpy() for one in (w, *optimizer.variables)]
    for name, value in given.items():
        setattr(optimizer, name, value)
    with pytest.raises(ValueError, match=message):
        step()
    assert same([one.numpy() for one in (w, *optimizer.variables)], before)


def test_lbfgs_with_less_memory_goes_on_with_the_newest_pairs():
    """It divided by zero."""
    w, optimizer = tf.Variable([1.0, 2.0, 3.0], dtype=tf.float64), optimizers.LBFGS(memory=4)
    for _ in range(6):
        optimizer.minimize(quartic(w), [w])
    optimizer.memory = 2
    losses = [float(optimizer.minimize(quartic(w), [w])) for _ in range(6)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]
    assert optimizer.logs()["pairs"] == 2 and not optimizer.slot(w, "steps").numpy()[:2].any()


def test_levenberg_marquardt_begins_to_scale_before_the_first_step():
    w, optimizer = tf.Variable([1.0, 2.0]), optimizers.LevenbergMarquardt()
    fit = optimizers.Objective(lambda: w * 3.0 - 6.0, lambda r: tf.reduce_sum(r**2) / 2.0)
    optimizer.scaling = True
    optimizer.minimize(fit, [w])
    assert optimizer.slot(w, "scale").numpy().all()


@pytest.mark.parametrize("memory", [3, 5])
def test_lbfgs_starts_afresh_when_what_it_keeps_is_dropped(memory):
    """It divided by zero."""
    w, optimizer = tf.Variable([1.0, 2.0, 3.0], dtype=tf.float64), optimizers.LBFGS(memory=3)
    for _ in range(3):
        optimizer.minimize(quartic(w), [w])
    optimizer.built, optimizer.memory = False, memory
    losses = [float(optimizer.minimize(quartic(w), [w])) for _ in range(4)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]
    assert optimizer.logs()["pairs"] == min(memory, 4)
