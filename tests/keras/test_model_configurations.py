"""Configurations: the closed registry, models to JSON and back, clones, and what real Keras writes."""

import json
import pathlib

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import LoadError, UnknownObjectError

keras, layers = tf.keras, tf.keras.layers
Input, Model, Sequential, Dense = keras.Input, keras.Model, keras.Sequential, layers.Dense
serialize, deserialize = keras.saving.serialize_keras_object, keras.saving.deserialize_keras_object
GOLDEN = pathlib.Path(__file__).parent.parent / "golden"


@pytest.fixture
def registered():
    """The table of registered classes, put back afterwards."""
    table = keras.saving.get_custom_objects()
    before = dict(table)
    yield table
    table.clear()
    table.update(before)


def golden(name):
    return json.loads((GOLDEN / name).read_text())


# What real Keras writes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sequential_model.json", "functional_model.json"])
def test_a_model_that_keras_wrote_predicts_the_same(name):
    facts = golden(name)
    config = {key: value for key, value in facts["config"].items() if key != "compile_config"}
    model = keras.models.model_from_config(config)
    assert [weight.path.split("/")[-2:] for weight in model.weights] == [path.split("/")[-2:] for path in facts["weight_paths"]]
    model.set_weights([np.array(value, "float32") for value in facts["weights"]])
    outputs = tf.nest.flatten(model(_nested_like(model.input, facts["inputs"])))
    expected = tf.nest.flatten(_nested_like(model.output, facts["outputs"]))
    for one, other in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(one, other, **facts["meta"]["tolerance"])


def _nested_like(structure, values):
    """Nested lists of numbers as arrays, where `structure` has a tensor."""
    if isinstance(structure, dict):
        return {key: _nested_like(part, values[key]) for key, part in structure.items()}
    if isinstance(structure, list):
        return [_nested_like(part, value) for part, value in zip(structure, values, strict=True)]
    return np.array(values)


def test_a_functional_model_is_written_in_keras_s_layout():
    facts = golden("functional_model.json")["config"]
    again = json.loads(keras.models.model_from_config(facts).to_json())
    assert (again["module"], again["class_name"], again["registered_name"]) == (
        "keras.src.models.functional",
        "Functional",
        "Functional",
    )
    for key in ("input_layers", "output_layers", "name", "trainable"):
        assert again["config"][key] == facts["config"][key], key
    for ours, theirs in zip(again["config"]["layers"], facts["config"]["layers"], strict=True):
        for key in ("module", "class_name", "registered_name", "name", "inbound_nodes"):
            assert ours[key] == theirs[key], (theirs["name"], key)


def test_a_dense_layer_is_written_as_keras_writes_it():
    (theirs,) = [
        layer for layer in golden("sequential_model.json")["config"]["config"]["layers"] if layer["config"]["name"] == "dense"
    ]
    ours = serialize(deserialize(theirs))
    for name in ("units", "activation", "use_bias", "bias_initializer", "kernel_regularizer", "kernel_constraint", "name"):
        assert ours["config"][name] == theirs["config"][name]
    assert ours["config"]["kernel_initializer"]["class_name"] == "GlorotUniform"
    assert ours["config"]["kernel_initializer"]["module"] == "keras.initializers"
    assert ours["build_config"] == theirs["build_config"] == {"input_shape": [None, 4]}


# Round trips ----------------------------------------------------------------------------------------------------------


def nets():
    x, words = Input((4,), name="x"), Input((3,), dtype="int32", name="words")
    shared = Dense(3, name="shared", kernel_regularizer="l2", activation="tanh")
    inner = Model(i := Input((3,)), Dense(2, name="deep")(i), name="inner")
    mixed = layers.Add()([shared(x), shared(x * 0.5)])
    outputs = {"a": inner(mixed * 2.0, training=False), "b": [inner(mixed), 1.0 - mixed, layers.Flatten()(words)]}
    yield Model({"x": x, "words": words}, outputs, name="graph")
    yield Sequential([Input((4,)), Dense(3, activation="relu"), layers.BatchNormalization(axis=-1), Dense(1)], name="chain")
    deferred = Sequential([Dense(3), Sequential([Dense(2)], name="within")], name="deferred")
    deferred(np.ones((2, 4)))
    yield deferred
    yield Sequential([Dense(3)], name="unbuilt")


