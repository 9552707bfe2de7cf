"""Files that real Keras wrote: they load, predict what they did there, and go on training."""

import json
import pathlib

import numpy as np
import pytest

import minikeras as tf

FILES = pathlib.Path(__file__).parent.parent / "golden" / "files"
FACTS = json.loads((FILES / "files.json").read_text())
layers = tf.keras.layers
NEAR = {"rtol": 2e-5, "atol": 1e-6}


class Block(layers.Layer):
    def __init__(self, units, **options):
        super().__init__(**options)
        self.fc, self.bn = layers.Dense(units, activation="relu"), layers.BatchNormalization()

    def build(self, input_shape):
        self.scale = self.add_weight((), "ones", name="scale")
        self.fc.build(input_shape)
        self.bn.build((input_shape[0], self.fc.units))

    def call(self, x, training=False):
        return self.bn(self.fc(x), training=training) * self.scale


class Subclassed(tf.keras.Model):
    """What `attributes` in files.json describes."""

    def __init__(self):
        super().__init__()
        self.blocks = [Block(5), Block(4)]
        self.heads = {"a": layers.Dense(1), "b": layers.Dense(2)}
        self.emb = layers.Dense(3, name="custom_name")
        self.drop = layers.Dropout(0.1)

    def call(self, x, training=False):
        x = self.emb(x)
        for block in self.blocks:
            x = block(x, training=training)
        x = self.drop(x, training=training)
        return {name: head(x) for name, head in self.heads.items()}


def sequential():
    return tf.keras.Sequential(
        [
            layers.Input((4,)),
            layers.Dense(6, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.2),
            layers.Dense(1),
        ]
    )


def inputs(name):
    return np.array(FACTS[name]["inputs"], "float32")


@pytest.mark.parametrize("file", ["sequential.keras", "sequential_legacy.h5"])
def test_whole_models_predict_what_they_did_in_keras(file):
    model = tf.keras.models.load_model(FILES / file)
    np.testing.assert_allclose(model.predict(inputs("sequential"), verbose=0), FACTS["sequential"]["outputs"], **NEAR)
    facts = FACTS["sequential"]
    for variable, expected in zip(model.weights, facts["weights"], strict=True):
        np.testing.assert_allclose(variable.numpy(), expected, **NEAR)


@pytest.mark.parametrize("file", ["sequential.keras", "sequential_legacy.h5"])
def test_whole_models_are_compiled_with_the_state_of_their_optimizer(file):
    model = tf.keras.models.load_model(FILES / file)
    assert type(model.optimizer) is tf.keras.optimizers.Adam and int(model.optimizer.iterations) > 0
    assert any(np.any(variable.numpy()) for variable in model.optimizer.variables[2:])
    x = inputs("sequential")
    loss, error = model.evaluate(x, np.zeros((len(x), 1), "float32"), verbose=0)
    assert loss >= 0 and error >= 0
    model.fit(x, np.zeros((len(x), 1), "float32"), verbose=0)
    assert tf.keras.models.load_model(FILES / file, compile=False).optimizer is None


@pytest.mark.parametrize("file", ["sequential.weights.h5", "sequential.keras", "sequential_legacy.h5"])
def test_weights_go_into_a_model_of_the_same_structure(file):
    model = sequential()
    model.load_weights(FILES / file)
    np.testing.assert_allclose(model.predict(inputs("sequential"), verbose=0), FACTS["sequential"]["outputs"], **NEAR)


def test_weights_of_a_subclassed_model_go_by_its_attributes():
    model = Subclassed()
    model(inputs("subclassed"))
    model.compile("rmsprop", "mse")
    model.load_weights(FILES / "subclassed.weights.h5")
    found = model.predict(inputs("subclassed"), verbose=0)
    for name, expected in FACTS["subclassed"]["outputs"].items():
        np.testing.assert_allclose(found[name], expected, **NEAR)
    assert len(model.optimizer.variables) == 18 and int(model.optimizer.iterations) > 0


def test_what_is_written_here_has_the_tree_that_keras_writes(tmp_path):
    from minikeras.files import hdf5

    for name, file in (("sequential", "sequential.weights.h5"), ("subclassed", "subclassed.weights.h5")):
        model = sequential() if name == "sequential" else Subclassed()
        model(inputs(name))
        model.compile("adam" if name == "sequential" else "rmsprop", "mse")
        model.load_weights(FILES / file)
        model.save_weights(tmp_path / file)
        ours, keras = (hdf5.read(path.read_bytes(), path) for path in (tmp_path / file, FILES / file))
        assert {one.path for one in ours.datasets()} == {one.path for one in keras.datasets()}
        for one in keras.datasets():
            assert np.array_equal(ours.get(one.path.lstrip("/")).array, one.array), one.path


def test_a_legacy_file_can_be_matched_by_the_names_of_layers():
    model = tf.keras.Sequential([layers.Input((6,)), layers.Dense(2, name="other"), layers.Dense(1, name="dense_1")])
    with pytest.raises(ValueError, match=r"'.*sequential_legacy.h5' does not fit"):
        model.load_weights(FILES / "sequential_legacy.h5", by_name=True)
    model = tf.keras.Sequential([layers.Input((6,)), layers.Dense(1, name="dense_1")])
    with pytest.raises(ValueError, match="Layer count mismatch"):
        model.load_weights(FILES / "sequential_legacy.h5")
    model.load_weights(FILES / "sequential_legacy.h5", by_name=True)
    assert np.array_equal(model.get_weights()[0], tf.keras.models.load_model(FILES / "sequential_legacy.h5").get_weights()[-2])


def test_two_layers_of_one_name_both_take_the_weights_of_a_legacy_file():
    class Twins(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.second = layers.Dense(1, name="dense_1"), layers.Dense(1, name="dense_1")

        def call(self, x):
            return self.first(x) + self.second(x)

    model = Twins()
    model(np.zeros((1, 6), "float32"))
    model.load_weights(FILES / "sequential_legacy.h5", by_name=True)
    expected = tf.keras.models.load_model(FILES / "sequential_legacy.h5").get_weights()[-2]
    assert np.array_equal(model.first.kernel, expected) and np.array_equal(model.second.kernel, expected)
