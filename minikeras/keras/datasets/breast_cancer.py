"""Breast tumours (Wisconsin, diagnostic): 569 rows, 30 measurements of cell nuclei, 2 classes."""

import os
from typing import Literal, overload

from minikeras.keras.datasets.catalogue import BREAST_CANCER
from minikeras.keras.datasets.tabular import Table, load_table, split_table

_MEASURES = (
    "radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity", "concave points", "symmetry",
    "fractal dimension",
)  # fmt: skip
FEATURE_NAMES = (
    *(f"mean {measure}" for measure in _MEASURES),
    *(f"{measure} error" for measure in _MEASURES),
    *(f"worst {measure}" for measure in _MEASURES),
)
CLASS_NAMES = ("malignant", "benign")


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
    """Load the breast_cancer data; it is shipped, so this needs no network.

    Args:
        path: File or directory to use instead of searching.
        test_split: Fraction of the 569 rows for the test part, 0 <= test_split < 1.
        seed: Seed of the shuffle before the split.
        return_X_y: Return all rows in the order of the file, without a split.

    Returns:
        `(x_train, y_train), (x_test, y_test)`, or `(x, y)` with `return_X_y`. Features are float64 (rows, 30),
        0 to 4254 (very different scales: standardise them); labels are int64 (rows,), positions in `CLASS_NAMES`.

    Raises:
        DatasetUnavailableError: No intact copy was found; the message lists every place.
        InvalidArgumentError: `test_split` is out of range.

    Source: Wolberg, Mangasarian, Street and Street, UCI, by way of scikit-learn.
    Licence: CC BY 4.0 (UCI), BSD-3-Clause (scikit-learn).

    >>> x, y = load_data(return_X_y=True)
    >>> x.shape, x[0, :2].tolist(), CLASS_NAMES[y[0]]
    ((569, 30), [17.99, 10.38], 'malignant')
    """
    table = load_table(BREAST_CANCER, path)
    return table if return_X_y else split_table(table, test_split, seed)
