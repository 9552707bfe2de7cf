"""Files go both ways between this package and real Keras, for every layer and optimizer that both have.

Skipped where the packages keras and jax are not installed. The plain run reads and compares files that Keras has written.
"""

import inspect

import numpy as np
import pytest

import minikeras as tf

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

ROW, SERIES, IMAGE, VOLUME = (6,), (8, 3), (8, 8, 3), (4, 6, 5, 3)
INTEGERS = np.random.default_rng(1).integers(0, 5, (3, 4)).astype("int32")
CASES = {
    "Activation": (ROW, {"activation": "gelu"}),
    "ActivityRegularization": (ROW, {"l2": 0.1}),
    "AdaptiveAveragePooling1D": (SERIES, {"output_size": 3}),
    "AdaptiveAveragePooling2D": (IMAGE, {"output_size": (2, 3)}),
    "AdaptiveAveragePooling3D": (VOLUME, {"output_size": 2}),
    "AdaptiveMaxPooling1D": (SERIES, {"output_size": 3}),
    "AdaptiveMaxPooling2D": (IMAGE, {"output_size": (2, 3)}),
    "AdaptiveMaxPooling3D": (VOLUME, {"output_size": 2}),
    "AveragePooling1D": (SERIES, {"pool_size": 3, "strides": 2, "padding": "same"}),
    "AveragePooling2D": (IMAGE, {"pool_size": (2, 3)}),
    "AlphaDropout": (ROW, {"rate": 0.3}),
    "Bidirectional": (SERIES, {"layer": ("GRU", {"units": 2, "return_sequences": True, "reset_after": False})}),
    "BatchNormalization": (ROW, {"momentum": 0.9, "epsilon": 1e-2}),
    "CenterCrop": (IMAGE, {"height": 5, "width": 4}),
    "Conv1D": (SERIES, {"filters": 4, "kernel_size": 3, "padding": "causal", "activation": "tanh"}),
    "ConvLSTM1D": (IMAGE, {"filters": 2, "kernel_size": 3, "recurrent_dropout": 0.1}),
    "ConvLSTM2D": (VOLUME, {"filters": 2, "kernel_size": (2, 3), "padding": "same", "go_backwards": True}),
    "ConvLSTM3D": ((2, 4, 4, 3, 1), {"filters": 1, "kernel_size": 2, "return_sequences": True}),
    "Conv2D": (IMAGE, {"filters": 4, "kernel_size": 3, "strides": 2, "padding": "same", "kernel_regularizer": "l2"}),
    "Conv3D": (VOLUME, {"filters": 4, "kernel_size": 2, "dilation_rate": 2, "use_bias": False}),
    "Conv1DTranspose": (SERIES, {"filters": 4, "kernel_size": 3, "strides": 2, "output_padding": 1}),
    "Conv2DTranspose": (IMAGE, {"filters": 4, "kernel_size": 3, "strides": 2, "padding": "same", "bias_constraint": "non_neg"}),
    "Conv3DTranspose": (VOLUME, {"filters": 2, "kernel_size": 3, "output_padding": 0, "kernel_regularizer": "l1"}),
    "Cropping1D": (SERIES, {"cropping": (1, 2)}),
    "Cropping2D": (IMAGE, {"cropping": ((1, 2), (0, 3))}),
    "Cropping3D": (VOLUME, {}),
    "DepthwiseConv1D": (SERIES, {"kernel_size": 3, "depth_multiplier": 2, "depthwise_initializer": "ones"}),
    "DepthwiseConv2D": (IMAGE, {"kernel_size": 3, "depthwise_regularizer": "l2", "activation": "relu"}),
    "Dense": (ROW, {"units": 3, "activation": "relu", "kernel_constraint": "non_neg", "bias_initializer": "ones"}),
    "Discretization": (ROW, {"bin_boundaries": [-0.5, 0.0, 0.5], "output_mode": "one_hot"}),
    "Dropout": (ROW, {"rate": 0.3, "seed": 1}),
    "ELU": (ROW, {"alpha": 0.7}),
    "EinsumDense": (SERIES, {"equation": "abc,cd->abd", "output_shape": (None, 4), "bias_axes": "d", "activation": "relu"}),
    "Flatten": (IMAGE, {}),
    "GaussianDropout": (ROW, {"rate": 0.3}),
    "GaussianNoise": (ROW, {"stddev": 0.3}),
    "GlobalAveragePooling1D": (SERIES, {"keepdims": True}),
    "GlobalAveragePooling2D": (IMAGE, {}),
    "GlobalMaxPooling1D": (SERIES, {}),
    "GlobalMaxPooling2D": (IMAGE, {"keepdims": True}),
    "GlobalAveragePooling3D": (VOLUME, {}),
    "GlobalMaxPooling3D": (VOLUME, {"keepdims": True}),
    "GroupNormalization": (ROW, {"groups": 3}),
    "Identity": (ROW, {}),
    "LayerNormalization": (ROW, {"epsilon": 1e-2}),
    "LeakyReLU": (ROW, {"negative_slope": 0.2}),
    "Masking": (SERIES, {"mask_value": 1.0}),
    "AveragePooling3D": (VOLUME, {"pool_size": 2}),
    "MaxPooling1D": (SERIES, {"pool_size": 2}),
    "MaxPooling2D": (IMAGE, {"pool_size": 3, "strides": 1, "padding": "same"}),
    "MaxPooling3D": (VOLUME, {"padding": "same"}),
    "Normalization": (ROW, {"mean": [1.0] * 6, "variance": [4.0] * 6}),
    "PReLU": (SERIES, {"shared_axes": [1], "alpha_initializer": "ones"}),
    "Permute": (SERIES, {"dims": (2, 1)}),
    "RMSNormalization": (ROW, {}),
    "ReLU": (ROW, {"max_value": 1.0, "negative_slope": 0.1, "threshold": 0.2}),
    "CutMix": (IMAGE, {"factor": 0.5, "seed": 1}),
    "MixUp": (IMAGE, {"alpha": 0.3}),
    "RandomBrightness": (IMAGE, {"factor": 0.2, "value_range": (0.0, 1.0)}),
    "RandomContrast": (IMAGE, {"factor": 0.2}),
    "RandomCrop": (IMAGE, {"height": IMAGE[0], "width": IMAGE[1]}),  # others stay uncropped in Keras outside of training
    "RandomErasing": (IMAGE, {"factor": 0.5, "scale": (0.1, 0.2)}),
    "RandomFlip": (IMAGE, {"mode": "horizontal", "seed": 1}),
    "RandomRotation": (IMAGE, {"factor": 0.2, "fill_mode": "nearest"}),
    "RandomTranslation": (IMAGE, {"height_factor": 0.2, "width_factor": (-0.1, 0.3), "interpolation": "nearest"}),
    "RandomZoom": (IMAGE, {"height_factor": 0.2, "fill_mode": "constant", "fill_value": 0.5}),
    "RepeatVector": (ROW, {"n": 3}),
    "Rescaling": (ROW, {"scale": 0.5, "offset": 1.0}),
    "Resizing": (IMAGE, {"height": 5, "width": 4, "pad_to_aspect_ratio": True, "fill_value": 0.5}),
    "Reshape": (ROW, {"target_shape": (2, -1)}),
    "SeparableConv1D": (SERIES, {"filters": 4, "kernel_size": 3, "pointwise_constraint": "max_norm"}),
    "SeparableConv2D": (IMAGE, {"filters": 4, "kernel_size": 3, "strides": 2, "depth_multiplier": 2}),
    "Softmax": (SERIES, {"axis": 1}),
    "GRU": (SERIES, {"units": 3, "bias_constraint": "non_neg", "dropout": 0.1, "seed": 3}),
    "LSTM": (SERIES, {"units": 3, "return_sequences": True, "kernel_regularizer": "l2", "use_cudnn": False}),
    "RNN": (SERIES, {"cell": ("StackedRNNCells", {"cells": [("LSTMCell", {"units": 2}), ("GRUCell", {"units": 3})]})}),
    "SimpleRNN": (SERIES, {"units": 3, "activation": "relu", "recurrent_dropout": 0.1, "unroll": True}),
    "SpectralNormalization": (ROW, {"layer": ("Dense", {"units": 3, "activation": "tanh"})}),
    "SpatialDropout1D": (SERIES, {"rate": 0.2}),
    "SpatialDropout2D": (IMAGE, {"rate": 0.2}),
    "SpatialDropout3D": (VOLUME, {"rate": 0.2, "seed": 1}),
    "TimeDistributed": (IMAGE, {"layer": ("Conv1D", {"filters": 4, "kernel_size": 2})}),
    "UnitNormalization": (ROW, {}),
    "UpSampling1D": (SERIES, {"size": 3}),
    "UpSampling2D": (IMAGE, {"size": (2, 3), "interpolation": "bilinear"}),
    "UpSampling3D": (VOLUME, {"size": (1, 2, 1)}),
    "ZeroPadding1D": (SERIES, {"padding": (1, 2)}),
    "ZeroPadding2D": (IMAGE, {"padding": ((1, 2), (0, 3))}),
    "ZeroPadding3D": (VOLUME, {}),
}
"""For each layer of one input: a shape without the batch, and options; class and options of a layer within it."""

