"""What the four tables share: `load_data`, reading, and the split into training and test rows."""

import os
from typing import Literal, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from minikeras.errors import InvalidArgumentError
from minikeras.keras.datasets import locate
from minikeras.keras.datasets.catalogue import Dataset
from minikeras.keras.datasets.formats import parse_csv

Table = tuple[NDArray[np.float64], NDArray[np.int64]]
Path = str | os.PathLike[str] | None
X = TypeVar("X", bound=np.generic)
Y = TypeVar("Y", bound=np.generic)


class LoadTable(Protocol):
    """The type of `load_data`."""

    @overload
    def __call__(
        self, path: Path = ..., test_split: float = ..., seed: int = ..., *, return_X_y: Literal[False] = ...
    ) -> tuple[Table, Table]: ...

    @overload
    def __call__(self, path: Path = ..., test_split: float = ..., seed: int = ..., *, return_X_y: Literal[True]) -> Table: ...


_DOC = """Load the {name} data; it is shipped, so this needs no network.

    Args:
        path: File or directory to use instead of searching.
        test_split: Fraction of the {rows} rows for the test part, 0 <= test_split < 1.
        seed: Seed of the shuffle before the split.
        return_X_y: Return all rows in the order of the file, without a split.

    Returns:
        `(x_train, y_train), (x_test, y_test)`, or `(x, y)` with `return_X_y`. Features are float64 (rows, {features}),
        {values}; labels are int64 (rows,), positions in `CLASS_NAMES`.

    Raises:
        DatasetUnavailableError: No intact copy was found; the message lists every place.
        InvalidArgumentError: `test_split` is out of range.

    Source: {source}.
    Licence: {licence}.

    >>> (x, y), (x_test, y_test) = tf.keras.datasets.{name}.load_data(test_split=0.5)
    >>> len(x) + len(x_test), x.shape[1], len(y) == len(x)
    ({rows}, {features}, True)
    """


def table_loader(dataset: Dataset, module: str, values: str, source: str) -> LoadTable:
    """The `load_data` of a module; the last column is the label, `values` and `source` are for the documentation."""

    def load_data(
        path: Path = None, test_split: float = 0.2, seed: int = 113, *, return_X_y: bool = False
    ) -> tuple[Table, Table] | Table:
        _, contents = locate.find((dataset,), path)
        (name,) = contents
        table = parse_csv(contents[name], name, dataset.shape)
        x, y = table[:, :-1].copy(), table[:, -1].astype(np.int64)
        return (x, y) if return_X_y else split_table((x, y), test_split, seed)

    rows, columns = dataset.shape
    about = {"name": dataset.name, "rows": rows, "features": columns - 1, "licence": dataset.licence}
    load_data.__doc__ = _DOC.format(values=values, source=source, **about)
    load_data.__module__, load_data.__qualname__ = module, "load_data"
    return load_data  # type: ignore[return-value]  # mypy does not match one signature with two overloads


def split_table(
    table: tuple[NDArray[X], NDArray[Y]], test_split: float, seed: int
) -> tuple[tuple[NDArray[X], NDArray[Y]], tuple[NDArray[X], NDArray[Y]]]:
    """Shuffle the rows and cut off the test part, exactly as Keras' tabular loaders do.

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
