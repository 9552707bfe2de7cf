"""Second-order and per-layer optimizers in `compile` and `fit`: logs, state, callbacks, freezing, saving, errors."""

import itertools

import numpy as np
import pytest
from slow import mostly_slow

import minikeras as tf
from minikeras import keras

optimizers = keras.optimizers
CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
KINDS = {
    "newton": lambda: optimizers.Newton(0.5, damping=1.0),
    "newton_by_layer": lambda: optimizers.Newton(damping=1.0, blocks="layer", repair="eigenvalues", chunk_size=7),
    "trust_region": lambda: optimizers.Newton(globalization="trust_region"),
    "gauss_newton": lambda: optimizers.GaussNewton(damping=0.1),
    "levenberg": lambda: optimizers.LevenbergMarquardt(damping=0.1),
    "accelerated": lambda: optimizers.LevenbergMarquardt(damping=0.1, scaling=True, acceleration=0.75),
    "newton_cg": lambda: optimizers.NewtonCG(max_iterations=10),
    "ggn_cg": lambda: optimizers.NewtonCG(curvature="gauss_newton", damping=0.1, preconditioner="diagonal"),
    "lbfgs": lambda: optimizers.LBFGS(memory=3),
    "adahessian": lambda: optimizers.AdaHessian(0.1),
    "kfac": lambda: optimizers.KFAC(damping=0.1),
    "per_layer": lambda: optimizers.PerLayer(
        {"head": optimizers.Newton(damping=1.0), "*": optimizers.Every(2, optimizers.Adam(0.01))}
    ),
}
PLAIN = KINDS["newton"], KINDS["lbfgs"], KINDS["per_layer"]
every_kind = pytest.mark.parametrize("kind", mostly_slow(KINDS.values(), *PLAIN), ids=KINDS)
both_sizes = pytest.mark.parametrize("batch_size", [30, 12], ids=["full_batch", "mini_batch"])


def rows(count=30, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(count, 3)).astype("float32")
    return x, (x @ [1.0, -2.0, 0.5] > 0).astype("int64")


def network(seed=1, **options):
    """With a penalty, statistics that move and masks that are drawn."""
    tf.random.set_seed(seed)
    return keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(5, "tanh", kernel_regularizer="l2", name="hidden", **options),
            keras.layers.BatchNormalization(momentum=0.5, name="norm"),
            keras.layers.Dropout(0.2, seed=4, name="drop"),
            keras.layers.Dense(2, activity_regularizer=keras.regularizers.L2(1e-3), name="head"),
        ],
        name="net",
    )


def state(model):
    return [v.numpy() for v in (*model.variables, *model.optimizer.variables)]


def same(one, other):
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


# Second order ----------------------------------------------------------------------------------------------------------


