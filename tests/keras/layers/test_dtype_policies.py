"""Policies: what a layer computes in, and what it keeps."""

import numpy as np
import pytest

import minikeras as tf

L, mixed = tf.keras.layers, tf.keras.mixed_precision


@pytest.fixture
def half():
    """mixed_float16 for all layers of one test."""
    mixed.set_global_policy("mixed_float16")
    yield
    mixed.set_global_policy(None)


@pytest.mark.parametrize(
    ("name", "compute", "kept"),
    [
        ("float32", "float32", "float32"),
        ("float64", "float64", "float64"),
        ("float16", "float16", "float16"),
        ("int32", "int32", "int32"),
        ("mixed_float16", "float16", "float32"),
    ],
)
def test_a_policy_says_what_is_computed_in_and_what_is_kept(name, compute, kept):
    policy = mixed.DTypePolicy(name)
    assert (policy.name, policy.compute_dtype, policy.variable_dtype) == (name, compute, kept)
    assert policy == mixed.Policy.from_config(policy.get_config()) and hash(policy) == hash(mixed.Policy(name))
    assert repr(policy) == f'<DTypePolicy "{name}">' and policy != name


@pytest.mark.parametrize("name", ["mixed_float32", "quarter", 3, "mixed_int8", 1.5])
def test_what_is_no_policy_is_refused(name):
    with pytest.raises(ValueError if isinstance(name, str) else TypeError, match=f"Cannot convert {name!r} to a DTypePolicy"):
        mixed.DTypePolicy(name)


@pytest.mark.parametrize("name", ["float16", "mixed_bfloat16", "float64"])
def test_a_policy_without_a_name_is_the_global_one(name):
    mixed.set_global_policy(name)
    try:
        assert mixed.DTypePolicy() == mixed.DTypePolicy(None) == mixed.DTypePolicy(name)
    finally:
        mixed.set_global_policy(None)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_a_policy_may_be_given_to_losses_and_metrics_as_to_layers(half):
    policy = mixed.DTypePolicy(f"mixed_{half}")
    assert tf.keras.losses.MeanSquaredError(dtype=policy)([[1.0]], [[0.5]]).dtype == half
    metric = tf.keras.metrics.Mean(dtype=policy)
    metric.update_state([1.0, 2.0])
    assert metric.result().dtype == metric.dtype == half
    assert type(metric).from_config(metric.get_config()).dtype == half


def test_the_global_policy_is_the_default_dtype_until_it_is_set(half):
    assert mixed.global_policy().name == mixed.dtype_policy().name == "mixed_float16" == L.Dense(1).dtype_policy.name
    mixed.set_global_policy(None)
    assert mixed.global_policy().name == "float32" == L.Dense(1).dtype_policy.name
    mixed.set_dtype_policy(mixed.Policy("mixed_float16"))


def test_a_layer_keeps_its_policy_in_its_configuration(half):
    layer = L.Dense(2)
    config = layer.get_config()
    mixed.set_global_policy(None)
    assert (layer.dtype, layer.compute_dtype, layer.variable_dtype) == ("float32", "float16", "float32")
    assert L.Dense.from_config(config).dtype_policy == layer.dtype_policy
    described = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "mixed_float16"}, "registered_name": None}
    assert L.Dense(2, dtype=described).compute_dtype == "float16"
    mixed.set_global_policy("mixed_float16")


def test_weights_are_cast_as_they_are_read_within_calls_only(half):
    class Reader(L.Layer):
        def build(self, input_shape):
            self.a = self.add_weight((), "ones", name="a")
            self.b = self.add_weight((), "ones", autocast=False, name="b")
            self.count = self.add_weight((), "zeros", dtype="int32", name="count")

        def call(self, x):
            self.seen = [w.read_value().dtype.name for w in (self.a, self.b, self.count)]
            self.kept = tf.keras.regularizers.L2(1.0)(self.a).dtype.name
            return x * self.a

    layer = Reader()
    assert layer(np.ones(2)).dtype == tf.float16
    assert layer.seen == ["float16", "float32", "int32"]
    assert layer.a.read_value().dtype == tf.float32 == layer.a.read_value().dtype and layer.a.dtype == tf.float32
    plain = Reader(autocast=False, dtype="mixed_float16")
    with pytest.raises(TypeError, match="float"):
        plain(np.ones(2, "float16"))
    assert plain.seen == ["float32", "float32", "int32"]


def test_gradients_and_updates_of_half_precision_are_in_single(half):
    layer = L.Dense(1, kernel_initializer="ones", kernel_regularizer="l2", activity_regularizer="l2")
    x = np.ones((4, 3), "float32")
    with tf.GradientTape() as tape:
        loss = tf.cast(tf.reduce_sum(layer(x)), "float32") + tf.add_n(layer.losses)
    assert [loss.dtype for loss in layer.losses] == [tf.float32, tf.float32]
    gradients = tape.gradient(loss, layer.trainable_weights)
    assert [gradient.dtype for gradient in gradients] == [tf.float32, tf.float32]
    layer.kernel.assign_sub(gradients[0] * 1e-6)  # below what float16 could tell from 1
    assert 0 < np.abs(layer.kernel.numpy() - 1.0).max() < 1e-4


