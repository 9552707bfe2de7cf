"""Layers, losses, metrics and optimizers that save and load in ways of their own, as Keras calls them."""

import os
import zipfile

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import LoadError
from minikeras.files import archive

layers = tf.keras.layers


class Counting(layers.Layer):
    """State that is no weight, in the file of weights and beside it."""

    def __init__(self, **options):
        super().__init__(**options)
        self.words, self.number = [], 0

    def build(self, shape):
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

    def call(self, x):
        return x * self.scale

    def save_own_variables(self, store):
        super().save_own_variables(store)
        store["number"] = np.array(self.number)

    def load_own_variables(self, store):
        self.number = int(store.pop("number"))
        super().load_own_variables(store)

    def save_assets(self, folder):
        os.makedirs(os.path.join(folder, "deep"))
        with open(os.path.join(folder, "deep", "words.txt"), "w") as stream:
            stream.write(" ".join(self.words))

    def load_assets(self, folder):
        with open(os.path.join(folder, "deep", "words.txt")) as stream:
            self.words = stream.read().split()


class Remembering(tf.keras.losses.Loss):
    seen = 0

    def call(self, y_true, y_pred):
        return tf.reduce_mean(tf.square(y_true - y_pred), -1)

    def save_own_variables(self, store):
        store["seen"] = np.array(self.seen)

    def load_own_variables(self, store):
        self.seen = int(store["seen"])


class OwnAdam(tf.keras.optimizers.Adam):
    note = 0

    def save_own_variables(self, store):
        super().save_own_variables(store)
        store["note"] = np.array(self.note)

    def load_own_variables(self, store):
        self.note = int(store.pop("note"))
        super().load_own_variables(store)


KNOWN = {kind.__name__: kind for kind in (Counting, Remembering, OwnAdam)}


def made():
    model = tf.keras.Sequential([layers.Input((2,)), Counting(name="own"), layers.Dense(1)])
    model.compile(OwnAdam(0.1), Remembering())
    return model


def filled():
    model = made()
    model.layers[0].words, model.layers[0].number, model.loss.seen, model.optimizer.note = ["a", "b"], 7, 5, 3
    return model


@pytest.fixture
def path(tmp_path):
    filled().save(tmp_path / "m.keras")
    return tmp_path / "m.keras"


def test_state_of_ones_own_comes_back_from_whole_models(path):
    model = tf.keras.models.load_model(path, KNOWN)
    assert (model.layers[0].number, model.layers[0].words) == (7, ["a", "b"])
    assert (model.loss.seen, model.optimizer.note) == (5, 3)


def test_an_optimizer_of_ones_own_comes_back_trained(tmp_path):
    model = filled()
    model.fit(np.ones((4, 2), "float32"), np.ones((4, 1), "float32"), verbose=0)
    model.save(tmp_path / "m.keras")
    loaded = tf.keras.models.load_model(tmp_path / "m.keras", KNOWN)
    assert loaded.optimizer.note == 3
    for mine, its in zip(model.optimizer.variables, loaded.optimizer.variables, strict=True):
        assert np.array_equal(mine, its)


def test_state_of_ones_own_comes_back_from_weights_without_the_assets(tmp_path):
    filled().save_weights(tmp_path / "m.weights.h5")
    model = made()
    model.load_weights(tmp_path / "m.weights.h5")
    assert (model.layers[0].number, model.layers[0].words, model.loss.seen, model.optimizer.note) == (7, [], 5, 3)


def test_assets_lie_where_keras_puts_them(path):
    with zipfile.ZipFile(path) as file:
        assert file.read("assets/layers/counting/deep/words.txt") == b"a b"


@pytest.mark.parametrize("name", ["..", "x/../../y", "/x", "deep", "a\\b"])
def test_an_asset_cannot_leave_its_folder(path, tmp_path, name):
    with zipfile.ZipFile(path) as file:
        members = {one: file.read(one) for one in file.namelist()}
    path.write_bytes(archive.encode({**members, f"assets/layers/counting/{name}": b"x"}))
    with pytest.raises(LoadError, match="m.keras: "):
        tf.keras.models.load_model(path, KNOWN)
    assert sorted(os.listdir(tmp_path)) == ["m.keras"]


def test_assets_that_are_missing_are_an_error_of_the_file(path):
    with zipfile.ZipFile(path) as file:
        members = {one: file.read(one) for one in file.namelist() if not one.startswith("assets/")}
    path.write_bytes(archive.encode(members))
    with pytest.raises(LoadError, match="load_assets raised FileNotFoundError"):
        tf.keras.models.load_model(path, KNOWN)


def test_a_layer_has_the_methods_that_keras_documents():
    layer, store = layers.Dense(2), {}
    with pytest.raises(ValueError, match="was expecting 0 variables, but received 1 variables during loading"):
        layer.load_own_variables({"0": np.zeros(2)})
    layer.build((None, 3))
    layer.save_own_variables(store)
    other = layers.Dense(2)
    other.build((None, 3))
    other.load_own_variables(store)
    assert all((a == b).all() for a, b in zip(layer.get_weights(), other.get_weights(), strict=True))
