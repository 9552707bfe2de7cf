"""Long chains and what is kept alive: no recursion, linear work, and memory that reference counting gives back."""

import contextlib
import gc
import sys
import weakref

import numpy as np
import pytest

import minikeras as tf
from minikeras.core import primitive
from minikeras.core.ownership import IS_LOCKED
from minikeras.core.registry import operations


@pytest.fixture
def without_collector():
    """Only reference counting frees memory within the test; what it leaves in cycles is found afterwards."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def chain(length, x):
    y = x
    for _ in range(length):
        y = operations.sin(y)
    return y


# Length --------------------------------------------------------------------------------------------------------------


def test_a_chain_of_a_hundred_thousand_operations_is_differentiated_and_freed(without_collector):
    """T46: neither the sweep nor the freeing of the tape recurses."""
    x = tf.constant(0.5, dtype="float64")
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(100_000):
            y = operations.multiply(y, 1.00001)
        last = weakref.ref(y)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), 1.00001**100_000, rtol=1e-9)
    del y, tape
    assert last() is None


def test_a_second_derivative_passes_through_thousands_of_operations():
    x = tf.constant(0.5, dtype="float64")
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x
            for _ in range(3000):
                y = y + x * x * 1e-4
        first = inner.gradient(y, x)
    np.testing.assert_allclose(first.numpy(), 1 + 3000 * 1e-4, rtol=1e-12)
    np.testing.assert_allclose(outer.gradient(first, x).numpy(), 3000 * 2e-4, rtol=1e-12)


def events(function):
    """Number of calls, of Python functions and of C functions, while `function` runs."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("order", [1, 2])
def test_work_grows_in_proportion_to_the_length_of_the_chain(order):
    """Twice as many further operations make exactly twice as many further calls, forward and backward."""

    def differentiate(length):
        x = tf.constant(0.5)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = chain(length, x)
            first = inner.gradient(y, x)
        if order == 2:
            outer.gradient(first, x)

    differentiate(2)
    at_100, at_200, at_400 = (events(lambda n=n: differentiate(n)) for n in (100, 200, 400))
    assert at_400 - at_200 == 2 * (at_200 - at_100)


def test_only_operations_between_source_and_target_are_swept():
    """What depends on other sources, or leads elsewhere, costs one look at its Record and no rule."""
    calls = []
    primitive("toy_counted", lambda xp, x: x * 2, lambda g, y, x: calls.append(1) or operations.multiply(g, 2))
    x, z = tf.constant(1.0), tf.constant(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, z])
        y = operations.toy_counted(x)
        operations.toy_counted(y)
        other = operations.toy_counted(operations.toy_counted(z))
    assert tape.gradient([y, other], x).numpy() == 2.0
    assert len(calls) == 1


# What is kept alive ----------------------------------------------------------------------------------------------


