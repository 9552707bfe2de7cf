"""All or nothing, saving and loading, copies, configurations, learning rates, loss scales, and clear errors."""

import copy
import json

import numpy as np
import pytest
from in_one_test import in_one_test
from interrupts import exchange_fails
from optimizer_cases import CLASSES, FORMULAS, OPTIONS, gradients, optimizers, values, weights

import minikeras as tf
from minikeras.errors import ShapeError

schedules = optimizers.schedules
every_formula = pytest.mark.parametrize("name", FORMULAS)
every_option = pytest.mark.parametrize("option", OPTIONS)


def equal(mine, theirs):
    return len(mine) == len(theirs) and all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


# All or nothing ----------------------------------------------------------------------------------------------------------


@every_formula
@in_one_test(option=OPTIONS, steps_before=[0, 1, 2])
def test_an_interrupt_anywhere_in_the_step_leaves_everything_as_it_was(name, option, steps_before):
    held, optimizer = weights(), FORMULAS[name](**OPTIONS[option])
    for step in range(steps_before):
        optimizer.apply(gradients(step), held)
    before = values([*held, *optimizer.variables])
    for at in (1, 2, 5, 9):
        with exchange_fails(at) as calls:
            try:
                optimizer.apply(gradients(9), held)
            except KeyboardInterrupt:
                assert equal(values([*held, *optimizer.variables]), before)
                assert optimizer.built is bool(steps_before)
            else:  # a step that binds fewer Variables than that
                assert len(calls) < at
                break


@pytest.mark.parametrize("at", range(1, 7))
def test_an_interrupt_under_a_dynamic_loss_scale_leaves_scale_and_weights(at):
    held = weights()[:1]
    optimizer = optimizers.LossScaleOptimizer(optimizers.Adam(0.1), initial_scale=4.0, dynamic_growth_steps=1)
    optimizer.build(held)
    before = values([*held, *optimizer.variables])
    with exchange_fails(at), pytest.raises(KeyboardInterrupt):
        optimizer.apply(gradients(0)[:1], held)
    assert equal(values([*held, *optimizer.variables]), before)


@every_option
def test_a_constraint_that_fails_leaves_everything_as_it_was(option):
    def broken(w):
        raise FloatingPointError

    held = [*weights(), tf.Variable(np.ones(2))]
    optimizer = optimizers.Adam(0.1, **OPTIONS[option])
    steps = [[*gradients(step), tf.ones([2], "float64")] for step in range(3)]
    optimizer.apply(steps[0], held)
    held[-1].constraint = broken
    before = values([*held, *optimizer.variables])
    with pytest.raises(FloatingPointError):
        optimizer.apply(steps[1], held)
        before = values([*held, *optimizer.variables])  # accumulation: the step after that updates
        optimizer.apply(steps[2], held)
    assert equal(values([*held, *optimizer.variables]), before)


def test_a_gradient_that_does_not_fit_builds_nothing():
    held, optimizer = weights(), optimizers.Adam(0.1)
    with pytest.raises(ShapeError, match=r"the gradient of 'bias:0' has shape \(3, 4\), the variable \(4,\)"):
        optimizer.apply([gradients(0)[0]] * 2, held[:2])
    with pytest.raises(ValueError, match="a variable is given twice"):
        optimizer.apply([gradients(0)[0]] * 2, [held[0]] * 2)
    assert not optimizer.built and int(optimizer.iterations) == 0


# Saving, loading, copying ------------------------------------------------------------------------------------------------


@every_formula
@in_one_test(option=OPTIONS)
def test_a_saved_optimizer_goes_on_where_it_was(name, option):
    held, optimizer = weights(), FORMULAS[name](**OPTIONS[option])
    for step in range(3):
        optimizer.apply(gradients(step), held)
    store = {}
    optimizer.save_own_variables(store)
    assert list(store) == [str(position) for position in range(len(optimizer.variables))]
    others, other = weights(seed=2), FORMULAS[name](**OPTIONS[option])
    for variable, theirs in zip(others, held, strict=True):
        variable.assign(theirs)
    other.build(others)
    other.load_own_variables(store)
    for step in range(3, 6):
        optimizer.apply(gradients(step), held)
        other.apply(gradients(step), others)
    assert equal(values([*held, *optimizer.variables]), values([*others, *other.variables]))


