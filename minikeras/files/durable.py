"""Writing: a file gets its name when all its bytes are on the disk, and not before.

Temporary file in the same folder, fsync, rename, fsync of the folder: after a kill, a full disk or a power cut there is the old
file or the new one. Every system call of a save is made in this module, so tests let each one fail.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import CheckpointBusyError

STALE_SECONDS = 3600.0
"""Age from which a temporary file whose process is gone counts as left behind."""

_CHUNK = 1 << 24


class FileOutput:
    """A file being written: every call to the system is seen, and a short write is continued."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Write all of `data`."""
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[os.write(self._descriptor, rest[:_CHUNK]) :]
        return len(data)


@contextlib.contextmanager
def atomic_file(target: str | os.PathLike[str], durable: bool = True, mode: int = 0o644) -> Iterator[FileOutput]:
    """A file that appears under its name if the `with` block ends without an error, and otherwise leaves no trace.

    Args:
        target: the name; its folder exists. A symbolic link of that name is replaced, not followed.
        durable: whether to wait for the disk; without it the file survives a crash of the process, not one of the machine.
        mode: permissions of a new file, less the umask; a file that is replaced hands its own on.
    """
    target = Path(target)
    remove_stale(target.parent)
    temporary = target.parent / f".{target.name[:120]}.tmp-{os.getpid()}-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, mode)
    except OSError as error:
        error.filename = str(target)  # the name that was asked for
        raise
    try:
        try:
            with contextlib.suppress(FileNotFoundError):
                old = os.lstat(target)
                if stat.S_ISREG(old.st_mode) and os.name == "posix":
                    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
            yield FileOutput(descriptor)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if durable:
        sync_directory(target.parent)


def write_file(target: str | os.PathLike[str], content: bytes | bytearray | memoryview, durable: bool = True) -> None:
    """Write a whole file, as `atomic_file`."""
    with atomic_file(target, durable) as output:
        output.write(content)


def write_files(directory: str | os.PathLike[str], contents: Mapping[str, bytes]) -> None:
    """Write some files of a folder, each whole or not at all. They get their names in turn, when all are on the disk."""
    with contextlib.ExitStack() as stack:
        for name, content in reversed(list(contents.items())):
            stack.enter_context(atomic_file(Path(directory, name), durable=False)).write(content)
        sync_everything(directory)  # once: 64 small files take 10 ms instead of 800
    sync_directory(directory)


def sync_directory(directory: str | os.PathLike[str]) -> None:
    """Make the names in a folder survive a power failure, where the system can."""
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_everything(directory: str | os.PathLike[str]) -> None:
    """Make all that lies in a folder survive a power failure: one call for the file system, not one for each file."""
    if hasattr(os, "sync"):
        os.sync()  # 50,000 small files: 0.5 s instead of 48
    else:
        sync_directory(directory)


def make_directory(directory: str | os.PathLike[str]) -> None:
    """Make a folder and those above it, and make their names survive too."""
    directory = Path(directory)
    for level in reversed([level for level in (directory, *directory.parents) if not level.exists()]):
        with contextlib.suppress(FileExistsError):
            os.mkdir(level)
        sync_directory(level.parent)


def remove(path: str | os.PathLike[str]) -> None:
    """Delete a file if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


@contextlib.contextmanager
def writer_lock(directory: str | os.PathLike[str], patience: float = 10.0) -> Iterator[None]:
    """Be the only writer of a folder within the block; readers need no lock. The system frees it if the process dies."""
    try:
        import fcntl
    except ImportError:  # Windows: renaming is atomic there too, but writers are not kept apart
        yield
        return
    name = Path(directory) / ".writer.lock"
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        until = time.monotonic() + patience
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > until:
                raise CheckpointBusyError(
                    f"{directory}: another process has been writing here for over {patience:g} s. Give each its own folder."
                )
            time.sleep(0.001)  # a writer in a tight loop leaves it free for about that long
        yield
    finally:
        os.close(descriptor)


def remove_stale(directory: str | os.PathLike[str], age: float = STALE_SECONDS) -> None:
    """Delete temporary files of at least this age that killed processes left behind."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            name, mark, owner = entry.name.rpartition(".tmp-")
            if not mark or not name.startswith(".") or not entry.is_file(follow_symlinks=False):
                continue
            old = time.time() - entry.stat(follow_symlinks=False).st_mtime >= age
            if old and not is_alive(owner.partition("-")[0]):
                remove(entry.path)


def is_alive(process: str) -> bool:
    """True if a process of this number runs here, and when in doubt."""
    if not process.isascii() or not process.isdigit() or os.name != "posix":
        return not process.isdigit()
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
