"""Options of single layers: what they do beyond the laws, and which values are refused."""

import inspect
import typing

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import InvalidArgumentError, ShapeError

L = tf.keras.layers


@pytest.mark.parametrize(
    "make", [lambda **o: L.Dense(2, **o), lambda **o: L.Embedding(2, 2, **o), lambda **o: L.Conv1D(2, 2, **o)]
)
@pytest.mark.parametrize("option", ["lora_rank", "lora_alpha", "quantization_config"])
def test_low_rank_adaptation_and_quantization_are_told_to_be_absent(make, option):
    with pytest.raises(NotImplementedError, match=f"{option} is not available.*layer.trainable = False"):
        make(**{option: 4})
    make(**{option: None})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: L.Dense(0), ValueError, "`units`, expected a positive integer. Received: units=0"),
        (lambda: L.Dense(2.5), ValueError, "units=2.5"),
        (lambda: L.Dense(2, trainable=1), ValueError, "expected `trainable` to be a boolean, found 1"),
        (lambda: L.Embedding(0, 2), ValueError, "`input_dim`, expected a positive integer. Received: input_dim=0"),
        (lambda: L.Embedding(2, -1), ValueError, "`output_dim`, expected a positive integer. Received: output_dim=-1"),
        (lambda: L.ReLU(max_value=-1.0), ValueError, "max_value of a ReLU layer cannot be None or negative"),
        (lambda: L.ReLU(threshold=None), ValueError, "threshold of a ReLU layer"),
        (lambda: L.LeakyReLU(-0.1), ValueError, "negative_slope of a LeakyReLU layer"),
        (lambda: L.Reshape((-1, -1)), ValueError, r"may hold one -1 and no other negative size, found \(-1, -1\)"),
        (lambda: L.Permute((0, 1)), ValueError, r"start at 1 and be consecutive. Received dims=\(0, 1\)"),
        (lambda: L.RepeatVector(0), ValueError, "`n` should be a positive integer, got 0"),
        (lambda: L.RepeatVector("3"), TypeError, "RepeatVector: n must be a whole number, found '3'"),
        (lambda: L.Flatten("last"), ValueError, "data_format must be 'channels_last' or 'channels_first', found 'last'"),
        (lambda: L.Dropout(1.5), ValueError, "between 0 and 1. Received: rate=1.5"),
        (lambda: L.Dropout(0.5, noise_shape=(0, 1)), ValueError, "`noise_shape` must hold positive integers or None"),
        (lambda: L.Dropout(0.5, noise_shape="all"), ValueError, "`noise_shape` must hold positive integers or None"),
        (lambda: L.Dropout(0.5, seed=-1), ValueError, "seed must be an int of at least 0 or None, found -1"),
        (lambda: L.GaussianNoise(-1.0), ValueError, "`stddev`, expected a float of at least 0: -1.0"),
        (lambda: L.GaussianDropout(1.0), ValueError, "infinite for rate=1"),
        (
            lambda: L.BatchNormalization(renorm_clipping={"max": 1}),
            ValueError,
            r"invalid keys for `renorm_clipping`: \['max'\]",
        ),
        (
            lambda: L.BatchNormalization(renorm_clipping={"rmin": 2, "rmax": 1}),
            ValueError,
            "rmin must not exceed rmax, and dmax must not be negative",
        ),
        (lambda: L.LayerNormalization(axis="last"), TypeError, "axis must be an int or several ints, found 'last'"),
        (lambda: L.GroupNormalization(0), ValueError, "`groups` must be a positive integer or -1, found 0"),
        (lambda: L.GroupNormalization(2, axis=0), ValueError, "axis must be an int behind the batch axis, found 0"),
        (lambda: L.Normalization(mean=1.0), ValueError, "give both `mean` and `variance` or none"),
        (lambda: L.Normalization(axis=None, mean=[1.0], variance=[1.0]), ValueError, r"at most 0 axes \(axis=\(\)\)"),
        (lambda: L.Dot(axes=(1, 2, 3)), ValueError, r"axes must be an int or a pair of them, found \(1, 2, 3\)"),
        (lambda: L.Concatenate(axis=None), ValueError, "axis must be an int, found None"),
        (lambda: L.Conv2D(0, 3), ValueError, "`filters`, expected a positive integer. Received: filters=0"),
        (lambda: L.Conv2D(4, (3, 0)), ValueError, r"`kernel_size` must be a positive integer or a tuple of 2.*\(3, 0\)"),
        (lambda: L.Conv2D(4, 3, strides=(1, 1, 1)), ValueError, "`strides` must be a positive integer or a tuple of 2"),
        (lambda: L.Conv2D(4, 3, padding="causal"), ValueError, r"padding must be one of \('valid', 'same'\), found 'causal'"),
        (lambda: L.Conv2D(4, 3, strides=2, dilation_rate=2), ValueError, "cannot both exceed 1"),
        (lambda: L.Conv2D(4, 3, groups=3), ValueError, "filters=4 must be a multiple of groups=3"),
        (lambda: L.Conv2DTranspose(4, 3, strides=2, output_padding=2), ValueError, "each output_padding must be less than"),
        (lambda: L.Conv2DTranspose(4, 3, output_padding=-1), ValueError, "`output_padding` must be an integer of at least 0"),
        (lambda: L.Conv1DTranspose(4, 3, strides=2, dilation_rate=2), ValueError, "cannot both exceed 1"),
        (lambda: L.Conv1DTranspose(4, 3, padding="causal"), ValueError, "found 'causal'"),
        (
            lambda: L.DepthwiseConv2D(3, depth_multiplier=0),
            ValueError,
            "`depth_multiplier`, expected a positive integer. Received: depth_multiplier=0",
        ),
        (lambda: L.SeparableConv2D(2.0, 3), ValueError, "`filters`, expected a positive integer. Received: filters=2.0"),
        (lambda: L.UpSampling2D(0), ValueError, "`size` must be a positive integer or a tuple of 2"),
        (
            lambda: L.UpSampling2D(2, interpolation="cubic"),
            ValueError,
            "interpolation must be one of .*'lanczos5'.*found 'cubic'",
        ),
        (lambda: L.ZeroPadding2D((1, 2, 3)), ValueError, r"an int or a pair of ints for each of 2 axes.*\(1, 2, 3\)"),
        (lambda: L.ZeroPadding1D(-1), ValueError, "`padding` must be an integer of at least 0 or a tuple of 2"),
        (lambda: L.Cropping3D(((1, 2, 3), 1, 1)), ValueError, r"`cropping` must be an integer .* a tuple of 2.*\(1, 2, 3\)"),
        (lambda: L.AdaptiveMaxPooling2D((2, 0)), ValueError, "`output_size` must be a positive integer or a tuple of 2"),
        (lambda: L.MaxPooling2D(0), ValueError, "`pool_size` must be a positive integer or a tuple of 2"),
    ],
)
def test_options_out_of_range_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (L.Reshape((4,)), (2, 3), r"rows of shape \(3,\) have 3 elements, target_shape \(4,\) does not"),
        (L.PReLU(shared_axes=3), (2, 3), r"shared_axes \(3,\) must be axes 1 to 1"),
        (
            L.BatchNormalization(axis=2),
            (2, 3),
            "axis 2 is out of range .* which have the axes -2 to 1",
        ),
        (L.LayerNormalization(axis=[1, 2]), (2, 3), r"axis 2 is out of range for inputs of shape \(2, 3\)"),
        (L.GroupNormalization(2), (2, 3), "3 features cannot be divided into 2 groups"),
        (
            L.Dropout(0.5, noise_shape=(None, 2)),
            (2, 3),
            r"noise_shape \(None, 2\) does not broadcast to inputs of shape \(2, 3\)",
        ),
        (L.Conv1D(4, 2, groups=2), (2, 5, 3), "multiple of groups=2, found 3 in input shape"),
        (
            L.Conv2D(4, 3),
            (2, 2, 5, 3),
            r"a window of \(3, 3\) does not fit into inputs of shape \(2, 2, 5, 3\).*padding='same'",
        ),
        (L.Cropping2D(((1, 2), 0)), (2, 3, 4, 1), r"cropping=.* leaves nothing of sizes \(3, 4\)"),
        (L.MaxPooling1D(3), (2, 2, 3), r"a window of \(3,\) does not fit into inputs of shape \(2, 2, 3\)"),
    ],
)
def test_inputs_that_do_not_fit_the_options_are_refused(layer, shape, message):
    with pytest.raises(ShapeError, match=message):
        layer(np.ones(shape), training=True) if isinstance(layer, L.Dropout) else layer(np.ones(shape))


