"""Breast tumours (Wisconsin, diagnostic): 569 rows, 30 measurements of cell nuclei, 2 classes.

>>> x, y = load_data(return_X_y=True)
>>> x.shape, x[0, :2].tolist(), CLASS_NAMES[y[0]]
((569, 30), [17.99, 10.38], 'malignant')
"""

from minikeras.keras.datasets.catalogue import BREAST_CANCER
from minikeras.keras.datasets.tabular import table_loader

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

load_data = table_loader(
    BREAST_CANCER,
    __name__,
    "0 to 4254 (very different scales: standardise them)",
    "Wolberg, Mangasarian, Street and Street, UCI, by way of scikit-learn",
)
