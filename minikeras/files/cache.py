"""The user's cache directory."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from minikeras.errors import LoadError


def home() -> Path:
    """`$MINIKERAS_HOME`, by default `~/.minikeras`; it need not exist."""
    return Path(_expanded()).absolute()


def _expanded() -> str:
    """Begins with '~' if this user has no home directory."""
    return os.path.expanduser(os.environ.get("MINIKERAS_HOME") or "~/.minikeras")


def offline() -> bool:
    """Whether `MINIKERAS_OFFLINE` forbids downloads."""
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
