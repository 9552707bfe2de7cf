"""Lambda, wrappers, Pipeline, EinsumDense and ReversibleEmbedding: what the laws of layers do not say of them."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import LoadError, UnknownObjectError

L = tf.keras.layers
X = np.random.default_rng(3).standard_normal((4, 3, 5)).astype("float32")


# Lambda -----------------------------------------------------------------------------------------------------------------


def test_a_lambda_gets_its_arguments_and_the_mask_and_training_if_it_takes_them():
    seen = {}

    def scaled(x, factor, mask=None, training=None):
        seen.update(mask=mask, training=training)
        return factor * x

    embedded = L.Embedding(3, 2, mask_zero=True)(np.array([[1, 0]]))
    y = L.Lambda(scaled, arguments={"factor": 2.0}, mask=lambda x, mask: ~mask)(embedded, training=True)
    np.testing.assert_array_equal(y.numpy(), 2.0 * embedded.numpy())
    np.testing.assert_array_equal(seen["mask"].numpy(), [[True, False]])
    np.testing.assert_array_equal(y._keras_mask.numpy(), [[False, True]])
    assert seen["training"] is True
    assert getattr(L.Lambda(lambda x: x + 0)(embedded), "_keras_mask", None) is None


@pytest.mark.parametrize(
    ("output_shape", "expected"), [(None, (None, 5)), ((7,), (None, 7)), (lambda shape: (*shape, 2), (None, None, 5, 2))]
)
def test_a_lambda_says_its_shape_or_is_tried(output_shape, expected):
    layer = L.Lambda(lambda x: tf.reduce_sum(x, 1), output_shape)
    assert layer(tf.keras.Input((None, 5))).shape == expected
    assert tuple(layer.compute_output_shape((None, None, 5))) == expected


@pytest.mark.parametrize("output_shape", [(1,), lambda shapes: (shapes[1][0], 1)])
def test_a_lambda_of_several_inputs_says_its_shape(output_shape):
    layer = L.Lambda(lambda pair: tf.reduce_sum(pair[0] - pair[1], 1, keepdims=True), output_shape)
    assert layer([tf.keras.Input((3,)), tf.keras.Input((3,))]).shape == (None, 1)


def test_a_lambda_takes_several_inputs_and_is_trained_around():
    first, second = tf.keras.Input((3,)), tf.keras.Input((3,))
    y = L.Lambda(lambda pair: pair[0] * pair[1])([L.Dense(3)(first), second])
    model = tf.keras.Model([first, second], L.Dense(1)(y))
    for options in ({}, {"jit_compile": True}):
        model.compile("sgd", "mse", **options)
        before = model.get_weights()[0]
        model.fit([X[:, :, 0], X[:, :, 1]], X[:, 0, :1], verbose=0)
        assert (model.get_weights()[0] != before).any()
    twin = tf.keras.models.clone_model(model)
    twin.set_weights(model.get_weights())
    data = [X[:, :, 0], X[:, :, 1]]
    np.testing.assert_array_equal(twin(data).numpy(), model(data).numpy())


def doubled(x):
    return 2.0 * x


def test_a_file_holds_the_name_of_a_function_and_never_code(tmp_path):
    model = tf.keras.Sequential([tf.keras.Input((5,)), L.Lambda(lambda x: 2.0 * x), L.Dense(1, activation=lambda x: x)])
    model.compile("sgd", "mse")
    keep = tf.keras.callbacks.ModelCheckpoint(tmp_path / "m.keras")
    with pytest.warns(UserWarning, match="A lambda is not written: .* write a named function"):
        history = model.fit(np.ones((2, 5)), np.ones((2, 1)), epochs=2, verbose=0, callbacks=[keep])
    assert len(history.epoch) == 2  # saving stops no training
    with pytest.raises(ValueError, match="nothing in a configuration is ever run.*or give custom_objects"):
        tf.keras.models.load_model(tmp_path / "m.keras")
    with tf.keras.saving.custom_object_scope({"__lambda__": doubled}):
        twin = tf.keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_allclose(twin(X[:, 0]), 2.0 * model(X[:, 0]).numpy(), rtol=1e-6)
    model = tf.keras.Sequential(
        [tf.keras.Input((5,)), L.Lambda(doubled, output_shape=(5,)), L.Lambda(tf.keras.activations.relu)]
    )
    model.save(tmp_path / "m.keras")
    with pytest.raises(UnknownObjectError, match="Could not locate function 'doubled'"):
        tf.keras.models.load_model(tmp_path / "m.keras")
    found = tf.keras.models.load_model(tmp_path / "m.keras", custom_objects={"doubled": doubled})
    np.testing.assert_array_equal(found(X[0]).numpy(), np.maximum(2 * X[0], 0))


@pytest.mark.parametrize("name", ["deserialize_keras_object", "concatenate", "mean_squared_error"])
def test_a_file_may_not_name_a_function_of_the_package_for_a_lambda(name):
    function = {"module": "builtins", "class_name": "function", "config": name, "registered_name": name}
    config = {"module": "keras.layers", "class_name": "Lambda", "config": {"function": function}, "registered_name": None}
    with pytest.raises(UnknownObjectError):
        tf.keras.saving.deserialize_keras_object(config)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="Lambda: expected a function, found 3"):
        L.Lambda(3)
    with pytest.raises(TypeError, match="Lambda: output_shape must be a tuple, a function or None, found 'a'"):
        L.Lambda(tf.abs, output_shape="a")


# Wrappers ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("training", [False, True])
def test_steps_that_are_one_batch_give_what_single_steps_give(training):
    class Own(L.Dense):
        """A Dense of the user's, which is called step by step."""

    for kind in (L.Dense, Own):
        layer = L.TimeDistributed(kind(2, activation="tanh", kernel_initializer="ones"))
        y = layer(X, training=training)
        expected = np.stack([layer.layer(X[:, step]).numpy() for step in range(3)], 1)
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)


