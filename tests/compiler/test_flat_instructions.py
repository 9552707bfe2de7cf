"""The reading, assigning and flattening of Variables as a user's function may hold them: everywhere, in any order."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minikeras as tf
from minikeras.compiler.variable_storage import assign_flat, flatten, read_flat
from minikeras.core.stack import perform
from minikeras.layout import Layout

SHAPES = [(3,), (2, 2)]
LAYOUT = Layout(SHAPES, np.dtype("float32"))


@pytest.fixture(params=[False, True], ids=["numpy", "native"])
def compiled(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    if request.param:
        pytest.importorskip("llvmlite")
    return tf.function(jit_compile=request.param)


def variables(first: float = 0.0) -> list[tf.Variable]:
    return [tf.Variable(np.arange(np.prod(shape), dtype="float32").reshape(shape) + first) for shape in SHAPES]


def read(*columns: list[tf.Variable]) -> Any:
    return perform(read_flat, [one for column in columns for one in column], {"layout": LAYOUT})


def assign(column: list[tf.Variable], flat: Any) -> None:
    perform(assign_flat, [*column, flat], {"layout": LAYOUT})


def flattened(arrays: list[Any]) -> Any:
    return perform(flatten, arrays, {"layout": LAYOUT})


def held(column: list[tf.Variable]) -> list[float]:
    return np.concatenate([one.numpy().ravel() for one in column]).tolist()


def test_the_recorded_run_of_an_assignment_counts_once(compiled):
    own = variables()

    @compiled
    def step(x):
        (flat,) = read(own)
        assign(own, flat * 1.0 + x)

    for expected in (1.0, 2.0, 3.0):
        step(tf.constant(1.0))
        assert held(own) == held(variables(expected))


def test_a_flat_reading_is_not_that_of_its_first_variable(compiled):
    own = variables()

    @compiled
    def total(x):
        alone = own[0] + x
        (flat,) = read(own)
        return tf.reduce_sum(flat) + tf.reduce_sum(alone) + tf.reduce_sum(own[0])

    for _ in range(3):
        assert float(total(tf.constant(1.0))) == 3.0 + 6.0 + 6.0 + 3.0


def test_readings_before_a_flat_one_become_its_parts(compiled):
    own = variables()

    @compiled
    def total(x):
        product = own[1] * x
        (flat,) = read(own)
        return tf.reduce_sum(flat) + tf.reduce_sum(product)

    for _ in range(3):
        assert float(total(tf.constant(2.0))) == 9.0 + 12.0
    names = [record.primitive.name for record in total.program(tf.constant(2.0)).records]
    assert names.count("read_flat") == 1 and "part" in names and "read_variable" not in names


def test_readings_become_parts_where_a_user_gives_the_rate_and_state_changed_before(compiled):
    own, count, optimizer = variables(), tf.Variable(0.0), tf.keras.optimizers.SGD(lambda: 0.5)

    @compiled
    def step(x):
        count.assign_add(1.0)
        product = tf.reduce_sum(own[1] * x)
        optimizer.apply([tf.ones(one.shape) for one in own], own)
        return product

    assert [float(step(tf.constant(2.0))) for _ in range(3)] == [12.0, 8.0, 4.0]
    names = [record.primitive.name for record in step.program(tf.constant(2.0)).records]
    assert names.count("read_flat") == names.count("read_variable") == 1 and "part" in names  # that of the count


def test_flat_readings_of_other_columns_are_others(compiled):
    own, others = variables(), variables(10.0)

    @compiled
    def totals(x):
        ((first,), (both, _), (again,)) = read(own), read(own, others), read([others[0], own[1]])
        return tf.reduce_sum(first) * x, tf.reduce_sum(both), tf.reduce_sum(again)

    for _ in range(3):
        assert [float(one) for one in totals(tf.constant(1.0))] == [9.0, 9.0, 39.0]


@pytest.mark.parametrize("position", [0, 1])
def test_a_flat_assignment_changes_all_its_variables(compiled, position):
    own = variables()

    @compiled
    def step(x):
        before = own[position] * 1.0
        (flat,) = read(own)
        assign(own, flat + x)
        (after,) = read(own)
        return tf.reduce_sum(own[position] - before), tf.reduce_sum(after)

    for number in range(1, 4):
        change, total = step(tf.constant(1.0))
        assert (float(change), float(total)) == (own[position].numpy().size, 9.0 + 7.0 * number)


def test_an_assignment_of_one_variable_changes_a_flat_reading(compiled):
    own = variables()

    @compiled
    def step(x):
        (before,) = read(own)
        own[1].assign_add(tf.ones([2, 2]) * x)
        (after,) = read(own)
        return tf.reduce_sum(after) - tf.reduce_sum(before)

    assert [float(step(tf.constant(1.0))) for _ in range(3)] == [4.0] * 3


@pytest.mark.parametrize(
    "made",
    [
        lambda flat, x: tf.concat([flat[:3] + x[:3], flat[3:]], 0),
        lambda flat, x: flattened([flat[:3] + x[:3], tf.reshape(flat[3:], [2, 2]) * 1.0]),
        lambda flat, x: tf.reshape(tf.reshape(flat + x, [7, 1]) * 1.0, [7]),
        lambda flat, x: tf.reverse(flat + x, [0]),
        lambda flat, x: x,
        lambda flat, x: flat,
        lambda flat, x: tf.constant(np.arange(7, dtype="float32")) + 0.0,
        lambda flat, x: tf.cumsum(flat + x),
    ],
    ids=["concat", "flatten", "reshape", "reverse", "argument", "reading", "constant", "cumsum"],
)
def test_what_is_assigned_may_come_from_anything(compiled, made):
    own, eager = variables(), variables()

    def step(column, x):
        (flat,) = read(column)
        new = made(flat, x)
        assign(column, new)
        return new

    x = tf.range(7.0)
    run = compiled(lambda x: step(own, x))
    results = []
    for _ in range(3):
        results.append((run(x), step(eager, x)))
        assert held(own) == held(eager)
    assert all(np.array_equal(ours.numpy(), theirs.numpy()) for ours, theirs in results)


def test_what_is_assigned_twice_and_returned_stays(compiled):
    own, others = variables(), variables(5.0)

    @compiled
    def step(x):
        (flat,) = read(own)
        new = flat + x
        assign(own, new)
        assign(others, new)
        return new, new[:3]

    kept = [step(tf.constant(1.0)) for _ in range(3)]
    assert [float(new[0]) for new, _ in kept] == [float(part[0]) for _, part in kept] == [1.0, 2.0, 3.0]
    assert held(own) == held(others) == held(variables(3.0))


def test_slices_of_what_is_flattened_are_its_values(compiled):
    @compiled
    def norms(a, b):
        whole = flattened([a * 2.0, b * 3.0])
        first = tf.sqrt(tf.reduce_sum(tf.square(whole[:3])))
        noise = tf.reduce_sum(tf.exp(a[:, None] * tf.ones([3, 64])), 0)
        second = tf.reduce_sum(tf.reshape(whole[3:], [2, 2]) * b)
        return first, second, tf.reduce_sum(noise), whole

    rng = np.random.default_rng(0)
    for _ in range(3):
        a, b = rng.normal(size=3).astype("float32"), rng.normal(size=(2, 2)).astype("float32")
        first, second, _, whole = norms(tf.constant(a), tf.constant(b))
        np.testing.assert_allclose([first, second], [np.linalg.norm(2 * a), 3 * np.sum(b * b)], 1e-5)
        np.testing.assert_array_equal(whole, np.concatenate([2 * a, (3 * b).ravel()]))


def test_slices_of_large_variables_that_are_flattened_are_their_values(compiled):
    own = [tf.Variable(np.full(40_000, fill, "float32")) for fill in (1.0, 2.0)]
    layout = Layout([(40_000,)] * 2, np.dtype("float32"))

    @compiled
    def step(x):
        whole = perform(flatten, [own[0] * 1.0, own[1] * 1.0], {"layout": layout})
        gathered = perform(flatten, [own[0].value(), own[1].value()], {"layout": layout})
        (flat,) = perform(read_flat, own, {"layout": layout})
        perform(assign_flat, [*own, flat + x], {"layout": layout})
        return tf.reduce_mean(whole[:40_000]), tf.reduce_mean(gathered[40_000:])

    for number in range(5):
        assert [float(one) for one in step(tf.constant(1.0))] == [1.0 + number, 2.0 + number]


def test_two_updates_in_one_program_are_written_to_two_buffers_whatever_others_hold():
    """The second reads what the first has written, from memory that it must not write."""

    def weights_after_each_call(keeps):
        weight, optimizer = tf.Variable([0.5, -0.3, 0.2]), tf.keras.optimizers.Ftrl(0.05, name="ftrl")
        optimizer.build([weight])

        @tf.function
        def step():
            for scale in (0.17, -0.16):
                optimizer.apply([weight * scale])
            return weight.read_value()

        kept, found = [], []
        for _ in range(6):
            view = np.asarray(step())
            kept.append(view if keeps else None)
            found.append(view.tolist())
        return found

    assert weights_after_each_call(keeps=True) == weights_after_each_call(keeps=False)