def test_watching_does_not_keep_a_tensor_alive(without_collector):
    """T14."""
    x = tf.constant(3.0)
    gone = weakref.ref(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        del x
        assert gone() is None
    assert tape.watched_variables() == ()


def test_an_operation_without_watched_input_holds_nothing(without_collector):
    """T14."""
    x = tf.constant(3.0)
    with tf.GradientTape():
        y = x * x
        gone = weakref.ref(y)
        del y
        assert gone() is None


def intermediates(tape, x):
    """A target and weak references to what lies between it and x."""
    with tape:
        tape.watch(x)
        a = tf.sin(x)
        b = tf.exp(a)
        y = a * b
    return y, [weakref.ref(a), weakref.ref(b)]


def test_gradient_frees_the_intermediates_of_a_tape_for_one_use(without_collector):
    """T14."""
    tape = tf.GradientTape()
    x = tf.constant(3.0)
    y, between = intermediates(tape, x)
    assert all(reference() is not None for reference in between)
    tape.gradient(y, x)
    assert all(reference() is None for reference in between)


def test_the_intermediates_of_a_persistent_tape_go_with_it(without_collector):
    """T14, T4."""
    tape = tf.GradientTape(persistent=True)
    x = tf.constant(3.0)
    y, between = intermediates(tape, x)
    tape.gradient(y, x)
    tape.gradient(y, x)
    assert all(reference() is not None for reference in between)
    del tape
    assert all(reference() is None for reference in between)


def test_reset_frees_what_was_recorded(without_collector):
    """T32."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sin(x)
        gone = weakref.ref(y)
        del y
        assert gone() is not None
        tape.reset()
        assert gone() is None


@pytest.mark.parametrize("persistent", [False, True])
def test_a_tape_is_freed_also_when_gradient_raised(without_collector, persistent):
    x = tf.constant(3.0)
    tape = tf.GradientTape(persistent=persistent)
    y, between = intermediates(tape, x)
    gone = weakref.ref(tape)
    for arguments in ((y, 5.0), (None, x), (y, x, [1.0, 2.0])):
        with pytest.raises((TypeError, ValueError)):
            tape.gradient(*arguments)
    with pytest.raises(ValueError):
        tape.gradient(y, x, unconnected_gradients="nonsense")
    del tape
    assert gone() is None and all(reference() is None for reference in between)


def test_a_tape_is_freed_after_a_rule_raised(without_collector):
    def refuse(g, y, x):
        raise ArithmeticError("no")

    operation = primitive("toy_refusing", lambda xp, x: x * 2, refuse)
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        a = tf.sin(x)
        y = operation(a)
    between, gone = weakref.ref(a), weakref.ref(tape)
    del a
    try:
        tape.gradient(y, x)
    except ArithmeticError as error:
        assert str(error) == "no"
    else:
        pytest.fail("the error of the rule was lost")
    del tape
    assert gone() is None and between() is None


def test_a_failed_operation_leaves_nothing_behind(without_collector):
    """No cycle through the error or its cause keeps the operands alive."""
    a, b = tf.ones([2]), tf.ones([3])
    gone = [weakref.ref(a), weakref.ref(b)]
    for operation in (operations.add, operations.matrix_product):
        try:
            operation(a, b)
        except ValueError:
            pass
        else:
            pytest.fail("the shapes do not fit")
    n = tf.constant([1, 2])
    gone.append(weakref.ref(n))
    with contextlib.suppress(tf.errors.InvalidArgumentError):
        operations.floor_divide(n, 0)
    del a, b, n
    assert [reference() for reference in gone] == [None] * 3


def test_training_steps_leave_no_reference_cycles(without_collector):
    v = tf.Variable([1.0, 2.0])

    def step():
        with tf.GradientTape() as outer:
            with tf.GradientTape(persistent=True) as inner:
                y = tf.reduce_sum(tf.sin(v) * v)
            slope = inner.gradient(y, v)
            total = tf.reduce_sum(slope * slope)
        v.assign_sub(0.1 * outer.gradient(total, v))

    step()
    gc.collect()
    for _ in range(20):
        step()
    assert gc.collect() == 0


# Identity --------------------------------------------------------------------------------------------------------


def test_a_tensor_never_takes_the_place_of_a_dead_one(without_collector):
    """T15: memory addresses are used again, keys are not."""
    addresses = set()
    with tf.GradientTape(persistent=True) as tape:
        for _ in range(100):
            dead = tf.constant(3.0)
            tape.watch(dead)
            addresses.add(id(dead))
            del dead
        newcomers = [tf.constant(3.0) for _ in range(100)]
        results = [newcomer * newcomer for newcomer in newcomers]
    if not addresses & {id(newcomer) for newcomer in newcomers}:
        assert not IS_LOCKED, "no address was used again, so nothing was tested"
        pytest.skip("without the interpreter's lock Python uses no address again so soon")
    assert tape.tape.records == []
    assert tape.gradient(results, newcomers) == [None] * 100


def test_equal_values_are_different_sources():
    """T15."""
    first, second = tf.constant(3.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([first, second])
        y = first * first
    gradient, none = tape.gradient(y, [first, second])
    assert gradient.numpy() == 6.0 and none is None
