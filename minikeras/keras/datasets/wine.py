"""Italian wines: 178 rows, 13 chemical measurements, 3 growers."""

import os
from typing import Literal, overload

from minikeras.keras.datasets.catalogue import WINE
from minikeras.keras.datasets.tabular import Table, load_table, split_table

FEATURE_NAMES = (
    "alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "total_phenols", "flavanoids",
    "nonflavanoid_phenols", "proanthocyanins", "color_intensity", "hue", "od280/od315_of_diluted_wines", "proline",
)  # fmt: skip
CLASS_NAMES = ("class_0", "class_1", "class_2")


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
    """Load the wine data; it is shipped, so this needs no network.

    Args:
        path: File or directory to use instead of searching.
        test_split: Fraction of the 178 rows for the test part, 0 <= test_split < 1.
        seed: Seed of the shuffle before the split.
        return_X_y: Return all rows in the order of the file, without a split.

    Returns:
        `(x_train, y_train), (x_test, y_test)`, or `(x, y)` with `return_X_y`. Features are float64 (rows, 13),
        0.13 to 1680 (very different scales: standardise them); labels are int64 (rows,), positions in `CLASS_NAMES`.

    Raises:
        DatasetUnavailableError: No intact copy was found; the message lists every place.
        InvalidArgumentError: `test_split` is out of range.

    Source: Aeberhard and Forina, Wine, UCI, by way of scikit-learn.
    Licence: CC BY 4.0 (UCI), BSD-3-Clause (scikit-learn).

    >>> x, y = load_data(return_X_y=True)
    >>> x.shape, x[0, :3].tolist(), CLASS_NAMES[y[0]]
    ((178, 13), [14.23, 1.71, 2.43], 'class_0')
    """
    table = load_table(WINE, path)
    return table if return_X_y else split_table(table, test_split, seed)
