"""`Function.scan` does what a loop of calls does, bit for bit, and stacks the results."""

from functools import partial

import numpy as np
import pytest
from in_threads import in_threads

import minikeras as tf
from minikeras.compiler import scan
from minikeras.errors import ShapeError
from minikeras.nn_ops import streams

generator = np.random.default_rng(2)
X, Y = generator.normal(size=(60, 3)).astype("float32"), generator.integers(0, 3, 60)
slices = tf.data.Dataset.from_tensor_slices


@pytest.fixture(autouse=True)
def quick_growth(monkeypatch):
    """Many calls in a row from the second round on; random streams as they were."""
    monkeypatch.setattr(scan, "SECONDS", 1e9)
    monkeypatch.setattr(scan, "GROWTH", 5)
    before = streams.states()
    yield
    streams.set_states(before)


def trainer():
    """A compiled step of training, and what it changes."""
    streams.set_global_seed(3)
    layers = tf.keras.layers
    model = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(4, "tanh"), layers.Dropout(0.5), layers.Dense(3)])
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    adam = tf.keras.optimizers.Adam(0.01)
    adam.build(model.trainable_variables)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        adam.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True))
        return {"loss": loss, "rows": x[:2]}

    return step, lambda: [variable.numpy().tobytes() for variable in (*model.variables, *adam.variables)]


def batches():
    return slices((X, Y)).shuffle(60).batch(8, drop_remainder=True).repeat(4)


SOURCES = {
    "rows": batches,
    "mapped": lambda: batches().map(lambda x, y: (2.0 * x, y)),
    "generator": lambda: iter([(tf.constant(X[i : i + 4]), tf.constant(Y[i : i + 4])) for i in range(0, 60, 4)]),
    "stacked": lambda: list(zip(X[:56].reshape(7, 8, 3), Y[:56].reshape(7, 8), strict=True)),
}


@pytest.mark.parametrize("name", SOURCES)
def test_it_is_the_loop(name):
    step, state = trainer()
    losses = [step(*map(tf.constant, element)) for element in SOURCES[name]()]
    expected, stream = state(), streams.states()
    scanned, state = trainer()
    data = (X[:56].reshape(7, 8, 3), Y[:56].reshape(7, 8)) if name == "stacked" else (SOURCES[name](),)
    found = scanned.scan(*data)
    assert state() == expected and streams.states() == stream
    for key in ("loss", "rows"):
        assert found[key].numpy().tobytes() == np.stack([one[key].numpy() for one in losses]).tobytes()
    assert (scanned.recordings, scanned.replays) == (step.recordings, step.replays)


def test_many_calls_are_one_call_of_the_executor(monkeypatch):
    @tf.function
    def double(x):
        return 2.0 * x

    calls, replay = [], type(double).replay_many
    monkeypatch.setattr(
        type(double), "replay_many", lambda self, *args, **options: (calls.append(1), replay(self, *args, **options))[1]
    )
    assert double.scan(np.arange(100.0)).numpy().tolist() == (2.0 * np.arange(100.0)).tolist()
    assert double.replays == 99 and len(calls) == 4