def test_a_state_that_does_not_fit_is_refused_whole():
    held, optimizer = weights(), optimizers.Adam(0.1)
    optimizer.apply(gradients(0), held)
    store = {}
    optimizer.save_own_variables(store)
    with pytest.raises(ValueError, match=r"has 2 variables, the saved one 10.*call optimizer.build\(model.trainable"):
        optimizers.Adam(0.1).load_own_variables(store)
    before = values(optimizer.variables)
    store["0"], store["3"] = np.int64(99), np.zeros((9, 9))
    with pytest.raises(ShapeError, match=r"/kernel_velocity' has shape \(3, 4\), the saved one \(9, 9\). Nothing was loaded"):
        optimizer.load_own_variables(store)
    assert equal(values(optimizer.variables), before)


def test_variables_can_be_assigned_one_by_one():
    w, optimizer = tf.Variable(1.0), optimizers.SGD(0.5, momentum=0.5)
    optimizer.build([w])
    iteration, rate, momentum = optimizer.variables
    rate.assign(0.25), momentum.assign(4.0), iteration.assign(7)
    optimizer.apply([tf.constant(0.0)], [w])
    assert w.numpy() == 3.0 and int(optimizer.iterations) == 8 and float(optimizer.learning_rate) == 0.25


@pytest.mark.parametrize("name", FORMULAS | CLASSES)
def test_a_copy_of_weights_and_optimizer_goes_its_own_way(name):
    held, optimizer = weights(), (FORMULAS | CLASSES)[name]()
    optimizer.apply(gradients(0), held)
    twin, twins = copy.deepcopy((optimizer, held))
    before = values([*held, *optimizer.variables])
    twin.apply(gradients(1), twins)
    assert equal(values([*held, *optimizer.variables]), before)
    optimizer.apply(gradients(1), held)
    assert equal(values([*held, *optimizer.variables]), values([*twins, *twin.variables]))


def test_a_slot_is_found_by_variable_and_name():
    held, optimizer = weights(), optimizers.Adam(use_ema=True)
    optimizer.build(held)
    assert optimizer.slot(held[1], "velocity").name == "bias_velocity"
    with pytest.raises(ValueError, match=r"keeps no 'speed' for 'bias:0'; it keeps \['average', 'momentum', 'velocity'\]"):
        optimizer.slot(held[1], "speed")
    with pytest.raises(ValueError, match="keeps no 'average' for 'Variable:0'; it keeps nothing"):
        optimizer.slot(tf.Variable(1.0), "average")


# Configurations ----------------------------------------------------------------------------------------------------------


@every_formula
@in_one_test(option=OPTIONS)
def test_a_configuration_makes_the_same_optimizer(name, option):
    optimizer = FORMULAS[name](**OPTIONS[option])
    written = json.loads(json.dumps(optimizers.serialize(optimizer)))
    assert written["module"] == "keras.optimizers" and written["class_name"] == type(optimizer).__name__
    again = optimizers.deserialize(written)
    assert type(again) is type(optimizer) and again.get_config() == optimizer.get_config()
    held, others = weights(), weights()
    for step in range(3):
        optimizer.apply(gradients(step), held)
        again.apply(gradients(step), others)
    assert equal(values([*held, *optimizer.variables]), values([*others, *again.variables]))


def test_a_schedule_and_an_inner_optimizer_are_part_of_the_configuration():
    inner = optimizers.AdamW(schedules.CosineDecayRestarts(0.1, 5), clipnorm=2.0)
    optimizer = optimizers.LossScaleOptimizer(inner, initial_scale=4.0, dynamic_growth_steps=7, name="scaled")
    written = json.loads(json.dumps(optimizers.serialize(optimizer)))
    again = optimizers.get(written)
    assert again.get_config() == optimizer.get_config() and again.name == "scaled"
    assert type(again.inner_optimizer) is optimizers.AdamW and again.inner_optimizer.clipnorm == 2.0
    assert float(again.learning_rate) == float(optimizer.learning_rate)
    assert optimizers.Adam.from_config(inner.get_config()).weight_decay == 0.004


