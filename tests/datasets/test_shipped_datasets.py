"""The files in the repository: the hashes agree everywhere, and the loaders return what the documentation says."""

import csv
import hashlib
import importlib
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minikeras.keras.datasets
from minikeras.errors import InvalidArgumentError
from minikeras.keras import datasets
from minikeras.keras.datasets import catalogue as catalogue

REPOSITORY = Path(minikeras.keras.datasets.__file__).resolve().parents[3]
FOLDER = REPOSITORY / "datasets"
SHIPPED = (
    catalogue.DIGITS, catalogue.IRIS, catalogue.WINE, catalogue.BREAST_CANCER, catalogue.FASHION_MNIST_6K,
)  # fmt: skip
TABLES = {"digits": (1797, 64, 10), "iris": (150, 4, 3), "wine": (178, 13, 3), "breast_cancer": (569, 30, 2)}

in_checkout = pytest.mark.skipif(not (FOLDER / "CHECKSUMS.tsv").is_file(), reason="runs only in a checkout")


@in_checkout
@pytest.mark.parametrize("dataset", SHIPPED, ids=lambda dataset: dataset.name)
def test_every_shipped_file_has_the_hash_of_the_catalogue_and_of_the_readme(dataset):
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for file in dataset.files:
        assert len(catalogue.read_file(file, FOLDER / dataset.name)) == file.size
        stored = catalogue.stored_file(file, FOLDER / dataset.name)
        line = next(line for line in readme.splitlines() if f"`{dataset.name}/{stored.name}`" in line)
        assert hashlib.sha256(stored.read_bytes()).hexdigest() in line


@in_checkout
def test_the_published_table_of_checksums_equals_the_catalogue():
    with (FOLDER / "CHECKSUMS.tsv").open(encoding="utf-8", newline="") as stream:
        published = [tuple(row.values()) for row in csv.DictReader(stream, delimiter="\t")]
    assert published == [
        (dataset.name, file.name, str(file.size), file.sha256, dataset.licence, " ".join(file.urls))
        for dataset in catalogue.DATASETS
        for file in dataset.files
    ]


def test_every_address_is_https_and_every_download_has_two_mirrors():
    for dataset in catalogue.DATASETS:
        for file in dataset.files:
            assert all(url.startswith("https://") for url in file.urls)
    for dataset in (catalogue.FASHION_MNIST, catalogue.MNIST_IDX):
        assert all(len(file.urls) >= 2 for file in dataset.files)


@in_checkout
@pytest.mark.parametrize("licence", ["fashion_mnist.txt", "scikit_learn.txt", "uci.txt"])
def test_the_licence_notices_are_in_the_repository(licence):
    assert len((FOLDER / "LICENSES" / licence).read_text(encoding="utf-8")) > 500


@pytest.mark.parametrize(("name", "sizes"), TABLES.items())
def test_tables_have_the_documented_shape_and_types(name, sizes):
    rows, features, classes = sizes
    loader = getattr(datasets, name)
    x, y = loader.load_data(return_X_y=True)
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((rows, features), np.float64, (rows,), np.int64)
    assert x.flags.writeable
    assert x.flags.c_contiguous
    assert np.isfinite(x).all()
    assert sorted(set(y.tolist())) == list(range(classes))
    assert len(loader.CLASS_NAMES) == classes
    assert len(getattr(loader, "FEATURE_NAMES", x[0])) == features


@pytest.mark.parametrize("name", TABLES)
def test_tables_equal_those_of_scikit_learn(name):
    sklearn_datasets = pytest.importorskip("sklearn.datasets")
    reference = getattr(sklearn_datasets, f"load_{name}")()
    x, y = getattr(datasets, name).load_data(return_X_y=True)
    np.testing.assert_array_equal(x, reference.data)
    np.testing.assert_array_equal(y, reference.target)
    loader = getattr(datasets, name)
    if hasattr(loader, "FEATURE_NAMES"):
        assert list(loader.FEATURE_NAMES) == list(reference.feature_names)
        assert list(loader.CLASS_NAMES) == list(reference.target_names)


@pytest.mark.parametrize("test_split", [0.0, 0.2, 0.5])
def test_the_split_keeps_every_row_once_and_repeats_with_the_seed(test_split):
    whole, _ = datasets.iris.load_data(return_X_y=True)
    (x_train, y_train), (x_test, y_test) = datasets.iris.load_data(test_split=test_split)
    assert len(x_train) == len(y_train) == int(150 * (1 - test_split))
    together = np.concatenate([x_train, x_test])
    assert sorted(map(tuple, together)) == sorted(map(tuple, whole))
    again = datasets.iris.load_data(test_split=test_split, seed=113)
    other = datasets.iris.load_data(test_split=test_split, seed=114)
    np.testing.assert_array_equal(again[0][0], x_train)
    assert not np.array_equal(other[0][0], x_train)


@pytest.mark.parametrize("test_split", [-0.1, 1.0, 20])
def test_a_split_outside_of_zero_to_one_is_refused(test_split):
    with pytest.raises(InvalidArgumentError, match="at least 0 and less than 1"):
        datasets.wine.load_data(test_split=test_split)


def test_shipped_tables_load_no_network_module():
    program = (
        "import sys, minikeras.keras.datasets as d; print(d.iris.load_data()[0][0].shape);"
        "print({'pooch', 'requests', 'http.client', 'urllib.request', 'sklearn'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert result.stdout.split("\n")[:2] == ["(120, 4)", "set()"], result.stderr


def test_a_dataset_is_imported_as_in_keras():
    names = ["mnist", "imdb", "wine"]
    path = "minikeras.keras.datasets"
    imports = [f"import {path}.{name} as module; from {path}.{name} import load_data, CLASS_NAMES" for name in names]
    subprocess.run([sys.executable, "-c", "\n".join(imports)], cwd=REPOSITORY, check=True, timeout=300)
    for name in names:
        module = importlib.import_module(f"{path}.{name}")
        assert module is getattr(datasets, name) and module.__name__ == f"{path}.{name}"
        assert pickle.loads(pickle.dumps(module.load_data)) is module.load_data


def test_the_package_names_what_it_has():
    assert set(datasets.__all__) <= set(dir(datasets))
    with pytest.raises(AttributeError, match="has no attribute 'cifar99'"):
        datasets.cifar99  # noqa: B018
