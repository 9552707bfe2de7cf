"""Lines of text files as a Dataset."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..boundary import explaining
from ..core import convert_to_tensor
from ..errors import NotFoundError
from .checks import UNKNOWN_CARDINALITY, is_dataset
from .dataset import Dataset


@explaining
def TextLineDataset(
    filenames: Any, compression_type: str | None = None, buffer_size: int | None = None, num_parallel_reads: int | None = None
) -> Dataset:
    """The lines of text files, strings without the end of the line. Files are read in each iteration, as far as is needed.

    Args:
        filenames: a path, several, or a Dataset of paths.
        compression_type: None, '' or 'GZIP'.
        buffer_size: accepted for compatibility.
        num_parallel_reads: accepted for compatibility; `prefetch` and `interleave` read ahead.

    Raises:
        ValueError: for another compression.
        NotFoundError: while iterating, if there is no such file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "poem.txt")
    >>> with open(path, "w") as file:
    ...     _ = file.write("Roses are red,\\nviolets are blue.\\n")
    >>> [str(line.numpy()) for line in TextLineDataset(path)]
    ['Roses are red,', 'violets are blue.']
    """
    if compression_type not in (None, "", "GZIP"):
        raise ValueError(f"TextLineDataset: compression_type must be None, '' or 'GZIP', found {compression_type!r}.")
    opened = gzip.open if compression_type else open

    def rows() -> Iterator[Any]:
        for name in filenames.as_numpy_iterator() if is_dataset(filenames) else np.ravel(filenames):
            try:
                with opened(str(name), "rt", encoding="utf-8", newline=None) as file:
                    for line in file:
                        yield convert_to_tensor(line.rstrip("\n"))
            except FileNotFoundError:
                raise NotFoundError(f"TextLineDataset: there is no file {str(name)!r}.") from None

    return Dataset(rows, UNKNOWN_CARDINALITY, (filenames,) if is_dataset(filenames) else ())
