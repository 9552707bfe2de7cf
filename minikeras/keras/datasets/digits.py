"""Handwritten digits: 1,797 images of 8 x 8 pixels, 10 classes, flattened to 64 features."""

import os
from typing import Literal, overload

from minikeras.keras.datasets.catalogue import DIGITS
from minikeras.keras.datasets.tabular import Table, load_table, split_table

CLASS_NAMES = tuple("0123456789")


@overload
def load_data(
    path: str | os.PathLike[str] | None = ..., test_split: float = ..., seed: int = ...,
    *, return_X_y: Literal[False] = ...,
) -> tuple[Table, Table]: ...  # fmt: skip


@overload
def load_data(
    path: str | os.PathLike[str] | None = ..., test_split: float = ..., seed: int = ...,
    *, return_X_y: Literal[True],
) -> Table: ...  # fmt: skip


def load_data(
    path: str | os.PathLike[str] | None = None,
    test_split: float = 0.2,
    seed: int = 113,
    *,
    return_X_y: bool = False,
) -> tuple[Table, Table] | Table:
    """Load the digits data; it is shipped, so this needs no network.

    Args:
        path: File or directory to use instead of searching.
        test_split: Fraction of the 1797 rows for the test part, 0 <= test_split < 1.
        seed: Seed of the shuffle before the split.
        return_X_y: Return all rows in the order of the file, without a split.

    Returns:
        `(x_train, y_train), (x_test, y_test)`, or `(x, y)` with `return_X_y`. Features are float64 (rows, 64),
        integers 0 to 16, row by row (`x.reshape(-1, 8, 8)` gives the images); labels are int64 (rows,), positions in
        `CLASS_NAMES`.

    Raises:
        DatasetUnavailableError: No intact copy was found; the message lists every place.
        InvalidArgumentError: `test_split` is out of range.

    Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits (test part), UCI, by way of scikit-learn.
    Licence: CC BY 4.0 (UCI), BSD-3-Clause (scikit-learn).

    >>> x, y = load_data(return_X_y=True)
    >>> x.shape, float(x.max()), y[:5].tolist()
    ((1797, 64), 16.0, [0, 1, 2, 3, 4])
    """
    table = load_table(DIGITS, path)
    return table if return_X_y else split_table(table, test_split, seed)