def test_a_call_that_fails_leaves_what_those_before_it_did():
    total = tf.Variable(0)

    @tf.function
    def add(label):
        tf.nn.sparse_softmax_cross_entropy_with_logits([label], [[0.0, 0.0]])
        return tf.identity(total.assign_add(1))

    for bad in (0, 1, 3, 20):
        total.assign(0)
        with pytest.raises(tf.errors.InvalidArgumentError, match="label value of 2"):
            add.scan(np.arange(30) // max(bad, 1) * 2 if bad else np.full(30, 2))
        assert int(total) == bad


def test_a_tape_and_another_function_see_each_call():
    @tf.function
    def square(x):
        return x * x

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(square.scan(x))
    assert float(total) == 14.0 and tape.gradient(total, x).numpy().tolist() == [2.0, 4.0, 6.0]
    outer = tf.function(lambda x: square.scan(x))
    assert outer(x).numpy().tolist() == [1.0, 4.0, 9.0] and outer(2.0 * x).numpy().tolist() == [4.0, 16.0, 36.0]


def test_what_runs_eagerly_is_a_loop():
    seen = []

    @tf.function
    def note(x):
        seen.append(float(x))
        return x

    assert note.scan(np.arange(30.0)).numpy().tolist() == seen == list(range(30))


def test_a_fact_that_changes_is_found():
    scale = [1.0]

    @tf.function
    def scaled(x):
        return scale[0] * x

    assert scaled.scan(np.ones(20)).numpy().tolist() == [1.0] * 20
    scale[0] = 3.0
    assert scaled.scan(np.ones(20)).numpy().tolist() == [3.0] * 20


def test_a_method_has_it_too():
    class Counter:
        def __init__(self):
            self.count = tf.Variable(0.0)

        @tf.function
        def add(self, x, y):
            return self.count.assign_add(x * y) + 0.0

    counter = Counter()
    assert counter.add.scan([1.0, 2.0], [3.0, 4.0]).numpy().tolist() == [3.0, 11.0]


def test_nests_are_arguments_and_results():
    @tf.function
    def swap(pair, other):
        return {"a": pair["y"], "b": (pair["x"] + other, None)}

    found = swap.scan({"x": np.arange(9.0), "y": np.ones((9, 2))}, np.arange(9.0))
    assert found["a"].shape == (9, 2) and found["b"][0].numpy().tolist() == (2.0 * np.arange(9)).tolist()
    assert found["b"][1] is None


def test_a_smaller_last_batch_has_a_program_of_its_own():
    mean = tf.function(lambda x: tf.reduce_mean(x))
    assert mean.scan(slices(np.arange(20.0)).batch(8)).numpy().tolist() == [3.5, 11.5, 17.5]
    rows = tf.function(lambda x: 2.0 * x)
    with pytest.raises(ShapeError, match=r"scan: the calls have results of different shapes.*drop_remainder=True"):
        rows.scan(slices(np.arange(20.0)).batch(8))


def test_what_cannot_be_scanned_is_refused():
    same = tf.function(lambda x: x)
    for data in ([np.zeros((0, 2))], [slices(np.arange(3.0)).take(0)], [iter([])]):
        with pytest.raises(ValueError, match="scan: the data has no elements"):
            same.scan(*data)
    with pytest.raises(ValueError, match="the dataset has no end"):
        same.scan(slices(np.arange(3.0)).repeat())
    with pytest.raises(ShapeError, match="scan: all arrays need the same number of rows"):
        same.scan(np.ones(2), np.ones(3))
    with pytest.raises(ShapeError, match="scan: a scalar has no rows"):
        same.scan(1.0)


def test_several_threads_scan_at_once():
    total = tf.Variable(0.0, dtype="float64")

    @tf.function
    def add(x):
        total.assign_add(x)
        return 2.0 * x

    add.scan(np.ones(3))

    def work(number):
        data = np.full(200, float(number))
        assert add.scan(data).numpy().tolist() == (2.0 * data).tolist()

    in_threads(*[partial(work, number) for number in range(4)])


def test_arrays_on_a_device_are_gathered_and_stacked_there():
    with tf.device("STRICT:0"):
        double = tf.function(lambda x: 2.0 * x)
        data = slices(np.arange(12.0).reshape(6, 2)).shuffle(6, seed=1, reshuffle_each_iteration=False).batch(2)
        found = double.scan(data)
        assert double.replays and type(found.array).__name__ == "StrictArray"
        assert found.numpy().tolist() == [double(batch).numpy().tolist() for batch in data]


@pytest.mark.parametrize("data", [(), ("abc",), (b"abc",)])
def test_scan_says_what_it_needs(data):
    with pytest.raises(TypeError, match="scan needs a dataset, or an array for each argument"):
        tf.function(lambda x: x).scan(*data)
