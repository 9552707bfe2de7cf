"""Sequential models and subclasses: building, looking at, changing the chain; and the layers in them."""

import numpy as np
import pytest

import minikeras as tf

L = tf.keras.layers

layers = tf.keras.layers
Dense, Sequential = layers.Dense, tf.keras.Sequential


def test_a_model_with_an_input_is_built_at_once_else_by_its_first_call():
    ready = Sequential([tf.keras.Input((4,)), Dense(3), Dense(2)])
    assert ready.built and ready.count_params() == 23
    assert (ready.input_shape, ready.output_shape) == ((None, 4), (None, 2))
    later = Sequential([Dense(3), Dense(2)])
    assert not later.built and later.weights == []
    with pytest.raises(AttributeError, match="is not built yet, so its input shape is not known"):
        _ = later.input_shape
    later(np.ones((5, 4)))
    assert later.built and later.count_params() == 23 and later.input_shape == (None, 4)


def test_a_first_layer_may_tell_the_input_shape():
    assert Sequential([Dense(3, input_shape=(4,)), Dense(2)]).count_params() == 23


def test_a_chain_that_begins_with_a_model_is_built_for_its_input():
    chain = Sequential([tf.keras.Input((3,)), Dense(2)])
    x = tf.keras.Input((3,), dtype="int32")
    graph = tf.keras.Model([x], layers.Embedding(5, 2)(x))
    for first, shape, count in (
        (chain, (None, 1), 11),
        (graph, (None, 3, 1), 13),
        (Sequential([chain, Dense(2)]), (None, 1), 17),
    ):
        model = Sequential([first, Dense(1)])
        assert model.built and model.output_shape == shape and model.input_shape == (None, 3)
        assert model.count_params() == count
        again = Sequential.from_config(model.get_config())
        assert again.built and [weight.shape for weight in again.weights] == [weight.shape for weight in model.weights]
    assert model.inputs[0].dtype == tf.float32 and Sequential([graph, Dense(1)]).inputs[0].dtype == tf.int32
    grown = Sequential()
    grown.add(chain)
    grown.add(Dense(4))
    assert grown.built and grown.output_shape == (None, 4)


