"""Backward sweeps by plans: the bits of sweeps without, for every operation; few plans, which hold no arrays."""

import gc
import weakref

import numpy as np
import pytest
from in_one_test import try_all
from in_threads import in_threads
from laws import directions_for, moved, results, smooth_positions
from specimens import SMOOTH

import minikeras as tf
from minikeras.compiler import sweeps
from minikeras.core import tape as core_tape
from minikeras.core.tensor import Tensor


@pytest.fixture
def plans(monkeypatch):
    """No plans but those of this test, each made at the first sight."""
    monkeypatch.setattr(sweeps, "SIGHTINGS", 0)
    found = sweeps.SweepPlans()
    monkeypatch.setattr(sweeps, "plans", found)
    return found


def compiled(plans):
    """How many sweeps have a plan, rather than the note that there can be none."""
    return sum(entry.plan is not None for entry in plans._plans.values())


def bits(gradients):
    return [None if g is None else (g.dtype.name, tuple(g.shape), tf.convert_to_tensor(g).numpy().tobytes()) for g in gradients]


def gradients_of(specimen, arrays):
    tensors = [Tensor(x) for x in arrays]
    sources = [tensors[i] for i in smooth_positions(arrays)]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        targets = results(specimen, tensors)
    return bits(tape.gradient([y for y in targets if isinstance(y, Tensor)], sources))


def with_and_without(monkeypatch, gradients):
    with monkeypatch.context() as patch:
        patch.setattr(core_tape, "find_hook", lambda *_: None)
        expected = gradients()
    return gradients(), expected


def test_every_operation_has_the_same_gradient_by_a_plan(monkeypatch, plans):
    with_plan = []

    def agree(specimen):
        arrays = specimen.sample()
        found, expected = with_and_without(monkeypatch, lambda: gradients_of(specimen, arrays))
        assert found == expected
        with_plan.append(compiled(plans))
        other = moved(arrays, directions_for(specimen, arrays), 1e-3)
        found, expected = with_and_without(monkeypatch, lambda: gradients_of(specimen, other))
        assert found == expected, "at other values"
        plans.clear()

    try_all((specimen.name, lambda specimen=specimen: agree(specimen)) for specimen in SMOOTH)
    assert np.mean(with_plan) > 0.8, f"{sum(with_plan)} of {len(with_plan)} specimens were swept by a plan"


def train(steps, rows=8):
    """A few steps of a small model; weights and losses."""
    tf.random.set_seed(3)
    layers = [tf.keras.layers.Dense(7, "relu"), tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(3)]
    model = tf.keras.Sequential([tf.keras.Input((4,)), *layers])
    optimizer = tf.keras.optimizers.Adam(0.05)
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    losses = []
    for step in range(steps):
        x = tf.random.stateless_normal([rows, 4], [step, 1])
        with tf.GradientTape() as tape:
            loss = cross_entropy(np.arange(rows) % 3, model(x, training=True))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        losses.append(loss)
    return bits([*losses, *model.weights])


def test_a_training_loop_has_the_same_bits_and_one_plan(monkeypatch, plans):
    found, expected = with_and_without(monkeypatch, lambda: train(4))
    assert found == expected
    assert compiled(plans) == 1


def squares(x, factor=2.0, axis=None):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x * factor, axis=axis)
    return tape.gradient(y, x).numpy()


def test_what_differs_in_shape_dtype_layout_parameter_or_number_has_a_plan_of_its_own(plans):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    ways = [
        lambda: squares(x),
        lambda: squares(x[:1]),
        lambda: squares(tf.cast(x, "float64")),
        lambda: squares(Tensor(np.asfortranarray(x.numpy()))),
        lambda: squares(x, axis=0),
        lambda: squares(x, factor=-3.0),
        lambda: squares(x, factor=0.0),
        lambda: squares(x, factor=-0.0),
    ]
    for count, way in enumerate(ways, 1):
        first, again = way(), way()
        assert compiled(plans) == count
        assert first.tobytes() == again.tobytes()
    assert squares(x, factor=-3.0).tolist() == [[-6.0, -12.0], [-18.0, -24.0]]
    assert np.signbit(squares(x, factor=-0.0)).all() and not np.signbit(squares(x, factor=0.0)).any()


