"""Keras's other data sets, on small files in their formats: what comes out is what Keras makes of the same files."""

import hashlib
import io
import json
import pickle
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from minikeras.errors import DatasetUnavailableError, InvalidArgumentError, LoadError
from minikeras.keras import datasets
from minikeras.keras.datasets import catalogue as catalogue
from minikeras.keras.datasets import cifar10, cifar100, images, tables, texts
from minikeras.keras.datasets.texts import parse_object_lists

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "datasets.json").read_text())
NAMES = ("boston_housing", "california_housing", "cifar10", "cifar100", "imdb", "reuters")


def object_file(rows, protocol=2):
    """An .npy file of an array of objects."""
    array = np.empty(len(rows), object)
    array[:] = rows
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|O", "fortran_order": False, "shape": array.shape})
    return header.getvalue() + pickle.dumps(array, protocol=protocol)


def npz(**arrays):
    """An .npz file; lists become arrays of objects."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in arrays.items():
            plain = io.BytesIO()
            if isinstance(array, np.ndarray):
                np.lib.format.write_array(plain, array)
            archive.writestr(f"{name}.npy", plain.getvalue() or object_file(array))
    return content.getvalue()


@pytest.fixture
def known(monkeypatch, tmp_path):
    """Have a loader know another file, which lies in a directory of its own; the path of that."""

    def know(name, content):
        module = next(module for module in (images, tables, texts) if hasattr(module, name))
        (form,) = catalogue.forms_of(name)
        file = form.files[0]._replace(size=len(content), sha256=hashlib.sha256(content).hexdigest())
        monkeypatch.setattr(module, name.upper(), form._replace(files=(file,)))
        (tmp_path / file.name).write_bytes(content)
        return tmp_path

    return know


def listed(parts):
    return [[x.tolist(), y.tolist()] for x, y in parts]


@pytest.mark.parametrize("number", range(len(GOLDEN["options"])))
@pytest.mark.parametrize(("name", "texts"), [("imdb", "films"), ("reuters", "news")])
def test_texts_are_shuffled_marked_and_limited_as_by_keras(known, name, texts, number):
    arrays = {key: np.array(part) if key[0] == "y" else part for key, part in GOLDEN[texts].items()}
    path = known(name, npz(**arrays))
    found = getattr(datasets, name).load_data(path, **GOLDEN["options"][number])
    assert listed(found) == GOLDEN[name][number]
    assert found[0][0].dtype == object and found[0][1].dtype == np.int64


def test_long_texts_and_large_numbers_are_read_from_every_form_of_the_file():
    rows = [[0, 255, 256, 65535, 65536, -1, 2**31, 2**40], [], [7], list(range(2500)), *([n] for n in range(3000))]
    for protocol in (2, 3):
        assert parse_object_lists(object_file(rows, protocol), "x") == rows


class Harmful:
    """What calls a function when it is unpickled."""

    def __reduce__(self):
        return print, ("called",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        object_file([[1, 2]])[:-5],
        object_file([[1, "x"]]),
        object_file([[1, True]]),
        object_file([{"a": 1}]),
        object_file([Harmful()]),
        object_file([[1], (2,)]),
        object_file([[1]]).replace(b"|O", b"<i"),
        object_file([[1]])[:128] + b"\x80\x02K\x05.",
        object_file([[1]])[:128] + pickle.dumps(Harmful(), 2),
        object_file([[1]])[:128] + b"\x80\x02qq.",
    ],
)
def test_anything_but_lists_of_ints_is_refused_and_nothing_is_called(content, capsys):
    with pytest.raises(LoadError, match="x: not an array of lists of ints"):
        parse_object_lists(content, "x")
    assert capsys.readouterr().out == ""


def test_a_limit_that_leaves_no_text_is_refused(known):
    with pytest.raises(InvalidArgumentError, match="fewer than maxlen=1 words"):
        datasets.reuters.load_data(known("reuters", npz(x=[[1, 2]], y=np.zeros(1))), maxlen=1)


def test_word_numbers_are_read_from_a_file_with_keras_s_hash(monkeypatch, tmp_path):
    (tmp_path / "words.json").write_text('{"the": 1, "film": 2}')
    asked = []
    monkeypatch.setattr(texts, "get_file", lambda *given, **options: asked.append((given, options)) or tmp_path / "words.json")
    assert datasets.imdb.get_word_index() == datasets.reuters.get_word_index("other.json") == {"the": 1, "film": 2}
    assert [given[0] for given, _ in asked] == ["imdb_word_index.json", "other.json"]
    assert asked[0][1] == {"md5_hash": "bfafd718b763782e994055a2d397834f"}
    assert len(datasets.reuters.get_label_names()) == 46


def test_prices_are_split_as_the_other_tables(known):
    x, y = np.arange(24.0).reshape(8, 3), np.arange(8.0)
    path = known("boston_housing", npz(x=x, y=y))
    (x_train, y_train), (x_test, y_test) = datasets.boston_housing.load_data(path, test_split=0.25)
    order = np.arange(8)
    np.random.RandomState(113).shuffle(order)
    assert np.array_equal(np.concatenate([x_train, x_test]), x[order]) and y_test.tolist() == y[order[6:]].tolist()
    path = known("california_housing", npz(x=x.astype("float32"), y=y.astype("float32")))
    (x_train, _), (x_test, _) = datasets.california_housing.load_data(path=path, version="small")
    assert (x_train.shape, x_test.shape, x_train.dtype) == ((6, 3), (2, 3), np.float32)


def archive(**files):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(f"folder/{name}.bin")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return content.getvalue()


def records(rows, labels, seed):
    """Bytes of images with labels, and both as arrays."""
    found = np.random.default_rng(seed).integers(0, 256, (rows, labels + 3072), dtype=np.uint8)
    return found.tobytes(), found[:, labels:].reshape(rows, 3, 32, 32).transpose(0, 2, 3, 1), found[:, :labels]


def test_images_of_cifar_have_their_channels_last(known):
    parts = {f"data_batch_{number}": records(2, 1, number) for number in range(1, 6)}
    test = records(2, 1, 9)
    content = archive(**{name: part[0] for name, part in reversed(parts.items())}, test_batch=test[0], readme=b"text")
    (x_train, y_train), (x_test, y_test) = cifar10.load_data(known("cifar10", content))
    assert np.array_equal(x_train[4:6], parts["data_batch_3"][1]) and np.array_equal(x_test, test[1])
    assert np.array_equal(y_test, test[2]) and y_train.shape == (10, 1) and y_train.dtype == np.uint8
    assert x_train.flags.writeable and x_train.flags.c_contiguous


def test_cifar100_has_two_kinds_of_labels(known):
    train, test = records(10, 2, 1), records(2, 2, 2)
    path = known("cifar100", archive(train=train[0], test=test[0]))
    for column, mode in enumerate(("coarse", "fine")):
        (x_train, y_train), (_, y_test) = cifar100.load_data(mode, path)
        assert np.array_equal(y_test, test[2][:, column : column + 1]) and y_train.dtype == np.int64
        assert np.array_equal(x_train, train[1])


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_not_there_is_looked_for_and_its_place_told(name, home, monkeypatch):
    monkeypatch.setenv("MINIKERAS_OFFLINE", "1")
    (form,) = catalogue.forms_of(name)
    with pytest.raises(DatasetUnavailableError, match="MINIKERAS_OFFLINE is set") as caught:
        getattr(datasets, name).load_data()
    assert f"put the file(s) {form.files[0].name} (plain or .gz)" in str(caught.value)
    assert str(home / "datasets" / name) in str(caught.value) and catalogue.location(name) is None


def test_an_archive_is_kept_as_it_came(server, known, home):
    content = archive(test_batch=b"x")
    file = catalogue.DataFile(
        "tiny.tar.gz", len(content), hashlib.sha256(content).hexdigest(), (server.serve("/tiny.tar.gz", content),)
    )
    dataset = catalogue.DatasetForm("tiny", (file,), "none")
    assert catalogue.find((dataset,))[1] == {"tiny.tar.gz": content}
    assert (home / "datasets" / "tiny" / "tiny.tar.gz").read_bytes() == content
