"""What a compiled step promises beside its numbers: options that change count, and failures leave Variables whole."""

import contextvars
import functools

import numpy as np
import pytest
from in_threads import in_threads
from side_by_side import assert_same, leaves
from small_training import LABELS, RANDOM, X, both, needs_llvm, same, trained

import minikeras as tf
from minikeras.errors import InvalidArgumentError

optimizers = tf.keras.optimizers


# Options of an optimizer that are changed between steps --------------------------------------------------------------------


def set_options(**options):
    def change(optimizer, weights):
        for name, value in options.items():
            setattr(optimizer, name, value)

    return change


def set_constraint(optimizer, weights):
    weights[0].constraint = lambda w: tf.clip_by_value(w, -0.1, 0.1)


def assign_rate(optimizer, weights):
    optimizer.learning_rate.assign(0.3) if isinstance(optimizer.learning_rate, tf.Variable) else set_rate(optimizer, weights)


def set_rate(optimizer, weights):
    optimizer.learning_rate = 0.3


def set_schedule(optimizer, weights):
    optimizer.learning_rate = optimizers.schedules.ExponentialDecay(0.3, 2, 0.5)


CHANGES = {
    "beta_1": (set_options(beta_1=0.5), 1),
    "beta_2 and epsilon": (set_options(beta_2=0.5, epsilon=0.1), 1),
    "weight decay": (set_options(weight_decay=0.1), 1),
    "clipping": (set_options(clipvalue=0.01), 1),
    "a norm": (set_options(global_clipnorm=0.01), 1),
    "the learning rate": (set_rate, 0),
    "the learning rate by assignment": (assign_rate, 0),
    "a schedule": (set_schedule, 0),
    "a constraint": (set_constraint, None),
}


@both
@pytest.mark.parametrize("what", CHANGES)
def test_what_is_changed_between_steps_counts_from_the_next_one_on(what, fast):
    change, recordings = CHANGES[what]
    ways = []
    for compiled in (False, True):
        optimizer = optimizers.Adam(0.05)
        step, weights = trained(optimizer, fast, compiled)
        for _ in range(3):
            step(X, LABELS)
        change(optimizer, weights)
        for _ in range(3):
            step(X, LABELS)
        ways.append([*weights, *optimizer.variables])
    same(*ways, fast)
    if recordings is not None:
        assert step.recordings == 1 + recordings and step.replays == 6 - step.recordings


# Several updates in one step, and results that are views of what is updated -------------------------------------------------


@both
@pytest.mark.parametrize("other", [None, lambda: optimizers.SGD(0.2)], ids=["the same optimizer", "another one"])
def test_variables_may_be_updated_several_times_in_a_step(other, fast):
    ways = []
    for compiled in (False, True):
        first = optimizers.SGD(0.1)
        step, weights = trained(first, compiled=False)
        second = first if other is None else other()
        second.build(weights)

        def twice(x, labels, step=step, weights=weights, second=second):
            loss = step(x, labels)
            with tf.GradientTape() as tape:
                penalty = tf.reduce_sum(tf.tanh(x @ weights[0]) ** 2)
            second.apply([tape.gradient(penalty, weights[0])], weights[:1])
            return loss, step(x * 0.5, labels), penalty, weights[0].read_value()

        run = tf.function(twice, jit_compile=fast) if compiled else twice
        ways.append([leaf for _ in range(6) for leaf in run(X, LABELS)] + weights + list(first.variables))
    same(*ways, fast)
    assert run.replays == 5


@both
@pytest.mark.parametrize("returned", [False, True])
def test_one_gradient_may_be_given_to_several_optimizers(returned, fast):
    ways = []
    for compiled in (False, True):
        made = [(optimizers.Adam(0.1), tf.Variable(tf.ones(4))), (optimizers.SGD(0.1), tf.Variable(tf.zeros(4)))]
        for optimizer, weight in made:
            optimizer.build([weight])

        def step(x, made=made):
            gradient = tf.tanh(x[0] * 2.0) + 1.0
            for optimizer, weight in made:
                optimizer.apply([gradient], [weight])
            return (tf.exp(gradient), gradient) if returned else (tf.exp(gradient),)

        run = tf.function(step, jit_compile=fast) if compiled else step
        ways.append([leaf for _ in range(4) for leaf in run(X)] + [weight for _, weight in made])
    same(*ways, fast)