@pytest.mark.parametrize("number", range(4))
def test_json_and_back_is_the_same_model_with_new_weights(number):
    model = list(nets())[number]
    again = keras.models.model_from_json(model.to_json())
    assert json.loads(again.to_json()) == json.loads(model.to_json())
    assert [w.shape for w in again.weights] == [w.shape for w in model.weights] and again.built == model.built
    if model.built:
        again.set_weights(model.get_weights())
        data = {"x": np.ones((2, 4), "float32"), "words": np.ones((2, 3))} if number == 0 else np.ones((2, 4), "float32")
        for one, other in zip(tf.nest.flatten(model(data)), tf.nest.flatten(again(data)), strict=True):
            assert np.array_equal(one, other)


def test_what_is_frozen_stays_frozen_through_a_configuration():
    model = Sequential([Input((2,)), Dense(2, name="a"), Dense(2, name="b")])
    model.trainable = False
    model.layers[1].trainable = True
    again = keras.models.model_from_json(model.to_json())
    assert [layer.trainable for layer in (again, *again.layers)] == [False, False, True]
    assert [weight.path for weight in again.trainable_weights] == [weight.path for weight in model.trainable_weights]


class Block(Model):
    """A subclass with arguments of its own, for the tests below."""

    def __init__(self, units, inner=None, scale=1.0, **options):
        super().__init__(**options)
        self.dense, self.inner, self.scale = Dense(units), inner, scale

    def call(self, x):
        return self.dense(x) * self.scale


def test_a_subclass_is_configured_by_the_arguments_it_was_made_with():
    block = Block(3, inner=Dense(2, name="given"), scale=2.0, name="block")
    config = block.get_config()
    assert (config["units"], config["scale"], config["name"]) == (3, 2.0, "block")
    again = Block.from_config(config)
    assert again.dense.units == 3 and again.inner.name == "given" and again.scale == 2.0
    with pytest.raises(NotImplementedError, match="Block was created by passing non-serializable argument values"):
        Block(3, inner=object()).get_config()


@pytest.mark.parametrize("base", [layers.Layer, Dense, Model])
def test_what_a_user_describes_is_not_described_again(base):
    class Described(base):
        def __init__(self, activity, **options):
            super().__init__(**options)
            self.activity = activity

        def get_config(self):
            return dict(activity=self.activity.__name__, **super().get_config())

    config = Described(lambda x: x, **({"units": 3} if base is Dense else {})).get_config()
    assert config["activity"] == "<lambda>" and config.get("units") == (3 if base is Dense else None)


def test_special_values_survive():
    values = {"slice": slice(1, None, 2), "dots": ..., "bytes": b"ab", "array": np.arange(3), "tensor": tf.constant([1.5])}
    again = deserialize(json.loads(json.dumps(serialize(values))))
    assert again["slice"] == slice(1, None, 2) and again["dots"] is ... and again["bytes"] == b"ab"
    assert np.array_equal(again["array"], np.arange(3)) and again["tensor"].numpy().tolist() == [1.5]
    assert serialize((1, np.float32(2.0), tf.float32, tf.TensorShape([2, 3]))) == [1, 2.0, "float32", [2, 3]]


def test_one_object_that_occurs_twice_stays_one():
    layer = Dense(2)
    with keras.saving.ObjectSharingScope():
        config = json.loads(json.dumps(serialize([layer, layer, Dense(2)])))
    assert config[0]["shared_object_id"] == config[1]["shared_object_id"] and "shared_object_id" not in config[2]
    with keras.saving.ObjectSharingScope():
        first, second, third = deserialize(config)
    assert first is second and third is not first


