"""Tables: four small ones that are shipped, and two of the prices of houses. A class is the module of its name."""

import io
import os
from typing import ClassVar, Literal, Protocol, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidArgumentError
from .catalogue import BOSTON_HOUSING, BREAST_CANCER, CALIFORNIA_HOUSING, DIGITS, IRIS, WINE, DatasetForm, find

Table = tuple[NDArray[np.float64], NDArray[np.int64]]
Rows = tuple[NDArray[np.floating], NDArray[np.floating]]
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


def _table_loader(dataset: DatasetForm, shape: tuple[int, int], values: str, source: str) -> LoadTable:
    """The `load_data` of a table that is shipped; the last column is the label. `values` and `source` are for its docstring."""
    rows, features = shape

    def load_data(
        path: Path = None, test_split: float = 0.2, seed: int = 113, *, return_X_y: bool = False
    ) -> tuple[Table, Table] | Table:
        (content,) = find((dataset,), path)[1].values()
        # A first line `rows,features,class names...` is not part of the table.
        table = np.array([line.split(b",") for line in content.splitlines()[-rows:]]).astype(np.float64)
        x, y = table[:, :-1].copy(), table[:, -1].astype(np.int64)
        return (x, y) if return_X_y else _split((x, y), test_split, seed)

    about = {"name": dataset.name, "rows": rows, "features": features, "licence": dataset.licence}
    load_data.__doc__ = _DOC.format(values=values, source=source, **about)
    load_data.__qualname__ = f"{dataset.name}.load_data"
    return cast(LoadTable, load_data)  # mypy does not match one signature with two overloads