@both
def test_steps_of_other_signatures_eager_steps_and_assignments_may_come_between(fast):
    ways = []
    for compiled in (False, True):
        optimizer = optimizers.Adam(0.1)
        step, weights = trained(optimizer, compiled=False)
        run = tf.function(step, jit_compile=fast) if compiled else step
        found = []
        for i in range(12):
            rows = slice(0, 6 - i % 3)
            found.append((step if i % 4 == 3 else run)(X[rows], LABELS[rows]))
            if i % 5 == 4:
                weights[i % 2].assign(weights[i % 2] * 0.5)
        ways.append(found + weights + list(optimizer.variables))
    same(*ways, fast)
    assert (run.recordings, run.replays) == (3, 6)


@both
def test_weights_and_values_that_are_long_enough_for_blocks_and_threads_train_the_same(fast):
    x, start = (tf.constant(RANDOM.normal(size=(1100, 500)), "float32") for _ in range(2))
    ways = []
    for compiled in (False, True):
        weights, optimizer = [tf.Variable(start), tf.Variable(tf.zeros(500))], optimizers.AdamW(0.01, weight_decay=0.1)
        optimizer.build(weights)

        def step(x, weights=weights, optimizer=optimizer):
            with tf.GradientTape() as tape:
                y = tf.nn.relu(tf.tanh(x * weights[0] + weights[1]) * 2.0 - 0.5)
                loss = tf.reduce_mean(y * y, 0)
            optimizer.apply(tape.gradient(loss, weights), weights)
            return loss, y

        run = tf.function(step, jit_compile=fast) if compiled else step
        ways.append([leaf for _ in range(4) for leaf in run(x)] + weights)
    same(*ways, fast)


@both
def test_views_of_variables_may_be_returned_and_used(fast):
    ways = []
    for compiled in (False, True):
        step, weights = trained(optimizers.Adam(0.1), compiled=False)

        def looking(x, labels, step=step, weights=weights):
            before = weights[0].read_value()
            turned = tf.transpose(before)
            flat = tf.reshape(before, [-1])
            square = tf.reshape(flat, (4, 3))
            used = tf.tanh(x @ square), turned[1:] * 2.0
            return step(x, labels), before, turned, flat, square, *used

        run = tf.function(looking, jit_compile=fast) if compiled else looking
        ways.append([leaf for _ in range(6) for leaf in run(X, LABELS)] + weights)
    same(*ways, fast)
    assert run.replays == 5


@both
def test_views_of_results_may_be_returned_and_used(fast):
    def step(x):
        hidden = tf.nn.relu(x @ tf.transpose(x))
        flat = tf.reshape(hidden, [-1])
        again = tf.reshape(flat, (6, 6))
        return flat, tf.tanh(again @ again) @ again, tf.transpose(hidden), again, again

    run = tf.function(step, jit_compile=fast)
    kept = [run(X * float(i)) for i in range(4)]
    for i, found in enumerate(kept):
        same(found, step(X * float(i)), fast)


@needs_llvm
@pytest.mark.parametrize("turned", [False, True])
def test_memory_that_llvm_reads_where_it_lies_serves_no_one_else_before(turned):
    """A transpose that only moves an axis of one element is the product's memory, while the next product is made."""
    a, b = tf.ones([1, 64]), tf.reshape(tf.range(64.0 * 64.0 * 32.0), [64, 64, 32]) * 1e-5
    c, d = tf.ones([64, 64]), tf.reshape(tf.range(64.0 * 64.0 * 1.0), [64, 64, 1]) * 1e-5

    def function(a, b, c, d):
        product = a @ b  # (64, 1, 32)
        first = tf.transpose(product, [0, 2, 1]) if turned else tf.reshape(product, [64, 32, 1])
        return first[:, :16] * 3.0 + tf.transpose(c[:, :16]) @ d

    def function_of_sums(a, b, c, d):
        first = tf.transpose(a @ b, [0, 2, 1]) if turned else tf.reshape(a @ b, [64, 32, 1])
        return first + tf.transpose(c[:, :32]) @ d

    for one in (function, function_of_sums):
        run = tf.function(one, jit_compile=True)
        for _ in range(2):
            np.testing.assert_allclose(run(a, b, c, d).numpy(), one(a, b, c, d).numpy(), rtol=1e-5)