@pytest.mark.parametrize(
    ("layer", "shapes", "message"),
    [
        (L.Add, [(2, 3), (2, 4)], "needs inputs whose shapes can be broadcast"),
        (L.Add, [(2, 3), (4, 3)], "cannot merge tensors with different batch sizes"),
        (L.Concatenate, [(2, 3, 1), (2, 4, 1)], "requires inputs with matching shapes except along axis -1"),
        (L.Concatenate, [(2, 3), (2, 3, 1)], "needs inputs of one rank that have axis -1"),
        (lambda **o: L.Dot(axes=1, **o), [(2, 3), (2, 4)], "sizes 3 and 4 along axes 1 and 1 differ"),
        (lambda **o: L.Dot(axes=0, **o), [(2, 3), (2, 3)], "must lie behind the batch axis"),
        (L.Subtract, [(2, 3)] * 3, "should be called on exactly 2 inputs, found 3"),
        (lambda **o: L.Dot(axes=1, **o), [(2, 3)] * 3, "should be called on exactly 2 inputs, found 3"),
        (L.Maximum, (2, 3), "should be called on a list of inputs"),
    ],
)
def test_inputs_that_cannot_be_merged_are_refused_with_their_shapes(layer, shapes, message):
    inputs = [tf.ones(shape) for shape in shapes] if isinstance(shapes, list) else tf.ones(shapes)
    with pytest.raises(ValueError, match=rf"Layer 'm' \(.*{message}"):
        layer(name="m")(inputs)


