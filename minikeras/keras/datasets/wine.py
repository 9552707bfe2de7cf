"""Italian wines: 178 rows, 13 chemical measurements, 3 growers.

>>> x, y = load_data(return_X_y=True)
>>> x.shape, x[0, :3].tolist(), CLASS_NAMES[y[0]]
((178, 13), [14.23, 1.71, 2.43], 'class_0')
"""

from minikeras.keras.datasets.catalogue import WINE
from minikeras.keras.datasets.tabular import table_loader

FEATURE_NAMES = (
    "alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "total_phenols", "flavanoids",
    "nonflavanoid_phenols", "proanthocyanins", "color_intensity", "hue", "od280/od315_of_diluted_wines", "proline",
)  # fmt: skip
CLASS_NAMES = ("class_0", "class_1", "class_2")

load_data = table_loader(
    WINE,
    __name__,
    "0.13 to 1680 (very different scales: standardise them)",
    "Aeberhard and Forina, Wine, UCI, by way of scikit-learn",
)
