"""Machine code on the disk: what LLVM has compiled for this processor is read by later processes, a hundred times as fast.

It is trusted as the `__pycache__` of a package is: only the user may write to its folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path

from ....errors import LoadError
from ....files import cache
from ....files.durable import write_file

MOST = 4096
"""Files, of some 5 kB each; one more, and all are made anew."""


def folder() -> Path:
    """Where they are."""
    return cache.home() / "kernels"


def _own_folder() -> Path:
    """The folder, made if it is missing; LoadError or OSError if anyone but the user may write to it."""
    found = folder()
    cache.make_private(found)
    if os.name == "posix" and found.stat().st_mode & stat.S_IWGRP:
        raise LoadError(f"{found} is writable by its group")
    return found


def read(name: str) -> bytes | None:
    """The code of that name; None if there is none, or if it is not what was written under it."""
    with contextlib.suppress(OSError, LoadError):
        content = (_own_folder() / name).read_bytes()
        code = content[32:]
        return code if _digest(name, code) == content[:32] else None
    return None


def keep(name: str, code: bytes) -> None:
    """Write code, if the folder is there and the user's own."""
    with contextlib.suppress(OSError, LoadError):
        target = _own_folder()
        known = list(target.iterdir())
        for path in known if len(known) >= MOST else ():
            path.unlink(missing_ok=True)
        write_file(target / name, _digest(name, code) + code, durable=False)


def _digest(name: str, code: bytes) -> bytes:
    return hashlib.sha256(name.encode() + code).digest()
