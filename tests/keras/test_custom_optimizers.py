"""Optimizers written for Keras: the trajectories of real Keras, and the same bits eagerly, compiled and resumed."""

import contextlib
import itertools
import pathlib
import weakref

import numpy as np
import pytest
from custom_optimizers import OPTIONS, trajectory
from golden_numbers import golden
from in_one_test import in_one_test
from optimizer_cases import CLASSES
from slow import diagonal, mostly_slow, sampled
from small_fits import X, Y, instructions, model_of, state, trained

import minikeras as tf
from minikeras.errors import CompileError
from minikeras.keras.optimizers.step_program import passes_of

GOLDEN = golden("custom_optimizers")
FIRST = {name: np.array(value, "float32") for name, value in GOLDEN["first"].items()}
GRADIENTS = [[np.array(one, "float32") for one in step] for step in GOLDEN["gradients"]]
every_class = pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)


@in_one_test(name=GOLDEN["cases"])
def test_a_trajectory_is_keras_s(name):
    kind, _, options = name.partition("-")
    case = GOLDEN["cases"][name]
    steps, sums = trajectory(tf.keras, tf.Variable, CLASSES[kind], options, GRADIENTS, FIRST)
    for found, expected in ((steps[0], case["after_one"]), (steps[-1], case["w"]), ([sums], [case["sums"]])):
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())


# Trained -----------------------------------------------------------------------------------------------------------------


@pytest.mark.host
@pytest.mark.parametrize("kind, option", sampled(diagonal(CLASSES.values(), OPTIONS), 3))
def test_a_recorded_step_has_the_bits_of_an_eager_one(kind, option):
    options = OPTIONS[option]
    eager, recorded = trained(kind(**options), run_eagerly=True), trained(kind(**options))
    assert all(np.array_equal(*pair) for pair in zip(state(eager), state(recorded), strict=True))
    whole = kind.__name__ == "CentralizedSGD" or not {*options} <= {"weight_decay", "clipvalue", "loss_scale_factor"}
    assert ("optimizer_step" in instructions(recorded)) == whole


@pytest.mark.parametrize("kind", mostly_slow(CLASSES.values(), *[*CLASSES.values()][:3]), ids=CLASSES)
def test_a_native_step_has_the_numbers_of_an_eager_one(kind):
    eager, native = trained(kind(), run_eagerly=True), trained(kind(), jit_compile=True)
    for mine, theirs in zip(state(native), state(eager), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-6)


@every_class
@pytest.mark.parametrize("options", sampled([{}, {"use_ema": True}], 3), ids=["plain", "average"])
def test_a_run_that_was_saved_goes_on_bit_by_bit(kind, options, tmp_path):
    whole, first = trained(kind(**options), 4), trained(kind(**options), 2)
    first.optimizer.finalize_variable_values = lambda variables: None
    first.save(tmp_path / "m.keras")
    loaded = tf.keras.models.load_model(tmp_path / "m.keras", custom_objects={kind.__name__: kind})
    assert type(loaded.optimizer) is kind and loaded.optimizer.get_config() == first.optimizer.get_config()
    assert all(np.array_equal(*pair) for pair in zip(state(first), state(loaded), strict=True))
    if not options:
        loaded.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
        assert all(np.array_equal(*pair) for pair in zip(state(whole), state(loaded), strict=True))


def test_a_model_that_keras_saved_goes_on_with_its_optimizer():
    kind = CLASSES["KerasNadam"]
    path = pathlib.Path(__file__).parent.parent / "golden" / "custom_optimizer.keras"
    model = tf.keras.models.load_model(path, custom_objects={"KerasNadam": kind})
    x = np.linspace(-1.0, 1.0, 24, dtype="float32").reshape(8, 3)
    model.fit(x, x[:, :1], batch_size=4, epochs=2, shuffle=False, verbose=0)
    assert int(model.optimizer.iterations) == 8
    for mine, theirs in zip(model.get_weights(), GOLDEN["goes_on"], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-6, atol=1e-6)