def test_three_transposed_axes_have_the_data_format_in_front_of_the_padding_of_the_output_as_in_keras():
    layer = L.Conv3DTranspose(2, 2, 3, "same", "channels_first", 1, 1, "relu", False)
    assert (layer.data_format, layer.output_padding, layer.use_bias) == ("channels_first", (1, 1, 1), False)
    flat = L.Conv2DTranspose(2, 2, 3, "same", 1, "channels_first", 1, "relu", False)
    assert (flat.data_format, flat.output_padding, flat.activation) == ("channels_first", (1, 1), layer.activation)
    assert layer(tf.ones([1, 3, 2, 2, 2])).shape == (1, 2, 4, 4, 4)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (L.Conv2DTranspose(4, 3, strides=2), (None, None, None, 4)),
        (L.Conv2DTranspose(4, 3, strides=(2, 3), padding="same", output_padding=0), (None, None, None, 4)),
        (L.DepthwiseConv2D(3, depth_multiplier=2), (None, None, None, 6)),
        (L.SeparableConv2D(4, 3, padding="same"), (None, None, None, 4)),
        (L.ZeroPadding2D(2), (None, None, None, 3)),
        (L.Cropping2D(2), (None, None, None, 3)),
        (L.UpSampling2D(2), (None, None, None, 3)),
        (L.UpSampling2D(2, interpolation="bicubic"), (None, None, None, 3)),
        (L.AdaptiveAveragePooling2D((2, 5)), (None, 2, 5, 3)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_images_of_any_size_go_through_symbolically_and_then_as_numbers(layer, shape):
    x = tf.keras.Input((None, None, 3))
    model = tf.keras.Model(x, layer(x))
    assert model.output_shape == layer.compute_output_shape((None, None, None, 3)) == shape
    for size in ((6, 7), (9, 8)):
        assert model(tf.ones([2, *size, 3])).shape == layer.compute_output_shape((2, *size, 3))


def test_larger_images_of_integers_stay_integers_unless_they_are_interpolated():
    x = tf.constant([[[[1], [3]]]])
    assert L.UpSampling2D(2)(x).dtype == tf.int32 and L.ZeroPadding2D()(x).dtype == tf.int32
    y = L.UpSampling2D((1, 2), interpolation="bilinear", dtype="mixed_float16")(x)
    assert y.dtype == tf.float16 and y.numpy().ravel().tolist() == [1.0, 1.5, 2.5, 3.0]


def test_layers_of_several_inputs_are_functions_too():
    a, b = tf.constant([[1.0, 4.0]]), tf.constant([[3.0, 2.0]])
    for name, expected in {"add": [4, 6], "subtract": [-2, 2], "multiply": [3, 8], "maximum": [3, 4], "dot": [11]}.items():
        assert getattr(L, name)([a, b]).numpy().tolist() == [expected]
    assert L.concatenate([a, b], axis=0).shape == (2, 2) and L.dot([a, b], 1, normalize=True).shape == (1, 1)


def test_an_integer_without_a_row_is_named():
    layer = L.Embedding(3, 2)
    with pytest.raises(InvalidArgumentError, match=r"indices = 3 is not in \[0, 3\)"):
        layer([[0, 3]])


def test_several_rows_of_a_table_that_are_one_add_up_their_gradients():
    layer = L.Embedding(4, 2)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(np.array([[1, 1, 3]])))
    gradient = tf.convert_to_tensor(tape.gradient(loss, layer.embeddings)).numpy()
    assert gradient.tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]


