"""Whole models in `.keras` files: what comes back, and what a hostile file can not do."""

import io
import json
import zipfile

import numpy as np
import pytest
from audit import audited
from h5_tree import tree

import minikeras as tf
from minikeras.errors import LoadError, NotFoundError, UnknownObjectError
from minikeras.files import archive, hdf5

layers = tf.keras.layers
X = np.random.default_rng(0).standard_normal((8, 3)).astype("float32")


def made():
    model = tf.keras.Sequential([layers.Input((3,)), layers.Dense(4, activation="relu"), layers.Dense(1)], name="net")
    model.compile(tf.keras.optimizers.Adam(0.1), "mse", metrics=["mae"])
    return model


def members(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def rewritten(path, change):
    """The file with another configuration."""
    parts = members(path)
    config = json.loads(parts["config.json"])
    config = change(config) or config
    parts["config.json"] = json.dumps(config).encode()
    path.write_bytes(archive.encode(parts))
    return path


@pytest.fixture
def path(tmp_path):
    model = made()
    model.fit(X, X[:, :1], verbose=0)
    model.save(tmp_path / "m.keras")
    return tmp_path / "m.keras"


def test_a_model_comes_back_with_everything_and_trains_on_alike(tmp_path):
    model = made()
    model.fit(X, X[:, :1], epochs=3, verbose=0, shuffle=False)
    model.optimizer.learning_rate = 0.03
    model.save(tmp_path / "m.keras")
    loaded = tf.keras.models.load_model(tmp_path / "m.keras")
    assert loaded.name == "net" and type(loaded) is type(model)
    histories = [one.fit(X, X[:, :1], epochs=3, verbose=0, shuffle=False).history for one in (model, loaded)]
    assert histories[0] == histories[1]
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), loaded.get_weights(), strict=True))


@pytest.mark.parametrize("form", ["sequential", "functional"])
def test_models_side_by_side_in_one_model_all_come_back(tmp_path, form):
    def inner():
        x = layers.Input((3,))
        return tf.keras.Sequential([x, layers.Dense(3)]) if form == "sequential" else tf.keras.Model(x, layers.Dense(3)(x))

    model = tf.keras.Sequential([layers.Input((3,)), inner(), inner(), inner()])
    model.save(tmp_path / "m.keras")
    loaded = tf.keras.models.load_model(tmp_path / "m.keras")
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), loaded.get_weights(), strict=True))
    assert len(list(hdf5.read(members(tmp_path / "m.keras")["model.weights.h5"], "m").datasets())) == 6


def test_the_file_has_the_members_of_keras_stored_and_not_compressed(path):
    with zipfile.ZipFile(path) as file:
        assert file.namelist() == ["metadata.json", "config.json", "model.weights.h5"]
        assert all(member.compress_type == zipfile.ZIP_STORED for member in file.infolist())
        assert set(json.loads(file.read("metadata.json"))) == {"keras_version", "date_saved"}


def test_subclasses_come_back_if_they_are_registered(tmp_path):
    class Twin(tf.keras.Model):
        def __init__(self, units, **options):
            super().__init__(**options)
            self.units, self.dense = units, layers.Dense(units)

        def build(self, input_shape):
            self.dense.build(input_shape)

        def call(self, x):
            return self.dense(x)

        def get_config(self):
            return {**super().get_config(), "units": self.units}

    model = Twin(2)
    expected = model.predict(X, verbose=0)
    model.save(tmp_path / "m.keras")
    with pytest.raises(UnknownObjectError, match="Twin"):
        tf.keras.models.load_model(tmp_path / "m.keras")
    loaded = tf.keras.models.load_model(tmp_path / "m.keras", custom_objects={"Twin": Twin})
    assert np.array_equal(loaded.predict(X, verbose=0), expected)


def test_layers_with_a_build_configuration_of_their_own_come_back_in_every_kind_of_model(tmp_path):
    @tf.keras.saving.register_keras_serializable("tests")
    class Sized(tf.keras.layers.Layer):
        size = 2

        def build(self, input_shape):
            self.table = self.add_weight((self.size,), name="table")

        def call(self, x):
            return x * tf.reduce_sum(self.table)

        def get_build_config(self):
            return {"size": self.size, "of": (1, 2)}

        def build_from_config(self, config):
            self.size = config["size"]
            self.build(None)

    def sized():
        layer = Sized()
        layer.size = 7
        return layer

    inputs = tf.keras.Input((2,))
    called = tf.keras.Sequential([sized(), tf.keras.layers.Dense(1)])
    called(tf.ones([1, 2]))
    known = tf.keras.Sequential([inputs, sized()])
    for model in (known, called, tf.keras.Model(inputs, sized()(inputs)), tf.keras.Sequential([inputs, known])):
        model.save(tmp_path / "m.keras")
        loaded = tf.keras.models.load_model(tmp_path / "m.keras")
        assert all((a == b).all() for a, b in zip(loaded.get_weights(), model.get_weights(), strict=True))


