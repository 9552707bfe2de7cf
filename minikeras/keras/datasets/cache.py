"""The user's cache directory, and files that appear in it whole or not at all."""

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from minikeras.errors import LoadError

# A download gives up long before this, so an older temporary file has no living owner.
STALE_SECONDS = 3600.0


def home() -> Path:
    """`$MINIKERAS_HOME`, by default `~/.minikeras`; it need not exist."""
    return Path(os.path.expanduser(os.environ.get("MINIKERAS_HOME") or "~/.minikeras")).absolute()


def offline() -> bool:
    """Whether `MINIKERAS_OFFLINE` forbids downloads."""
    return os.environ.get("MINIKERAS_OFFLINE", "0").lower() not in ("", "0", "false", "no")


def make_private(directory: Path) -> None:
    """Create `directory` below the cache home with mode 0700, refusing every level someone else could write to.

    Args:
        directory: `home()` or a directory below it.

    Raises:
        LoadError: A level is a symbolic link, world-writable or owned by another user.
        OSError: The directory cannot be created.
    """
    top = home()
    top.parent.mkdir(parents=True, exist_ok=True)
    below = directory.relative_to(top).parts
    for depth in range(len(below) + 1):
        level = top.joinpath(*below[:depth])
        with suppress(FileExistsError):
            level.mkdir(mode=0o700)
        _refuse_shared(level)


def _refuse_shared(directory: Path) -> None:
    """Raise LoadError unless `directory` is a real directory that only this user can write to."""
    status = directory.lstat()
    if stat.S_ISLNK(status.st_mode):
        found = "is a symbolic link"
    elif not stat.S_ISDIR(status.st_mode):
        found = "is not a directory"
    elif hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        found = "belongs to another user"
    elif os.name == "posix" and status.st_mode & stat.S_IWOTH:
        found = "is writable by everyone"
    else:
        return
    raise LoadError(f"cache directory {directory} {found}; set MINIKERAS_HOME to a directory of your own")


@contextmanager
def atomic_file(target: Path) -> Iterator[BinaryIO]:
    """Write a file that gets its name only if the `with` block ends without an error.

    The data go to a temporary file in the same directory (so the rename is atomic), unique per process (so parallel
    downloads do not meet), and are on the disk before the rename.

    Args:
        target: Name the finished file gets; its directory exists.

    Returns:
        Context manager of a binary file opened for writing.

    Raises:
        OSError: The file cannot be written.
    """
    _remove_stale(target.parent)
    temporary = target.parent / f".{target.name}.tmp-{os.getpid()}-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(target.parent)


def sync_directory(directory: Path) -> None:
    """Make a rename in `directory` survive a power failure, where the system can."""
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_stale(directory: Path) -> None:
    """Delete temporary files that killed processes left behind."""
    for leftover in directory.glob(".*.tmp-*"):
        with suppress(OSError):
            if leftover.is_file() and time.time() - leftover.lstat().st_mtime > STALE_SECONDS:
                leftover.unlink()
