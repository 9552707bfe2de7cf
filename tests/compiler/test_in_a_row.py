"""Many steps as one call of kernels: the bits of one step after the other, and the same when one of them fails."""

import contextlib

import numpy as np
import pytest
from slow import sampled
from small_training import needs_llvm

import minikeras as tf
from minikeras.nn_ops import streams

pytestmark = needs_llvm

K = tf.keras
L = K.layers


@pytest.fixture(params=[1, 2])
def threads(request):
    """So many threads compute."""
    tf.config.threading.set_intra_op_parallelism_threads(request.param)
    yield request.param
    tf.config.threading.set_intra_op_parallelism_threads(0)


@pytest.fixture
def all_shared(monkeypatch):
    """Threads share kernels however small they are."""
    from minikeras.compiler.executors.llvm import segment

    monkeypatch.setattr(segment, "SHARED", 1e-9)
    monkeypatch.setattr(segment, "WAKING", 0.0)


ROWS, CLASSES = 210, 3  # a last batch of 2 rows
X = np.random.default_rng(1).standard_normal((ROWS, 5)).astype("float32")
LABELS = np.random.default_rng(2).integers(0, CLASSES, ROWS)
WEIGHTS = np.random.default_rng(3).random(ROWS).astype("float32")
LOSS = "sparse_categorical_crossentropy"


def dense(*between, dtype="float32"):
    return K.Sequential([K.Input((5,)), L.Dense(7, activation="tanh"), *between, L.Dense(CLASSES, activation="softmax")])


CASES = {
    "plain": (lambda: dense(), {}, {}),
    "metrics": (lambda: dense(), {"metrics": ["accuracy", "sparse_categorical_crossentropy"]}, {}),
    "sgd": (lambda: dense(), {"optimizer": lambda: K.optimizers.SGD(0.1, momentum=0.9)}, {}),
    "nadam": (lambda: dense(), {"optimizer": lambda: K.optimizers.Nadam(0.01)}, {}),
    "schedule": (
        lambda: dense(),
        {"optimizer": lambda: K.optimizers.Adam(K.optimizers.schedules.ExponentialDecay(0.1, 3, 0.5, staircase=True))},
        {},
    ),
    "rate of a user": (lambda: dense(), {"optimizer": lambda: K.optimizers.SGD(lambda step: 0.1 / (1.0 + float(step)))}, {}),
    "decay": (lambda: dense(), {"optimizer": lambda: K.optimizers.AdamW(0.01, weight_decay=0.1)}, {}),
    "clipped": (lambda: dense(), {"optimizer": lambda: K.optimizers.Adam(0.01, clipnorm=0.1)}, {}),
    "dropout": (lambda: dense(L.Dropout(0.3)), {"metrics": ["accuracy"]}, {}),
    "batch normalization": (lambda: dense(L.BatchNormalization()), {}, {}),
    "regularized": (lambda: dense(L.Dense(4, kernel_regularizer="l2", activity_regularizer="l1")), {}, {}),
    "per layer": (lambda: dense(), {"optimizer": lambda: {"dense*": K.optimizers.Adam(0.01), "*": "sgd"}}, {}),
    "sample weights": (lambda: dense(), {"weighted_metrics": ["accuracy"]}, {"sample_weight": WEIGHTS}),
    "class weights": (lambda: dense(), {}, {"class_weight": {0: 1.0, 1: 2.0, 2: 0.5}}),
    "validation": (lambda: dense(), {"metrics": ["accuracy"]}, {"validation_split": 0.2}),
    "in order": (lambda: dense(), {}, {"shuffle": False}),
}
MORE = {"clipped", "per layer", "rate of a user"}
"""Steps with more than a formula of each element, or with code of a user."""


def trained(case, steps, jit_compile=True, **changes):
    """A fitted model, its history and state after it."""
    make, compiled, fitted = CASES[case]
    tf.random.set_seed(7)
    model = make()
    options = {"loss": LOSS, **compiled, "optimizer": compiled.get("optimizer", lambda: K.optimizers.Adam(0.01))()}
    if isinstance(options["optimizer"], dict):
        options["optimizer"] = {model.layers[0]: K.optimizers.Adam(0.01), model.layers[-1]: K.optimizers.SGD(0.1)}
    model.compile(jit_compile=jit_compile, steps_per_execution=steps, **options)
    history = model.fit(X, LABELS, batch_size=16, epochs=4, verbose=0, **fitted, **changes)
    return model, history.history


