"""Finding a dataset: every place in order, every hash checked, every failure noted for the error message.

An explicit `path` is searched alone: a mistyped path must not end in data from somewhere else.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ...distribute.world import rank_0_first
from ...errors import DatasetUnavailableError, LoadError
from ...files import cache
from .archives import gunzip
from .catalogue import NAMES, DataFile, DatasetForm, forms_of
from .download import download

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