@every_class
def test_a_checkpoint_brings_back_what_an_optimizer_holds(kind, tmp_path):
    first = trained(kind())
    path = tf.train.Checkpoint(model=first, optimizer=first.optimizer).save(str(tmp_path / "c"))
    other = model_of(kind())
    tf.train.Checkpoint(model=other, optimizer=other.optimizer).restore(path)
    assert all(np.array_equal(*pair) for pair in zip(state(first), state(other), strict=True))


@every_class
def test_a_schedule_is_asked_anew_in_each_recorded_step(kind):
    def rate():
        return tf.keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.8)

    eager, recorded = trained(kind(learning_rate=rate()), run_eagerly=True), trained(kind(learning_rate=rate()))
    assert all(np.array_equal(*pair) for pair in zip(state(eager), state(recorded), strict=True))


def test_an_option_that_changes_is_no_fact_of_a_recording():
    def run(**options):
        model = trained(CLASSES["Momentum"](), **options)
        model.optimizer.momentum = 0.5
        model.fit(X, Y, batch_size=8, shuffle=False, verbose=0)
        return state(model)

    assert all(np.array_equal(*pair) for pair in zip(run(), run(run_eagerly=True), strict=True))


# Steps -------------------------------------------------------------------------------------------------------------------


def run_steps(optimizer, weights, steps=1):
    for given in GRADIENTS[:steps]:
        optimizer.apply(given, weights)
    return [one.numpy() for one in (*weights, *optimizer.variables)]


def held():
    return [tf.Variable(value, name=name) for name, value in FIRST.items()]


def test_a_step_that_fails_changes_nothing():
    class Failing(CLASSES["Momentum"]):
        fails = False

        def update_step(self, gradient, variable, learning_rate):
            super().update_step(gradient, variable, learning_rate)
            if self.fails and variable.shape == (4,):
                raise RuntimeError("no")

    optimizer, weights = Failing(), held()
    optimizer.fails = True
    with pytest.raises(RuntimeError):
        optimizer.apply(GRADIENTS[0], weights)
    assert not optimizer.built and len(optimizer.variables) == 2
    assert all(np.array_equal(weight.numpy(), value) for weight, value in zip(weights, FIRST.values(), strict=True))
    optimizer.fails = False
    before = run_steps(optimizer, weights)
    assert len(before) == 6
    optimizer.fails = True
    with pytest.raises(RuntimeError):
        optimizer.apply(GRADIENTS[1], weights)
    after = [one.numpy() for one in (*weights, *optimizer.variables)]
    assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))


@every_class
def test_a_stateless_step_gives_the_values_and_changes_nothing(kind):
    optimizer, weights = kind(), held()
    optimizer.build(weights)
    before = [one.numpy() for one in (*weights, *optimizer.variables)]
    trained_values, own = optimizer.stateless_apply([v.value for v in optimizer.variables], GRADIENTS[0], list(FIRST.values()))
    assert all(
        np.array_equal(*pair) for pair in zip(before, [one.numpy() for one in (*weights, *optimizer.variables)], strict=True)
    )
    after = run_steps(optimizer, weights)
    assert all(np.array_equal(*pair) for pair in zip(after, [one.numpy() for one in (*trained_values, *own)], strict=True))


def test_stateless_steps_want_a_value_for_each_variable():
    optimizer, weights = CLASSES["Momentum"](), held()
    with pytest.raises(ValueError, match=r"Call optimizer.build"):
        optimizer.stateless_apply([], GRADIENTS[0], list(FIRST.values()))
    optimizer.build(weights)
    with pytest.raises(ValueError, match="optimizer_variables must be 4 values"):
        optimizer.stateless_apply([1.0], GRADIENTS[0], list(FIRST.values()))


def test_weights_are_set_by_position():
    optimizer, weights = CLASSES["Momentum"](), held()
    run_steps(optimizer, weights)
    other = CLASSES["Momentum"]()
    other.build(held())
    other.set_weights([one.numpy() for one in optimizer.variables])
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(other.variables, optimizer.variables, strict=True))
    with pytest.raises(ValueError, match="Nothing was loaded"):
        CLASSES["Momentum"]().set_weights([one.numpy() for one in optimizer.variables])


