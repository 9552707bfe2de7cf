"""`get_file`: any file from the network, verified and cached."""

import hashlib
import os
import shutil
import urllib.parse
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path

from minikeras.distribute.in_turn import rank_0_first
from minikeras.errors import DatasetUnavailableError, InvalidArgumentError, LoadError
from minikeras.files import cache
from minikeras.keras.datasets import archives
from minikeras.keras.datasets.policy import DEFAULT_POLICY, OFFLINE, Attempt, Policy, tried

_DIGITS = {"sha256": 64, "md5": 32}


@rank_0_first
def get_file(
    fname: str | os.PathLike[str] | None = None,
    origin: str | Sequence[str] | None = None,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: str | Sequence[str] | None = "auto",
    cache_dir: str | os.PathLike[str] | None = None,
    force_download: bool = False,
    *,
    max_bytes: int = 4 << 30,
    _policy: Policy = DEFAULT_POLICY,
) -> str:
    """Download a file once and return the path of the copy in the cache, or of the directory that it was unpacked into.
    Where several ranks have been joined, all call it; rank 0 downloads, the others wait.

    Args:
        fname: Name of the file in the cache, without directories; None for that of the address.
        origin: https address, or several in order of preference.
        untar: As `extract`, for tar files alone.
        md5_hash: MD5 of the file, if there is no `file_hash`.
        file_hash: SHA-256 (or MD5) of the file as it is downloaded. Without it a warning tells the SHA-256 that was found.
        cache_subdir: Directory below `cache_dir`.
        hash_algorithm: 'sha256', 'md5', or 'auto' for what the length says.
        extract: Unpack a tar or zip archive next to itself. A member that leads out of the directory, a link or a device
            refuses the whole archive.
        archive_format: 'auto', 'tar' or 'zip', or several: what is unpacked.
        cache_dir: None for `$MINIKERAS_HOME` (default `~/.minikeras`).
        force_download: Download the file although it is there.
        max_bytes: Give up on files larger than this.

    Returns:
        Path of the file, or of the directory `NAME_extracted` beside it, where NAME is the file's name up to its first point.

    Raises:
        InvalidArgumentError: `origin` is missing, or `file_hash` is no SHA-256 or MD5.
        DatasetUnavailableError: It is not cached, and no address delivered it; the message lists the reasons.
        LoadError: A name leads out of the cache, the cache is not private, or the archive is refused.
        OSError: The cache cannot be written.

    >>> get_file("data.csv", "https://example.org/data.csv", file_hash="5d41402abc4b2a76")
    Traceback (most recent call last):
        ...
    minikeras.errors.InvalidArgumentError: file_hash has 16 characters; a SHA-256 has 64 hexadecimal digits, an MD5 32
    """
    urls = (origin,) if isinstance(origin, str) else tuple(origin or ())
    if not urls:
        raise InvalidArgumentError("get_file: origin is missing; give the https address of the file")
    plain = file_hash is not None or md5_hash is None
    wanted = _checked_hash(file_hash, hash_algorithm) if plain else _checked_hash(md5_hash, "md5")
    formats = _formats("tar" if untar else archive_format)
    name = os.fspath(fname) if fname else urllib.parse.urlsplit(urls[0]).path.rpartition("/")[2]
    if len(archives.check_name(name)) != 1 or "/" in name:
        raise LoadError(f"refused the name {name[:40]!r}: fname is a file name without directories")
    directory = _directory(cache_dir, cache_subdir)
    if not (extract or untar):
        return str(_fetched(urls, directory / name, None, wanted, force_download, max_bytes, _policy))
    target, unpacked = directory / name, directory / f"{name.partition('.')[0]}_extracted"
    _fetched(urls, target, unpacked, wanted, force_download, max_bytes, _policy)
    if ("zip" if zipfile.is_zipfile(target) else "tar") not in formats:
        raise LoadError(f"{name} is no {' or '.join(formats)} archive; archive_format='auto' unpacks either kind")
    if not unpacked.is_dir():
        try:
            archives.extract(target, unpacked)
        except OSError:
            # Harmless if another process finished first.
            if not unpacked.is_dir():
                raise
    return str(unpacked)


def _checked_hash(given: str | None, algorithm: str) -> str | None:
    """A hash in lower-case digits."""
    if algorithm not in ("auto", *_DIGITS):
        raise InvalidArgumentError(f"hash_algorithm is {algorithm!r}; it has to be 'auto', 'sha256' or 'md5'")
    if given is None:
        return None
    digits = given.lower().removeprefix("sha256:")
    lengths = _DIGITS.values() if algorithm == "auto" else (_DIGITS[algorithm],)
    if len(digits) not in lengths or not frozenset("0123456789abcdef").issuperset(digits):
        raise InvalidArgumentError(
            f"file_hash has {len(digits)} characters; a SHA-256 has 64 hexadecimal digits, an MD5 32"
            + ("" if algorithm == "auto" else f"; hash_algorithm is {algorithm!r}")
        )
    return digits


def _directory(cache_dir: str | os.PathLike[str] | None, cache_subdir: str) -> Path:
    """The directory in which the file is kept; the default one is private."""
    top = cache.home() if cache_dir is None else Path(cache_dir).expanduser().absolute()
    directory = top.joinpath(*archives.check_name(cache_subdir))
    if cache_dir is None:
        cache.make_private(directory)
    else:
        directory.mkdir(parents=True, exist_ok=True)
    return directory


def _fetched(
    urls: Sequence[str], target: Path, unpacked: Path | None, wanted: str | None, force: bool, max_bytes: int, policy: Policy
) -> Path:
    """The intact file, downloaded if it has to be; what was unpacked from an older one is removed before."""
    if not force and target.is_file() and (wanted is None or _digest(target, wanted) == wanted):
        return target
    attempts = [Attempt(str(target), "not there, or damaged" if not force else "force_download is set")]
    if cache.offline():
        attempts.append(OFFLINE)
    else:
        from minikeras.keras.datasets.download import download

        if unpacked is not None and unpacked.is_dir():
            shutil.rmtree(unpacked)
        if download(urls, target, wanted, max_bytes, attempts, gunzip=False, policy=policy):
            if wanted is None:
                _warn(target)
            return target
    lines = [f"file {target.name!r} was asked for, but it could not be had. Tried:", *tried(attempts)]
    raise DatasetUnavailableError("\n".join([*lines, f"What to do: put the file at {target}."]))


def _warn(target: Path) -> None:
    found = _digest(target, "sha256")
    warnings.warn(
        f"get_file: {target.name!r} was downloaded without a hash, so nothing tells whether it is the right one. Check it, and "
        f"give file_hash={found!r}.",
        stacklevel=4,
    )


def _digest(target: Path, wanted: str) -> str:
    """The hash of a file, of the same kind as another; the file may be too large to read at once."""
    with target.open("rb") as stream:
        return hashlib.file_digest(stream, "md5" if len(wanted) == _DIGITS["md5"] else "sha256").hexdigest()


def _formats(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """The formats of archives that may be unpacked."""
    formats = {"auto": ("tar", "zip")}.get(given, (given,)) if isinstance(given, str) else tuple(given or ("none",))
    if set(formats) - {"tar", "zip"}:
        raise InvalidArgumentError(f"archive_format is {given!r}; it has to be 'auto', 'tar' or 'zip', or several of them")
    return formats
