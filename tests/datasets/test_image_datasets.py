"""Fashion-MNIST and MNIST: the shipped subset, the fallback that says so, and honest errors."""

import hashlib
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minikeras.keras.datasets
from minikeras.errors import DatasetUnavailableError, InvalidArgumentError, MissingExtraError
from minikeras.keras.datasets import catalogue as catalogue
from minikeras.keras.datasets import fashion_mnist, images, mnist

REPOSITORY = Path(minikeras.keras.datasets.__file__).resolve().parents[3]


needs_full_set = [
    pytest.mark.data,
    pytest.mark.skipif(
        catalogue.location("fashion_mnist") is None,
        reason="full Fashion-MNIST absent: apt-get install dataset-fashion-mnist",
    ),
]


@pytest.fixture
def nowhere(monkeypatch):
    """A machine that has neither the full Fashion-MNIST nor a network."""
    unknown = tuple(file._replace(sha256="0" * 64) for file in catalogue.FASHION_MNIST.files)
    monkeypatch.setattr(images, "FASHION_MNIST", catalogue.FASHION_MNIST._replace(files=unknown))
    images._announce_substitution.cache_clear()
    monkeypatch.setenv("MINIKERAS_OFFLINE", "1")


def test_the_shipped_subset_is_balanced_and_in_keras_shapes():
    (x_train, y_train), (x_test, y_test) = fashion_mnist.load_data(subset="6k")
    assert (x_train.shape, x_test.shape) == ((5000, 28, 28), (1000, 28, 28))
    assert {array.dtype for array in (x_train, y_train, x_test, y_test)} == {np.dtype(np.uint8)}
    assert np.bincount(y_train).tolist() == [500] * 10
    assert np.bincount(y_test).tolist() == [100] * 10
    assert all(array.flags.writeable for array in (x_train, y_train, x_test, y_test))
    assert len({image.tobytes() for image in x_train} | {image.tobytes() for image in x_test}) > 5990


def test_the_shipped_subset_never_touches_the_network(monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("network")

    monkeypatch.setattr(catalogue, "download", forbidden)
    fashion_mnist.load_data(subset="6k")


def test_without_the_full_set_the_subset_is_used_and_one_line_says_so_once(nowhere, capsys):
    for _ in range(2):
        (x_train, _), _ = fashion_mnist.load_data()
        assert len(x_train) == 5000
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "full Fashion-MNIST was not found" in message


def test_without_pooch_the_subset_is_used(nowhere, monkeypatch):
    monkeypatch.delenv("MINIKERAS_OFFLINE")
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert len(fashion_mnist.load_data()[0][0]) == 5000
    with pytest.raises(MissingExtraError, match="train-images-idx3-ubyte.gz"):
        fashion_mnist.load_data(subset="full")


def idx(*arrays):
    """Bytes of IDX files."""
    return [bytes([0, 0, 8, one.ndim]) + np.array(one.shape, ">i4").tobytes() + one.tobytes() for one in arrays]


def test_mnist_is_read_from_either_form(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    arrays = [random.integers(0, 256, (n, 28, 28)[:axes], np.uint8) for n in (3, 2) for axes in (3, 1)]
    stored = io.BytesIO()
    np.savez_compressed(stored, **dict(zip(("x_train", "y_train", "x_test", "y_test"), arrays, strict=True)))
    for form, contents in (("MNIST", [stored.getvalue()]), ("MNIST_IDX", idx(*arrays))):
        (tmp_path / form).mkdir()
        files = []
        for file, content in zip(getattr(catalogue, form).files, contents, strict=True):
            (tmp_path / form / file.name).write_bytes(content)
            files.append(file._replace(size=len(content), sha256=hashlib.sha256(content).hexdigest()))
        monkeypatch.setattr(images, form, catalogue.MNIST._replace(files=tuple(files)))
        (x_train, y_train), (x_test, y_test) = mnist.load_data(tmp_path / form)
        for found, wanted in zip((x_train, y_train, x_test, y_test), arrays, strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert found.flags.writeable and found.dtype == np.uint8


def test_asking_for_the_full_set_is_an_error_that_lists_every_place_and_what_to_do(nowhere, home, tmp_path, monkeypatch):
    monkeypatch.setenv("MINIKERAS_DATA_PATH", str(tmp_path / "data"))
    with pytest.raises(DatasetUnavailableError) as caught:
        fashion_mnist.load_data(subset="full")
    for part in (
        str(home / "datasets" / "fashion_mnist"),
        str(tmp_path / "data" / "fashion_mnist"),
        "MINIKERAS_OFFLINE is set",
        "MINIKERAS_DATA_PATH",
        "apt-get install dataset-fashion-mnist",
        "fetch fashion_mnist",
    ):
        assert part in str(caught.value)


def test_an_explicit_path_is_the_only_place_searched(tmp_path):
    with pytest.raises(DatasetUnavailableError, match="at the path given") as caught:
        fashion_mnist.load_data(tmp_path / "typo")
    assert str(caught.value).count("\n  ") == 2
    with pytest.raises(DatasetUnavailableError, match="not there"):
        fashion_mnist.load_data(tmp_path / "typo", subset="6k")


def test_an_unknown_subset_is_refused():
    with pytest.raises(InvalidArgumentError, match="'full', '6k' or None"):
        fashion_mnist.load_data(subset="7k")


def test_a_missing_mnist_is_an_error_that_lists_every_place_and_what_to_do(home, monkeypatch):
    monkeypatch.setenv("MINIKERAS_OFFLINE", "1")
    with pytest.raises(DatasetUnavailableError, match="MINIKERAS_OFFLINE is set") as caught:
        mnist.load_data()
    assert "put the file(s) mnist.npz or train-images-idx3-ubyte, " in str(caught.value)
    assert str(home / "datasets" / "mnist") in str(caught.value)
    assert isinstance(caught.value, OSError)


def test_a_file_that_is_not_mnist_is_refused_whatever_its_name(tmp_path):
    (tmp_path / "mnist.npz").write_bytes(b"something else")
    with pytest.raises(DatasetUnavailableError, match="has 14 bytes, expected 11490434"):
        mnist.load_data(tmp_path / "mnist.npz")


class TestFullFashionMnist:
    """Needs the full set."""

    pytestmark = needs_full_set

    def test_the_full_set_has_the_published_statistics(self):
        (x_train, y_train), (x_test, y_test) = fashion_mnist.load_data(subset="full")
        assert (x_train.shape, x_test.shape) == ((60_000, 28, 28), (10_000, 28, 28))
        assert np.bincount(y_train).tolist() == [6_000] * 10
        assert np.bincount(y_test).tolist() == [1_000] * 10
        assert x_train.mean() == pytest.approx(72.940, abs=1e-3)
        assert x_train.std() == pytest.approx(90.021, abs=1e-3)

    def test_the_shipped_subset_is_what_its_script_makes_of_the_full_set(self):
        script = REPOSITORY / "datasets" / "make" / "fashion_mnist_6k.py"
        sources = [
            directory
            for directory, _ in catalogue.candidates((catalogue.FASHION_MNIST,))
            if (directory / "train-images-idx3-ubyte.gz").is_file()
        ]
        if not script.is_file() or not sources:
            pytest.skip("needs a checkout and the .gz files")
        result = subprocess.run([sys.executable, script, "--source", sources[0]], capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stdout + result.stderr