def test_constraints_and_penalties_reach_the_weights_of_every_kind_of_layer():
    layer = L.Conv1D(2, 2, kernel_constraint="non_neg", bias_regularizer="l2", kernel_regularizer="l1")
    layer(np.ones((1, 3, 1)))
    assert layer.kernel.constraint is layer.kernel_constraint and layer.bias.constraint is None
    assert len(layer.losses) == 2
    norm = L.LayerNormalization(gamma_constraint="non_neg", beta_regularizer="l2")
    norm(np.ones((1, 3)))
    assert norm.gamma.constraint is norm.gamma_constraint and len(norm.losses) == 1
    table = L.Embedding(2, 2, embeddings_constraint="unit_norm", embeddings_regularizer="l2")
    table([0])
    assert table.embeddings.constraint is table.embeddings_constraint and len(table.losses) == 1


def test_a_frozen_normalization_is_in_inference_mode_with_renormalization_too():
    layer = L.BatchNormalization(renorm=True)
    x = np.random.default_rng(0).normal(5.0, 2.0, (8, 3))
    layer(x)
    layer.trainable = False
    before = layer.get_weights()
    np.testing.assert_array_equal(layer(x, training=True).numpy(), layer(x, training=False).numpy())
    assert all(np.array_equal(a, b) for a, b in zip(before, layer.get_weights(), strict=True))


def test_corrections_of_renormalization_carry_no_gradient_and_stay_within_their_limits():
    x = tf.constant(np.random.default_rng(0).normal(5.0, 2.0, (8, 1)), "float64")
    limited = L.BatchNormalization(renorm=True, renorm_clipping={"rmin": 1.0, "rmax": 1.0, "dmax": 0.0}, dtype="float64")
    plain = L.BatchNormalization(dtype="float64")
    np.testing.assert_allclose(limited(x, training=True).numpy(), plain(x, training=True).numpy(), atol=1e-12)
    for layer in (limited, plain):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(layer(x, training=True) ** 3)
        np.testing.assert_allclose(np.sum(tape.gradient(loss, x).numpy()), 0.0, atol=1e-10)