ATTENTION = {
    "AdditiveAttention": {},
    "Attention": {"use_scale": True, "score_mode": "concat", "dropout": 0.1},
    "GroupQueryAttention": {"head_dim": 3, "num_query_heads": 4, "num_key_value_heads": 2, "use_gate": True},
    "MultiHeadAttention": {"num_heads": 2, "key_dim": 3, "value_dim": 4, "use_gate": True, "dropout": 0.1},
}
"""Options of layers of a query and a value."""

MERGING = {
    "Add": {},
    "Average": {},
    "Concatenate": {"axis": 1},
    "Dot": {"axes": 1, "normalize": True},
    "Maximum": {},
    "Minimum": {},
    "Multiply": {},
    "Subtract": {},
}
LAYERS = [*CASES, *MERGING, *ATTENTION]
NOT_LAYERS = {
    *("InputLayer", "InputSpec", "Layer", "Lambda", "Wrapper", "Pipeline"),
    *("CategoryEncoding", "Embedding", "ReversibleEmbedding"),
    *("GRUCell", "LSTMCell", "SimpleRNNCell", "StackedRNNCells"),
}
NOT_LAYERS |= {"HashedCrossing", "Hashing", "IntegerLookup", "StringLookup", "TextVectorization"}  # they need TensorFlow
"""No layers of their own, or with a test of their own below."""

