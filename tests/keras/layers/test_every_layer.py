"""Laws that every layer obeys, held to each row of the table."""

import json

import numpy as np
import pytest
from in_one_test import in_one_test
from layer_table import ROWS
from slow import mostly_slow

import minikeras as tf
from minikeras import nest

L = tf.keras.layers
WITHOUT_ROW = {
    *("Layer", "InputSpec", "InputLayer", "Wrapper", "Lambda", "Pipeline"),
    *("MultiHeadAttention", "GroupedQueryAttention"),  # several arguments: test_attention.py
    *("SimpleRNNCell", "GRUCell", "LSTMCell", "StackedRNNCells"),  # they take states, too: test_recurrent.py
    *("CategoryEncoding", "Discretization", "TextVectorization"),  # of integers and texts
    *("HashedCrossing", "Hashing", "IntegerLookup", "StringLookup"),
}
each = in_one_test(row=ROWS)


def test_every_layer_has_a_row():
    names = {value.__name__ for name in L.__all__ if isinstance(value := getattr(L, name), type)}
    assert names - WITHOUT_ROW == {row.name for row in ROWS}


def test_every_layer_of_the_package_is_described_and_what_is_derived_from_it_only_if_it_says_so():
    classes = {value for name in L.__all__ if isinstance(value := getattr(L, name), type) and issubclass(value, L.Layer)}
    classes |= {tf.keras.Model, tf.keras.Sequential, tf.keras.utils.FeatureSpace}
    assert [kind.__name__ for kind in classes if not kind.is_described] == []
    for kind in (L.Flatten, L.Layer, tf.keras.Model):
        silent, saying = type("Silent", (kind,), {}), type("Saying", (kind,), {}, described=True, makes_nothing=True)
        assert (silent.is_described, silent._makes_nothing) == (False, False)
        assert (saying.is_described, saying._makes_nothing) == (True, True)


def test_a_users_described_layer_takes_numpys_numbers_as_the_packages_do():
    class Scale(L.Layer, described=True, makes_nothing=True):
        def __init__(self, factor=1.0, **options):
            super().__init__(**options)
            self.factor = factor

        def call(self, x):
            return self.factor * x

    layer = Scale(np.float32(0.5), name="scale")
    assert layer.built
    assert type(layer.factor) is float
    assert layer.get_config() == {"name": "scale", "trainable": True, "dtype": "float32", "factor": 0.5}
    assert Scale.from_config(layer.get_config()).factor == 0.5


@each
def test_a_configuration_makes_the_same_layer_again(row):
    layer = row.make(name="given", trainable=False, dtype="float64")
    x = row.inputs()
    y = layer(x)
    config = json.loads(json.dumps(layer.get_config()))
    twin = type(layer).from_config(config)
    assert json.loads(json.dumps(twin.get_config())) == config
    assert (twin.name, twin.dtype) == ("given", "float64")
    assert not twin.trainable or not layer.weights  # Keras's SpatialDropout1D, which has none, takes no `trainable`
    twin.build_from_config(json.loads(json.dumps(layer.get_build_config())))
    assert [(w.path, w.shape) for w in twin.weights] == [(w.path, w.shape) for w in layer.weights]
    twin.set_weights(layer.get_weights())
    np.testing.assert_array_equal(twin(x).numpy(), y.numpy())


@each
def test_what_a_description_says_is_said_again_by_the_layer_that_it_makes(row):
    layer = row.make()
    layer(row.inputs("float32"))
    described = json.loads(json.dumps(tf.keras.saving.serialize_keras_object(layer)))
    twin = tf.keras.saving.deserialize_keras_object(described)
    assert json.loads(json.dumps(tf.keras.saving.serialize_keras_object(twin))) == described


@each
def test_the_shape_of_the_output_is_foretold(row):
    layer = row.make()
    y = layer(row.inputs("float32"))
    shapes = [list(s) for s in row.shapes] if isinstance(row.shapes, list) else row.shapes
    assert tuple(layer.compute_output_shape(shapes)) == y.shape
    unknown = [(None, *s[1:]) for s in row.shapes] if isinstance(row.shapes, list) else (None, *row.shapes[1:])
    assert tuple(row.make().compute_output_shape(unknown)) == (None, *y.shape[1:])


