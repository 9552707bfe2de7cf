"""Attention of several heads and grouped queries: what the laws of layers of one argument cannot say."""

import json

import numpy as np
import pytest
from slow import mostly_slow

import minikeras as tf
from minikeras import nest
from minikeras.nn_ops import streams

L = tf.keras.layers
RNG = np.random.default_rng(3)
QUERY, VALUE = RNG.standard_normal((4, 3, 5)), RNG.standard_normal((4, 6, 5))
MADE = {
    "heads": lambda **o: L.MultiHeadAttention(2, 3, value_dim=4, output_shape=(2, 3), **o),
    "gate": lambda **o: L.MultiHeadAttention(2, 3, use_gate=True, sliding_window=2, attention_axes=-2, **o),
    "groups": lambda **o: L.GroupQueryAttention(2, 4, 2, use_bias=False, **o),
}
each = pytest.mark.parametrize("make", MADE.values(), ids=MADE)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def by_hand(layer, query, value, allowed):
    """Heads one by one, in float64."""
    w = {weight.path.split("/", 1)[1]: weight.numpy() for weight in layer.weights}
    project = lambda x, name: np.einsum("btd,dnh->bnth", x, w[f"{name}/kernel"]) + w[f"{name}/bias"][:, None]
    q, k, v = project(query, "query"), project(value, "key"), project(value, "value")
    scores = np.where(allowed, q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -1e300)
    found = softmax(scores) @ v
    return np.einsum("bnth,nhd->btd", found, w["attention_output/kernel"]) + w["attention_output/bias"]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("returned", [False, True])
def test_multi_head_attention_is_its_formula(causal, returned, float64):
    layer = L.MultiHeadAttention(2, 3, bias_initializer="uniform", dtype="float64", sliding_window=2)
    y = layer(QUERY, VALUE, use_causal_mask=causal, return_attention_scores=returned)
    y = y[0] if returned else y
    rows, columns = np.ogrid[:3, :6]
    allowed = (abs(rows - columns) < 2) & ((rows >= columns) | (not causal))
    np.testing.assert_allclose(y.numpy(), by_hand(layer, QUERY, VALUE, allowed), rtol=1e-12, atol=1e-12)


@each
def test_a_configuration_makes_the_same_layer_again(make):
    layer = make(name="given", trainable=False, dtype="float64", activity_regularizer="l2")
    y = layer(QUERY, VALUE)
    config = json.loads(json.dumps(layer.get_config()))
    twin = type(layer).from_config(config)
    assert json.loads(json.dumps(twin.get_config())) == config
    twin.build_from_config(json.loads(json.dumps(layer.get_build_config())))
    assert [(w.path, w.shape) for w in twin.weights] == [(w.path, w.shape) for w in layer.weights]
    twin.set_weights(layer.get_weights())
    np.testing.assert_array_equal(twin(QUERY, VALUE).numpy(), y.numpy())
    assert len(layer.losses) == 4 + layer.use_gate and not layer.trainable_weights


@each
def test_the_shapes_of_the_outputs_are_foretold_with_open_axes(make):
    layer = make()
    y, scores = layer(QUERY, VALUE, return_attention_scores=True)
    assert tuple(layer.compute_output_shape(QUERY.shape, VALUE.shape)) == y.shape
    assert tuple(layer.scores_shape(QUERY.shape, VALUE.shape)) == scores.shape
    symbols = make()(tf.keras.Input((None, 5)), tf.keras.Input((None, 5)), return_attention_scores=True)
    assert [symbol.shape for symbol in symbols] == [(None, None, *y.shape[2:]), (None, scores.shape[1], None, None)]


def test_attention_over_many_steps_is_not_tried_on_zeros():
    x = tf.keras.Input((10**6, 5))
    y, scores = L.MultiHeadAttention(2, 3)(x, x, return_attention_scores=True)
    assert y.shape == (None, 10**6, 5) and scores.shape == (None, 2, 10**6, 10**6)
    assert L.Attention()([x, x]).shape == (None, 10**6, 5) and L.AdditiveAttention()([y, x]).dtype == tf.float32