def state_of(model):
    arrays = [variable.numpy() for variable in (*model.weights, *model.optimizer.variables)]
    arrays += [variable.numpy() for metric in model.metrics for variable in metric.variables]
    return arrays, streams.states()


def assert_equal(one, other):
    for a, b in zip(one[0], other[0], strict=True):
        np.testing.assert_array_equal(a, b)
    assert one[1] == other[1]


def replays_of(model):
    return [replay for replay in model._trainer.steps["train_step"]._replays]


@pytest.mark.parametrize("case", sampled(CASES, 2))
def test_steps_in_a_row_have_the_bits_of_one_by_one(case):
    (alone, expected), (together, history), (eager, eager_history) = (
        trained(case, 1),
        trained(case, "auto"),
        trained(case, 1, jit_compile=False),
    )
    assert history == expected
    assert_equal(state_of(together), state_of(alone))
    for name, values in eager_history.items():
        np.testing.assert_allclose(history[name], values, rtol=1e-4)
    for one, other in zip(state_of(together)[0], state_of(eager)[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    assert state_of(together)[1] == state_of(eager)[1]
    in_one_call = any(replay._in_a_row is not None for replay in replays_of(together))
    assert in_one_call or case in MORE


def test_a_fixed_number_of_threads_has_the_same_bits_on_every_run(threads, all_shared):
    first, history = trained("metrics", "auto")
    for _ in range(3):
        again, others = trained("metrics", "auto")
        assert others == history
        assert_equal(state_of(again), state_of(first))


@pytest.mark.parametrize("case", sampled(CASES, 2))
def test_one_thread_has_the_bits_of_several_so_the_faster_way_is_taken(case, all_shared, monkeypatch):
    from minikeras.compiler.executors.llvm.in_a_row import InARow

    tf.config.threading.set_intra_op_parallelism_threads(3)
    found, chosen = [], []
    for shares in (lambda self: True, lambda self: False, lambda self: chosen.append(0) or len(chosen) % 2 == 0):
        monkeypatch.setattr(InARow, "_shares", shares)
        model, history = trained(case, "auto")
        found.append((state_of(model), history))
    tf.config.threading.set_intra_op_parallelism_threads(0)
    for state, history in found[1:]:
        assert history == found[0][1]
        assert_equal(state, found[0][0])


def test_threads_share_calls_while_that_is_faster(monkeypatch):
    from minikeras.compiler.executors.llvm import in_a_row

    monkeypatch.setattr(in_a_row, "TRIED", 4)
    run = replays_of(trained("plain", "auto")[0])[0]._in_a_row
    run._seconds, run._calls = {True: 2.0, False: 1.0}, 0
    assert [run._shares() for _ in range(8)] == [False, False, False, True] * 2
    run._seconds = {True: 1.0, False: 2.0}
    assert [run._shares() for _ in range(8)] == [True, True, True, False] * 2


@pytest.mark.parametrize("case", sampled(["plain", "metrics", "nadam", "dropout"], 2))
@pytest.mark.parametrize("bad", [17, 100, 209])
def test_a_step_that_fails_leaves_exactly_the_steps_before_it(case, bad):
    """A label outside its range is found in one of many steps."""
    labels = LABELS.copy()
    labels[bad] = CASES_OUTSIDE = CLASSES + 4
    assert CASES_OUTSIDE == 7

    def failed(steps):
        model, _ = trained(case, steps, **({"shuffle": False} if "shuffle" not in CASES[case][2] else {}))
        with pytest.raises(tf.errors.InvalidArgumentError, match="label value of 7"):
            model.fit(X, labels, batch_size=16, epochs=1, verbose=0, shuffle=False)
        return model

    alone, together = failed(1), failed("auto")
    assert_equal(state_of(together), state_of(alone))
    assert int(together.optimizer.iterations) == 4 * 14 + bad // 16


def steps_of_a_user():
    tf.random.set_seed(7)
    model, optimizer = dense(), K.optimizers.Adam(0.01)
    loss_fn, accuracy = K.losses.SparseCategoricalCrossentropy(), K.metrics.SparseCategoricalAccuracy()

    @tf.function(jit_compile=True)
    def train_step(x, y):
        with tf.GradientTape() as tape:
            predicted = model(x, training=True)
            loss = loss_fn(y, predicted)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True))
        accuracy.update_state(y, predicted)
        return loss, accuracy.result()

    return train_step, lambda: [v.numpy() for v in (*model.weights, *optimizer.variables, *accuracy.variables)]


