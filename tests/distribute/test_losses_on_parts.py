"""Losses of parts of a batch: their mean, weighted by rows, is the loss of the whole batch."""

import numpy as np
import pytest
from in_one_test import in_one_test
from trained import on_parts

import minikeras as tf
from minikeras.distribute.parts import BatchPart
from minikeras.ranks import computing_on

losses = tf.keras.losses
REDUCTIONS = ["sum_over_batch_size", "mean", "sum", "mean_with_sample_weight"]
ROWS = 7


def weighted_mean(found, total=ROWS):
    return sum(rows / total * np.asarray(value, "float64") for rows, value in found)


def labels_for(loss, generator, shape):
    name = type(loss).__name__
    if name == "CTC":
        return generator.integers(1, 3, (shape[0], 2))
    if name == "Circle":
        return np.array([0, 1, 0, 2, 1, 0, 3])[: shape[0]]
    if name.startswith("Sparse"):
        return generator.integers(0, shape[-1], shape[:-1])
    if name == "CategoricalGeneralizedCrossEntropy":
        return generator.integers(0, shape[-1], shape[:-1])
    if name.startswith("Categorical"):
        return np.eye(shape[-1])[generator.integers(0, shape[-1], shape[:-1])]
    if "Hinge" in name:
        return generator.choice([-1.0, 1.0], shape)
    return generator.uniform(0.05, 0.95, shape)


def predictions_for(loss, generator):
    name = type(loss).__name__
    shape = (ROWS, 5, 3) if name == "CTC" else (ROWS, 4)
    found = generator.uniform(0.05, 0.95, shape)
    return found / np.linalg.norm(found, axis=-1, keepdims=True) if name == "Circle" else found


def every_loss():
    for name in losses.__all__:
        kind = getattr(losses, name)
        if isinstance(kind, type) and issubclass(kind, losses.Loss) and name not in ("Loss", "LossFunctionWrapper"):
            yield name


def gradient_of(loss, y, x, w, rows):
    scale = tf.Variable(tf.ones([], "float64"))
    with tf.GradientTape() as tape:
        value = loss(y[rows], tf.constant(x[rows]) * scale, None if w is None else w[rows])
    return np.array([value.numpy(), tape.gradient(value, scale).numpy()])


@in_one_test(weighted=[False, True], reduction=REDUCTIONS, name=sorted(set(every_loss())))
def test_parts_give_the_loss_and_the_gradient_of_the_batch(name, reduction, weighted):
    generator = np.random.default_rng(0)
    loss = getattr(losses, name)(reduction=reduction, dtype="float64")
    x = predictions_for(loss, generator)
    y = labels_for(loss, generator, x.shape)
    w = generator.uniform(0.5, 2.0, ROWS) if weighted and name not in ("Dice", "Tversky") else None  # one value for all rows
    expected = gradient_of(loss, y, x, w, np.arange(ROWS))
    for size in (2, 3):
        found = weighted_mean(on_parts(size, lambda rows: gradient_of(loss, y, x, w, rows)))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_masks_count_for_the_whole_batch(reduction, kind):
    generator = np.random.default_rng(1)
    loss = losses.MeanSquaredError(reduction=reduction, dtype=kind)
    x, y = generator.normal(size=(2, ROWS, 3, 4)).astype(kind)
    w = generator.uniform(0.5, 2.0, (ROWS, 3)).astype(kind)
    mask = np.arange(3) < np.array([3, 3, 3, 1, 0, 1, 2])[:, None]

    def value(rows):
        return loss(y[rows], tf.constant(x[rows]), w[rows], mask[rows]).numpy()

    found = weighted_mean(on_parts(3, value))
    np.testing.assert_allclose(found, value(np.arange(ROWS)), rtol=1e-12 if kind == "float64" else 1e-6)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_an_ignored_class_counts_nowhere(reduction):
    generator = np.random.default_rng(2)
    loss = losses.SparseCategoricalCrossentropy(True, ignore_class=0, reduction=reduction, dtype="float64")
    x, y = generator.normal(size=(ROWS, 3)), np.array([0, 0, 1, 2, 1, 0, 2])
    for w in (None, generator.uniform(0.5, 2.0, ROWS)):
        expected = gradient_of(loss, y, x, w, np.arange(ROWS))
        for size in (2, 4):
            found = weighted_mean(on_parts(size, lambda rows, w=w: gradient_of(loss, y, x, w, rows)))
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("borrowed", [False, True], ids=["without rows", "with a borrowed row"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_a_rank_without_rows_adds_nothing(reduction, borrowed):
    loss = losses.MeanSquaredError(reduction=reduction, dtype="float64")
    x, y, w, mask = np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]]), np.array([1.0, 3.0]), np.array([1.0, 1.0])

    def value(rows):
        rows = np.array([0]) if borrowed and not len(rows) else rows
        return [gradient_of(loss, y, x, w, rows), loss(y[rows], x[rows], w[rows], mask[rows]).numpy()]

    results = on_parts(3, value, 2)
    assert [rows for rows, _ in results] == [1, 1, 0]
    assert all(np.isfinite(one).all() for _, found in results for one in found)
    expected = value(np.arange(2))
    for number in range(2):
        found = weighted_mean([(rows, values[number]) for rows, values in results], 2)
        np.testing.assert_allclose(found, expected[number], rtol=1e-12)


def test_a_penalty_on_activities_is_that_of_the_batch():
    layer = tf.keras.layers.Dense(3, activity_regularizer="l1_l2", kernel_regularizer="l2", dtype="float64")
    x = np.random.default_rng(3).normal(size=(ROWS, 2))

    def penalties(rows):
        own = tf.keras.layers.Dense.from_config(layer.get_config())
        own.build((None, 2))
        own.set_weights([np.arange(6.0).reshape(2, 3), np.ones(3)])
        own(x[rows])
        return np.array([float(one) for one in own.losses])

    found = weighted_mean(on_parts(3, penalties))
    np.testing.assert_allclose(found, penalties(np.arange(ROWS)), rtol=1e-12)


@pytest.mark.parametrize("axis", [None, (0, 1), [1]])
def test_overlaps_are_those_of_the_whole_batch(axis):
    y, x = np.random.default_rng(4).uniform(size=(2, ROWS, 4))
    for kind in (losses.Dice, losses.Tversky):
        loss = kind(axis=axis, dtype="float64")
        expected = gradient_of(loss, y, x, None, np.arange(ROWS))
        found = weighted_mean(on_parts(2, lambda rows, loss=loss: gradient_of(loss, y, x, None, rows)))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_shards_of_one_rank_cannot_wait_for_each_other():
    loss = losses.MeanSquaredError(reduction="mean_with_sample_weight")
    with computing_on(BatchPart(0, 1, 4, shards=4)):
        assert loss([[1.0]], [[3.0]]) == 4.0
        with pytest.raises(RuntimeError, match="4 virtual shards one after another. Use virtual_shards=None"):
            loss([[1.0]], [[3.0]], [2.0])
