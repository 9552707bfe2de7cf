"""Boston Housing: 506 rows, 13 features, median prices in 1,000 dollars of 1978. Not shipped: found, or downloaded."""

import os

from minikeras.keras.datasets import locate
from minikeras.keras.datasets.catalogue import BOSTON_HOUSING
from minikeras.keras.datasets.housing import Rows, parse_rows
from minikeras.keras.datasets.tabular import split_table

FEATURE_NAMES = ("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT")


def load_data(
    path: str | os.PathLike[str] = "boston_housing.npz", test_split: float = 0.2, seed: int = 113
) -> tuple[Rows, Rows]:
    """Load the Boston Housing data.

    One of its features, B, was made on the assumption that segregation by race raises prices: use it with care, or rather
    `california_housing`.

    Args:
        path: `"boston_housing.npz"` means the cached copy, the usual places, then a download. Anything else names a file or
            a directory, and only that is used.
        test_split: Share of the rows for the test part.
        seed: Seed of the shuffle before the split.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: float64 features (n, 13) and prices (n,).

    Raises:
        DatasetUnavailableError: No intact copy was found; the message lists every place and what to do.
        InvalidArgumentError: `test_split` is out of range.

    Source: Harrison and Rubinfeld, Hedonic Housing Prices and the Demand for Clean Air (1978), StatLib.

    >>> load_data("/no/such/directory")
    Traceback (most recent call last):
        ...
    minikeras.errors.DatasetUnavailableError: dataset 'boston_housing' was asked for, but no intact copy was found. Tried:
      ...
    """
    _, contents = locate.find((BOSTON_HOUSING,), None if path == "boston_housing.npz" else path)
    ((name, content),) = contents.items()
    return split_table(parse_rows(content, name, BOSTON_HOUSING.shape), test_split, seed)