@each
@pytest.mark.parametrize("most", mostly_slow([12, 1000], 12))
def test_gradients_are_the_numerical_ones(make, most):
    layer = make(dtype="float64")
    mask = RNG.random((4, 3, 6)) < 0.7
    inputs = [tf.constant(QUERY), tf.constant(VALUE)]
    check = tf.test.check_gradients(lambda q, v: layer(q, v, attention_mask=mask), inputs, max_elements=most)
    assert check.first < 1e-7


@each
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_a_mixed_policy_computes_in_half_precision(make, policy):
    if policy == "mixed_bfloat16":
        pytest.importorskip("ml_dtypes")
    layer, single = make(dtype=policy), make()
    allowed = RNG.random((4, 3, 6)) < 0.7
    expected = single(QUERY, VALUE, attention_mask=allowed)
    layer.build(QUERY.shape, VALUE.shape)
    layer.set_weights(single.get_weights())
    with tf.GradientTape() as tape:
        y = layer(QUERY.astype("float32"), VALUE.astype("float32"), attention_mask=allowed)
        total = tf.reduce_sum(tf.cast(y, "float32"))
    assert y.dtype == policy.removeprefix("mixed_")
    scale = np.abs(expected.numpy()).max()
    np.testing.assert_allclose(tf.cast(y, "float32").numpy() / scale, expected.numpy() / scale, atol=0.05)
    assert {gradient.dtype for gradient in tape.gradient(total, layer.trainable_weights)} == {tf.float32}


@each
def test_it_runs_on_every_device(make, device):
    layer = make()
    query, value = (tf.constant(x, "float32") for x in (QUERY, VALUE))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(query, value, use_causal_mask=True, training=True) ** 2)
    tape.gradient(loss, layer.trainable_weights)


def test_masks_that_inputs_carry_count_and_the_query_s_is_passed_on():
    ids = np.array([[2, 1, 3, 0], [1, 2, 0, 0]])
    embedded = L.Embedding(5, 6, mask_zero=True)(ids)
    layer = L.MultiHeadAttention(2, 3)
    y, scores = layer(embedded, embedded, return_attention_scores=True)
    np.testing.assert_array_equal(y._keras_mask.numpy(), ids != 0)
    np.testing.assert_array_equal(scores.numpy()[0, :, 0, 3], 0.0)
    given = layer(embedded, embedded, query_mask=ids != 0, value_mask=ids != 0, return_attention_scores=True)[1]
    np.testing.assert_array_equal(given.numpy(), scores.numpy())
    other = L.Attention()([embedded, embedded])
    np.testing.assert_array_equal(other._keras_mask.numpy(), ids != 0)
    np.testing.assert_array_equal(other.numpy()[0, 3], 0.0)


def test_inputs_may_be_given_by_name():
    ids = np.array([[2, 1, 3, 0], [1, 2, 0, 0]])
    embedded = L.Embedding(5, 6, mask_zero=True)(ids)
    layer = L.MultiHeadAttention(2, 3)
    y = layer(value=embedded, query=embedded)
    np.testing.assert_array_equal(y.numpy(), layer(embedded, embedded).numpy())
    np.testing.assert_array_equal(y._keras_mask.numpy(), ids != 0)
    assert L.Attention()(inputs=[QUERY, VALUE]).shape == (4, 3, 5)
    assert L.AdditiveAttention()(inputs=[tf.keras.Input((3, 5)), tf.keras.Input((6, 5))]).shape == (None, 3, 5)


