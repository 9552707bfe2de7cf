"""Machine code on the disk: what LLVM has compiled for this processor is read by later processes, a hundred times as fast.

It is run, so only the user and root may have been able to write it: the folder and all above it are checked, then the file that
was opened is. The digest finds damage. A key for it would lie in the same folder, and keep no one else out.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from pathlib import Path

from ....core.warnings import logger
from ....errors import LoadError, NotFoundError
from ....files import cache
from ....files.durable import remove, write_file
from ....files.reading import MEGABYTE, read_file

MOST = 4096
"""Files, of some 5 kB each; one more, and all are made anew."""
LARGEST = 16 * MEGABYTE


def folder() -> Path:
    """Where they are."""
    return cache.home() / "kernels"


def read(name: str) -> bytes | None:
    """The code of that name; None if there is none, or if it is not what the user has written under it."""
    try:
        with cache.own_folder(folder()) as inside:
            content = read_file(folder() / name if inside is None else name, LARGEST, follow=False, own=inside)
    except (NotFoundError, OSError):
        return None
    except LoadError as error:
        _warn(str(error))
        return None
    code = bytes(content[32:])
    return code if _digest(name, code) == content[:32] else None


@functools.cache
def _warn(reason: str) -> None:
    """Say once why kernels are compiled again."""
    logger.warning("Compiled kernels are not read from %s: %s.", folder(), reason)


def keep(name: str, code: bytes) -> None:
    """Write code, if the folder is there and the user's own."""
    with contextlib.suppress(OSError, LoadError), cache.own_folder(folder()):
        known = list(folder().iterdir())
        for path in known if len(known) >= MOST else [folder() / name]:
            remove(path)  # a file that is replaced would hand its permissions on
        write_file(folder() / name, _digest(name, code) + code, durable=False)


def _digest(name: str, code: bytes) -> bytes:
    return hashlib.sha256(name.encode() + code).digest()