def test_scan_stacks_what_each_step_returns():
    data = tf.data.Dataset.from_tensor_slices((X, LABELS)).batch(15)
    one, state = steps_of_a_user()
    expected = [one(x, y) for x, y in data] + [one(x, y) for x, y in data]
    other, found_state = steps_of_a_user()
    found = [other.scan(data), other.scan(data)]
    for leaf in range(2):
        stacked = np.concatenate([part[leaf].numpy() for part in found])
        np.testing.assert_array_equal(stacked, [values[leaf].numpy() for values in expected])
    for a, b in zip(found_state(), state(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_each_step_in_a_row_reads_its_own_count():
    """Also before its update, as a loss does whose weight grows with `iterations`."""
    weight, optimizer = tf.Variable([1.0, 2.0]), K.optimizers.SGD(0.1, name="sgd")
    optimizer.build([weight])

    @tf.function(jit_compile=True)
    def step(x):
        before = tf.cast(optimizer.iterations, "float32") * x
        optimizer.apply([weight * x])
        return before

    data = np.ones(5, "float32")
    assert step.scan(data).numpy().tolist() + step.scan(data).numpy().tolist() == [float(number) for number in range(10)]


def test_what_was_read_before_steps_in_a_row_never_changes():
    model, _ = trained("plain", "auto")
    tensors = [w.read_value() for w in model.weights]
    views = [w.numpy() for w in model.weights]
    before = [view.copy() for view in views]
    model.fit(X, LABELS, batch_size=16, epochs=3, verbose=0)
    for tensor, view, old in zip(tensors, views, before, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), old)
        np.testing.assert_array_equal(view, old)
    assert any((w.numpy() != old).any() for w, old in zip(model.weights, before, strict=True))


def test_weights_are_written_where_they_lie_if_nothing_else_refers_to_them():
    model, _ = trained("plain", "auto", shuffle=False)
    model.fit(X[:192], LABELS[:192], batch_size=16, epochs=1, verbose=0)
    places = [w.array.ctypes.data for w in model.weights]
    model.fit(X[:192], LABELS[:192], batch_size=16, epochs=2, verbose=0)
    assert [w.array.ctypes.data for w in model.weights] == places


@pytest.mark.parametrize("steps", [1, "auto"])
def test_what_another_thread_reads_right_before_the_kernels_begin_never_changes(steps, monkeypatch):
    """No kernel writes what was read between the choice of memory and the kernels themselves."""
    from minikeras.compiler.executors.llvm.segment import Segment

    alone = trained("sgd", steps)[0]
    kept = []
    carry_out = Segment.carry_out
    make, compiled, _ = CASES["sgd"]
    tf.random.set_seed(7)
    model = make()
    model.compile(jit_compile=True, steps_per_execution=steps, loss=LOSS, optimizer=compiled["optimizer"]())

    def with_a_reader(writing, job):
        tensor = model.weights[0].read_value()
        kept.append((tensor, np.array(tensor.numpy())))
        return carry_out(writing, job)

    monkeypatch.setattr(Segment, "carry_out", with_a_reader)
    model.fit(X, LABELS, batch_size=16, epochs=4, verbose=0)
    assert kept
    for tensor, value in kept:
        np.testing.assert_array_equal(tensor.numpy(), value)
    assert_equal(state_of(alone), state_of(model))


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_finds_whole_steps_only(when, monkeypatch):
    """It comes right before the kernels of some steps, or right after them, before anything is assigned."""
    from minikeras.compiler.executors.llvm.runner import Job

    model, _ = trained("metrics", "auto")
    call, count = Job.__call__, [0]

    def interrupted(job):
        count[0] += 1
        if count[0] == 3 and when == "before":
            raise KeyboardInterrupt
        stopped = call(job)
        if count[0] == 3:
            raise KeyboardInterrupt
        return stopped

    begun = int(model.optimizer.iterations)
    monkeypatch.setattr(Job, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, LABELS, batch_size=16, epochs=3, verbose=0, shuffle=False)
    monkeypatch.undo()
    done = int(model.optimizer.iterations) - begun
    assert done > 0
    expected, _ = trained("metrics", 1)
    expected._trainer.loss_tracker.reset_state()
    taken = 0
    while taken < done:  # the same steps one by one
        rows = slice(taken % 14 * 16, taken % 14 * 16 + 16)
        if taken % 14 == 0:
            expected.reset_metrics()
        expected.train_on_batch(X[rows], LABELS[rows])
        taken += 1
    for one, other in zip(model.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    for one, other in zip(model.optimizer.variables, expected.optimizer.variables, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("holding", sampled([4e-3, 0.0], 2))
@pytest.mark.parametrize("shuffle", [False, True])
def test_large_batches_are_read_where_they_lie(shuffle, threads, holding, monkeypatch):
    """Batches of 77 kB; with a limit of 0 what writes weights is a call of its own, as in long steps."""
    from minikeras.compiler.executors.llvm import in_a_row

    monkeypatch.setattr(in_a_row, "HOLDING", holding)
    rows = np.random.default_rng(1).standard_normal((330, 300)).astype("float32")
    labels = np.random.default_rng(2).integers(0, CLASSES, 330)

    def fitted(jit_compile, steps):
        tf.random.set_seed(7)
        model = K.Sequential([K.Input((300,)), L.Dense(40, "relu"), L.Dense(CLASSES)])
        loss = K.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(K.optimizers.Adam(0.01), loss, metrics=["accuracy"], jit_compile=jit_compile, steps_per_execution=steps)
        return model.fit(rows, labels, batch_size=64, epochs=4, verbose=0, shuffle=shuffle).history, model

    (eager, _), (alone, _), (together, model) = fitted(False, 1), fitted(True, 1), fitted(True, "auto")
    assert alone == together
    for name, values in eager.items():
        np.testing.assert_allclose(together[name], values, rtol=1e-4)
    assert all((replay._in_a_row is None) == (holding == 0.0) for replay in replays_of(model))


def test_single_batches_train_where_the_weights_lie():
    (expected, _), (model, _) = trained("metrics", 1, jit_compile=False), trained("metrics", 1)
    held = [variable.array.__array_interface__["data"][0] for variable in model.weights]
    for rows in (16, 2, 16):
        found = model.train_on_batch(X[:rows], LABELS[:rows], return_dict=True)
        wanted = expected.train_on_batch(X[:rows], LABELS[:rows], return_dict=True)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4)
    assert held == [variable.array.__array_interface__["data"][0] for variable in model.weights]


def test_subnormal_numbers_are_zero_in_steps_of_training_and_nowhere_else(threads, all_shared):
    """What is left of a mean that decays: in each step it would cost as much as a hundred other elements."""
    w, optimizer = tf.Variable(np.ones(4096, "float32")), K.optimizers.SGD(1.0, momentum=0.5)
    optimizer.build([w])
    optimizer.variables[-1].assign(np.full(4096, 1e-39, "float32"))

    @tf.function(jit_compile=True)
    def step(g):
        optimizer.apply([g], [w])
        return tf.reduce_sum(g)

    for _ in range(4):
        step(tf.zeros([4096]))
    assert not optimizer.variables[-1].numpy().any()
    halved = tf.function(lambda x: x * 0.5 + 0.0, jit_compile=True)
    tiny = np.full(4096, 1e-39, "float32")
    np.testing.assert_array_equal(halved(tf.constant(tiny)).numpy(), tiny * np.float32(0.5))
    np.testing.assert_array_equal(tiny * np.float32(0.5) > 0, True)  # NumPy's numbers are as before in this thread


def _assigned_after_a_step(jit):
    """A Variable that is assigned after the optimizer's step, while a Tensor holds a second one as another program left it."""
    w, b = tf.Variable(np.arange(4.0, dtype="f")), tf.Variable(np.ones(3, "f"))
    optimizer = K.optimizers.SGD(0.5)
    optimizer.build([w, b])

    def plain(g, h):
        optimizer.apply([g * 2.0, h * 3.0], [w, b])

    def step(g, h):
        plain(g, h)
        w.assign(g * 7.0)

    plain, step = [tf.function(f, jit_compile=True) for f in (plain, step)] if jit else (plain, step)
    found = []
    for i in range(3):
        g, h = tf.fill([4], i + 1.0), tf.ones([3])
        plain(g, h)
        seen = tf.convert_to_tensor(b)
        step(g, h)
        found.append([w.numpy(), b.numpy(), seen.numpy()])
    return found


def test_an_assignment_after_the_optimizers_step_is_not_written_over():
    for own, other in zip(_assigned_after_a_step(True), _assigned_after_a_step(False), strict=True):
        for x, y in zip(own, other, strict=True):
            np.testing.assert_array_equal(x, y)


def interrupt_next_commit(monkeypatch):
    """Interrupt the next commit when it has assigned; the list holds it from then on."""
    from minikeras.compiler.executors.llvm import segment

    assign, interrupted = segment.Commit._assign, []

    def interrupt_once(commit, registers):
        assign(commit, registers)
        if not interrupted:
            interrupted.append(commit)
            raise KeyboardInterrupt

    monkeypatch.setattr(segment.Commit, "_assign", interrupt_once)
    return interrupted


def test_an_interrupt_between_two_assignments_leaves_every_variable_with_a_value(monkeypatch):
    b, c = tf.Variable(np.ones(3, "f")), tf.Variable(np.zeros(700_000, "f"))
    optimizer = K.optimizers.SGD(0.5)
    optimizer.build([b])

    @tf.function(jit_compile=True)
    def step(h, x):
        optimizer.apply([h * 3.0], [b])
        c.assign(tf.sort(x))

    given = tf.ones([3]), tf.constant(np.arange(700_000.0, dtype="f")[::-1].copy())
    step(*given)
    interrupted = interrupt_next_commit(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        step(*given)
    assert interrupted
    np.testing.assert_array_equal(c[:3], [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(b, [-2.0, -2.0, -2.0])


def test_a_step_that_returns_the_number_of_updates_writes_in_place():
    w, optimizer = tf.Variable(np.ones(100, "f")), K.optimizers.SGD(0.5)
    optimizer.build([w])
    step = tf.function(lambda g: optimizer.apply([g], [w]), jit_compile=True)
    counts, places = zip(*[(int(step(tf.ones([100]))), w.array.ctypes.data) for _ in range(6)], strict=True)
    assert counts == (1, 2, 3, 4, 5, 6)
    assert len({*places[3:]}) == 1
    np.testing.assert_array_equal(w, np.full(100, -2.0))


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_weight_and_another_variable_change_places_after_a_step_also_if_it_is_interrupted(interrupted, monkeypatch):
    w, other, optimizer = tf.Variable([1.0, 2.0]), tf.Variable([10.0, 20.0]), K.optimizers.SGD(1.0)
    optimizer.build([w])

    @tf.function(jit_compile=True)
    def step(g):
        optimizer.apply([g], [w])
        old = tf.convert_to_tensor(w)
        w.assign(other)
        other.assign(old)

    for _ in range(4):
        step(tf.ones([2]))
    if interrupted:
        interrupt_next_commit(monkeypatch)  # there is none as long as the weight is not written in place
    with contextlib.suppress(KeyboardInterrupt):
        step(tf.ones([2]))
    np.testing.assert_array_equal(w, [8.0, 18.0])
    np.testing.assert_array_equal(other, [-2.0, -1.0])


def test_an_interrupt_while_a_step_copies_the_gradients_that_it_is_given_changes_nothing(monkeypatch):
    """The step had been counted before."""
    weights, optimizer = [tf.Variable(np.zeros(count, "f")) for count in (3, 2)], K.optimizers.SGD(1.0)
    optimizer.build(weights)
    step = tf.function(lambda *gradients: optimizer.apply(gradients, weights), jit_compile=True)
    given = tf.ones([3]), tf.ones([2])
    for _ in range(4):
        step(*given)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("minikeras.layout.Layout.pieces", interrupted)
        step(*given)
    assert int(optimizer.iterations) == 4 and {*weights[0].numpy(), *weights[1].numpy()} == {-4.0}
    step(*given)
    assert int(optimizer.iterations) == 5 and {*weights[0].numpy(), *weights[1].numpy()} == {-5.0}
