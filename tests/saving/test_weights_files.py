"""save_weights and load_weights: what fits is loaded, what does not is listed, and a failure changes nothing."""

import os

import numpy as np
import pytest
from h5_tree import tree

import minikeras as tf
from minikeras.errors import LoadError, NotFoundError, ShapeError
from minikeras.files import hdf5

pytest.importorskip("safetensors")
layers = tf.keras.layers
X = np.random.default_rng(0).standard_normal((8, 3)).astype("float32")
ENDINGS = ["m.weights.h5", "m.safetensors"]


def made(units=4, optimizer="adam", last=1):
    model = tf.keras.Sequential(
        [layers.Input((3,)), layers.Dense(units), layers.BatchNormalization(), layers.Dropout(0.5), layers.Dense(last)]
    )
    if optimizer:
        model.compile(optimizer, "mse")
    return model


def trained(**options):
    model = made(**options)
    model.fit(X, X[:, :1], epochs=2, verbose=0)
    return model


def state(model):
    optimizer = [] if model.optimizer is None else [variable.numpy() for variable in model.optimizer.variables]
    return [*model.get_weights(), *optimizer]


def same(first, second):
    return len(first) == len(second) and all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_optimizer_that_only_one_side_has_is_no_difference(tmp_path, ending):
    model = trained()
    model.save_weights(tmp_path / ending)
    other = made(optimizer=None)
    other.load_weights(tmp_path / ending)
    assert same(model.get_weights(), other.get_weights())
    other.save_weights(tmp_path / ("2" + ending))
    third = made()
    before = [variable.numpy() for variable in third.optimizer.variables]
    third.load_weights(tmp_path / ("2" + ending))
    assert same(model.get_weights(), third.get_weights())
    assert same(before, [variable.numpy() for variable in third.optimizer.variables])


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_does_not_fit_is_listed_and_nothing_changes(tmp_path, ending):
    trained().save_weights(tmp_path / ending)
    model = trained(units=5)
    before, slots = state(model), dict(model.optimizer.state.slots)
    with pytest.raises(ShapeError, match=r"nothing was changed") as caught:
        model.load_weights(tmp_path / ending)
    assert same(before, state(model)) and model.optimizer.state.slots == slots
    assert "(3, 4)" in str(caught.value) and "(3, 5)" in str(caught.value)


@pytest.mark.parametrize("ending", ENDINGS)
def test_parts_that_do_not_fit_can_be_left_out_with_a_warning(tmp_path, ending):
    model = trained()
    model.save_weights(tmp_path / ending)
    other = made(last=2, optimizer=None)
    with pytest.warns(UserWarning, match=r"parts of .* were left out.*\n  mis-shaped \(2\)") as caught:
        other.load_weights(tmp_path / ending, skip_mismatch=True)
    assert len(caught) == 1 and same(model.get_weights()[:6], other.get_weights()[:6])


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_rest_is_converted_as_if_all_did_fit(tmp_path, ending):
    wide = tf.keras.Sequential([layers.Input((3,)), layers.Dense(2, dtype="float64"), layers.Dense(1)])
    wide.save_weights(tmp_path / ending)
    other = tf.keras.Sequential([layers.Input((3,)), layers.Dense(2), layers.Dense(4)])
    with pytest.warns(UserWarning, match=r"mis-shaped \(2\)"):
        other.load_weights(tmp_path / ending, skip_mismatch=True)
    assert np.array_equal(other.get_weights()[0], wide.get_weights()[0].astype("float32"))


def test_a_layer_too_many_or_too_few_is_named(tmp_path):
    small = tf.keras.Sequential([layers.Input((3,)), layers.Dense(4)])
    large = tf.keras.Sequential([layers.Input((3,)), layers.Dense(4), layers.Dense(1)])
    small.save_weights(tmp_path / "small.weights.h5")
    large.save_weights(tmp_path / "large.weights.h5")
    with pytest.raises(ShapeError, match=r"not in the file \(2\):\n    layers/dense_1/vars/0 \(.*kernel\)"):
        large.load_weights(tmp_path / "small.weights.h5")
    with pytest.raises(ShapeError, match=r"nowhere to put \(2\):\n    layers/dense_1/vars/0"):
        small.load_weights(tmp_path / "large.weights.h5")


@pytest.mark.parametrize("ending", ENDINGS)
def test_floats_are_rounded_to_the_dtype_of_the_model(tmp_path, ending):
    model = tf.keras.Sequential([layers.Input((3,)), layers.Dense(2, dtype="float64")])
    model.save_weights(tmp_path / ending)
    for dtype in ("float32", "float16", "bfloat16"):
        other = tf.keras.Sequential([layers.Input((3,)), layers.Dense(2, dtype=dtype)])
        other.load_weights(tmp_path / ending)
        kernel = other.get_weights()[0]
        assert kernel.dtype.name == dtype and np.array_equal(kernel, model.get_weights()[0].astype(kernel.dtype))


