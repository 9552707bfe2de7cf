"""Files from the network. pooch downloads, tries again, verifies and places; here are the addresses, limits and reasons.

Downloaded archives are unpacked without trusting them: the first bad member refuses the whole, which appears whole or not.
Python's own extraction methods and their filters are not used: they had holes in several versions.
"""

import functools
import gzip
import hashlib
import lzma
import os
import secrets
import shutil
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from ...errors import DatasetUnavailableError, InvalidArgumentError, LoadError, MissingExtraError
from ...files import cache
from ...files.durable import sync_directory, sync_everything
from ...ranks import rank_0_first

ALLOWED = ("https://",)
_SECONDS = (10.0, 20.0)  # to connect, and for each read
_CHUNK_BYTES = 1 << 20
_DIGITS = {"sha256": 64, "md5": 32}


class _GivenUpError(Exception):
    """A failure that another try would not cure; pooch tries again after errors of `requests` and ValueErrors."""


def download(
    urls: Sequence[str], target: Path, wanted: str | None, max_bytes: int, attempts: list[str], unwrap: bool = False
) -> bool:
    """Fetch a file from the first address that delivers the right bytes; True if one did. Failures are added to `attempts`.

    Hash (SHA-256 or MD5, None for any file) and bound are those of what is stored: `unwrap` decompresses what comes from
    addresses that end in `.gz`.
    """
    if cache.offline():
        attempts.append("download: MINIKERAS_OFFLINE is set")
        return False
    try:
        import pooch
    except ImportError:
        raise MissingExtraError(
            f"{urls[0].rpartition('/')[2]!r} was asked for and is not on this machine; to download it, pip install "
            f"'minikeras[datasets]', which brings the package pooch; or put the file into {target.parent}"
        ) from None

    known = wanted and f"{_algorithm(wanted)}:{wanted}"
    for url in urls:
        source = pooch.create(target.parent, "", registry={target.name: known}, urls={target.name: url}, retry_if_failed=2)
        try:
            transfer = functools.partial(_transfer, max_bytes=max_bytes, unwrap=unwrap and url.endswith(".gz"))
            source.fetch(target.name, downloader=transfer)
            return True
        except (_GivenUpError, OSError, ValueError) as error:
            attempts.append(f"{url}: {str(error)[:300]}")
    return False