def test_copies_that_are_made_while_a_file_is_read_take_no_objects_of_the_file(tmp_path):
    model = keras.Sequential([keras.Input((3, 2)), layers.Bidirectional(layers.LSTM(4))])  # it copies the LSTM
    model.save(tmp_path / "m.keras")
    both = keras.saving.load_model(tmp_path / "m.keras").layers[0]
    for one in (both.forward_layer.cell, both.backward_layer.cell):
        assert isinstance(one.recurrent_initializer, keras.initializers.Orthogonal)
        assert isinstance(one.bias_initializer, keras.initializers.Zeros)


@pytest.mark.parametrize("safe_mode", [None, True, False])
def test_the_configuration_of_a_lambda_is_read_in_either_mode(safe_mode):
    config = layers.Lambda(lambda x: 2 * x, name="twice").get_config()
    again = layers.Lambda.from_config(config, safe_mode=safe_mode)
    assert again.name == "twice" and again([3.0]).numpy().tolist() == [6.0]
    with pytest.raises(UnknownObjectError):
        layers.Lambda.from_config({**config, "function": "4wEAAA=="}, safe_mode=safe_mode)


# Clones ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(4))
def test_a_clone_has_the_structure_and_new_weights(number):
    model = list(nets())[number]
    clone = keras.models.clone_model(model)
    assert [w.shape for w in clone.weights] == [w.shape for w in model.weights] and type(clone) is type(model)
    assert not {id(w) for w in clone.weights} & {id(w) for w in model.weights}
    assert json.loads(clone.to_json()) == json.loads(model.to_json())


def test_a_clone_function_makes_or_shares_layers():
    model = list(nets())[1]

    def wider(layer):
        config = layer.get_config()
        return Dense.from_config({**config, "units": 5}) if isinstance(layer, Dense) else type(layer).from_config(config)

    assert keras.models.clone_model(model, clone_function=wider).output_shape == (None, 5)
    assert keras.models.clone_model(model, clone_function=lambda layer: layer).weights[0] is model.weights[0]
    outer = Sequential([Input((2,)), Sequential([Dense(3)], name="inner")])
    seen = []

    def note(layer):
        seen.append(layer.name)
        return type(layer).from_config(layer.get_config())

    keras.models.clone_model(outer, clone_function=note, recursive=True)
    assert seen == [outer.layers[0].layers[0].name]


def test_a_clone_can_stand_on_other_tensors():
    chain, graph = list(nets())[1], Model(x := Input((4,)), Dense(2)(x))
    new = Input((4,), name="new")
    assert keras.models.clone_model(chain, input_tensors=new).input_names == ["new"]
    assert keras.models.clone_model(graph, input_tensors=[new]).input_names == ["new"]
    on_top = keras.models.clone_model(chain, input_tensors=Dense(4)(new))
    assert on_top.output_shape == (None, 1)
    with pytest.raises(ValueError, match="the model has 1 inputs"):
        keras.models.clone_model(graph, input_tensors=[new, Input((4,))])
    with pytest.raises(ValueError, match="Block is a subclass with a `call` of its own"):
        keras.models.clone_model(Block(2), clone_function=lambda layer: layer)
    assert keras.models.clone_model(Block(2)).dense.units == 2


def test_a_clone_stands_on_tensors_in_the_structure_of_the_inputs():
    x, y = Input((4,)), Input((4,))
    graph = Model({"x": x, "y": y}, keras.layers.Add()([x, y]))
    assert keras.models.clone_model(graph, input_tensors={"x": Input((4,)), "y": Input((4,))}).output_shape == (None, 4)
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        keras.models.clone_model(graph, input_tensors=[Input((4,)), Input((4,))])


# The registry ---------------------------------------------------------------------------------------------------------