def test_a_function_as_learning_rate_cannot_be_written_down():
    with pytest.warns(UserWarning, match="A lambda is not written"):
        written = optimizers.serialize(optimizers.SGD(lambda step: 0.1))
    with pytest.raises(ValueError, match="nothing in a configuration is ever run"):
        optimizers.deserialize(written)


@pytest.mark.parametrize("name", [name for name in optimizers.__all__ if name.lower() in ("sgd", "rmsprop", "adam", "lion")])
def test_names_are_found_in_any_case(name):
    for written in (name, name.lower(), name.upper()):
        assert type(optimizers.get(written)) is getattr(optimizers, name)
    assert type(optimizers.get({"class_name": name.lower(), "config": {"learning_rate": 0.5}})) is getattr(optimizers, name)


def test_what_is_no_optimizer_is_refused():
    assert optimizers.get(None) is None
    optimizer = optimizers.SGD()
    assert optimizers.get(optimizer) is optimizer and type(optimizers.get(optimizers.SGD)) is optimizers.SGD
    with pytest.raises(ValueError, match="Unknown optimizer: 'adan'. Did you mean"):
        optimizers.get("adan")
    for thing in (len, 3):
        with pytest.raises(ValueError, match="Could not interpret optimizer identifier"):
            optimizers.get(thing)


# Learning rates ----------------------------------------------------------------------------------------------------------


def test_a_learning_rate_is_set_by_number_or_schedule():
    optimizer = optimizers.SGD(0.5)
    optimizer.learning_rate = tf.constant(0.25)
    assert float(optimizer.lr) == 0.25 and len(optimizer.variables) == 2
    optimizer.learning_rate = schedules.ExponentialDecay(1.0, 1, 0.5)
    assert float(optimizer.learning_rate) == 1.0 and len(optimizer.variables) == 1
    with pytest.raises(TypeError, match="cannot be set to a number"):
        optimizer.learning_rate = 0.1
    optimizer.learning_rate = lambda rate=0.125: rate
    assert float(optimizer.learning_rate) == 0.125


def test_a_schedule_of_one_s_own_may_compute_with_tensors():
    class Warmup(schedules.LearningRateSchedule):
        settings = ("steps",)

        def __init__(self, steps):
            self.steps = steps

        def __call__(self, step):
            return tf.cast(step + 1, "float32") / self.steps

    w, optimizer = tf.Variable(0.0), optimizers.SGD(Warmup(4))
    for _ in range(4):
        optimizer.apply([tf.constant(1.0)], [w])
    assert w.numpy() == -2.5 and Warmup.from_config(Warmup(4).get_config()).steps == 4
    with pytest.raises(NotImplementedError, match=r"LearningRateSchedule must implement rate\(step\) or __call__\(step\)"):
        schedules.LearningRateSchedule()(0)


# Loss scales -------------------------------------------------------------------------------------------------------------


def test_a_scaled_loss_gives_the_step_of_the_plain_loss():
    plain, fixed, dynamic = (tf.Variable([1.0, -2.0]) for _ in range(3))
    scaled = optimizers.Adam(0.1, loss_scale_factor=1024.0)
    for optimizer, w in (
        (optimizers.Adam(0.1), plain),
        (scaled, fixed),
        (optimizers.LossScaleOptimizer(optimizers.Adam(0.1)), dynamic),
    ):
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = optimizer.scale_loss(tf.reduce_sum(w**3))
            optimizer.apply([tape.gradient(loss, w)], [w])
    assert plain.numpy().tolist() == fixed.numpy().tolist() == dynamic.numpy().tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_skips_the_step_and_halves_the_scale(bad):
    held = weights()
    options = {"use_ema": True, "gradient_accumulation_steps": 2, "weight_decay": 0.5}
    optimizer = optimizers.LossScaleOptimizer(optimizers.Adam(0.1, **options), initial_scale=8.0, dynamic_growth_steps=2)
    optimizer.apply(gradients(0), held)
    before = values([*held, *optimizer.inner_optimizer.variables])
    broken = [g.numpy() for g in gradients(1)]
    broken[3][1, 2, 0] = bad
    optimizer.apply([tf.constant(g) for g in broken], held)
    assert equal(values([*held, *optimizer.inner_optimizer.variables]), before)
    assert (optimizer.dynamic_scale.numpy(), int(optimizer.step_counter)) == (4.0, 0)
    for expected in ((4.0, 1), (8.0, 0), (8.0, 1)):
        optimizer.apply(gradients(2), held)
        assert (optimizer.dynamic_scale.numpy(), int(optimizer.step_counter)) == expected


