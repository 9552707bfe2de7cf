"""Which datasets are here, where they lie, and how to remove downloaded ones."""

from contextlib import suppress
from pathlib import Path

from minikeras.errors import DatasetUnavailableError
from minikeras.keras.datasets import locate
from minikeras.keras.datasets.catalogue import DATASETS, forms_of
from minikeras.keras.datasets.policy import Attempt


def list_available() -> list[str]:
    """Names of the datasets whose files are on this machine; `path` and the loaders also verify them.

    >>> "iris" in list_available()
    True
    """
    names = dict.fromkeys(dataset.name for dataset in DATASETS)
    return [name for name in names if location(name) is not None]


def location(name: str) -> Path | None:
    """The first directory that holds all files of a dataset, unverified; None if there is none."""
    for directory, form in locate.candidates(forms_of(name)):
        with suppress(OSError):
            for file in form.files:
                locate.stored_file(file, directory)
            return directory
    return None


def path(name: str) -> Path:
    """The directory a dataset is loaded from, all files verified. Nothing is downloaded.

    Args:
        name: Name of a dataset, for example `"iris"` or `"fashion_mnist_6k"`.

    Raises:
        DatasetUnavailableError: No intact copy is on this machine.
        InvalidArgumentError: No dataset has this name.

    >>> path("iris").name
    'iris'
    """
    attempts: list[Attempt] = []
    forms = forms_of(name)
    for directory, form in locate.candidates(forms):
        if locate.read_intact(form, directory, attempts) is not None:
            return directory
    raise DatasetUnavailableError(locate.message(forms, attempts))


def clear_cache(name: str) -> list[Path]:
    """Remove the downloaded copy of a dataset and name the files that were removed. Files with other names stay.

    Raises:
        InvalidArgumentError: No dataset has this name.
        OSError: A file cannot be removed.

    >>> clear_cache("iris")
    []
    """
    directory = locate.cache_directory(name)
    removed = []
    for form in forms_of(name):
        for file in form.files:
            for stored in (directory / file.name, directory / f"{file.name}.gz"):
                with suppress(FileNotFoundError, NotADirectoryError):
                    stored.unlink()
                    removed.append(stored)
    with suppress(OSError):
        directory.rmdir()
    return removed
