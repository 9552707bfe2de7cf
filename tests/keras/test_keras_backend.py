"""keras.backend, keras.config, keras.dtype_policies, keras.Variable and the other small names of Keras."""

import copy
import pickle

import numpy as np
import pytest
from in_one_test import in_one_test

import minikeras as tf
from minikeras.keras.config import _settings

keras, backend, config = tf.keras, tf.keras.backend, tf.keras.config


@pytest.fixture
def settings():
    before = dict(_settings)
    yield
    _settings.clear()
    _settings.update(before)


# backend -----------------------------------------------------------------------------------------------------------------


@in_one_test(name=backend.__all__)
def test_every_name_of_the_backend_is_there(name):
    assert callable(getattr(backend, name))


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(None, "float32"), (float, "float32"), (int, "int32"), (bool, "bool"), ("int", "int32"), (tf.float16, "float16")],
)
def test_a_dtype_has_a_name(dtype, name):
    assert backend.standardize_dtype(dtype) == name and backend.standardize_dtype(np.dtype("uint8")) == "uint8"


def test_kinds_of_dtypes_are_told_apart():
    floats = [name for name in ("float16", "bfloat16", "float64", "int8", "bool", "complex64") if backend.is_float_dtype(name)]
    assert floats == ["float16", "bfloat16", "float64"]
    assert backend.is_int_dtype("uint16") and not backend.is_int_dtype("bool") and not backend.is_int_dtype("float32")
    assert backend.result_type("int32", "float16") == "float16"


def test_values_are_read_and_set():
    v = backend.variable([1, 2], name="v", constraint=keras.constraints.NonNeg())
    assert v.dtype == "float32" and v.constraint is not None
    backend.set_value(v, [3, 4])
    backend.batch_set_value([(v, np.array([5.0, 6.0]))])
    assert backend.get_value(v).tolist() == backend.eval(v).tolist() == [5.0, 6.0] and backend.get_value(3) == 3
    backend.update(v, tf.constant([1.0, 1.0]))
    backend.update_add(v, [1.0, 1.0])
    backend.update_sub(v, [0.5, 0.5])
    assert backend.batch_get_value([v])[0].tolist() == [1.5, 1.5]
    assert backend.constant(2, shape=(2,)).numpy().tolist() == [2.0, 2.0] and backend.constant(2, "int32").dtype == "int32"


def test_shapes_of_tensors_and_symbols():
    x = keras.Input((3, 4))
    assert backend.int_shape(x) == (None, 3, 4) and backend.ndim(x) == 3 and backend.dtype(x) == "float32"
    assert backend.count_params(tf.ones([2, 3])) == 6
    assert backend.is_keras_tensor(x) and not backend.is_keras_tensor(np.ones(2))


def test_names_of_keras_2_are_functions_of_keras_ops():
    assert backend.pow(2.0, 3.0).numpy() == 8.0 and backend.relu(tf.constant(-1.0)).numpy() == 0.0
    assert backend.random_uniform((2,), seed=1).shape == (2,) and backend.cast_to_floatx([1, 2]).dtype == np.float32
    assert backend.cast_to_floatx(tf.constant([1])).dtype == "float32"
    x = tf.constant([[1.0, 2.0, 3.0], [6.0, 5.0, 4.0]])
    assert backend.argmax(x).numpy().tolist() == [2, 0] and backend.argmax(x, 0).numpy().tolist() == [1, 1, 1]
    assert backend.concatenate([x, x]).shape == (2, 6) and backend.concatenate([x, x], axis=0).shape == (4, 3)
    assert backend.gather(x, [1]).numpy().tolist() == [[6.0, 5.0, 4.0]] and backend.expand_dims(x).shape == (2, 3, 1)
    assert backend.cumsum(x).numpy()[1].tolist() == [7.0, 7.0, 7.0] and backend.reverse(x, 1).numpy()[0, 0] == 3.0
    assert backend.repeat_elements(x, 2, 1).shape == (2, 6) and backend.permute_dimensions(x, (1, 0)).shape == (3, 2)
    assert backend.batch_flatten(tf.ones([2, 3, 4])).shape == (2, 12) and backend.flatten(x).shape == (6,)
    assert backend.one_hot([1], 3).numpy().tolist() == [[0.0, 1.0, 0.0]]
    losses = (
        backend.categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]),
        backend.sparse_categorical_crossentropy([1], [[0.5, 0.5]]),
    )
    assert [one.numpy() for one in losses] == [pytest.approx([0.6931], abs=1e-4)] * 2
    assert backend.binary_crossentropy([[1.0, 0.0]], [[0.5, 0.5]]).shape == (1, 2)
    assert float(backend.mean(x)) == 3.5 and backend.sum(x, axis=1, keepdims=True).shape == (2, 1)


