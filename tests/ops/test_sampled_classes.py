"""Losses of sampled classes are those written in NumPy, and TensorFlow's; samplers draw what they say."""

import numpy as np
import pytest

import minikeras as tf

rng = np.random.default_rng(0)
WEIGHTS, BIASES, INPUTS = rng.normal(size=(12, 5)), rng.normal(size=12), rng.normal(size=(4, 5))
LABELS = {1: np.array([[2], [0], [7], [3]]), 2: np.array([[2, 5], [0, 1], [7, 9], [3, 4]])}
SAMPLE = np.array([3, 7, 2, 10, 1, 11]), rng.uniform(0.1, 1.0, 6)

NCE = [5.382043, 8.076937]
NCE_WITHOUT_HITS = [4.215665, 8.076937]
SOFTMAX = [2.366162, 1.824307]


def logits_and_labels(number, remove):
    labels = LABELS[number]
    expected = np.linspace(0.2, 0.9, labels.size).reshape(labels.shape)
    of_true = (WEIGHTS[labels] * INPUTS[:, None]).sum(-1) + BIASES[labels] - np.log(expected)
    of_sampled = INPUTS @ WEIGHTS[SAMPLE[0]].T + BIASES[SAMPLE[0]] - np.log(SAMPLE[1])
    if remove:
        of_sampled[(labels[:, :, None] == SAMPLE[0]).any(1)] = -1e30
    logits = np.concatenate([of_true, of_sampled], 1)
    return expected, logits, np.repeat([[1.0 / number, 0.0]], [number, 6], 1).repeat(4, 0)


@pytest.mark.parametrize("remove", [False, True])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("name", ["nce_loss", "sampled_softmax_loss"])
def test_losses_of_given_classes_are_numpys(name, number, remove):
    expected, logits, truth = logits_and_labels(number, remove)
    if name == "nce_loss":
        wanted = (np.logaddexp(0.0, logits) - logits * truth).sum(1)
    else:
        wanted = np.logaddexp.reduce(logits, 1) - (logits * truth).sum(1)
    values = tf.constant(SAMPLE[0]), tf.constant(expected), tf.constant(SAMPLE[1])

    def loss(w, b, x):
        return getattr(tf.nn, name)(w, b, LABELS[number], x, 6, 12, number, values, remove)

    given = [tf.constant(one) for one in (WEIGHTS, BIASES, INPUTS)]
    np.testing.assert_allclose(loss(*given), wanted)
    np.testing.assert_allclose(loss([WEIGHTS[:5], WEIGHTS[5:]], *given[1:]), wanted, err_msg="a list of parts")
    np.testing.assert_array_equal(tf.function(loss)(*given), loss(*given))
    tf.test.check_gradients(loss, given)


def test_losses_are_tensorflows():
    values = tf.constant([1, 4, 0]), tf.constant([[0.5], [0.25]]), tf.constant([0.5, 0.1, 0.75])
    weights, inputs = tf.reshape(tf.range(10.0), [5, 2]) / 10.0, tf.constant([[1.0, -1.0], [0.5, 2.0]])
    given = weights, tf.range(5.0) / 5.0, tf.constant([[1], [3]]), inputs, 3, 5, 1, values
    np.testing.assert_allclose(tf.nn.nce_loss(*given), NCE, rtol=1e-5)
    np.testing.assert_allclose(tf.nn.nce_loss(*given, True), NCE_WITHOUT_HITS, rtol=1e-5)
    np.testing.assert_allclose(tf.nn.sampled_softmax_loss(*given), SOFTMAX, rtol=1e-5)


def test_only_rows_that_were_read_have_gradients():
    weights = tf.Variable(WEIGHTS)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.sampled_softmax_loss(weights, BIASES, LABELS[1], INPUTS, 3, 12, seed=1))
    gradient = tape.gradient(loss, weights)
    assert isinstance(gradient, tf.IndexedSlices) and gradient.indices.shape == (7,)


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("name", ["log_uniform", "uniform"])
def test_samplers_draw_as_often_as_they_expect(name, unique):
    sampler = getattr(tf.random, f"{name}_candidate_sampler")
    every = tf.range(30, dtype=tf.int64)[:, None]
    tf.random.set_seed(2)
    rows = [sampler(every, 1, 6, unique, 30) for _ in range(600)]
    counts = np.bincount(np.concatenate([drawn for drawn, _, _ in rows]), minlength=30) / 600
    np.testing.assert_allclose(np.mean([of_true for _, of_true, _ in rows], 0)[:, 0], counts, atol=0.1)
    for drawn, of_true, of_drawn in rows[:5]:
        np.testing.assert_array_equal(of_drawn, of_true.numpy()[drawn.numpy(), 0])
        assert not unique or len(set(drawn.numpy().tolist())) == 6
    assert [one.dtype.name for one in rows[0]] == ["int64", "float32", "float32"]
    if not unique and name == "log_uniform":
        np.testing.assert_allclose(rows[0][1][:2, 0], 6.0 * np.log([2.0, 1.5]) / np.log(31.0), rtol=1e-6)  # TensorFlow's
    if unique:
        assert sorted(sampler(every, 1, 30, True, 30)[0].numpy().tolist()) == list(range(30))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.random.uniform_candidate_sampler([[1]], 1, 5, True, 4), "fewer than 5"),
        (lambda: tf.random.uniform_candidate_sampler([[1]], 2, 2, True, 4), "batch, 2"),
        (lambda: tf.random.log_uniform_candidate_sampler([[1.0]], 1, 2, True, 4), "integers"),
        (lambda: tf.random.log_uniform_candidate_sampler([[9]], 1, 2, True, 4), "label value of 9"),
        (lambda: tf.random.uniform_candidate_sampler([[1]], 1, 0, True, 4), "at least one"),
        (lambda: tf.nn.nce_loss(WEIGHTS, BIASES, LABELS[2], INPUTS, 3, 12), "batch, 1"),
        (lambda: tf.nn.sampled_softmax_loss(WEIGHTS, BIASES, LABELS[1][:2], INPUTS, 3, 12), "integer labels .batch, 1"),
        (lambda: tf.nn.nce_loss(WEIGHTS, BIASES, [[1.0]] * 4, INPUTS, 3, 12, 1, ([1], [[1.0]] * 4, [1.0])), "integer labels"),
        (lambda: tf.nn.nce_loss(WEIGHTS, BIASES, LABELS[1] + 9, INPUTS, 3, 12), "outside the valid range"),
    ],
)
def test_mistakes_are_answered(call, message):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
        call()