@needs_llvm
@pytest.mark.parametrize("name", ["cast", "sum"])
def test_truth_by_llvm_is_zero_or_one(name):
    functions = {
        "cast": lambda x: tf.cast(tf.cast(tf.sin(x), "bool"), "float32") * 2.0,
        "sum": lambda x: tf.cast(tf.add(x > 0.0, x > -1.0), "float32") * 2.0 + x,
    }
    with np.errstate(all="ignore"):
        expected = functions[name](X)
    run = tf.function(functions[name], jit_compile=True)
    for _ in range(2):
        np.testing.assert_allclose(run(X).numpy(), expected.numpy(), rtol=1e-5)


# Failures ------------------------------------------------------------------------------------------------------------------


def state(optimizer, weights):
    return [np.array(variable.numpy()) for variable in (*weights, *optimizer.variables)]


@both
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ValueError])
def test_a_run_that_ends_early_leaves_each_variable_whole_and_the_next_run_is_right(error, fast):
    optimizer = optimizers.AdamW(0.1, weight_decay=0.01)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    step, weights = trained(optimizer, fast)
    step(X, LABELS), step(X, LABELS)
    variables = [*weights, *optimizer.variables]
    before = state(optimizer, weights)
    expected = step(X, LABELS).numpy()
    after = state(optimizer, weights)
    (replay,) = step._replays

    def fail(registers):
        raise error

    places = [(part, first, i) for part, _, first in replay._parts for i in range(len(part) + 1)]
    for part, first, i in places:
        for variable, value in zip(variables, before, strict=True):
            variable.assign(value)
        part.insert(i, fail)
        replay._sources.insert(first + i, replay.program.records[-1])
        with pytest.raises(error):
            step(X, LABELS)
        del part[i], replay._sources[first + i]
        for variable, *values in zip(variables, before, after, strict=True):
            assert any(np.array_equal(variable.numpy(), value) for value in values)
        for variable, value in zip(variables, before, strict=True):
            variable.assign(value)
        np.testing.assert_array_equal(step(X, LABELS).numpy(), expected)
        assert_same(state(optimizer, weights), after)
    assert len(places) > 4


@both
def test_two_threads_train_two_sets_of_weights_as_one_after_the_other(fast):
    def work(step):
        for _ in range(50):
            step(X, LABELS)

    alone, threaded = ([trained(optimizers.Adam(rate), fast) for rate in (0.1, 0.01)] for _ in range(2))
    for step, _ in alone:
        work(step)
    in_threads(*[functools.partial(work, step) for step, _ in threaded])
    for (_, one), (step, other) in zip(alone, threaded, strict=True):
        assert_same(leaves(one), leaves(other))
        assert step.replays == 49


@both
@pytest.mark.parametrize("label", [3, -1, 1000])
def test_a_label_out_of_range_is_an_error_that_says_so_and_changes_nothing(label, fast):
    optimizer = optimizers.Adam(0.1)
    step, weights = trained(optimizer, fast)
    untouched, own = trained(optimizers.Adam(0.1), fast)
    for _ in range(2):
        step(X, LABELS), untouched(X, LABELS)
    before, wrong = state(optimizer, weights), LABELS.numpy()
    wrong[4] = label
    with pytest.raises(InvalidArgumentError, match=r"label"):
        step(X, tf.constant(wrong))
    assert_same(before, state(optimizer, weights))
    np.testing.assert_array_equal(step(X, LABELS).numpy(), untouched(X, LABELS).numpy())
    assert_same(leaves(weights), leaves(own))


def test_arguments_that_lie_otherwise_in_memory_give_the_bits_of_an_eager_run_too():
    x = tf.constant(RANDOM.normal(size=(300, 300)), "float32")
    run = tf.function(lambda x: [tf.reduce_sum(y := tf.tanh(x * 2.0) + 1.0), tf.reduce_sum(y, 0), tf.reduce_sum(y, 1), y @ y])
    for _ in range(3):
        for one in (x, tf.transpose(x), x[::-1], x[:, ::-1], tf.transpose(x)[::-1]):
            same(run(one), run.python_function(one), fast=None)
    assert run.recordings == 3, "in the usual order without gaps; with rows or columns turned round; transposed"