def test_what_is_gone_says_what_to_use():
    with pytest.raises(AttributeError, match="the argument `training`"):
        backend.learning_phase()
    with pytest.raises(AttributeError, match=r"Use keras\.ops"):
        backend.resize_volumes()


def test_numbers_of_a_prefix_begin_anew_with_the_session():
    assert [backend.get_uid("mine") for _ in range(2)] == [1, 2]
    backend.clear_session()
    assert backend.get_uid("mine") == 1


# config ------------------------------------------------------------------------------------------------------------------


def line():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


X = np.ones((8, 1), "float32")


def test_a_limit_of_epochs_and_steps_holds_for_every_fit(settings):
    config.set_max_epochs(2)
    config.set_max_steps_per_epoch(3)
    model = line()
    with pytest.warns(UserWarning, match="Limiting") as said:
        history = model.fit(X, X, batch_size=1, epochs=9, verbose=0)
    assert len(history.epoch) == 2 and int(model.optimizer.iterations) == 6 and len(said) == 2
    with pytest.warns(UserWarning, match="Limiting steps_per_epoch to 3"):
        assert len(model.predict(X, batch_size=1, verbose=0)) == 3
    model.fit(X, X, batch_size=4, epochs=2, verbose=0)
    assert (config.max_epochs(), config.max_steps_per_epoch()) == (2, 3)
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match="expected an int of at least 1 or None"):
            config.set_max_epochs(wrong)


def test_layers_take_the_data_format_of_the_settings(settings):
    config.set_image_data_format("channels_first")
    assert keras.layers.Conv2D(2, 3).data_format == keras.layers.Flatten().data_format == "channels_first"
    assert keras.layers.Conv2D(2, 3, data_format="channels_last").data_format == "channels_last"
    with pytest.raises(ValueError, match="expected 'channels_last' or 'channels_first'"):
        config.set_image_data_format("last")


def test_code_in_files_is_never_let_run():
    with pytest.raises(NotImplementedError, match="code in a file never runs here"):
        config.enable_unsafe_deserialization()
    config.disable_traceback_filtering()
    assert config.is_interactive_logging_enabled is keras.utils.is_interactive_logging_enabled
    assert not config.is_traceback_filtering_enabled() and config.backend() == "tensorflow"
    with pytest.raises(AttributeError, match="There is one backend"):
        config.set_backend("jax")


def test_the_policy_of_the_settings_is_that_of_mixed_precision():
    config.set_dtype_policy("mixed_float16")
    try:
        assert config.dtype_policy() == keras.mixed_precision.global_policy() == keras.DTypePolicy("mixed_float16")
    finally:
        config.set_dtype_policy(None)


# dtype_policies ----------------------------------------------------------------------------------------------------------


def test_policies_are_found_by_path_pattern_and_default():
    policies = keras.dtype_policies.DTypePolicyMap("float32", {"a/b": "float64"})
    assert repr(policies) == "<DTypePolicyMap default_policy=float32, mapping=[('a/b', 'float64')]>"
    policies["a/.*"] = keras.DTypePolicy("float16")
    assert [policies[key].name for key in ("a/b", "a/c", "x")] == ["float64", "float16", "float32"]
    assert "a/c" not in policies and len(policies) == 2
    with pytest.raises(ValueError, match="expected a new path or pattern"):
        policies["a/b"] = "float32"
    with pytest.raises(TypeError, match="expected a dict"):
        keras.dtype_policies.DTypePolicyMap(policy_map=["a"])


