"""What CIFAR-10 and CIFAR-100 share: archives of records, each some labels and the bytes of an image."""

import io
import lzma
import tarfile
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from minikeras.errors import LoadError

SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32
Images = tuple[NDArray[np.uint8], NDArray[np.integer]]


def images_from_tar(content: bytes, name: str, files: Sequence[str], rows: int, labels: int, column: int) -> Images:
    """Images (n, 32, 32, 3) and one of their labels (n, 1), from files of as many rows each in a tar archive."""
    size, found = rows * (labels + _PIXELS), {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as archive:
            for member in archive:
                base = member.name.rpartition("/")[2]
                stream = archive.extractfile(member) if base in files and member.size == size else None
                if stream is not None:
                    found[base] = stream.read(size)
    except (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise LoadError(f"{name}: damaged archive ({str(error)[:120]})") from error
    missing = [one for one in files if len(found.get(one, b"")) != size]
    if missing:
        raise LoadError(f"{name}: expected files of {size} bytes, not found: {', '.join(missing)}")
    records = np.frombuffer(b"".join(found[one] for one in files), np.uint8).reshape(-1, labels + _PIXELS)
    images = records[:, labels:].reshape(-1, *SHAPE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), records[:, column : column + 1].copy()