def test_a_loss_scale_optimizer_is_its_inner_optimizer_in_all_else():
    inner, w = optimizers.SGD(0.5, momentum=0.5, use_ema=True), tf.Variable(1.0, name="w")
    inner.apply([tf.constant(1.0)], [w])
    optimizer = optimizers.LossScaleOptimizer(inner)
    assert optimizer.built and optimizer.slot(w, "momentum").numpy() == -0.5 and int(optimizer.iterations) == 1
    optimizer.learning_rate = 0.25
    assert float(inner.learning_rate) == 0.25 == float(optimizer.lr)
    names = [variable.name.removesuffix(":0") for variable in optimizer.variables]
    own = ["iteration", "learning_rate", "step_counter", "dynamic_scale"]
    assert names == [*own, "iteration", "learning_rate", "w_average", "w_momentum"]
    optimizer.finalize_variable_values([w])
    assert w.numpy() == inner.slot(w, "average").numpy()
    fresh = optimizers.LossScaleOptimizer(optimizers.SGD(0.5, weight_decay=1.0), initial_scale=1.0)
    fresh.exclude_from_weight_decay(var_names=["w"])
    v = tf.Variable(2.0, name="w")
    fresh.apply([tf.constant(0.0)], [v])
    assert v.numpy() == 2.0
    twin = copy.deepcopy(fresh)
    assert twin.built and twin.state.slots == twin.inner_optimizer.state.slots


# Errors ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optimizers.SGD(momentun=0.9), "Unrecognized keyword arguments passed to SGD: {'momentun': 0.9}"),
        (lambda: optimizers.SGD(ema_momentum=1.5), r"`ema_momentum` must be in the range \[0, 1\]. Received: ema_momentum=1.5"),
        (lambda: optimizers.SGD(ema_overwrite_frequency=0), "`ema_overwrite_frequency` must be an integer >= 1 or None"),
        (lambda: optimizers.SGD(gradient_accumulation_steps=1), "`gradient_accumulation_steps` must be an integer >= 2 or"),
        (lambda: optimizers.SGD(gradient_accumulation_steps=2.5), "steps` must be an integer >= 2 or None. Received: .*=2.5"),
        (lambda: optimizers.SGD(loss_scale_factor=0.0), "`loss_scale_factor` must be above 0"),
        (lambda: optimizers.AdamW(weight_decay=None), "AdamW: `weight_decay` is required"),
        (lambda: optimizers.Adagrad(initial_accumulator_value=-1.0), "`initial_accumulator_value` must be >= 0, found -1.0"),
        (lambda: optimizers.Ftrl(learning_rate_power=0.5), "`learning_rate_power` must be <= 0, found 0.5"),
        (lambda: optimizers.Ftrl(l1_regularization_strength=-0.5), "`l1_regularization_strength` must be >= 0, found -0.5"),
        (lambda: optimizers.Lion(beta_1=0.0), "`beta_1` must be between .* Found 0.0"),
        (lambda: optimizers.ScheduleFreeAdamW(beta_1=1.0), r"`beta_1` must be in \(0, 1\), found 1.0"),
        (lambda: optimizers.LossScaleOptimizer("adam"), "`inner_optimizer` must be an optimizer, found 'adam'"),
        (lambda: optimizers.LossScaleOptimizer(optimizers.SGD(), clipnorm=1.0), "does not support {'clipnorm': 1.0}. Set them"),
        (lambda: optimizers.LossScaleOptimizer(optimizers.LossScaleOptimizer(optimizers.SGD())), "would be divided twice"),
        (lambda: schedules.ExponentialDecay(0.1, 0, 0.5), "Argument `decay_steps` must be > 0. Received: decay_steps=0"),
        (lambda: schedules.CosineDecayRestarts(0.1, -1), "Argument `first_decay_steps` must be > 0"),
        (lambda: schedules.CosineDecayRestarts(0.1, 5, t_mul=0.5), "`t_mul` must be >= 1"),
        (lambda: schedules.PiecewiseConstantDecay([1, 2], [0.1, 0.2]), "boundaries should be 1 less than the length of values"),
        (lambda: schedules.PiecewiseConstantDecay([2, 1], [0.1, 0.2, 0.3]), "boundaries must be in ascending order"),
    ],
)
def test_options_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_all_variables_are_meant_when_none_are_given():
    held, optimizer = weights(), optimizers.SGD(1.0)
    optimizer.build(held)
    before = values(held)
    optimizer.apply(gradients(0))
    expected = [w - g.numpy() for w, g in zip(before, gradients(0), strict=True)]
    assert equal(values(held), expected)
    with pytest.raises(ValueError, match=r"2 gradients for 4 variables"):
        optimizer.apply(gradients(0)[:2])
    with pytest.raises(ValueError, match="SGD.*is not built yet"):
        optimizers.SGD(1.0).apply(gradients(0))