def test_statistics_of_steps_are_taken_one_after_the_other():
    layer, alone = L.TimeDistributed(L.BatchNormalization(momentum=0.5)), L.BatchNormalization(momentum=0.5)
    y = layer(X, training=True)
    expected = [alone(X[:, step], training=True).numpy() for step in range(3)]
    np.testing.assert_array_equal(y.numpy(), np.stack(expected, 1))
    np.testing.assert_array_equal(layer.layer.moving_mean.numpy(), alone.moving_mean.numpy())


def test_a_mask_goes_to_a_layer_that_takes_one_step_by_step():
    x = tf.constant(X[..., None])
    mask = np.array([[True, True, False]] * 4)
    layer = L.TimeDistributed(L.Lambda(lambda x, mask: tf.where(mask[:, None, None], x, 0.0)))
    y = layer(x, mask=mask)
    np.testing.assert_array_equal(y.numpy(), np.where(mask[..., None, None], x.numpy(), 0.0))
    with pytest.raises(ValueError, match="must begin with the batch and the steps"):
        layer(x, mask=mask[:, :2])


def test_open_steps_stay_open_and_are_not_tried():
    y = L.TimeDistributed(L.Conv1D(2, 2))(tf.keras.Input((None, 6, 3)))
    assert y.shape == (None, None, 5, 2)
    calls = []

    class Counted(L.Dense):
        def call(self, x):
            calls.append(x.shape)
            return super().call(x)

    series = tf.keras.Input((None, 4))
    model = tf.keras.Model(series, L.TimeDistributed(Counted(3))(series))
    assert model.output_shape == (None, None, 3) and len(calls) < 4
    assert model(X[..., :4]).shape == (4, 3, 3)
    with pytest.raises(ValueError, match="at least 3 dimensions"):
        L.TimeDistributed(L.Dense(2))(np.ones((2, 3)))


