"""Steps of optimizers outside of compiled functions: after a few they are a program, with the same bits."""

import copy
import gc
import importlib.util
import weakref

import numpy as np
import optimizer_cases as cases
import pytest
from in_one_test import in_one_test
from optimizer_cases import FORMULAS, OPTIONS

import minikeras as tf
from minikeras.compiler import loops
from minikeras.keras import optimizers
from minikeras.keras.optimizers import step as eager

STEPS, NEVER = eager.STEPS + 5, 10**9


def adam():
    return optimizers.Adam(0.1)


def gradients(step, dtype="float32"):
    return [tf.random.stateless_normal(shape, [step, 1], dtype=dtype) for shape in ([3, 4], [4], [200, 200])]


def variables(dtype="float32"):
    return [tf.Variable(value) for value in gradients(99, dtype)]


def state(optimizer, weights):
    return [(one.dtype.name, one.numpy().tobytes()) for one in (*weights, *optimizer.variables)]


def trained(make, dtype="float32", before=lambda step, optimizer, weights: None):
    optimizer, weights = make(), variables(dtype)
    for step in range(STEPS):
        before(step, optimizer, weights)
        optimizer.apply_gradients(zip(gradients(step, dtype), weights, strict=True))
    return optimizer, weights


def with_and_without(monkeypatch, **options):
    optimizer, weights = trained(**options)
    monkeypatch.setattr(eager, "STEPS", NEVER)
    return optimizer, state(optimizer, weights), state(*trained(**options))


@pytest.mark.host
@in_one_test(3, formula=FORMULAS, options=OPTIONS, dtype=["float32", "float64"])
def test_a_program_has_the_bits_of_steps_one_by_one(formula, options, dtype):
    def run():
        optimizer, held = FORMULAS[formula](**OPTIONS[options]), cases.weights(dtype)
        for step in range(5):
            optimizer.apply_gradients(zip(cases.gradients(step, dtype), held, strict=True))
        return optimizer._eager_step.program, state(optimizer, held)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(eager, "STEPS", 2)
        program, found = run()
        patch.setattr(eager, "STEPS", NEVER)
        none, expected = run()
    assert found == expected and none is None
    twice = formula in ("Lamb", "Adafactor", "Muon") or options == "accumulation"
    assert (program is None) == twice, "what NumPy would compute twice or for nothing stays Python's"


def test_a_function_that_gives_the_rate_is_called_once_a_step():
    calls = []
    trained(lambda: optimizers.SGD(lambda: calls.append(1) or 0.1))
    assert len(calls) == STEPS


def change_rate(step, optimizer, weights):
    optimizer.learning_rate = 0.1 / (1 + step)


def change_beta(step, optimizer, weights):
    optimizer.beta_1 = 0.9 if step < STEPS - 2 else 0.5


def clip_at_last(step, optimizer, weights):
    optimizer.clipnorm = None if step < STEPS - 2 else 0.1


def constrain(step, optimizer, weights):
    weights[1].constraint = None if step < STEPS - 2 else tf.nn.relu


def assign(step, optimizer, weights):
    weights[0].assign_add(tf.ones([3, 4]))
    optimizer.slot(weights[0], "momentum").assign(tf.ones([3, 4])) if step else None


def hold(step, optimizer, weights, held=[]):  # noqa: B006 (kept on purpose)
    held.append([weight.read_value() for weight in weights])


@in_one_test(before=[change_rate, change_beta, clip_at_last, constrain, assign, hold])
def test_what_changes_between_steps_counts_in_the_next(before):
    with pytest.MonkeyPatch.context() as patch:
        _, found, expected = with_and_without(patch, make=adam, before=before)
    assert found == expected


def test_a_gradient_of_16_bits_is_rounded_once_it_is_clipped_by_its_norm():
    held = [[tf.Variable(value) for value in variables("float16")] for _ in range(2)]
    limited, plain = optimizers.SGD(0.1, momentum=0.9, clipnorm=0.1), optimizers.SGD(0.1, momentum=0.9)
    for step in range(3):
        wide = [gradient.numpy().astype("float32") for gradient in gradients(step, "float16")]
        clipped = [one * (0.1 / np.maximum(np.sqrt((one * one).sum()), np.float32(0.1))) for one in wide]
        limited.apply(gradients(step, "float16"), held[0])
        plain.apply([tf.constant(one.astype("float16")) for one in clipped], held[1])
    assert state(limited, held[0])[:3] == state(plain, held[1])[:3]