# Normalization --------------------------------------------------------------------------------------------------------------

DATA = np.random.default_rng(1).normal(3.0, 2.0, (10, 4, 3))


@pytest.mark.parametrize("axis", [-1, 1, (1, 2), None])
@pytest.mark.parametrize("form", ["array", "tensor", "batches", "dataset", "pairs"])
def test_statistics_are_those_of_all_the_data_however_it_comes(axis, form):
    data = {
        "array": lambda: DATA,
        "tensor": lambda: tf.constant(DATA),
        "batches": lambda: [DATA[:3], DATA[3:4], DATA[4:]],
        "dataset": lambda: tf.data.Dataset.from_tensor_slices(DATA).batch(4),
        "pairs": lambda: ((DATA[i : i + 5], None) for i in (0, 5)),
    }[form]()
    layer = L.Normalization(axis=axis, dtype="float64")
    layer.adapt(data)
    kept = () if axis is None else (axis,) if isinstance(axis, int) else axis
    rest = tuple(i for i in range(3) if i not in {k % 3 for k in kept})
    expected = (DATA - DATA.mean(rest, keepdims=True)) / DATA.std(rest, keepdims=True)
    np.testing.assert_allclose(layer(DATA).numpy(), expected, rtol=1e-9)
    undone = L.Normalization(axis=axis, invert=True, dtype="float64")
    undone.adapt(DATA)
    np.testing.assert_allclose(undone(expected).numpy(), DATA, rtol=1e-9)


def test_adapting_again_forgets_and_needs_data_of_the_same_width():
    layer = L.Normalization()
    layer.adapt(np.full((2, 3), 7.0))
    layer.adapt(np.array([[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]]))
    np.testing.assert_allclose(layer.mean.numpy(), [[1.0, 1.0, 1.0]])
    before = layer.get_weights()
    with pytest.raises(ShapeError, match=r"was built for 3 features .* found inputs of shape \(2, 4\)"):
        layer.adapt(np.ones((2, 4)))
    with pytest.raises(ValueError, match="Cannot `adapt` layer 'normalization': there is no data"):
        layer.adapt([])
    assert all(np.array_equal(a, b) for a, b in zip(before, layer.get_weights(), strict=True))
    with pytest.raises(ValueError, match="its mean and variance were given to the constructor"):
        L.Normalization(mean=0.0, variance=1.0).adapt(DATA)


WIDE = [
    lambda: L.GroupNormalization(2, dtype="mixed_float16"),
    lambda: L.LayerNormalization(dtype="mixed_float16"),
    lambda: L.RMSNormalization(dtype="float16"),
    lambda: L.UnitNormalization(dtype="float16"),
    lambda: L.Normalization(axis=None, mean=60000.0, variance=1e8, dtype="float16"),
    lambda: L.BatchNormalization(moving_variance_initializer=lambda shape, dtype: tf.fill(shape, 1e10), dtype="mixed_float16"),
]


@pytest.mark.parametrize("make", WIDE)
@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "bfloat16"])
def test_normalization_to_half_precision_takes_inputs_that_half_precision_cannot_hold(make, kind):
    rows = np.array([[70000, 80000, 90000, 100000], [80000, 70000, 100000, 90000]])
    outputs = make()(tf.cast(rows, kind))
    assert outputs.dtype == "float16"
    assert np.isfinite(outputs.numpy()).all()
    assert outputs.numpy().any()


@pytest.mark.parametrize("make", [L.LayerNormalization, L.RMSNormalization])
def test_normalization_of_features_takes_inputs_of_any_rank_after_it_was_built(make):
    layer, x = make(), np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    layer(np.ones((2, 3)))
    np.testing.assert_allclose(layer(x), np.stack([layer(x[:, step]) for step in range(5)], 1), rtol=1e-6)
    assert layer(x[0]).shape == (5, 3)
    with pytest.raises(ShapeError, match=r"was built for 3 features along axis -1"):
        layer(np.ones((2, 5, 4)))