def test_a_registered_class_is_written_and_read_by_its_name(registered):
    @keras.saving.register_keras_serializable("Shop", name="Scaler")
    class Scale(layers.Layer):
        def call(self, x):
            return 2.0 * x

    config = serialize(Scale(name="s"))
    assert (config["registered_name"], config["class_name"]) == ("Shop>Scaler", "Scale")
    assert type(deserialize(config)) is Scale
    assert keras.saving.get_registered_name(Scale) == "Shop>Scaler"
    assert keras.saving.get_registered_object("Shop>Scaler") is registered["Shop>Scaler"] is Scale
    with pytest.raises(ValueError, match="does not have a get_config"):
        keras.saving.register_keras_serializable()(int)


def test_registered_functions_can_be_activations_and_initial_values(registered):
    @keras.saving.register_keras_serializable("Shop")
    def double(x):
        return 2.0 * x

    model = Sequential([Input((1,)), Dense(1, activation=double, kernel_initializer="ones")])
    again = keras.models.model_from_json(model.to_json())
    assert float(again(np.ones((1, 1)))) == 2.0


def test_custom_objects_and_scopes_add_names():
    class Mine(layers.Layer):
        def call(self, x):
            return x

    text = Sequential([Mine(name="m")]).to_json()
    assert type(keras.models.model_from_json(text, custom_objects={"Mine": Mine}).layers[0]) is Mine
    with keras.saving.custom_object_scope({"Mine": Mine}):
        assert type(keras.models.model_from_json(text).layers[0]) is Mine
        with keras.saving.custom_object_scope({"Other": Dense}):
            assert keras.saving.get_registered_object("Mine") is Mine
    with pytest.raises(UnknownObjectError, match="Could not locate class 'Mine'.*register_keras_serializable"):
        keras.models.model_from_json(text)


@pytest.mark.parametrize("module", ["os", "builtins", "subprocess", "minikeras.keras.models", "keras.utils", None, "keras"])
@pytest.mark.parametrize("name", ["system", "eval", "Popen", "get_file", "Denze"])
def test_nothing_that_is_not_known_is_ever_found(module, name):
    for config in (
        {"module": module, "class_name": name, "config": {}, "registered_name": name},
        {"module": module, "class_name": "function", "config": name, "registered_name": name},
    ):
        with pytest.raises(TypeError, match=f"Could not locate .* '{name}'"):
            deserialize(config)


def test_a_class_of_one_s_own_never_stands_for_one_of_ours():
    config = {"module": "shop.layers", "class_name": "Dense", "config": {"units": 2}, "registered_name": "Shop>Dense"}
    with pytest.raises(UnknownObjectError, match=r"Could not locate class 'Dense' of module 'shop.layers' \(registered as"):
        deserialize(config)


@pytest.mark.parametrize("name", ["Lambda", "__lambda__", "TFOpLambda"])
def test_code_in_a_configuration_is_refused_with_a_way_out(name):
    config = {"module": "keras.layers", "class_name": name, "config": {"function": "4wEA"}, "registered_name": None}
    with pytest.raises(UnknownObjectError, match="nothing in a configuration is ever run. Write the function as a layer"):
        deserialize(config)
    with pytest.warns(UserWarning, match="A lambda is not written"):
        assert serialize(lambda x: x) == {"class_name": "__lambda__", "config": {}}
    with pytest.raises(ValueError, match="safe_mode=False is not available"):
        deserialize({}, safe_mode=False)


@pytest.mark.parametrize(
    "config",
    [
        {"class_name": 3, "config": {}},
        {"class_name": "Dense", "config": [1]},
        {"class_name": "Dense", "config": {"unites": 3}},
        {"class_name": "function", "config": {"a": 1}},
        {"class_name": "__numpy__", "config": {"value": [1], "dtype": "nonsense"}},
        {"class_name": "__slice__", "config": {}},
        {"class_name": "Functional", "config": {"layers": [], "input_layers": ["a", 0, 0], "output_layers": ["a", 0, 0]}},
        {"class_name": "Functional", "config": {"layers": [{"name": "d"}], "input_layers": [], "output_layers": []}},
        object(),
    ],
)
def test_configurations_of_another_form_are_refused(config):
    with pytest.raises(ValueError):
        deserialize(config)


