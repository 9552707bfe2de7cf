"""Common mistakes, each with the error that says what was asked, what was found and what to do."""

import re

import numpy as np
import pytest

import minikeras as tf
from minikeras.keras.layers import layer_weights

keras, L = tf.keras, tf.keras.layers
X, Y, LABELS = np.ones((8, 3), "float32"), np.ones((8, 2), "float32"), np.arange(8) % 2
SPARSE = "sparse_categorical_crossentropy"


def made(loss="mse", **options):
    model = keras.Sequential([keras.Input((3,)), L.Dense(2, name="head")], name="net")
    model.compile("adam", loss, **options)
    return model


def two_outputs():
    x = keras.Input((3,))
    model = keras.Model(x, {"a": L.Dense(2)(x), "b": L.Dense(2)(x)})
    model.compile("adam", "mse")
    return model


class Forgetful(L.Layer):
    """Its `call` has no return."""

    def call(self, x):
        x * 2


class ForgetfulModel(keras.Model):
    def call(self, x):
        x * 2


class Inside(keras.Model):
    """Makes a layer in `call`."""

    def call(self, x):
        return L.Dense(2, name="lost")(x)


def rows(*arrays):
    """A Dataset that was not batched."""
    return tf.data.Dataset.from_tensor_slices(arrays if len(arrays) > 1 else arrays[0])


def weighted(class_weight):
    return lambda: made(SPARSE).fit(X, LABELS, class_weight=class_weight, verbose=0)


def applied(pairs):
    return lambda: keras.optimizers.SGD(0.1).apply_gradients(pairs)


def gradient_of(function):
    def question():
        x = tf.Variable([1.0, 2.0])
        with tf.GradientTape() as tape:
            y = function(x)
        tape.gradient(y, x)

    return question


ONE, V = tf.ones([1]), tf.Variable([1.0])
DICT = "class_weight: expected a dict from classes to weights, such as {0: 1.0, 1: 2.5}, found "
PAIRS = "expected pairs of gradient and variable, such as zip(gradients, model.trainable_variables), found "
NO_RETURN = "returned None, a tensor is needed. Does its `call` end without `return`?"
LEAVES = "leave the tape: compute with those of tf instead, such as tf.reduce_sum for np.sum and tf.math.log for np.log."
SYMBOLIC = "has no values, so NumPy and Python's conditions and loops cannot take it. Use functions of keras.ops"
UNBATCHED = "if that is a single row, use dataset.batch(32)."

