"""The datasets this package knows: their files, sizes, SHA-256 hashes, licences and mirrors.

Code and not a data file, so that a planted data file brings no hash of its own; `datasets/CHECKSUMS.tsv` is kept equal.
"""

from typing import NamedTuple

from ...errors import InvalidArgumentError

KERAS = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"


class DataFile(NamedTuple):
    """One file of a dataset.

    Args:
        name: File name without `.gz`; a copy may be stored plain or as `name + ".gz"`. An archive that is never stored
            otherwise keeps the ending, and its size and hash are those of the archive itself.
        size: Bytes after decompression.
        sha256: Hash after decompression, hence the same for every way a mirror or Debian wraps the gzip stream.
        urls: https addresses, best first; an address that ends in `.gz` is decompressed on arrival.
    """

    name: str
    size: int
    sha256: str
    urls: tuple[str, ...] = ()


class DatasetForm(NamedTuple):
    """One dataset, in one form.

    Args:
        name: Name in this package, and of its directory in every place that is searched.
        files: The files; all of them have to be in one directory.
        licence: Short name of the licence.
        package_hint: Shell command that installs the files, if there is one.
    """

    name: str
    files: tuple[DataFile, ...]
    licence: str
    package_hint: str = ""


def _table(name: str, file: str, size: int, sha256: str) -> DatasetForm:
    """A table that is shipped."""
    return DatasetForm(name, (DataFile(file, size, sha256),), "CC BY 4.0 (UCI), BSD-3-Clause (scikit-learn)")


def _published(name: str, size: int, sha256: str, url: str = "", licence: str = "not stated; see its source") -> DatasetForm:
    """A dataset of one file that was not at hand: size and hash are those that Keras or TensorFlow Datasets publish."""
    address = url or f"{KERAS}{name}.npz"
    return DatasetForm(name, (DataFile(address.rpartition("/")[2], size, sha256, (address,)),), licence)


def _idx_files(mirrors: tuple[str, ...], hashes: tuple[str, str, str, str]) -> tuple[DataFile, ...]:
    """The four IDX files, whose names and sizes MNIST and Fashion-MNIST share."""
    names = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
    sizes = (47_040_016, 60_008, 7_840_016, 10_008)
    return tuple(
        DataFile(name, size, sha256, tuple(f"{mirror}{name}.gz" for mirror in mirrors))
        for name, size, sha256 in zip(names, sizes, hashes, strict=True)
    )


DIGITS = _table("digits", "digits.csv", 264_712, "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8")
IRIS = _table("iris", "iris.csv", 2_734, "f13ffa8fdd56fd8e6c8d16d4081a3fbd3114bcd0aae4256c43205169cd9d1449")
WINE = _table("wine", "wine_data.csv", 11_157, "10e8a802908b34f86e5da8ce962f3c806694bc98450a18f61851af59f324bede")
BREAST_CANCER = _table(
    "breast_cancer", "breast_cancer.csv", 119_913, "fed3eb72d0575ef6192293f5093c6e801b1476b577d0386bf4455504522172ed"
)
FASHION_MNIST_6K = DatasetForm(
    "fashion_mnist_6k",
    (DataFile("fashion_mnist_6k.npz", 2_639_737, "5de05f4efcbb2713f7dbeeb1ba7286288c73937220f24d8e0c5b9212aa3732cb"),),
    "MIT",
)
FASHION_MNIST = DatasetForm(
    "fashion_mnist",
    _idx_files(
        (KERAS, "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/"),
        (
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    ),
    "MIT",
    "apt-get install dataset-fashion-mnist",
)
# MNIST is not shipped. Its hashes agree between several public projects; no copy was at hand to measure them.
MNIST = _published(
    "mnist", 11_490_434, "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1", licence="CC BY-SA 3.0"
)
MNIST_IDX = DatasetForm(
    "mnist",
    _idx_files(
        ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
        (
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
    "CC BY-SA 3.0",
)
BOSTON_HOUSING = _published("boston_housing", 57_026, "f553886a1f8d56431e820c5b82552d9d95cfcb96d1e678153f8839538947dff5")
CALIFORNIA_HOUSING = _published(
    "california_housing", 743_530, "1a2e3a52e0398de6463aebe6f4a8da34fb21fbb6b934cf88c3425e766f2a1a6f"
)
IMDB = _published("imdb", 17_464_789, "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f")
REUTERS = _published("reuters", 2_110_848, "d6586e694ee56d7a4e65172e12b3e987c03096cb01eab99753921ef915959916")
CIFAR10 = _published(
    "cifar10",
    170_052_171,
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
)
CIFAR100 = _published(
    "cifar100",
    168_513_733,
    "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
    "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
)

DATASETS = (
    *(DIGITS, IRIS, WINE, BREAST_CANCER, FASHION_MNIST_6K, FASHION_MNIST, MNIST, MNIST_IDX),
    *(BOSTON_HOUSING, CALIFORNIA_HOUSING, IMDB, REUTERS, CIFAR10, CIFAR100),
)
NAMES = tuple(dict.fromkeys(dataset.name for dataset in DATASETS))


def forms_of(name: str) -> tuple[DatasetForm, ...]:
    """The forms in which a dataset exists, best first; all have its name.

    Raises:
        InvalidArgumentError: No dataset has this name.

    >>> [form.files[0].name for form in forms_of("mnist")]
    ['mnist.npz', 'train-images-idx3-ubyte']
    """
    if name not in NAMES:
        raise InvalidArgumentError(f"dataset {name!r} was asked for, but only these are known: {', '.join(NAMES)}")
    return tuple(dataset for dataset in DATASETS if dataset.name == name)
