"""What Boston and California Housing share: tables of floats in an .npz file."""

import io
import zipfile
import zlib

import numpy as np
from numpy.typing import NDArray

from minikeras.errors import LoadError

Rows = tuple[NDArray[np.floating], NDArray[np.floating]]


def parse_rows(content: bytes, name: str, shape: tuple[int, int]) -> Rows:
    """`x` and `y` of the verified bytes of an .npz file; `shape` counts the target as a column."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            x, y = arrays["x"], arrays["y"]
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError) as error:
        raise LoadError(f"{name}: damaged .npz file ({str(error)[:120]})") from error
    if (x.shape, y.shape) != ((shape[0], shape[1] - 1), shape[:1]) or x.dtype.kind != "f" or y.dtype.kind != "f":
        raise LoadError(
            f"{name}: expected floats of shapes {(shape[0], shape[1] - 1)} and {shape[:1]}, found {x.shape}, {y.shape}"
        )
    return x, y