@each
@pytest.mark.parametrize("most", mostly_slow([12, 1000], 12))
def test_gradients_of_inputs_and_weights_are_the_numerical_ones(row, most):
    layer, inputs = row.make(dtype="float64"), row.inputs()
    layer(inputs)
    if isinstance(inputs, list):
        check = tf.test.check_gradients(lambda *xs: layer(list(xs), training=False), inputs, max_elements=most)
    elif inputs.dtype.is_floating or layer.trainable_variables:
        has_weights = bool(layer.trainable_variables)  # which are checked of a layer, not of a function
        call = layer if has_weights else lambda x: layer(x, training=False)  # random images: test_augmentation.py
        check = tf.test.check_gradients(call, [inputs], max_elements=most)
    assert check.first < 1e-7 and check.second < 1e-6


@each
def test_float32_is_float64_to_five_digits(row):
    wide, narrow = row.make(name="same", dtype="float64"), row.make(name="same")
    expected, y = wide(row.inputs()), None
    narrow.build_from_config(wide.get_build_config())
    narrow.set_weights([weight.astype("float32") if weight.dtype.kind == "f" else weight for weight in wide.get_weights()])
    y = narrow(row.inputs("float32"))
    assert y.dtype == tf.float32 and expected.dtype == tf.float64
    np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=2e-5, atol=2e-5)


@each
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_a_mixed_policy_computes_in_half_precision_over_weights_in_single(row, policy):
    if policy == "mixed_bfloat16":
        pytest.importorskip("ml_dtypes")
    layer, single = row.make(name="same", dtype=policy), row.make(name="same")
    x = row.inputs("float32")
    expected = single(x)
    layer.build_from_config(single.get_build_config())
    layer.set_weights(single.get_weights())
    with tf.GradientTape() as tape:
        y = layer(x)
        total = tf.reduce_sum(tf.cast(y, "float32"))
    assert y.dtype == policy.removeprefix("mixed_")
    assert all(weight.dtype in (tf.float32, tf.int32) for weight in layer.weights)
    scale = np.abs(expected.numpy()).max()
    np.testing.assert_allclose(tf.cast(y, "float32").numpy() / scale, expected.numpy() / scale, atol=0.05, rtol=0)
    for weight, gradient in zip(layer.trainable_weights, tape.gradient(total, layer.trainable_weights), strict=True):
        assert tf.convert_to_tensor(gradient).dtype == weight.dtype


@each
def test_a_layer_runs_on_every_device(row, device):
    layer = row.make()
    x = nest.map_structure(lambda x: tf.constant(x.numpy()), row.inputs("float32"))
    with tf.GradientTape() as tape:
        y = layer(x, training=True)
        loss = tf.reduce_sum(y * y)
    tape.gradient(loss, layer.trainable_weights)
    assert type(y.array) is type(tf.constant([1.0]).array)


@each
def test_a_mask_is_passed_on_or_used_or_its_loss_is_told(row):
    layer = row.make()
    inputs = row.inputs("float32")
    for x in nest.flatten(inputs):
        shape = x.shape[:2] if x.ndim > 2 else x.shape[:1]
        x._keras_mask = tf.constant(np.arange(np.prod(shape)).reshape(shape) % 3 > 0)
    if row.passes_mask is None:
        with pytest.warns(UserWarning, match=rf"Layer '{layer.name}' .* carries a mask, but it does not support masks"):
            layer(inputs)
        return
    y = layer(inputs)
    assert (getattr(y, "_keras_mask", None) is not None) == row.passes_mask


@each
def test_an_input_of_another_rank_or_width_is_refused_with_the_layer_s_name(row):
    layer = row.make(name="known")
    x = row.inputs("float32")
    layer(x)
    if layer.input_spec is None:
        return
    spec = layer.input_spec
    if spec.ndim is None and spec.min_ndim is None and not spec.axes:
        return
    if spec.ndim is not None or spec.min_ndim is not None:
        wrong = tf.ones([2] * (x.ndim + 1 if spec.ndim is not None else spec.min_ndim - 1))
    else:
        wrong = tf.ones([2 if size is None else size + 1 for size in map(spec.axes.get, range(-x.ndim, 0))])
    with pytest.raises(tf.errors.ShapeError, match=r"Layer 'known' \(known\), an? .* expected .* found inputs of shape"):
        layer(wrong)
