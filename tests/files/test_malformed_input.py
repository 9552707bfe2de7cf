"""Input that other readers take, or stumble over, is refused with our error."""

import json
import os

import numpy as np
import pytest

import minikeras as tf
from minikeras import files as reading
from minikeras.errors import LoadError
from minikeras.files import strict_json, tensors

pytest.importorskip("safetensors")


def written(path, header, data=b""):
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def entry(dtype="U8", shape=(1,), size=1):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [0, size]}


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"\\uDC00": 1}', '["x\\ud83d", 1]'])
def test_half_of_a_character_is_no_json(text):
    with pytest.raises(LoadError, match="damaged JSON"):
        strict_json.loads(text.encode(), "f")
    assert strict_json.loads(b'["\\ud83d\\ude00", "\\\\ud800"]', "f") == ["\U0001f600", "\\ud800"]


def test_half_of_a_character_in_metadata_is_refused(tmp_path):
    text = b'{"__metadata__": {"a": "\\ud800"}}'
    (tmp_path / "x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b" " * 0)
    with pytest.raises(LoadError, match=r"x\.safetensors: "):
        tensors.load(tmp_path / "x.safetensors")


@pytest.mark.parametrize("name", ["../x", "/x", "a/../b", "a\\b", ".."])
def test_names_that_could_leave_a_folder_are_refused(tmp_path, name):
    with pytest.raises(LoadError, match="would leave its folder"):
        tensors.load(written(tmp_path / "x.safetensors", {name: entry()}, b"\0"))


def test_truth_values_are_0_or_1(tmp_path):
    assert tensors.load(written(tmp_path / "x.safetensors", {"a": entry("BOOL")}, b"\1"))[0]["a"].all()
    with pytest.raises(LoadError, match="truth values are 0 or 1"):
        tensors.load(written(tmp_path / "x.safetensors", {"a": entry("BOOL")}, b"\2"))


@pytest.mark.skipif(os.name != "posix", reason="files with holes")
def test_a_file_of_holes_that_is_larger_than_the_memory_is_refused(tmp_path):
    size = 1 << 43
    path = written(tmp_path / "x.safetensors", {"a": entry(shape=(size,), size=size)})
    try:
        os.truncate(path, path.stat().st_size + size)
    except OSError:
        pytest.skip("this file system has no such large files")
    for read in (tensors.load, reading.read_file):
        with pytest.raises(LoadError, match="more than the memory"):
            read(path)


@pytest.mark.parametrize("values", [[], None, 3, {}, {"format": 1}, {"format": 1, "position": {}, "streams": []}])
def test_a_state_of_training_of_another_form_is_refused(tmp_path, values):
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones((4, 2), "float32"), np.ones((4, 1), "float32")
    tf.keras.callbacks.BackupAndRestore(tmp_path, delete_checkpoint=False)
    model.fit(x, y, verbose=0, callbacks=[tf.keras.callbacks.BackupAndRestore(tmp_path, delete_checkpoint=False)])
    (path,) = tmp_path.iterdir()
    arrays, metadata = tensors.load(path)
    (name,) = metadata
    tensors.save(path, arrays, {name: json.dumps(values)})
    before = model.get_weights()
    with pytest.raises(ValueError, match="state of training|must be a JSON object|damaged"):
        model.fit(x, y, epochs=2, verbose=0, callbacks=[tf.keras.callbacks.BackupAndRestore(tmp_path)])
    assert all((a == b).all() for a, b in zip(before, model.get_weights(), strict=True))


def test_what_is_written_to_an_array_later_does_not_reach_a_dataset():
    a, b = np.arange(4.0), np.arange(4)
    b.flags.writeable = False
    dataset = tf.data.Dataset.from_tensor_slices((a, {"b": b}))
    a[:] = -1.0
    assert [(float(x), int(y["b"])) for x, y in dataset] == [(0.0, 0), (1.0, 1), (2.0, 2), (3.0, 3)]