def _split(
    table: tuple[NDArray[X], NDArray[Y]], test_split: float, seed: int
) -> tuple[tuple[NDArray[X], NDArray[Y]], tuple[NDArray[X], NDArray[Y]]]:
    """Shuffle the rows and cut off the test part, exactly as Keras' tabular loaders do.

    >>> table = np.arange(10.0).reshape(5, 2), np.arange(5)
    >>> (x_train, y_train), (x_test, y_test) = _split(table, test_split=0.4, seed=113)
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


class digits:
    """Handwritten digits: 1,797 images of 8 x 8 pixels, 10 classes, flattened to 64 features.

    >>> x, y = tf.keras.datasets.digits.load_data(return_X_y=True)
    >>> x.shape, float(x.max()), y[:5].tolist()
    ((1797, 64), 16.0, [0, 1, 2, 3, 4])
    """

    CLASS_NAMES = tuple("0123456789")

    load_data: ClassVar[LoadTable] = _table_loader(
        DIGITS,
        (1797, 64),
        "integers 0 to 16, row by row (`x.reshape(-1, 8, 8)` gives the images)",
        "Alpaydin and Kaynak, Optical Recognition of Handwritten Digits (test part), UCI, by way of scikit-learn",
    )


class iris:
    """Iris flowers: 150 rows, 4 measurements in cm, 3 species.

    >>> x, y = tf.keras.datasets.iris.load_data(return_X_y=True)
    >>> x.shape, x[0].tolist(), tf.keras.datasets.iris.CLASS_NAMES[y[0]]
    ((150, 4), [5.1, 3.5, 1.4, 0.2], 'setosa')
    """

    FEATURE_NAMES = ("sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)")
    CLASS_NAMES = ("setosa", "versicolor", "virginica")

    load_data: ClassVar[LoadTable] = _table_loader(
        IRIS, (150, 4), "0.1 to 7.9 cm", "Fisher (1936), by way of scikit-learn; as in R, two rows differ from UCI's file"
    )


class wine:
    """Italian wines: 178 rows, 13 chemical measurements, 3 growers.

    >>> x, y = tf.keras.datasets.wine.load_data(return_X_y=True)
    >>> x.shape, x[0, :3].tolist(), tf.keras.datasets.wine.CLASS_NAMES[y[0]]
    ((178, 13), [14.23, 1.71, 2.43], 'class_0')
    """

    FEATURE_NAMES = (
        "alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "total_phenols", "flavanoids",
        "nonflavanoid_phenols", "proanthocyanins", "color_intensity", "hue", "od280/od315_of_diluted_wines", "proline",
    )  # fmt: skip
    CLASS_NAMES = ("class_0", "class_1", "class_2")

    load_data: ClassVar[LoadTable] = _table_loader(
        WINE,
        (178, 13),
        "0.13 to 1680 (very different scales: standardise them)",
        "Aeberhard and Forina, Wine, UCI, by way of scikit-learn",
    )


class breast_cancer:
    """Breast tumours (Wisconsin, diagnostic): 569 rows, 30 measurements of cell nuclei, 2 classes.

    >>> x, y = tf.keras.datasets.breast_cancer.load_data(return_X_y=True)
    >>> x.shape, x[0, :2].tolist(), tf.keras.datasets.breast_cancer.CLASS_NAMES[y[0]]
    ((569, 30), [17.99, 10.38], 'malignant')
    """

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

    load_data: ClassVar[LoadTable] = _table_loader(
        BREAST_CANCER,
        (569, 30),
        "0 to 4254 (very different scales: standardise them)",
        "Wolberg, Mangasarian, Street and Street, UCI, by way of scikit-learn",
    )


class boston_housing:
    """Boston Housing: 506 rows, 13 features, median prices in 1,000 dollars of 1978. Not shipped: found, or downloaded."""

    FEATURE_NAMES = ("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT")

    @staticmethod
    def load_data(
        path: str | os.PathLike[str] = "boston_housing.npz", test_split: float = 0.2, seed: int = 113
    ) -> tuple[Rows, Rows]:
        """Load the Boston Housing data.

        One of its features, B, was made on the assumption that segregation by race raises prices: use it with care, or rather
        `california_housing`.

        Args:
            path: `"boston_housing.npz"` means the cached copy, the usual places, then a download. Anything else names a file
                or a directory, and only that is used.
            test_split: Share of the rows for the test part.
            seed: Seed of the shuffle before the split.

        Returns:
            `(x_train, y_train), (x_test, y_test)`: float64 features (n, 13) and prices (n,).

        Raises:
            DatasetUnavailableError: No intact copy was found; the message lists every place and what to do.
            MissingExtraError: It has to be downloaded, and the package pooch is missing.
            InvalidArgumentError: `test_split` is out of range.

        Source: Harrison and Rubinfeld, Hedonic Housing Prices and the Demand for Clean Air (1978), StatLib.

        >>> tf.keras.datasets.boston_housing.load_data("/no/such/directory")
        Traceback (most recent call last):
            ...
        minikeras.errors.DatasetUnavailableError: dataset 'boston_housing' was asked for, but no intact copy was found. Tried:
          ...
        """
        return _split(_rows(BOSTON_HOUSING, None if path == "boston_housing.npz" else path), test_split, seed)


class california_housing:
    """California Housing: 20,640 rows, 8 features, median prices in dollars of 1990. Not shipped: found, or downloaded."""

    FEATURE_NAMES = (
        "longitude", "latitude", "housing_median_age", "total_rooms", "total_bedrooms", "population", "households",
        "median_income",
    )  # fmt: skip

    @staticmethod
    def load_data(
        version: Literal["large", "small"] = "large",
        path: str | os.PathLike[str] = "california_housing.npz",
        test_split: float = 0.2,
        seed: int = 113,
    ) -> tuple[Rows, Rows]:
        """Load the California Housing data.

        Args:
            version: `"small"` for the first 600 rows.
            path: `"california_housing.npz"` means the cached copy, the usual places, then a download. Anything else names a
                file or a directory, and only that is used.
            test_split: Share of the rows for the test part.
            seed: Seed of the shuffle before the split.

        Returns:
            `(x_train, y_train), (x_test, y_test)`: float features (n, 8) and prices (n,).

        Raises:
            DatasetUnavailableError: No intact copy was found; the message lists every place and what to do.
            MissingExtraError: It has to be downloaded, and the package pooch is missing.
            InvalidArgumentError: `test_split` is out of range, or `version` is none of the two.

        Source: Pace and Barry, Sparse Spatial Autoregressions (1997), StatLib.

        >>> tf.keras.datasets.california_housing.load_data("tiny")
        Traceback (most recent call last):
            ...
        minikeras.errors.InvalidArgumentError: version is 'tiny'; it has to be 'large' or 'small'
        """
        if version not in ("large", "small"):
            raise InvalidArgumentError(f"version is {version!r}; it has to be 'large' or 'small'")
        x, y = _rows(CALIFORNIA_HOUSING, None if path == "california_housing.npz" else path)
        rows = 600 if version == "small" else len(x)
        return _split((x[:rows], y[:rows]), test_split, seed)


def _rows(dataset: DatasetForm, path: Path) -> Rows:
    """`x` and `y` of an .npz file."""
    (content,) = find((dataset,), path)[1].values()
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return arrays["x"], arrays["y"]
