"""Handwritten digits: 1,797 images of 8 x 8 pixels, 10 classes, flattened to 64 features.

>>> x, y = load_data(return_X_y=True)
>>> x.shape, float(x.max()), y[:5].tolist()
((1797, 64), 16.0, [0, 1, 2, 3, 4])
"""

from minikeras.keras.datasets.catalogue import DIGITS
from minikeras.keras.datasets.tabular import table_loader

CLASS_NAMES = tuple("0123456789")

load_data = table_loader(
    DIGITS,
    __name__,
    "integers 0 to 16, row by row (`x.reshape(-1, 8, 8)` gives the images)",
    "Alpaydin and Kaynak, Optical Recognition of Handwritten Digits (test part), UCI, by way of scikit-learn",
)
