"""Finding a dataset: every place in order, every hash checked, every failure noted for the error message.

An explicit `path` is searched alone: a mistyped path must not end in data from somewhere else.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from minikeras.distribute.in_turn import rank_0_first
from minikeras.errors import DatasetUnavailableError, LoadError
from minikeras.files import cache
from minikeras.keras.datasets.catalogue import DataFile, Dataset
from minikeras.keras.datasets.formats import gunzip_chunks
from minikeras.keras.datasets.policy import DEFAULT_POLICY, OFFLINE, Attempt, Policy, tried

Contents = dict[str, bytes]


def find(
    forms: Sequence[Dataset], path: str | os.PathLike[str] | None = None, policy: Policy = DEFAULT_POLICY
) -> tuple[Dataset, Contents]:
    """The form that was found, and the verified bytes of its files by name: from the first place with an intact copy.

    Args:
        forms: The forms of one dataset, best first.
        path: Directory, or file of a one-file form, to use instead of searching.
        policy: Limits of a download, which is that of rank 0 where there are several.
    """
    may_download = path is None and any(file.urls for form in forms for file in form.files)
    return (rank_0_first(_find) if may_download else _find)(forms, path, policy)


def _find(forms: Sequence[Dataset], path: str | os.PathLike[str] | None, policy: Policy) -> tuple[Dataset, Contents]:
    attempts: list[Attempt] = []
    for directory, form in candidates(forms, path):
        contents = read_intact(form, directory, attempts)
        if contents is not None:
            return form, contents
    for form in forms if path is None else ():
        contents = fetch(form, attempts, policy)
        if contents is not None:
            return form, contents
    raise DatasetUnavailableError(message(forms, attempts, explicit=path is not None))


def candidates(forms: Sequence[Dataset], path: str | os.PathLike[str] | None = None) -> Iterator[tuple[Path, Dataset]]:
    """Every local place to look at, in order, paired with the form to look for."""
    if path is not None:
        explicit = Path(path).expanduser()
        for form in forms:
            if len(form.files) == 1 or not explicit.is_file():
                yield explicit, form
        return
    seen: set[tuple[Path, Dataset]] = set()
    for place in ((directory, form) for directory in _directories(forms) for form in forms):
        if place not in seen:
            seen.add(place)
            yield place


def _directories(forms: Sequence[Dataset]) -> Iterator[Path]:
    """In search order: the cache, `$MINIKERAS_DATA_PATH`, the checkout, the installed package, other software, scikit-learn."""
    name = forms[0].name
    yield cache_directory(name)
    for entry in filter(None, os.environ.get("MINIKERAS_DATA_PATH", "").split(os.pathsep)):
        yield Path(os.path.expanduser(entry)) / name
        yield Path(os.path.expanduser(entry))
    here = Path(__file__).resolve().parent
    # Without its table, a `datasets` folder next to the package is that of another project.
    if (here.parents[2] / "datasets" / "CHECKSUMS.tsv").is_file():
        yield here.parents[2] / "datasets" / name
    yield here / "data" / name
    for form in forms:
        yield from (Path(os.path.expanduser(entry)) for entry in form.system_directories)
    scikit_learn = _scikit_learn_data() if forms[0].in_scikit_learn else None
    if scikit_learn is not None:
        yield scikit_learn


def cache_directory(name: str) -> Path:
    """Where downloads of a dataset are kept."""
    return cache.home() / "datasets" / name


def _scikit_learn_data() -> Path | None:
    """scikit-learn's data directory, found without the cost of importing scikit-learn."""
    from importlib.util import find_spec

    spec = find_spec("sklearn")
    return Path(spec.origin).parent / "datasets" / "data" if spec is not None and spec.origin else None


def read_intact(form: Dataset, directory: Path, attempts: list[Attempt]) -> Contents | None:
    """The verified bytes of all files, or None with the reason noted."""
    try:
        return {file.name: read_file(file, directory) for file in form.files}
    except FileNotFoundError:
        attempts.append(Attempt(str(directory), f"no {form.files[0].name}" if directory.is_dir() else "not there"))
    except (OSError, LoadError) as error:
        attempts.append(Attempt(str(directory), getattr(error, "strerror", None) or str(error)))
    return None


def read_file(file: DataFile, directory: Path) -> bytes:
    """The verified bytes of one file, stored plain or gzipped in `directory`, or at `directory` if that is a file.

    The bytes that are hashed are the bytes that are returned: nothing can change between the check and the use.
    """
    stored = stored_file(file, directory)
    limit = file.size + (1 << 16)
    with stored.open("rb") as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise LoadError(f"{stored.name} is larger than the expected {file.size} bytes")
    if stored.suffix == ".gz" and not file.name.endswith(".gz"):
        content = b"".join(gunzip_chunks([content], file.size, stored.name))
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


def fetch(form: Dataset, attempts: list[Attempt], policy: Policy = DEFAULT_POLICY) -> Contents | None:
    """Complete the cached copy of a dataset from its mirrors and read it; None with the reasons noted if that fails."""
    if not all(file.urls for file in form.files):
        return None
    if cache.offline():
        attempts.append(OFFLINE)
        return None
    directory = cache_directory(form.name)
    try:
        cache.make_private(directory)
    except (OSError, LoadError) as error:
        attempts.append(Attempt("download", f"cannot write to the cache: {error}"))
        return None
    # The network modules take longer to import than a small dataset takes to load.
    from minikeras.keras.datasets.download import download

    for file in form.files:
        target = directory / file.name
        if not _is_intact(file, directory) and not download(
            file.urls, target, file.sha256, file.size, attempts, gunzip=not file.name.endswith(".gz"), policy=policy
        ):
            return None
    return read_intact(form, directory, attempts)


def _is_intact(file: DataFile, directory: Path) -> bool:
    try:
        read_file(file, directory)
    except (OSError, LoadError):
        return False
    return True


def message(forms: Sequence[Dataset], attempts: Sequence[Attempt], explicit: bool = False) -> str:
    """What was asked, where it was looked for and with what result, and what to do."""
    name = forms[0].name
    lines = [f"dataset {name!r} was asked for, but no intact copy was found. Tried:", *tried(attempts)]
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