MISTAKES = {
    "class_weight='balanced'": (weighted("balanced"), TypeError, [DICT + "'balanced'", "np.bincount(y)"]),
    "a list of class weights": (weighted([1.0, 2.0]), TypeError, [DICT + "[1.0, 2.0]", "dict(enumerate(weights))"]),
    "an array of class weights": (weighted(np.ones(2)), TypeError, [DICT + "array([1., 1.])", "dict(enumerate(weights))"]),
    "names of classes": (weighted({"cat": 1.0}), TypeError, [DICT + "{'cat': 1.0}", "keys are the integers"]),
    "no weight of a class": (weighted({0: None}), TypeError, [DICT + "{0: None}"]),
    "class weights beside a Dataset": (
        lambda: made(SPARSE).fit(rows(X, LABELS).batch(4), class_weight="balanced", verbose=0),
        TypeError,
        [DICT + "'balanced'"],
    ),
    "class weights for a batch": (
        lambda: made(SPARSE).train_on_batch(X, LABELS, class_weight=[1.0]),
        TypeError,
        [DICT + "[1.0]"],
    ),
    "variable and gradient": (
        applied([(V, ONE)]),
        TypeError,
        ["found ResourceVariable and EagerTensor", "the other way round"],
    ),
    "two gradients": (
        applied([(ONE, ONE)]),
        TypeError,
        ["apply: expected a gradient and its Variable", "EagerTensor and EagerT"],
    ),
    "gradients without variables": (applied([ONE]), TypeError, [PAIRS + "[<tf.Tensor"]),
    "a dict of gradients": (applied({"kernel": ONE}), TypeError, [PAIRS + "['kernel']"]),
    "no pairs": (applied(None), TypeError, [PAIRS + "None"]),
    "a gradient alone": (lambda: keras.optimizers.Adam().apply([ONE], [ONE]), TypeError, ["found EagerTensor and EagerTensor"]),
    "call without return, in a chain": (
        lambda: keras.Sequential([Forgetful(name="f"), L.Dense(2)])(X),
        ValueError,
        [f"'f' (Forgetful) {NO_RETURN}"],
    ),
    "call without return, at the end of a chain": (
        lambda: keras.Sequential([L.Dense(2), Forgetful(name="f")])(X),
        ValueError,
        [f"'f' (Forgetful) {NO_RETURN}"],
    ),
    "call without return, symbolic": (
        lambda: Forgetful(name="f")(keras.Input((3,))),
        ValueError,
        [f"'f' (Forgetful) {NO_RETURN}"],
    ),
    "a layer called on None": (lambda: L.Dense(2, name="d")(None), ValueError, ["'d' (Dense) was called on None", "`return`?"]),
    "a built layer called on None": (lambda: made().layers[0](None), ValueError, ["'head' (Dense) was called on None"]),
    "a model called on None": (lambda: made()(None), ValueError, ["(InputLayer) was called on None"]),
    "no data": (lambda: made().fit(None, verbose=0), ValueError, ["fit: there is no data, x is None. Give arrays"]),
    "a model without return, predicting": (
        lambda: ForgetfulModel(name="m").predict(X, verbose=0),
        ValueError,
        [f"'m' (ForgetfulModel) {NO_RETURN}"],
    ),
    "labels of one of two outputs": (
        lambda: two_outputs().fit(X, {"a": Y}, verbose=0),
        ValueError,
        ["y_true is {'a': 'EagerTensor'}, the outputs are ['a', 'b']. Labels of ['b'] are missing.", "loss=None"],
    ),
    "labels of an unknown output": (
        lambda: two_outputs().fit(X, {"a": Y, "c": Y}, verbose=0),
        ValueError,
        ["Labels of ['b'] are missing and ['c'] are no outputs."],
    ),
    "one array of labels for two outputs": (
        lambda: two_outputs().fit(X, Y, verbose=0),
        ValueError,
        ["Give 2 arrays of labels"],
    ),
    "three arrays of labels": (lambda: two_outputs().fit(X, [Y] * 3, verbose=0), ValueError, ["Give 2 arrays of labels"]),
    "np.sum in a tape": (gradient_of(lambda x: np.sum(x * x)), TypeError, ["target 0 is a float32", LEAVES]),
    "np.log in a tape": (gradient_of(np.log), TypeError, ["target 0 is a ndarray", LEAVES]),
    "float() in a tape": (gradient_of(lambda x: float(x[0])), TypeError, ["target 0 is a float", LEAVES]),
    ".numpy() in a tape": (gradient_of(lambda x: (x * x).numpy()), TypeError, ["target 0 is a ndarray", LEAVES]),
    "np.log of a symbol": (lambda: np.log(keras.Input((3,))), TypeError, ["<KerasTensor shape=(None, 3)", SYMBOLIC]),
    "np.sum of a symbol": (lambda: np.sum(keras.Input((3,))), TypeError, [SYMBOLIC]),
    "np.mean of a symbol": (lambda: np.mean(keras.Input((3,))), TypeError, [SYMBOLIC]),
    "np.add with out=": (lambda: np.add(keras.Input((3,)), 1, out=X), TypeError, [SYMBOLIC]),
    "a Dataset without batches": (lambda: made().fit(rows(X, Y), verbose=0), ValueError, ["shapes [(3,), (2,)]", UNBATCHED]),
    "a Dataset without batches, evaluated": (lambda: made().evaluate(rows(X, Y), verbose=0), ValueError, [UNBATCHED]),
    "a Dataset without batches, predicted": (lambda: made().predict(rows(X), verbose=0), ValueError, ["[(3,)]", UNBATCHED]),
    "integer labels without batches": (
        lambda: made(SPARSE).fit(rows(X, LABELS), verbose=0),
        ValueError,
        ["(3,), ()", UNBATCHED],
    ),
    "a generator without batches": (lambda: made().fit(zip(X, Y, strict=True), verbose=0), ValueError, [UNBATCHED]),
    "a device's number": (lambda: tf.device(0).__enter__(), TypeError, ["device: expected a name such as 'CPU:0'", "found 0"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_with_what_to_do(mistake):
    question, kind, parts = MISTAKES[mistake]
    with pytest.raises(kind) as caught:
        question()
    for part in parts:
        assert part in str(caught.value), str(caught.value)


@pytest.mark.host
def test_labels_and_gradients_that_were_refused_have_changed_nothing():
    applied_to = tf.Variable([1.0])
    for pairs in ([(ONE, applied_to), (applied_to, ONE)], [(ONE, applied_to), ONE]):
        with pytest.raises(TypeError):
            applied(pairs)()
    assert applied_to.numpy() == [1.0]
    model = made(SPARSE)
    before = model.get_weights()
    with pytest.raises(TypeError):
        model.fit(X, LABELS, class_weight="balanced", verbose=0)
    assert all(np.array_equal(one, other) for one, other in zip(before, model.get_weights(), strict=True))


def test_class_weights_may_have_keys_and_values_of_numpy():
    model = made(SPARSE)
    weights = dict(zip(np.unique(LABELS), np.float32([1.0, 3.0]), strict=True))
    assert "loss" in model.fit(X, LABELS, class_weight=weights, verbose=0).history


def test_a_layer_made_in_call_is_warned_about_and_leaves_nothing_to_train():
    with pytest.warns(
        UserWarning, match=r"'lost' \(Dense\) made its weights in the `call` of 'm' \(Inside\), which does not hold"
    ):
        Inside(name="m")(X)
    model = Inside()
    model.compile("adam", "mse", run_eagerly=True)
    nothing_to_train = pytest.warns(UserWarning, match="make layers in `__init__` or `build`, not in `call`")
    with pytest.warns(UserWarning, match="keep it as an attribute"), nothing_to_train:
        model.fit(X, Y, verbose=0)


@pytest.mark.filterwarnings("error")
def test_noise_made_in_call_has_no_weights_to_lose():
    class Noisy(tf.keras.layers.Layer):
        def call(self, x, training=None):
            return tf.keras.layers.Dropout(0.5)(x, training=training)

    layer, x = Noisy(), tf.ones([8, 8])
    assert (layer(x, training=True) != layer(x, training=True)).numpy().any()


def test_only_layers_made_in_call_are_looked_for(monkeypatch):
    """Looking through a model for each layer that is built would take time quadratic in their number."""
    looked = []
    monkeypatch.setattr(layer_weights, "notice_unheld", lambda caller, layer: looked.append(layer.name))
    keras.Sequential([L.Dense(2) for _ in range(20)])(X)
    assert not looked
    Inside()(X)
    assert looked == ["lost"]


def test_layers_without_weights_may_be_made_in_call():
    class Plain(keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = {"head": [L.Dense(2)]}

        def call(self, x):
            return L.ReLU()(self.parts["head"][0](L.Concatenate()([x, x])))

    assert Plain()(X).shape == (8, 2)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power", "matmul", "less", "equal", "maximum"])
def test_an_operator_of_numpy_with_a_symbol_becomes_part_of_the_model(name):
    x, function = keras.Input((3,)), getattr(np, name)
    other = np.float32(np.arange(1, 10).reshape(3, 3)) if name == "matmul" else np.float32([1.0, 2.0, 3.0])
    if name == "maximum":
        with pytest.raises(TypeError, match=re.escape(SYMBOLIC)):
            function(x, other)
        return
    found = keras.Model(x, function(x, other)).predict(X * 2.0, verbose=0)
    np.testing.assert_allclose(found, function(X * 2.0, other), rtol=1e-6)


def test_a_softmax_over_one_unit_is_warned_about_in_keras_s_words():
    said = (
        r"You are using a softmax over axis -1 of a tensor of shape \(\.\.\., 1\). This axis has size 1.*use a sigmoid instead"
    )
    inputs = keras.Input((3,))
    for call in (
        lambda: keras.Sequential([keras.Input((3,)), L.Dense(1, activation="softmax")]),
        lambda: L.Dense(1, activation="softmax")(inputs),
        lambda: L.Dense(1, "softmax")(X),
        lambda: L.Softmax()(X[:, :1]),
        lambda: keras.ops.softmax(X[:, :1]),
    ):
        with pytest.warns(UserWarning, match=said):
            call()
    with pytest.warns(UserWarning, match=r"softmax over axis 1 of a tensor of shape \(\.\.\., 1, \.\.\.\)"):
        keras.activations.softmax(np.ones((2, 1, 3)), axis=1)
    L.Dense(1, "sigmoid")(X), L.Dense(2, "softmax")(X[:1]), tf.nn.softmax(X[:, :1])  # TensorFlow's says nothing


def test_sklearns_classifier_says_that_its_targets_are_one_hot():
    wrappers = pytest.importorskip("sklearn") and keras.wrappers

    def network(X, y, loss):
        model = keras.Sequential([keras.Input((3,)), L.Dense(2, "softmax")])
        model.compile("adam", loss)
        return model

    for loss in (SPARSE, keras.losses.SparseCategoricalCrossentropy()):
        with pytest.raises(
            ValueError, match="takes integers, but its targets are one-hot. Compile it with 'categorical_crossentropy'"
        ):
            wrappers.SKLearnClassifier(network, model_kwargs={"loss": loss}).fit(X, LABELS)
    assert wrappers.SKLearnClassifier(network, model_kwargs={"loss": "categorical_crossentropy"}).fit(X, LABELS).history_