def test_what_is_asked_for_is_part_of_the_key(plans):
    a, b = tf.Variable(2.0), tf.Variable(3.0)

    def gradient(target, sources):
        with tf.GradientTape() as tape:
            y = a * b
            z = y * a
        return [None if g is None else float(g) for g in tape.gradient({"y": y, "z": z, "yz": [y, z]}[target], sources)]

    for _ in range(2):
        assert gradient("y", [a, b]) == [3.0, 2.0]
        assert gradient("y", [b, a]) == [2.0, 3.0]
        assert gradient("z", [a, b]) == [12.0, 4.0]
        assert gradient("yz", [a, b, a]) == [15.0, 6.0, 15.0]
    assert compiled(plans) == 4


def test_unconnected_and_unwatched_sources_stay_so(plans):
    x, other, watched = tf.constant(2.0), tf.constant(5.0), tf.constant(7.0)
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch([x, watched])
            y = x * other
        found = tape.gradient(y, [x, other, watched])
        assert [None if g is None else float(g) for g in found] == [5.0, None, None]
        assert tape.explain(y, other).reason == "not_watched"
        with tf.GradientTape() as tape:
            tape.watch([x, watched])
            y = x * other
        found = tape.gradient(y, [x, other, watched], unconnected_gradients="zero")
        assert [float(g) for g in found] == [5.0, 0.0, 0.0]
    assert compiled(plans) == 1


def test_the_same_operand_twice_is_not_two_operands_alike(plans):
    x, z = tf.constant(2.0), tf.constant(2.0)
    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        assert float(tape.gradient(y, x)) == 4.0
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * z
        assert float(tape.gradient(y, x)) == 2.0


def test_functions_of_the_user_run_in_each_sweep(plans):
    calls = []

    @tf.custom_gradient
    def doubled(x):
        def back(g):
            calls.append(1)
            return g * len(calls)

        return 2.0 * x, back

    found = []
    for _ in range(3):
        x = tf.constant(1.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = doubled(x)
        found.append(float(tape.gradient(y, x)))
    assert found == [1.0, 2.0, 3.0] and compiled(plans) == 0


def test_rows_that_are_looked_up_stay_indexed_slices(plans):
    table = tf.Variable([[1.0], [2.0], [3.0]])
    for _ in range(3):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, [2, 0, 2]) * 3.0)
        assert isinstance(tape.gradient(y, table), tf.IndexedSlices)
    assert compiled(plans) == 0 and len(plans) == 1, "that there is no plan is remembered"


def test_a_persistent_tape_and_a_nested_one(plans):
    x = tf.Variable(3.0)
    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            y = x * x * x
            z = tf.sin(y)
        assert float(tape.gradient(y, x)) == float(tape.gradient(y, x)) == 27.0
        assert float(tape.gradient(z, y)) == pytest.approx(np.cos(27.0))
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = x * x * x
            slope = inner.gradient(y, x)
        assert float(outer.gradient(slope, x)) == 18.0


def test_plans_are_few_and_wait_longer_if_they_do_not_pay(plans):
    sizes = range(1, 3 * sweeps.PLANS)
    for _ in range(10):
        for size in sizes:
            squares(tf.ones([size]))
    assert len(plans) == sweeps.PLANS
    assert len(plans._seen) <= 4 * sweeps.PLANS
    assert plans._wanted > 5, "shapes in turns are not compiled again and again"
    for _ in range(plans._wanted + 1):
        assert squares(tf.ones([1, 2])).tolist() == [[4.0, 4.0]]
    assert plans._latest.plan is not None and plans._latest.uses == 0, "what keeps coming is"


def test_what_comes_six_times_has_a_plan(plans, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(sweeps, "plans", sweeps.SweepPlans())
    for count in range(sweeps.SIGHTINGS + 3):
        squares(tf.ones([3]))
        assert len(sweeps.plans) == (count >= sweeps.SIGHTINGS)


def test_plans_that_work_in_much_memory_are_fewer(plans, monkeypatch):
    monkeypatch.setattr(sweeps, "BYTES", 3000)

    def step(size):
        x = tf.ones([size])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sin(x * x) * tf.reduce_sum(tf.cos(x)))
        return tape.gradient(y, x)

    for size in range(100, 110):
        step(size)
    assert 1 <= len(plans) < 10