@every_kind
@both_sizes
def test_fit_lowers_the_loss_and_logs_the_numbers_of_the_optimizer(kind, batch_size):
    model, (x, y) = network(), rows()
    model.compile(kind(), CROSS_ENTROPY, metrics=["accuracy"])
    history = model.fit(x, y, batch_size=batch_size, epochs=8, verbose=0).history
    assert min(history["loss"][1:]) < history["loss"][0]  # batches and masks are drawn, so the last one may be above
    assert set(history) == {"loss", "accuracy", *model.optimizer.logs()}
    assert all(len(values) == 8 for values in history.values())
    for name, value in model.optimizer.logs().items():
        assert history[name][-1] == value
    assert int(model.optimizer.iterations) == 8 * -(-30 // batch_size)


@every_kind
def test_a_step_of_fit_is_one_minimize_of_the_whole_loss(kind):
    """Penalties of weights and of outputs included; weights of rows as well."""
    model, by_hand, (x, y) = network(), network(), rows()
    weight = np.linspace(0.0, 2.0, 30).astype("float32")
    model.compile(kind(), CROSS_ENTROPY)
    by_hand.compile(kind(), CROSS_ENTROPY)
    tf.random.set_seed(2)
    logs = model.train_on_batch(x, y, sample_weight=weight, return_dict=True)
    tf.random.set_seed(2)

    fit = optimizers.Objective(
        lambda: by_hand(tf.constant(x), training=True),
        lambda z: CROSS_ENTROPY(y, z, sample_weight=weight),
        lambda: tf.add_n(by_hand.losses),
    )
    loss = by_hand.optimizer.minimize(fit, by_hand.trainable_variables)
    assert logs["loss"] == pytest.approx(float(loss), rel=1e-6)
    for found, expected in zip(model.variables, by_hand.variables, strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-4, atol=2e-5, err_msg=found.name)


@every_kind
def test_a_step_of_fit_that_fails_at_any_run_of_the_loss_leaves_everything_as_it_was(kind):
    model, (x, y) = network(), rows()
    left = np.inf

    def failing(y_true, y_pred):
        nonlocal left
        left -= 1
        if left == 0:
            raise RuntimeError("out of luck")
        return CROSS_ENTROPY(y_true, y_pred)

    model.compile(kind(), failing, run_eagerly=True)
    model.train_on_batch(x, y)
    before = state(model)
    for runs in itertools.count(1):
        left = runs
        try:
            model.train_on_batch(x, y)
        except RuntimeError:
            assert same(state(model), before)
        else:
            break
    assert runs > 1
    assert not same(state(model), before)


@every_kind
def test_frozen_layers_do_not_move_and_go_on_when_released(kind):
    model, (x, y) = network(), rows()
    model.compile(kind(), CROSS_ENTROPY)
    hidden = model.get_layer("hidden")
    for trainable in (True, False, True):
        hidden.trainable = trainable
        before = hidden.get_weights()
        model.fit(x, y, epochs=2, verbose=0)
        assert same(before, hidden.get_weights()) != trainable


@pytest.mark.parametrize("kind", [optimizers.Newton, optimizers.NewtonCG, optimizers.LBFGS, optimizers.AdaHessian])
def test_a_loss_of_ones_own_is_enough_for_methods_of_the_hessian(kind):
    model, (x, y) = own_loss(), rows()
    model.compile(kind())
    losses = model.fit(x, y, batch_size=30, epochs=6, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("kind", [optimizers.GaussNewton, optimizers.LevenbergMarquardt, optimizers.KFAC])
def test_a_loss_of_ones_own_is_refused_by_methods_that_use_its_structure(kind):
    model, (x, y) = own_loss(), rows()
    model.compile(kind())
    before = model.get_weights()
    with pytest.raises(TypeError, match=r"needs tf.keras.optimizers.Objective.*compute_loss"):
        model.fit(x, y, verbose=0)
    assert same(before, model.get_weights())


def own_loss():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.head = keras.layers.Dense(1, name="head")

        def call(self, x):
            return self.head(x)

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return tf.reduce_mean((y_pred[:, 0] - tf.cast(y, "float32")) ** 4)

    tf.random.set_seed(1)
    model = Own()
    model(rows()[0])
    return model


@pytest.mark.parametrize("kind", ["newton", "gauss_newton", "levenberg", "ggn_cg", "kfac"])
def test_several_outputs_are_fitted_together(kind):
    tf.random.set_seed(1)
    inputs = keras.Input((3,))
    shared = keras.layers.Dense(4, "tanh", name="shared")(inputs)
    outputs = {
        "classes": keras.layers.Dense(2, name="classes")(shared),
        "value": keras.layers.Dense(1, name="value")(shared),
    }
    model, (x, y) = keras.Model(inputs, outputs), rows()
    model.compile(KINDS[kind](), {"classes": CROSS_ENTROPY, "value": "mse"})
    targets = {"classes": y, "value": x.sum(axis=1, keepdims=True)}
    history = model.fit(x, targets, batch_size=30, epochs=8, verbose=0).history
    assert history["loss"][-1] < 0.7 * history["loss"][0]
    np.testing.assert_allclose(history["loss"], np.add(history["classes_loss"], history["value_loss"]), rtol=1e-5)


@pytest.mark.parametrize("kind", ["gauss_newton", "levenberg"])
def test_rows_that_a_mask_leaves_out_do_not_count(kind):
    """A padded step has a target of 100, which no fit may see."""
    results = []
    for padding in (0.0, 100.0):
        tf.random.set_seed(1)
        layers = [keras.layers.Masking(name="masking"), keras.layers.Dense(1, name="head")]
        model = keras.Sequential([keras.Input((4, 2)), *layers])
        model.compile(KINDS[kind](), "mse")
        x = np.random.default_rng(0).normal(size=(6, 4, 2)).astype("float32")
        y = x.sum(axis=2, keepdims=True)
        x[:, 3], y[:, 3] = 0.0, padding
        model.fit(x, y, batch_size=6, epochs=3, verbose=0)
        results.append(model.get_weights())
    assert same(*results)


def test_methods_agree_with_one_another_on_a_linear_model():
    """One step of Newton, Gauss-Newton, NewtonCG and many of the others: the same minimum of a convex quadratic."""
    x, _ = rows()
    y = x @ np.array([[1.0], [2.0], [-1.0]], "float32") + 0.5
    for name, epochs in {"newton": 1, "gauss_newton": 1, "levenberg": 15, "newton_cg": 15, "lbfgs": 25}.items():
        tf.random.set_seed(1)
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        exact = {"newton": optimizers.Newton, "gauss_newton": optimizers.GaussNewton}
        model.compile(exact.get(name, KINDS[name])(), "mse")
        model.fit(x, y, batch_size=30, epochs=epochs, verbose=0)
        np.testing.assert_allclose(model.get_weights()[0][:, 0], [1.0, 2.0, -1.0], atol=2e-3, err_msg=name)


def test_a_loss_that_is_not_finite_moves_nothing_and_shows():
    for kind in KINDS.values():
        model, (x, y) = network(), rows()
        model.compile(kind(), CROSS_ENTROPY)
        model.train_on_batch(x, y)
        before = [v.numpy() for v in model.trainable_variables]
        x[3, 1] = np.nan
        assert np.isnan(model.train_on_batch(x, y, return_dict=True)["loss"])
        assert same(before, [v.numpy() for v in model.trainable_variables])


def test_moving_averages_take_the_place_of_the_weights_at_the_end():
    def fitted(use_ema):
        model, (x, y), steps = network(), rows(), []
        model.compile(optimizers.Newton(damping=1.0, use_ema=use_ema, ema_momentum=0.9), CROSS_ENTROPY)
        record = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: steps.append(model.get_weights()[0]))
        model.fit(x, y, epochs=3, batch_size=30, verbose=0, callbacks=[record])
        return steps, model.get_weights()[0]

    steps, found = fitted(True)
    assert same(steps, fitted(False)[0])
    average = steps[0]
    for step in steps[1:]:
        average = 0.9 * average + 0.1 * step
    np.testing.assert_allclose(found, average, rtol=1e-5)


def test_mixed_precision_keeps_systems_of_equations_in_float32_and_scaled_losses_are_refused():
    x, y = rows()
    try:
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
        for kind in KINDS.values():
            tf.random.set_seed(1)
            layers = [keras.layers.Dense(5, "tanh", name="hidden"), keras.layers.Dense(2, name="head")]
            model = keras.Sequential([keras.Input((3,)), *layers])
            model.compile(kind(), CROSS_ENTROPY)
            losses = model.fit(x, y, batch_size=30, epochs=6, verbose=0).history["loss"]
            assert losses[-1] < losses[0], model.optimizer.name
            assert {v.dtype.name for v in model.trainable_variables} == {"float32"}
        keras.mixed_precision.set_global_policy("mixed_float16")
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="head")])
        with pytest.raises(ValueError, match=r"'newton.*given the loss.*mixed_bfloat16"):
            model.compile(optimizers.Newton(), CROSS_ENTROPY)
        with pytest.raises(ValueError, match="given the loss"):
            model.compile({"head": "newton"}, CROSS_ENTROPY)
    finally:
        keras.mixed_precision.set_global_policy(None)