def test_policies_and_maps_of_them_are_written_and_read():
    written = keras.dtype_policies.serialize(keras.FloatDTypePolicy("mixed_bfloat16"))
    assert written["class_name"] == "DTypePolicy" and keras.dtype_policies.deserialize(written).name == "mixed_bfloat16"
    assert keras.dtype_policies.deserialize(written | {"class_name": "FloatDTypePolicy"}).name == "mixed_bfloat16"
    policies = keras.dtype_policies.DTypePolicyMap(None, {"a/.*": "float16"})
    again = keras.dtype_policies.deserialize(keras.dtype_policies.serialize(policies))
    assert again["a/b"].name == "float16" and again.default_policy.name == "float32"
    with pytest.raises(ValueError, match="could take too long to match"):
        keras.dtype_policies.DTypePolicyMap.from_config({"default_policy": None, "policy_map": {"(a+)+": "float16"}})


# Variable, name_scope, remat ---------------------------------------------------------------------------------------------


def test_a_variable_is_made_of_a_value_or_an_initializer():
    assert keras.Variable([1, 2]).dtype == "int32" and keras.Variable(np.ones(2)).dtype == "float64"
    assert keras.Variable("ones", shape=(2,)).numpy().tolist() == [1.0, 1.0]
    assert keras.Variable(keras.initializers.Constant(3), (1,), "int32").numpy().tolist() == [3]
    assert keras.Variable(tf.constant(1.5), dtype="float64").dtype == "float64"
    with pytest.raises(ValueError, match="needs a shape"):
        keras.Variable("ones")
    with pytest.raises(ValueError, match="name must be text without '/'"):
        keras.Variable(1.0, name="a/b")


def test_variables_have_the_path_of_their_scopes():
    with keras.name_scope("a"), keras.name_scope("b"):
        inner = keras.Variable(1.0, name="v")
    assert (inner.path, keras.Variable(0.0, name="u").path) == ("a/b/v", "u")
    for twin in (copy.deepcopy(inner), pickle.loads(pickle.dumps(inner))):
        assert (twin.path, twin.name, twin.numpy(), twin.trainable) == ("a/b/v", "v", 1.0, True)


def trained():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1), keras.layers.Dropout(0.5)], name="net")
    model.compile(keras.optimizers.Nadam(name="own", use_ema=True), "mse", metrics=[keras.metrics.AUC(name="area")])
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    return model


def test_the_value_of_what_keras_makes_is_a_tensor():
    model = trained()
    held = [*model.variables, *model.optimizer.variables, *(one for metric in model.metrics for one in metric.variables)]
    for one in (*held, keras.Variable([1.0]), keras.random.SeedGenerator(1).state):
        assert isinstance(one.value, tf.Tensor) and type(one.value).__name__ == "EagerTensor"
        for read in (one.value, tf.function(lambda one=one: one.value)()):
            assert np.array_equal(read, one.numpy()) and read.dtype == one.dtype
    before = model.layers[0].bias.value
    model.layers[0].bias.assign_add([1.0])
    assert before.numpy() != model.layers[0].bias.value.numpy()
    assert tf.Variable(2.0).value().numpy() == 2.0  # TensorFlow's method
    step = tf.function(lambda values: [2.0 * value for value in values], jit_compile=True)
    assert np.array_equal(step([one.value for one in model.trainable_variables])[0], 2.0 * model.layers[0].kernel.value)


def test_the_value_of_a_weight_is_differentiated_and_cast_like_the_weight():
    w = keras.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w.value * w.value)
    assert tape.gradient(loss, w).numpy().tolist() == [2.0, 4.0]

    class Reads(keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight((2,), "ones")

        def call(self, x):
            assert self.w.value.dtype == x.dtype == "float16"
            return x * self.w.value

    layer = Reads(dtype="mixed_float16")
    assert layer(np.ones((1, 2))).dtype == "float16" and layer.w.value.dtype == "float32"


def test_variables_of_optimizers_and_metrics_have_a_path():
    model = trained()
    slots = [f"net_dense_{of}_{name}" for name in ("momentum", "velocity") for of in ("kernel", "bias")]
    slots = ["net_dense_kernel_average", "net_dense_bias_average", *slots, "u_product"]
    assert {one.path for one in model.optimizer.variables} == {f"own/{n}" for n in ("iteration", "learning_rate", *slots)}
    assert [one.path for one in model.metrics[0].variables] == ["loss/total", "loss/count"]
    assert model.metrics[1].variables[0].path == "area/true_positives"
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(name="inner"), name="outer")
    assert {one.path for one in scaled.variables} >= {"outer/step_counter", "outer/dynamic_scale", "inner/learning_rate"}
    with keras.name_scope("a"):
        assert keras.metrics.Mean(name="m").total.path == "a/m/total"
    assert pickle.loads(pickle.dumps(model.optimizer)).iterations.path == "own/iteration"