def test_a_dynamic_loss_scale_takes_away_a_fixed_one_and_says_so():
    inner = optimizers.SGD(0.5, loss_scale_factor=8.0)
    with pytest.warns(UserWarning, match="loss_scale_factor=8.0, and gradients would be divided twice. It is set to None"):
        optimizer = optimizers.LossScaleOptimizer(inner, initial_scale=4.0)
    w = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        loss = optimizer.scale_loss(w * w)
    optimizer.apply([tape.gradient(loss, w)], [w])
    assert float(w) == 0.0


def test_a_loss_scale_may_be_told_to_be_dynamic_as_in_keras_2():
    assert optimizers.LossScaleOptimizer(optimizers.SGD(), dynamic=True).get_config()
    with pytest.raises(ValueError, match="does not support {'dynamic': False}"):
        optimizers.LossScaleOptimizer(optimizers.SGD(), dynamic=False)


# Options that are set later ------------------------------------------------------------------------------------------------

SWITCHES = {
    "amsgrad": (lambda **options: optimizers.Adam(0.1, **options), {"amsgrad": True}),
    "momentum": (lambda **options: optimizers.SGD(0.1, **options), {"momentum": 0.9}),
    "momentum of RMSprop": (lambda **options: optimizers.RMSprop(0.1, **options), {"momentum": 0.9}),
    "centered": (lambda **options: optimizers.RMSprop(0.1, **options), {"centered": True}),
    "use_ema": (lambda **options: optimizers.Adam(0.1, **options), {"use_ema": True}),
    "accumulation": (lambda **options: optimizers.Adam(0.1, **options), {"gradient_accumulation_steps": 2}),
}
every_switch = pytest.mark.parametrize("switch", SWITCHES)
every_way = pytest.mark.parametrize("way", ["eager", "scaled", False, True])


def stepping(optimizer, held, way):
    """Takes a step, given its gradients."""
    outer = optimizers.LossScaleOptimizer(optimizer, initial_scale=1.0) if way == "scaled" else optimizer
    step = lambda *grads: outer.apply(list(grads), held)
    return step if way in ("eager", "scaled") else tf.function(step, jit_compile=way)


def switched(optimizer, given):
    for name, value in given.items():
        setattr(optimizer, name, value)


@every_switch
@every_way
def test_an_option_that_asks_for_slots_after_the_first_step_is_refused_and_nothing_changes(switch, way):
    """SGD and RMSprop left `momentum` alone without a word; others ended in IndexError, TypeError or an error of zip."""
    make, given = SWITCHES[switch]
    held, optimizer = weights("float32"), make()
    step = stepping(optimizer, held, way)
    for n in range(8):
        step(*gradients(n, "float32"))
    before, plain = values([*held, *optimizer.variables]), {name: getattr(optimizer, name) for name in given}
    switched(optimizer, given)
    with pytest.raises(ValueError, match="keeps no '.*it keeps.*before the first step.*built = False"):
        step(*gradients(8, "float32"))
    assert equal(values([*held, *optimizer.variables]), before)
    switched(optimizer, plain)
    step(*gradients(8, "float32"))
    switched(optimizer, given)
    optimizer.built = False
    step(*gradients(9, "float32"))
    assert len(optimizer.variables) == len(before)