@pytest.mark.parametrize("options", [{"run_eagerly": True}, {}, {"jit_compile": True}])
def test_a_kernel_of_bounded_norm_is_trained(options):
    layer = L.SpectralNormalization(L.Dense(3, kernel_initializer="ones"), power_iterations=3)
    model = tf.keras.Sequential([tf.keras.Input((5,)), layer, L.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(1e-3), "mse", **options)
    model.fit(X[:, 0], X[:, 1, :1], epochs=2, verbose=0)
    assert np.linalg.norm(layer.kernel.numpy(), 2) == pytest.approx(1.0, abs=1e-2)
    assert [weight.path.rpartition("/")[2] for weight in layer.weights] == ["kernel", "vector_u", "bias"]


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_a_kernel_is_normalized_in_its_own_dtype_under_a_mixed_policy(policy):
    if policy == "mixed_bfloat16":
        pytest.importorskip("ml_dtypes")
    mixed, plain = [L.SpectralNormalization(L.Dense(3, dtype=dtype), dtype=dtype) for dtype in (policy, "float32")]
    for layer in (mixed, plain):
        layer.build((None, 5))
    mixed.set_weights(plain.get_weights())
    for _ in range(3):
        ours, theirs = mixed(X[:, 0], training=True), plain(X[:, 0], training=True)
    assert ours.dtype.name == mixed.compute_dtype
    np.testing.assert_allclose(ours.numpy().astype("float32"), theirs.numpy(), atol=0.05)
    for own, other in zip(mixed.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_array_equal(own, other)


def test_a_kernel_of_zeros_stays():
    layer = L.SpectralNormalization(L.Dense(3, kernel_initializer="zeros"))
    layer(X[0], training=True)
    np.testing.assert_array_equal(layer.kernel.numpy(), 0.0)
    embedding = L.SpectralNormalization(L.Embedding(4, 3), power_iterations=30)
    assert embedding(np.array([[1, 2]]), training=True).dtype == tf.float32
    assert np.linalg.norm(embedding.layer.embeddings.numpy(), 2) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: L.TimeDistributed(3), "TimeDistributed needs a keras.layers.Layer object, found 3"),
        (lambda: L.SpectralNormalization(L.Dense(2), 0), "`power_iterations` should be an int greater than zero"),
        (lambda: L.SpectralNormalization(L.Flatten())(X), "Flatten has neither `kernel` nor `embeddings`"),
        (lambda: L.EinsumDense("ab,bc", 2), "Invalid einsum equation 'ab,bc'"),
        (lambda: L.EinsumDense("...ab,bc->ac...", 2), "Invalid einsum equation"),
        (lambda: L.EinsumDense("a...,ab->b...", 2), "Invalid einsum equation"),
        (lambda: L.EinsumDense("ab,bc->ad", 2), "label 'd' of the output occurs nowhere else"),
        (lambda: L.EinsumDense("ab,bcd->ac", 2), "label 'd' of the kernel occurs nowhere else"),
        (lambda: L.EinsumDense("ab,bc->ac", 2, bias_axes="b"), "bias_axes 'b' must be labels of the output 'ac'"),
        (lambda: L.EinsumDense("ab,bc->ac", (2, 3))(X[0]), "must have 1 sizes"),
        (lambda: L.EinsumDense("ab,bc->ac", 2)(X), "expected inputs with 2 axes"),
        (lambda: L.EinsumDense("abc,bcd->abd", (9, 2))(X), "do not match at shared dimension 'b'"),
        (lambda: L.EinsumDense("abc,bcd->abd", (None, 2))(tf.keras.Input((None, 5))), "needs known sizes"),
    ],
)
def test_what_does_not_fit_is_explained(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_pipeline_is_its_layers_one_after_the_other():
    layer = L.Pipeline([L.Dense(4), L.Dropout(0.5, seed=1)], name="pipe")
    y = layer(X[0])
    assert y.shape == (3, 4) and (y.numpy() == 0).any() and not layer.supports_masking  # in training, as in Keras
    twin = L.Pipeline.from_config(layer.get_config())
    assert twin.get_config() == layer.get_config()
    assert twin.name == "pipe" and [type(one).__name__ for one in twin.layers] == ["Dense", "Dropout"]
    assert twin.compute_output_shape((None, 5)) == (None, 4)


# First values, and the way back of an embedding ----------------------------------------------------------------------------


def test_first_values_count_what_the_equation_sums_over_as_inputs():
    kernel = L.EinsumDense("abc,cde->abde", (None, 40, 50), kernel_initializer="lecun_uniform")
    kernel(np.ones((1, 1, 300), "float32"))
    assert np.abs(kernel.kernel.numpy()).max() == pytest.approx((3 / 300) ** 0.5, rel=0.01)
    given = tf.keras.initializers.VarianceScaling(3.0, "fan_out", "uniform", input_axes=[1, 2], output_axes=[0])
    assert np.abs(given([900, 2, 2]).numpy()).max() == pytest.approx(0.1, rel=0.01)


def test_integers_are_found_again_from_their_vectors():
    for tied in (True, False):
        layer = L.ReversibleEmbedding(4, 3, tie_weights=tied, mask_zero=True, reverse_dtype="float64")
        y = layer(np.array([[1, 0]]))
        np.testing.assert_array_equal(y._keras_mask.numpy(), [[True, False]])
        scores = layer(y, reverse=True)
        assert scores.shape == (1, 2, 4) and scores.dtype == tf.float64 and len(layer.weights) == 2 - tied
        assert layer(tf.keras.Input((None, 3)), reverse=True).shape == (None, None, 4)


# Images of one size ---------------------------------------------------------------------------------------------------------


IMAGE = np.arange(2.0 * 5 * 8).reshape(2, 5, 8, 1).astype("float32")


@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize(("size", "cut"), [((3, 3), IMAGE[:, 1:4, 2:5]), ((5, 8), IMAGE), ((10, 10), IMAGE[:, :, 1:6])])
def test_the_middle_is_cut_out_or_resized(size, cut, batch):
    x, cut = (IMAGE, cut) if batch else (IMAGE[0], cut[0])
    expected = tf.image.resize(cut, size)
    np.testing.assert_array_equal(L.CenterCrop(*size)(x).numpy(), expected.numpy())
    np.testing.assert_array_equal(L.Resizing(*size, crop_to_aspect_ratio=True)(IMAGE[:, :, 1:6]).numpy().shape[1:3], size)


def test_an_image_is_put_into_a_wider_one_before_it_is_resized():
    y = L.Resizing(8, 8, pad_to_aspect_ratio=True, fill_value=7.0)(IMAGE)
    assert (y.numpy()[:, 0] == 7.0).all() and (y.numpy()[:, 4] != 7.0).any()
    first = np.moveaxis(IMAGE, -1, 1)
    other = L.Resizing(8, 8, pad_to_aspect_ratio=True, fill_value=7.0, data_format="channels_first")(first)
    np.testing.assert_array_equal(other.numpy(), np.moveaxis(y.numpy(), -1, 1))


def test_whole_numbers_stay_whole_where_an_image_is_resized():
    y = L.Resizing(2, 3, interpolation="bicubic")(IMAGE.astype("uint8"))
    assert y.dtype == tf.uint8 and y.shape == (2, 2, 3, 1)
    assert L.Resizing(2, 3)(tf.keras.Input((None, None, 3), dtype="uint8")).shape == (None, 2, 3, 3)
    for make, said in (
        (lambda: L.Resizing(0, 2), "Resizing: height must be at least 1"),
        (lambda: L.Resizing(2, 2, "cubic"), "interpolation must be one of .*'area'"),
        (lambda: L.Resizing(2, 2, fill_mode="edge"), "only fill_mode='constant' is there"),
        (lambda: L.Resizing(2, 2, crop_to_aspect_ratio=True, pad_to_aspect_ratio=True), "Only one of"),
        (lambda: L.CenterCrop(2, 2)(np.ones((2, 2))), "expects images of 3 axes"),
    ):
        with pytest.raises(ValueError, match=said):
            make()


def test_scores_are_bounded_by_a_positive_number():
    with pytest.raises(ValueError, match="logit_soft_cap must be positive or None, found 0"):
        L.ReversibleEmbedding(4, 3, logit_soft_cap=0)


def test_the_layers_of_a_pipeline_see_the_mask():
    class Seeing(tf.keras.layers.Layer):
        seen = None

        def call(self, inputs, mask=None):
            self.seen = mask
            return inputs

    pipeline = tf.keras.layers.Pipeline([Seeing()])
    pipeline(np.zeros((1, 2)), mask=np.array([[True, False]]))
    np.testing.assert_array_equal(pipeline.layers[0].seen, [[True, False]])
    for config in ({}, {"layers": None}):
        with pytest.raises(LoadError, match="needs a list of layers"):
            tf.keras.layers.Pipeline.from_config(config)


def test_a_vector_rescales_each_channel_wherever_the_channels_stand():
    layer, images = tf.keras.layers.Rescaling([1.0, 2.0], offset=[0.0, 1.0]), np.ones((1, 2, 3, 3))
    last = np.moveaxis(layer(np.moveaxis(images, 1, -1)), -1, 1)
    tf.keras.config.set_image_data_format("channels_first")
    try:
        scaled = layer(images)
    finally:
        tf.keras.config.set_image_data_format("channels_last")
    np.testing.assert_array_equal(scaled[0, :, 0, 0], [1.0, 3.0])
    np.testing.assert_array_equal(scaled, last)