def test_names_in_a_state_of_training_need_no_path():
    names = sorted(trained().get_training_state()["arrays"])
    assert names[-4:] == [
        *("optimizer/5/net_dense_kernel_velocity", "optimizer/6/net_dense_bias_momentum"),
        *("optimizer/7/net_dense_bias_velocity", "optimizer/8/u_product"),
    ]
    assert {"metrics/loss/0/total", "metrics/area/0/true_positives", "model/2/seed_generator_state"} <= set(names)


def test_a_variable_of_a_layer_is_a_weight():
    class Scaled(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.scale = keras.Variable("ones", shape=(2,), name="scale")
            self.seen = keras.Variable(0.0, trainable=False, name="seen")

        def call(self, x):
            self.seen.assign_add(1.0)
            return x * self.scale

    model = keras.Sequential([keras.Input((2,)), Scaled()])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(np.ones((4, 2)), np.zeros((4, 2)), batch_size=2, verbose=0)
    assert [one.path for one in model.trainable_variables] == ["scale"] and len(model.non_trainable_variables) == 1
    assert (model.layers[0].scale.numpy() < 1.0).all()


def test_results_of_a_function_are_computed_again_in_the_backward_pass():
    calls = []

    @keras.remat
    def square(x):
        calls.append(1)
        return x * x

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = square(x)
    assert float(tape.gradient(y, x)) == 6.0 and len(calls) == 2


def test_keras_says_which_version_it_follows():
    assert keras.__version__ == keras.version() == "3.15.1"


def test_what_is_loaded_late_is_not_there_at_first():
    import subprocess
    import sys

    names = ("random", "tree", "backend", "dtype_policies", "variable")
    code = f"import sys, minikeras; print([n for n in {names} if f'minikeras.keras.{{n}}' in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda v: v + np.ones(2, "float32"), "float32"),
        (lambda v: tf.keras.Variable(np.ones(2, "float16")) * v, "float16"),
        (lambda v: v / 2, "float32"),
        (lambda v: 1.5 - v, "float32"),
        (lambda v: np.ones(2) * v, "float64"),
        (lambda v: v + tf.ones(2), "float32"),
        (lambda v: v**2.5, "float32"),
        (lambda v: v // np.ones(2, "int64"), "int64"),
        (lambda v: v @ np.ones((2, 2), "float32"), "float32"),
        (lambda v: v < tf.ones(2), "bool"),
        (lambda v: -v, "int32"),
    ],
)
def test_operators_of_a_variable_promote_dtypes(function, dtype):
    variable = tf.keras.Variable(np.array([3, 5], "int32"))
    found = function(variable)
    expected = function(variable.numpy()) if dtype != "float16" else variable.numpy()
    assert found.dtype == dtype and np.array_equal(found, np.asarray(expected, dtype))


def test_a_variable_equals_operands_of_other_dtypes_by_value():
    variable, nothing = tf.keras.Variable(np.array([3, 5], "int8")), [None, "a", (1, 2, 3)]
    for other in (np.array([3.0, 5.5]), tf.constant([3.0, 5.5]), tf.keras.Variable([3.0, 5.5]), [3, 5.5]):
        assert (variable == other).numpy().tolist() == [True, False]
        assert (variable != other).numpy().tolist() == [False, True]
    assert (variable == 3.0).numpy().tolist() == [True, False] and (variable == 3.5).numpy().tolist() == [False, False]
    assert not any(bool(variable == one) for one in nothing) and all(bool(variable != one) for one in nothing)
    with pytest.raises(TypeError, match="unhashable"):
        hash(variable)


