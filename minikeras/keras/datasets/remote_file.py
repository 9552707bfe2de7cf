"""`get_file`: any file from the network, verified and cached."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from minikeras.errors import DatasetUnavailableError, InvalidArgumentError, LoadError
from minikeras.keras.datasets import archives, cache
from minikeras.keras.datasets.policy import DEFAULT_POLICY, OFFLINE, Attempt, Policy, tried

_HEX_DIGITS = frozenset("0123456789abcdef")


def get_file(
    fname: str,
    origin: str | Sequence[str],
    file_hash: str,
    cache_subdir: str = "datasets",
    extract: bool = False,
    *,
    max_bytes: int = 4 << 30,
    _policy: Policy = DEFAULT_POLICY,
) -> str:
    """Download a file once and return the path of the verified copy in the cache.

    Unlike Keras' function of the same name this one insists on a SHA-256 and on https.

    Args:
        fname: Name of the file in the cache, without directories.
        origin: https address, or several in order of preference.
        file_hash: SHA-256 of the file as it is downloaded, 64 hexadecimal digits.
        cache_subdir: Directory below `$MINIKERAS_HOME` (default `~/.minikeras`).
        extract: Unpack the file, a tar or zip archive, next to itself.
        max_bytes: Give up on files larger than this.

    Returns:
        Path of the file, or of the directory it was unpacked into.

    Raises:
        InvalidArgumentError: `file_hash` is no SHA-256.
        DatasetUnavailableError: It is not cached, and no address delivered it; the message lists the reasons.
        LoadError: A name leads out of the cache, the cache is not private, or the archive is refused.
        OSError: The cache cannot be written.

    >>> get_file("data.csv", "https://example.org/data.csv", file_hash="5d41402abc4b2a76b9719d911017c592")
    Traceback (most recent call last):
        ...
    minikeras.errors.InvalidArgumentError: file_hash has 32 characters; a SHA-256 of 64 hexadecimal digits is needed
    """
    sha256 = file_hash.lower().removeprefix("sha256:")
    if len(sha256) != 64 or not _HEX_DIGITS.issuperset(sha256):
        raise InvalidArgumentError(f"file_hash has {len(sha256)} characters; a SHA-256 of 64 hexadecimal digits is needed")
    if len(archives.check_name(fname)) != 1 or "/" in fname:
        raise LoadError(f"refused the name {fname[:40]!r}: fname is a file name without directories")
    directory = cache.home().joinpath(*archives.check_name(cache_subdir))
    cache.make_private(directory)
    target = directory / fname
    if not _holds(target, sha256):
        _fetch((origin,) if isinstance(origin, str) else tuple(origin), target, sha256, max_bytes, _policy)
    if not extract:
        return str(target)
    # The hash in the name keeps the unpacked copy of another version of the file apart.
    unpacked = directory / f"{fname}_extracted_{sha256[:12]}"
    if not unpacked.is_dir():
        try:
            archives.extract(target, unpacked)
        except OSError:
            # Harmless if another process finished first.
            if not unpacked.is_dir():
                raise
    return str(unpacked)


def _holds(target: Path, sha256: str) -> bool:
    """Whether the cached file exists and is intact; it may be too large to read at once."""
    try:
        with target.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == sha256
    except FileNotFoundError:
        return False


def _fetch(urls: Sequence[str], target: Path, sha256: str, max_bytes: int, policy: Policy) -> None:
    attempts = [Attempt(str(target), "not there, or damaged")]
    if cache.offline():
        attempts.append(OFFLINE)
    else:
        from minikeras.keras.datasets.download import download

        if download(urls, target, sha256, max_bytes, attempts, gunzip=False, policy=policy):
            return
    lines = [f"file {target.name!r} was asked for, but it could not be had. Tried:", *tried(attempts)]
    raise DatasetUnavailableError("\n".join([*lines, f"What to do: put the file at {target}."]))