def test_a_plan_keeps_no_array_alive(plans):
    gone = []
    for _ in range(3):
        x = Tensor(np.ones((50, 50), np.float32))
        with tf.GradientTape() as tape:
            tape.watch(x)
            h = tf.sin(x @ x)
            y = tf.reduce_sum(h * h)
        g = tape.gradient(y, x)
        gone += [weakref.ref(array) for array in (x.array, h.array, g.array)]
        del x, h, y, g, tape
    gc.collect()
    assert compiled(plans) == 1
    assert not any(reference() is not None for reference in gone)


def test_a_gradient_is_not_changed_by_the_next_sweep(plans):
    found = [squares(tf.constant([float(i), 2.0])) for i in range(4)]
    assert [g.tolist() for g in found] == [[4.0 * i, 8.0] for i in range(4)]


def test_a_rule_that_refuses_values_raises_what_it_raises_without_a_plan(monkeypatch, plans):
    def gradient(matrix):
        x = Tensor(np.asarray(matrix, np.float32))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.linalg.det(x)
        try:
            return tape.gradient(y, x).numpy().tolist()
        except Exception as error:
            return type(error), str(error)

    gradient(np.eye(2))
    for matrix in (np.diag([1.0, 2.0]), np.zeros((2, 2)), np.diag([1.0, 0.0])):
        found, expected = with_and_without(monkeypatch, lambda matrix=matrix: gradient(matrix))
        assert found == expected


def test_threads_share_plans(plans):
    expected = [[4.0 * i, 8.0] for i in range(20)]
    found = [[], [], [], []]

    def work(own):
        for i in range(20):
            own.append(squares(tf.constant([float(i), 2.0])).tolist())

    in_threads(*(lambda own=own: work(own) for own in found))
    assert found == [expected] * 4 and compiled(plans) == 1


def wide(x):
    """The gradients of a loss of two large weights."""
    a, b = tf.ones([300, 200]), tf.ones([200]) * 2.0
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        loss = tf.reduce_sum(tf.sin(x @ a + b))
    return tape.gradient(loss, [a, b])


def test_large_gradients_stay_as_they_are_in_later_sweeps(monkeypatch, plans):
    inputs = [tf.random.stateless_normal([3, 300], [i, 0]) for i in range(6)]
    found, expected = with_and_without(monkeypatch, lambda: [bits(wide(x)) for x in inputs])
    assert found == expected
    held = [wide(x) for x in inputs]
    parts = [wide(x)[0].numpy()[:1] for x in inputs]
    views = [np.asarray(wide(x)[1])[5:] for x in inputs]
    variables = [tf.Variable(wide(x)[1]) for x in inputs]
    assert [bits(gradients) for gradients in held] == expected
    for i, (part, view, variable) in enumerate(zip(parts, views, variables, strict=True)):
        assert part.tobytes() == held[i][0].numpy()[:1].tobytes()
        assert view.tobytes() == held[i][1].numpy()[5:].tobytes()
        assert variable.numpy().tobytes() == held[i][1].numpy().tobytes()


def test_an_optimizer_does_not_change_large_gradients(monkeypatch, plans):
    def run():
        a, b = tf.Variable(tf.ones([300, 200])), tf.Variable(tf.zeros([200]))
        optimizer, kept = tf.keras.optimizers.Adam(0.1), []
        for step in range(12):
            x = tf.random.stateless_normal([3, 300], [step, 0])
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.sin(x @ a + b))
            gradients = tape.gradient(loss, [a, b])
            before = bits(gradients)
            optimizer.apply_gradients(zip(gradients, [a, b], strict=True))
            assert bits(gradients) == before
            kept.append(before)
        return kept, bits([a, b])

    found, expected = with_and_without(monkeypatch, run)
    assert found == expected