def test_a_variable_is_rounded():
    variable = tf.keras.Variable([1.26, 2.5])
    assert round(variable).numpy().tolist() == [1.0, 2.0] and np.allclose(round(variable, 1), [1.3, 2.5])


def test_gradients_flow_through_operators_of_a_variable():
    variable = tf.keras.Variable(np.array([3.0, 5.0], "float32"))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(variable * np.array([1, 2], "int32") + variable**2)
    assert tape.gradient(y, variable).numpy().tolist() == [7.0, 12.0]


@pytest.mark.parametrize(
    ("x", "y", "axes", "shape"),
    [
        ((2, 3), (2, 3), None, (2, 1)),
        ((4, 2, 3), (4, 3, 5), None, (4, 2, 5)),
        ((4, 2, 3), (4, 3), None, (4, 2)),
        ((4, 3), (4, 3, 5), None, (4, 5)),
        ((4, 2, 3), (4, 2, 5), 1, (4, 3, 5)),
        ((4, 2, 3), (4, 5, 3), (2, -1), (4, 2, 5)),
        ((2, 3, 4, 5), (2, 5, 3, 6), (3, 1), (2, 3, 4, 3, 6)),
    ],
)
def test_batch_dot_sums_over_an_axis_of_each_row(x, y, axes, shape):
    """The shapes are those of Keras's function; the values are sums over the axes by NumPy."""
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=x).astype("float32"), generator.normal(size=y).astype("float32")
    i, j = axes if isinstance(axes, tuple) else [axes] * 2 if axes else (-1, -1 if len(y) == 2 else -2)
    expected = np.stack([np.tensordot(p, q, ([i - (i > 0)], [j - (j > 0)])) for p, q in zip(a, b, strict=True)])
    found = keras.backend.batch_dot(tf.constant(a), tf.constant(b), axes)
    assert found.shape == shape
    np.testing.assert_allclose(found, expected.reshape(shape), rtol=1e-4, atol=1e-5)
    inputs = [keras.Input(x[1:]), keras.Input(y[1:])]
    model = keras.Model(inputs, keras.backend.batch_dot(*inputs, axes))
    np.testing.assert_allclose(model([a, b]), found, rtol=1e-5, atol=1e-6)


def test_a_bias_is_added_to_each_row():
    x, backend = tf.zeros([2, 3, 4]), keras.backend
    by_channel, by_element = tf.range(4.0), tf.reshape(tf.range(12.0), [3, 4])
    assert backend.bias_add(x, by_channel)[1, 2].numpy().tolist() == [0, 1, 2, 3]
    assert backend.bias_add(x, by_element)[1].numpy().tolist() == by_element.numpy().tolist()
    assert backend.bias_add(x, [1.0, 2.0, 3.0], "channels_first")[0].numpy().tolist() == [[1] * 4, [2] * 4, [3] * 4]
    first = backend.bias_add(x, tf.reshape(tf.range(12.0), [4, 3]), data_format="channels_first")
    assert first[0].numpy().tolist() == np.arange(12.0).reshape(3, 4).tolist()  # as Keras: reshaped, not transposed
    for call, message in (
        (lambda: backend.bias_add(x, tf.zeros([2, 3, 4])), "bias of 1 or 2 axes"),
        (lambda: backend.bias_add(x, [1.0], "NHWC"), "data_format"),
        (lambda: backend.batch_dot(x, x, 0), "behind the batch axis"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_names_of_keras_2_are_those_of_today():
    assert keras.losses.kullback_leibler_divergence is keras.losses.kl_divergence
    assert keras.optimizers.legacy.Adam is keras.optimizers.Adam and keras.optimizers.legacy.SGD is keras.optimizers.SGD
    reduction = keras.losses.Reduction
    values = [
        keras.losses.MeanSquaredError(reduction=one)([[0.0], [0.0]], [[1.0], [2.0]]).numpy().tolist()
        for one in (reduction.NONE, reduction.SUM, reduction.SUM_OVER_BATCH_SIZE, reduction.AUTO)
    ]
    assert values == [[1.0, 4.0], 5.0, 2.5, 2.5]