def test_variables_have_keras_s_names_and_are_found_as_slots():
    optimizer, weights = CLASSES["PID"](), held()
    optimizer.build(weights)
    assert [one.name for one in optimizer.variables[2:4]] == ["kernel_integral", "bias_integral"]
    assert optimizer.variables[-1].name == "changes_seen"
    assert optimizer.slot(weights[0], "previous") is optimizer.previous[0]


def test_names_and_initializers_belong_together():
    optimizer, weights = CLASSES["Momentum"](), held()
    ones, zeros = optimizer.add_optimizer_variables(weights, ["a", "b"], ["ones", "zeros"])
    assert ones[0].numpy().all() and not zeros[1].numpy().any() and len(optimizer.variables) == 6
    with pytest.raises(ValueError, match="2 names need as many initializers, found 1"):
        optimizer.add_optimizer_variables(weights, ["a", "b"], ["ones"])


def test_an_attribute_that_is_a_variable_is_saved_with_the_optimizer():
    optimizer = CLASSES["Momentum"]()
    optimizer.total = tf.Variable(3.0)
    assert optimizer.variables[-1] is optimizer.total
    optimizer.total = optimizer.total
    assert len(optimizer.variables) == 3


def test_values_are_assigned_in_the_variable_s_dtype():
    optimizer, w = CLASSES["Momentum"](), tf.Variable(1.0, dtype="float64")
    optimizer.assign(w, tf.constant(2.0))
    optimizer.assign_add(w, tf.constant(1))
    optimizer.assign_sub(w, 0.5)
    assert w.numpy() == 2.5 and w.dtype == tf.float64


def test_forgetting_that_it_was_built_forgets_what_was_built():
    optimizer, weights = CLASSES["KerasAdam"](), held()
    run_steps(optimizer, weights)
    optimizer.built = True
    assert len(optimizer.variables) == 8
    optimizer.built = False
    assert len(optimizer.variables) == 2
    optimizer.build(weights)
    assert len(optimizer.variables) == 8


