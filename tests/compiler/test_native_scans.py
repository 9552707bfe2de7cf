"""Loops over a recorded step as kernels: the numbers of NumPy, whatever is carried, sliced, given and kept."""

import numpy as np
import pytest
from slow import diagonal, mostly_slow, sampled

pytest.importorskip("llvmlite")

import minikeras as tf
from minikeras.compiler.executors.llvm import encode
from minikeras.compiler.executors.llvm.scans import KernelScan

layers = tf.keras.layers
pytestmark = pytest.mark.host
LAYERS = {
    "simple": lambda units: layers.SimpleRNN(units),
    "lstm": lambda units: layers.LSTM(units),
    "backwards": lambda units: layers.LSTM(units, go_backwards=True),
    "gru": lambda units: layers.GRU(units),
    "gru before": lambda units: layers.GRU(units, reset_after=False),
    "both ways": lambda units: layers.Bidirectional(layers.GRU(units)),
    "dropout": lambda units: layers.LSTM(units, dropout=0.3, recurrent_dropout=0.3, seed=1),
    "masked": lambda units: tf.keras.Sequential([layers.Masking(), layers.LSTM(units)]),
    "stacked": lambda units: layers.RNN([layers.GRUCell(units), layers.LSTMCell(units)]),
}


@pytest.fixture
def scans(monkeypatch):
    """The loops that were carried out as kernels."""
    found, call = [], KernelScan.__call__
    monkeypatch.setattr(KernelScan, "__call__", lambda self, *arrays: (found.append(self), call(self, *arrays)))
    return found


@pytest.fixture
def refused(monkeypatch):
    """The steps of loops for which there were no kernels."""
    found, scan_of = [], encode.scan_of

    def watched(whole, flushes, body, length, reverse):
        scan = scan_of(whole, flushes, body, length, reverse)
        if scan is None:
            found.append(body.name)
        return scan

    monkeypatch.setattr(encode, "scan_of", watched)
    return found


def trained(make, units, native, optimizer=tf.keras.optimizers.Adam):
    model = tf.keras.Sequential([tf.keras.Input((7, 5)), make(units), layers.Dense(3)])
    model.compile(optimizer(0.01), "mse", jit_compile=native)
    random = np.random.default_rng(0)
    model.set_weights([random.normal(size=x.shape) * 0.5 / np.sqrt(x.shape[0]) for x in model.get_weights()])
    x, y = random.normal(size=(40, 7, 5)).astype("float32"), random.normal(size=(40, 3)).astype("float32")
    x[::3, 4:] = 0.0
    model.fit(x, y, batch_size=17, shuffle=False, verbose=0)
    return [*model.get_weights(), model.predict(x, verbose=0)]


@pytest.mark.parametrize("name, units", sampled(diagonal(LAYERS, [6, 300]), 3))
def test_recurrent_layers_are_trained_as_by_numpy(name, units, scans, refused):
    expected = trained(LAYERS[name], units, False)
    assert not scans
    for mine, theirs in zip(trained(LAYERS[name], units, True), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-5)
    assert scans and not refused


@pytest.mark.parametrize("name", mostly_slow(LAYERS, "lstm"))
def test_loops_with_results_of_more_than_64_kb_are_kernels(name, refused):
    """Parts of such results are copied to where they belong; nothing else needs them as parts."""
    expected, found = (trained(LAYERS[name], 600, native, tf.keras.optimizers.SGD) for native in (False, True))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-5)
    assert not refused


def both(step, carried, sliced, reverse=False):
    """What a loop gives, natively and by NumPy."""

    def run(carried, sliced):
        return tf.keras.ops.scan(step, carried, sliced, reverse=reverse)

    results = [tf.nest.flatten(tf.function(run, jit_compile=native)(carried, sliced)) for native in (True, False)]
    return [[one for one in found if one is not None] for found in results]


X = tf.constant(np.random.default_rng(1).normal(size=(6, 4, 3)).astype("float32"))
STEPS = {
    "what is carried is given as it was": lambda c, x: (c + x, c),
    "a slice is given as it is": lambda c, x: (c + x, x),
    "a part of a result": lambda c, x: (c * 0.5 + x, tf.tanh(c + x)[:, 1:]),
    "one result twice": lambda c, x: (c + x, (c + x, c * x)),
    "a sum": lambda c, x: (c + x, tf.reduce_sum(c * x)),
    "comparisons": lambda c, x: (tf.where(x > 0.0, c + x, c), x > c),
    "nothing but the end": lambda c, x: (c * 0.5 + x, None),
    "an operation of NumPy's": lambda c, x: (c + tf.sort(x), c),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_a_loop_has_the_numbers_of_numpy(name, reverse):
    mine, theirs = both(STEPS[name], tf.zeros([4, 3]), X, reverse)
    for one, other in zip(mine, theirs, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_what_is_carried_may_change_places():
    mine, theirs = both(lambda c, x: ((c[1], c[0] + x), c[0]), (tf.zeros([4, 3]), tf.ones([4, 3])), X)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "float16"])
def test_other_dtypes_have_the_numbers_of_numpy(dtype):
    sliced = tf.cast(tf.round(X * 3.0), dtype)
    mine, theirs = both(lambda c, x: (c * 2 + x, c - x), tf.ones([4, 3], dtype), sliced)
    for one, other in zip(mine, theirs, strict=True):
        assert one.dtype == other.dtype == dtype
        np.testing.assert_array_equal(one, other)


def test_what_is_carried_may_follow_another(scans):
    for step in (lambda c, x: ((c[1], c[0] * 0.5 + x, c[1]), None), lambda c, x: ((c[2], c[0], c[1] + x), c[0])):
        mine, theirs = both(step, (tf.zeros([4, 3]), tf.ones([4, 3]), X[0]), X)
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
    assert scans


def test_numbers_and_rows_of_64_kb_are_carried():
    x = tf.constant(np.random.default_rng(2).normal(size=(5, 200, 100)).astype("float32"))
    mine, theirs = both(lambda c, x: ((c[0] + 1.0, tf.tanh(c[1] + x)), c[1]), (tf.constant(0.0), tf.zeros([200, 100])), x)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_operands_with_gaps_are_read_in_order():
    x = tf.transpose(X, [1, 0, 2])

    @tf.function(jit_compile=True)
    def run(x):
        return tf.scan(lambda c, row: tf.tanh(c + row), tf.transpose(x, [1, 0, 2]), tf.zeros([4, 3]))

    expected, c = [], np.zeros((4, 3), "float32")
    for row in X.numpy():
        c = np.tanh(c + row)
        expected.append(c)
    np.testing.assert_allclose(run(x), expected, rtol=1e-5, atol=1e-6)


def test_a_label_outside_its_row_is_refused_within_a_loop():
    table = tf.constant(np.arange(12.0, dtype="float32").reshape(4, 3))

    @tf.function(jit_compile=True)
    def run(numbers):
        return tf.scan(lambda c, i: c + tf.gather(table, i), numbers, tf.zeros([2, 3]))

    np.testing.assert_array_equal(run(tf.constant([[0, 1], [3, 2]]))[-1], table.numpy()[[0, 1]] + table.numpy()[[3, 2]])
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.constant([[0, 1], [4, 2]]))