def test_a_random_stream_in_a_configuration_comes_back(tmp_path):
    @tf.keras.saving.register_keras_serializable("tests")
    class Noise(tf.keras.layers.Layer):
        def __init__(self, stream, **options):
            super().__init__(**options)
            self.stream = stream

        def call(self, x):
            return x + tf.keras.random.normal((1,), seed=self.stream)

        def get_config(self):
            return super().get_config() | {"stream": self.stream}

        @classmethod
        def from_config(cls, config):
            return cls(**{name: tf.keras.saving.deserialize_keras_object(value) for name, value in config.items()})

    written = tf.keras.saving.serialize_keras_object(tf.keras.random.SeedGenerator(3))
    assert (written["module"], written["registered_name"]) == ("keras.random", None)  # as Keras writes it
    model = tf.keras.Sequential([tf.keras.Input((2,)), Noise(tf.keras.random.SeedGenerator(3))])
    model.save(tmp_path / "m.keras")
    loaded = tf.keras.models.load_model(tmp_path / "m.keras")
    assert (loaded(tf.ones([1, 2])).numpy() == model(tf.ones([1, 2])).numpy()).all()


def test_a_loss_without_a_description_costs_only_the_compilation(tmp_path):
    model = tf.keras.Sequential([layers.Input((3,)), layers.Dense(1)])
    model.compile("sgd", lambda y, p: tf.reduce_mean(tf.square(y - p)))
    with pytest.warns(UserWarning, match="How the model was compiled cannot be saved"):
        model.save(tmp_path / "m.keras")
    loaded = tf.keras.models.load_model(tmp_path / "m.keras")
    assert not loaded.compiled and np.array_equal(loaded.get_weights()[0], model.get_weights()[0])


def test_mixed_precision_comes_back(tmp_path):
    model = tf.keras.Sequential([layers.Input((3,)), layers.Dense(4, dtype="mixed_float16"), layers.Dense(1, dtype="float32")])
    model.save(tmp_path / "m.keras")
    loaded = tf.keras.models.load_model(tmp_path / "m.keras")
    assert loaded.layers[0].dtype_policy.name == "mixed_float16"
    assert np.array_equal(loaded.predict(X, verbose=0), model.predict(X, verbose=0))


def test_a_model_that_is_not_built_is_saved_without_weights(tmp_path):
    model = tf.keras.Sequential([layers.Dense(1)])
    model.save(tmp_path / "m.keras")
    assert not tf.keras.models.load_model(tmp_path / "m.keras").built


def test_names_and_options_that_are_not_available_are_explained(tmp_path, path):
    model = made()
    with pytest.raises(ValueError, match="is read, not written"):
        model.save(tmp_path / "m.h5")
    model.save(tmp_path / "m.keras", save_format="keras")
    with pytest.raises(ValueError, match="found save_format='tf'; leave it out"):
        model.save(tmp_path / "m.keras", save_format="tf")
    with pytest.raises(ValueError, match="Invalid filepath extension"):
        model.save(tmp_path / "m")
    with pytest.raises(ValueError, match="leave out zipped=False"):
        model.save(path, zipped=False)
    with pytest.raises(FileExistsError):
        model.save(path, overwrite=False)
    with pytest.raises(NotFoundError):
        tf.keras.models.load_model(tmp_path / "missing.keras")
    with pytest.raises(ValueError, match="safe_mode=False is not available"):
        tf.keras.models.load_model(path, safe_mode=False)
    (tmp_path / "notes.keras").write_bytes(b"hello")
    with pytest.raises(LoadError, match="damaged ZIP archive"):
        tf.keras.models.load_model(tmp_path / "notes.keras")


# Hostile files -----------------------------------------------------------------------------------------------------------


def layer(config, number=1):
    return config["config"]["layers"][number]


def _set(target, **values):
    target.update(values)


