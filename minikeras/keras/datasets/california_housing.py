"""California Housing: 20,640 rows, 8 features, median prices in dollars of 1990. Not shipped: found, or downloaded."""

import os
from typing import Literal

from minikeras.errors import InvalidArgumentError
from minikeras.keras.datasets import locate
from minikeras.keras.datasets.catalogue import CALIFORNIA_HOUSING
from minikeras.keras.datasets.housing import Rows, parse_rows
from minikeras.keras.datasets.tabular import split_table

FEATURE_NAMES = (
    "longitude", "latitude", "housing_median_age", "total_rooms", "total_bedrooms", "population", "households", "median_income",
)  # fmt: skip


def load_data(
    version: Literal["large", "small"] = "large",
    path: str | os.PathLike[str] = "california_housing.npz",
    test_split: float = 0.2,
    seed: int = 113,
) -> tuple[Rows, Rows]:
    """Load the California Housing data.

    Args:
        version: `"small"` for the first 600 rows.
        path: `"california_housing.npz"` means the cached copy, the usual places, then a download. Anything else names a file
            or a directory, and only that is used.
        test_split: Share of the rows for the test part.
        seed: Seed of the shuffle before the split.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: float features (n, 8) and prices (n,).

    Raises:
        DatasetUnavailableError: No intact copy was found; the message lists every place and what to do.
        InvalidArgumentError: `test_split` is out of range, or `version` is none of the two.

    Source: Pace and Barry, Sparse Spatial Autoregressions (1997), StatLib.

    >>> load_data("tiny")
    Traceback (most recent call last):
        ...
    minikeras.errors.InvalidArgumentError: version is 'tiny'; it has to be 'large' or 'small'
    """
    if version not in ("large", "small"):
        raise InvalidArgumentError(f"version is {version!r}; it has to be 'large' or 'small'")
    _, contents = locate.find((CALIFORNIA_HOUSING,), None if path == "california_housing.npz" else path)
    ((name, content),) = contents.items()
    x, y = parse_rows(content, name, CALIFORNIA_HOUSING.shape)
    rows = 600 if version == "small" else len(x)
    return split_table((x[:rows], y[:rows]), test_split, seed)
