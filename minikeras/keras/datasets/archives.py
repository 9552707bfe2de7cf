"""Unpacking of downloaded archives without trusting them: the first bad member refuses the whole, which appears whole or not.

Python's own extraction methods and their filters are not used: they had holes in several versions.
"""

import gzip
import lzma
import os
import secrets
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from ...errors import LoadError
from ...files.durable import sync_directory, sync_everything

MAX_BYTES = 4 << 30
MAX_MEMBERS = 100_000
# Real data sets compress by less than this; bombs by more.
MAX_RATIO = 200
_CHUNK_BYTES = 1 << 20


class _Member(NamedTuple):
    """A directory (no stream) or a regular file of an archive."""

    name: str
    size: int
    stream: IO[bytes] | None


def extract(archive: Path, target: Path) -> None:
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