def test_a_large_constant_may_be_read_in_another_shape(executor):
    constant = tf.constant(np.arange(1 << 20, dtype="f").reshape(1024, 1024) / (1 << 20))
    step = tf.function(lambda x: tf.reshape(constant, [-1]) * x + tf.reshape(tf.transpose(constant), [-1]))
    expected = step(tf.constant(2.0)).numpy()
    program = step.program(tf.constant(2.0))
    for _ in range(2):
        (found,) = executor(program)([np.float32(2.0)])
        np.testing.assert_array_equal(found.numpy(), expected)


class Echoes(optimizers.Optimizer):
    """Keeps the last gradient as it is, and a result twice."""

    elementwise = True
    slot_groups = (("last", "first", "second"),)

    def formula(self, step, gradient, value, last, first, second):
        mean = 0.5 * (first + gradient)
        return value - step * (gradient + last - second), gradient, mean, mean


@both
@pytest.mark.parametrize("size", [3, 1 << 17])
def test_a_formula_may_give_back_an_operand_and_one_result_twice(size, fast):
    variables = [tf.Variable(np.linspace(-1.0, 1.0, size, dtype="float32")) for _ in range(2)]
    own = [Echoes(0.1), Echoes(0.1)]

    def step(optimizer, w):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.cos(w) * w)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])

    compiled = tf.function(step, jit_compile=fast)
    for _ in range(5):
        compiled(own[0], variables[0]), step(own[1], variables[1])
        same([variables[0], *own[0].variables], [variables[1], *own[1].variables], fast)
    assert compiled.replays >= 3


@both
@pytest.mark.parametrize("seed", range(4))
def test_whatever_holds_a_value_between_steps_the_next_step_is_right(seed, fast):
    (step, weights), (eager, others) = trained(optimizers.Adam(0.1), fast), trained(optimizers.Adam(0.1), compiled=False)
    generator, held = np.random.default_rng(seed), []
    for _ in range(60):
        number, index = int(generator.integers(6)), int(generator.integers(2))
        if number == 0:
            value = weights[index].read_value()
            held.append((value, value.numpy().copy()))
        elif number == 1:
            view = np.asarray(weights[index].read_value())[:2]
            held.append((view, view.copy()))
        elif number == 2 and held:
            del held[int(generator.integers(len(held)))]
        elif number == 3:
            for one in (weights, others):
                one[index].assign(one[index] * 0.5)
        rows = tf.constant(generator.normal(size=(int(generator.integers(2, 4)), 4)), "float32")
        labels = tf.constant(generator.integers(0, 3, len(rows)), "int32")
        same(step(rows, labels), eager(rows, labels), fast)
        same(list(weights), list(others), fast)
        for value, then in held:
            np.testing.assert_array_equal(np.asarray(value), then)
    assert step.replays > 50


# Contexts ------------------------------------------------------------------------------------------------------------------


RATE = contextvars.ContextVar("rate", default=0.5)


class RateOfContext(optimizers.schedules.LearningRateSchedule):
    """A learning rate that the caller's context holds."""

    def __call__(self, step):
        return RATE.get()


@both
def test_a_schedule_finds_the_context_of_the_caller(fast):
    (step, weights), (eager, others) = (trained(optimizers.SGD(RateOfContext()), *how) for how in ((fast,), (None, False)))
    for function in (step, eager):
        for rate in (1.0, 0.25, 2.0, 0.125):
            RATE.set(rate)
            function(X, LABELS)
    assert step.replays == 3
    same(list(weights), list(others), fast)


def test_a_replay_warns_of_nothing_and_raises_nothing_that_numpy_would():
    f = tf.function(lambda x: [tf.math.log(x), 1.0 / x, tf.reduce_sum(tf.exp(x * 1e30)), x @ tf.transpose(x * 1e30)])
    x = tf.constant([[0.0, -1.0], [1e30, 3.0]])
    with np.errstate(all="raise"):
        for _ in range(3):
            f(x)
    assert f.replays == 2