def test_calls_that_wait_for_one_another_are_refused():
    config = json.loads(Model(x := Input((2,), name="x"), Dense(2, name="d")(x)).to_json())
    config["config"]["layers"][1]["inbound_nodes"][0]["args"][0]["config"]["keras_history"] = ["d", 0, 0]
    with pytest.raises(LoadError, match=r"has loops or disconnected nodes: the calls of \['d'\] wait for one another"):
        keras.models.model_from_config(config)


def test_text_that_describes_no_model_is_refused():
    for text in ("{", "[1]", '{"class_name": "Dense", "config": {"units": 2}, "module": "keras.layers"}', "[" * 100_000):
        with pytest.raises(LoadError):
            keras.models.model_from_json(text)


def test_every_public_class_of_layers_is_found_by_its_keras_name():
    for name in layers.__all__:
        kind = getattr(layers, name)
        if isinstance(kind, type) and hasattr(kind, "from_config"):
            assert keras.saving.registry.find(name, "keras.layers") is kind
    for module, name in (
        ("optimizers", "Adam"),
        ("losses", "MeanSquaredError"),
        ("metrics", "Mean"),
        ("initializers", "Zeros"),
    ):
        assert keras.saving.registry.place_of(getattr(getattr(keras, module), name)) == (f"keras.{module}", name)
    assert keras.saving.registry.place_of(layers.GroupQueryAttention) == ("keras.layers", "GroupQueryAttention")
    assert keras.saving.registry.find("GroupedQueryAttention", "keras.layers") is layers.GroupQueryAttention
    assert not any(map(keras.saving.registry.place_of, (layers.Dense(2), tf.constant(1.0), tf.matmul, dict)))


@pytest.mark.parametrize("functional", [True, False])
def test_a_clone_is_compiled_as_the_model_was(functional):
    if functional:
        x = tf.keras.Input((3,))
        model = tf.keras.Model(x, tf.keras.layers.Dense(1)(x))
    else:
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    assert not tf.keras.models.clone_model(model).compiled
    model.compile(tf.keras.optimizers.Adam(0.25), "mae")
    clone = tf.keras.models.clone_model(model)
    assert clone.compiled and clone.loss == "mae" and float(clone.optimizer.learning_rate) == 0.25
    assert clone.optimizer is not model.optimizer
    clone.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)
    assert model.optimizer.iterations == 0


def test_a_tuple_of_outputs_is_one_after_a_configuration():
    x = tf.keras.Input((3,))
    model = tf.keras.Model(x, (tf.keras.layers.Dense(1)(x), tf.keras.layers.Dense(2)(x)))
    assert type(tf.keras.Model.from_config(model.get_config())(np.ones((1, 3)))) is tuple


class Around(layers.Wrapper):
    def call(self, x):
        return self.layer(x)


@pytest.mark.parametrize("wrapper_first", [False, True])
def test_a_layer_that_a_wrapper_shares_with_the_model_is_one_layer_after_loading(tmp_path, wrapper_first):
    shared, x = layers.Dense(1, name="shared"), [keras.Input((2,)), keras.Input((2,))]
    calls = [Around(shared), shared] if wrapper_first else [shared, Around(shared)]
    model = keras.Model(x, [call(one) for call, one in zip(calls, x, strict=True)])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", custom_objects={"Around": Around})
    around = next(layer for layer in loaded.layers if isinstance(layer, Around))
    assert around.layer is loaded.get_layer("shared") and len(loaded.weights) == 2
    values = [np.ones((1, 2), "float32"), np.full((1, 2), 3.0, "float32")]
    assert all(np.array_equal(a, b) for a, b in zip(model(values), loaded(values), strict=True))