OPTIMIZERS = {
    "Adam": {"amsgrad": True, "clipnorm": 1.0},
    "SGD": {"momentum": 0.9, "nesterov": True},
    "RMSprop": {"centered": True, "momentum": 0.5},
    "AdamW": {"use_ema": True, "ema_momentum": 0.9},
    "Muon": {"exclude_layers": ["never"]},
}
"""Options of optimizers; all others with their defaults."""


def data(shape):
    return np.random.default_rng(0).standard_normal((3, *shape)).astype("float32")


def perturbed(model):
    """Weights other than the first ones, positive where a variance is among them."""
    rng = np.random.default_rng(5)
    model.set_weights([np.abs(rng.standard_normal(w.shape)).astype("float32") + 0.1 for w in model.get_weights()])
    return model


def model_of(library, name):
    if name in MERGING:
        first, second = library.Input((4,), name="first"), library.Input((4,), name="second")
        return library.Model([first, second], getattr(library.layers, name)(**MERGING[name])([first, second]))
    if name in ATTENTION:
        query, value = library.Input((3, 5), name="query"), library.Input((None, 5), name="value")
        layer = getattr(library.layers, name)(**ATTENTION[name])
        y = layer([query, value]) if "use_scale" in ATTENTION[name] or not ATTENTION[name] else layer(query, value=value)
        return library.Model([query, value], y)
    shape, options = CASES[name]
    options = {key: within(library, value) for key, value in options.items()}
    return library.Sequential([library.Input(shape), getattr(library.layers, name)(**options)])


def within(library, value):
    """An option; class and options of a layer, or a list of such, as layers."""
    if isinstance(value, list):
        return [within(library, one) for one in value]
    if isinstance(value, tuple) and isinstance(value[0], str):
        return getattr(library.layers, value[0])(**{key: within(library, one) for key, one in value[1].items()})
    return value


def inputs_of(name):
    if name in ATTENTION:
        return [data((3, 5)), data((6, 5)) + 1.0]
    return [data((4,)), data((4,)) + 1.0] if name in MERGING else data(CASES[name][0])