def test_masks_of_heads_are_joined_with_those_of_rows():
    layer = L.MultiHeadAttention(2, 3)
    of_heads = np.ones((4, 2, 3, 6), bool)
    of_heads[:, 1, :, 0] = False
    given = {"value_mask": np.arange(6)[None] < [[6], [5], [4], [3]], "attention_mask": of_heads}
    scores = layer(QUERY, VALUE, **given, return_attention_scores=True)[1].numpy()
    assert (scores[:, 1, :, 0] == 0).all() and (scores[:, 0, :, 0] > 0).all() and (scores[3, :, :, 3:] == 0).all()


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}], ids=["default", "compiled"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: L.MultiHeadAttention(2, 3, dropout=0.2, use_gate=True),
        lambda: L.GroupQueryAttention(2, 4, 2, dropout=0.2),
        lambda: lambda x, y, **o: L.Attention(True, dropout=0.2)([x, y], **o),
    ],
    ids=["heads", "groups", "dot"],
)
def test_compiled_steps_are_the_eager_ones_with_dropout(make, options):
    def trained(**options):
        streams.set_global_seed(1)
        tf.keras.utils.clear_session()
        x = tf.keras.Input((3, 5))
        y = L.Dense(2)(make()(x, L.Dense(5)(x), use_causal_mask=True))
        model = tf.keras.Model(x, y)
        model.compile(tf.keras.optimizers.SGD(0.1), "mse", **options)
        model.fit(QUERY, QUERY[..., :2], batch_size=2, epochs=3, verbose=0)
        return model.get_weights()

    for found, expected in zip(trained(**options), trained(run_eagerly=True), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: L.MultiHeadAttention(0, 2), ValueError, "`num_heads`, expected a positive integer. Received: num_heads=0"),
        (lambda: L.MultiHeadAttention(2, 2, dropout=2.0), ValueError, "between 0 and 1. Received: dropout=2.0"),
        (lambda: L.MultiHeadAttention(2, 2, flash_attention=True), NotImplementedError, "there is no flash attention"),
        (lambda: L.MultiHeadAttention(2, 2, attention_axes=2)(QUERY, QUERY), ValueError, "must lie between batch and features"),
        (lambda: L.MultiHeadAttention(2, 2)(QUERY[0], QUERY[0]), ValueError, r"attention_axes \(\) .* a query with 2 axes"),
        (lambda: L.MultiHeadAttention(2, 2)(QUERY, VALUE, QUERY), ValueError, "all axes of value and key but the last"),
        (
            lambda: L.MultiHeadAttention(2, 2)(np.ones((2, 3, 3, 4)), np.ones((2, 3, 3, 4)), use_causal_mask=True),
            ValueError,
            "a causal mask or a window needs one attention axis",
        ),
        (lambda: L.GroupQueryAttention(2, 4, 3), ValueError, "`num_query_heads` must be divisible"),
        (lambda: L.GroupQueryAttention(2, 4, 2, key_dim=3), TypeError, r"no \['key_dim'\]; use MultiHeadAttention"),
        (lambda: L.GroupQueryAttention(2, 4, 2, key_dims=3), ValueError, "Unrecognized keyword arguments"),
        (lambda: L.Attention(score_mode="sum"), ValueError, "Expected one of {'dot', 'concat'}"),
        (lambda: L.Attention()(QUERY), ValueError, r"must be called on a list, \[query, value\]"),
        (lambda: L.Attention()([QUERY, VALUE], mask=[QUERY[..., 0] > 0]), ValueError, "and so must be its mask; found mask"),
    ],
)
def test_what_does_not_fit_is_explained(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_attention_of_a_model_is_exported(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    x = tf.keras.Input((None, 5), name="x")
    y = L.MultiHeadAttention(2, 3, sliding_window=3)(x, x, use_causal_mask=True)
    y = L.GroupQueryAttention(2, 4, 2, use_gate=True)(y, y)
    y = L.AdditiveAttention()([y, L.Attention(use_scale=True)([y, x])], use_causal_mask=True)
    model = tf.keras.Model(x, L.EinsumDense("...x,xy->...y", 2, bias_axes="y")(y))
    model.export(tmp_path / "m.onnx")
    session = runtime.InferenceSession(tmp_path / "m.onnx")
    for steps in (3, 7):
        data = RNG.standard_normal((4, steps, 5)).astype("float32")
        np.testing.assert_allclose(session.run(None, {"x": data})[0], model(data).numpy(), rtol=1e-4, atol=1e-5)


def test_a_user_s_way_to_compute_attention_is_used():
    class Halved(L.MultiHeadAttention):
        def _compute_attention(self, query, key, value, *rest):
            y, weights = super()._compute_attention(query, key, value, *rest)
            return 0.0 * y, weights

    np.testing.assert_array_equal(nest.flatten(Halved(2, 3, use_bias=False)(QUERY, VALUE))[0].numpy(), 0.0)


def test_the_weights_that_are_returned_are_those_that_counted():
    layer, x = L.Attention(dropout=0.5, seed=3), np.ones((1, 4, 4), "float32")
    y, weights = layer([x, x], return_attention_scores=True, training=True)
    assert set(weights.numpy().ravel().tolist()) == {0.0, 0.5}
    np.testing.assert_array_equal(y, tf.matmul(weights, x))
