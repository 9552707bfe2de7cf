"""Machine code on the disk: what LLVM has compiled for this processor is read by later processes, a hundred times as fast.

It is trusted as the `__pycache__` of a package is: only the user may write to its folder.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from ....errors import LoadError
from ....files import cache
from ....files.durable import write_file

MOST = 4096
"""Files, of some 5 kB each; one more, and all are made anew."""


def folder() -> Path:
    """Where they are."""
    return cache.home() / "kernels"


def read(name: str) -> bytes | None:
    """The code of that name; None if there is none, or if it is not what was written."""
    with contextlib.suppress(OSError, LoadError):
        cache.make_private(folder())
        content = (folder() / name).read_bytes()
        digest, code = content[:32], content[32:]
        return code if hashlib.sha256(code).digest() == digest else None
    return None


def keep(name: str, code: bytes) -> None:
    """Write code, if the folder is there and the user's own."""
    with contextlib.suppress(OSError, LoadError):
        cache.make_private(folder())
        known = list(folder().iterdir())
        for path in known if len(known) >= MOST else ():
            path.unlink()
        write_file(folder() / name, hashlib.sha256(code).digest() + code, durable=False)