@every_switch
@every_way
def test_slots_that_no_option_asks_for_any_more_are_left_alone(switch, way):
    """RMSprop took the mean of gradients for a momentum."""
    make, given = SWITCHES[switch]
    held, optimizer = weights("float32"), make(**given)
    twin_held, twin = weights("float32"), make()
    step, twin_step = stepping(optimizer, held, way), stepping(twin, twin_held, way)
    for n in range(8):
        step(*gradients(n, "float32"))
    slots = {slot.key: slot.numpy() for known in optimizer.checkpoint_slots() for slot in known[1].values()}
    twin.build(twin_held)
    switched(optimizer, {name: getattr(twin, name) for name in given})
    twin.set_weights(values(optimizer.variables))
    for variable, value in zip(twin_held, values(held), strict=True):
        variable.assign(value)
    step(*gradients(8, "float32"))
    twin_step(*gradients(8, "float32"))
    assert equal(values([*held, *optimizer.variables]), values([*twin_held, *twin.variables]))
    asked = {slot.key for slot in optimizer.variables}
    unasked = [slot for known in optimizer.checkpoint_slots() for slot in known[1].values() if slot.key not in asked]
    assert unasked and all(np.array_equal(slot.numpy(), slots[slot.key]) for slot in unasked)


@every_switch
def test_an_option_set_before_the_first_step_is_as_one_that_was_given(switch):
    make, given = SWITCHES[switch]
    held, optimizer, theirs, other = weights(), make(), weights(), make(**given)
    switched(optimizer, given)
    for n in range(3):
        optimizer.apply(gradients(n), held)
        other.apply(gradients(n), theirs)
    assert equal(values([*held, *optimizer.variables]), values([*theirs, *other.variables]))


def test_layers_that_muon_is_to_leave_to_adam_are_named_before_the_first_step():
    """Weight decay followed the new list, the formula did not."""
    held, optimizer = weights("float32"), optimizers.Muon(0.1)
    optimizer.apply(gradients(0, "float32"), held)
    before = values([*held, *optimizer.variables])
    optimizer.exclude_layers = ["kernel"]
    with pytest.raises(ValueError, match="keeps no 'velocity' for 'kernel.*it keeps .'momentum'.*before the first step"):
        optimizer.apply(gradients(1, "float32"), held)
    assert equal(values([*held, *optimizer.variables]), before)


@pytest.mark.parametrize("base", [optimizers.SGD, optimizers.Adam, optimizers.RMSprop])
@pytest.mark.parametrize("more", [(), ("extra",)])
def test_slots_that_a_users_subclass_names_itself_are_kept_whatever_the_options_of_its_base_are(base, more):
    """A name that is also that of an optional slot of the base was left out of them: the formula lacked an argument."""
    names = ("momentum", "velocity_hat", "average_gradient", *more)

    class Summed(base):
        def __init__(self, learning_rate=0.1):
            super().__init__(learning_rate)
            self.slot_groups = (names,)

        def formula(self, step, gradient, value, *sums):
            return value - 0.1 * sum(sums, gradient), *[one + gradient for one in sums]

    w, optimizer = tf.Variable(0.0), Summed()
    for _ in range(9):
        optimizer.apply([tf.constant(1.0)], [w])
    assert [optimizer.slot(w, name).numpy() for name in names] == [9.0] * len(names)
    assert [one.name for one in optimizer.variables[2:]] == [f"Variable_{name}" for name in names]
    np.testing.assert_allclose(w.numpy(), -0.9 - 3.6 * len(names), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("way", ["eager", "scaled", False, True])
@pytest.mark.parametrize("kind", ["Adam", "Lamb"])
def test_a_step_after_slots_were_dropped_begins_with_new_ones(kind, way, dtype):
    """A compiled step went on with the old slots, which nothing saved any more, or ended in KeyError."""
    pairs = [(weights(dtype), getattr(optimizers, kind)(0.1)) for _ in range(2)]
    (held, optimizer), (expected, plain) = pairs
    step = stepping(optimizer, held, way)
    for n in range(12):
        step(*gradients(n, dtype))
        plain.apply(gradients(n, dtype), expected)
        if n in (2, 8):
            optimizer.built = plain.built = False
    assert optimizer.built and len(optimizer.variables) == len(plain.variables)
    for mine, theirs in zip(values([*held, *optimizer.variables]), values([*expected, *plain.variables]), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5 if dtype == "float32" else 2e-2, atol=1e-6)