def test_variables_of_low_precision_are_refused():
    w = tf.Variable([1.0], dtype="float16")
    with pytest.raises(TypeError, match=r"float32 or float64, the variables are float16"):
        optimizers.Newton().minimize(lambda: tf.reduce_sum(w**2), [w])


def test_learning_rate_callbacks_reach_second_order_optimizers():
    model, (x, y) = network(), rows()
    model.compile(optimizers.Newton(1.0, damping=0.1), CROSS_ENTROPY)
    halve = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    history = model.fit(x, y, epochs=3, verbose=0, callbacks=[halve]).history
    assert history["learning_rate"] == [0.5, 0.25, 0.125]
    scheduled = network()
    scheduled.compile(optimizers.Newton(optimizers.schedules.ExponentialDecay(1.0, 1, 0.5), damping=0.1), CROSS_ENTROPY)
    scheduled.fit(x, y, batch_size=30, epochs=3, verbose=0)
    assert float(scheduled.optimizer.learning_rate) == 0.125


@every_kind
def test_training_continues_from_a_checkpoint_as_if_it_had_not_stopped(kind, tmp_path):
    x, y = rows()

    def go(model, epochs):
        tf.random.set_seed(5)
        model.fit(x, y, batch_size=15, epochs=epochs, shuffle=False, verbose=0)

    model = network()
    model.compile(kind(), CROSS_ENTROPY)
    go(model, 2)
    path = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(str(tmp_path / "state"))
    go(model, 2)
    other = network(seed=9)
    other.compile(kind(), CROSS_ENTROPY)
    other.optimizer.build(other.trainable_variables)
    tf.train.Checkpoint(model=other, optimizer=other.optimizer).restore(path).assert_consumed()
    go(other, 2)
    assert same(state(model), state(other))


# Per layer -------------------------------------------------------------------------------------------------------------


def moved(model, before):
    return {w.path.split("/", 1)[1] for w, old in zip(model.weights, before, strict=True) if not np.array_equal(w.numpy(), old)}


