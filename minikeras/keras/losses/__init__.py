# mypy: implicit-reexport
"""Losses. May import keras's settings and all below keras. Read `loss.py` first: the base, and what shapes fit together."""

from ...absent import late as _late
from .classification import (
    CTC,
    CategoricalHinge,
    Circle,
    Dice,
    Hinge,
    SquaredHinge,
    Tversky,
    categorical_hinge,
    circle,
    ctc,
    dice,
    hinge,
    squared_hinge,
    tversky,
)
from .crossentropy import (
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    CategoricalGeneralizedCrossEntropy,
    KLDivergence,
    Poisson,
    SparseCategoricalCrossentropy,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_generalized_cross_entropy,
    kl_divergence,
    poisson,
    sparse_categorical_crossentropy,
)
from .loss import Loss, LossFunctionWrapper, Reduction, deserialize, get, serialize
from .regression import (
    CosineSimilarity,
    Huber,
    LogCosh,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    cosine_similarity,
    huber,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
)

# Names that TensorFlow has beside the long ones.
mse = MSE = mean_squared_error
mae = MAE = mean_absolute_error
mape = MAPE = mean_absolute_percentage_error
msle = MSLE = mean_squared_logarithmic_error
kld = KLD = kullback_leibler_divergence = kl_divergence
logcosh = log_cosh

__getattr__, __dir__ = _late(__name__, {})
__all__ = [name for name in __dir__() if not name.startswith("_")]