def test_a_chain_that_begins_with_a_model_that_does_not_know_its_input_waits_for_data():
    class Own(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = Dense(2)

        def call(self, x):
            return self.dense(x)

    assert not Sequential([Own(), Dense(1)]).built
    assert not Sequential([Sequential([Dense(2)]), Dense(1)]).built
    a, b = tf.keras.Input((2,)), tf.keras.Input((2,))
    assert not Sequential([tf.keras.Model([a, b], layers.Add()([a, b])), Dense(1)]).built


@pytest.mark.parametrize("first", [lambda: [tf.keras.Input((1,)), Dense(1)], lambda: [Dense(1, input_shape=[1])]])
def test_a_column_may_come_without_its_axis(first):
    model = Sequential(first())
    model.compile("sgd", "mse")
    column = np.arange(8.0, dtype="float32")
    model.fit(column, 2 * column - 1, epochs=2, verbose=0)
    expected = model.predict(column[:, None], verbose=0)
    assert expected.shape == (8, 1)
    for given in (column, column[:, None, None], list(column)):
        assert np.array_equal(model.predict(given, verbose=0), expected)
    assert np.array_equal(model(column), expected)
    assert model.evaluate(column, 2 * column - 1, verbose=0) > 0


def test_pictures_may_come_without_the_axis_of_their_one_channel():
    model = Sequential([tf.keras.Input((4, 4, 1)), layers.Conv2D(2, 3), layers.Flatten()])
    assert model(np.ones((5, 4, 4))).shape == (5, 8)


def test_a_layer_may_occur_twice_in_a_chain_and_shares_its_weights(tmp_path):
    dense = Dense(3, activation="tanh")
    model = Sequential([tf.keras.Input((3,)), dense, layers.Dropout(0.1), dense])
    x = np.ones((2, 3), "float32")
    assert len(model.layers) == 3 and len(model.weights) == 2 and model.count_params() == 12
    assert np.array_equal(model(x), dense(dense(x)))
    model.compile("adam", "mse")
    model.fit(x, x, epochs=2, verbose=0)
    model.save(tmp_path / "twice.keras")
    for same in (tf.keras.models.load_model(tmp_path / "twice.keras"), tf.keras.models.clone_model(model)):
        assert same.layers[0] is same.layers[2] and len(same.weights) == 2
        same.set_weights(model.get_weights())
        assert np.array_equal(same(x), model(x))
    model.summary(print_fn=lambda line: None)


def test_the_shape_of_an_output_is_asked_without_building_anything():
    class Halves(layers.Layer):
        def build(self, input_shape):
            self.scale = self.add_weight((input_shape[-1] // 2,))

        def call(self, x):
            left, right = tf.split(x, 2, axis=-1)
            return {"left": left * self.scale, "both": [left, right]}

    chain, own = Sequential([Dense(4), layers.Dropout(0.5), Dense(8)]), Halves()
    assert chain.compute_output_shape((1, 2)) == (1, 8) and chain.compute_output_shape((None, 5)) == (None, 8)
    found = own.compute_output_shape((None, 6))
    assert found == {"left": (None, 3), "both": [(None, 3), (None, 3)]}
    assert not chain.built and not own.built and chain.weights == own.weights == []
    chain.build((None, 2))
    assert chain.compute_output_shape((7, 2)) == (7, 8) and chain.input_shape == (None, 2)
    a, b = tf.keras.Input((2,)), tf.keras.Input((3,))
    two = tf.keras.Model([a, b], [layers.Concatenate()([a, b]), Dense(4)(a)])
    assert two.compute_output_shape([(5, 2), (5, 3)]) == [(5, 5), (5, 4)]


def test_build_by_hand_takes_a_shape_with_the_batch_axis():
    model = Sequential([layers.Flatten(), Dense(3)])
    model.build((None, 2, 4))
    assert model.count_params() == 27 and model.built


def test_a_layer_without_a_shape_rule_is_asked_by_a_call_on_zeros_that_does_not_train():
    seen = []

    class Double(layers.Layer):
        def call(self, x, training=True):
            seen.append((x.dtype.name, training))
            return tf.concat([tf.cast(x, "float32")] * 2, axis=-1)

    model = Sequential([tf.keras.Input((3,), dtype="int32"), Double(), Dense(2)])
    assert model.layers[1].kernel.shape == (6, 2) and set(seen) == {("int32", False)}


def test_a_layer_of_one_s_own_is_called_once_by_the_first_call():
    calls = []

    class Noted(layers.Layer):
        def call(self, x):
            calls.append(x.shape)
            return x

    Sequential([Noted(), Dense(2)])(np.ones((3, 4)))
    assert calls == [(3, 4)]


def test_add_and_pop_change_the_chain_also_of_a_built_model():
    model = Sequential([tf.keras.Input((4,)), Dense(3, name="a")])
    model.add(Dense(2, name="b"))
    assert model(np.ones((1, 4))).shape == (1, 2) and model.built
    model.add(Dense(5, name="c"))
    assert model.output_shape == (None, 5)
    assert model.pop().name == "c" and [layer.name for layer in model.layers] == ["a", "b"]
    assert model(np.ones((1, 4))).shape == (1, 2)
    with pytest.raises(TypeError, match="there are no layers in the model"):
        Sequential().pop()


def test_only_layers_can_be_added_and_an_input_only_first():
    with pytest.raises(ValueError, match="Only instances of `keras.Layer` can be added to a Sequential model. Received: 3"):
        Sequential([3])
    with pytest.raises(ValueError, match="Input must be the first element"):
        Sequential([Dense(2), tf.keras.Input((3,))])
    with pytest.raises(ValueError, match="Input: give shape=.*without the batch axis, or batch_shape"):
        tf.keras.Input()


def test_layers_are_found_by_name_or_index():
    model = Sequential([tf.keras.Input((4,)), Dense(3, name="a"), Dense(2, name="b")])
    assert model.get_layer("b") is model.get_layer(index=1) is model.layers[1]
    with pytest.raises(ValueError, match=r"No such layer: c. Existing layers are: \['a', 'b'\]"):
        model.get_layer("c")
    with pytest.raises(ValueError, match="retrieve layer at index 2 but model only has 2 layers"):
        model.get_layer(index=2)
    with pytest.raises(ValueError, match="give either a name or an index"):
        model.get_layer()


# Layers within models --------------------------------------------------------------------------------------------------


def test_dropout_keeps_zero_or_two_in_training_and_everything_else_otherwise():
    layer, x = layers.Dropout(0.5, seed=1), np.ones((20, 50), "float32")
    first, second = layer(x, training=True).numpy(), layer(x, training=True).numpy()
    assert set(np.unique(first)) == {0.0, 2.0} and 0.4 < (first == 0).mean() < 0.6
    assert not np.array_equal(first, second)
    assert np.array_equal(layers.Dropout(0.5, seed=1)(x, training=True).numpy(), first)
    assert np.array_equal(layer(x).numpy(), x) and np.array_equal(layer(x, training=False).numpy(), x)
    assert not layers.Dropout(1.0)(x, training=True).numpy().any()
    assert layers.Dropout(0.0).variables == [] and np.array_equal(layers.Dropout(0.0)(x, training=True).numpy(), x)


def test_dropout_shares_its_mask_along_axes_of_the_noise_shape():
    y = layers.Dropout(0.5, noise_shape=(None, 1), seed=1)(np.ones((50, 4)), training=True).numpy()
    assert (y == y[:, :1]).all() and set(np.unique(y)) == {0.0, 2.0}


def test_the_state_of_dropout_is_a_variable_but_no_weight():
    layer = layers.Dropout(0.5, seed=7)
    (state,) = layer.variables
    assert layer.weights == [] and state.numpy().tolist() == [7, 0] and state.dtype == tf.uint32
    layer(np.ones((2, 2)), training=True)
    assert state.numpy().tolist() == [7, 1]
    layer(np.ones((2, 2)))
    assert state.numpy().tolist() == [7, 1]


def test_a_half_precision_normalization_computes_in_single_precision():
    x = np.array([[300.0], [301.0], [302.0], [303.0]], "float16")
    layer = layers.BatchNormalization(dtype="float16", momentum=0.0)
    y = layer(x, training=True)
    assert y.dtype == tf.float16
    np.testing.assert_allclose(y.numpy()[:, 0], (x[:, 0] - 301.5) / np.sqrt(1.25 + 1e-3), atol=2e-3)
    assert layer.moving_mean.dtype == tf.float16


def test_flatten_keeps_the_batch_axis_and_moves_channels_last():
    x = np.arange(12.0).reshape(1, 2, 3, 2)
    assert layers.Flatten()(x).numpy().tolist() == [list(range(12))]
    moved = layers.Flatten("channels_first")(x).numpy()
    assert np.array_equal(moved, np.moveaxis(x, 1, -1).reshape(1, 12))
    assert layers.Flatten()([1.0, 2.0]).shape == (2, 1)
    assert layers.Flatten().compute_output_shape((None, None, 3)) == (None, None)


def test_an_initializer_with_a_seed_gives_two_layers_the_same_weights_and_one_without_does_not():
    for seed, same in ((3, True), (None, False)):
        initializer = tf.keras.initializers.GlorotUniform(seed=seed)
        model = Sequential([tf.keras.Input((4,)), *(Dense(4, kernel_initializer=initializer) for _ in range(2))])
        assert np.array_equal(*(layer.kernel.numpy() for layer in model.layers)) is same


def test_an_input_layer_knows_the_older_names_of_its_shape():
    assert layers.InputLayer(input_shape=(3,)).batch_shape == (None, 3)
    assert layers.InputLayer(batch_input_shape=(2, 3)).batch_shape == (2, 3)
    assert Sequential([layers.InputLayer(input_shape=[4]), Dense(2)]).count_params() == 10


@pytest.mark.parametrize("first", ["input", "option", "none"])
def test_one_pair_of_statistics_serves_inputs_of_any_shape(first):
    column = np.arange(8.0, dtype="float32")
    options = {"input_shape": [1]} if first == "option" else {}
    normalizer = layers.Normalization(axis=None, **options)
    normalizer.adapt(column)
    expected = (column - 3.5) / np.sqrt(5.25)
    np.testing.assert_allclose(normalizer(column), expected, rtol=1e-6)
    np.testing.assert_allclose(normalizer(column.reshape(2, 2, 2)), expected.reshape(2, 2, 2), rtol=1e-6)
    if first != "none":
        model = Sequential([*([tf.keras.Input((1,))] if first == "input" else []), normalizer, Dense(1)])
        model.compile("adam", "mae")
        model.fit(column, column, epochs=2, verbose=0)
        assert model.predict(column, verbose=0).shape == (8, 1)


def test_layers_without_anything_to_make_are_built_at_once():
    for layer in (layers.Activation("relu"), layers.Dropout(0.5), layers.Reshape((3,)), layers.MaxPooling2D(), layers.ReLU()):
        assert layer.built and layer.count_params() == 0
    for layer in (layers.Dense(2), layers.PReLU(), layers.BatchNormalization(), layers.Layer()):
        assert not layer.built

    class More(layers.Dropout):
        def __init__(self):
            super().__init__(0.5)
            self.dense = Dense(2)

        def call(self, x, training=False):
            return super().call(self.dense(x), training)

    more = More()
    assert not more.built and len(more.weights) == 0
    more(np.ones((1, 3)))
    assert more.built and len(more.weights) == 2
    pool = layers.MaxPooling2D()
    pool(tf.keras.Input((None, None, 3)))
    assert pool.get_build_config() == {"input_shape": (None, None, None, 3)}


def trained_with_batch_normalization():
    tf.keras.utils.clear_session()
    layers = [tf.keras.Input((3,)), L.Dense(2, name="a"), L.BatchNormalization(name="b"), L.Dense(1, name="c")]
    model = tf.keras.Sequential(layers)
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(np.ones((4, 3), "f"), np.ones((4, 1), "f"), verbose=0)
    return model


def test_a_state_tree_has_the_paths_of_keras():
    tree = trained_with_batch_normalization().get_state_tree("numpy_array")
    assert list(tree) == ["trainable_variables", "non_trainable_variables", "optimizer_variables", "metrics_variables"]
    assert list(tree["trainable_variables"]["sequential"]["b"]) == ["gamma", "beta"]
    assert list(tree["non_trainable_variables"]["sequential"]["b"]) == ["moving_mean", "moving_variance"]
    assert list(tree["optimizer_variables"]["adam"])[:3] == ["iteration", "learning_rate", "sequential_a_kernel_momentum"]
    assert tree["metrics_variables"]["mean_absolute_error"]["count"] == 4.0


def test_a_model_with_the_state_tree_of_another_goes_on_as_that_one():
    x, y = np.random.default_rng(1).normal(size=(8, 3)).astype("f"), np.ones((8, 1), "f")
    first, second = trained_with_batch_normalization(), trained_with_batch_normalization()
    first.fit(x, y, verbose=0)
    second.set_state_tree(first.get_state_tree())
    for model in (first, second):
        model.fit(x, y, shuffle=False, verbose=0)
    for one, other in zip(first.get_weights(), second.get_weights(), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"bias": np.ones(5)}, "'sequential/a/bias' has shape"),
        ({"offset": np.ones(2)}, "has no 'sequential/a/offset'"),
    ],
)
def test_a_state_tree_that_does_not_fit_changes_nothing(wrong, error):
    model = trained_with_batch_normalization()
    before = model.get_weights()
    tree = {"trainable_variables": {"sequential": {"a": {"kernel": np.zeros((3, 2)), **wrong}}}}
    with pytest.raises(ValueError, match=error):
        model.set_state_tree(tree)
    for one, other in zip(before, model.get_weights(), strict=True):
        assert np.array_equal(one, other)


def test_two_variables_of_one_path_have_no_state_tree():
    model = tf.keras.Sequential([tf.keras.Input((3,)), L.Dense(2)])
    model.compile("sgd", "mse", metrics=[tf.keras.metrics.Mean("loss")])
    model.fit(np.ones((4, 3), "f"), np.ones((4, 2), "f"), verbose=0)
    with pytest.raises(ValueError, match="two variables have the path 'loss/total'"):
        model.get_state_tree()
