"""The datasets this package knows: their files, sizes, SHA-256 hashes, licences and mirrors, and where they are found: every
place in order, every hash checked, every failure noted for the error message.

Code and not a data file, so that a planted data file brings no hash of its own; `datasets/CHECKSUMS.tsv` is kept equal. An
explicit `path` is searched alone: a mistyped path must not end in data from somewhere else.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ...errors import DatasetUnavailableError, InvalidArgumentError, LoadError
from ...files import cache
from ...ranks import rank_0_first
from .download import download, gunzip

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


Contents = dict[str, bytes]


def find(forms: Sequence[DatasetForm], path: str | os.PathLike[str] | None = None) -> tuple[DatasetForm, Contents]:
    """The form that was found, and the verified bytes of its files by name: from the first place with an intact copy.

    Args:
        forms: The forms of one dataset, best first.
        path: Directory, or file of a one-file form, to use instead of searching. Without it what is nowhere is downloaded,
            by rank 0 where there are several.
    """
    may_download = path is None and any(form.files[0].urls for form in forms)
    return (rank_0_first(_search) if may_download else _search)(forms, path, may_download)[1:]


def _search(
    forms: Sequence[DatasetForm], path: str | os.PathLike[str] | None = None, may_download: bool = False
) -> tuple[Path, DatasetForm, Contents]:
    """The first directory with an intact copy, the form found there, and its bytes."""
    attempts: list[str] = []
    for directory, form in candidates(forms, path):
        try:
            return directory, form, {file.name: read_file(file, directory) for file in form.files}
        except FileNotFoundError:
            attempts.append(f"{directory}: {f'no {form.files[0].name}' if directory.is_dir() else 'not there'}")
        except (OSError, LoadError) as error:
            attempts.append(f"{directory}: {getattr(error, 'strerror', None) or error}")
    directory = cache_directory(forms[0].name)
    for form in forms if may_download else ():
        if form.files[0].urls and _fetch(form, directory, attempts):
            return directory, form, {file.name: read_file(file, directory) for file in form.files}
    raise DatasetUnavailableError(_message(forms, attempts, explicit=path is not None))


def candidates(forms: Sequence[DatasetForm], path: str | os.PathLike[str] | None = None) -> Iterator[tuple[Path, DatasetForm]]:
    """Every local place to look at, in order, paired with the form to look for."""
    directories = _directories(forms[0].name) if path is None else [Path(path).expanduser()]
    for directory in dict.fromkeys(directories):
        for form in forms:
            if len(form.files) == 1 or not directory.is_file():
                yield directory, form


def _directories(name: str) -> Iterator[Path]:
    """In search order: the cache, `$MINIKERAS_DATA_PATH`, the checkout, the installed package, Debian's and Keras's places."""
    yield cache_directory(name)
    for entry in filter(None, os.environ.get("MINIKERAS_DATA_PATH", "").split(os.pathsep)):
        yield Path(os.path.expanduser(entry)) / name
        yield Path(os.path.expanduser(entry))
    here = Path(__file__).resolve().parent
    # Without its table, a `datasets` folder next to the package is that of another project.
    if (here.parents[2] / "datasets" / "CHECKSUMS.tsv").is_file():
        yield here.parents[2] / "datasets" / name
    yield here / "data" / name
    keras = Path(os.path.expanduser("~/.keras/datasets"))
    yield from (Path("/usr/share/datasets") / name.replace("_", "-"), keras / name.replace("_", "-"), keras)


def cache_directory(name: str) -> Path:
    """The directory for the downloads of a dataset."""
    return cache.home() / "datasets" / name


def read_file(file: DataFile, directory: Path) -> bytes:
    """The verified bytes of one file, stored plain or gzipped in `directory`, or at `directory` if that is a file.

    The bytes that are hashed are the bytes that are returned: nothing can change between the check and the use.
    """
    stored = stored_file(file, directory)
    limit = file.size + (1 << 16)  # gzip adds less than this to data that cannot be compressed
    with stored.open("rb") as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise LoadError(f"{stored.name} is larger than the expected {file.size} bytes")
    if stored.suffix == ".gz" and not file.name.endswith(".gz"):
        content = gunzip(content, file.size, stored.name)
    if len(content) != file.size:
        raise LoadError(f"{stored.name} has {len(content)} bytes, expected {file.size}")
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise LoadError(f"{stored.name} has SHA-256 {found[:16]}..., expected {file.sha256[:16]}...")
    return content


def stored_file(file: DataFile, directory: Path) -> Path:
    """The path under which a file is stored; raises FileNotFoundError if there is none."""
    for stored in (directory / file.name, directory / f"{file.name}.gz", directory):
        if stored.is_file():
            return stored
    raise FileNotFoundError(f"no {file.name} in {directory}")


def _fetch(form: DatasetForm, directory: Path, attempts: list[str]) -> bool:
    """Complete the cached copy of a dataset from its mirrors; False with the reasons noted if that fails."""
    try:
        if not cache.offline():
            cache.make_private(directory)
    except (OSError, LoadError) as error:
        attempts.append(f"download: cannot write to the cache: {error}")
        return False
    return all(
        download(file.urls, directory / file.name, file.sha256, file.size, attempts, unwrap=not file.name.endswith(".gz"))
        for file in form.files
    )


def _message(forms: Sequence[DatasetForm], attempts: Sequence[str], explicit: bool = False) -> str:
    """The text of the error: what was asked, where it was looked for and with what result, and what to do."""
    name = forms[0].name
    lines = [f"dataset {name!r} was asked for, but no intact copy was found. Tried:"]
    lines += [f"  {attempt}" for attempt in dict.fromkeys(attempts)]
    wanted = " or ".join(", ".join(file.name for file in form.files) for form in forms)
    lines.append(f"What to do: put the file(s) {wanted} (plain or .gz)")
    if explicit:
        lines.append("  at the path given, or leave `path` out to search the usual places.")
        return "\n".join(lines)
    lines.append(f"  into {cache_directory(name)},")
    lines.append("  or into a directory listed in the environment variable MINIKERAS_DATA_PATH;")
    lines += [f"  or run `{form.package_hint}`;" for form in forms if form.package_hint]
    if any(file.urls for form in forms for file in form.files):
        lines.append(f"  or, with a network, run `python -m minikeras.keras.datasets fetch {name}`.")
    return "\n".join(lines)


def location(name: str) -> Path | None:
    """The first directory that holds all files of a dataset, unverified; None if there is none."""
    for directory, form in candidates(forms_of(name)):
        with suppress(OSError):
            for file in form.files:
                stored_file(file, directory)
            return directory
    return None


def list_available() -> list[str]:
    """Names of the datasets whose files are on this machine; `path` and the loaders also verify them.

    >>> "iris" in tf.keras.datasets.list_available()
    True
    """
    return [name for name in NAMES if location(name) is not None]


def path(name: str) -> Path:
    """The directory a dataset is loaded from, all files verified. Nothing is downloaded.

    Args:
        name: Name of a dataset, for example `"iris"` or `"fashion_mnist_6k"`.

    Raises:
        DatasetUnavailableError: No intact copy is on this machine.
        InvalidArgumentError: No dataset has this name.

    >>> tf.keras.datasets.path("iris").name
    'iris'
    """
    return _search(forms_of(name))[0]


def clear_cache(name: str) -> list[Path]:
    """Remove the downloaded copy of a dataset and name the files that were removed. Files with other names stay.

    Raises:
        InvalidArgumentError: No dataset has this name.
        OSError: A file cannot be removed.

    >>> tf.keras.datasets.clear_cache("iris")
    []
    """
    directory = cache_directory(name)
    removed = []
    for file in (file for form in forms_of(name) for file in form.files):
        for stored in (directory / file.name, directory / f"{file.name}.gz"):
            with suppress(FileNotFoundError, NotADirectoryError):
                stored.unlink()
                removed.append(stored)
    with suppress(OSError):
        directory.rmdir()
    return removed
