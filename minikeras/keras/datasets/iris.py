"""Iris flowers: 150 rows, 4 measurements in cm, 3 species."""

import os
from typing import Literal, overload

from minikeras.keras.datasets.catalogue import IRIS
from minikeras.keras.datasets.tabular import Table, load_table, split_table

FEATURE_NAMES = ("sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)")
CLASS_NAMES = ("setosa", "versicolor", "virginica")


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
    """Load the iris data; it is shipped, so this needs no network.

    Args:
        path: File or directory to use instead of searching.
        test_split: Fraction of the 150 rows for the test part, 0 <= test_split < 1.
        seed: Seed of the shuffle before the split.
        return_X_y: Return all rows in the order of the file, without a split.

    Returns:
        `(x_train, y_train), (x_test, y_test)`, or `(x, y)` with `return_X_y`. Features are float64 (rows, 4),
        0.1 to 7.9 cm; labels are int64 (rows,), positions in `CLASS_NAMES`.

    Raises:
        DatasetUnavailableError: No intact copy was found; the message lists every place.
        InvalidArgumentError: `test_split` is out of range.

    Source: Fisher (1936), by way of scikit-learn; as in R, two rows differ from UCI's file.
    Licence: CC BY 4.0 (UCI), BSD-3-Clause (scikit-learn).

    >>> x, y = load_data(return_X_y=True)
    >>> x.shape, x[0].tolist(), CLASS_NAMES[y[0]]
    ((150, 4), [5.1, 3.5, 1.4, 0.2], 'setosa')
    """
    table = load_table(IRIS, path)
    return table if return_X_y else split_table(table, test_split, seed)
