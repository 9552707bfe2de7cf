"""Iris flowers: 150 rows, 4 measurements in cm, 3 species.

>>> x, y = load_data(return_X_y=True)
>>> x.shape, x[0].tolist(), CLASS_NAMES[y[0]]
((150, 4), [5.1, 3.5, 1.4, 0.2], 'setosa')
"""

from minikeras.keras.datasets.catalogue import IRIS
from minikeras.keras.datasets.tabular import table_loader

FEATURE_NAMES = ("sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)")
CLASS_NAMES = ("setosa", "versicolor", "virginica")

load_data = table_loader(
    IRIS, __name__, "0.1 to 7.9 cm", "Fisher (1936), by way of scikit-learn; as in R, two rows differ from UCI's file"
)