@pytest.mark.parametrize("ending", ENDINGS)
def test_numbers_that_a_dtype_cannot_hold_are_refused_unless_a_cast_is_asked_for(tmp_path, ending):
    model = tf.keras.Sequential([layers.Input((3,)), layers.Dense(2)])
    model.set_weights([np.full((3, 2), 1e6, "float32"), np.array([np.inf, np.nan], "float32")])
    model.save_weights(tmp_path / ending)
    other = tf.keras.Sequential([layers.Input((3,)), layers.Dense(2, dtype="float16")])
    with pytest.raises(ShapeError, match=r"saved as float32, which float16 cannot hold"):
        other.load_weights(tmp_path / ending)
    with np.errstate(over="ignore"):
        other.load_weights(tmp_path / ending, cast=True)
    assert np.isinf(other.get_weights()[0]).all()


def test_names_missing_files_and_models_without_weights_are_explained(tmp_path):
    model = made()
    for name in ("m.h5", "m.npz", "m"):
        with pytest.raises(ValueError, match=r"must end in `.weights.h5` or `.safetensors`"):
            model.save_weights(tmp_path / name)
    with pytest.raises(ValueError, match="File format not supported"):
        model.load_weights(tmp_path / "m.npz")
    with pytest.raises(NotFoundError, match="there is no such file"):
        model.load_weights(tmp_path / "m.weights.h5")
    for absent in ("m.weights.h5", "m.keras", "m.h5", "m.safetensors"):  # scripts start anew with `except FileNotFoundError`
        with pytest.raises(FileNotFoundError, match=f"{absent}: there is no such file"):
            model.load_weights(tmp_path / absent)
    for kind in (FileNotFoundError, ValueError):  # as of Keras 2, and of Keras 3
        with pytest.raises(kind, match="there is no such file"):
            tf.keras.models.load_model(tmp_path / "m.keras")
    unbuilt = tf.keras.Sequential([layers.Dense(1)])
    with pytest.raises(ValueError, match="You are saving a model that has not yet been built"):
        unbuilt.save_weights(tmp_path / "m.weights.h5")
    with pytest.raises(ValueError, match="You are loading weights into a model that has not yet been built"):
        unbuilt.load_weights(tmp_path / "m.weights.h5")
    assert os.listdir(tmp_path) == []


def test_an_existing_file_is_replaced_unless_that_is_forbidden(tmp_path):
    model = made()
    model.save_weights(tmp_path / "m.weights.h5")
    model.save_weights(tmp_path / "m.weights.h5")
    with pytest.raises(FileExistsError, match="overwrite=False was given"):
        model.save_weights(tmp_path / "m.weights.h5", overwrite=False)


def test_layers_may_save_and_load_in_their_own_way(tmp_path):
    class Own(layers.Layer):
        fails = False

        def build(self, input_shape):
            self.w = self.add_weight((2,), name="w")

        def call(self, x):
            return x

        def save_own_variables(self, store):
            store["twice"] = self.w.numpy() * 2

        def load_own_variables(self, store):
            self.w.assign(store["twice"] / 2)
            if self.fails:
                raise RuntimeError("no")

    model = tf.keras.Sequential([layers.Input((3,)), layers.Dense(2), Own()])
    model.save_weights(tmp_path / "m.weights.h5")
    expected = model.get_weights()
    model.set_weights([w + 1 for w in expected])
    changed = model.get_weights()
    Own.fails = True
    with pytest.raises(RuntimeError, match="no"):
        model.load_weights(tmp_path / "m.weights.h5")
    assert same(changed, model.get_weights())
    Own.fails = False
    model.load_weights(tmp_path / "m.weights.h5")
    assert same(expected, model.get_weights())


def test_bfloat16_weights_come_back(tmp_path):
    pytest.importorskip("ml_dtypes")

    class Half(layers.Layer):
        def build(self, input_shape):
            self.w = self.add_weight((3,), "glorot_normal", dtype="bfloat16", name="w")

        def call(self, x):
            return x

    model = tf.keras.Sequential([layers.Input((3,)), Half()])
    expected = model.get_weights()[0]
    for ending in ENDINGS:
        model.save_weights(tmp_path / ending)
        model.set_weights([expected * 0])
        model.load_weights(tmp_path / ending)
        assert model.get_weights()[0].tobytes() == expected.tobytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_damaged_file_changes_nothing(tmp_path, ending):
    model = trained()
    model.save_weights(tmp_path / ending)
    content = (tmp_path / ending).read_bytes()
    model = trained()
    before = state(model)
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(content), 60):
        changed = bytearray(content)
        changed[position] ^= 1 << int(rng.integers(8))
        (tmp_path / ending).write_bytes(changed)
        try:
            model.load_weights(tmp_path / ending)
        except LoadError:
            assert same(before, state(model))
        else:  # the name of the digest was hit: then every number is right
            (tmp_path / ending).write_bytes(content)
            found = state(model)
            model.load_weights(tmp_path / ending)
            assert same(found, state(model))
            model.set_weights(before[: len(model.weights)])
            before = state(model)


def test_files_of_tensorflow_2_13_have_another_name_for_layers(tmp_path):
    model = made(optimizer=None)
    model.save_weights(tmp_path / "m.weights.h5")
    root = hdf5.read((tmp_path / "m.weights.h5").read_bytes(), "m")
    node = tree({one.path[1:].replace("layers", "_layer_checkpoint_dependencies"): one.array for one in root.datasets()})
    (tmp_path / "old.weights.h5").write_bytes(hdf5.encode(node))
    other = made(optimizer=None)
    other.load_weights(tmp_path / "old.weights.h5")
    assert same(model.get_weights(), other.get_weights())
