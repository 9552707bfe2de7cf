"""Files: written whole or not at all (`durable.py`), read without trusting them.

The readers check what a file declares against what it holds before they allocate; a `LoadError` names the file and the place.
Here: open a plain file, know its size, and say where it is wrong.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
from collections.abc import Iterator
from io import BytesIO, FileIO
from pathlib import Path

from ..errors import LoadError, NotFoundError

MEGABYTE = 1 << 20


def refused(file: object, place: str, reason: str) -> LoadError:
    """The error of all readers: file, place and reason, at most 300 characters."""
    name = Path(str(file)).name
    return LoadError(f"{excerpt(name, 80)}: {f'{excerpt(place, 100)}: ' if place else ''}{reason}"[:300])


def refuse_if(problem: object, file: object, place: str, reason: str) -> None:
    """Raise that error if there is a problem."""
    if problem:
        raise refused(file, place, reason)


def excerpt(text: object, length: int = 40) -> str:
    """A piece of a hostile text that is safe to print."""
    plain = str(text)[: length + 1].encode("unicode_escape").decode("ascii")
    return plain if len(plain) <= length else plain[: length - 3] + "..."


@contextlib.contextmanager
def opened(path: str | os.PathLike[str], follow: bool = True, own: int | None = None) -> Iterator[tuple[FileIO, int]]:
    """A regular file, open for reading without a buffer, and its size. Pipes, devices and folders are refused without waiting.

    `follow` allows a symbolic link; it is False for a name out of another file. `own` is the descriptor of a folder in which
    the path begins: the file must be the user's own, have no other name, and no other user may write to it.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    flags |= 0 if follow else getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags, dir_fd=own)
    except FileNotFoundError:
        raise NotFoundError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise refused(path, "", f"cannot be opened ({error.strerror})") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise refused(path, "", "is not a regular file")
    if own is not None and (status.st_uid != os.geteuid() or status.st_nlink > 1 or status.st_mode & 0o022):
        os.close(descriptor)
        raise refused(path, "", "could be another user's")
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        yield stream, status.st_size


@contextlib.contextmanager
def memory_for(size: int, file: object) -> Iterator[None]:
    """Allocate `size` bytes for what a file holds within the block. That may be holes, which no disk had to hold."""
    problem = refused(file, "", f"holds {size} bytes, which is more than the memory")
    if size > _physical_memory():
        raise problem
    try:
        yield
    except MemoryError:
        raise problem from None


@functools.cache
def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not told by this system
        return sys.maxsize


def read_exactly(stream: FileIO | BytesIO, target: memoryview, file: object) -> None:
    """Fill `target` from the stream; a LoadError if the file ends before."""
    rest = target
    while rest:
        count = stream.readinto(rest[: 1 << 24])
        if not count:
            raise refused(file, "", f"ends {len(rest)} bytes too early")
        rest = rest[count:]


def read_file(path: str | os.PathLike[str], most: int | None = None, follow: bool = True, own: int | None = None) -> bytearray:
    """All bytes of a file of at most `most` bytes; otherwise as `opened`."""
    with opened(path, follow, own) as (stream, size):
        if most is not None and size > most:
            raise refused(path, "", f"holds {size} bytes, at most {most} are expected")
        with memory_for(size, path):
            content = bytearray(size)
        read_exactly(stream, memoryview(content), path)
        return content