@pytest.mark.parametrize(
    ("make", "shape", "message"),
    [
        (lambda: L.LayerNormalization(axis=[1, -1]), (2, 3), r"axis \(1, -1\) names an axis of inputs of shape \(2, 3\) twice"),
        (lambda: L.RMSNormalization(axis=(2, -1)), (2, 3, 4), "names an axis of inputs of shape"),
        (lambda: L.Normalization(axis=(1, -1)), (2, 3), "names an axis of inputs of shape"),
        (lambda: L.GroupNormalization(1, axis=4), (2, 3), "axis 4 is out of range for inputs of shape"),
    ],
)
def test_axes_that_do_not_exist_or_are_named_twice_are_refused(make, shape, message):
    with pytest.raises(ShapeError, match=message):
        make()(tf.ones(shape))


def test_an_axis_without_a_known_size_says_where_to_give_it():
    with pytest.raises(ShapeError, match=r"axis -1 of inputs of shape \(None, None\) has no known size.*keras.Input"):
        L.LayerNormalization().build((None, None))


def test_softmax_over_several_axes_is_that_over_all_of_them_at_once():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    e = np.exp(x)
    for axes in ((1, 2), [0, -1], (2, 0), (1,), (0, 1, 2)):
        expected = e / e.sum(tuple(axes), keepdims=True)
        np.testing.assert_allclose(tf.keras.activations.softmax(x, axis=axes), expected, rtol=1e-5)
        np.testing.assert_allclose(tf.keras.activations.log_softmax(x, axis=axes), np.log(expected), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(L.Softmax(axis=axes)(x), expected, rtol=1e-5)
    with pytest.raises(ShapeError, match="names one axis twice"):
        tf.keras.activations.softmax(x, axis=(2, -1))
    with pytest.raises(ValueError, match="no axis was given"):
        tf.keras.activations.log_softmax(x, axis=())


@pytest.mark.parametrize("call", [tf.nn.softmax, tf.nn.log_softmax, lambda x, axis: tf.split(x, 1, axis), tf.cumsum])
def test_several_axes_where_one_is_needed_are_refused_in_words(call):
    with pytest.raises(TypeError, match=r"must be one integer, found \(0, 1\)"):
        call(np.ones((2, 3)), axis=(0, 1))


def test_statistics_of_normalization_are_ready_to_be_broadcast_to_the_inputs():
    x = np.random.default_rng(0).normal(size=(4, 5, 3, 2)).astype("float32")
    for axis in (-1, 2, (1, 2), (1, -1), None):
        layer = L.Normalization(axis=axis)
        layer.adapt(x)
        kept = () if axis is None else [one % 4 for one in np.atleast_1d(axis)]
        rest = tuple(one for one in range(4) if one not in kept)
        np.testing.assert_allclose(layer.mean, x.mean(rest, keepdims=True), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(layer.variance, x.var(rest, keepdims=True), rtol=1e-4)
        given = L.Normalization(axis=axis, mean=x.mean(rest), variance=x.var(rest))
        assert given.mean is None
        np.testing.assert_allclose(given(x), layer(x), rtol=1e-4, atol=1e-5)
        assert given.mean.shape == layer.mean.shape


def test_normalization_adapts_to_batches_of_pairs_and_takes_inputs_of_another_rank():
    x = np.random.default_rng(0).normal(size=(24, 3)).astype("float32")
    batches = [(x[start : start + 8], np.zeros(8)) for start in range(0, 24, 8)]
    layer = L.Normalization()
    layer.adapt(batches)
    np.testing.assert_allclose(layer(x).numpy().mean(0), 0.0, atol=1e-6)
    np.testing.assert_allclose(layer(x[None, None])[0, 0], layer(x), rtol=1e-6)
    with pytest.raises(TypeError, match=r"to 42: a batch needs a `.shape` of at least one axis"):
        L.Normalization().adapt(iter([42]))


def test_an_average_of_integers_is_a_float():
    y = L.Average()([np.array([[1, 2]]), np.array([[2, 4]])])
    assert y.dtype == "float32"
    assert y.numpy().tolist() == [[1.5, 3.0]]


def test_the_base_of_constraints_leaves_weights_as_they_are():
    assert tf.keras.constraints.Constraint()([1.0, -2.0]).numpy().tolist() == [1.0, -2.0]


@pytest.mark.parametrize("base, window", [(L.Conv1D, (2,)), (L.Conv2D, (2, 2)), (L.Conv3D, (1, 2, 2))])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_convolution_may_be_computed_with_another_kernel(base, window, compiled):
    class Doubled(base):
        def convolution_op(self, inputs, kernel):
            return super().convolution_op(inputs, 2.0 * tf.convert_to_tensor(kernel))

    layer, plain = Doubled(3, window, use_bias=False), base(3, window, use_bias=False)
    x = np.random.default_rng(0).normal(size=(2, *(4,) * len(window), 2)).astype("float32")
    layer.build(x.shape)
    plain.build(x.shape)
    plain.set_weights(layer.get_weights())
    y = tf.function(layer, jit_compile=True)(tf.constant(x)) if compiled else layer(x)
    np.testing.assert_allclose(y, 2.0 * plain(x), rtol=1e-5)


def test_the_length_of_inputs_is_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="input_length is left out") as caught:
        assert L.Embedding(3, 2, input_length=7)(np.zeros((1, 4))).shape == (1, 4, 2)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("layer", "name"),
    [(L.Dense(2), "kernel"), (L.Conv2D(2, 3), "bias"), (L.LayerNormalization(), "gamma"), (L.LSTM(2).cell, "kernel")],
)
def test_weights_are_no_attributes_before_the_layer_is_built(layer, name):
    """As in Keras."""
    with pytest.raises(AttributeError, match=f"'{name}'. If it is a weight: the first call, or build"):
        getattr(layer, name)
    layer.build((None, 5, 5, 3) if isinstance(layer, L.Conv2D) else (None, 3))
    assert getattr(layer, name) is not None


