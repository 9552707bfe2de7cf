"""What the four tables share: reading, and the split into training and test rows."""

import os

import numpy as np
from numpy.typing import NDArray

from minikeras.errors import InvalidArgumentError
from minikeras.keras.datasets import locate
from minikeras.keras.datasets.catalogue import Dataset
from minikeras.keras.datasets.formats import parse_csv

Table = tuple[NDArray[np.float64], NDArray[np.int64]]


def load_table(dataset: Dataset, path: str | os.PathLike[str] | None) -> Table:
    """Features and labels of a table whose last column is the label, in the order of the file.

    Args:
        dataset: A tabular dataset of the catalogue.
        path: File or directory to use instead of searching.

    Returns:
        float64 features (rows, columns - 1) and int64 labels (rows,).

    Raises:
        DatasetUnavailableError: No intact copy was found.
    """
    _, contents = locate.find((dataset,), path)
    (name,) = contents
    table = parse_csv(contents[name], name, dataset.shape)
    return table[:, :-1].copy(), table[:, -1].astype(np.int64)


def split_table(table: Table, test_split: float, seed: int) -> tuple[Table, Table]:
    """Shuffle the rows and cut off the test part, exactly as Keras' tabular loaders do.

    Args:
        table: Features and labels.
        test_split: Fraction of the rows for the test part, 0 <= test_split < 1.
        seed: Seed of the shuffle, 0 to 2**32 - 1.

    Returns:
        `(x_train, y_train), (x_test, y_test)`.

    Raises:
        InvalidArgumentError: `test_split` is out of range.

    >>> table = np.arange(10.0).reshape(5, 2), np.arange(5)
    >>> (x_train, y_train), (x_test, y_test) = split_table(table, test_split=0.4, seed=113)
    >>> x_train.shape, y_test.shape
    ((3, 2), (2,))
    """
    if not 0 <= test_split < 1:
        raise InvalidArgumentError(f"test_split is {test_split}; it has to be at least 0 and less than 1")
    x, y = table
    # NumPy has frozen RandomState, so a seed means the same rows in every version.
    order = np.arange(len(x))
    np.random.RandomState(seed).shuffle(order)
    train_rows = int(len(x) * (1 - test_split))
    train, test = order[:train_rows], order[train_rows:]
    return (x[train], y[train]), (x[test], y[test])
