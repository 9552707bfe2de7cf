"""What holds for every optimizer: subsets, accumulation, averages, portions, devices; and formulas that golden numbers miss."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_one_test import in_one_test
from optimizer_cases import FORMULAS, OPTIONS, SHAPES, gradients, optimizers, values, weights

import minikeras as tf
from minikeras.keras.optimizers.adagrad import adafactor_step, second_moment
from minikeras.keras.optimizers.sgd import orthogonalized

every_formula = pytest.mark.parametrize("name", FORMULAS)


def assert_same(actual, expected, rtol=1e-12):
    for mine, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-14)


# Subsets -----------------------------------------------------------------------------------------------------------------


@every_formula
@settings(max_examples=12)
@given(subsets=st.lists(st.sets(st.integers(0, len(SHAPES) - 1), min_size=1), min_size=1, max_size=4))
def test_any_subset_of_variables_is_updated_as_in_a_step_of_all_and_the_others_stay(name, subsets):
    held, optimizer = weights(), FORMULAS[name]()
    optimizer.build(held)
    for step, subset in enumerate(subsets):
        given_gradients = gradients(step)
        (whole, twins) = copy.deepcopy((optimizer, held))
        whole.apply(given_gradients, twins)
        before = values(held), [values(kept.slots.values()) for kept in optimizer.state.slots.values()]
        optimizer.apply([given_gradients[i] for i in subset], [held[i] for i in subset])
        for i, variable in enumerate(held):
            mine = [variable.numpy(), *values(optimizer.state.slots[variable.key].slots.values())]
            if i in subset:
                assert_same(mine, [twins[i].numpy(), *values(whole.state.slots[twins[i].key].slots.values())])
            else:
                assert all(np.array_equal(a, b) for a, b in zip(mine, [before[0][i], *before[1][i]], strict=True))
    assert int(optimizer.iterations) == len(subsets)


@every_formula
def test_slots_survive_freezing_without_a_rebuild(name):
    held, optimizer = weights(), FORMULAS[name]()
    optimizer.apply(gradients(0), held)
    kernel = held[0]
    slots = {slot: optimizer.slot(kernel, slot).numpy() for slot in optimizer.slot_names(kernel)}
    for step in (1, 2):
        optimizer.apply(gradients(step)[1:], held[1:])
    assert all(np.array_equal(optimizer.slot(kernel, slot).numpy(), value) for slot, value in slots.items())
    before = kernel.numpy()
    optimizer.apply(gradients(3), held)
    assert not np.array_equal(kernel.numpy(), before) and int(optimizer.iterations) == 4


def test_variables_that_are_built_later_join_those_that_are_known():
    first, second = tf.Variable([1.0]), tf.Variable([2.0], name="late")
    optimizer = optimizers.SGD(0.5, momentum=0.5, use_ema=True)
    optimizer.apply([tf.ones([1])], [first])
    with pytest.raises(ValueError, match=r"Unknown variable: .*'late:0'.* or call optimizer.build\(variables\) to add slots"):
        optimizer.apply([tf.ones([1]), tf.ones([1])], [first, second])
    optimizer.build([first, second])
    optimizer.apply([tf.ones([1]), tf.ones([1])], [first, second])
    assert first.numpy() == [-0.25] and second.numpy() == [1.5]
    np.testing.assert_allclose(optimizer.slot(second, "average").numpy(), [0.99 * 2.0 + 0.01 * 1.5])


# Accumulation and averages -----------------------------------------------------------------------------------------------


@every_formula
@pytest.mark.parametrize("steps", [2, 3])
def test_accumulating_is_a_step_with_the_mean_gradient(name, steps):
    held, plain = weights(), weights()
    optimizer, other = FORMULAS[name](gradient_accumulation_steps=steps), FORMULAS[name]()
    for update in range(3):
        parts = [gradients(10 * update + micro) for micro in range(steps)]
        before = values(held)
        for part in parts[:-1]:
            optimizer.apply(part, held)
            assert all(np.array_equal(a, b) for a, b in zip(values(held), before, strict=True))
        optimizer.apply(parts[-1], held)
        other.apply([tf.constant(np.mean([g.numpy() for g in column], axis=0)) for column in zip(*parts, strict=True)], plain)
        assert_same(values(held), values(plain), rtol=1e-9)
        assert not any(optimizer.slot(variable, "gradient_accumulator").numpy().any() for variable in held)
        assert int(optimizer.iterations) == update + 1


def test_what_was_gathered_for_an_absent_variable_is_dropped_at_the_update_and_a_missing_gradient_counts_as_zero():
    a, b = tf.Variable(0.0), tf.Variable(0.0)
    optimizer = optimizers.SGD(1.0, gradient_accumulation_steps=2)
    two = tf.constant(2.0)
    optimizer.apply([two, two], [a, b])
    optimizer.apply([two], [a])
    assert (a.numpy(), b.numpy()) == (-2.0, 0.0)
    optimizer.apply([two], [a])
    optimizer.apply([two, two], [a, b])
    assert (a.numpy(), b.numpy()) == (-4.0, -1.0)


def test_a_schedule_sees_every_step_while_the_formula_counts_updates():
    seen = []
    optimizer = optimizers.SGD(lambda step: seen.append(int(step)) or 1.0, gradient_accumulation_steps=3)
    w = tf.Variable(0.0)
    for _ in range(6):
        optimizer.apply([tf.constant(1.0)], [w])
    assert seen == [2, 5] and int(optimizer.iterations) == 2 and w.numpy() == -2.0


@every_formula
def test_averages_replace_the_weights_every_so_many_updates_and_at_the_end(name):
    """a <- w at first, then 0.75 a + 0.25 w; after updates 3 and 6 the weights are the averages."""
    held = weights()
    optimizer = FORMULAS[name](use_ema=True, ema_momentum=0.75, ema_overwrite_frequency=3)
    optimizer.build(held)
    plain = FORMULAS[name]()
    averages = None
    for step in range(7):
        (other, twins) = plain, weights()
        other.build(twins)
        for twin, variable in zip(twins, held, strict=True):
            twin.assign(variable)
        for twin, variable in zip(twins, held, strict=True):
            for slot in other.slot_names(twin):
                other.slot(twin, slot).assign(optimizer.slot(variable, slot))
        other.state.iterations.assign(optimizer.state.iterations)
        if name == "Nadam":
            other._product.assign(optimizer._product)
        other.apply(gradients(step), twins)
        new = values(twins)
        averages = new if averages is None else [0.75 * a + 0.25 * w for a, w in zip(averages, new, strict=True)]
        optimizer.apply(gradients(step), held)
        assert_same(values(optimizer.slot(variable, "average") for variable in held), averages)
        assert_same(values(held), averages if step in (2, 5) else new)
    optimizer.finalize_variable_values(held)
    assert_same(values(held), averages)


def test_before_the_first_step_the_averages_are_the_weights():
    held, optimizer = weights(), optimizers.Adam(use_ema=True)
    before = values(held)
    optimizer.finalize_variable_values(held)
    optimizer.build(held)
    optimizer.finalize_variable_values(held)
    assert all(np.array_equal(a, b) for a, b in zip(values(held), before, strict=True))
    stranger = tf.Variable(5.0)
    optimizer.finalize_variable_values([*held, stranger])
    assert stranger.numpy() == 5.0


def test_an_average_follows_a_variable_that_is_left_out_too():
    a, b = tf.Variable(1.0), tf.Variable(1.0)
    optimizer = optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    optimizer.apply([tf.constant(1.0)] * 2, [a, b])
    b.assign(4.0)
    optimizer.apply([tf.constant(1.0)], [a])
    assert optimizer.slot(a, "average").numpy() == -0.5 and optimizer.slot(b, "average").numpy() == 2.0


# Portions and devices ----------------------------------------------------------------------------------------------------


@every_formula
@in_one_test(option=OPTIONS)
def test_variables_are_updated_the_same_together_and_one_by_one(name, option):
    together, alone = weights(), weights()
    optimizer, other = FORMULAS[name](**OPTIONS[option]), FORMULAS[name](**OPTIONS[option])
    for step in range(4):
        optimizer.apply(gradients(step), together)
    other.elementwise = False
    for step in range(4):
        other.apply(gradients(step), alone)
    assert_same(values(together + optimizer.variables), values(alone + other.variables))


def test_mixed_dtypes_and_many_small_variables_do_not_mix():
    dtypes = ["float32", "float64", "float16"]
    held = [tf.Variable(np.ones(3), dtype=dtypes[i % 3]) for i in range(60)]
    optimizer = optimizers.Adam(0.25)
    optimizer.apply([tf.ones([3], variable.dtype) for variable in held], held)
    assert [variable.dtype.name for variable in held] == [dtypes[i % 3] for i in range(60)]
    for variable in held:
        np.testing.assert_allclose(variable.numpy(), 0.75, rtol=1e-3)


@every_formula
@in_one_test(option=OPTIONS)
def test_arrays_of_a_device_stay_there_and_give_the_same_numbers(name, option):
    """The strict array refuses every hidden way to the host; learning rate and counters live there from the start."""
    expected, optimizer = weights("float32"), FORMULAS[name](**OPTIONS[option])
    for step in range(4):
        optimizer.apply(gradients(step, "float32"), expected)
    with tf.device("STRICT:0"):
        held, other = weights("float32"), FORMULAS[name](**OPTIONS[option])
        steps = [gradients(step, "float32") for step in range(4)]
        for step in steps[:2]:
            other.apply(step, held)
    for step in steps[2:]:  # outside the block too
        other.apply(step, held)
    assert {type(variable.array).__name__ for variable in held} == {"StrictArray"}
    slots = [slot for kept in other.state.slots.values() for slot in kept.slots.values()]
    assert {type(slot.array).__name__ for slot in slots} <= {"StrictArray"}
    assert_same(values(held + other.variables), values(expected + optimizer.variables), rtol=1e-5)


def test_a_schedule_is_asked_on_the_host_whatever_the_device():
    with tf.device("STRICT:0"):
        w = tf.Variable([1.0])
        optimizer = optimizers.SGD(optimizers.schedules.ExponentialDecay(1.0, 1, 0.5), global_clipnorm=1.0)
        for _ in range(2):
            optimizer.apply([tf.ones([1])], [w])
    np.testing.assert_allclose(w.numpy(), [-0.5])


# Gradients ---------------------------------------------------------------------------------------------------------------


def test_gradients_of_other_kinds_are_taken_too():
    w = tf.Variable(np.zeros((3, 2)), dtype="float32")
    optimizer = optimizers.SGD(1.0)
    optimizer.apply([np.ones((3, 2), "float64")], [w])
    optimizer.apply([[[1, 1], [1, 1], [1, 1]]], [w])
    assert w.dtype == tf.float32 and (w.numpy() == -2.0).all()


@pytest.mark.skipif(not hasattr(tf, "IndexedSlices"), reason="no IndexedSlices yet")
def test_rows_that_occur_twice_in_a_sparse_gradient_add_up():
    table = tf.Variable(np.zeros((3, 2)), dtype="float32")
    slices = tf.IndexedSlices(tf.constant([[1.0, 1.0], [2.0, 2.0]]), tf.constant([1, 1]), tf.constant([3, 2]))
    optimizers.SGD(1.0).apply([slices], [table])
    assert table.numpy().tolist() == [[0.0, 0.0], [-3.0, -3.0], [0.0, 0.0]]


def test_clipping_follows_its_formulas_at_zero_and_infinity():
    g, zero = np.array([3.0, -4.0]), np.zeros(2)

    def clipped(gradients, **option):
        held = [tf.Variable(np.zeros(len(one))) for one in gradients]
        optimizers.SGD(1.0, **option).apply([tf.constant(one) for one in gradients], held)
        return [-one.numpy() for one in held]

    assert_same(clipped([g, zero, g / 10], clipnorm=1.0), [g / 5, zero, g / 10])
    assert_same(clipped([g, zero], clipvalue=3.5), [[3.0, -3.5], zero])
    assert_same(clipped([g, np.array([12.0])], global_clipnorm=1.0), [g / 13, [12 / 13]])
    assert_same(clipped([g, zero], global_clipnorm=13.0), [g, zero])
    for bad in (np.inf, np.nan):
        assert all(np.isnan(x).all() for x in clipped([np.array([bad, 1.0]), g], global_clipnorm=1.0))
    assert clipped([np.array([1.0, np.inf])], clipnorm=1.0)[0][0] == 0.0


# Weight decay ------------------------------------------------------------------------------------------------------------


def test_variables_are_left_out_of_weight_decay_by_object_and_by_name():
    held = weights()
    optimizer = optimizers.SGD(0.5, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_list=[held[0]])
    optimizer.exclude_from_weight_decay(var_names=["^bi", "nothing"])
    before = values(held)
    optimizer.apply([tf.zeros_like(variable) for variable in held], held)
    shrunk = [after / w for after, w in zip(values(held), before, strict=True)]
    assert_same(shrunk, [np.ones((3, 4)), np.ones(4), 0.75, np.full((2, 3, 2), 0.75)])


def test_muon_decays_matrices_and_the_rest_at_rates_of_their_own():
    matrix, vector = tf.Variable(np.ones((2, 2))), tf.Variable(np.ones(2))
    table, head = tf.Variable(np.ones((2, 2)), name="embedding"), tf.Variable(np.ones((2, 2)), name="head")
    optimizer = optimizers.Muon(0.5, weight_decay=0.5, adam_weight_decay=1.0, exclude_layers=["nothing", "head"])
    held = [matrix, vector, table, head]
    optimizer.apply([tf.zeros_like(variable) for variable in held], held)
    assert_same(values(held), [np.full((2, 2), 0.75), np.full(2, 0.5), np.full((2, 2), 0.5), np.full((2, 2), 0.5)])
    assert [list(optimizer.state.slots[v.key].slots) for v in held] == [["momentum"], *[["momentum", "velocity"]] * 3]


@pytest.mark.parametrize("pattern", ["(a+)+$", "^head", "head|tail", r"dense_\d", "dense.*", 3, None])
def test_muon_takes_keywords_and_no_patterns(pattern):
    """A file could hold a pattern that takes years to match."""
    config = {**optimizers.Muon().get_config(), "exclude_layers": [pattern]}
    for make in (lambda: optimizers.Muon(exclude_layers=[pattern]), lambda: optimizers.Muon.from_config(config)):
        with pytest.raises(ValueError, match="takes keywords, plain parts of the names of layers"):
            make()


def test_one_keyword_of_muon_needs_no_list():
    assert optimizers.Muon(exclude_layers="head").exclude_layers == ["head"]


# Formulas, by NumPy, where Keras's numbers are in float32 only -----------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 2), (2, 5), (4, 4), (1, 3)])
def test_orthogonalizing_applies_its_polynomial_to_the_singular_values(shape):
    x = np.random.default_rng(3).normal(size=shape)
    u, s, v = np.linalg.svd(x, full_matrices=False)
    s = s / (np.linalg.norm(x) + 1e-7)
    for _ in range(5):
        s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
    np.testing.assert_allclose(orthogonalized(x, 5, 3.4445, -4.775, 2.0315), (u * s) @ v, rtol=1e-10, atol=1e-12)


def test_adafactor_s_second_moment_is_the_outer_product_of_its_means():
    generator = np.random.default_rng(4)
    g, w = generator.normal(size=(3, 5, 4)), generator.normal(size=(3, 5, 4))
    r, c, v = second_moment(g, np.zeros((3, 5)), np.zeros((3, 4)), np.zeros_like(g), 0.0, 1e-30)
    for i in range(3):
        square = g[i] ** 2
        expected = np.outer(square.sum(1), square.sum(0)) / square.sum()
        np.testing.assert_allclose(v[i], expected / np.sqrt(1.0), rtol=1e-12)
    update = g / np.sqrt(v)
    size = 0.1 * np.sqrt(np.mean(w**2)) / max(1.0, np.sqrt(np.mean(update**2)) / 0.5)
    np.testing.assert_allclose(adafactor_step(g, w, v, 0.1, 1e-3, 0.5), w - size * update, rtol=1e-12)
    np.testing.assert_allclose(adafactor_step(g, 0 * w, v, 0.1, 1e-3, 1e9), -1e-4 * update, rtol=1e-12)


@pytest.mark.parametrize("w", [np.zeros(2), np.array([3.0, 4.0])])
@pytest.mark.parametrize("g", [np.zeros(2), np.array([1.0, 0.0])])
def test_lamb_steps_as_long_as_the_weight_unless_either_is_zero(w, g):
    variable = tf.Variable(w)
    optimizers.Lamb(0.5).apply([tf.constant(g)], [variable])
    length = np.linalg.norm(w) if w.any() and g.any() else 1.0
    np.testing.assert_allclose(variable.numpy(), w - 0.5 * length * g, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda s: s.ExponentialDecay(0.1, 10, 0.5, staircase=True),
        lambda s: s.InverseTimeDecay(0.1, 10, 0.5),
        lambda s: s.PiecewiseConstantDecay([3, 6], [0.1, 0.01, 0.001]),
        lambda s: s.PolynomialDecay(0.1, 10, cycle=True),
        lambda s: s.CosineDecay(0.0, 10, warmup_target=0.1, warmup_steps=3),
        lambda s: s.CosineDecayRestarts(0.1, 3),
    ],
)
def test_a_schedule_of_many_steps_is_that_of_each(make):
    schedule = make(tf.keras.optimizers.schedules)
    each = [float(schedule(step)) for step in range(24)]
    for steps in (np.arange(24), tf.range(24), list(range(24)), tf.range(24.0)):
        rates = schedule(steps)
        assert rates.dtype == tf.float32 and rates.numpy().tolist() == each
    assert schedule(np.arange(24).reshape(2, 3, 4)).shape == (2, 3, 4)
    assert schedule(np.array(5)).shape == () and schedule([]).shape == (0,)


# At the edge of a formula --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"run_eagerly": True}, {}, {"jit_compile": True}], ids=["eager", "recorded", "native"])
def test_ftrl_refuses_a_rate_of_0_before_anything_changes(options):
    """Keras makes every weight NaN."""
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(tf.keras.optimizers.Ftrl(0.1), "mse", **options)
    x = np.ones((4, 2), "float32")
    model.fit(x, x[:, :1], batch_size=2, verbose=0)
    before = [one.numpy() for one in (*model.weights, *model.optimizer.variables)]
    model.optimizer.learning_rate = 0.0
    with pytest.raises(ValueError, match="the learning rate is 0"):
        model.fit(x, x[:, :1], batch_size=2, verbose=0)
    model.optimizer.learning_rate = 0.1
    after = [one.numpy() for one in (*model.weights, *model.optimizer.variables)]
    assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))


def test_decay_is_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="SGD: decay is left out") as caught:
        optimizers.SGD(0.1, decay=1e-6)
    assert caught[0].filename == __file__
    optimizers.SGD(0.1, decay=0.0)