def test_weights_that_a_layer_does_without_are_none():
    layer = L.Dense(2, use_bias=False)
    layer.build((None, 3))
    assert layer.bias is None


def test_options_are_kept_as_what_their_annotations_say():
    layer = L.Conv2D(np.int64(2), 3, 1, "SAME", use_bias=0, kernel_regularizer="l2", activation=None)
    assert (layer.filters, layer.kernel_size, layer.padding, layer.use_bias) == (2, (3, 3), "same", False)
    assert (
        isinstance(layer.kernel_regularizer, tf.keras.regularizers.L2) and layer.bias_initializer.__class__.__name__ == "Zeros"
    )
    assert layer.activation is tf.keras.activations.linear
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'units'"):
        L.Dense()


def test_docstrings_say_once_what_layers_have_in_common():
    pool, dense = inspect.getdoc(L.UpSampling2D), inspect.getdoc(L.Dense)
    assert pool.count("data_format: 'channels_last' (default)") == pool.count("options: `name`, `dtype`, as in `Layer`.") == 1
    assert dense.count("    options: `name`, `dtype`, `trainable`, as in `Layer`.\n\nShapes: ") == 1
    assert inspect.getdoc(L.RandomFlip).count("data_format") == 1


class _OwnNormalization(L.BatchNormalization):
    def build(self, input_shape):
        self.moving_mean = self.add_weight((input_shape[-1],), "zeros", trainable=False)
        self.moving_variance = self.add_weight((input_shape[-1],), "ones", trainable=False)


class _OwnCell(L.LSTMCell):
    def build(self, input_shape):
        self.kernel = self.add_weight((input_shape[-1], 4 * self.units), "ones")
        self.recurrent_kernel = self.add_weight((self.units, 4 * self.units), "ones")