@pytest.mark.parametrize("pattern", ["hidden", "hid*", "hidden.*", "net.hidden", "layer"])
def test_fit_takes_rules_by_name_glob_and_layer_and_none_freezes(pattern):
    model, (x, y) = network(), rows()
    before = model.get_weights()
    model.compile({model.get_layer("hidden") if pattern == "layer" else pattern: None, "*": "adam"}, CROSS_ENTROPY)
    model.fit(x, y, epochs=2, verbose=0)
    assert isinstance(model.optimizer, optimizers.PerLayer)
    assert not any(name.startswith("hidden") for name in moved(model, before))
    assert {"norm/gamma", "head/kernel", "head/bias"} <= moved(model, before)


def test_learning_rate_callbacks_set_and_log_every_member():
    (x, y), callbacks = rows(), keras.callbacks

    def fitted(callback):
        model = network()
        rules = {"hidden": optimizers.SGD(0.8, name="below"), "*": optimizers.Adam(0.08, name="rest"), "head": 0.5}
        model.compile(rules, CROSS_ENTROPY)
        last = model.optimizer.optimizers[-1].name
        history = model.fit(x, y, epochs=3, verbose=0, callbacks=[callback]).history
        return [history[f"learning_rate_{name}"] for name in ("below", "rest", last)]

    expected = [[0.4, 0.2, 0.1], [0.04, 0.02, 0.01], [0.02, 0.01, 0.005]]
    scheduler = callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    np.testing.assert_allclose(fitted(scheduler), expected, rtol=1e-6)
    reduce = callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=1, min_delta=100.0)
    np.testing.assert_allclose(fitted(reduce), [[0.8, 0.8, 0.4], [0.08, 0.08, 0.04], [0.04, 0.04, 0.02]], rtol=1e-6)


def test_schedules_of_members_count_their_own_steps():
    model, (x, y) = network(), rows()
    decay = optimizers.schedules.ExponentialDecay(1.0, 1, 0.5)
    model.compile({"head": optimizers.Every(2, optimizers.SGD(decay)), "*": optimizers.SGD(decay)}, CROSS_ENTROPY)
    model.fit(x, y, batch_size=30, epochs=4, verbose=0)
    assert {label: float(rate) for label, rate in model.optimizer.learning_rate.items()} == {"head": 0.25, "*": 0.0625}


@pytest.mark.parametrize(
    "options",
    [{"clipnorm": 1e-3}, {"gradient_accumulation_steps": 2}, {"use_ema": True, "ema_momentum": 0.5}, {"weight_decay": 0.1}],
    ids=lambda options: next(iter(options)),
)
def test_members_keep_their_own_options(options):
    """One member with an option that the other has not: each as if it were alone with its layers."""
    model, plain, (x, y) = network(), network(), rows()
    model.compile({"head": optimizers.SGD(0.1, **options), "*": optimizers.SGD(0.1)}, CROSS_ENTROPY)
    plain.compile({"head": optimizers.SGD(0.1), "*": optimizers.SGD(0.1)}, CROSS_ENTROPY)
    for one in (model, plain):
        tf.random.set_seed(3)
        one.fit(x, y, batch_size=30, epochs=1 + ("use_ema" in options), verbose=0)
    heads = [one.get_layer("head").get_weights() for one in (model, plain)]
    below = [one.get_layer("norm").get_weights() for one in (model, plain)]
    assert not np.allclose(heads[0][0], heads[1][0], rtol=1e-6)
    assert same(*below) or "use_ema" in options


def test_a_loss_scale_goes_around_all_members():
    try:
        keras.mixed_precision.set_global_policy("mixed_float16")
        tf.random.set_seed(1)
        layers = [keras.layers.Dense(5, "tanh", name="hidden"), keras.layers.Dense(2, name="head")]
        model, (x, y) = keras.Sequential([keras.Input((3,)), *layers]), rows()
        model.compile({"head": optimizers.SGD(0.1), "*": optimizers.Adam(0.05)}, CROSS_ENTROPY)
        assert isinstance(model.optimizer, optimizers.LossScaleOptimizer)
        losses = model.fit(x, y, epochs=15, verbose=0).history["loss"]
        assert losses[-1] < 0.8 * losses[0]
    finally:
        keras.mixed_precision.set_global_policy(None)


def test_the_summary_names_the_optimizer_of_each_layer():
    model = network()
    model.compile({"hidden": optimizers.Newton(name="second"), "norm": None, "*": optimizers.Adam(name="first")}, CROSS_ENTROPY)
    lines = []
    model.summary(print_fn=lines.append)
    rows = [line.split("│") for line in "\n".join(lines).splitlines() if line.startswith("│")][1:]
    found = {row[1].split()[0]: row[-2].strip() for row in rows}
    assert found == {"hidden": "second", "norm": "none", "drop": "-", "head": "first"}