class _Limited(BufferedWriter):
    """A new file of at most so many bytes."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        super().__init__(FileIO(path, "wb"))
        self._max_bytes = max_bytes

    def write(self, chunk: Any) -> int:
        if self.tell() + len(chunk) > self._max_bytes:
            raise LoadError(f"server sends more than the expected {self._max_bytes} bytes")
        return super().write(chunk)


def _transfer(url: str, place: str, _: Any, max_bytes: int, unwrap: bool) -> None:
    """One try; a failure that another try would not cure is raised as `_GivenUpError`."""
    import requests
    from pooch import HTTPDownloader

    http = HTTPDownloader(
        progressbar=True,
        chunk_size=_CHUNK_BYTES,
        timeout=_SECONDS,
        headers={"Accept-Encoding": "identity"},
        # Redirects are held to the same rule as the first address.
        hooks={"response": lambda answer, **_: _require_https(urljoin(answer.url, answer.headers.get("Location", "")))},
    )
    try:
        _require_https(url)
        output = Path(place)
        with _Limited(output, max_bytes + (1 << 16 if unwrap else 0)) as file:
            http(url, file, None)
        if unwrap:
            output.write_bytes(gunzip(output.read_bytes(), max_bytes, url))
    except (requests.RequestException, LoadError) as error:
        broken = isinstance(error, requests.exceptions.ChunkedEncodingError)
        answer = getattr(error, "response", None)
        if broken or (answer is not None and answer.status_code >= 500):
            raise
        raise _GivenUpError(str(error)) from error


def _require_https(url: str) -> None:
    if not url.startswith(ALLOWED):
        raise LoadError(f"refused to download from {url[:200]!r}: only https addresses are allowed")


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
        MissingExtraError: It is not cached, and the package pooch is missing.
        DatasetUnavailableError: It is not cached, and no address delivered it; the message lists the reasons.
        LoadError: A name leads out of the cache, the cache is not private, or the archive is refused.
        OSError: The cache cannot be written.

    >>> tf.keras.utils.get_file("data.csv", "https://example.org/data.csv", file_hash="5d41402abc4b2a76")
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
    name = os.fspath(fname) if fname else urlsplit(urls[0]).path.rpartition("/")[2]
    if len(check_name(name)) != 1 or "/" in name:
        raise LoadError(f"refused the name {name[:40]!r}: fname is a file name without directories")
    directory = _directory(cache_dir, cache_subdir)
    target = directory / name
    unpacked = directory / f"{name.partition('.')[0]}_extracted" if extract or untar else None
    _complete(urls, target, unpacked, wanted, force_download, max_bytes)
    if unpacked is None:
        return str(target)
    if ("zip" if zipfile.is_zipfile(target) else "tar") not in formats:
        raise LoadError(f"{name} is no {' or '.join(formats)} archive; archive_format='auto' unpacks either kind")
    try:
        if not unpacked.is_dir():
            unpack(target, unpacked)
    except OSError:
        if not unpacked.is_dir():  # harmless if another process finished first
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
    if len(digits) not in lengths or set(digits) - set("0123456789abcdef"):
        needed = "" if algorithm == "auto" else f"; hash_algorithm is {algorithm!r}"
        raise InvalidArgumentError(
            f"file_hash has {len(digits)} characters; a SHA-256 has 64 hexadecimal digits, an MD5 32{needed}"
        )
    return digits


def _directory(cache_dir: str | os.PathLike[str] | None, cache_subdir: str) -> Path:
    """The directory in which the file is kept; the default one is private."""
    top = cache.home() if cache_dir is None else Path(cache_dir).expanduser().absolute()
    directory = top.joinpath(*check_name(cache_subdir))
    if cache_dir is None:
        cache.make_private(directory)
    else:
        directory.mkdir(parents=True, exist_ok=True)
    return directory


def _complete(
    urls: Sequence[str], target: Path, unpacked: Path | None, wanted: str | None, force: bool, max_bytes: int
) -> None:
    """Download a file if it has to be; what was unpacked from an older one is removed before."""
    if not force and target.is_file() and (wanted is None or _digest(target, _algorithm(wanted)) == wanted):
        return
    attempts = [f"{target}: {'force_download is set' if force else 'not there, or damaged'}"]
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(8)}")  # the old file stays if the new one cannot be had
    if not download(urls, fresh, wanted, max_bytes, attempts):
        lines = [f"file {target.name!r} was asked for, but it could not be had. Tried:", *(f"  {one}" for one in attempts)]
        raise DatasetUnavailableError("\n".join([*lines, f"What to do: put the file at {target}."]))
    if unpacked is not None and unpacked.is_dir():
        shutil.rmtree(unpacked)
    os.replace(fresh, target)
    if wanted is None:
        warnings.warn(
            f"get_file: {target.name!r} was downloaded without a hash, so nothing tells whether it is the right one. Check it, "
            f"and give file_hash={_digest(target, 'sha256')!r}.",
            stacklevel=4,
        )


def _algorithm(digits: str) -> str:
    return "md5" if len(digits) == _DIGITS["md5"] else "sha256"


def _digest(target: Path, algorithm: str) -> str:
    """The hash of a file, which may be too large to read at once."""
    with target.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def _formats(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """The formats of archives that may be unpacked."""
    formats = {"auto": ("tar", "zip")}.get(given, (given,)) if isinstance(given, str) else tuple(given or ("none",))
    if set(formats) - {"tar", "zip"}:
        raise InvalidArgumentError(f"archive_format is {given!r}; it has to be 'auto', 'tar' or 'zip', or several of them")
    return formats


# Archives --------------------------------------------------------------------------------------------------------------

MAX_BYTES = 4 << 30
MAX_MEMBERS = 100_000
# Real data sets compress by less than this; bombs by more.
MAX_RATIO = 200


class _Member(NamedTuple):
    """A directory (no stream) or a regular file of an archive."""

    name: str
    size: int
    stream: IO[bytes] | None


def unpack(archive: Path, target: Path) -> None:
    """Unpack a tar or zip file, recognised by its content, into the new directory `target`.

    Nothing is left behind if a member is no plain file or directory, has a dangerous name, or exceeds the budgets: LoadError.
    """
    budget = min(MAX_BYTES, max(1 << 20, MAX_RATIO * archive.stat().st_size))
    temporary = target.parent / f".{target.name}.tmp-{os.getpid()}-{secrets.token_hex(8)}"
    temporary.mkdir(mode=0o700)
    try:
        try:
            _write_members(_members(archive), temporary, budget)
        except LoadError:
            raise
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError,
                RuntimeError, ValueError, IndexError, gzip.BadGzipFile) as error:  # fmt: skip
            raise LoadError(f"{archive.name}: damaged archive ({str(error)[:120]})") from error
        sync_everything(temporary)
        os.rename(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_directory(target.parent)


def gunzip(content: bytes, size: int, name: str) -> bytes:
    """Decompress one gzip stream, never producing much more than `size` bytes; `name` is for the error message."""
    decompressor = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        found = decompressor.decompress(content, size + 1)  # one byte more is enough to see that the stream is too long
    except zlib.error as error:
        raise LoadError(f"{name}: damaged gzip stream ({error})") from error
    if len(found) > size:
        raise LoadError(f"{name}: decompresses to more than the expected {size} bytes")
    if not decompressor.eof or decompressor.unused_data:
        raise LoadError(f"{name}: gzip stream is cut short, or bytes follow it")
    return found


def check_name(name: str) -> tuple[str, ...]:
    """The parts of a relative path that stays where it is put; LoadError for every other name.

    >>> check_name("images/cat.png")
    ('images', 'cat.png')
    """
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    dangerous = any(part == ".." or "\\" in part or ":" in part or "\0" in part for part in parts)
    if name.startswith("/") or dangerous or len(parts) > 32 or any(len(os.fsencode(part)) > 255 for part in parts):
        raise LoadError(f"refused the name {name[:40]!r}: it could leave its directory")
    return parts


def _members(archive: Path) -> Iterator[_Member]:
    """The members of a tar or zip file; anything but plain files and directories raises LoadError."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for entry in zipped.infolist():
                kind = entry.external_attr >> 28
                if entry.header_offset < 0:
                    raise LoadError(f"{archive.name}: {entry.filename[:40]!r} lies before the beginning of the file")
                if kind not in (0, 0o4, 0o10) or entry.flag_bits & 1:
                    raise LoadError(f"{archive.name}: {entry.filename[:40]!r} is a link, device or encrypted")
                if entry.is_dir():
                    yield _Member(entry.filename, 0, None)
                else:
                    with zipped.open(entry) as stream:
                        yield _Member(entry.filename, entry.file_size, stream)
        return
    with tarfile.open(archive, "r:*") as tarred:
        for member in tarred:
            if member.type == tarfile.DIRTYPE:
                yield _Member(member.name, 0, None)
            elif member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse():
                yield _Member(member.name, member.size, tarred.extractfile(member))
            else:
                raise LoadError(f"{archive.name}: {member.name[:40]!r} is a link, device or sparse file")


def _write_members(members: Iterator[_Member], root: Path, budget: int) -> None:
    """Write each member below `root`, a fresh private directory, so no link can be in the way."""
    total = 0
    for count, member in enumerate(members, start=1):
        total += member.size
        if total > budget or count > MAX_MEMBERS:
            raise LoadError(f"archive exceeds {budget} bytes or {MAX_MEMBERS} members when unpacked")
        path = root.joinpath(*check_name(member.name))
        try:
            (path if member.stream is None else path.parent).mkdir(mode=0o755, parents=True, exist_ok=True)
            if member.stream is not None:
                with path.open("xb") as file:
                    shutil.copyfileobj(member.stream, file, _CHUNK_BYTES)
                    if file.tell() != member.size:
                        raise LoadError(f"{member.name[:40]!r} does not have the declared {member.size} bytes")
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise LoadError(f"archive holds {member.name[:40]!r} twice, or as a file and a directory") from error
