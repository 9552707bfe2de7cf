"""BatchNormalization and moments over the rows of all ranks."""

import numpy as np
import pytest
from slow import sampled
from trained import on_parts

import minikeras as tf
from minikeras.distribute.parts import BatchPart
from minikeras.ranks import computing_on

ROWS = 7


def step_of(x, mask, compiled=False, rounds=1, **options):
    """What a training step with the rows gives: outputs, loss, gradients, moving statistics."""

    def step(rows):
        kind = x.dtype.name
        layer = tf.keras.layers.BatchNormalization(dtype=kind, **options)
        layer.build((None, *x.shape[1:]))
        scale = tf.Variable(np.linspace(0.5, 1.5, x.shape[-1]), dtype=kind)
        weights = [layer.gamma, layer.beta, scale]

        def run(rows, mask):
            with tf.GradientTape() as tape:
                y = layer(rows * scale, training=True, mask=mask)
                loss = tf.reduce_mean(tf.square(y + 0.3) * tf.tanh(rows))
            return y, loss, tape.gradient(loss, weights)

        run = tf.function(run) if compiled else run
        own = tf.constant(x[rows]), None if mask is None else tf.constant(mask[rows])
        for _ in range(rounds):
            y, loss, gradients = run(*own)
        found = [loss, *gradients, layer.moving_mean, layer.moving_variance]
        return y.numpy(), [one.numpy() for one in found]

    return step


def compare(found, expected, rtol, total=ROWS):
    np.testing.assert_allclose(np.concatenate([y for _, (y, _) in found]), expected[0], rtol=rtol, atol=rtol)
    for number, value in enumerate(expected[1]):
        per_rank = [values[number] for _, (_, values) in found]
        if number > 3:  # statistics: the same bits on all ranks
            assert all((one == per_rank[0]).all() for one in per_rank)
            np.testing.assert_allclose(per_rank[0], value, rtol=rtol)
        else:
            mean = sum(rows / total * one for (rows, _), one in zip(found, per_rank, strict=True))
            np.testing.assert_allclose(mean, value, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("compiled", sampled([False, True], 2), ids=["eager", "compiled"])
@pytest.mark.parametrize(("kind", "rtol"), [("float64", 6e-15), ("float32", 1e-6)])
@pytest.mark.parametrize("options", [{}, {"renorm": True}, {"axis": 1}], ids=str)
def test_a_step_is_that_of_the_whole_batch(options, kind, rtol, compiled):
    x = np.random.default_rng(0).normal(size=(ROWS, 4, 4)).astype(kind) + 0.5
    expected = step_of(x, None, rounds=5, **options)(np.arange(ROWS))
    for size in (2, 3):
        found = on_parts(size, step_of(x, None, compiled, rounds=5, synchronized=True, **options))
        compare(found, expected, rtol)


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_masked_rows_do_not_count(kind):
    x = np.random.default_rng(1).normal(size=(ROWS, 3, 2)).astype(kind)
    mask = np.arange(3) < np.array([3, 3, 1, 0, 2, 0, 1])[:, None]
    expected = step_of(x, mask)(np.arange(ROWS))
    for size in (2, 7):
        compare(on_parts(size, step_of(x, mask, synchronized=True)), expected, 1e-13 if kind == "float64" else 2e-6)


def test_a_small_variance_beside_a_large_mean_keeps_its_digits():
    x = np.random.default_rng(2).normal(size=(ROWS, 3)) * 1e-3 + 1e3
    _, (mean, variance) = on_parts(3, lambda rows: [one.numpy() for one in tf.keras.ops.moments(x[rows], 0, False, True)])[0]
    np.testing.assert_allclose(mean, x.mean(0), rtol=1e-15)
    np.testing.assert_allclose(variance, x.var(0), rtol=1e-9)  # what x itself knows of it


@pytest.mark.parametrize("borrowed", [False, True], ids=["without rows", "with a borrowed row"])
def test_a_rank_without_rows_takes_part(borrowed):
    x = np.random.default_rng(3).normal(size=(2, 4)).astype("float32")
    expected = step_of(x, None)(np.arange(2))
    step = step_of(x, None, synchronized=True)
    found = on_parts(3, lambda rows: step(rows if len(rows) or not borrowed else np.array([0])), 2)
    assert [rows for rows, _ in found] == [1, 1, 0]
    compare([(rows, (y[:rows], [np.nan_to_num(one) for one in values])) for rows, (y, values) in found], expected, 1e-6, 2)


def test_ranks_of_a_custom_loop_are_synchronized_too():
    x = np.random.default_rng(4).normal(size=(6, 2))
    expected = step_of(x, None)(np.arange(6))
    compare(on_parts(2, step_of(x, None, synchronized=True), 6, parts=False), expected, 6e-15, 6)


@pytest.mark.parametrize("axes", [0, (0, 1), [0, 2], None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_moments_are_those_of_all_ranks(axes, keepdims):
    x = np.random.default_rng(5).normal(size=(ROWS, 2, 3))
    expected = tf.keras.ops.moments(x, axes, keepdims)
    for _, found in on_parts(2, lambda rows: tf.keras.ops.moments(x[rows], axes, keepdims, synchronized=True)):
        for one, other in zip(found, expected, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-14)


def test_one_process_has_the_plain_layer():
    x = np.random.default_rng(6).normal(size=(5, 3)).astype("float32")
    plain, same = (tf.keras.layers.BatchNormalization(synchronized=one) for one in (False, True))
    assert (plain(x, training=True).numpy() == same(x, training=True).numpy()).all()
    plain, same = (tf.keras.ops.moments(x, 0, synchronized=one)[1].numpy() for one in (False, True))
    assert (plain == same).all()


def test_second_derivatives_and_tangents_are_those_of_the_batch():
    x = np.random.default_rng(7).normal(size=(6, 2))

    def work(rows):
        scale = tf.Variable([1.2, 0.7], dtype="float64")
        layer = tf.keras.layers.BatchNormalization(dtype="float64", synchronized=True, epsilon=0.1)

        def loss():
            return tf.reduce_mean(layer(tf.constant(x[rows]) * scale, training=True) ** 3)

        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                value = loss()
            (first,) = inner.gradient(value, [scale])
            total = tf.reduce_sum(first * tf.constant([1.0, 2.0], "float64"))
        second = outer.gradient(total, scale)
        with tf.autodiff.ForwardAccumulator(scale, tf.constant([1.0, 2.0], "float64")) as accumulator:
            value = loss()
        return [one.numpy() for one in (first, second, accumulator.jvp(value))]

    expected = work(np.arange(6))
    found = [sum(rows / 6 * values[number] for rows, values in on_parts(2, work, 6)) for number in range(3)]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


def test_shards_of_one_rank_cannot_wait_for_each_other():
    layer = tf.keras.layers.BatchNormalization(synchronized=True)
    with computing_on(BatchPart(0, 2, 8, shards=4)):
        with pytest.raises(RuntimeError, match="synchronized=True needs sums over all ranks.*4 virtual shards"):
            layer(tf.ones([2, 3]), training=True)
        layer(tf.ones([2, 3]), training=False)
        with pytest.raises(RuntimeError, match="synchronized=True needs sums over all ranks"):
            tf.keras.ops.moments(tf.ones([2, 3]), 0, synchronized=True)


def test_configurations_and_files_keep_it(tmp_path):
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.BatchNormalization(synchronized=True)])
    model.save(tmp_path / "model.keras")
    layer = tf.keras.models.load_model(tmp_path / "model.keras").layers[0]
    assert layer.synchronized is True and layer.get_config()["synchronized"] is True