HOSTILE = {
    "a class of another module": lambda c: _set(layer(c), module="os", class_name="system", registered_name=None),
    "a class by a registered name": lambda c: _set(layer(c), module="subprocess", class_name="Popen", registered_name="Popen"),
    "a function of the standard library": lambda c: _set(
        layer(c)["config"],
        activation={"module": "os", "class_name": "function", "config": "system", "registered_name": "system"},
    ),
    "a lambda": lambda c: _set(
        layer(c), class_name="Lambda", config={"function": {"class_name": "__lambda__", "config": {"code": "4wEAAA=="}}}
    ),
    "a private name": lambda c: _set(layer(c), module="keras.layers", class_name="__init__"),
    "a layer that is no layer": lambda c: _set(layer(c), class_name="Adam", module="keras.optimizers"),
    "a list for a layer": lambda c: c["config"]["layers"].__setitem__(1, [1, 2]),
    "units that need terabytes": lambda c: _set(layer(c)["config"], units=10**12),
    "units that are too many for the file": lambda c: _set(layer(c)["config"], units=10**6),
    "negative units": lambda c: _set(layer(c)["config"], units=-4),
    "units that are a text": lambda c: _set(layer(c)["config"], units="4"),
    "an input of terabytes": lambda c: _set(layer(c, 0)["config"], batch_shape=[None, 10**7, 10**7]),
    "a layer less": lambda c: c["config"]["layers"].pop(),
    "a layer more": lambda c: c["config"]["layers"].append({**layer(c), "config": {**layer(c)["config"], "name": "more"}}),
    "an unknown option": lambda c: _set(layer(c)["config"], surprise=1),
    "an optimizer of another module": lambda c: _set(
        c["compile_config"], optimizer={"class_name": "system", "module": "os", "config": {}}
    ),
    "no class": lambda c: {"config": {}},
    "a list": lambda c: [c],
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_configurations_that_ask_for_anything_else_are_refused_and_nothing_is_run(path, change):
    rewritten(path, change)
    load_model = tf.keras.models.load_model  # imported before the watch begins
    with audited() as seen, pytest.raises(LoadError) as caught:
        load_model(path)
    assert "m.keras" in str(caught.value) or "m.keras" in str(caught.value.__cause__ or "")
    outside = [(event, name) for event, name in seen if not name.startswith(str(path.parent))]
    assert [event for event, _ in outside if event not in ("import", "compile", "exec", "open")] == []
    assert not [name for event, name in outside if event == "import" and not name.startswith(("minikeras", "zipfile", "numpy"))]


def test_a_file_that_unfolds_too_far_is_refused_unless_the_limit_is_raised(path):
    parts = members(path)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
        file.writestr("assets/zeros", bytes(70 << 20))
    path.write_bytes(buffer.getvalue())
    with pytest.raises(LoadError, match=r"unfolds to \d+ bytes, at most 67108864 are allowed"):
        tf.keras.models.load_model(path)
    tf.keras.models.load_model(path, max_bytes=80 << 20)


def test_weights_in_other_places_are_listed(path):
    parts = members(path)
    root = hdf5.read(parts["model.weights.h5"], "w")
    node = tree({one.path[1:].replace("dense_1", "other"): one.array for one in root.datasets()})
    path.write_bytes(archive.encode({**parts, "model.weights.h5": hdf5.encode(node)}))
    with pytest.raises(ValueError, match=r"(?s)not in the file \(2\).*nowhere to put \(2\)"):
        tf.keras.models.load_model(path)


def test_flipped_bits_and_truncations_are_refused(path):
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    expected = tf.keras.models.load_model(path).get_weights()
    for position in rng.integers(0, len(content), 100):
        for changed in (content[:position] + bytes([content[position] ^ (1 << int(rng.integers(8)))]) + content[position + 1 :],
                        content[:position]):  # fmt: skip
            path.write_bytes(changed)
            try:
                found = tf.keras.models.load_model(path).get_weights()
            except LoadError:
                continue
            assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_a_file_without_the_second_of_two_sequentials_is_refused(tmp_path, monkeypatch):
    """Older files of a Sequential that holds several lack their weights."""
    from minikeras.keras.saving import model_files

    inner = [tf.keras.Sequential([tf.keras.layers.Dense(4)]) for _ in range(2)]
    model, places = tf.keras.Sequential([tf.keras.Input((4,)), *inner]), model_files.places
    with monkeypatch.context() as old:
        old.setattr(
            model_files, "places", lambda m: [one for one in places(m) if not one.path.startswith("layers/sequential_1")]
        )
        model.save(tmp_path / "m.keras")
        model.save_weights(tmp_path / "m.weights.h5")
    missing = r"(?s)not in the file \(2\):\n    layers/sequential_1/layers/dense/vars/0 .*skip_mismatch=True leaves out"
    with pytest.raises(tf.errors.LoadError, match=missing):
        tf.keras.models.load_model(tmp_path / "m.keras")
    with pytest.raises(tf.errors.ShapeError, match=missing):
        model.load_weights(tmp_path / "m.weights.h5")