def test_values_that_were_read_stay():
    seen = []
    trained(adam, before=lambda step, _, weights: seen.append((weights[0].read_value(), weights[0].numpy())))
    assert all(np.array_equal(value.numpy(), copied) for value, copied in seen)
    assert len({copied.tobytes() for _, copied in seen}) == len(seen)


def test_a_step_that_fails_changes_nothing_even_after_the_weights_were_written():
    for name in ("begin_step", "end_step"):
        optimizer, weights = trained(lambda: optimizers.Nadam(0.1))
        before = state(optimizer, weights)

        def interrupted(*_):
            raise KeyboardInterrupt

        setattr(optimizer, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            optimizer.apply_gradients(zip(gradients(0), weights, strict=True))
        assert state(optimizer, weights) == before
        delattr(optimizer, name)
        optimizer.apply_gradients(zip(gradients(0), weights, strict=True))
        assert state(optimizer, weights) != before


def test_other_variables_or_fewer_have_their_own_steps(monkeypatch):
    def run():
        optimizer, (a, b, c) = adam(), variables()
        optimizer.build([a, b, c])
        for step in range(3 * STEPS):
            found = gradients(step)
            chosen = [(found[0], a), (found[1], b)] if step // STEPS == 1 else zip(found, (a, b, c), strict=True)
            optimizer.apply_gradients(chosen)
        return state(optimizer, [a, b, c])

    found = run()
    monkeypatch.setattr(eager, "STEPS", NEVER)
    assert found == run()


def test_a_copy_goes_its_own_way():
    optimizer, weights = trained(adam)
    twin, twins = copy.deepcopy((optimizer, weights))
    before = state(optimizer, weights)
    assert twin._eager_step.program is None
    for step in range(STEPS):
        twin.apply_gradients(zip(gradients(step), twins, strict=True))
    assert state(optimizer, weights) == before != state(twin, twins)


@pytest.mark.host
def test_an_optimizer_with_a_program_is_freed_with_its_last_reference():
    optimizer, weights = trained(adam)
    assert optimizer._eager_step.program is not None
    gone = weakref.ref(optimizer), weakref.ref(weights[0])
    del optimizer, weights
    assert [one() for one in gone] == [None, None] or gc.collect()
    assert [one() for one in gone] == [None, None]


class Scaled(optimizers.Optimizer):
    """What its formula multiplies by is read in each step."""

    elementwise = True
    factor = (1.0,)

    def formula(self, step, gradient, value, *slots):
        return (value - gradient * self.factor[0],)


def test_a_formula_of_the_users_reads_what_is_set_at_any_time():
    variable, optimizer = tf.Variable([0.0, 0.0]), Scaled(1.0)
    for factor in (None, [2.0], [3.0], (4.0,)):
        if factor is not None:
            optimizer.factor = factor
        for _ in range(STEPS):
            before = variable.numpy()
            optimizer.apply([tf.constant([1.0, 1.0])], [variable])
            assert (before - variable.numpy() == (factor or [1.0])[0]).all()


@pytest.mark.host
@pytest.mark.parametrize("kind", [np.float32, np.float64, float])
def test_options_that_are_numbers_of_numpy_are_read_in_each_step(kind, monkeypatch):
    def values(steps_before):
        monkeypatch.setattr(eager, "STEPS", steps_before)
        variable, optimizer = tf.Variable([1.0, 2.0]), optimizers.SGD(0.1, momentum=0.3, weight_decay=0.05)
        found = []
        for name, value in (("momentum", 0.3), ("weight_decay", 0.05), ("weight_decay", 0.2), ("momentum", 0.7)):
            for _ in range(STEPS):
                optimizer.apply([tf.constant([0.5, 0.6])], [variable])
            setattr(optimizer, name, kind(value))
            optimizer.apply([tf.constant([0.5, 0.6])], [variable])
            found.append(variable.numpy())
        return np.array(found)

    assert (values(eager.STEPS) == values(NEVER)).all()


@pytest.mark.host
def test_traced_formulas_are_bounded(monkeypatch):
    monkeypatch.setattr(loops, "KEPT", 5)
    for momentum in range(9):
        variable, optimizer = tf.Variable([1.0, 2.0]), optimizers.SGD(0.1, momentum=momentum / 10)
        for _ in range(eager.STEPS + 2):
            optimizer.apply([tf.constant([0.5, 0.6])], [variable])
        assert optimizer._eager_step.program is not None
    assert len(loops._bodies) <= 5


class Undeclared(optimizers.Optimizer):
    """A formula of each element that does not say so."""

    slot_groups = (("momentum",),)

    def formula(self, step, gradient, value, momentum):
        momentum = momentum * 0.9 + gradient
        return value - step * np.sign(momentum) * np.sqrt(np.abs(momentum)), momentum


class Normed(optimizers.Optimizer):
    """A formula with a sum over its variable."""

    def formula(self, step, gradient, value):
        return (value - step * gradient / np.sqrt((gradient * gradient).sum() + 1e-9),)


class Whole(optimizers.Optimizer):
    """A formula that sorts."""

    def formula(self, step, gradient, value):
        return (value - step * np.sort(gradient, axis=0),)


@pytest.mark.host
@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize(
    "kind, compiled",
    [(Undeclared, (True, True)), (Normed, (False, True)), (Whole, (False, False))],
    ids=["elements", "sums", "whole"],
)
def test_a_users_formula_is_compiled_as_far_as_it_is_elements_and_their_sums(kind, compiled, jit_compile):
    def run(wrap):
        optimizer, held = kind(0.1, use_ema=True), variables()
        step = wrap(lambda *found: optimizer.apply(list(found), held))
        for number in range(6):
            step(*gradients(number))
        return step, [weight.numpy() for weight in held]

    step, found = run(lambda step: tf.function(step, jit_compile=jit_compile))
    _, expected = run(lambda step: step)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5) if jit_compile else np.testing.assert_array_equal(one, other)
    names = [record.primitive.name for record in step.program(*gradients(0)).records]
    native = jit_compile and importlib.util.find_spec("llvmlite") is not None
    assert ("optimizer_step" not in names) == compiled[native]


