"""Listing, locating, removing and the command line."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

import minikeras.keras.datasets
from minikeras.errors import DatasetUnavailableError, InvalidArgumentError
from minikeras.keras import datasets
from minikeras.keras.datasets import catalogue
from minikeras.keras.datasets.__main__ import main
from minikeras.keras.datasets.catalogue import IRIS

SHIPPED = ["digits", "iris", "wine", "breast_cancer", "fashion_mnist_6k"]
OTHERS = ["boston_housing", "california_housing", "imdb", "reuters", "cifar10", "cifar100"]


@pytest.fixture
def iris_csv():
    """The bytes of the iris table."""
    return catalogue.find((IRIS,))[1]["iris.csv"]


def test_shipped_datasets_are_always_available():
    assert datasets.list_available()[:5] == SHIPPED
    for name in SHIPPED:
        assert datasets.path(name).is_dir()


def test_a_plain_or_gzipped_copy_on_the_data_path_comes_before_the_shipped_one(tmp_path, iris_csv, monkeypatch):
    (tmp_path / "iris").mkdir()
    (tmp_path / "iris" / "iris.csv.gz").write_bytes(gzip.compress(iris_csv))
    monkeypatch.setenv("MINIKERAS_DATA_PATH", f"/nowhere{':' if sys.platform != 'win32' else ';'}{tmp_path}")
    assert datasets.path("iris") == tmp_path / "iris"
    assert datasets.iris.load_data(return_X_y=True)[0].shape == (150, 4)


def test_a_damaged_copy_on_the_data_path_is_skipped(tmp_path, iris_csv, monkeypatch):
    (tmp_path / "iris.csv").write_bytes(iris_csv.replace(b"5.1", b"5.2"))
    monkeypatch.setenv("MINIKERAS_DATA_PATH", str(tmp_path))
    assert datasets.path("iris") != tmp_path
    assert datasets.iris.load_data(return_X_y=True)[0][0, 0] == 5.1


def test_an_explicit_file_or_directory_is_used(tmp_path, iris_csv):
    (tmp_path / "iris.csv").write_bytes(iris_csv)
    for path in (tmp_path, tmp_path / "iris.csv", str(tmp_path)):
        assert len(datasets.iris.load_data(path, return_X_y=True)[0]) == 150


def test_clear_cache_removes_only_files_the_package_named(home, iris_csv):
    directory = home / "datasets" / "iris"
    directory.mkdir(parents=True)
    (directory / "iris.csv").write_bytes(iris_csv)
    (directory / "notes.txt").write_bytes(b"mine")
    assert datasets.clear_cache("iris") == [directory / "iris.csv"]
    assert [path.name for path in directory.iterdir()] == ["notes.txt"]
    (directory / "notes.txt").unlink()
    assert datasets.clear_cache("iris") == []
    assert not directory.exists()


@pytest.mark.parametrize("function", [datasets.path, datasets.clear_cache])
def test_an_unknown_name_is_refused_with_the_known_ones(function):
    with pytest.raises(InvalidArgumentError, match="only these are known: digits, iris"):
        function("../../etc")


def test_the_path_of_an_absent_dataset_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIKERAS_DATA_PATH", str(tmp_path))
    with pytest.raises(DatasetUnavailableError, match=str(tmp_path)):
        datasets.path("mnist")


def test_the_command_line_lists_every_dataset(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*SHIPPED, "fashion_mnist", "mnist", *OTHERS]


def test_the_command_line_finds_what_is_there_and_fails_for_what_is_not(capsys, monkeypatch):
    monkeypatch.setenv("MINIKERAS_OFFLINE", "1")
    assert main(["fetch", "wine"]) == 0
    assert "wine: intact, in " in capsys.readouterr().out
    assert main(["fetch", "mnist"]) == 1
    assert "MINIKERAS_OFFLINE is set" in capsys.readouterr().err


def test_the_command_line_reports_damaged_copies(tmp_path, capsys, monkeypatch):
    assert main(["verify", "iris"]) == 0
    (tmp_path / "iris.csv").write_bytes(b"damaged")
    monkeypatch.setenv("MINIKERAS_DATA_PATH", str(tmp_path))
    assert main(["verify", "iris"]) == 1
    assert "DAMAGED: iris.csv has 7 bytes, expected 2734" in capsys.readouterr().out


def test_the_command_line_runs_as_a_module():
    root = Path(minikeras.keras.datasets.__file__).resolve().parents[3]
    command = [sys.executable, "-m", "minikeras.keras.datasets", "verify", "iris"]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert "intact" in result.stdout
