"""Functional models: graphs of layers with several inputs and outputs, shared layers, nested models, operators."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import minikeras as tf

layers, Input, Model = tf.keras.layers, tf.keras.Input, tf.keras.Model
Dense = layers.Dense


def ones(*shape):
    return np.ones(shape, "float32")


# One input ------------------------------------------------------------------------------------------------------------


def test_a_graph_computes_what_its_layers_compute():
    x = Input((4,), name="row")
    first, second = Dense(3, activation="relu"), Dense(2)
    model = Model(x, second(first(x)), name="net")
    rows = np.arange(8.0).reshape(2, 4)
    assert np.array_equal(model(rows), second(first(rows)))
    assert (model.input_shape, model.output_shape, model.name, model.built) == ((None, 4), (None, 2), "net", True)
    assert [layer.name for layer in model.layers] == ["row", "dense", "dense_1"]
    assert [weight.path for weight in model.weights][:2] == ["dense/kernel", "dense/bias"], "no model in front of the path"
    assert type(model).__name__ == "Functional" and repr(model) == "<Functional name=net, built=True>"


def test_a_graph_is_built_and_runs_on_every_device(device):
    x, flags = Input((3,)), Input((2,), dtype="int32")
    chain = tf.keras.Sequential([Dense(2), layers.BatchNormalization(), layers.Dropout(0.5)])
    model = Model([x, flags], chain(x, training=True) + tf.keras.layers.Embedding(4, 2)(flags)[:, 0] * 2.0)
    assert model([tf.ones([4, 3]), tf.ones([4, 2], "int32")], training=True).shape == (4, 2)


def test_an_input_may_also_be_an_output():
    x = Input((2,))
    same, changed = Model(x, [x, x + 1.0])(ones(1, 2))
    assert same.numpy().tolist() == [[1.0, 1.0]] and changed.numpy().tolist() == [[2.0, 2.0]]


def test_data_takes_the_dtype_and_a_last_axis_of_one_of_its_input():
    model = Model(x := Input((1,)), x * 1.0)
    assert model(np.arange(3, dtype="float64")).shape == (3, 1)
    assert model(np.zeros((3, 1), "uint8")).dtype == tf.float32
    flat = Model(x := Input(()), x + 0.0)
    assert flat(ones(3, 1)).shape == (3,)
    whole = Input((2,), dtype="int32")
    assert Model(whole, whole)(ones(1, 2)).dtype == tf.int32


def test_data_of_another_shape_is_refused_with_the_name_of_the_input():
    model = Model(x := Input((4,), name="row"), Dense(2)(x))
    with pytest.raises(ValueError, match=r"Input 'row' was declared with shape \(None, 4\) and is given shape \(2, 5\)"):
        model(ones(2, 5))
    with pytest.raises(ValueError, match=r"A single row needs the batch axis: shape \(1, 4\)"):
        model(ones(4))
    assert model(ones(2, 4)).shape == (2, 2)


def test_an_optional_input_may_be_none():
    class Sum(layers.Layer):
        def call(self, a, b=None):
            return a if b is None else a + b

    a, b = Input((2,)), Input((2,), optional=True, name="extra")
    model = Model([a, b], Sum()(a, b))
    assert model([ones(1, 2), None]).numpy().tolist() == [[1.0, 1.0]]
    assert model([ones(1, 2), ones(1, 2)]).numpy().tolist() == [[2.0, 2.0]]
    strict = Model([a, c := Input((2,), name="needed")], a + c)
    with pytest.raises(ValueError, match="The input 'needed' is not optional, but None was passed"):
        strict([ones(1, 2), None])


# Structures -----------------------------------------------------------------------------------------------------------


def test_inputs_and_outputs_may_be_nested():
    a, b, c = Input((1,), name="a"), Input((1,), name="b"), Input((1,), name="c")
    model = Model({"one": a, "rest": (b, [c])}, {"sum": a + b, "others": [b * c, a - c]})
    found = model({"rest": (3 * ones(1, 1), [5 * ones(1, 1)]), "one": 2 * ones(1, 1)})
    assert tf.nest.map_structure(float, found) == {"sum": 5.0, "others": [15.0, -3.0]}
    assert model.output_shape == {"sum": (None, 1), "others": [(None, 1), (None, 1)]}
    assert model.input_names == ["a", "b", "c"] and len(model.outputs) == 3


def test_inputs_of_a_list_may_be_given_by_their_names():
    a, b = Input((1,), name="a"), Input((1,), name="b")
    model = Model([a, b], a - b)
    assert float(model({"b": ones(1, 1), "a": 3 * ones(1, 1)})) == 2.0
    assert float(model((3 * ones(1, 1), ones(1, 1)))) == 2.0
    single = Model(a, a + 0.0)
    assert float(single({"a": ones(1, 1)})) == float(single([ones(1, 1)])) == 1.0
    assert float(Model([a], a + 0.0)(ones(1, 1))) == 1.0


@pytest.mark.parametrize(
    "given, message",
    [
        ({"a": ones(1, 1)}, r"Missing: \['b'\]"),
        ({"a": ones(1, 1), "z": ones(1, 1)}, r"Missing: \['b'\]. Not known: \['z'\]"),
        ([ones(1, 1), ones(1, 1)], "Expected: {'a': 'a', 'b': 'b'}. Received: .*shape"),
    ],
)
def test_other_keys_or_structures_are_refused(given, message):
    a, b = Input((1,), name="a"), Input((1,), name="b")
    for model in (Model({"a": a, "b": b}, a + b), Model([a, b], a + b)):
        if isinstance(given, list) and isinstance(model.input, list):
            continue
        with pytest.raises(ValueError, match=message):
            model(given)


# Graphs ---------------------------------------------------------------------------------------------------------------


def test_a_shared_layer_has_its_weights_once():
    a, b, shared = Input((2,)), Input((2,)), Dense(2, name="shared")
    model = Model([a, b], shared(a) + shared(b))
    assert len(model.weights) == 2
    rows = np.array([[1.0, 2.0]])
    np.testing.assert_allclose(model([rows, rows]), 2 * shared(rows).numpy())
    with tf.GradientTape() as tape:
        y = model([ones(1, 2), ones(1, 2)])
    assert tape.gradient(y, shared.bias).numpy().tolist() == [2.0, 2.0]


def test_models_within_models_are_layers():
    inner = Model(x := Input((3,)), Dense(2, name="deep")(x), name="inner")
    chain = tf.keras.Sequential([Dense(3)], name="chain")
    model = Model(y := Input((4,)), inner(chain(y)), name="outer")
    assert chain.built and chain.weights[0].path == "chain/dense/kernel"
    assert [layer.name for layer in model.layers][1:] == ["chain", "inner"] and len(model.weights) == 4
    rows = ones(2, 4)
    assert np.array_equal(model(rows), inner(chain(rows)))
    assert model.get_layer("inner").get_layer("deep") is inner.layers[1]


def test_layers_are_ordered_by_the_longest_way_to_an_output_and_dicts_by_key():
    x = Input((2,), name="x")
    body = Dense(2, name="body")(x)
    score = Dense(1, name="score")(body)
    cls = Dense(3, name="cls")(body)
    model = Model(x, {"score": score, "cls": cls})
    assert [layer.name for layer in model.layers] == ["x", "body", "cls", "score"]
    assert [weight.path for weight in model.weights][2::2] == ["cls/kernel", "score/kernel"]


def test_unused_inputs_are_inputs_all_the_same():
    a, unused = Input((1,), name="a"), Input((1,), name="unused")
    model = Model([a, unused], Dense(1)(a))
    assert {layer.name for layer in model.layers} == {"a", "unused", "dense"}
    assert model([ones(1, 1), ones(1, 1)]).shape == (1, 1)


def test_a_model_may_begin_and_end_inside_another_one():
    x = Input((4,))
    low = Dense(3, name="low")
    middle = low(x)
    y = Dense(2, name="high")(middle)
    whole, features, head = Model(x, y), Model(x, middle), Model(middle, y)
    rows = ones(2, 4)
    np.testing.assert_allclose(head(features(rows)), whole(rows), rtol=1e-6)
    assert np.array_equal(features(rows), low(rows)) and len(head.weights) == 2
    assert isinstance(head.layers[0], layers.InputLayer)


def test_layer_output_gives_feature_extractors():
    model = Model(x := Input((4,)), Dense(2, name="head")(Dense(3, name="features")(x)))
    features = Model(model.input, model.get_layer("features").output)
    assert features(ones(1, 4)).shape == (1, 3)
    chain = tf.keras.Sequential([Dense(3), Dense(2)])
    chain(ones(1, 4))
    assert Model(chain.inputs, chain.layers[0].output)(ones(5, 4)).shape == (5, 3)
    assert model.get_layer("head").input.shape == (None, 3)


def test_a_tensor_of_a_graph_is_one_object():
    x, layer = Input((2,)), Dense(3)
    model = Model(x, layer(x))
    assert model.outputs[0] is layer.output and model.inputs[0] is x is model.layers[0].output


def test_layers_and_functions_tell_the_specs_of_their_outputs_and_stay_as_they_are():
    layer = Dense(3, dtype="float64")
    found = layer.compute_output_spec(Input((None, 2)))
    assert (found.shape, found.dtype.name, layer.built) == ((None, None, 3), "float64", False)
    x = Input((None,), dtype="int32")
    function = tf.keras.Function(x, {"vectors": tf.keras.layers.Embedding(5, 4)(x)})
    assert function.compute_output_shape((None, 7)) == {"vectors": (None, 7, 4)}
    assert function.compute_output_spec(Input((3,), dtype="int32"))["vectors"].shape == (None, 3, 4)


def test_a_layer_that_was_called_twice_or_never_has_no_single_output():
    shared = Dense(2)
    with pytest.raises(AttributeError, match="'dense' has not been called on a KerasTensor"):
        _ = shared.output
    kept = [shared(Input((2,))), shared(Input((2,)))]
    with pytest.raises(AttributeError, match="'dense' was called 2 times, so `output` does not name one tensor"):
        _ = shared.output
    assert len(kept) == 2


def test_a_layer_may_have_an_attribute_called_output():
    class Own(Model):
        def __init__(self):
            super().__init__()
            self.head = Dense(1)

        def call(self, x):
            return self.head(x)

    class Block(layers.Layer):
        def __init__(self):
            super().__init__()
            self.output = Dense(2)

        def call(self, x):
            return self.output(x)

    assert Block()(ones(1, 3)).shape == (1, 2)
    with pytest.raises(AttributeError, match="has no `inputs`: what it computes is in its `call`"):
        _ = Own().inputs


def test_layers_with_several_tensors_by_position_and_keyword():
    class Mix(layers.Layer):
        def call(self, a, b, scale=1.0, bias=None):
            return a + b * scale + bias, a

    a, b, c = Input((2,)), Input((2,)), Input((2,))
    mixed, first = Mix()(a, b, scale=3.0, bias=c)
    model = Model([a, b, c], [mixed, first])
    found = model([ones(1, 2), ones(1, 2), ones(1, 2)])
    assert [float(y.numpy()[0, 0]) for y in found] == [5.0, 1.0]


def test_very_deep_graphs_need_no_deep_recursion():
    x = y = Input((1,))
    for _ in range(1500):
        y = y + 1.0
    assert float(Model(x, y)(np.zeros((1, 1)))) == 1500.0


# Training mode and masks ----------------------------------------------------------------------------------------------


def test_a_training_mode_that_was_given_in_the_graph_is_always_respected():
    inner = Model(x := Input((2,)), layers.BatchNormalization(momentum=0.0)(x))
    statistics = inner.layers[1]
    model = Model(x := Input((2,)), Dense(1)(inner(x, training=False)))
    model.compile("sgd", "mse")
    model.fit(5.5 * ones(8, 2), ones(8, 1), verbose=0)
    assert statistics.moving_mean.numpy().tolist() == [0.0, 0.0]
    always = Model(x := Input((100,)), layers.Dropout(0.5)(x, training=True))
    assert (always(ones(1, 100), training=False).numpy() == 0).any()


def test_the_training_mode_of_the_call_reaches_all_other_layers():
    model = Model(x := Input((100,)), layers.Dropout(0.5)(x))
    assert (model(ones(1, 100), training=True).numpy() == 0).any()
    assert np.array_equal(model(ones(1, 100)), ones(1, 100)) and np.array_equal(
        model(ones(1, 100), training=False), ones(1, 100)
    )


def test_masks_go_through_a_graph():
    seen = []

    class Look(layers.Layer):
        def call(self, x, mask=None):
            seen.append(None if mask is None else mask.numpy().tolist())
            return x

    words = Input((3,), dtype="int32")
    model = Model(words, Look()(layers.Embedding(5, 2, mask_zero=True)(words)))
    seen.clear()
    model(np.array([[1, 0, 2]]))
    assert seen == [[[True, False, True]]]
    plain = Model(x := Input((3, 2)), Look()(x))
    seen.clear()
    rows = tf.constant(ones(1, 3, 2))
    plain(rows, mask=tf.constant([[True, True, False]]))
    plain(rows)
    assert seen == [[[True, True, False]], None], "a mask given for one call does not stick to the data"
    rows._keras_mask = tf.constant([[False, True, True]])
    seen.clear()
    plain(rows), plain(rows, mask=tf.constant([[True, False, False]]))
    assert seen == [[[False, True, True]], [[True, False, False]]], "a mask given by hand goes before the one that data carries"


# Errors ---------------------------------------------------------------------------------------------------------------


def test_an_output_that_depends_on_another_input_names_the_layer():
    a, b = Input((2,), name="a"), Input((2,), name="forgotten")
    with pytest.raises(
        ValueError, match="Graph disconnected: cannot find parent for tensor .*forgotten.* at operation 'both'.*"
    ):
        Model(a, layers.Add(name="both")([a, b]))
    with pytest.raises(ValueError, match="Graph disconnected.* among the outputs"):
        Model(a, b)


def test_two_layers_of_one_name_are_refused():
    x = Input((2,))
    with pytest.raises(ValueError, match='The name "d" is used 2 times in the model. All operation names should be unique.'):
        Model(x, Dense(2, name="d")(Dense(2, name="d")(x)))


def test_only_keras_tensors_are_inputs_and_outputs():
    x = Input((2,))
    with pytest.raises(ValueError, match="All `outputs` values must be KerasTensors.*invalid value 3"):
        Model(x, [x, 3])
    with pytest.raises(ValueError, match="All `inputs` values must be KerasTensors"):
        Model(tf.constant([1.0]), x)
    with pytest.raises(ValueError, match="The input 'x' is given 2 times"):
        Model([y := Input((2,), name="x"), y], y)


def test_input_needs_one_shape():
    for options in ({}, {"shape": (2,), "batch_shape": (1, 2)}, {"batch_size": 3, "batch_shape": (1, 2)}):
        with pytest.raises(ValueError, match="Input: give shape=.*without the batch axis, or batch_shape"):
            Input(**options)
    with pytest.raises(NotImplementedError, match="sparse and ragged"):
        Input((2,), sparse=True)
    assert Input(batch_shape=(2, None)).shape == (2, None) and Input((3,), batch_size=5).shape == (5, 3)
    assert Input(tensor=tf.constant([[1]])).dtype == tf.int32 and Input(tensor=(x := Input((1,)))) is x


# Subclasses -----------------------------------------------------------------------------------------------------------


def test_a_subclass_may_be_functional_and_bring_its_own_step():
    class Noted(Model):
        steps = 0

        def train_step(self, data):
            type(self).steps += 1
            return super().train_step(data)

    x = Input((1,))
    model = Noted(inputs=x, outputs=Dense(1)(x))
    model.compile("sgd", "mse", run_eagerly=True)
    model.fit(ones(4, 1), ones(4, 1), batch_size=2, verbose=0)
    assert Noted.steps == 2 and isinstance(model, Noted) and model.layers[1].name == "dense"


def test_a_functional_subclass_may_take_further_parts():
    class Extended(Model):
        def __init__(self, units):
            x = Input((2,))
            super().__init__(x, Dense(units)(x), name="extended")
            self.extra = Dense(1)

        def call(self, x):
            return self.extra(super().call(x))

    model = Extended(3)
    assert model(ones(1, 2)).shape == (1, 1) and len(model.weights) == 4


# Life -----------------------------------------------------------------------------------------------------------------


def test_a_graph_is_freed_with_its_last_reference():
    x = Input((2,))
    layer = Dense(2)
    model = Model(x, layer(x) + 1.0)
    watched = [weakref.ref(layer), weakref.ref(layer.kernel), weakref.ref(x.node)]
    gc.collect()
    gc.disable()
    try:
        del x, layer, model
        assert [reference() for reference in watched] == [None] * 3
    finally:
        gc.enable()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_has_weights_of_its_own_and_a_graph_of_its_own(copied):
    model = Model(x := Input((2,)), Dense(2, kernel_initializer="ones")(x))
    twin = copied(model)
    for layer in twin.layers:
        layer._name += "_copy"
    twin.weights[0].assign(np.zeros((2, 2)))
    assert model(ones(1, 2)).numpy().tolist() == [[2.0, 2.0]] and twin(ones(1, 2)).numpy().tolist() == [[0.0, 0.0]]
    both = Model([model.input, twin.input], [model.output + 1.0, twin.output + 1.0])
    assert [float(y[0, 0]) for y in both([ones(1, 2), ones(1, 2)])] == [3.0, 1.0]
    assert Model(twin.input, twin.layers[-1].output)(ones(1, 2)).numpy().tolist() == [[0.0, 0.0]]
    assert twin.get_config()["layers"][1]["inbound_nodes"][0]["args"][0]["config"]["keras_history"][1:] == [0, 0]


def test_values_that_nobody_needs_any_more_are_let_go():
    alive = []

    class Watch(layers.Layer):
        def call(self, x):
            alive.append(weakref.ref(x))
            return x + 1.0

    first, second, third = Dense(1), Watch(), Watch()
    seen = []

    class Count(layers.Layer):
        def call(self, x):
            seen.append(sum(reference() is not None for reference in alive))
            return x

    x = Input((1,))
    model = Model(x, Count()(third(second(first(x) * 1.0) * 1.0)))
    alive.clear(), seen.clear()
    model(tf.constant([[1.0]]))
    assert seen == [0]


def test_a_model_with_a_list_of_one_output_gives_that_output():
    x = Input((3,))
    y = Dense(2)(x)
    data = np.ones((8, 3), "float32")
    for outputs in ([y], (y,)):
        model = tf.keras.Model([x], outputs)
        assert model.output_shape == (None, 2) and model.input_shape == (None, 3) and type(model.output) is type(outputs)
        assert model(data).shape == (8, 2) and isinstance(model.predict(data, verbose=0), np.ndarray)
        assert tf.keras.Model(x, Dense(1)(model(x))).output_shape == (None, 1)
        model.compile("sgd", ["mse"], metrics=["mae"])
        assert sorted(model.fit([data], [np.ones((8, 2))], verbose=0).history) == ["loss", "mae"]
        again = tf.keras.Model.from_config(model.get_config())
        assert type(again.output) is type(outputs) and again(data).shape == (8, 2)
    assert isinstance(tf.keras.Model(x, {"y": y}).predict(data, verbose=0), dict)
    assert isinstance(tf.keras.Model(x, [[y]]).predict(data, verbose=0), list)


@pytest.mark.parametrize("inputs", [dict, list])
def test_a_dict_may_hold_more_than_the_inputs_which_is_told(inputs):
    a, b = Input((2,), name="a"), Input((2,), name="b")
    model = Model({"b": b, "a": a} if inputs is dict else [a, b], layers.Subtract()([a, b]))
    data = {"b": ones(4, 2), "c": ones(4, 7), "a": 3 * ones(4, 2)}
    with pytest.warns(UserWarning, match=r"\['c'\] are no inputs of the model, so they are left out. It has \['a', 'b'\]"):
        found = model(data)
    assert np.array_equal(found, 2 * ones(4, 2))
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match="left out"):
        assert model.predict(data, verbose=0).shape == (4, 2)