def test_a_subclass_that_makes_its_own_weights_need_not_make_those_that_its_options_leave_out():
    assert _OwnNormalization(scale=False, center=False)(tf.ones([2, 3])).shape == (2, 3)
    assert L.RNN(_OwnCell(2, use_bias=False))(tf.ones([2, 5, 3])).shape == (2, 2)


def test_windows_that_are_set_on_a_layer_hold_for_all_axes():
    layer = L.Conv2D(4, 3)
    layer.strides = 2
    assert layer(tf.ones([1, 9, 9, 2])).shape == (1, 4, 4, 4) == layer.compute_output_shape((1, 9, 9, 2))


def test_what_is_no_weight_is_not_said_to_wait_for_building():
    for read in (lambda: tf.keras.Model().outputs, lambda: L.Dense(2).output):
        with pytest.raises(AttributeError) as refusal:
            read()
        assert "If it is a weight" not in str(refusal.value)


def test_an_option_that_a_class_hands_on_is_made_once():
    made = []

    class Counted(L.LeakyReLU):
        def __init__(self, **options):
            super().__init__(**options)
            made.append(self)

    with tf.keras.saving.custom_object_scope({"Counted": Counted}):
        L.GRU(2, activation={"class_name": "Counted", "config": {}})
        assert len(made) == 1
        L.LSTMCell(2, activation={"class_name": "Counted", "config": {}})
        assert len(made) == 2


WRONG = {int: "3", float: "1e-3", str: ["int"], bool: "yes"}


def test_every_option_that_is_a_number_or_a_text_is_checked_by_its_annotation():
    """What one of them is given in the place of its kind is refused by its name when the layer is made."""
    found = 0
    for name in sorted(vars(tf.keras.layers)["__all__"]):
        kind = getattr(L, name)
        if not isinstance(kind, type) or not getattr(kind, "is_described", False):
            continue
        hints = typing.get_type_hints(kind.__init__, include_extras=True)
        for option, hint in hints.items():
            kinds = set(typing.get_args(getattr(hint, "__origin__", None)) or [getattr(hint, "__origin__", None)])
            plain = kinds & {int, float, str}
            if not hasattr(hint, "__metadata__") or len(plain) != 1 or not kinds <= {int, float, str, type(None)}:
                continue
            needed = [n for n, p in inspect.signature(kind).parameters.items() if p.default is p.empty and p.kind < 2]
            texts = {"equation": "ab,bc->ac", "output_shape": 2}
            given = {name: texts.get(name, 2) for name in needed} | {option: WRONG[plain.pop()]}
            with pytest.raises((TypeError, ValueError), match=option):
                kind(**given)
            found += 1
    assert found > 40


def test_an_option_of_another_kind_is_named():
    with pytest.raises(TypeError, match="LayerNormalization: epsilon must be a number, found '1e-3'"):
        L.LayerNormalization(epsilon="1e-3")
    with pytest.raises(TypeError, match=r"StringLookup: output_mode must be a text, found \['int'\]"):
        L.StringLookup(output_mode=["int"])
    with pytest.raises(TypeError, match="BatchNormalization: momentum must be a number, found True"):
        L.BatchNormalization(momentum=True)
    assert L.IntegerLookup(vocabulary_dtype=tf.int64).get_config()["vocabulary_dtype"] == "int64"
    assert L.LayerNormalization(epsilon=np.float32(0.5)).epsilon == 0.5 and L.LayerNormalization(epsilon=1).epsilon == 1.0


def test_a_subclass_may_make_an_option_a_property_that_reads_what_layers_have():
    class Named(L.Dense):
        @property
        def units(self):
            return self._units

        @units.setter
        def units(self, value):
            self._units, self.said = value, f"{self.name} has {value} of {self.dtype}"

    layer = Named(3, name="head")
    assert layer.said == "head has 3 of float32" and layer(np.ones((1, 2), "float32")).shape == (1, 3)
    assert Named.from_config(layer.get_config()).units == 3