def test_statistics_are_taken_in_single_precision(half):
    layer = L.BatchNormalization(momentum=0.0)
    y = layer(np.full((4, 1), 300.0) + np.array([[-1.0], [1.0], [-1.0], [1.0]]), training=True)
    assert y.dtype == tf.float16 and layer.moving_variance.dtype == tf.float32
    np.testing.assert_allclose(layer.moving_variance.numpy(), [1.0], rtol=1e-3)
    large = L.LayerNormalization()(np.array([[30000.0, -30000.0]]))
    np.testing.assert_allclose(large.numpy(), [[1.0, -1.0]])


def test_large_integers_reach_a_table_unharmed(half):
    assert L.Embedding(5000, 1, weights=np.arange(5000.0)[:, None])(np.array([[4097.0]])).numpy() == np.float16(4097.0)


def test_a_copy_of_a_layer_of_half_precision_still_casts(half):
    import copy
    import pickle

    layer = L.Dense(2)
    y = layer(np.ones((1, 3)))
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert np.array_equal(twin(np.ones((1, 3))).numpy(), y.numpy()) and twin(np.ones((1, 3))).dtype == tf.float16


@pytest.mark.parametrize("name", ["bfloat16", "mixed_bfloat16"])
def test_a_layer_of_bfloat16_keeps_its_dtypes_for_values_and_for_symbols(name):
    dense = L.Dense(4, activity_regularizer="l2", dtype=name)
    assert dense(tf.keras.Input((3,))).dtype == dense(tf.ones([2, 3])).dtype == tf.bfloat16
    assert {weight.dtype.name for weight in dense.weights} == {dense.variable_dtype}
    kept = L.Dropout(0.5, seed=1, dtype=name)(tf.ones([50, 2]), training=True)
    assert kept.dtype == tf.bfloat16 and sorted(set(tf.cast(kept, "float32").numpy().ravel())) == [0.0, 2.0]


def test_dropout_of_bfloat16_in_a_functional_model_has_a_gradient():
    model = tf.keras.Sequential([L.Input((3,)), L.Dense(4, dtype="bfloat16"), L.Dropout(0.5, dtype="bfloat16")])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.cast(model(tf.ones([2, 3]), training=True), "float32") ** 2)
    assert [g.dtype for g in tape.gradient(loss, model.trainable_variables)] == [tf.bfloat16, tf.bfloat16]


@pytest.mark.parametrize("kinds", [("int64", "float32"), ("float32", "int32"), ("bool", "uint8"), ("int32", "int64")])
@pytest.mark.parametrize("layer", ["Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate", "Dot"])
def test_merged_inputs_meet_in_one_dtype(layer, kinds, tmp_path):
    a, b = np.array([[1, 0]], kinds[0]), np.array([[3, 2]], kinds[1])
    inputs = [tf.keras.Input((2,), dtype=kind) for kind in kinds]
    merge = getattr(L, layer)(**({"axes": 1} if layer == "Dot" else {}))
    model = tf.keras.Model(inputs, merge(inputs))
    y, kind = model([a, b]), tf.keras.backend.result_type(*kinds)
    assert y.dtype == model.outputs[0].dtype == ("float32" if layer == "Average" else kind)
    np.testing.assert_array_equal(y, merge([tf.cast(a, kind), tf.cast(b, kind)]))
    model.save(tmp_path / "m.keras")
    again = tf.keras.models.load_model(tmp_path / "m.keras")
    assert again.outputs[0].dtype == y.dtype
    np.testing.assert_array_equal(again([a, b]), y)


def test_masks_stay_with_inputs_that_meet_in_another_dtype():
    embedded = L.Embedding(3, 2, mask_zero=True)(np.array([[1, 0]]))
    steps = L.Masking()(tf.constant([[[0, 0], [1, 1]]]))
    assert L.Add()([steps, embedded])._keras_mask.numpy().tolist() == [[True, True]]


def test_a_map_of_policies_is_looked_up_by_the_path_of_the_layer():
    policies = tf.keras.dtype_policies.DTypePolicyMap("float32", {"head": "mixed_float16", "body.*": "float64"})
    made = [L.Dense(1, name=name, dtype=policies) for name in ("head", "body_1", "tail")]
    assert [layer.dtype_policy.name for layer in made] == ["mixed_float16", "float64", "float32"]
    assert [layer(np.ones((1, 2))).dtype for layer in made] == ["float16", "float64", "float32"]
    assert L.Dense.from_config(made[0].get_config()).dtype_policy == made[0].dtype_policy
    late = L.Dense(1, name="head")
    late.dtype_policy = policies
    assert late.compute_dtype == "float16"
    with pytest.raises(ValueError, match="several patterns match 'head'"):
        L.Dense(1, name="head", dtype=tf.keras.dtype_policies.DTypePolicyMap(policy_map={"h.*": "float16", ".*d": "float64"}))