@pytest.mark.parametrize("name", LAYERS)
def test_a_model_with_this_layer_predicts_the_same_in_keras(real_keras, tmp_path, name):
    model = perturbed(model_of(tf.keras, name))
    model.save(tmp_path / "ours.keras")
    found = real_keras.models.load_model(tmp_path / "ours.keras")
    x = inputs_of(name)
    np.testing.assert_allclose(found.predict(x, verbose=0), model.predict(x, verbose=0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_a_model_of_keras_with_this_layer_predicts_the_same_here(real_keras, tmp_path, name):
    theirs = perturbed(model_of(real_keras, name))
    theirs.save(tmp_path / "theirs.keras")
    theirs.save_weights(tmp_path / "theirs.weights.h5")
    model = tf.keras.models.load_model(tmp_path / "theirs.keras")
    x = inputs_of(name)
    expected = theirs.predict(x, verbose=0)
    np.testing.assert_allclose(model.predict(x, verbose=0), expected, rtol=1e-5, atol=1e-5)
    fresh = model_of(tf.keras, name)
    fresh.load_weights(tmp_path / "theirs.weights.h5")
    np.testing.assert_allclose(fresh.predict(x, verbose=0), expected, rtol=1e-5, atol=1e-5)


def test_every_layer_that_both_have_is_tried(real_keras):
    both = {
        getattr(real_keras.layers, name).__name__
        for name in dir(real_keras.layers)
        if inspect.isclass(getattr(real_keras.layers, name)) and inspect.isclass(getattr(tf.keras.layers, name, None))
    }
    assert both - set(CASES) - set(MERGING) - set(ATTENTION) - NOT_LAYERS - {"GroupedQueryAttention"} == set()


@pytest.mark.parametrize(
    ("name", "options"), [("Embedding", {"input_dim": 5, "output_dim": 2}), ("CategoryEncoding", {"num_tokens": 5})]
)
def test_layers_of_integers_go_both_ways(real_keras, tmp_path, name, options):
    def made(library):
        layer = getattr(library.layers, name)(**options)
        return perturbed(library.Sequential([library.Input((4,), dtype="int32"), layer]))

    for source, target in ((tf.keras, real_keras), (real_keras, tf.keras)):
        model = made(source)
        model.save(tmp_path / "m.keras")
        found = target.models.load_model(tmp_path / "m.keras").predict(INTEGERS, verbose=0)
        np.testing.assert_allclose(found, model.predict(INTEGERS, verbose=0), rtol=1e-6)


def test_an_embedding_and_its_way_back_go_both_ways(real_keras, tmp_path):
    def made(library):
        ids = library.Input((4,), dtype="int32")
        layer = library.layers.ReversibleEmbedding(5, 2, tie_weights=False)
        return perturbed(library.Model(ids, layer(layer(ids), reverse=True)))

    for source, target in ((tf.keras, real_keras), (real_keras, tf.keras)):
        model = made(source)
        model.save(tmp_path / "m.keras")
        found = target.models.load_model(tmp_path / "m.keras").predict(INTEGERS, verbose=0)
        np.testing.assert_allclose(found, model.predict(INTEGERS, verbose=0), rtol=1e-6)


def branched(library):
    """Shared layers, several inputs and outputs, a model within a model, frozen parts."""
    shared = library.layers.Dense(4, activation="relu", name="shared")
    inner = library.Sequential(
        [library.Input((4,)), library.layers.Dense(4), library.layers.BatchNormalization()], name="inner"
    )
    first, second = library.Input((3,), name="first"), library.Input((3,), name="second")
    a, b = shared(first), shared(second)
    joined = library.layers.Concatenate()([inner(a), b])
    frozen = library.layers.Dense(2, name="frozen", trainable=False)(joined)
    return library.Model(
        {"first": first, "second": second}, {"sum": library.layers.Add()([a, b]), "out": frozen}, name="branched"
    )


def test_models_with_shared_layers_and_several_inputs_go_both_ways(real_keras, tmp_path):
    x = {"first": data((3,)), "second": data((3,)) + 1.0}
    for source, target in ((tf.keras, real_keras), (real_keras, tf.keras)):
        model = perturbed(branched(source))
        model.save(tmp_path / "m.keras")
        loaded = target.models.load_model(tmp_path / "m.keras")
        found, expected = loaded.predict(x, verbose=0), model.predict(x, verbose=0)
        assert set(found) == set(expected)
        for name in expected:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-6)
        assert not loaded.get_layer("frozen").trainable and loaded.get_layer("inner").trainable


def names_of_optimizers():
    return [
        name
        for name, value in sorted(vars(tf.keras.optimizers).items())
        if inspect.isclass(value)
        and issubclass(value, tf.keras.optimizers.Optimizer)
        and value is not tf.keras.optimizers.Optimizer
        and name != "MultiOptimizer"  # in tests/keras/test_multi_optimizer.py
    ]


def compiled(library, name):
    model = library.Sequential([library.Input((3,)), library.layers.Dense(4, activation="relu"), library.layers.Dense(1)])
    options = OPTIMIZERS.get(name, {})
    if name == "LossScaleOptimizer":
        optimizer = library.optimizers.LossScaleOptimizer(library.optimizers.Adam(0.01))
    else:
        optimizer = getattr(library.optimizers, name)(learning_rate=0.01, **options)
    model.compile(optimizer, "mse", metrics=["mae"])
    optimizer.build(model.trainable_variables)
    return model


def filled(model):
    """Different numbers in every Variable of the optimizer; whole ones, since Keras keeps some of them as integers."""
    rng = np.random.default_rng(2)
    for variable in model.optimizer.variables:
        values = np.ceil(np.abs(rng.standard_normal(variable.shape)) * 3 + 1)
        variable.assign(np.asarray(values, str(getattr(variable.dtype, "name", variable.dtype))))
    return model


@pytest.mark.parametrize("name", names_of_optimizers())
def test_the_state_of_an_optimizer_goes_both_ways(real_keras, tmp_path, name):
    if not hasattr(real_keras.optimizers, name):
        pytest.skip("Keras has no such optimizer")
    for source, target in ((tf.keras, real_keras), (real_keras, tf.keras)):
        model = filled(compiled(source, name))
        model.save(tmp_path / "m.keras")
        found = target.models.load_model(tmp_path / "m.keras").optimizer
        values = [np.asarray(variable.numpy()) for variable in model.optimizer.variables]
        assert type(found).__name__ == name and len(found.variables) == len(values)
        for variable, expected in zip(found.variables, values, strict=True):
            np.testing.assert_allclose(np.asarray(variable.numpy()), expected, rtol=1e-6)


def test_schedules_losses_and_metrics_are_read_by_keras(real_keras, tmp_path):
    for source, target in ((tf.keras, real_keras), (real_keras, tf.keras)):
        model = source.Sequential([source.Input((3,)), source.layers.Dense(2, activation="softmax")])
        schedule = source.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
        loss = source.losses.SparseCategoricalCrossentropy(from_logits=False)
        model.compile(
            source.optimizers.SGD(schedule), loss, metrics=["accuracy", source.metrics.SparseTopKCategoricalAccuracy(k=1)]
        )
        model.save(tmp_path / "m.keras")
        loaded = target.models.load_model(tmp_path / "m.keras")
        x, y = data((3,)), np.array([0, 1, 1])
        found, expected = (one.evaluate(x, y, verbose=0, return_dict=True) for one in (loaded, model))
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, rtol=1e-5)


def test_legacy_files_of_keras_load(real_keras, tmp_path):
    theirs = perturbed(branched(real_keras))
    theirs.compile("adam", {"sum": "mse", "out": "mse"})
    theirs.save(tmp_path / "m.h5")
    x = {"first": data((3,)), "second": data((3,)) + 1.0}
    model = tf.keras.models.load_model(tmp_path / "m.h5")
    for name, expected in theirs.predict(x, verbose=0).items():
        np.testing.assert_allclose(model.predict(x, verbose=0)[name], expected, rtol=1e-5, atol=1e-6)
    theirs.save_weights(tmp_path / "m.weights.h5")
    model.set_weights([np.zeros_like(w) for w in model.get_weights()])
    model.load_weights(tmp_path / "m.h5")
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), theirs.get_weights(), strict=True))
