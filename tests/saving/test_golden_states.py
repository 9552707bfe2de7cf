"""Files of every kind that earlier versions of this package wrote: they load, and training goes on from them."""

import json
import pathlib
import shutil
import sys

import numpy as np
import pytest

import minikeras as tf
from minikeras.nn_ops import streams

pytest.importorskip("safetensors")
GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))
import make_states as states  # noqa: E402

sys.path.remove(str(GOLDEN))
FACTS = json.loads((states.FOLDER / "states.json").read_text())
NAMES = sorted(FACTS)


@pytest.fixture(autouse=True)
def random_state_stays():
    before, drawn = streams.states(), np.random.get_state()
    yield
    streams.set_states(before)
    np.random.set_state(drawn)


def other(name):
    """The model in another state: weights and random state are not those of the file."""
    tf.keras.utils.clear_session()
    tf.keras.utils.set_random_seed(77)
    model = states.made(name)
    model.fit(states.X, states.Y, batch_size=6, epochs=1, verbose=0)
    return model


def check(model, name, random_state=True):
    """All numbers are those that were saved, and the next step is as it was; Keras's files hold no random state."""
    found, expected = states.facts(model), FACTS[name]
    for variable, array, value in zip(model.variables, found["weights"], expected["weights"], strict=True):
        if random_state or "seed" not in variable.name:
            np.testing.assert_array_equal(array, value, err_msg=variable.path)
    for array, value in zip(found["optimizer"], expected["optimizer"], strict=True):
        np.testing.assert_array_equal(array, value)
    np.testing.assert_allclose(found["prediction"], expected["prediction"], rtol=1e-5, atol=1e-6)
    if random_state:
        assert found["loss"] == pytest.approx(expected["loss"], rel=1e-5)


@pytest.mark.parametrize("make", [states.made, other])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", [".weights.h5", ".safetensors"])
def test_weights_of_earlier_versions(name, ending, make):
    model = make(name)
    model.load_weights(states.FOLDER / f"{name}{ending}")
    check(model, name, ending == ".safetensors")


def test_a_whole_model_of_an_earlier_version():
    check(tf.keras.models.load_model(states.FOLDER / "chain.keras"), "chain", False)


@pytest.mark.parametrize("make", [states.made, other])
@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_of_an_earlier_version(name, make):
    model = make(name)
    checkpoint = states.checkpoint_of(model)
    before = checkpoint.rng.normal((2,)).numpy()
    checkpoint.extra["values"][0].assign([0.0, 0.0])
    checkpoint.extra["values"][1].assign(0)
    checkpoint.read(states.FOLDER / f"{name}_checkpoint").assert_consumed()
    check(model, name)
    np.testing.assert_array_equal(checkpoint.extra["same"].numpy(), [1.0, 2.0])
    assert int(checkpoint.extra["values"][1]) == 3
    np.testing.assert_array_equal(checkpoint.rng.normal((2,)).numpy(), before)
    if name == "net":
        expected = tf.random.Generator.from_seed(7)
        expected.normal((3,))
        np.testing.assert_array_equal(model.noise.normal((2,)).numpy(), expected.normal((2,)).numpy())


@pytest.mark.parametrize("name", NAMES)
def test_training_goes_on_from_a_backup_of_an_earlier_version(name, tmp_path):
    shutil.copytree(states.FOLDER / f"{name}_backup", tmp_path / "backup")
    backup = tf.keras.callbacks.BackupAndRestore(tmp_path / "backup")
    tf.keras.utils.clear_session()
    tf.keras.utils.set_random_seed(99)
    model, interrupt = states.made(name), states.Interrupt()
    interrupt.after = None
    model.fit(states.X, states.Y, batch_size=4, epochs=2, verbose=0, callbacks=[interrupt, backup])
    for variable, value in zip(model.variables, FACTS[name]["weights"], strict=True):
        np.testing.assert_allclose(variable.numpy(), value, rtol=1e-5, atol=1e-6, err_msg=variable.path)
    for variable, value in zip(model.optimizer.variables, FACTS[name]["optimizer"], strict=True):
        np.testing.assert_allclose(variable.numpy(), value, rtol=1e-5, atol=1e-6)