@pytest.mark.host
def test_it_is_one_among_others():
    def run(optimizer):
        return state(trained(optimizer))

    kernels, others = CLASSES["KerasAdam"], CLASSES["Momentum"]
    per_layer = trained(tf.keras.optimizers.PerLayer({"*.kernel": kernels(), "*": others()}))
    assert "optimizer_step" not in instructions(per_layer)
    scaled = trained(tf.keras.optimizers.LossScaleOptimizer(kernels()), run_eagerly=True)
    for mine, theirs in zip(scaled.get_weights(), trained(kernels()).get_weights(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.host
def test_a_wrapper_may_take_the_whole_step():
    class Every(tf.keras.optimizers.Optimizer):
        """Another optimizer, then weights halved."""

        def __init__(self, optimizer, **kwargs):
            super().__init__(learning_rate=0.1, **kwargs)
            self.inner = optimizer

        def build(self, variables):
            self.inner.build(variables)
            super().build(variables)

        def apply(self, grads, trainable_variables=None):
            self.inner.apply(grads, trainable_variables)
            for variable in trainable_variables:
                variable.assign(variable * 0.5)
            self.iterations.assign_add(1)

    runs = [trained(Every(tf.keras.optimizers.SGD(0.1)), run_eagerly=eager) for eager in (True, False)]
    assert all(np.array_equal(*pair) for pair in zip(*map(state, runs), strict=True))
    assert int(runs[1].optimizer.iterations) == int(runs[1].optimizer.inner.iterations) == 12
    assert "optimizer_step" not in instructions(runs[1])


# minimize ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"loss_scale_factor": 8.0}], ids=["plain", "scaled"])
def test_a_loss_is_minimized_as_a_function_or_with_its_tape(options):
    w = [tf.Variable([1.0, 2.0]) for _ in range(4)]
    makes = [tf.keras.optimizers.SGD(0.1, **options) for _ in w]
    assert float(makes[0].minimize(lambda: tf.reduce_sum(w[0] ** 2), [w[0]])) == 5.0
    makes[1].minimize(lambda: tf.reduce_sum(w[1] ** 2), lambda: [w[1]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w[2] ** 2)
    makes[2].minimize(loss, [w[2]], tape=tape)
    with pytest.raises(ValueError, match="needs the `tape`"):
        makes[3].minimize(loss, [w[3]])
    assert all(np.array_equal(one.numpy(), w[0].numpy()) for one in w[1:3])
    np.testing.assert_allclose(w[0].numpy(), [0.8, 1.6], rtol=1e-6)


def test_minimizing_is_recorded():
    w, optimizer = tf.Variable([1.0, 2.0]), tf.keras.optimizers.Adam(0.1)

    @tf.function
    def step(x):
        return optimizer.minimize(lambda: tf.reduce_sum((w - x) ** 2), [w])

    losses = [float(step(tf.constant(0.0))) for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and step.replays > 0


def test_second_order_wants_the_function():
    w = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        loss = w * w
    with pytest.raises(TypeError, match="needs the loss as a function"):
        tf.keras.optimizers.Newton().minimize(loss, [w], tape)


class Counting(tf.keras.optimizers.Optimizer):
    """A formula that assigns a Variable of the user's."""

    def __init__(self, hits, order):
        super().__init__(0.1)
        self.hits, self.order = hits, order

    def formula(self, step, gradient, value):
        self.hits.assign_add(1.0)
        return (self.order(value - step * gradient),)


@pytest.mark.host
@pytest.mark.parametrize("order", [np.sort, np.negative], ids=["whole", "elements"])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_what_a_formula_assigns_is_read_after_it(order, jit_compile):
    found = []
    for wrap in (lambda step: step, lambda step: tf.function(step, jit_compile=jit_compile)):
        hits, w = tf.Variable(0.0), tf.Variable([1.0, 2.0])
        optimizer = Counting(hits, order)

        @wrap
        def step(gradient, hits=hits, w=w, optimizer=optimizer):
            before = hits.read_value()
            optimizer.apply([gradient], [w])
            return before, hits.read_value()

        found.append([tuple(map(float, step(tf.ones([2])))) for _ in range(4)])
    assert found[0] == found[1]


@pytest.mark.parametrize("fails", [False, True])
def test_attributes_that_a_formula_makes_while_it_is_tried_are_taken_back(fails):
    class Noting(tf.keras.optimizers.Optimizer):
        last = "nothing"

        def formula(self, step, gradient, value):
            self.last, self.rate_of_last = gradient, step
            if fails:
                raise TypeError("arrays alone")
            return (value - step * gradient,)

    optimizer, w = Noting(0.1), tf.Variable([1.0, 2.0])
    optimizer.build([w])
    before = vars(optimizer).copy()
    assert passes_of(optimizer, [optimizer.state.slots[w.key]], 0.1) == (0 if fails else 1)
    assert vars(optimizer) == before and optimizer.last == "nothing"


@pytest.mark.parametrize(
    ("given", "found"), [(lambda value: value - 1.0, r"\w*[aA]rray"), (lambda value: (value, value), "2 values")]
)
def test_a_formula_that_gives_no_tuple_of_value_and_slots_is_named(given, found):
    """An array of one row was taken for a tuple of its rows: the Variable lost an axis."""

    class Own(tf.keras.optimizers.Optimizer):
        def formula(self, step, gradient, value):
            return given(value)

    w = tf.Variable([[1.0, 2.0]])
    with pytest.raises(ValueError, match=rf"Own.formula: expected a tuple of the new value .* found {found}"):
        Own(0.1).apply([tf.ones([1, 2])], [w])
    assert w.numpy().tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("jit_compile", ["auto", False])
def test_an_update_step_that_counts_its_calls_is_called_once_for_each_variable_and_step(jit_compile):
    """Each try of the compiler counted too, and a branch on the count was decided once for all steps."""

    class Counting(tf.keras.optimizers.Optimizer):
        calls = 0

        def update_step(self, gradient, variable, learning_rate):
            self.calls += 1
            variable.assign(variable - learning_rate * gradient * (2.0 if self.calls > 6 else 1.0))

    def fitted(**options):
        tf.random.set_seed(0)
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
        model.compile(Counting(0.05), "mse", **options)
        model.fit(np.ones((40, 3), "f"), np.ones((40, 2), "f"), batch_size=8, epochs=4, shuffle=False, verbose=0)
        return model.optimizer.calls, [weight.tolist() for weight in model.get_weights()]

    calls, weights = fitted(jit_compile=jit_compile)
    expected = fitted(run_eagerly=True)
    assert calls == expected[0] == 40
    np.testing.assert_allclose(weights[0], expected[1][0], rtol=1e-5)


def grow(one):
    one["list"].append(1)


def add_up(one):
    one["array"] += 1


class Watched(tf.keras.optimizers.Optimizer):
    """A user's code changes something of the optimizer's at one place of a step."""

    def __init__(self, place, change):
        super().__init__(0.05)
        self.place, self.change = place, change
        self.held, self.count = {"list": [], "array": np.zeros(1)}, 0
        if place == "learning_rate":
            held = weakref.ref(self)
            self._learning_rate = lambda: held().seen(place) or 0.05

    def seen(self, place):
        if place == self.place and self.change is None:
            self.count += 1
        elif place == self.place:
            self.change(self.held)

    @property
    def total(self):
        return self.count + len(self.held["list"]) + int(self.held["array"][0])

    def begin_step(self, t, learning_rate):
        self.seen("begin_step")
        return learning_rate

    def formula(self, step, gradient, value):
        self.seen("formula")
        return (value - step * gradient,)


class WatchedEnd(Watched):
    def end_step(self, step):
        self.seen("end_step")
        return []


class WatchedUpdate(Watched):
    def update_step(self, gradient, variable, learning_rate):
        self.seen("update_step")
        variable.assign(variable - learning_rate * gradient)


WATCHED = {"end_step": WatchedEnd, "update_step": WatchedUpdate}


@pytest.mark.parametrize("place", ["begin_step", "formula", "learning_rate", "end_step", "update_step"])
@pytest.mark.parametrize("change", [None, grow, add_up], ids=["attribute", "list", "array"])
def test_what_a_user_s_code_changes_in_a_step_is_changed_once_a_step(place, change):
    """Each try of the compiler changed it once more, and so did each native run that took the place of a recorded one."""

    def fitted(**options):
        optimizer = WATCHED.get(place, Watched)(place, change)
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2, use_bias=False)])
        model.compile(optimizer, "mse", **options)
        model.fit(np.ones((40, 3), "f"), np.ones((40, 2), "f"), batch_size=8, epochs=4, shuffle=False, verbose=0)
        return optimizer.total

    assert fitted(run_eagerly=True) == fitted(jit_compile=False) == fitted(jit_compile="auto") == 20
    with pytest.raises(CompileError, match="it changes .*; keep in a tf.Variable what changes from call to call"):
        fitted(jit_compile=True)


@pytest.mark.parametrize("rate", ["object", "closure", "variable"])
@pytest.mark.parametrize("jit_compile", ["auto", True])
def test_a_learning_rate_that_counts_its_calls_is_called_once_a_step(rate, jit_compile):
    """The compiler called it once more, so that all later rates were those of other steps."""

    def fitted(**options):
        tf.random.set_seed(0)
        count = tf.Variable(0.0)
        calls = itertools.count(1)

        class Falling:
            calls = 0

            def __call__(self):
                self.calls += 1
                return 0.1 / self.calls

        rates = {"object": Falling(), "closure": lambda: 0.1 / next(calls), "variable": lambda: 0.1 / count.assign_add(1.0)}
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
        model.compile(tf.keras.optimizers.Adam(rates[rate]), "mse", **options)
        model.fit(X[:, :3], X[:, :2], batch_size=8, epochs=4, shuffle=False, verbose=0)
        return model.get_weights()

    for mine, theirs in zip(fitted(jit_compile=jit_compile), fitted(run_eagerly=True), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def test_a_formula_that_ends_its_own_warm_up_does_so_once_in_each_mode():
    """A native run that took the place of the first step did without it."""

    class Warm(tf.keras.optimizers.Optimizer):
        is_warm = False

        def formula(self, step, gradient, value):
            step, self.is_warm = step * (1.0 if self.is_warm else 3.0), True
            return (value - step * gradient,)

    found = []
    for options in ({"run_eagerly": True}, {"jit_compile": True}, {}):
        w, optimizer = tf.Variable([1.0, 2.0]), Warm(0.1)
        step = lambda w=w, optimizer=optimizer: optimizer.apply([tf.ones([2])], [w])
        step = step if "run_eagerly" in options else tf.function(step, **options)
        for _ in range(5):
            step()
        found.append(w.numpy().round(5).tolist())
    assert found[0] == found[1] == found[2]


@pytest.mark.host
def test_a_learning_rate_that_assigns_a_weight_is_refused_in_a_compiled_step():
    """It was asked for before the loss there, after it in an eager step."""
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2, name="last")])
    kernel = model.layers[0].kernel
    model.compile(tf.keras.optimizers.SGD(lambda: kernel.assign(0.9 * kernel) is None or 0.1), "mse")
    with pytest.raises(CompileError, match="sgd.*learning rate.*assigns .*last/kernel.*outside of the step"):
        model.fit(X[:, :3], X[:, :2], batch_size=8, verbose=0)


