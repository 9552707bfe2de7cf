"""Masks: made by layers, carried by tensors, passed on, used, and dropped only with a word."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import ShapeError

L = tf.keras.layers
IDS = np.array([[3, 1, 0], [2, 0, 0]])
MASK = IDS != 0


class Seen(L.Layer):
    """Keeps the mask that each call gets."""

    def __init__(self, **options):
        super().__init__(**options)
        self.masks = []

    def call(self, x, mask=None):
        self.masks.append(mask)
        return x


def mask_of(x):
    mask = getattr(x, "_keras_mask", None)
    return None if mask is None else mask.numpy()


def embedded(**options):
    return L.Embedding(5, 2, mask_zero=True, **options)(IDS)


def test_embedding_masks_zeros_if_it_is_told_to():
    assert np.array_equal(mask_of(embedded()), MASK)
    assert mask_of(L.Embedding(5, 2)(IDS)) is None


def test_masking_masks_steps_that_are_one_value_throughout():
    x = np.array([[[1.0, 2.0], [0.0, 5.0], [0.0, 0.0]]])
    y = L.Masking()(x)
    assert np.array_equal(mask_of(y), [[True, True, False]])
    assert np.array_equal(L.Masking(5.0)(np.full((1, 2, 2), 5.0)).numpy(), np.zeros((1, 2, 2)))


def test_a_mask_goes_through_layers_that_keep_the_steps_and_reaches_those_that_take_it():
    seen = Seen()
    model = tf.keras.Sequential([L.Embedding(5, 2, mask_zero=True), L.Dense(3), L.Dropout(0.5), L.LayerNormalization(), seen])
    model(IDS)
    assert np.array_equal(seen.masks[0].numpy(), MASK)


def test_a_mask_survives_a_cast_of_the_input():
    seen = Seen(dtype="float64")
    seen(embedded())
    assert np.array_equal(seen.masks[0].numpy(), MASK)


def test_a_mask_that_is_given_comes_before_the_one_that_is_carried():
    seen, other = Seen(), ~MASK
    seen(embedded(), mask=tf.constant(other))
    seen.supports_masking = True
    y = seen(tf.ones([2, 3, 2]), mask=tf.constant(other))
    assert all(np.array_equal(mask.numpy(), other) for mask in seen.masks) and np.array_equal(mask_of(y), other)


def test_arguments_have_masks_of_their_own_name():
    class Attention(L.Layer):
        def call(self, query, value, query_mask=None, value_mask=None):
            self.found = (query_mask, value_mask)
            return query + value

    layer = Attention()
    x = embedded()
    layer(tf.ones([2, 3, 2]), x)
    assert layer.found[0] is None and np.array_equal(layer.found[1].numpy(), MASK)
    layer(tf.ones([2, 3, 2]), value=x, value_mask=tf.constant(~MASK))
    assert layer.found[0] is None and np.array_equal(layer.found[1].numpy(), ~MASK)


def test_a_block_of_layers_passes_masks_along_inside_and_warns_of_nothing():
    class Block(L.Layer):
        def __init__(self):
            super().__init__()
            self.dense, self.pool = L.Dense(3), L.GlobalAveragePooling1D()

        def call(self, x):
            return self.pool(self.dense(x))

    x = embedded()
    block = Block()
    expected = (block.dense(x).numpy() * MASK[..., None]).sum(1) / MASK.sum(1, keepdims=True)
    np.testing.assert_allclose(block(x).numpy(), expected, rtol=1e-6)


def test_a_layer_that_drops_a_mask_says_so():
    with pytest.warns(
        UserWarning, match="Layer 'flatten' .* does not support masks, so the layers after it do not see the mask"
    ):
        y = L.Flatten()(embedded())
    assert mask_of(y) is None


def test_compute_mask_of_one_s_own_counts():
    class Half(L.Layer):
        def call(self, x):
            return x[:, ::2]

        def compute_mask(self, inputs, mask=None):
            return None if mask is None else mask[:, ::2]

    assert Half.supports_masking
    assert np.array_equal(mask_of(Half()(embedded())), MASK[:, ::2])
    assert mask_of(Half()(tf.ones([2, 3]))) is None


# Layers of several inputs ---------------------------------------------------------------------------------------------------


def marked(values, mask):
    x = tf.constant(values, "float32")
    x._keras_mask = tf.constant(mask)
    return x


def two_marked():
    return marked([[[1.0], [5.0]]], [[True, False]]), marked([[[3.0], [2.0]]], [[True, True]])


@pytest.mark.parametrize(
    ("layer", "values"),
    [(L.Add, [4.0, 7.0]), (L.Multiply, [3.0, 2.0]), (L.Maximum, [3.0, 2.0]), (L.Minimum, [1.0, 2.0]), (L.Average, [2.0, 3.5])],
)
def test_merged_inputs_count_where_any_counts_and_what_is_masked_is_no_factor_and_no_extremum(layer, values):
    a, b = two_marked()
    y = layer()([a, b])
    assert y.numpy().ravel().tolist() == values and np.array_equal(mask_of(y), [[True, True]])
    assert mask_of(layer()([a, tf.ones([1, 2, 1])])) is None


def test_concatenated_masks_lie_side_by_side():
    a, b = two_marked()
    assert np.array_equal(mask_of(L.Concatenate(axis=1)([a, b])), [[True, False, True, True]])
    assert np.array_equal(mask_of(L.Concatenate(axis=1)([a, tf.ones([1, 1, 1])])), [[True, False, True]])
    assert np.array_equal(mask_of(L.Concatenate()([a, b])), [[True, True]])


def test_masks_and_inputs_must_be_equally_many():
    with pytest.raises(ValueError, match="needs a list of 2 masks"):
        L.Add().compute_mask(list(two_marked()), [None])


# Layers that use a mask -------------------------------------------------------------------------------------------------------


def test_softmax_gives_nothing_to_what_is_masked():
    x = np.array([[1.0, 2.0, 3.0]])
    y = L.Softmax()(x, mask=np.array([[True, False, True]])).numpy()
    np.testing.assert_allclose(y, [[1 / (1 + np.exp(2)), 0.0, 1 / (1 + np.exp(-2))]], rtol=1e-6)
    assert np.array_equal(L.Softmax()(x, mask=np.zeros((1, 3))).numpy(), np.zeros((1, 3)))
    steps = L.Softmax(axis=1)(embedded()).numpy()
    assert np.array_equal(steps > 0, np.broadcast_to(MASK[..., None], steps.shape))
    with pytest.raises(ShapeError, match=r"the mask must broadcast to the input; input \(1, 3\), mask \(2,\)"):
        L.Softmax()(x, mask=np.array([True, False]))


def test_a_mask_of_whole_rows_leaves_nothing_out_of_a_softmax_along_them():
    rows = L.Softmax()(embedded())
    np.testing.assert_allclose(rows.numpy().sum(-1), 1.0, rtol=1e-6)
    assert np.array_equal(mask_of(rows), MASK)
    model = tf.keras.Sequential([tf.keras.Input((3,)), L.Embedding(5, 4, mask_zero=True), L.Softmax()])
    model.compile("sgd", "sparse_categorical_crossentropy")
    history = model.fit(np.array([[1, 2, 0], [3, 0, 0]]), np.array([[1, 0, 1], [1, 1, 0]]), verbose=0).history
    assert np.isfinite(history["loss"]).all() and np.isfinite(model.get_weights()[0]).all()  # 0 / 0 before


def test_the_mean_over_steps_leaves_out_what_is_masked():
    x = np.arange(12.0).reshape(2, 3, 2)
    expected = np.stack([x[0, :2].mean(0), x[1, :1].mean(0)])
    np.testing.assert_allclose(L.GlobalAveragePooling1D()(x, mask=MASK).numpy(), expected)
    turned = L.GlobalAveragePooling1D("channels_first", keepdims=True)(np.moveaxis(x, 2, 1), mask=MASK)
    np.testing.assert_allclose(turned.numpy(), expected[..., None])
    with pytest.raises(ShapeError, match=r"the mask must have shape \(batch, steps\)"):
        L.GlobalAveragePooling1D()(x, mask=MASK[:, :2])


def test_normalization_leaves_masked_rows_out_of_the_statistics_whatever_they_hold():
    x = np.array([[1.0], [3.0], [np.nan]])
    layer = L.BatchNormalization(momentum=0.0)
    layer(x, mask=np.array([True, True, False]), training=True)
    np.testing.assert_allclose([layer.moving_mean.numpy(), layer.moving_variance.numpy()], [[2.0], [1.0]], rtol=1e-6)
    with pytest.raises(
        ShapeError,
        match=r"the mask must have .* without its last axis, \(3,\), or sizes of 1 in it; found \(2,\)",
    ):
        layer(x, mask=np.array([True, True]), training=True)


@pytest.mark.parametrize("kind", ["int32", "int64", "uint8", "bool", "float64"])
def test_masking_takes_numbers_of_any_dtype(kind):
    x = np.array([[[1, 0], [0, 0]]]).astype(kind)
    y = L.Masking()(x)
    assert mask_of(y).tolist() == [[True, False]]
    assert np.array_equal(y.numpy(), x)


def test_integers_never_equal_a_mask_value_that_is_not_whole():
    x = np.array([[[1], [0]]])
    assert mask_of(L.Masking(0.5)(x)).tolist() == [[True, True]]
    assert mask_of(L.Masking(1.0)(x)).tolist() == [[False, True]]


def test_layers_that_make_masks_can_be_asked_for_them():
    assert L.Masking().compute_mask(np.array([[[1.0], [0.0]]])).numpy().tolist() == [[True, False]]
    assert L.Embedding(3, 2, mask_zero=True).compute_mask(IDS).numpy().tolist() == MASK.tolist()
    assert L.Embedding(3, 2).compute_mask(IDS) is None
    assert L.Add().compute_mask([IDS, IDS]) is None
    assert L.Add().compute_mask([IDS, IDS], mask=[tf.constant(MASK), tf.constant(~MASK)]).numpy().all()


def test_symbols_carry_masks_to_compute_with():
    x, rows = tf.keras.Input((None,), dtype="int32"), tf.keras.Input((3, 2))
    layer = L.Embedding(10, 4, mask_zero=True)
    y = layer(x)
    assert x._keras_mask is None and y._keras_mask.shape == (None, None) and y._keras_mask.dtype == tf.bool
    masks = [y._keras_mask, layer.compute_mask(x), L.Add()([y, y])._keras_mask]
    model = tf.keras.Model(x, masks)
    ids = np.array([[1, 0, 3]])
    for one in (model, tf.keras.models.model_from_json(model.to_json())):
        assert all(np.array_equal(mask, ids != 0) for mask in one(ids))
    assert L.Masking().compute_mask(rows).shape == L.Masking()(rows)._keras_mask.shape == (None, 3)


def test_asking_a_merging_layer_for_the_mask_of_one_input_says_that_a_list_is_needed():
    for one in (tf.keras.Input((2,)), tf.ones([2, 2])):
        with pytest.raises(ValueError, match="Layer 'sum' \\(Add\\) needs a list of inputs, found"):
            L.Add(name="sum").compute_mask(one)


@pytest.mark.parametrize("shape", [(1, 2, 1), (1, 1, 3), (1, 1, 1)])
def test_a_mask_of_batch_normalization_may_have_sizes_of_one(shape):
    x = np.random.default_rng(0).normal(size=(1, 2, 3, 4)).astype("float32")
    mask = np.arange(np.prod(shape)).reshape(shape) % 2 == 0
    small, whole = L.BatchNormalization(momentum=0.0), L.BatchNormalization(momentum=0.0)
    y = small(x, training=True, mask=mask)
    np.testing.assert_allclose(y, whole(x, training=True, mask=np.broadcast_to(mask, x.shape[:-1])), rtol=1e-6)
    np.testing.assert_allclose(small.moving_variance, whole.moving_variance, rtol=1e-6)


def test_a_product_is_zero_where_no_factor_counts():
    x = [np.array([[[0, 0], [1, 2], [0, 0], [3, 4]]]), np.array([[[0, 0], [0, 0], [1, 2], [3, 4]]])]
    product = L.Multiply()([L.Masking()(one) for one in x])
    assert product.numpy().tolist() == [[[0, 0], [1, 2], [1, 2], [9, 16]]]
    assert mask_of(product).tolist() == [[False, True, True, True]]


def test_masks_of_merged_inputs_may_be_arrays():
    x = [np.ones((2, 3, 4)), np.ones((2, 3, 2))]
    masks = [np.array([[True, False, False], [True, True, False]]), None]
    assert L.Concatenate().compute_mask(x, masks).numpy().tolist() == [[True] * 3] * 2
    assert L.Add().compute_mask(x, [masks[0], ~masks[0]]).numpy().all()


@pytest.mark.parametrize("shape", [(2, 4), (2, 4, 5)])
def test_masks_of_symbols_may_be_numbers(shape):
    symbols, masks = [tf.keras.Input((4, 5))] * 2, [tf.constant(np.arange(np.prod(shape)).reshape(shape) > 6) for _ in range(2)]
    found = L.Concatenate(axis=1).compute_mask(symbols, masks)
    assert np.array_equal(found, L.Concatenate(axis=1).compute_mask([tf.ones((2, 4, 5))] * 2, masks)) and found.shape == (2, 8)


@tf.keras.saving.register_keras_serializable("masks")
class Needing(L.Layer):
    """A layer that cannot do without a mask."""

    supports_masking = True

    def call(self, x, mask=None):
        return x * tf.cast(mask, x.dtype)[..., None]


@pytest.mark.parametrize(
    "steps",
    [
        lambda x: L.Dense(2)(L.Embedding(9, 3, mask_zero=True)(x)),
        lambda x: L.Masking()(tf.cast(x[..., None], "float32")),
        lambda x: L.Add()([L.Embedding(9, 3, mask_zero=True)(x) for _ in range(2)]),
        lambda x: L.Concatenate(1)([L.Embedding(9, 3, mask_zero=True)(x), L.Embedding(9, 3)(x)]),
        lambda x: L.MultiHeadAttention(1, 2)(y := L.Embedding(9, 3, mask_zero=True)(x), y),
        lambda x: L.TimeDistributed(L.Dense(2))(L.Embedding(9, 3, mask_zero=True)(x)),
        lambda x: tf.keras.Sequential([L.Embedding(9, 3, mask_zero=True), L.Dropout(0.5)])(x),
    ],
)
@pytest.mark.parametrize("size", [5, None])
def test_a_symbol_carries_the_mask_that_its_values_will_carry(steps, size, tmp_path):
    x = tf.keras.Input((size,), dtype="int32")
    model = tf.keras.Model(x, Needing()(steps(x)))
    data = np.array([[1, 2, 0, 3, 0]])
    assert (model(data).numpy()[0, 2] == 0.0).all()
    model.save(tmp_path / "m.keras")
    np.testing.assert_array_equal(tf.keras.models.load_model(tmp_path / "m.keras")(data), model(data))


def test_a_symbol_without_a_mask_gives_none():
    with pytest.raises((TypeError, ValueError), match="None"):
        Needing()(L.Embedding(9, 3)(tf.keras.Input((5,), dtype="int32")))
