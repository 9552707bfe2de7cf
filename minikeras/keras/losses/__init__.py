"""Losses. May import keras's settings and all below keras. Read `alignment.py` first: what shapes fit together."""

from .functions import (
    binary_crossentropy,
    categorical_crossentropy,
    mean_absolute_error,
    mean_squared_error,
    sparse_categorical_crossentropy,
)
from .loss import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    Loss,
    LossFunctionWrapper,
    MeanAbsoluteError,
    MeanSquaredError,
    SparseCategoricalCrossentropy,
    get,
)

__all__ = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "Loss",
    "LossFunctionWrapper",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "SparseCategoricalCrossentropy",
    "binary_crossentropy",
    "categorical_crossentropy",
    "get",
    "mean_absolute_error",
    "mean_squared_error",
    "sparse_categorical_crossentropy",
]