def test_attributes_of_a_users_classes_may_have_any_public_name():
    class Init(tf.keras.initializers.RandomNormal):
        seeded = True

    class Own(tf.keras.optimizers.SGD):
        rate_now, scheduled_rate, beside = 3.0, "none", 2

    class Chain(tf.keras.Sequential):
        clone_chain = True

    model = Chain([tf.keras.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer=Init())])
    model.compile(Own(0.1), "mse")
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    with tf.keras.utils.custom_object_scope({"Init": Init, "Own": Own}):
        assert tf.keras.models.clone_model(model).layers[0].units == 1


class Remembering(tf.keras.optimizers.Optimizer):
    """Remembers the rate that it was given last, and takes only rates below 1."""

    last = 0.0

    def begin_step(self, t, learning_rate):
        self.last = learning_rate
        return learning_rate / (1.0 - learning_rate)

    def formula(self, step, gradient, value):
        return (value - step * gradient,)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("rate", [0.5, lambda: 0.5], ids=["number", "function"])
def test_the_compiler_leaves_the_rate_that_begin_step_remembers_and_asks_for_none_of_1(rate, jit_compile):
    """It tried `begin_step` at a rate of 1, which ended in ZeroDivisionError here, or was remembered: then no program held."""
    w, optimizer = tf.Variable([8.0, 8.0]), Remembering(rate)
    optimizer.build([w])
    step = tf.function(lambda: optimizer.apply([tf.ones([2])], [w]), jit_compile=jit_compile)
    for _ in range(6):
        step()
        assert optimizer.last == 0.5
    assert w.numpy().tolist() == [2.0, 2.0] and (step.recordings, step.eager_calls) == (1, 0)


@pytest.mark.host
@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("counts", [False, True])
def test_a_learning_rate_that_assigns_what_the_loss_reads_is_refused_in_a_compiled_step(counts, jit_compile):
    """The loss of a compiled step took the new value without a word, that of an eager step the old one. A step that assigns
    something before asks for the rate after the loss.
    """
    count = tf.Variable(0)
    w, factor = tf.Variable([1.0, 2.0]), tf.Variable(1.0, name="factor")
    optimizer = tf.keras.optimizers.SGD(lambda: factor.assign(2.0 * factor) is None or 0.1)

    def loss():
        if counts:
            count.assign_add(1)
        return tf.reduce_sum(factor * w)

    step = tf.function(lambda: optimizer.minimize(loss, [w]), jit_compile=jit_compile)
    refused = pytest.raises(CompileError, match="sgd.*learning rate.*assigns factor.*outside of the step")
    with contextlib.nullcontext() if counts else refused:
        for _ in range(4):
            step()
    taken = int(optimizer.iterations)
    assert taken == 4 or not counts
    np.testing.assert_allclose(w.numpy(), np.array([1.0, 2.0]) - 0.1 * sum(2.0**n for n in range(taken)), rtol=1e-6)
    assert float(factor) == 2.0**taken