@in_one_test(compiled=[False, True])
def test_weights_of_many_elements_become_their_averages(compiled):
    """Whether they do is one number for all elements, beside which none is chosen by its bits."""
    optimizer, w = optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2), tf.Variable(tf.zeros(20_000))
    step = lambda g: optimizer.apply([g], [w])
    step = tf.function(step) if compiled else step
    expected = average = 0.0
    for number in range(STEPS):
        step(tf.ones([20_000]))
        expected -= 1.0
        average = expected if number == 0 else 0.5 * average + 0.5 * expected
        expected = average if number % 2 else expected
        np.testing.assert_allclose(w.numpy(), np.full(20_000, expected, "float32"), rtol=1e-6)


# Constraints ---------------------------------------------------------------------------------------------------------------

CONSTRAINTS = [
    tf.keras.constraints.NonNeg(),
    tf.keras.constraints.MaxNorm(0.5),
    tf.keras.constraints.UnitNorm(),
    tf.keras.constraints.MinMaxNorm(0.2, 0.4, rate=0.5),
]
FURTHER = [{}, {"clipnorm": 0.1}, {"weight_decay": 0.1}, {"use_ema": True, "ema_overwrite_frequency": 2}]


@pytest.mark.host
@in_one_test(
    3, constraint=[*CONSTRAINTS, lambda w: tf.nn.relu(w)], options=[*FURTHER, {"global_clipnorm": 0.1}], kind=["Adam", "Lamb"]
)
def test_constraints_are_applied_after_each_step(constraint, options, kind):
    """By the program, by a compiled function's, or by Python where a step needs it; always the same bits."""
    found = []
    for wrap in (lambda step: step, tf.function, None):
        optimizer, held = getattr(optimizers, kind)(0.1, **options), variables()
        for weight in held[:2]:
            weight.constraint = constraint if wrap is not None else lambda w: constraint(w)
        step = (wrap or (lambda step: step))(lambda *given, o=optimizer, h=held: o.apply(list(given), h))
        for number in range(STEPS + 4):
            step(*gradients(number))
        found.append([one.numpy() for one in (*held, *optimizer.variables)])
        if wrap is not None and constraint in CONSTRAINTS and kind == "Adam":
            program = step.program(*gradients(0)) if wrap is tf.function else optimizer._eager_step.program
            names = [] if program is None else [record.primitive.name for record in program.records]
            assert ("step_counted" in names) == ("global_clipnorm" not in options)
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@in_one_test(compiled=[False, True])
def test_a_constraint_that_is_changed_holds_from_the_next_step_on(compiled):
    optimizer, held = optimizers.SGD(0.1), variables()
    held[0].constraint = limit = tf.keras.constraints.MaxNorm(0.5)
    step = lambda *given: optimizer.apply(list(given), held)
    step = tf.function(step) if compiled else step
    for number in range(STEPS + 2):
        step(*gradients(number))
    for change in (0.25, 0.125):
        limit.max_value = change
        step(*gradients(0))
        np.testing.assert_allclose(np.linalg.norm(held[0].numpy(), axis=0).max(), change, rtol=1e-5)
    held[0].constraint = None
    step(*gradients(0))
    assert np.linalg.norm(held[0].numpy(), axis=0).max() > 0.13
