"""The user's cache directory."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from minikeras.errors import LoadError


def home() -> Path:
    """`$MINIKERAS_HOME`, by default `~/.minikeras`; it need not exist."""
    return Path(_expanded()).absolute()


def _expanded() -> str:
    """The path of the cache; it begins with '~' if this user has no home directory."""
    return os.path.expanduser(os.environ.get("MINIKERAS_HOME") or "~/.minikeras")


def offline() -> bool:
    """True if `MINIKERAS_OFFLINE` forbids downloads."""
    return os.environ.get("MINIKERAS_OFFLINE", "0").lower() not in ("", "0", "false", "no")


def make_private(directory: Path) -> None:
    """Create `home()` or a directory below it with mode 0700.

    Raises:
        LoadError: if another user could write to a level of it, or this user has no home directory.
    """
    if _expanded().startswith("~"):
        raise LoadError(f"cache directory {_expanded()}: this user has no home directory; set HOME or MINIKERAS_HOME")
    top = home()
    top.parent.mkdir(parents=True, exist_ok=True)
    below = directory.relative_to(top).parts
    for depth in range(len(below) + 1):
        level = top.joinpath(*below[:depth])
        with suppress(FileExistsError):
            level.mkdir(mode=0o700)
        _refuse_shared(level)


@contextmanager
def own_folder(directory: Path) -> Iterator[int | None]:
    """A directory below `home()`, made if it is missing, that no other user can enter, replace or move: its descriptor.

    Levels are checked from the root downwards: what is above the next one already cannot change in other hands. On Windows the
    profile of a user is his own, and there is no descriptor.

    Raises:
        LoadError: if another user, root excepted, could put something in its place or into it.
    """
    make_private(directory)
    if os.name != "posix":
        yield None
        return
    directory = Path(os.path.realpath(directory))
    for level in reversed(directory.parents):
        status = level.stat()
        if status.st_uid not in (0, os.geteuid()) or (status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX):
            raise LoadError(
                f"others can write to {level}; take it from them (chmod go-w), or set MINIKERAS_HOME to another place"
            )
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise LoadError(f"others can use {directory}; delete it, and it is made anew for you alone")
        yield descriptor
    finally:
        os.close(descriptor)


def _refuse_shared(directory: Path) -> None:
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
